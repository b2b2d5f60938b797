/* SPDX-License-Identifier: MIT */
/* firefox_tables.c - new numbers, and columns; see firefox_tables.h */
#include "export/profile/firefox_tables.h"

#include <elf.h>
#include <errno.h>
#include <stdlib.h>

#include "base/text.h"

/* JavaScript's integers are exact below 2^53. */
#define MAX_ADDRESS (UINT64_C(1) << 53)

enum { RESOURCE_LIBRARY = 1 };

/* -- numbers -------------------------------------------------------------- */

uint32_t seam_firefox_string(struct seam_firefox_tables *t, const char *text)
{
	uint32_t id = seam_strings_put(&t->strings, text);

	t->is_failed |= id == SEAM_NONE;
	return id;
}

/* The subcategory of Idle for event @id; 0: it is not of waits. */
static uint32_t subcategory_of(const struct seam_firefox_tables *t, uint32_t id)
{
	uint32_t n = 0;

	for (size_t i = 0; i < t->parts->n_events; i++) {
		n += seam_parts_event(t->parts, i)->is_wait;
		if (t->parts->events[i] == id)
			return seam_parts_event(t->parts, i)->is_wait ? n : 0;
	}
	return 0;
}

uint32_t seam_firefox_stack(struct seam_firefox_tables *t, uint32_t stack,
			    uint32_t id)
{
	uint32_t subcategory = subcategory_of(t, id);
	const uint32_t *known;
	uint32_t number = (uint32_t)t->leaves.n;

	if (stack && !subcategory)
		return t->stacks[stack];
	known = seam_pair_map_find(&t->leaf_ids, stack, subcategory);
	if (known)
		return t->n_stacks + *known;
	if (!SEAM_ARRAY_ADD(&t->leaves, (struct seam_firefox_leaf) {
			stack, subcategory }) ||
	    seam_pair_map_put(&t->leaf_ids, stack, subcategory, number))
		t->is_failed = true;
	return t->n_stacks + number;
}

static const struct seam_function *function_of(
	const struct seam_firefox_tables *t, uint32_t frame)
{
	return seam_profile_function_of(t->parts->profile, frame);
}

/* Binaries are libraries; code of a JIT or a guest is in none. */
static bool is_lib(enum seam_module_kind kind)
{
	return kind == SEAM_MODULE_FILE || kind == SEAM_MODULE_VDSO ||
	       kind == SEAM_MODULE_KERNEL || kind == SEAM_MODULE_KERNEL_MODULE;
}

static void mark_frame(struct seam_firefox_tables *t, uint32_t id)
{
	const struct seam_profile *p = t->parts->profile;
	const struct seam_frame *frame = &p->frames.items[id];
	enum seam_module_kind kind = (enum seam_module_kind)
		p->modules.items[frame->module].kind;

	t->frames[id] = 0;
	if (is_lib(kind))
		t->libs[frame->module] = 0;
}

/* Mark the samples' stacks, and all they consist of, by 0. */
static void mark(struct seam_firefox_tables *t)
{
	const struct seam_selected *selected = t->parts->selected;

	for (size_t i = 0; i < t->parts->profile->samples.n; i++)
		if (seam_selected_has(selected, i))
			t->stacks[seam_selected_stack(selected, i)] = 0;
	/* parents have smaller ids */
	for (size_t i = selected->n_stacks; i-- > 1;) {
		if (t->stacks[i] == SEAM_NONE)
			continue;
		t->stacks[selected->stacks[i].parent] = 0;
		mark_frame(t, selected->stacks[i].frame);
	}
	t->stacks[0] = SEAM_NONE;
}

static uint32_t renumber(uint32_t *ids, size_t n)
{
	uint32_t next = 0;

	for (size_t i = 0; i < n; i++)
		if (ids[i] != SEAM_NONE)
			ids[i] = next++;
	return next;
}

/* How many calls are inlined around each frame at its address. */
static int find_depths(struct seam_firefox_tables *t)
{
	const struct seam_stack *stacks = t->parts->selected->stacks;
	size_t n = t->parts->selected->n_stacks;
	uint32_t *of_stack = calloc(n + 1, sizeof(*of_stack));

	for (size_t i = 1; of_stack && i < n; i++) {
		if (t->parts->profile->frames.items[stacks[i].frame].is_inlined)
			of_stack[i] = of_stack[stacks[i].parent] + 1;
		t->inline_depths[stacks[i].frame] = of_stack[i];
	}
	free(of_stack);
	return of_stack ? 0 : -ENOMEM;
}

static uint32_t *no_numbers(size_t n)
{
	uint32_t *ids = malloc((n + 1) * sizeof(*ids));

	if (ids)
		memset(ids, 0xff, (n + 1) * sizeof(*ids));
	return ids;
}

int seam_firefox_tables_init(struct seam_firefox_tables *t,
			     const struct seam_parts *parts)
{
	const struct seam_profile *p = parts->profile;

	*t = (struct seam_firefox_tables) {
		.parts = parts,
		.stacks = no_numbers(parts->selected->n_stacks),
		.frames = no_numbers(p->frames.n),
		.libs = no_numbers(p->modules.n),
		.inline_depths = calloc(p->frames.n + 1, sizeof(uint32_t)),
	};
	if (!t->stacks || !t->frames || !t->libs || !t->inline_depths)
		return -ENOMEM;
	mark(t);
	t->n_stacks = renumber(t->stacks, parts->selected->n_stacks);
	t->n_frames = renumber(t->frames, p->frames.n);
	t->n_libs = renumber(t->libs, p->modules.n);
	return find_depths(t);
}

void seam_firefox_tables_fini(struct seam_firefox_tables *t)
{
	seam_strings_fini(&t->strings);
	free(t->stacks);
	free(t->frames);
	free(t->libs);
	free(t->inline_depths);
	free(t->leaves.items);
	free(t->funcs.items);
	seam_pair_map_fini(&t->leaf_ids);
	seam_pair_map_fini(&t->func_ids);
	seam_pair_map_fini(&t->sources);
}

/* -- libraries ------------------------------------------------------------ */

/*
 * A build id as Breakpad has it: its first 16 bytes as a GUID, whose first
 * three numbers are little-endian, and an age of 0.
 */
static const char *breakpad_id(const uint8_t *id, size_t size, char text[34])
{
	static const uint8_t order[16] = {
		3, 2, 1, 0, 5, 4, 7, 6, 8, 9, 10, 11, 12, 13, 14, 15,
	};

	text[0] = '\0';
	for (size_t i = 0; size && i < 16; i++)
		snprintf(text + 2 * i, 3, "%02X", order[i] < size ?
			 id[order[i]] : 0);
	if (size)
		snprintf(text + 32, 2, "0");
	return text;
}

static void put_lib(struct seam_firefox_tables *t, struct seam_json *j,
		    uint32_t id)
{
	const struct seam_profile *p = t->parts->profile;
	const struct seam_profile_module *module = &p->modules.items[id];
	const char *path = seam_profile_path(p, id), *slash;
	uint32_t machine = p->elf_machine;
	char text[2 * sizeof(module->build_id) + 1];

	slash = strrchr(path, '/');
	seam_json_open(j, NULL, '{');
	seam_json_string(j, "arch", machine == EM_X86_64 ? "x86_64" :
			 machine == EM_AARCH64 ? "aarch64" : "");
	seam_json_string(j, "name", slash ? slash + 1 : path);
	seam_json_string(j, "path", path);
	seam_json_string(j, "debugName", slash ? slash + 1 : path);
	seam_json_string(j, "debugPath", path);
	seam_json_string(j, "breakpadId", breakpad_id(module->build_id,
						module->build_id_size, text));
	seam_json_string(j, "codeId", module->build_id_size ?
			 seam_text_hex(text, module->build_id,
				       module->build_id_size) : NULL);
	seam_json_close(j);
}

static void put_libs(struct seam_firefox_tables *t, struct seam_json *j)
{
	seam_json_open(j, "libs", '[');
	for (uint32_t i = 0; i < t->parts->profile->modules.n; i++)
		if (t->libs[i] != SEAM_NONE)
			put_lib(t, j, i);
	seam_json_close(j);
}

/* One resource for each library, with its name. */
static void put_resources(struct seam_firefox_tables *t, struct seam_json *j)
{
	const struct seam_profile *p = t->parts->profile;

	seam_json_open(j, "resourceTable", '{');
	seam_json_u64(j, "length", t->n_libs);
	seam_json_open(j, "lib", '[');
	for (uint32_t i = 0; i < t->n_libs; i++)
		seam_json_u64(j, NULL, i);
	seam_json_close(j);
	seam_json_open(j, "name", '[');
	for (uint32_t i = 0; i < p->modules.n; i++) {
		const char *path = seam_profile_path(p, i);
		const char *slash = strrchr(path, '/');

		if (t->libs[i] != SEAM_NONE)
			seam_json_u64(j, NULL, seam_firefox_string(
					t, slash ? slash + 1 : path));
	}
	seam_json_close(j);
	seam_json_open(j, "host", '[');
	for (uint32_t i = 0; i < t->n_libs; i++)
		seam_json_string(j, NULL, NULL);
	seam_json_close(j);
	seam_json_open(j, "type", '[');
	for (uint32_t i = 0; i < t->n_libs; i++)
		seam_json_u64(j, NULL, RESOURCE_LIBRARY);
	seam_json_close(j);
	seam_json_close(j);
}

/* -- functions and frames ------------------------------------------------- */

static uint32_t func_of(struct seam_firefox_tables *t, uint32_t function,
			uint32_t file)
{
	const uint32_t *known = seam_pair_map_find(&t->func_ids, function,
						   file);
	uint32_t id = (uint32_t)t->funcs.n;

	if (known)
		return *known;
	if (!SEAM_ARRAY_ADD(&t->funcs, (struct seam_firefox_func) {
			function, file }) ||
	    seam_pair_map_put(&t->func_ids, function, file, id))
		t->is_failed = true;
	return id;
}

/* The source of a function: its file, or the chunk of a guest; 0: none. */
static uint32_t source_string(struct seam_firefox_tables *t,
			      const struct seam_firefox_func *func)
{
	const struct seam_profile *p = t->parts->profile;
	const struct seam_function *f;

	if (func->function == SEAM_NONE)
		return 0;
	f = &p->functions.items[func->function];
	return seam_firefox_string(t, !func->file &&
				   f->layer == SEAM_LAYER_GUEST ?
				   seam_profile_path(p, f->module) :
				   seam_profile_text(p, func->file));
}

/* Numbers of sources, of which the table follows. */
static void put_sources(struct seam_firefox_tables *t, struct seam_json *j)
{
	for (size_t i = 0; i < t->funcs.n; i++) {
		uint32_t name = source_string(t, &t->funcs.items[i]);

		if (name && !seam_pair_map_find(&t->sources, name, 0) &&
		    seam_pair_map_put(&t->sources, name, 0,
				      (uint32_t)t->sources.slots.n))
			t->is_failed = true;
	}
	seam_json_open(j, "sources", '{');
	seam_json_u64(j, "length", t->sources.slots.n);
	seam_json_open(j, "uuid", '[');
	for (size_t i = 0; i < t->sources.slots.n; i++)
		seam_json_string(j, NULL, NULL);
	seam_json_close(j);
	seam_json_open(j, "filename", '[');
	for (size_t i = 0; i < t->sources.slots.n; i++)
		seam_json_u64(j, NULL, t->sources.slots.items[i].a);
	seam_json_close(j);
	seam_json_close(j);
}

/* What a column of the table of functions has for @func. */
typedef void put_func_fn(struct seam_firefox_tables *t, struct seam_json *j,
			 const struct seam_firefox_func *func);

static void put_func_name(struct seam_firefox_tables *t, struct seam_json *j,
			  const struct seam_firefox_func *func)
{
	seam_json_u64(j, NULL, seam_firefox_string(
			t, func->function == SEAM_NONE ? "[no stack]" :
			seam_parts_function(t->parts, func->function)));
}

static void put_func_false(struct seam_firefox_tables *t, struct seam_json *j,
			   const struct seam_firefox_func *func)
{
	(void)t;
	(void)func;
	seam_json_bool(j, NULL, false);
}

static void put_func_null(struct seam_firefox_tables *t, struct seam_json *j,
			  const struct seam_firefox_func *func)
{
	(void)t;
	(void)func;
	seam_json_string(j, NULL, NULL);
}

static void put_func_resource(struct seam_firefox_tables *t,
			      struct seam_json *j,
			      const struct seam_firefox_func *func)
{
	uint32_t lib = func->function == SEAM_NONE ? SEAM_NONE :
		       t->libs[t->parts->profile->functions.items[
				       func->function].module];

	seam_json_i64(j, NULL, lib == SEAM_NONE ? -1 : (int64_t)lib);
}

static void put_func_source(struct seam_firefox_tables *t, struct seam_json *j,
			    const struct seam_firefox_func *func)
{
	uint32_t name = source_string(t, func);
	const uint32_t *source = name ? seam_pair_map_find(&t->sources, name, 0)
				 : NULL;

	if (source)
		seam_json_u64(j, NULL, *source);
	else
		seam_json_string(j, NULL, NULL);
}

static void put_funcs(struct seam_firefox_tables *t, struct seam_json *j)
{
	static const struct {
		const char *name;
		put_func_fn *put;
	} columns[] = {
		{ "name", put_func_name }, { "isJS", put_func_false },
		{ "relevantForJS", put_func_false },
		{ "resource", put_func_resource },
		{ "source", put_func_source },
		{ "lineNumber", put_func_null },
		{ "columnNumber", put_func_null },
	};

	seam_json_open(j, "funcTable", '{');
	seam_json_u64(j, "length", t->funcs.n);
	for (size_t c = 0; c < SEAM_ARRAY_SIZE(columns); c++) {
		seam_json_open(j, columns[c].name, '[');
		for (size_t i = 0; i < t->funcs.n; i++)
			columns[c].put(t, j, &t->funcs.items[i]);
		seam_json_close(j);
	}
	seam_json_close(j);
}

/* A row of the table of frames: a frame of the profile, or a leaf of waits. */
struct firefox_frame {
	uint32_t id;			/* SEAM_NONE: of no stack */
	uint32_t subcategory;		/* of Idle; 0: by its layer */
};

static int64_t address_of(const struct seam_firefox_tables *t, uint32_t id)
{
	const struct seam_profile *p = t->parts->profile;
	const struct seam_frame *frame = &p->frames.items[id];
	const struct seam_profile_module *module =
		&p->modules.items[frame->module];
	uint64_t addr = frame->addr;

	if (module->kind == SEAM_MODULE_KERNEL && addr >= module->text_addr)
		addr -= module->text_addr;
	return t->libs[frame->module] == SEAM_NONE || addr >= MAX_ADDRESS ?
	       -1 : (int64_t)addr;
}

enum frame_column {
	FRAME_ADDRESS, FRAME_INLINE_DEPTH, FRAME_CATEGORY, FRAME_SUBCATEGORY,
	FRAME_FUNC, FRAME_NATIVE_SYMBOL, FRAME_INNER_WINDOW, FRAME_LINE,
	FRAME_COLUMN, N_FRAME_COLUMNS,
};

static void put_frame(struct seam_firefox_tables *t, struct seam_json *j,
		      struct firefox_frame f, enum frame_column column)
{
	static const struct seam_frame none = { .function = SEAM_NONE };
	bool has = f.id != SEAM_NONE;
	const struct seam_frame *frame = has ?
		&t->parts->profile->frames.items[f.id] : &none;

	switch (column) {
	case FRAME_ADDRESS:
		seam_json_i64(j, NULL, has ? address_of(t, f.id) : -1);
		break;
	case FRAME_INLINE_DEPTH:
		seam_json_u64(j, NULL, has ? t->inline_depths[f.id] : 0);
		break;
	case FRAME_CATEGORY:
		seam_json_u64(j, NULL, f.subcategory ? SEAM_FIREFOX_IDLE :
			      has ? SEAM_FIREFOX_LAYER +
				    function_of(t, f.id)->layer :
			      SEAM_FIREFOX_OTHER);
		break;
	case FRAME_SUBCATEGORY:
		seam_json_u64(j, NULL, f.subcategory);
		break;
	case FRAME_FUNC:
		seam_json_u64(j, NULL, func_of(t, frame->function,
					       frame->file));
		break;
	case FRAME_LINE:
		if (frame->line) {
			seam_json_u64(j, NULL, frame->line);
			break;
		}
		/* fall through */
	default:
		seam_json_string(j, NULL, NULL);
	}
}

static void put_frames(struct seam_firefox_tables *t, struct seam_json *j)
{
	static const char *const names[N_FRAME_COLUMNS] = {
		"address", "inlineDepth", "category", "subcategory", "func",
		"nativeSymbol", "innerWindowID", "line", "column",
	};
	const struct seam_stack *stacks = t->parts->selected->stacks;

	seam_json_open(j, "frameTable", '{');
	seam_json_u64(j, "length", t->n_frames + t->leaves.n);
	for (enum frame_column c = 0; c < N_FRAME_COLUMNS; c++) {
		seam_json_open(j, names[c], '[');
		for (uint32_t i = 0; i < t->parts->profile->frames.n; i++)
			if (t->frames[i] != SEAM_NONE)
				put_frame(t, j, (struct firefox_frame) {
					  .id = i }, c);
		for (size_t i = 0; i < t->leaves.n; i++)
			put_frame(t, j, (struct firefox_frame) {
				stacks[t->leaves.items[i].stack].frame,
				t->leaves.items[i].subcategory }, c);
		seam_json_close(j);
	}
	seam_json_close(j);
}

/* -- stacks and the rest -------------------------------------------------- */

static void put_prefix(const struct seam_firefox_tables *t, struct seam_json *j,
		       uint32_t stack)
{
	uint32_t parent = stack ? t->parts->selected->stacks[stack].parent : 0;

	if (parent)
		seam_json_u64(j, NULL, t->stacks[parent]);
	else
		seam_json_string(j, NULL, NULL);
}

static void put_stacks(struct seam_firefox_tables *t, struct seam_json *j)
{
	const struct seam_selected *selected = t->parts->selected;

	seam_json_open(j, "stackTable", '{');
	seam_json_u64(j, "length", t->n_stacks + t->leaves.n);
	seam_json_open(j, "frame", '[');
	for (size_t i = 1; i < selected->n_stacks; i++)
		if (t->stacks[i] != SEAM_NONE)
			seam_json_u64(j, NULL,
				      t->frames[selected->stacks[i].frame]);
	for (size_t i = 0; i < t->leaves.n; i++)
		seam_json_u64(j, NULL, t->n_frames + i);
	seam_json_close(j);
	seam_json_open(j, "prefix", '[');
	for (uint32_t i = 1; i < selected->n_stacks; i++)
		if (t->stacks[i] != SEAM_NONE)
			put_prefix(t, j, i);
	for (size_t i = 0; i < t->leaves.n; i++)
		put_prefix(t, j, t->leaves.items[i].stack);
	seam_json_close(j);
	seam_json_close(j);
}

/* Symbols are in the table of functions. */
static void put_no_symbols(struct seam_json *j)
{
	static const char *const columns[] = {
		"libIndex", "address", "name", "functionSize",
	};

	seam_json_open(j, "nativeSymbols", '{');
	seam_json_u64(j, "length", 0);
	for (size_t i = 0; i < SEAM_ARRAY_SIZE(columns); i++) {
		seam_json_open(j, columns[i], '[');
		seam_json_close(j);
	}
	seam_json_close(j);
}

int seam_firefox_tables_put(struct seam_firefox_tables *t, struct seam_json *j)
{
	put_libs(t, j);
	seam_json_open(j, "shared", '{');
	put_stacks(t, j);
	put_frames(t, j);
	put_sources(t, j);
	put_funcs(t, j);
	put_resources(t, j);
	put_no_symbols(j);
	seam_json_open(j, "stringArray", '[');
	for (uint32_t i = 0; i < t->strings.texts.n; i++)
		seam_json_string(j, NULL, seam_strings_get(&t->strings, i));
	seam_json_close(j);
	seam_json_close(j);
	return t->is_failed ? -ENOMEM : 0;
}
