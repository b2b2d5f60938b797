/* SPDX-License-Identifier: MIT */
/* cfi_rows.c - functions compiled one by one; see cfi_rows.h */
#include "unwind/compile/cfi_rows.h"

#include "base/hash.h"
#include "unwind/compile/program.h"

#include <errno.h>
#include <stdlib.h>

enum {
	MIN_CACHE = 256, MAX_CACHE = 65536,
	/* What may be compiled beyond the bytes of the section: CIEs. */
	SPARE_BYTES = 1 << 20,
};

/* --- compiling --- */

/* A function while it is compiled. */
struct compiling {
	struct seam_unwind_rows *rows;
	const struct seam_eh_fde *fde;
};

static int append(struct seam_unwind_rows *rows, uint32_t start, int id)
{
	if (!SEAM_ARRAY_RESERVE(&rows->starts, 1) ||
	    !SEAM_ARRAY_RESERVE(&rows->ids, 1))
		return -ENOMEM;
	rows->starts.items[rows->starts.n++] = start;
	rows->ids.items[rows->ids.n++] = (uint16_t)id;
	return 0;
}

static int append_row(void *context, uint64_t start,
		      const struct seam_unwind_row *row)
{
	struct compiling *c = context;
	int id = seam_unwind_rules_intern(&c->rows->rules, row);

	if (id < 0)
		return id;
	return append(c->rows, (uint32_t)(start - c->fde->start), id);
}

static void truncate_rows(struct seam_unwind_rows *rows, size_t n)
{
	rows->starts.n = n;
	rows->ids.n = n;
}

static int run(struct seam_unwind_rows *rows, const struct seam_eh_fde *fde)
{
	struct compiling c = { rows, fde };
	uint64_t bytes = fde->instructions.size + fde->cie.instructions.size;

	if (bytes > rows->bytes_left || fde->end - fde->start > UINT32_MAX ||
	    rows->starts.n > UINT32_MAX - bytes)
		return -EOVERFLOW;
	rows->bytes_left -= bytes;
	return seam_unwind_program_rows(&rows->searched, fde, &rows->rules,
					append_row, &c);
}

/* Compile @fde and remember it.  NULL without memory. */
static const struct seam_unwind_function *
compile(struct seam_unwind_rows *rows, const struct seam_eh_fde *fde)
{
	size_t first = rows->starts.n, n = rows->functions.n;
	uint64_t key = fde->instructions_offset;
	struct seam_unwind_function *function;
	int r;

	if (!SEAM_ARRAY_RESERVE(&rows->functions, 1))
		return NULL;
	r = run(rows, fde);
	if (r < 0) {
		/* which of its rows are right is not known */
		truncate_rows(rows, first);
		if (r == -ENOMEM || append(rows, 0, SEAM_UNWIND_BAD_CFI) < 0)
			return NULL;
		seam_unwind_refuse(&rows->refused, r);
	}
	if (seam_index_add(&rows->index, seam_hash_u64(key), (uint32_t)n) < 0) {
		truncate_rows(rows, first);
		return NULL;
	}
	function = &rows->functions.items[rows->functions.n++];
	*function = (struct seam_unwind_function) {
		key, (uint32_t)first, (uint32_t)(rows->starts.n - first),
	};
	return function;
}

/* --- looking up --- */

static const struct seam_unwind_function *
known_function(const struct seam_unwind_rows *rows, uint64_t key)
{
	struct seam_index_probe probe =
		seam_index_probe(&rows->index, seam_hash_u64(key));
	uint32_t i;

	while ((i = seam_index_next(&rows->index, &probe)) != SEAM_NONE)
		if (rows->functions.items[i].key == key)
			return &rows->functions.items[i];
	return NULL;
}

/* The last row of @function that begins at or before @offset. */
static uint16_t row_at(const struct seam_unwind_rows *rows,
		       const struct seam_unwind_function *function,
		       uint32_t offset)
{
	const uint32_t *starts = rows->starts.items + function->first;
	size_t low = 0, high = function->n;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (starts[middle] <= offset)
			low = middle + 1;
		else
			high = middle;
	}
	if (low == 0)
		return SEAM_UNWIND_NO_CFI;
	return rows->ids.items[function->first + low - 1];
}

/* By the table of contents.  False without memory. */
static bool find_searched(struct seam_unwind_rows *rows, uint64_t addr,
			  uint16_t *id)
{
	const struct seam_unwind_function *function;
	int r = seam_eh_frame_find(&rows->searched, addr, &rows->fde);

	if (r < 0) {
		seam_unwind_refuse(&rows->refused, r);
		*id = SEAM_UNWIND_BAD_CFI;
	}
	if (r != 1)
		return true;
	function = known_function(rows, rows->fde.instructions_offset);
	if (!function)
		function = compile(rows, &rows->fde);
	if (!function) {
		*id = SEAM_UNWIND_BAD_CFI;
		return false;
	}
	/* of a function that is refused the offset may have more bits */
	*id = row_at(rows, function, addr - rows->fde.start > UINT32_MAX ?
		     UINT32_MAX : (uint32_t)(addr - rows->fde.start));
	return true;
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
		rows->bytes_left = eh->entries.size + SPARE_BYTES;
	} else if (eh && eh->entries.size) {
		r = seam_unwind_table_build_in(&rows->whole, eh, &rows->rules);
	}
	if (r == 0 && debug && debug->entries.size)
		r = seam_unwind_table_build_in(&rows->debug, debug,
					       &rows->rules);
	if (r < 0) {
		seam_unwind_rows_fini(rows);
		return r;
	}
	rows->refused.n_broken = rows->whole.refused.n_broken +
				 rows->debug.refused.n_broken;
	rows->refused.n_unsupported = rows->whole.refused.n_unsupported +
				      rows->debug.refused.n_unsupported;
	rows->refused.n_too_large = rows->whole.refused.n_too_large +
				    rows->debug.refused.n_too_large;
	return 0;
}

size_t seam_unwind_rows_bytes(const struct seam_unwind_rows *rows)
{
	const struct seam_unwind_rules *rules = &rows->rules;

	return seam_unwind_table_bytes(&rows->whole) +
	       seam_unwind_table_bytes(&rows->debug) +
	       rows->functions.cap * sizeof(*rows->functions.items) +
	       rows->starts.cap * sizeof(*rows->starts.items) +
	       rows->ids.cap * sizeof(*rows->ids.items) +
	       rules->rules.cap * sizeof(*rules->rules.items) +
	       rules->saved.cap * sizeof(*rules->saved.items) +
	       rules->expressions.cap +
	       rows->n_cache * sizeof(*rows->cache);
}

void seam_unwind_rows_fini(struct seam_unwind_rows *rows)
{
	seam_unwind_rules_fini(&rows->rules);
	free(rows->functions.items);
	seam_index_fini(&rows->index);
	free(rows->starts.items);
	free(rows->ids.items);
	seam_unwind_table_fini(&rows->whole);
	seam_unwind_table_fini(&rows->debug);
	free(rows->cache);
	*rows = (struct seam_unwind_rows) { 0 };
}
