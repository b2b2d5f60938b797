/* SPDX-License-Identifier: MIT */
/* cfi_rows.c - functions compiled one by one; see cfi_rows.h */
#include "unwind/compile/cfi_rows.h"

#include "base/hash.h"

#include <errno.h>
#include <stdlib.h>

enum {
	MIN_CACHE = 256, MAX_CACHE = 65536,
	/* What may be compiled beyond the bytes of the section: CIEs. */
	SPARE_BYTES = 1 << 20,
};

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

/* By the table of contents.  False without memory. */
static bool find_searched(struct seam_unwind_rows *rows, uint64_t addr,
			  uint16_t *id)
{
	int r = seam_eh_frame_find(&rows->searched, addr, &rows->fde);
	uint32_t i = r == 1 ? function_of(rows, &rows->fde) : SEAM_NONE;

	if (r < 0)
		rows->n_bad_contents++;
	if (r < 0 || (r == 1 && i == SEAM_NONE))
		*id = SEAM_UNWIND_BAD_CFI;
	else if (r == 1)
		*id = seam_unwind_functions_find(&rows->functions, i,
						 addr - rows->fde.start);
	return r != 1 || i != SEAM_NONE;
}

static bool look_up(struct seam_unwind_rows *rows, uint64_t addr, uint16_t *id)
{
	bool is_final = true;

	*id = SEAM_UNWIND_NO_CFI;
	if (rows->searched.header.size)
		is_final = find_searched(rows, addr, id);
	else
		*id = seam_unwind_table_find(&rows->whole, addr);
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

static bool can_be_searched(const struct seam_eh_frame *eh)
{
	struct seam_eh_fde fde = { 0 };

	return eh->header.size && seam_eh_frame_find(eh, 0, &fde) != -ENOTSUP;
}

int seam_unwind_rows_init(struct seam_unwind_rows *rows,
			  const struct seam_eh_frame *eh,
			  const struct seam_eh_frame *debug)
{
	int r = 0;

	*rows = (struct seam_unwind_rows) { 0 };
	if (eh && eh->entries.size && can_be_searched(eh)) {
		rows->searched = *eh;
		rows->functions.bytes_left = eh->entries.size + SPARE_BYTES;
	} else if (eh && eh->entries.size) {
		r = seam_unwind_table_build_in(&rows->whole, eh, &rows->rules);
	}
	if (r == 0 && debug && debug->entries.size)
		r = seam_unwind_table_build_in(&rows->debug, debug,
					       &rows->rules);
	if (r < 0)
		seam_unwind_rows_fini(rows);
	return r;
}

struct seam_unwind_refused
seam_unwind_rows_refused(const struct seam_unwind_rows *rows)
{
	const struct seam_unwind_refused *parts[] = {
		&rows->functions.refused, &rows->whole.refused,
		&rows->debug.refused,
	};
	struct seam_unwind_refused sum = { .n_broken = rows->n_bad_contents };

	for (size_t i = 0; i < SEAM_ARRAY_SIZE(parts); i++) {
		sum.n_broken += parts[i]->n_broken;
		sum.n_unsupported += parts[i]->n_unsupported;
		sum.n_too_large += parts[i]->n_too_large;
	}
	return sum;
}

size_t seam_unwind_rows_bytes(const struct seam_unwind_rows *rows)
{
	const struct seam_unwind_rules *rules = &rows->rules;

	return seam_unwind_table_bytes(&rows->whole) +
	       seam_unwind_table_bytes(&rows->debug) +
	       seam_unwind_functions_bytes(&rows->functions) +
	       rules->rules.cap * sizeof(*rules->rules.items) +
	       rules->saved.cap * sizeof(*rules->saved.items) +
	       rules->expressions.cap +
	       rows->n_cache * sizeof(*rows->cache);
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
