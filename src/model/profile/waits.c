/* SPDX-License-Identifier: MIT */
/* waits.c - an order, and the part of a thread in it; see waits.h */
#include "model/profile/waits.h"

static int by_thread_and_time(const void *a, const void *b)
{
	const struct seam_wait *x = a, *y = b;

	return SEAM_COMPARE(x->thread, y->thread) ?:
	       SEAM_COMPARE(x->from_ns, y->from_ns);
}

void seam_waits_sort(struct seam_waits *waits)
{
	SEAM_ARRAY_SORT(&waits->items, by_thread_and_time);
}

struct seam_wait_cursor seam_waits_of(const struct seam_waits *waits,
				      uint32_t thread)
{
	const struct seam_wait *all = waits->items.items;
	size_t n = waits->items.n;
	size_t from = SEAM_ARRAY_SEARCH(i, n, all[i].thread < thread);
	size_t to = SEAM_ARRAY_SEARCH(i, n, all[i].thread <= thread);

	return (struct seam_wait_cursor) {
		.next = all + from, .end = all + to,
	};
}
