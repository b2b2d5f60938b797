/* SPDX-License-Identifier: MIT */
/* closest_word.h - suggest a word for one that is not known */
#ifndef SEAM_CLOSEST_WORD_H
#define SEAM_CLOSEST_WORD_H

#include "base/base.h"

/* The best candidate so far.  Zeroed is valid: none yet. */
struct seam_closest_word {
	const char *name;	/* borrowed; NULL when nothing is near */
	size_t distance;
};

/*
 * Take @name into account as what @word may have meant.  Near is: at most
 * one edit for each three letters of @word, and at least one edit allowed;
 * an edit inserts, removes, replaces or swaps with the neighbour.
 * Names longer than 31 letters are never near.
 */
void seam_closest_word_try(struct seam_closest_word *best, const char *word,
			   const char *name);

#endif /* SEAM_CLOSEST_WORD_H */
