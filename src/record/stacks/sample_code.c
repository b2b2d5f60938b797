/* SPDX-License-Identifier: MIT */
/* sample_code.c - mappings, files, JITs; see sample_code.h */
#include "record/stacks/sample_code.h"

#include "base/hash.h"

enum {
	CALL = 0xe8, CALL_BYTES = 5,	/* call rel32 */
	CALL_PART = 1024,		/* bytes that are read at once */
	MAX_CALLER_BYTES = 256 * 1024,
};

static const struct seam_process_mapping *
mapping_at(struct seam_sample_code *c, uint64_t addr)
{
	const struct seam_process_mapping *m = c->mapping;

	if (!m || addr < m->begin || addr >= m->end)
		m = c->map ? seam_process_map_at(c->map, addr) : NULL;
	if (m)
		c->mapping = m;
	return m;
}

/* The file of @m, and the address of @addr in it; NULL: it has no CFI. */
static struct seam_mapped_file_cfi *
file_at(struct seam_sample_code *c, const struct seam_process_mapping *m,
	uint64_t addr, uint64_t *file_addr)
{
	struct seam_mapped_file_cfi *file;
	bool is_pending;

	c->no_file = SEAM_STACK_WITHOUT_CFI;
	if (m->file == SEAM_NONE)
		return NULL;
	file = seam_cfi_files_want(c->files, m->file, &is_pending);
	if (file)
		return seam_cfi_file_addr(&file->cfi,
					  addr - m->begin + m->offset,
					  file_addr) ? file : NULL;
	c->is_pending |= is_pending;
	c->no_file = is_pending ? SEAM_STACK_NOT_READY :
		     c->files->mappings.items[m->file].is_memory ?
		     SEAM_STACK_WITHOUT_CFI : SEAM_STACK_NO_FILE;
	return NULL;
}

static bool is_jit(struct seam_sample_code *c, uint64_t addr,
		   struct seam_unwind_code *code)
{
	if (!c->jit || !seam_live_jit_find(c->jits, c->jit, addr, c->time_ns,
					   code))
		return false;
	c->no_file = SEAM_STACK_WITHOUT_CFI;
	return true;
}

static bool find_code(void *context, uint64_t addr,
		      struct seam_unwind_code *code)
{
	struct seam_sample_code *c = context;
	const struct seam_process_mapping *m;
	struct seam_mapped_file_cfi *file;
	uint64_t file_addr;

	if (is_jit(c, addr, code))
		return true;
	*code = (struct seam_unwind_code) { .rules = NULL };
	m = mapping_at(c, addr);
	if (!m)
		return false;
	file = file_at(c, m, addr, &file_addr);
	if (!file)
		return !c->is_pending || c->is_last_try;
	code->id = seam_unwind_rows_find(&file->rows, file_addr);
	code->rules = &file->rows.rules;
	code->is_entry = code->id == SEAM_UNWIND_NO_CFI &&
			 seam_cfi_file_is_entry(&file->cfi, file_addr);
	return true;
}

static size_t code_before(void *context, uint64_t addr, uint8_t *bytes)
{
	struct seam_sample_code *c = context;
	const struct seam_process_mapping *m = mapping_at(c, addr - 1);
	struct seam_unwind_code code;
	uint64_t file_addr;
	struct seam_mapped_file_cfi *file =
		m && !is_jit(c, addr - 1, &code) ?
		file_at(c, m, addr - 1, &file_addr) : NULL;

	return file ? seam_cfi_file_code_before(&file->cfi, file_addr + 1,
						bytes,
						SEAM_UNWIND_CALL_BYTES) : 0;
}

struct seam_unwind_space seam_sample_code_space(struct seam_sample_code *code)
{
	return (struct seam_unwind_space) {
		.find = find_code, .code_before = code_before, .context = code,
	};
}

/* ---- calls ---- */

/* The function at @addr; false: it has no entry of its own. */
static bool function_at(const struct seam_mapped_file_cfi *file, uint64_t addr,
			struct seam_eh_fde *fde)
{
	*fde = (struct seam_eh_fde) { 0 };
	return seam_eh_frame_find(&file->cfi.eh, addr, fde) == 1;
}

/*
 * Count the calls of @callee in the @n bytes that end at @end; *@after is the
 * address after the last one.  False: the bytes cannot be read.
 */
static bool count_calls(const struct seam_mapped_file_cfi *file, uint64_t end,
			size_t n, uint64_t callee, size_t *n_calls,
			uint64_t *after)
{
	uint8_t bytes[CALL_PART + CALL_BYTES];

	if (seam_cfi_file_code_before(&file->cfi, end, bytes, n) != n)
		return false;
	for (size_t i = 0; i + CALL_BYTES <= n; i++) {
		uint64_t next = end - n + i + CALL_BYTES;
		int32_t distance;

		memcpy(&distance, bytes + i + 1, sizeof(distance));
		if (bytes[i] != CALL || next + (uint64_t)distance != callee)
			continue;
		++*n_calls;
		*after = next;
	}
	return true;
}

/*
 * *@after: the address in @file after the only call of @callee in
 * [@start, @end); 0: there is none, SEAM_CALL_UNKNOWN: several.  False: not
 * all of it can be read.
 */
static bool only_call(const struct seam_mapped_file_cfi *file, uint64_t start,
		      uint64_t end, uint64_t callee, uint64_t *after)
{
	size_t n_calls = 0;

	for (uint64_t at = start; at < end && n_calls < 2; at += CALL_PART) {
		/* a call may begin in one part and end in the next */
		uint64_t to = end - at < CALL_PART + CALL_BYTES - 1 ? end :
			      at + CALL_PART + CALL_BYTES - 1;

		if (!count_calls(file, to, to - at, callee, &n_calls, after))
			return false;
	}
	if (n_calls > 1)
		*after = SEAM_CALL_UNKNOWN;
	return true;
}

/* The same for the function @caller, if it was not looked for before. */
static uint64_t find_call(struct seam_found_calls *calls,
			  const struct seam_mapped_file_cfi *file,
			  const struct seam_eh_fde *caller, uint64_t callee)
{
	uint64_t hash = seam_hash_add(caller->start, callee);
	size_t bytes = caller->end - caller->start, i;
	uint64_t after = 0;

	i = (hash >> 32) % SEAM_FOUND_CALLS;
	if (calls->items[i].file == file &&
	    calls->items[i].caller == caller->start &&
	    calls->items[i].callee == callee)
		return calls->items[i].after;
	if (bytes > MAX_CALLER_BYTES ||
	    calls->n_bytes + bytes > SEAM_FOUND_CALLS_BYTES)
		return SEAM_CALL_UNKNOWN;
	calls->n_bytes += bytes;
	if (!only_call(file, caller->start, caller->end, callee, &after))
		return SEAM_CALL_UNKNOWN;
	calls->items[i].file = file;
	calls->items[i].caller = caller->start;
	calls->items[i].callee = callee;
	return calls->items[i].after = after;
}

uint64_t seam_sample_code_call(struct seam_sample_code *code,
			       struct seam_found_calls *calls,
			       uint64_t caller, uint64_t callee)
{
	const struct seam_process_mapping *m[2] = {
		mapping_at(code, caller), mapping_at(code, callee),
	};
	struct seam_mapped_file_cfi *file;
	struct seam_eh_fde from, to;
	uint64_t addr[2], after;

	if (!m[0] || !m[1])
		return 0;
	file = file_at(code, m[0], caller, &addr[0]);
	if (!file || file_at(code, m[1], callee, &addr[1]) != file ||
	    !function_at(file, addr[0], &from) ||
	    !function_at(file, addr[1], &to))
		return 0;
	after = find_call(calls, file, &from, to.start);
	return after == 0 || after == SEAM_CALL_UNKNOWN ? after :
	       caller + (after - addr[0]);
}
