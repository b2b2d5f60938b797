/* SPDX-License-Identifier: MIT */
/*
 * intervals.h - which of many overlapping ranges holds an address
 *
 * Ranges are added in any order, then cut once into disjoint pieces, each
 * belonging to one range; from then on a look-up is one binary search.
 *
 * Where ranges overlap, the one that starts last wins, and among those that
 * start together the one that was added last.  For ranges that nest, added
 * outermost first, that is the innermost.
 *
 * Threads: filled by one, then read by any number.
 */
#pragma once

#include "base/array.h"

struct seam_interval {
	uint64_t start;
	uint64_t end;		/* first address after it */
	uint32_t id;		/* the caller's; not SEAM_NONE */
};

struct seam_interval_piece {
	uint64_t start;		/* ends where the next piece starts */
	uint32_t id;		/* SEAM_NONE: no range is here */
};

/* Zeroed is valid and empty. */
struct seam_intervals {
	SEAM_ARRAY(struct seam_interval) ranges;	/* until cut */
	SEAM_ARRAY(struct seam_interval_piece) pieces;	/* ascending */
};

/* Empty ranges are left out.  0 or -ENOMEM. */
int seam_intervals_add(struct seam_intervals *intervals, uint64_t start,
		       uint64_t end, uint32_t id);

/*
 * Cut what was added; nothing can be added afterwards.  0; or -ENOMEM, and
 * then no address is in any range.
 * Cost: a radix sort, then one pass; at most two pieces a range.
 */
int seam_intervals_cut(struct seam_intervals *intervals);

/* The id of the range that holds @addr, or SEAM_NONE. */
uint32_t seam_intervals_find(const struct seam_intervals *intervals,
			     uint64_t addr);

void seam_intervals_fini(struct seam_intervals *intervals);
