/* SPDX-License-Identifier: MIT */
/* closest_word.c - edit distance over short words; see closest_word.h */
#include "cli/closest_word.h"

enum { MAX_WORD = 32 };

static size_t least(size_t a, size_t b)
{
	return a < b ? a : b;
}

/*
 * Edits from @a to @b, a swap of neighbours being one: the table of the
 * classic algorithm, row by row, where a swap looks two rows back.
 */
static size_t distance(const char *a, size_t n_a, const char *b, size_t n_b)
{
	size_t row[MAX_WORD + 1][MAX_WORD + 1];

	for (size_t j = 0; j <= n_b; j++)
		row[0][j] = j;
	for (size_t i = 1; i <= n_a; i++) {
		row[i][0] = i;
		for (size_t j = 1; j <= n_b; j++) {
			size_t cost = a[i - 1] != b[j - 1];

			row[i][j] = least(row[i - 1][j - 1] + cost,
					  least(row[i - 1][j],
						row[i][j - 1]) + 1);
			if (i > 1 && j > 1 && a[i - 1] == b[j - 2] &&
			    a[i - 2] == b[j - 1])
				row[i][j] = least(row[i][j],
						  row[i - 2][j - 2] + 1);
		}
	}
	return row[n_a][n_b];
}

void seam_closest_word_try(struct seam_closest_word *best, const char *word,
			   const char *name)
{
	size_t n_word = strlen(word), n_name = strlen(name);
	size_t edits;

	if (n_word >= MAX_WORD || n_name >= MAX_WORD)
		return;
	edits = distance(word, n_word, name, n_name);
	if (edits > (n_word < 3 ? 1 : n_word / 3))
		return;
	if (!best->name || edits < best->distance)
		*best = (struct seam_closest_word) { name, edits };
}
