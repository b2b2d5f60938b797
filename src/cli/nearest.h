/* SPDX-License-Identifier: MIT */
/* nearest.h - the word that was probably meant */
#ifndef SEAM_NEAREST_H
#define SEAM_NEAREST_H

#include "base/base.h"

/* The best candidate so far.  Zeroed is valid: none yet. */
struct seam_nearest {
	const char *name;	/* borrowed; NULL when nothing is near */
	size_t distance;
};

/*
 * Take @name into account as what @word may have meant.  Near is: at most
 * one edit for each three letters of @word, and at least one edit allowed;
 * an edit inserts, removes, replaces or swaps with the neighbour.
 * Names longer than 31 letters are never near.
 */
void seam_nearest_try(struct seam_nearest *best, const char *word,
		      const char *name);

#endif /* SEAM_NEAREST_H */
