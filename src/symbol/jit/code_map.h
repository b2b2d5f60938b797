/* SPDX-License-Identifier: MIT */
/*
 * code_map.h - which range of addresses was in force at an address at a time
 *
 * Ranges are placed over one another in the order of time: at an address the
 * newest is in force.  A range whose first byte is covered by another one is
 * removed, because that code cannot be entered any more; one that lost other
 * bytes (a stub inside a larger blob) keeps the rest.
 *
 * Built once, from ranges that are all known beforehand, then only searched:
 *
 *	seam_code_map_init(&map, ranges, n);
 *	for each event in the order of time:
 *		seam_code_map_place(&map, i, time);
 *	seam_code_map_seal(&map);
 *	i = seam_code_map_find(&map, addr, time);
 *
 * How: addresses become indices of the sorted bounds of all ranges.  A range
 * that stays uncovered from t0 to t1 is a rectangle; covering it ends
 * rectangles and begins others, at most two more for each range.  Sealing
 * adds each rectangle to the nodes of a segment tree over the indices.
 * Rectangles of one node all cover its addresses, so they follow each other
 * in time, and one binary search on each node from leaf to root finds the
 * answer.  JIT code seldom overlaps: then a rectangle is one leaf.
 *
 * Cost: O(n log n) to build with a radix sort as its largest part; a find is
 * O(log n) nodes, most of them empty.  Memory: about 60 bytes a range.
 * Threads: after sealing any number may search.
 */
#pragma once

#include "base/array.h"

/* @start_addr < @end_addr, or the range is never found. */
struct seam_code_range {
	uint64_t start_addr;
	uint64_t end_addr;
};

enum { SEAM_CODE_REMOVED = 0x40000000 };

/*
 * A part of a range that is in force for some time.  Its range is SEAM_NONE if
 * it was covered at the time it began: it never was in force.
 */
struct seam_code_rect {
	uint32_t left, right;		/* bounds: [left, right) */
	uint32_t range;			/* or SEAM_CODE_REMOVED + range */
	uint64_t from, to;		/* times: [from, to) */
};

/* Zeroed is valid and empty. */
struct seam_code_map {
	uint64_t *bounds;		/* sorted, distinct */
	size_t n_bounds;
	struct seam_code_rect *ends;	/* left and right of each range */
	size_t n_ranges;
	SEAM_ARRAY(struct seam_code_rect) rects;	/* by time of from */

	/* while it is built */
	uint32_t *alive;		/* rect that begins at a bound */
	uint64_t *levels[6];		/* bit i: something alive from i on */
	unsigned int n_levels;

	/* when it is sealed: rects of node i are in [first[i], first[i+1]) */
	uint32_t *first;
	uint32_t *nodes;
};

/* The map of the @n ranges, none of them placed.  0 or -ENOMEM. */
int seam_code_map_init(struct seam_code_map *map,
		       const struct seam_code_range *ranges, size_t n);

/*
 * Place range @range over the others from @time on.  Times do not decrease from
 * call to call.  0 or -ENOMEM.
 */
int seam_code_map_place(struct seam_code_map *map, uint32_t range,
			uint64_t time);

/*
 * Remove it from @time on.  Where it was in force there is nothing then: the
 * ranges that it was placed over do not come back.  0 or -ENOMEM.
 */
int seam_code_map_remove(struct seam_code_map *map, uint32_t range,
			 uint64_t time);

/* End of building.  0 or -ENOMEM. */
int seam_code_map_seal(struct seam_code_map *map);

/* The range in force at @addr at @time, SEAM_NONE where there is none. */
uint32_t seam_code_map_find(const struct seam_code_map *map, uint64_t addr,
			    uint64_t time);

/*
 * The same, but the last range that was placed over @addr, also when it is not
 * in force any more (*@is_there is false then), as those below it are.
 */
uint32_t seam_code_map_top(const struct seam_code_map *map, uint64_t addr,
			   uint64_t time, bool *is_there);

/*
 * The first range that begins to be in force at @addr after @time, SEAM_NONE
 * when there is none: one that is placed, or the rest of one that is covered in
 * part then.  After sealing.
 */
uint32_t seam_code_map_next(const struct seam_code_map *map, uint64_t addr,
			    uint64_t time);

/*
 * The ranges in force now where @range will be placed: one a call, from
 * right to left, then SEAM_NONE.  *@at is SEAM_NONE at first.  Before sealing,
 * in a map from which nothing is removed.
 */
uint32_t seam_code_map_below(const struct seam_code_map *map, uint32_t range,
			     uint32_t *at);

/* Valid on a zeroed map, and again after itself. */
void seam_code_map_fini(struct seam_code_map *map);
