/* SPDX-License-Identifier: MIT */
/* array.c - growth; the contract is in array.h */
#include "base/array.h"

#include <sys/mman.h>

#include "base/memory_limit.h"

/* A PMD-sized page on x86-64 and arm64 with 4 KiB pages. */
#define HUGE_BYTES ((uintptr_t)2 << 20)

/*
 * A large array is filled from one end to the other: huge pages save a page
 * fault for each 4 KiB.  Only a hint.
 */
static void prefer_huge_pages(const void *items, size_t size)
{
#ifdef MADV_HUGEPAGE
	uintptr_t begin = ((uintptr_t)items + HUGE_BYTES - 1) & -HUGE_BYTES;
	uintptr_t end = ((uintptr_t)items + size) & -HUGE_BYTES;

	if (begin < end)
		madvise((void *)begin, end - begin, MADV_HUGEPAGE);
#else
	(void)items;
	(void)size;
#endif
}

void *seam_array_reserve(void *items, size_t *cap, size_t need, size_t size)
{
	size_t want = *cap ? *cap : 16;
	void *moved;

	if (need <= *cap && items)
		return items;
	while (want < need) {
		if (want > SIZE_MAX / 2)
			return NULL;
		want *= 2;
	}
	if (want > SIZE_MAX / size)
		return NULL;
	moved = realloc(items, want * size);
	if (!moved)
		return seam_memory_refused();
	*cap = want;
	if (want * size >= 2 * HUGE_BYTES)
		prefer_huge_pages(moved, want * size);
	return moved;
}
