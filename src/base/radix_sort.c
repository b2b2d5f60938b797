/* SPDX-License-Identifier: MIT */
/* radix_sort.c - least significant byte first; see radix_sort.h */
#include "base/radix_sort.h"

enum { DIGITS = 8, VALUES = 256 };

static size_t digit(uint64_t key, int d)
{
	return key >> (8 * d) & (VALUES - 1);
}

int seam_radix_sort(struct seam_radix_item *items, size_t n)
{
	size_t count[DIGITS][VALUES] = { { 0 } };
	struct seam_radix_item *other, *from = items, *to;
	size_t sorted = 1;

	while (sorted < n && items[sorted - 1].key <= items[sorted].key)
		sorted++;
	if (sorted >= n)
		return 0;
	other = malloc(n * sizeof(*other));
	if (!other)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++)
		for (int d = 0; d < DIGITS; d++)
			count[d][digit(items[i].key, d)]++;
	for (int d = 0; d < DIGITS; d++) {
		size_t at[VALUES], sum = 0;

		if (count[d][digit(items[0].key, d)] == n)
			continue;
		to = from == items ? other : items;
		for (int v = 0; v < VALUES; v++) {
			at[v] = sum;
			sum += count[d][v];
		}
		for (size_t i = 0; i < n; i++)
			to[at[digit(from[i].key, d)]++] = from[i];
		from = to;
	}
	if (from != items)
		memcpy(items, from, n * sizeof(*items));
	free(other);
	return 0;
}
