/* SPDX-License-Identifier: MIT */
/*
 * annotation.c - samples to places, places to bodies, bodies to instructions
 *
 * 1. Count the samples of each frame that is a place in the function.
 * 2. Find the body that each place is in, and its offset there.
 * 3. Read each body's code, decode it, and add counts and lines.
 */
#include "model/annotate/annotation.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include "base/hash.h"
#include "base/index.h"
#include "model/jit/jit_sources.h"
#include "model/origin.h"
#include "symbol/code/disassembly.h"
#include "symbol/jit/jit_code.h"

/* Shown before and after a lone address. */
enum { WINDOW_BYTES = 64 };

/* A place in a body and its counts. */
struct place_hit {
	uint32_t body;
	uint64_t offset;
	uint64_t samples, weight;
	size_t last;			/* the last sample counted here, + 1 */
};

/* Where the code of a body comes from. */
struct code_source {
	uint32_t file;			/* module of symbols; SEAM_NONE */
	uint64_t offset;		/* in the file */
	uint32_t object;		/* JIT: code object; SEAM_NONE */
	uint32_t chunk;			/* guest: string, its path; 0 */
	struct seam_machine machine;
};

struct annotating {
	struct seam_annotation *to;
	const struct seam_selected *selected;
	const struct seam_profile *profile;
	const struct seam_annotation_options *options;
	struct seam_symbols *symbols;
	struct seam_jit_placements placements;	/* read when first needed */
	const char *symbol;		/* a function's name in the profile */
	bool *wanted;			/* by function */
	uint32_t *hit_of;		/* by frame: its hit, + 1 */
	uint32_t *files;		/* by module: of symbols, + 1; or 0 */
	SEAM_ARRAY(struct code_source) sources;	/* by body */
	SEAM_ARRAY(struct place_hit) hits;
	struct seam_index hit_index;
	struct {			/* of "[module+0x1234]" */
		char module[256];
		char function[300];	/* around it: a name made of bounds */
		uint64_t pos;
		bool is_requested;
	} window;
};

enum {
	MAX_CODE_BYTES = 64 << 20,	/* larger functions are rejected */
	MAX_ANCESTORS = 64,		/* hostile parents may form a cycle */
};

/* -- which functions ---------------------------------------------------- */

/* A copy that lives as long as the annotation; NULL: no memory. */
static const char *copy_text(struct annotating *a, const char *text)
{
	return seam_arena_text(&a->to->arena, text, strlen(text));
}

static bool is_called(const char *path, const char *name)
{
	size_t size;
	const char *module = seam_module_name(path, &size);

	return strlen(name) == size && memcmp(module, name, size) == 0;
}

static void parse_window(struct annotating *a)
{
	const char *symbol = a->symbol;
	size_t size = strlen(symbol);
	const char *plus = strrchr(symbol, '+');
	char *end;
	size_t n;

	if (symbol[0] != '[' || !plus || symbol[size - 1] != ']')
		return;
	n = (size_t)(plus - symbol) - 1;
	a->window.pos = strtoull(plus + 1, &end, 16);
	if (end != symbol + size - 1 || end == plus + 1 ||
	    n >= sizeof(a->window.module))
		return;
	memcpy(a->window.module, symbol + 1, n);
	a->window.is_requested = true;
}

/* The module of symbols for a module of the profile; SEAM_NONE: no memory. */
static uint32_t file_of(struct annotating *a, uint32_t module)
{
	if (a->files[module] == 0)
		a->files[module] = 1 + seam_origin_symbols(a->profile, module,
							   a->symbols);
	return a->files[module] - 1;
}

/*
 * The requested address may be in a function of which only the bounds are
 * known: then the whole function is annotated, under its name in the profile.
 */
static void widen_window(struct annotating *a)
{
	const struct seam_profile *p = a->profile;
	struct seam_extent extent = { 0 };

	for (size_t i = 0; i < p->functions.n && !extent.size; i++) {
		const struct seam_function *f = &p->functions.items[i];

		if (!f->is_named && f->layer == SEAM_LAYER_NATIVE &&
		    is_called(seam_profile_path(p, f->module),
			      a->window.module) &&
		    !seam_symbols_extent(a->symbols, file_of(a, f->module),
					 a->window.pos, &extent))
			return;
	}
	if (!extent.size)
		return;
	snprintf(a->window.function, sizeof(a->window.function),
		 "[%s+0x%" PRIx64 "]", a->window.module, extent.offset);
	a->symbol = a->window.function;
	a->window.is_requested = false;
}

/* By name; for a window, the unnamed functions of its module. */
static int choose_functions(struct annotating *a)
{
	const struct seam_profile *p = a->profile;

	a->wanted = calloc(p->functions.n + 1, sizeof(*a->wanted));
	a->files = calloc(p->modules.n, sizeof(*a->files));
	if (!a->wanted || !a->files)
		return -ENOMEM;
	if (a->options->functions) {
		memcpy(a->wanted, a->options->functions,
		       p->functions.n * sizeof(*a->wanted));
		return 0;
	}
	parse_window(a);
	if (a->window.is_requested)
		widen_window(a);
	for (size_t i = 0; i < p->functions.n; i++) {
		const struct seam_function *f = &p->functions.items[i];

		a->wanted[i] = a->window.is_requested ?
			!f->is_named &&
			is_called(seam_profile_path(p, f->module),
				  a->window.module) :
			strcmp(seam_profile_text(p, f->name), a->symbol) == 0;
	}
	return 0;
}

/* -- bodies ------------------------------------------------------------- */

/* The body of @f with this source, added as @body if there is none. */
static uint32_t body_of(struct annotating *a, const struct seam_function *f,
			struct seam_annotated body, struct code_source source)
{
	body.function = (uint32_t)(f - a->profile->functions.items);
	body.layer = f->layer;
	if (!body.symbol)
		body.symbol = seam_profile_text(a->profile, f->name);
	body.module = seam_profile_path(a->profile, f->module);
	for (uint32_t i = 0; i < a->sources.n; i++) {
		const struct code_source *s = &a->sources.items[i];

		if (s->file == source.file && s->offset == source.offset &&
		    s->object == source.object && s->chunk == source.chunk)
			return i;
	}
	/* Both or none: the two arrays have one length. */
	if (!SEAM_ARRAY_RESERVE(&a->to->bodies, 1) ||
	    !SEAM_ARRAY_ADD(&a->sources, source))
		return SEAM_NONE;
	a->to->bodies.items[a->to->bodies.n++] = body;
	return (uint32_t)a->to->bodies.n - 1;
}

/* All places of JIT object @object.  False: no memory. */
static bool add_places(struct annotating *a, struct seam_annotated *body,
		       uint32_t object)
{
	if (a->placements.list.n == 0 &&
	    seam_jit_placements_read(&a->placements, a->profile->jit->code))
		return false;
	for (size_t i = 0; i < a->placements.list.n; i++) {
		const struct seam_jit_placement *p =
			&a->placements.list.items[i];

		if (p->object == object && p->offset == 0 &&
		    !SEAM_ARRAY_ADD(&body->places,
				    (struct seam_annotated_place) {
			.pid = p->pid, .addr = p->start_addr,
			.since_ns = p->time_ns }))
			return false;
	}
	return true;
}

static uint32_t jit_body(struct annotating *a,
			 const struct seam_function *f, uint32_t code)
{
	const struct seam_profile *p = a->profile;
	const struct seam_code_object *c = &p->code_objects.items[code];
	const struct seam_jit_object *o = seam_jit_code_object(p->jit->code,
							       c->object);
	size_t n = a->to->bodies.n;
	uint32_t body = body_of(a, f, (struct seam_annotated) {
		.addr = c->start_addr, .frame_addr = c->start_addr,
		.size = c->code ? c->size : 0, .code = c->code,
		.loaded_ns = c->from_ns,
		.problem = c->code ? NULL : "a perf map has no machine code",
	}, (struct code_source) {
		.file = SEAM_NONE, .object = code,
		.machine = {
			.elf_machine = o->elf_machine ? o->elf_machine :
				       p->elf_machine,
			.is_64 = true,
			.is_big_endian = o->endian == SEAM_BIG,
		},
	});

	return body < n || (body != SEAM_NONE &&
		add_places(a, &a->to->bodies.items[body], c->object)) ? body :
	       SEAM_NONE;
}

/* A function without code: its samples are counted all the same. */
static uint32_t bare_body(struct annotating *a,
			  const struct seam_function *f, uint32_t file,
			  const char *problem)
{
	return body_of(a, f, (struct seam_annotated) { .problem = problem },
		       (struct code_source) {
		.file = file, .offset = f->name, .object = SEAM_NONE,
	});
}

/* A function of a VM's guest; without the path of its chunk, no lines. */
static uint32_t source_body(struct annotating *a,
			    const struct seam_function *f,
			    const struct seam_frame *at, uint64_t *line)
{
	*line = at->line;
	if (!at->file)
		return bare_body(a, f, SEAM_NONE, "its lines are not known");
	return body_of(a, f, (struct seam_annotated) { .is_source = true },
		       (struct code_source) {
		.file = SEAM_NONE, .offset = f->name, .object = SEAM_NONE,
		.chunk = at->file,
	});
}

/* The body at @addr of @module; *@offset is where in it. */
static uint32_t file_body(struct annotating *a,
			  const struct seam_function *f, uint32_t module,
			  uint64_t addr, uint64_t *offset)
{
	uint32_t file = file_of(a, module);
	struct seam_module_state state;
	struct seam_extent extent;

	*offset = 0;
	if (file == SEAM_NONE)
		return SEAM_NONE;
	if (!seam_symbols_extent(a->symbols, file, addr, &extent)) {
		seam_symbols_state(a->symbols, file, &state);
		return bare_body(a, f, file, state.problem ?
				 copy_text(a, state.problem) :
				 "its file is not known");
	}
	if (a->window.is_requested) {
		uint64_t before = a->window.pos < WINDOW_BYTES ?
				  a->window.pos : WINDOW_BYTES;

		extent.addr = extent.addr - extent.offset + a->window.pos -
			      before;
		extent.offset = a->window.pos - before;
		extent.size = before + WINDOW_BYTES;
	}
	if (extent.size == 0 || extent.size > MAX_CODE_BYTES)
		return bare_body(a, f, file, "its end is not known");
	*offset = addr - extent.offset;
	return body_of(a, f, (struct seam_annotated) {
		.symbol = a->window.is_requested ? a->symbol : NULL,
		.addr = extent.addr, .frame_addr = extent.offset,
		.size = extent.size,
	}, (struct code_source) {
		.file = file, .offset = extent.offset, .object = SEAM_NONE,
	});
}

/* -- counting ----------------------------------------------------------- */

/* The hit of @frame, which is not inlined.  NULL: no memory. */
static struct place_hit *find_hit(struct annotating *a,
				  uint32_t frame)
{
	const struct seam_profile *p = a->profile;
	const struct seam_frame *at = &p->frames.items[frame];
	const struct seam_function *f = &p->functions.items[at->function];
	uint64_t offset = 0;
	uint32_t body, id;

	if (a->hit_of[frame])
		return &a->hits.items[a->hit_of[frame] - 1];
	if (at->code != SEAM_NONE) {
		body = jit_body(a, f, at->code);
		offset = at->addr - p->code_objects.items[at->code].start_addr;
	} else if (p->events.items[a->to->event].is_measured) {
		body = bare_body(a, f, SEAM_NONE,
				 "calls are at none of its instructions, "
				 "only samples are");
	} else if (f->layer == SEAM_LAYER_NATIVE ||
		   f->layer == SEAM_LAYER_KERNEL) {
		body = file_body(a, f, at->module, at->addr, &offset);
	} else if (f->layer == SEAM_LAYER_GUEST) {
		body = source_body(a, f, at, &offset);
	} else {
		body = bare_body(a, f, SEAM_NONE, "its code is in no jitdump");
	}
	id = body == SEAM_NONE ? SEAM_NONE :
	     SEAM_INDEX_INTERN(&a->hit_index, seam_hash_add(offset, body),
		&a->hits, i, a->hits.items[i].body == body &&
		a->hits.items[i].offset == offset,
		(struct place_hit) { .body = body, .offset = offset });
	if (id == SEAM_NONE)
		return NULL;
	a->hit_of[frame] = id + 1;
	return &a->hits.items[id];
}

/* The last place in process @pid by @time_ns; NULL: none. */
static struct seam_annotated_place *place_of(struct seam_annotated *body,
					     int32_t pid, uint64_t time_ns)
{
	struct seam_annotated_place *last = NULL;

	for (size_t i = 0; i < body->places.n; i++) {
		struct seam_annotated_place *place = &body->places.items[i];

		if (place->pid == pid && place->since_ns <= time_ns &&
		    (!last || place->since_ns >= last->since_ns))
			last = place;
	}
	return last;
}

/*
 * Count sample @i where the code was at its time: in its own process, else
 * where its parent had it when it forked, and so on.
 */
static void count_place(struct annotating *a,
			struct seam_annotated *body, size_t i)
{
	const struct seam_profile *p = a->profile;
	uint32_t process = p->threads.items[p->samples.thread[i]].process;
	uint64_t time_ns = p->samples.time_ns[i];
	struct seam_annotated_place *place = NULL;

	if (body->places.n == 0)
		return;
	for (int depth = 0; !place && process != SEAM_NONE &&
	     depth < MAX_ANCESTORS; depth++) {
		const struct seam_process *at = &p->processes.items[process];

		place = place_of(body, at->pid, time_ns);
		if (at->start_ns && at->start_ns < time_ns)
			time_ns = at->start_ns;
		process = at->parent;
	}
	if (!place)
		place = &body->places.items[0];
	place->samples += seam_samples_count(&p->samples, i);
	place->weight += seam_samples_weight(&p->samples, i);
}

/*
 * From the leaf up, place by place: inlined frames and the function that
 * contains them.  A place counts if any of its frames is wanted.
 */
static int count_sample(struct annotating *a, size_t i)
{
	const struct seam_samples *samples = &a->profile->samples;
	uint32_t stack = seam_selected_stack(a->selected, i);
	bool is_here = false;
	struct place_hit *hit;

	while (stack != 0) {
		const struct seam_stack *s = &a->selected->stacks[stack];
		const struct seam_frame *frame =
			&a->profile->frames.items[s->frame];

		is_here |= a->wanted[frame->function] &&
			   (!a->window.is_requested ||
			    (frame->addr + WINDOW_BYTES >= a->window.pos &&
			     frame->addr < a->window.pos + WINDOW_BYTES));
		stack = s->parent;
		if (frame->is_inlined)
			continue;
		hit = is_here ? find_hit(a, s->frame) : NULL;
		if (is_here && !hit)
			return -ENOMEM;
		/* once a sample */
		if (hit && hit->last != i + 1) {
			hit->last = i + 1;
			hit->samples += seam_samples_count(samples, i);
			hit->weight += seam_samples_weight(samples, i);
			count_place(a, &a->to->bodies.items[hit->body], i);
		}
		if (!a->options->with_callers)
			break;
		is_here = false;
	}
	return 0;
}

/* The event to count: the selected one, or the one with most samples. */
static uint32_t choose_event(const struct annotating *a)
{
	const struct seam_profile_event *events = a->profile->events.items;
	const struct seam_profile_event *best = NULL;
	uint32_t event = seam_selected_event(a->selected);

	if (event != SEAM_NONE)
		return event;
	/* calls are at no instruction: counted where nothing else is */
	for (uint32_t i = 0; i < a->profile->events.n; i++) {
		const struct seam_profile_event *e = &events[i];

		if (e->n_samples &&
		    (!best || (best->is_measured && !e->is_measured) ||
		     (best->is_measured == e->is_measured &&
		      e->n_samples > best->n_samples)))
			best = e;
	}
	return best ? (uint32_t)(best - events) : 0;
}

static int count(struct annotating *a)
{
	const struct seam_samples *s = &a->profile->samples;
	int r = 0;

	a->hit_of = calloc(a->profile->frames.n + 1, sizeof(*a->hit_of));
	if (!a->hit_of)
		return -ENOMEM;
	a->to->event = choose_event(a);
	for (size_t i = 0; i < s->n && r == 0; i++) {
		if (s->event[i] != a->to->event ||
		    !seam_selected_has(a->selected, i))
			continue;
		a->to->samples += seam_samples_count(s, i);
		a->to->weight += seam_samples_weight(s, i);
		r = count_sample(a, i);
	}
	for (size_t i = 0; i < a->hits.n; i++) {
		const struct place_hit *hit = &a->hits.items[i];

		a->to->bodies.items[hit->body].samples += hit->samples;
		a->to->bodies.items[hit->body].weight += hit->weight;
	}
	return r;
}

/* -- code --------------------------------------------------------------- */

enum {
	MAX_INLINED = 64,
	MAX_LINES = 4096,	/* of source between the first and the last */
};

static int read_code(struct annotating *a, struct seam_annotated *body,
		     struct code_source *source)
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
		body->problem = copy_text(a,
					why.cause[why.n_causes - 1]);
	}
	return r == -ENOMEM || (r < 0 && !body->problem) ? -ENOMEM : 0;
}

struct decoding {
	struct annotating *a;
	struct seam_annotated *body;
};

static int add_instruction(void *context, const struct seam_instruction *one)
{
	struct decoding *to = context;
	struct seam_annotated_instruction added = {
		.offset = one->addr - to->body->addr,
		.size = (uint32_t)one->size,
		.text = copy_text(to->a, one->text),
	};

	return added.text && SEAM_ARRAY_ADD(&to->body->instructions, added) ?
	       0 : -ENOMEM;
}

static int decode(struct annotating *a, struct seam_annotated *body,
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
	if (a->window.is_requested && body->size > WINDOW_BYTES)
		code.middle = (size_t)body->size - WINDOW_BYTES;
	r = seam_symbols_disassemble(a->symbols, &code, add_instruction, &to,
				     &why);
	if (r == 0 || r == -ENOMEM)
		return r;
	body->instructions.n = 0;
	body->problem = copy_text(a, why.cause[0]);
	return body->problem ? 0 : -ENOMEM;
}

/* Lines of JIT code hold from one row to the next. */
static void put_jit_lines(struct annotating *a,
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
static int put_file_lines(struct annotating *a,
			  struct seam_annotated *body,
			  const struct code_source *source)
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
			copied = copy_text(a, last);
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
static int make_lines(struct annotating *a, uint32_t i)
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
static void put_hits(struct annotating *a)
{
	for (size_t i = 0; i < a->hits.n; i++) {
		const struct place_hit *hit = &a->hits.items[i];
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

static int make_body(struct annotating *a, uint32_t i)
{
	struct seam_annotated *body = &a->to->bodies.items[i];
	struct code_source *source = &a->sources.items[i];
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

/* -- all ---------------------------------------------------------------- */

static int annotate(struct annotating *a)
{
	int r;

	a->symbols = seam_symbols_new(&a->options->symbols);
	if (!a->symbols)
		return -ENOMEM;
	r = choose_functions(a);
	if (r == 0)
		r = count(a);
	for (uint32_t i = 0; i < a->to->bodies.n && r == 0; i++)
		r = make_body(a, i);
	if (r)
		return r;
	put_hits(a);
	SEAM_ARRAY_SORT(&a->to->bodies, hotter);
	return 0;
}

int seam_annotate(struct seam_annotation *annotation,
		  const struct seam_selected *selected,
		  const struct seam_annotation_options *options,
		  struct seam_err *err)
{
	struct annotating a = {
		.to = annotation, .selected = selected,
		.profile = selected->profile,
		.options = options, .symbol = options->symbol,
	};
	int r;

	*annotation = (struct seam_annotation) { 0 };
	if (!a.profile->jit)
		return seam_err_set(err, -EBADMSG, "only samples of a "
				    "perf.data file are at instructions");
	r = annotate(&a);
	if (r < 0)
		seam_err_no_memory(err);
	seam_symbols_free(a.symbols);
	free(a.placements.list.items);
	free(a.wanted);
	free(a.hit_of);
	free(a.files);
	free(a.sources.items);
	free(a.hits.items);
	seam_index_fini(&a.hit_index);
	return r;
}

void seam_annotation_fini(struct seam_annotation *annotation)
{
	for (size_t i = 0; i < annotation->bodies.n; i++) {
		free(annotation->bodies.items[i].instructions.items);
		free(annotation->bodies.items[i].places.items);
	}
	free(annotation->bodies.items);
	seam_arena_fini(&annotation->arena);
	*annotation = (struct seam_annotation) { 0 };
}
