/* SPDX-License-Identifier: MIT */
/* table.c - compile a whole file's call frame information; see table.h */
#include "unwind/compile/table.h"

#include "unwind/compile/program.h"

#include <errno.h>
#include <stdlib.h>

/* Where an FDE is, for the sort. */
struct pc_place {
	uint64_t start;
	size_t offset;		/* in the section */
};

struct places {
	SEAM_ARRAY(struct pc_place) list;
	uint64_t end;		/* first address after all */
	bool is_sorted;
};

struct table_building {
	struct seam_unwind_table *table;
	struct seam_unwind_rules *rules;
	size_t cap;		/* of both arrays */
	uint64_t limit;		/* where the next FDE starts */
	uint64_t bytes_left;	/* of programs that may be run */
};

static int list_fdes(const struct seam_eh_frame *frame, struct places *places,
		     uint64_t *n_bad)
{
	struct seam_eh_fde fde = { 0 };
	size_t offset = 0, next;
	int r;

	places->is_sorted = true;
	for (; (r = seam_eh_frame_entry(frame, offset, &fde, &next,
					n_bad)) >= 0; offset = next) {
		size_t n = places->list.n;
		struct pc_place *place =
			r ? SEAM_ARRAY_PUSH(&places->list) : NULL;

		if (r == 0)
			continue;
		if (!place)
			return -ENOMEM;
		*place = (struct pc_place) { fde.start, offset };
		if (n && places->list.items[n - 1].start > fde.start)
			places->is_sorted = false;
		if (fde.end > places->end)
			places->end = fde.end;
	}
	return 0;
}

static int by_start(const void *a, const void *b)
{
	const struct pc_place *one = a, *other = b;

	if (one->start != other->start)
		return one->start < other->start ? -1 : 1;
	return one->offset < other->offset ? -1 : one->offset > other->offset;
}

/* Room for more rows in both arrays. */
static int grow(struct table_building *b)
{
	struct seam_unwind_table *t = b->table;
	size_t cap_starts = b->cap, cap_ids = b->cap;
	uint32_t *starts = seam_array_reserve(t->starts, &cap_starts, t->n + 1,
					      sizeof(*starts));
	uint16_t *ids;

	if (!starts)
		return -ENOMEM;
	t->starts = starts;
	ids = seam_array_reserve(t->ids, &cap_ids, t->n + 1, sizeof(*ids));
	if (!ids)
		return -ENOMEM;
	t->ids = ids;
	b->cap = cap_starts < cap_ids ? cap_starts : cap_ids;
	return 0;
}

/* One more row; the same rules as before need none. */
static int push(struct table_building *b, uint64_t start, uint16_t id)
{
	struct seam_unwind_table *t = b->table;

	if (t->n && t->ids[t->n - 1] == id)
		return 0;
	if (t->n == b->cap && grow(b) < 0)
		return -ENOMEM;
	t->starts[t->n] = (uint32_t)(start - t->base_addr);
	t->ids[t->n++] = id;
	return 0;
}

static int push_row(void *context, uint64_t start,
		    const struct seam_unwind_row *row)
{
	struct table_building *b = context;
	int id;

	if (start >= b->limit)
		return 0;
	id = seam_unwind_rules_intern(b->rules, row);
	return id < 0 ? id : push(b, start, (uint16_t)id);
}

/* What may be run beyond the bytes of the section: CIEs. */
enum { SPARE_BYTES = 1 << 20 };

static int run(struct table_building *b, const struct seam_eh_frame *frame,
	       const struct seam_eh_fde *fde)
{
	uint64_t bytes = fde->instructions.size + fde->cie.instructions.size;

	if (bytes > b->bytes_left)
		return -EOVERFLOW;
	b->bytes_left -= bytes;
	return seam_unwind_program_rows(frame, fde, b->rules, push_row, b);
}

/* The rows of one FDE; after it SEAM_UNWIND_NO_CFI up to the next. */
static int compile(struct table_building *b, const struct seam_eh_frame *frame,
		   const struct seam_eh_fde *fde)
{
	uint64_t n_rows = b->table->n;
	int r = run(b, frame, fde);

	if (r == -ENOMEM)
		return r;
	if (r < 0) {
		/* which of its rows are right is not known */
		b->table->n = n_rows;
		seam_unwind_refuse(&b->table->refused, r);
		r = push(b, fde->start, SEAM_UNWIND_BAD_CFI);
	}
	if (r == 0 && fde->end < b->limit)
		r = push(b, fde->end, SEAM_UNWIND_NO_CFI);
	return r;
}

static int compile_all(struct table_building *b,
		       const struct seam_eh_frame *frame,
		       const struct places *places)
{
	const struct pc_place *list = places->list.items;
	struct seam_eh_fde fde = { 0 };
	uint64_t n_bad = 0;
	size_t next;

	b->table->base_addr = list[0].start;
	if (places->end - list[0].start > UINT32_MAX)
		return -ENOTSUP;
	for (size_t i = 0; i < places->list.n; i++) {
		int r;

		b->limit = i + 1 < places->list.n ? list[i + 1].start :
						    UINT64_MAX;
		if (b->limit == list[i].start)
			continue;
		r = seam_eh_frame_entry(frame, list[i].offset, &fde, &next,
					&n_bad) == 1 ?
		    compile(b, frame, &fde) : 0;
		if (r < 0)
			return r;
	}
	return 0;
}

/* Rows of a block, about: half a byte of blocks a row. */
enum { ROWS_OF_BLOCK = 8 };

static int make_blocks(struct seam_unwind_table *t)
{
	uint32_t last = t->starts[t->n - 1];
	size_t row = 0;

	/* two blocks at least, so that no shift is of all 32 bits */
	while ((last >> t->block_shift) > t->n / ROWS_OF_BLOCK + 1)
		t->block_shift++;
	t->n_blocks = (last >> t->block_shift) + 1;
	t->blocks = malloc(t->n_blocks * sizeof(*t->blocks));
	if (!t->blocks)
		return -ENOMEM;
	for (size_t i = 0; i < t->n_blocks; i++) {
		while (row + 1 < t->n &&
		       t->starts[row + 1] <= i << t->block_shift)
			row++;
		t->blocks[i] = (uint32_t)row;
	}
	return 0;
}

int seam_unwind_table_build_in(struct seam_unwind_table *table,
			       const struct seam_eh_frame *frame,
			       struct seam_unwind_rules *rules)
{
	struct table_building b = {
		.table = table, .rules = rules,
		.bytes_left = frame->entries.size + SPARE_BYTES,
	};
	struct places places = { 0 };
	int r;

	*table = (struct seam_unwind_table) { 0 };
	r = list_fdes(frame, &places, &table->refused.n_broken);
	if (r == 0 && !places.is_sorted)
		qsort(places.list.items, places.list.n,
		      sizeof(*places.list.items), by_start);
	if (r == 0 && places.list.n)
		r = compile_all(&b, frame, &places);
	if (r == 0 && table->n)
		r = make_blocks(table);
	free(places.list.items);
	if (r < 0)
		seam_unwind_table_fini(table);
	return r;
}

int seam_unwind_table_build(struct seam_unwind_table *table,
			    const struct seam_eh_frame *frame)
{
	struct seam_unwind_rules rules = { 0 };
	int r = seam_unwind_table_build_in(table, frame, &rules);

	if (r < 0)
		seam_unwind_rules_fini(&rules);
	else
		table->rules = rules;
	return r;
}

size_t seam_unwind_table_bytes(const struct seam_unwind_table *table)
{
	const struct seam_unwind_rules *rules = &table->rules;

	return table->n * (sizeof(*table->starts) + sizeof(*table->ids)) +
	       table->n_blocks * sizeof(*table->blocks) +
	       rules->rules.n * sizeof(*rules->rules.items) +
	       rules->saved.n * sizeof(*rules->saved.items) +
	       rules->expressions.n;
}

void seam_unwind_table_fini(struct seam_unwind_table *table)
{
	free(table->starts);
	free(table->ids);
	free(table->blocks);
	seam_unwind_rules_fini(&table->rules);
	*table = (struct seam_unwind_table) { 0 };
}
