/* SPDX-License-Identifier: MIT */
/* radix_sort.c - least significant byte first; see radix_sort.h */
#include "base/radix_sort.h"

#include <errno.h>
#include <stdlib.h>

enum { DIGITS = 8, VALUES = 256 };

static bool is_sorted(const struct seam_radix_item *items, size_t n)
{
	for (size_t i = 1; i < n; i++)
		if (items[i].key < items[i - 1].key)
			return false;
	return true;
}

static size_t digit(uint64_t key, int d)
{
	return key >> (8 * d) & (VALUES - 1);
}

static void scatter(const struct seam_radix_item *from,
		    struct seam_radix_item *to, size_t n, int d,
		    const size_t *count)
{
	size_t at[VALUES], sum = 0;

	for (int v = 0; v < VALUES; v++) {
		at[v] = sum;
		sum += count[v];
	}
	for (size_t i = 0; i < n; i++)
		to[at[digit(from[i].key, d)]++] = from[i];
}

int seam_radix_sort(struct seam_radix_item *items, size_t n)
{
	size_t count[DIGITS][VALUES] = { { 0 } };
	struct seam_radix_item *other, *from = items, *to;

	if (is_sorted(items, n))
		return 0;
	other = malloc(n * sizeof(*other));
	if (!other)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++)
		for (int d = 0; d < DIGITS; d++)
			count[d][digit(items[i].key, d)]++;
	for (int d = 0; d < DIGITS; d++) {
		if (count[d][digit(items[0].key, d)] == n)
			continue;
		to = from == items ? other : items;
		scatter(from, to, n, d, count[d]);
		from = to;
	}
	if (from != items)
		memcpy(items, from, n * sizeof(*items));
	free(other);
	return 0;
}
