/* SPDX-License-Identifier: MIT */
/*
 * view.h - text for people: numbers, columns, colours, what a terminal can do
 *
 * On a terminal a line fits the width; elsewhere nothing is cut.
 */
#pragma once

#include "base/arena.h"
#include "model/profile/profile.h"

struct seam_view {
	FILE *out;
	unsigned int width;	/* columns of the terminal; 0: no terminal */
	bool color;
	bool unicode;		/* the locale's encoding is UTF-8 */
};

/* The capabilities of @out; the caller decides about colour. */
struct seam_view seam_view_make(FILE *out, bool color);

enum seam_style {
	SEAM_STYLE_PLAIN,
	SEAM_STYLE_BOLD,
	SEAM_STYLE_DIM,
	SEAM_STYLE_WARN,
	SEAM_STYLE_LAYER,	/* + enum seam_layer */
};

/* Begin a style; SEAM_STYLE_PLAIN ends it.  Nothing without colour. */
void seam_view_style(const struct seam_view *view, unsigned int style);

/* Print in a style, and end it; @text is escaped, @fmt has no foreign text. */
void seam_view_text(const struct seam_view *view, unsigned int style,
		    const char *text);
__attribute__((format(printf, 3, 4)))
void seam_view_print(const struct seam_view *view, unsigned int style,
		     const char *fmt, ...);

enum { SEAM_NUMBER = 40 };	/* room for any number below */

/* "1,234,567"; returns @buf, as all of these do. */
const char *seam_format_count(char buf[SEAM_NUMBER], uint64_t n);
/* "1 record", "1,234 records" of the noun "record". */
const char *seam_format_amount(char buf[SEAM_NUMBER], uint64_t n,
			       const char *noun);
/* "1.23 s", "45.1 ms" for nanoseconds; "1.23 G", "512" for others. */
const char *seam_format_weight(char buf[SEAM_NUMBER], uint64_t weight,
			       enum seam_unit unit);
/* "12.34%"; "0.00%" of nothing. */
const char *seam_format_percent(char buf[SEAM_NUMBER], uint64_t part,
				uint64_t whole);

/*
 * @text, escaped, in at most @columns: cut in its middle where it takes more.
 * In a view without a width it is never cut.
 */
void seam_view_cell(const struct seam_view *view, const char *text,
		    size_t columns);

/*
 * A bar of @columns cells, filled to @part of @whole in eighths of a cell; in
 * whole cells without unicode.
 */
void seam_view_bar(const struct seam_view *view, uint64_t part, uint64_t whole,
		   size_t columns);

/* @text escaped for a terminal; see base/text.h.  NULL: out of memory. */
const char *seam_elide_escape(struct seam_arena *arena, const char *text);

/* Columns that the UTF-8 @text takes. */
size_t seam_elide_columns(const char *text);

/*
 * Cut all @n @texts of a column in their middle, in place, to at most @columns
 * (4 or more), with an ellipsis, "…" where @unicode and ".." elsewhere: equal
 * texts stay equal, and distinct ones stay distinct.  A text may stay longer
 * than @columns to stay distinct.  0 or -ENOMEM.
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
