/* SPDX-License-Identifier: MIT */
/*
 * intervals.c - overlapping ranges cut into pieces; contract in intervals.h
 *
 * A sweep over the starts with a stack of the ranges that are open.  The
 * stack is in order of start, so its top is the winner; ranges below it that
 * end first are dropped when they reach the top.
 */
#include "base/intervals.h"

#include <errno.h>
#include <stdlib.h>

#include "base/radix_sort.h"

struct sweep {
	struct seam_intervals *out;
	SEAM_ARRAY(uint32_t) open;	/* indices of ranges */
};

int seam_intervals_add(struct seam_intervals *intervals, uint64_t start,
		       uint64_t end, uint32_t id)
{
	struct seam_interval range = { start, end, id };

	return start >= end || (intervals->ranges.n < SEAM_NONE &&
	       SEAM_ARRAY_ADD(&intervals->ranges, range)) ? 0 : -ENOMEM;
}

/* Begin a piece of range @id at @start. */
static int emit(struct seam_intervals *out, uint64_t start, uint32_t id)
{
	struct seam_interval_piece *slot;

	if (out->pieces.n > 0 &&
	    out->pieces.items[out->pieces.n - 1].start == start)
		slot = &out->pieces.items[out->pieces.n - 1];
	else
		slot = SEAM_ARRAY_PUSH(&out->pieces);
	if (!slot)
		return -ENOMEM;
	*slot = (struct seam_interval_piece) { start, id };
	return 0;
}

static const struct seam_interval *top(const struct sweep *sweep)
{
	return sweep->open.n == 0 ? NULL : &sweep->out->ranges.items[
		sweep->open.items[sweep->open.n - 1]];
}

/* End every open range that does not reach past @addr. */
static int close_until(struct sweep *sweep, uint64_t addr)
{
	const struct seam_interval *range;

	while ((range = top(sweep)) && range->end <= addr) {
		uint64_t end = range->end;

		while (range && range->end <= end) {
			sweep->open.n--;
			range = top(sweep);
		}
		if (emit(sweep->out, end, range ? range->id : SEAM_NONE))
			return -ENOMEM;
	}
	return 0;
}

int seam_intervals_cut(struct seam_intervals *intervals)
{
	size_t n = intervals->ranges.n;
	struct seam_radix_item *order = malloc((n ? n : 1) * sizeof(*order));
	struct sweep sweep = { .out = intervals };
	int r = order ? 0 : -ENOMEM;

	for (size_t i = 0; order && i < n; i++)
		order[i] = (struct seam_radix_item) {
			intervals->ranges.items[i].start, (uint32_t)i,
		};
	if (!r)
		r = seam_radix_sort(order, n);
	for (size_t i = 0; !r && i < n; i++) {
		const struct seam_interval *range =
			&intervals->ranges.items[order[i].id];

		if (close_until(&sweep, range->start) ||
		    emit(intervals, range->start, range->id) ||
		    !SEAM_ARRAY_ADD(&sweep.open, order[i].id))
			r = -ENOMEM;
	}
	if (!r)
		r = close_until(&sweep, UINT64_MAX);
	free(sweep.open.items);
	free(order);
	free(intervals->ranges.items);
	memset(&intervals->ranges, 0, sizeof(intervals->ranges));
	/* Pieces up to the failure would be wrong about the rest. */
	if (r)
		seam_intervals_fini(intervals);
	return r;
}

uint32_t seam_intervals_find(const struct seam_intervals *intervals,
			     uint64_t addr)
{
	const struct seam_interval_piece *pieces = intervals->pieces.items;
	size_t n = SEAM_ARRAY_SEARCH(i, intervals->pieces.n,
				     pieces[i].start <= addr);

	return n > 0 ? pieces[n - 1].id : SEAM_NONE;
}

void seam_intervals_fini(struct seam_intervals *intervals)
{
	free(intervals->ranges.items);
	free(intervals->pieces.items);
	*intervals = (struct seam_intervals) { 0 };
}
