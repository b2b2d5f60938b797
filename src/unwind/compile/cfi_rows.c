/* SPDX-License-Identifier: MIT */
/* cfi_rows.c - functions compiled one by one; see cfi_rows.h */
#include "unwind/compile/cfi_rows.h"

#include "base/hash.h"
#include "unwind/compile/program.h"

#include <errno.h>
#include <stdlib.h>

/* ---- a function ---- */

/* A function while it is compiled. */
struct compiling {
	struct seam_unwind_functions *functions;
	struct seam_unwind_rules *rules;
	uint64_t start;
	size_t first;		/* of its rows */
};

static int append(struct seam_unwind_functions *f, uint64_t offset, int id)
{
	if (!SEAM_ARRAY_RESERVE(&f->starts, 1) ||
	    !SEAM_ARRAY_RESERVE(&f->ids, 1))
		return -ENOMEM;
	f->starts.items[f->starts.n++] = (uint32_t)offset;
	f->ids.items[f->ids.n++] = (uint16_t)id;
	return 0;
}

static int append_row(void *context, uint64_t start,
		      const struct seam_unwind_row *row)
{
	struct compiling *c = context;
	struct seam_unwind_functions *f = c->functions;
	int id = seam_unwind_rules_intern(c->rules, row);

	/* the same rules as before need no row */
	if (id >= 0 && f->ids.n > c->first && f->ids.items[f->ids.n - 1] == id)
		return 0;
	return id < 0 ? id : append(f, start - c->start, id);
}

/*
 * Compile @fde, of section @frame, with its rules in @rules.  The function's
 * index in f->list, or -ENOMEM with nothing changed.  A function whose
 * information breaks the format, or for which no bytes are left, has the one
 * row SEAM_UNWIND_BAD_CFI.
 */
static int64_t add_function(struct seam_unwind_functions *f,
			    const struct seam_eh_frame *frame,
			    const struct seam_eh_fde *fde,
			    struct seam_unwind_rules *rules)
{
	uint64_t bytes = fde->instructions.size + fde->cie.instructions.size;
	uint64_t size = fde->end - fde->start;
	size_t first = f->starts.n;
	struct compiling c = { f, rules, fde->start, first };
	int r = -EOVERFLOW;

	if (first > UINT32_MAX / 2 || !SEAM_ARRAY_RESERVE(&f->list, 1))
		return -ENOMEM;
	if (bytes <= f->bytes_left && size <= UINT32_MAX) {
		f->bytes_left -= bytes;
		r = seam_unwind_program_rows(frame, fde, rules, append_row, &c);
	}
	if (r < 0) {
		/* which of its rows are right is not known */
		f->starts.n = f->ids.n = first;
		if (r == -ENOMEM || append(f, 0, SEAM_UNWIND_BAD_CFI) < 0)
			return -ENOMEM;
	}
	f->list.items[f->list.n] = (struct seam_unwind_function) {
		.start = fde->start,
		.size = size > UINT32_MAX ? UINT32_MAX : (uint32_t)size,
		.first = (uint32_t)first,
		.n = (uint32_t)(f->starts.n - first),
	};
	return (int64_t)f->list.n++;
}

/* The id at @offset of function @i. */
static uint16_t find_row(const struct seam_unwind_functions *f, uint32_t i,
			 uint64_t offset)
{
	const struct seam_unwind_function *function = &f->list.items[i];
	const uint32_t *starts = f->starts.items + function->first;
	size_t n = SEAM_ARRAY_SEARCH(k, function->n, starts[k] <= offset);

	return n ? f->ids.items[function->first + n - 1] :
		   (uint16_t)SEAM_UNWIND_NO_CFI;
}

static void free_functions(struct seam_unwind_functions *f)
{
	free(f->list.items);
	free(f->starts.items);
	free(f->ids.items);
	*f = (struct seam_unwind_functions) { 0 };
}

/* ---- a file ---- */

enum { MIN_CACHE = 256, MAX_CACHE = 65536 };

/* --- looking up --- */

/* The index of the function of @fde, compiled if need be; SEAM_NONE. */
static uint32_t function_of(struct seam_unwind_rows *rows,
			    const struct seam_eh_fde *fde)
{
	struct seam_unwind_functions *all = &rows->functions;
	uint64_t hash = seam_hash_u64(fde->start);
	uint32_t i = SEAM_INDEX_FIND(&rows->index, hash, k,
				     all->list.items[k].start == fde->start);
	int64_t added;

	if (i != SEAM_NONE)
		return i;
	added = add_function(all, &rows->searched, fde, &rows->rules);
	/* one that the index has no room for is compiled again */
	if (added < 0 || seam_index_add(&rows->index, hash, (uint32_t)added))
		return SEAM_NONE;
	return (uint32_t)added;
}

/* False: the answer may be another one when there is memory. */
static bool look_up(struct seam_unwind_rows *rows, uint64_t addr, uint16_t *id)
{
	bool is_final = true;
	uint32_t i;
	int r;

	*id = SEAM_UNWIND_NO_CFI;
	if (rows->searched.header.size) {
		r = seam_eh_frame_find(&rows->searched, addr, &rows->fde);
		i = r == 1 ? function_of(rows, &rows->fde) : SEAM_NONE;
		is_final = r != 1 || i != SEAM_NONE;
		if (i != SEAM_NONE)
			*id = find_row(&rows->functions, i,
				       addr - rows->fde.start);
		else if (r != 0)
			*id = SEAM_UNWIND_BAD_CFI;
	} else {
		*id = seam_unwind_table_find(&rows->whole, addr);
	}
	if (*id <= SEAM_UNWIND_BAD_CFI && rows->debug.n) {
		uint16_t other = seam_unwind_table_find(&rows->debug, addr);

		if (other != SEAM_UNWIND_NO_CFI)
			*id = other;
	}
	return is_final;
}

/* --- the cache --- */

static struct seam_unwind_cached *slot_of(const struct seam_unwind_rows *rows,
					  uint64_t addr)
{
	/* Fibonacci hashing: addresses of code are dense in their low bits */
	uint64_t hash = addr * UINT64_C(0x9e3779b97f4a7c15) >> 32;

	return &rows->cache[hash & (rows->n_cache - 1)];
}

/* A larger cache once it has missed more often than it has slots. */
static void grow_cache(struct seam_unwind_rows *rows)
{
	size_t n = rows->n_cache ? rows->n_cache * 2 : MIN_CACHE;
	struct seam_unwind_cached *cache;

	if (rows->n_misses++ < rows->n_cache || n > MAX_CACHE)
		return;
	cache = calloc(n, sizeof(*cache));
	if (!cache)
		return;
	free(rows->cache);
	rows->cache = cache;
	rows->n_cache = n;
	rows->n_misses = 0;
}

uint16_t seam_unwind_rows_find(struct seam_unwind_rows *rows, uint64_t addr)
{
	uint16_t id;

	if (rows->n_cache) {
		const struct seam_unwind_cached *slot = slot_of(rows, addr);

		if (slot->id_and_1 && slot->addr == addr)
			return (uint16_t)(slot->id_and_1 - 1);
	}
	if (look_up(rows, addr, &id)) {
		grow_cache(rows);
		if (rows->n_cache)
			*slot_of(rows, addr) = (struct seam_unwind_cached) {
				addr, id + UINT32_C(1) };
	}
	return id;
}

bool seam_unwind_rows_function(struct seam_unwind_rows *rows, uint64_t addr,
			       uint64_t *start, uint64_t *end)
{
	if (!rows->searched.header.size ||
	    seam_eh_frame_find(&rows->searched, addr, &rows->fde) != 1)
		return false;
	*start = rows->fde.start;
	*end = rows->fde.end;
	return true;
}

/* --- life --- */

int seam_unwind_rows_init(struct seam_unwind_rows *rows,
			  const struct seam_eh_frame *eh,
			  const struct seam_eh_frame *debug)
{
	struct seam_eh_fde fde = { 0 };
	int r = 0;

	*rows = (struct seam_unwind_rows) { 0 };
	if (eh && eh->entries.size && eh->header.size &&
	    seam_eh_frame_find(eh, 0, &fde) != -ENOTSUP) {
		rows->searched = *eh;
		rows->functions.bytes_left = eh->entries.size +
					     SEAM_UNWIND_SPARE_BYTES;
	} else if (eh && eh->entries.size) {
		r = seam_unwind_table_build(&rows->whole, eh, &rows->rules);
	}
	if (r == 0 && debug && debug->entries.size)
		r = seam_unwind_table_build(&rows->debug, debug,
					    &rows->rules);
	if (r < 0)
		seam_unwind_rows_fini(rows);
	return r;
}

void seam_unwind_rows_fini(struct seam_unwind_rows *rows)
{
	seam_unwind_rules_fini(&rows->rules);
	free_functions(&rows->functions);
	seam_index_fini(&rows->index);
	seam_unwind_table_fini(&rows->whole);
	seam_unwind_table_fini(&rows->debug);
	free(rows->cache);
	*rows = (struct seam_unwind_rows) { 0 };
}

/* ---- code of JITs ---- */

int64_t seam_unwind_code_rows_add(struct seam_unwind_code_rows *rows,
				  const struct seam_eh_frame *eh,
				  uint64_t start, uint64_t size)
{
	struct seam_unwind_functions *f = &rows->functions;
	size_t first = f->list.n, offset = 0, next;
	struct seam_eh_fde fde = { 0 };
	int r;

	while ((r = seam_eh_frame_entry(eh, offset, &fde, &next)) >= 0 &&
	       f->list.n - first < SEAM_UNWIND_MAX_OF_CODE) {
		offset = next;
		/* for this code; aligned, it may end before its function */
		if (!r || fde.start - start >= size)
			continue;
		/* each piece pays for itself: there is no limit for all */
		f->bytes_left = SEAM_EH_MAX_FDE + SEAM_EH_MAX_CIE;
		if (add_function(f, eh, &fde, &rows->rules) < 0)
			return -ENOMEM;
	}
	if (f->list.n == first)
		return SEAM_NONE;
	if (!SEAM_ARRAY_ADD(&rows->pieces, (struct seam_unwind_piece) {
			start, (uint32_t)first,
			(uint32_t)(f->list.n - first) }))
		return -ENOMEM;
	return (int64_t)rows->pieces.n - 1;
}

uint16_t seam_unwind_code_rows_find(const struct seam_unwind_code_rows *rows,
				    uint32_t piece, uint64_t offset)
{
	const struct seam_unwind_piece *p;

	if (piece >= rows->pieces.n)
		return SEAM_UNWIND_NO_CFI;
	p = &rows->pieces.items[piece];
	for (uint32_t i = p->first; i < p->first + p->n; i++) {
		const struct seam_unwind_function *function =
			&rows->functions.list.items[i];
		uint64_t inside = p->start + offset - function->start;

		if (inside < function->size)
			return find_row(&rows->functions, i, inside);
	}
	return SEAM_UNWIND_NO_CFI;
}

void seam_unwind_code_rows_fini(struct seam_unwind_code_rows *rows)
{
	seam_unwind_rules_fini(&rows->rules);
	free_functions(&rows->functions);
	free(rows->pieces.items);
	*rows = (struct seam_unwind_code_rows) { 0 };
}
