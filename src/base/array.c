/* SPDX-License-Identifier: MIT */
/* array.c - growth; the contract is in array.h */
#include "base/array.h"

#include <stdlib.h>

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
	if (moved)
		*cap = want;
	return moved;
}
