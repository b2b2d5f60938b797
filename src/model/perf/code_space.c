/* SPDX-License-Identifier: MIT */
/* code_space.c - look up, compile, remember; see code_space.h */
#include "model/perf/code_space.h"

#include <errno.h>
#include <stdlib.h>

#include "model/origin.h"

/* -- files -------------------------------------------------------------- */

/*
 * Call frame information of the files that a recording mapped
 *
 * The files are those that names come from: symbol/elf/find_elf.h searches
 * them and checks that they are what was mapped.  What they have for unwinding
 * is read here, not in the sandboxed process, by a small reader of our own
 * whose sizes are bounded (symbol/elf/cfi_file.h); the sandbox is for the
 * large libraries that parse symbols and DWARF.
 *
 * Threads: one opens; while none does, any number reads.
 */

/* Read what is open as @from, and close that.  False: it is of no use. */
static bool read_file(struct seam_cfi_file *file,
		      const struct seam_module_file *from)
{
	struct seam_err err = { 0 };
	int r;

	if (!from->image)
		return seam_cfi_file_open(file, from->fd, &err) == 0;
	r = seam_cfi_file_open_image(file, (struct seam_bytes) {
			from->image, from->size }, &err);
	free(from->image);
	return r == 0;
}

static void open_main(struct seam_code_files *files, uint32_t id,
		      struct seam_code_file *file)
{
	struct seam_module_file opened;
	struct seam_err err = { 0 };

	file->is_found = seam_symbols_open(files->symbols, id, false, &opened,
					   &err) == 0 &&
			 read_file(&file->main, &opened);
	file->main.may_wait = true;
	if (file->main.fd >= 0 && ++files->n_open > SEAM_CODE_FILES_MAX_OPEN)
		seam_cfi_file_release_fd(&file->main);
}

/* .debug_frame is often in the debug file alone. */
static void open_debug(struct seam_code_files *files, uint32_t id,
		       struct seam_code_file *file)
{
	struct seam_module_file opened;
	struct seam_err err = { 0 };

	file->is_debug_tried = true;
	if (file->main.debug.entries.size == 0 &&
	    seam_symbols_open(files->symbols, id, true, &opened, &err) == 0 &&
	    read_file(&file->debug, &opened))
		seam_cfi_file_release_fd(&file->debug);
}

int seam_code_files_open(struct seam_code_files *files, uint32_t module,
			 bool is_debug)
{
	uint32_t id = seam_origin_symbols(files->profile, module,
					  files->symbols);
	struct seam_code_file **slot;

	if (id == SEAM_NONE ||
	    !SEAM_ARRAY_GROW(&files->items, (size_t)module + 1))
		return -ENOMEM;
	slot = &files->items.items[module];
	if (!*slot) {
		*slot = calloc(1, sizeof(**slot));
		if (!*slot)
			return -ENOMEM;
		(*slot)->main.fd = (*slot)->debug.fd = -1;
		open_main(files, id, *slot);
	}
	if (is_debug && !(*slot)->is_debug_tried)
		open_debug(files, id, *slot);
	return 0;
}

void seam_code_files_fini(struct seam_code_files *files)
{
	for (size_t i = 0; i < files->items.n; i++) {
		struct seam_code_file *file = files->items.items[i];

		if (!file)
			continue;
		seam_cfi_file_close(&file->main);
		seam_cfi_file_close(&file->debug);
		free(file);
	}
	free(files->items.items);
	*files = (struct seam_code_files) { 0 };
}

/* Places that are remembered: more than most recordings have. */
enum { CACHE_BITS = 13, N_CACHED = 1 << CACHE_BITS };

/* -- rules -------------------------------------------------------------- */

struct seam_file_rows {
	struct seam_unwind_rows rows;
	bool has_debug;			/* made with the debug file */
};

static void *no_memory(struct seam_code_space *s)
{
	s->error = -ENOMEM;
	return NULL;
}

/* The rows of @file's rules; NULL: no memory. */
static struct seam_unwind_rows *rows_of(struct seam_code_space *s,
					uint32_t module,
					const struct seam_code_file *file)
{
	bool has_debug = file->debug.debug.entries.size > 0;
	struct seam_file_rows *rows;

	if (!SEAM_ARRAY_GROW(&s->rows, (size_t)module + 1))
		return no_memory(s);
	rows = s->rows.items[module];
	if (rows && rows->has_debug == has_debug)
		return &rows->rows;
	if (rows) {
		/* places that are remembered have the old rules */
		memset(s->cache, 0, N_CACHED * sizeof(*s->cache));
		seam_unwind_rows_fini(&rows->rows);
	} else {
		rows = s->rows.items[module] = calloc(1, sizeof(*rows));
	}
	if (!rows)
		return no_memory(s);
	rows->has_debug = has_debug;
	/* On failure they are empty: the file has no rules. */
	if (seam_unwind_rows_init(&rows->rows, &file->main.eh, has_debug ?
				  &file->debug.debug : &file->main.debug) ==
	    -ENOMEM)
		return no_memory(s);
	return &rows->rows;
}

static void need(struct seam_code_space *s, uint32_t module, bool is_debug)
{
	s->needed = module;
	s->is_debug_needed = is_debug;
}

static void find_file_rule(struct seam_code_space *s, struct seam_code_at *at,
			   const struct seam_code_file *file)
{
	struct seam_unwind_rows *rows = rows_of(s, at->id, file);

	if (!rows)
		return;
	/* its CFI may say so only from the second instruction on */
	if (at->pos && at->pos == file->main.entry) {
		at->code.is_entry = true;
		return;
	}
	at->code.rules = &rows->rules;
	at->code.id = seam_unwind_rows_find(rows, at->pos);
	if (at->code.id != SEAM_UNWIND_NO_CFI)
		return;
	at->code.is_entry = seam_cfi_file_is_entry(&file->main, at->pos);
	if (!at->code.is_entry && !file->is_debug_tried)
		need(s, at->id, true);
}

/* The rows of JIT object @id, compiled when first seen; SEAM_NONE: none. */
static uint32_t piece_of(struct seam_code_space *s, uint32_t id,
			 const struct seam_jit_object *o)
{
	const struct seam_eh_frame frame = {
		.entries = o->eh_frame,
		.entries_addr = o->start_addr + o->eh_frame_offset,
		.endian = (enum seam_endian)o->endian, .address_bytes = 8,
	};
	int64_t piece;

	if (!SEAM_ARRAY_GROW(&s->pieces, (size_t)id + 1)) {
		s->error = -ENOMEM;
		return SEAM_NONE;
	}
	if (s->pieces.items[id] == 0) {
		piece = seam_unwind_code_rows_add(&s->jit_rows, &frame,
						  o->start_addr, o->size);
		if (piece < 0)
			s->error = (int)piece;
		s->pieces.items[id] = piece < 0 || piece == SEAM_NONE ?
				      SEAM_NONE : (uint32_t)piece + 1;
	}
	return s->pieces.items[id] - 1;
}

static void find_jit_rule(struct seam_code_space *s, struct seam_code_at *at)
{
	const struct seam_jit_object *o = seam_jit_code_object(s->jit, at->id);
	uint32_t piece = o->eh_frame.size ? piece_of(s, at->id, o) : SEAM_NONE;

	if (piece >= s->jit_rows.pieces.n)
		return;
	at->code.rules = &s->jit_rows.rules;
	at->code.id = seam_unwind_code_rows_find(&s->jit_rows, piece, at->pos);
}

/* -- places ------------------------------------------------------------- */

static void find_in_file(struct seam_code_space *s, struct seam_code_at *at,
			 uint64_t offset)
{
	const struct seam_code_file *file = seam_code_files_get(s->files,
								at->id);

	at->kind = SEAM_CODE_NONE;
	if (!file) {
		need(s, at->id, false);
	} else if (!file->is_found) {
		/* a guess by the frame pointer could not be checked */
		at->kind = SEAM_CODE_MISSING;
		at->code.rules = &s->jit_rows.rules;
		at->code.id = SEAM_UNWIND_BAD_CFI;
	} else if (seam_cfi_file_addr(&file->main, offset, &at->pos)) {
		at->kind = SEAM_CODE_FILE;
		find_file_rule(s, at, file);
	}
}

static void find_mapped(struct seam_code_space *s, struct seam_code_at *at,
			const struct seam_vma *vma)
{
	const struct seam_mapping *m =
		vma ? &s->profile->mappings.items[vma->mapping] : NULL;
	enum seam_module_kind kind;

	if (!m || !m->is_executable)
		return;
	at->id = m->module;
	kind = (enum seam_module_kind)s->profile->modules.items[m->module].kind;
	at->kind = SEAM_CODE_ANON;
	if (kind == SEAM_MODULE_FILE || kind == SEAM_MODULE_VDSO)
		find_in_file(s, at, at->addr - vma->begin + m->pgoff);
}

static void find(struct seam_code_space *s, struct seam_code_at *at)
{
	struct seam_jit_location jit;
	bool is_jit;
	const struct seam_vma *vma = seam_spaces_find(s->spaces, s->space,
						      at->addr, s->time_ns,
						      &at->from_ns,
						      &at->to_ns);

	if (s->jit_from_ns > at->from_ns)
		at->from_ns = s->jit_from_ns;
	if (s->jit_to_ns < at->to_ns)
		at->to_ns = s->jit_to_ns;
	is_jit = s->jit && seam_jit_code_find_object(s->jit, s->pid, at->addr,
						     s->time_ns, &jit);
	/* A perf map has less than the symbols of a file. */
	if (!is_jit ||
	    seam_jit_code_object(s->jit, jit.object)->code.size == 0) {
		find_mapped(s, at, vma);
		if (at->kind == SEAM_CODE_NONE && is_jit && !vma)
			at->kind = SEAM_CODE_ANON;
		return;
	}
	at->kind = SEAM_CODE_JIT;
	at->id = jit.object;
	at->pos = jit.offset;
	find_jit_rule(s, at);
}

void seam_code_space_enter(struct seam_code_space *s, uint32_t space,
			   int32_t pid, uint64_t time_ns)
{
	bool is_stable = pid == s->pid && s->jit_from_ns <= time_ns &&
			 time_ns < s->jit_to_ns;

	s->space = space;
	s->pid = pid;
	s->time_ns = time_ns;
	s->needed = SEAM_NONE;
	if (is_stable)
		return;
	s->jit_from_ns = 0;
	s->jit_to_ns = UINT64_MAX;
	if (s->jit)
		seam_jit_code_stable_span(s->jit, pid, time_ns,
					  &s->jit_from_ns, &s->jit_to_ns);
}

/* Fibonacci hashing: a collision costs a look-up and nothing else. */
static size_t slot_of(const struct seam_code_space *s, uint64_t addr)
{
	return (size_t)((addr ^ (uint64_t)s->space << 40) *
			UINT64_C(0x9e3779b97f4a7c15) >> (64 - CACHE_BITS));
}

static bool holds(const struct seam_code_space *s,
		  const struct seam_code_at *at, uint64_t addr)
{
	return at->addr == addr && at->space == s->space &&
	       at->pid == s->pid && at->from_ns <= s->time_ns &&
	       s->time_ns < at->to_ns;
}

const struct seam_code_at *seam_code_space_at(struct seam_code_space *s,
					      uint64_t addr)
{
	static const struct seam_code_at none;
	struct seam_code_at found = {
		.addr = addr, .space = s->space, .pid = s->pid,
	};
	struct seam_code_at *at;

	if (!s->cache)
		s->cache = calloc(N_CACHED, sizeof(*s->cache));
	if (!s->cache) {
		s->error = -ENOMEM;
		return &none;
	}
	at = &s->cache[slot_of(s, addr)];
	if (holds(s, at, addr))
		return at;
	find(s, &found);
	if (s->needed != SEAM_NONE)
		found.to_ns = 0;
	*at = found;
	return at;
}

/* -- for walks ---------------------------------------------------------- */

static bool find_code(void *context, uint64_t addr,
		      struct seam_unwind_code *code)
{
	const struct seam_code_at *at = seam_code_space_at(context, addr);

	*code = at->code;
	return at->kind != SEAM_CODE_NONE;
}

static size_t jit_code_before(const struct seam_jit_object *object,
			      uint64_t end, uint8_t *bytes)
{
	size_t n = end < SEAM_UNWIND_CALL_BYTES ? (size_t)end :
		   SEAM_UNWIND_CALL_BYTES;

	if (end > object->code.size)
		return 0;
	memcpy(bytes + SEAM_UNWIND_CALL_BYTES - n, object->code.data + end - n,
	       n);
	return n;
}

static size_t code_before(void *context, uint64_t addr, uint8_t *bytes)
{
	struct seam_code_space *s = context;
	const struct seam_code_at *at = seam_code_space_at(s, addr - 1);

	if (at->kind == SEAM_CODE_JIT)
		return jit_code_before(seam_jit_code_object(s->jit, at->id),
				       at->pos + 1, bytes);
	if (at->kind != SEAM_CODE_FILE)
		return 0;
	return seam_cfi_file_code_before(
		&seam_code_files_get(s->files, at->id)->main, at->pos + 1,
		bytes, SEAM_UNWIND_CALL_BYTES);
}

struct seam_unwind_space
seam_code_space_for_walk(struct seam_code_space *space)
{
	return (struct seam_unwind_space) {
		.find = find_code, .code_before = code_before,
		.context = space,
	};
}

void seam_code_space_fini(struct seam_code_space *s)
{
	for (size_t i = 0; i < s->rows.n; i++) {
		if (s->rows.items[i])
			seam_unwind_rows_fini(&s->rows.items[i]->rows);
		free(s->rows.items[i]);
	}
	free(s->rows.items);
	seam_unwind_code_rows_fini(&s->jit_rows);
	free(s->pieces.items);
	free(s->cache);
	*s = (struct seam_code_space) { 0 };
}
