/* SPDX-License-Identifier: MIT */
/* page_code.c - the hottest functions' code, and sources; see page_code.h */
#include "export/page/page_code.h"

#include <errno.h>

int64_t seam_page_address(uint64_t addr)
{
	int64_t v = (int64_t)addr;

	return v < -(INT64_C(1) << 51) || v > INT64_C(1) << 51 ? 0 : v;
}

/* -- machine code --------------------------------------------------------- */

struct function_heat {
	uint64_t samples;
	uint32_t function;
};

static int hotter(const void *a, const void *b)
{
	const struct function_heat *x = a, *y = b;

	return SEAM_COMPARE(y->samples, x->samples) ?:
	       SEAM_COMPARE(x->function, y->function);
}

/*
 * The function that an instruction of the leaf @stack is in: what is inlined
 * there has no code of its own.
 */
static uint32_t function_of(const struct seam_parts *parts, uint32_t stack)
{
	const struct seam_frame *frames = parts->profile->frames.items;
	const struct seam_stack *stacks = parts->selected->stacks;

	while (stack && frames[stacks[stack].frame].is_inlined)
		stack = stacks[stack].parent;
	return stack ? frames[stacks[stack].frame].function : SEAM_NONE;
}

static void count_heat(const struct seam_parts *parts,
		       struct function_heat *heat)
{
	const struct seam_profile *p = parts->profile;

	for (size_t i = 0; i < p->samples.n; i++) {
		const struct seam_profile_event *event =
			&p->events.items[p->samples.event[i]];
		uint32_t function;

		if (event->is_wait || event->is_measured ||
		    !seam_selected_has(parts->selected, i))
			continue;
		function = function_of(parts, seam_selected_stack(
					       parts->selected, i));
		if (function != SEAM_NONE)
			heat[function].samples +=
				seam_samples_count(&p->samples, i);
	}
}

/* Whether any function is @hot, which are set. */
static bool choose_hot(const struct seam_parts *parts,
		       struct function_heat *heat, bool *hot)
{
	size_t n = parts->profile->functions.n;

	for (uint32_t i = 0; i < n; i++)
		heat[i].function = i;
	count_heat(parts, heat);
	seam_array_sort(heat, n, sizeof(*heat), hotter);
	if (n > SEAM_PAGE_CODE_FUNCTIONS)
		n = SEAM_PAGE_CODE_FUNCTIONS;
	for (size_t i = 0; i < n && heat[i].samples; i++)
		hot[heat[i].function] = true;
	return n && heat[0].samples;
}

int seam_page_code_read(struct seam_annotation *code,
			const struct seam_parts *parts,
			const struct seam_symbols_options *symbols,
			struct seam_err *err)
{
	size_t n = parts->profile->functions.n;
	struct function_heat *heat = calloc(n + 1, sizeof(*heat));
	bool *hot = calloc(n + 1, sizeof(*hot));
	struct seam_annotation_options options = {
		.functions = hot, .symbols = *symbols,
	};
	int r = 0;

	*code = (struct seam_annotation) { 0 };
	if (!heat || !hot)
		r = seam_err_no_memory(err);
	else if (parts->profile->jit && choose_hot(parts, heat, hot))
		r = seam_annotate(code, parts->selected, &options, err);
	free(heat);
	free(hot);
	return r;
}

static void put_body(const struct seam_annotated *body, struct seam_json *j)
{
	size_t n = body->instructions.n;

	seam_json_open(j, NULL, '{');
	seam_json_u64(j, "func", body->function);
	seam_json_open(j, "addr", '[');
	for (size_t i = 0; i < n; i++)
		seam_json_i64(j, NULL, seam_page_address(
			body->frame_addr + body->instructions.items[i].offset));
	seam_json_close(j);
	seam_json_open(j, "line", '[');
	for (size_t i = 0; i < n; i++)
		seam_json_u64(j, NULL, body->instructions.items[i].line);
	seam_json_close(j);
	seam_json_open(j, "text", '[');
	for (size_t i = 0; i < n; i++)
		seam_json_string(j, NULL, body->instructions.items[i].text);
	seam_json_close(j);
	seam_json_close(j);
}

void seam_page_code_put(const struct seam_annotation *code,
			struct seam_json *json)
{
	size_t n = 0;

	seam_json_open(json, "code", '[');
	for (size_t i = 0; i < code->bodies.n; i++) {
		const struct seam_annotated *body = &code->bodies.items[i];

		if (body->is_source || !body->instructions.n ||
		    n + body->instructions.n > SEAM_PAGE_CODE_INSTRUCTIONS)
			continue;
		n += body->instructions.n;
		put_body(body, json);
	}
	seam_json_close(json);
}

/* -- sources -------------------------------------------------------------- */

/*
 * A recording names its sources, and may name any file of its reader; a page is
 * shown to others, so it gets only files that are called as sources.
 */
static bool is_source_name(const char *path)
{
	static const char endings[] = " c h cc cpp cxx c++ hh hpp hxx inc ipp "
		"tcc S s asm m mm d rs go zig nim f f90 f95 pas adb ads hs ml "
		"lua luau fnl moon tl py pyx js mjs cjs ts mts tsx jsx rb php "
		"pl pm java kt scala clj groovy cs fs vb swift dart erl ex exs "
		"jl r R el lisp scm y l cu cl glsl wat v sv ";
	const char *dot = strrchr(path, '.');
	char word[16];

	if (!dot || strchr(dot, '/') || strlen(dot) > 8 || !dot[1] ||
	    strchr(dot, ' '))
		return false;
	snprintf(word, sizeof(word), " %s ", dot + 1);
	return strstr(endings, word) != NULL;
}

/* A text that ends with a NUL; NULL: it is none, or too large. */
static char *text_of(const struct seam_page_part *part, const char *path)
{
	struct seam_file file = { 0 };
	char *text = NULL;

	if (!is_source_name(path) ||
	    part->source(part->context, path, &file) < 0)
		return NULL;
	if (file.bytes.size && file.bytes.size <= SEAM_PAGE_SOURCE_BYTES &&
	    !memchr(file.bytes.data, 0, file.bytes.size))
		text = strndup((const char *)file.bytes.data, file.bytes.size);
	seam_file_close(&file);
	return text;
}

size_t seam_page_sources_put(const struct seam_page_part *part,
			     const struct seam_strings *files,
			     struct seam_json *json)
{
	size_t n_bytes = 0, n = 0;

	seam_json_open(json, "sources", '[');
	for (uint32_t i = 0; part->source && i < files->texts.n &&
	     n_bytes < SEAM_PAGE_SOURCES_BYTES; i++) {
		char *text = text_of(part, seam_strings_get(files, i));

		if (!text)
			continue;
		n++;
		n_bytes += strlen(text);
		seam_json_open(json, NULL, '{');
		seam_json_u64(json, "file", i);
		seam_json_string(json, "text", text);
		seam_json_close(json);
		free(text);
	}
	seam_json_close(json);
	return n;
}
