/* SPDX-License-Identifier: MIT */
/*
 * elide.h - names that fit their column, and stay distinct
 *
 * A name is cut in its middle, because names differ at both ends: a
 * namespace at the front, a method at the back.  Where two of a column would
 * look the same, the cut shows the place at which they differ; where no cut
 * keeps them distinct, they are not cut.
 *
 * Columns are those of a terminal: a wide character takes two, a combining
 * one none (wcwidth(3), by the locale).  Texts are escaped already.
 */
#ifndef SEAM_ELIDE_H
#define SEAM_ELIDE_H

#include "base/arena.h"

/* @text escaped for a terminal; see base/text.h.  NULL: out of memory. */
const char *seam_elide_escape(struct seam_arena *arena, const char *text);

/* Columns that the UTF-8 @text takes. */
size_t seam_elide_columns(const char *text);

/*
 * @text cut in its middle to at most @columns (4 or more), with an ellipsis,
 * "…" where @unicode and ".." elsewhere; @text itself where it fits.  NULL
 * when memory ran out.
 */
const char *seam_elide(struct seam_arena *arena, const char *text,
		       size_t columns, bool unicode);

/*
 * The same for all @n @texts of a column, in place: equal texts stay equal,
 * and distinct ones stay distinct.  A text may stay longer than @columns
 * to stay distinct.  0 or -ENOMEM.
 *
 * Cost: O(n log n) comparisons for each of at most 10 rounds.
 */
int seam_elide_all(struct seam_arena *arena, const char **texts, size_t n,
		   size_t columns, bool unicode);

/*
 * Shorten paths, in place: the file's name, with as many folders before it as
 * make it distinct.  0 or -ENOMEM.
 */
int seam_elide_paths(struct seam_arena *arena, const char **paths, size_t n);

#endif /* SEAM_ELIDE_H */
