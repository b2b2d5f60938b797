/* SPDX-License-Identifier: MIT */
/*
 * heap.h - a binary heap of pointers, the first element on top
 *
 * For merging sequences: the sequence on top has the next element; after it
 * has advanced, it sinks to its new place.
 */
#pragma once

#include "base/base.h"

typedef bool seam_heap_before(const void *a, const void *b);

/* Restore the order below element @at of @n, the only one out of place. */
static inline void seam_heap_sink(void **items, size_t n, size_t at,
				  seam_heap_before *is_before)
{
	void *moved = items[at];

	for (;;) {
		size_t child = 2 * at + 1;

		if (child + 1 < n && is_before(items[child + 1], items[child]))
			child++;
		if (child >= n || !is_before(items[child], moved))
			break;
		items[at] = items[child];
		at = child;
	}
	items[at] = moved;
}

/* Restore the order above element @at, which has just been put there. */
static inline void seam_heap_rise(void **items, size_t at,
				  seam_heap_before *is_before)
{
	void *moved = items[at];

	for (; at > 0 && is_before(moved, items[(at - 1) / 2]);
	     at = (at - 1) / 2)
		items[at] = items[(at - 1) / 2];
	items[at] = moved;
}
