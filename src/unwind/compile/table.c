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

static int list_fdes(const struct seam_eh_frame *frame, struct places *places)
{
	struct seam_eh_fde fde = { 0 };
	size_t offset = 0, next;
	int r;

	places->is_sorted = true;
	for (; (r = seam_eh_frame_entry(frame, offset, &fde, &next)) >= 0;
	     offset = next) {
		size_t n = places->list.n;

		if (r == 0)
			continue;
		if (!SEAM_ARRAY_ADD(&places->list, (struct pc_place) {
				fde.start, offset }))
			return -ENOMEM;
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

	return SEAM_COMPARE(one->start, other->start) ?:
	       SEAM_COMPARE(one->offset, other->offset);
}

struct table_building {
	struct seam_unwind_rules *rules;
	uint64_t base_addr, bytes_left;
	uint64_t limit;		/* the next function's start */
	SEAM_ARRAY(uint32_t) starts;
	SEAM_ARRAY(uint16_t) ids;
};

/* One more row; the same rules as before need none. */
static int push(struct table_building *b, uint64_t start, uint16_t id)
{
	if (b->ids.n && b->ids.items[b->ids.n - 1] == id)
		return 0;
	return SEAM_ARRAY_ADD(&b->starts, (uint32_t)(start - b->base_addr)) &&
	       SEAM_ARRAY_ADD(&b->ids, id) ? 0 : -ENOMEM;
}

static int push_row(void *context, uint64_t start,
		    const struct seam_unwind_row *row)
{
	struct table_building *b = context;
	int id = start < b->limit ? seam_unwind_rules_intern(b->rules, row) : 0;

	return id < 0 || start >= b->limit ? id : push(b, start, (uint16_t)id);
}

/* The rows of one FDE up to the limit; after it SEAM_UNWIND_NO_CFI. */
static int compile(struct table_building *b, const struct seam_eh_frame *frame,
		   const struct seam_eh_fde *fde)
{
	uint64_t bytes = fde->instructions.size + fde->cie.instructions.size;
	size_t first = b->ids.n;
	int r = -EOVERFLOW;

	if (bytes <= b->bytes_left) {
		b->bytes_left -= bytes;
		r = seam_unwind_program_rows(frame, fde, b->rules, push_row, b);
	}
	if (r < 0 && r != -ENOMEM) {
		/* which of its rows are right is not known */
		b->starts.n = b->ids.n = first;
		r = push(b, fde->start, SEAM_UNWIND_BAD_CFI);
	}
	return r == 0 && fde->end < b->limit ?
	       push(b, fde->end, SEAM_UNWIND_NO_CFI) : r;
}

static int compile_all(struct table_building *b,
		       const struct seam_eh_frame *frame,
		       const struct places *places)
{
	const struct pc_place *list = places->list.items;
	struct seam_eh_fde fde = { 0 };
	size_t next;
	int r = 0;

	b->base_addr = list[0].start;
	b->bytes_left = frame->entries.size + SEAM_UNWIND_SPARE_BYTES;
	if (places->end - list[0].start > UINT32_MAX)
		return -ENOTSUP;
	for (size_t i = 0; r == 0 && i < places->list.n; i++) {
		b->limit = i + 1 < places->list.n ? list[i + 1].start :
						    UINT64_MAX;
		if (b->limit > list[i].start &&
		    seam_eh_frame_entry(frame, list[i].offset, &fde,
					&next) == 1)
			r = compile(b, frame, &fde);
	}
	return r;
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

int seam_unwind_table_build(struct seam_unwind_table *table,
			    const struct seam_eh_frame *frame,
			    struct seam_unwind_rules *rules)
{
	struct table_building b = { .rules = rules ? rules : &table->rules };
	struct places places = { 0 };
	int r = list_fdes(frame, &places);

	*table = (struct seam_unwind_table) { .n = 0 };
	if (r == 0 && !places.is_sorted)
		qsort(places.list.items, places.list.n,
		      sizeof(*places.list.items), by_start);
	if (r == 0 && places.list.n)
		r = compile_all(&b, frame, &places);
	table->base_addr = b.base_addr;
	table->starts = b.starts.items;
	table->ids = b.ids.items;
	table->n = b.ids.n;
	if (r == 0 && table->n)
		r = make_blocks(table);
	free(places.list.items);
	if (r < 0)
		seam_unwind_table_fini(table);
	return r;
}

void seam_unwind_table_fini(struct seam_unwind_table *table)
{
	free(table->starts);
	free(table->ids);
	free(table->blocks);
	seam_unwind_rules_fini(&table->rules);
	*table = (struct seam_unwind_table) { 0 };
}
