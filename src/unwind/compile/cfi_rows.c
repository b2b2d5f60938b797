/* SPDX-License-Identifier: MIT */
/* cfi_rows.c - functions compiled one by one; see cfi_rows.h */
#include "unwind/compile/cfi_rows.h"

#include "base/hash.h"

#include <errno.h>
#include <stdlib.h>

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
	added = seam_unwind_functions_add(all, &rows->searched, fde,
					  &rows->rules);
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
			*id = seam_unwind_functions_find(&rows->functions, i,
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
	seam_unwind_functions_fini(&rows->functions);
	seam_index_fini(&rows->index);
	seam_unwind_table_fini(&rows->whole);
	seam_unwind_table_fini(&rows->debug);
	free(rows->cache);
	*rows = (struct seam_unwind_rows) { 0 };
}
