/* SPDX-License-Identifier: MIT */
/* closest.h - suggest a word, or a function, for one that is not known */
#ifndef SEAM_CLOSEST_H
#define SEAM_CLOSEST_H

#include "model/profile/profile.h"

/* The best candidate so far.  Zeroed is valid: none. */
struct seam_closest_word {
	const char *name;	/* borrowed; NULL when nothing is near */
	size_t distance;
};

/*
 * Make @name the best candidate for @word if it is nearer.  A name is near
 * within one edit for each three letters of @word, and at least one; an edit
 * inserts, removes or replaces a letter, or swaps two neighbours.  Names
 * longer than 31 letters are never near.
 */
void seam_closest_word_try(struct seam_closest_word *best, const char *word,
			   const char *name);

/*
 * The function with the name most similar to @word; among equals the one with
 * the most samples.  NULL: none is similar.
 */
const char *seam_closest_function(const struct seam_profile *profile,
				  const char *word);

#endif /* SEAM_CLOSEST_H */
