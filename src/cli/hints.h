/* SPDX-License-Identifier: MIT */
/*
 * hints.h - suggestions for a word that is not known
 *
 * The nearest name, and what Seam has in place of a command or an option of
 * perf.
 */
#pragma once

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

/* Whether @size bytes at @word are one of @words, "a|b|c". */
bool seam_word_is_among(const char *words, const char *word, size_t size);

/*
 * What to use in place of perf's command @command, or of its @option ("-F",
 * "--fields"); NULL: not known.  For an option that has a number in Seam only,
 * the meaning of the number.
 */
const char *seam_perf_equivalent(const char *command, const char *option);
