/* SPDX-License-Identifier: MIT */
/* annotation_code.c - instructions of bodies; see annotation_parts.h */
#include "model/annotate/annotation_parts.h"

#include <errno.h>
#include <stdlib.h>

#include "symbol/code/disassembly.h"

enum {
	MAX_INLINED = 64,
	MAX_LINES = 4096,	/* of source between the first and the last */
};

const char *seam_annotating_text(struct seam_annotating *a, const char *text)
{
	return seam_arena_text(&a->to->arena, text, strlen(text));
}

static int read_code(struct seam_annotating *a, struct seam_annotated *body,
		     struct seam_code_source *source)
{
	struct seam_err why = { 0 };
	uint8_t *code;
	int r;

	if (body->problem || body->code)
		return 0;
	code = seam_arena_alloc(&a->to->arena, (size_t)body->size + 1);
	if (!code)
		return -ENOMEM;
	r = seam_symbols_code(a->symbols, source->file, source->offset, code,
			      (size_t)body->size, &source->machine, &why);
	body->code = code;
	if (r < 0) {
		body->size = 0;
		body->problem = seam_annotating_text(a,
					why.cause[why.n_causes - 1]);
	}
	return r == -ENOMEM || (r < 0 && !body->problem) ? -ENOMEM : 0;
}

struct decoding {
	struct seam_annotating *a;
	struct seam_annotated *body;
};

static int add_instruction(void *context, const struct seam_instruction *one)
{
	struct decoding *to = context;
	struct seam_annotated_instruction added = {
		.offset = one->addr - to->body->addr,
		.size = (uint32_t)one->size,
		.text = seam_annotating_text(to->a, one->text),
	};

	return added.text && SEAM_ARRAY_ADD(&to->body->instructions, added) ?
	       0 : -ENOMEM;
}

static int decode(struct seam_annotating *a, struct seam_annotated *body,
		  const struct seam_machine *machine)
{
	struct decoding to = { a, body };
	struct seam_code_block code = {
		.machine = *machine, .addr = body->addr,
		.bytes = { body->code, (size_t)body->size },
	};
	struct seam_err why = { 0 };
	int r;

	/* The requested address is this far from the end. */
	if (a->window.is_requested && body->size > SEAM_WINDOW_BYTES)
		code.middle = (size_t)body->size - SEAM_WINDOW_BYTES;
	r = seam_symbols_disassemble(a->symbols, &code, add_instruction, &to,
				     &why);
	if (r == 0 || r == -ENOMEM)
		return r;
	body->instructions.n = 0;
	body->problem = seam_annotating_text(a, why.cause[0]);
	return body->problem ? 0 : -ENOMEM;
}

/* Lines of JIT code hold from one row to the next. */
static void put_jit_lines(struct seam_annotating *a,
			  struct seam_annotated *body, uint32_t code)
{
	const struct seam_profile *p = a->profile;
	const struct seam_jit_line *rows;
	size_t n = seam_jit_code_lines(p->jit->code,
			p->code_objects.items[code].object, &rows);
	size_t row = 0;

	for (size_t i = 0; i < body->instructions.n; i++) {
		struct seam_annotated_instruction *at =
			&body->instructions.items[i];

		while (row < n && rows[row].addr <= body->addr + at->offset)
			row++;
		if (row == 0 || rows[row - 1].line == 0)
			continue;
		at->line = rows[row - 1].line;
		at->file = rows[row - 1].file;
	}
}

/* The innermost line, copied: its strings live as long as the symbols. */
static int put_file_lines(struct seam_annotating *a,
			  struct seam_annotated *body,
			  const struct seam_code_source *source)
{
	const char *last = NULL, *copied = NULL;

	for (size_t i = 0; i < body->instructions.n; i++)
		seam_symbols_expect(a->symbols, source->file,
				    source->offset +
				    body->instructions.items[i].offset);
	for (size_t i = 0; i < body->instructions.n; i++) {
		struct seam_annotated_instruction *at =
			&body->instructions.items[i];
		struct seam_location found[MAX_INLINED];
		size_t n = seam_symbols_resolve(a->symbols, source->file,
						source->offset + at->offset,
						found, MAX_INLINED);

		if (n == 0 || !found[0].file || found[0].line == 0)
			continue;
		if (!last || strcmp(last, found[0].file)) {
			last = found[0].file;
			copied = seam_annotating_text(a, last);
			if (!copied)
				return -ENOMEM;
		}
		at->file = copied;
		at->line = found[0].line;
	}
	return 0;
}

static int by_line(const void *a, const void *b)
{
	const struct seam_annotated_instruction *x = a, *y = b;

	return SEAM_COMPARE(x->offset, y->offset);
}

static int add_line(struct seam_annotated *body, const char *file,
		    uint64_t line)
{
	return SEAM_ARRAY_ADD(&body->instructions,
			      (struct seam_annotated_instruction) {
		.offset = line, .size = 1, .line = (uint32_t)line,
		.file = file, .text = "",
	}) ? 0 : -ENOMEM;
}

/* Lines that ran, and those between them unless they are very many. */
static int make_lines(struct seam_annotating *a, uint32_t i)
{
	struct seam_annotated *body = &a->to->bodies.items[i];
	const char *file = seam_profile_text(a->profile,
					     a->sources.items[i].chunk);
	uint64_t first = UINT64_MAX, last = 0;
	int r = 0;

	for (size_t k = 0; k < a->hits.n && r == 0; k++) {
		uint64_t line = a->hits.items[k].offset;

		if (a->hits.items[k].body != i || line == 0)
			continue;
		r = add_line(body, file, line);
		first = line < first ? line : first;
		last = line > last ? line : last;
	}
	if (r == 0 && last > first && last - first < MAX_LINES) {
		body->instructions.n = 0;
		for (uint64_t line = first; line <= last && r == 0; line++)
			r = add_line(body, file, line);
	}
	SEAM_ARRAY_SORT(&body->instructions, by_line);
	return r;
}

/* A hit counts for its instruction, at whichever byte of it. */
static void put_hits(struct seam_annotating *a)
{
	for (size_t i = 0; i < a->hits.n; i++) {
		const struct seam_place_hit *hit = &a->hits.items[i];
		struct seam_annotated *body =
			&a->to->bodies.items[hit->body];
		struct seam_annotated_instruction *items =
			body->instructions.items, *at;
		size_t after = SEAM_ARRAY_SEARCH(k, body->instructions.n,
					items[k].offset <= hit->offset);

		at = after ? &items[after - 1] : NULL;
		if (!at || hit->offset - at->offset >= at->size) {
			body->n_outside += hit->samples;
			continue;
		}
		at->samples += hit->samples;
		at->weight += hit->weight;
	}
}

static int make_body(struct seam_annotating *a, uint32_t i)
{
	struct seam_annotated *body = &a->to->bodies.items[i];
	struct seam_code_source *source = &a->sources.items[i];
	int r;

	if (body->is_source)
		return make_lines(a, i);
	r = read_code(a, body, source);
	if (r == 0 && !body->problem)
		r = decode(a, body, &source->machine);
	if (r < 0 || body->problem)
		return r;
	if (source->object != SEAM_NONE)
		put_jit_lines(a, body, source->object);
	else
		r = put_file_lines(a, body, source);
	return r;
}

static int hotter(const void *a, const void *b)
{
	const struct seam_annotated *x = a, *y = b;

	return SEAM_COMPARE(y->weight, x->weight) ?:
	       SEAM_COMPARE(x->addr, y->addr);
}

int seam_annotating_bodies(struct seam_annotating *a)
{
	int r = 0;

	for (uint32_t i = 0; i < a->to->bodies.n && r == 0; i++)
		r = make_body(a, i);
	if (r == 0)
		put_hits(a);
	if (r == 0)
		SEAM_ARRAY_SORT(&a->to->bodies, hotter);
	return r;
}
