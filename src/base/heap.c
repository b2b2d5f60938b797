/* SPDX-License-Identifier: MIT */
/* heap.c - sink and rise; see heap.h */
#include "base/heap.h"

void seam_heap_sink(void **items, size_t n, size_t at,
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

void seam_heap_rise(void **items, size_t at, seam_heap_before *is_before)
{
	void *moved = items[at];

	for (; at > 0 && is_before(moved, items[(at - 1) / 2]);
	     at = (at - 1) / 2)
		items[at] = items[(at - 1) / 2];
	items[at] = moved;
}
