/* SPDX-License-Identifier: MIT */
/* closest.c - edit distance over short words; see closest.h */
#include "cli/closest.h"

#include <stdlib.h>

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

/* -- functions ---------------------------------------------------------- */

/* How similar @name is to @word: more is better, 0 is not. */
static int likeness(const char *word, const char *name)
{
	struct seam_closest_word nearest = { 0 };

	if (word[0] && word[1] && strcasestr(name, word))
		return strstr(name, "@plt") ? 1 : 2;
	seam_closest_word_try(&nearest, word, name);
	return nearest.name != NULL;
}

static const char *name_of(const struct seam_profile *profile, size_t i)
{
	return seam_profile_text(profile, profile->functions.items[i].name);
}

const char *seam_closest_function(const struct seam_profile *profile,
				  const char *word)
{
	const struct seam_samples *s = &profile->samples;
	uint64_t *n = calloc(profile->functions.n + 1, sizeof(*n));
	const char *best = NULL;
	uint64_t most = 0;
	int best_likeness = 0;

	for (size_t i = 0; n && i < s->n; i++)
		if (s->stack[i])
			n[profile->frames.items[profile->stacks.items[
				s->stack[i]].frame].function]++;
	for (size_t i = 0; n && i < profile->functions.n; i++) {
		const char *name = name_of(profile, i);
		int like = profile->functions.items[i].is_named ?
			   likeness(word, name) : 0;

		if (!like || like < best_likeness ||
		    (best && like == best_likeness && n[i] <= most))
			continue;
		best = name;
		best_likeness = like;
		most = n[i];
	}
	free(n);
	return best;
}
