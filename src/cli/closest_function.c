/* SPDX-License-Identifier: MIT */
/* closest_function.c - similar names of functions; see closest_function.h */
#include "cli/closest_function.h"

#include <ctype.h>
#include <stdlib.h>

#include "cli/closest_word.h"

/* How similar @name is to @word: more is better, 0 is not. */
static int likeness(const char *word, const char *name)
{
	struct seam_closest_word nearest = { 0 };
	const char *at = strcasestr(name, word);
	size_t n = strlen(word);

	if (at && n > 1)
		return (at == name || !isalnum((unsigned char)at[-1])) &&
		       !isalnum((unsigned char)at[n]) ? 3 : 2;
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
