/* SPDX-License-Identifier: MIT */
/*
 * text.h - names from outside, escaped for where they are shown
 *
 * Symbols, paths and thread names come from the traced program or from a
 * file.  A terminal would act on the escapes in them, a browser on the tags,
 * a line-based format on the separators.  Every output goes through one of
 * these.  Valid UTF-8 stays as it is, except control characters, the
 * bidirectional overrides (U+202A..202E, U+2066..2069), which could make a
 * name read as another, and U+FFFE and U+FFFF, which no XML may hold
 * (Source: XML 1.0, production 2).
 */
#ifndef SEAM_TEXT_H
#define SEAM_TEXT_H

#include "base/base.h"

#include <stdio.h>

enum seam_text_form {
	SEAM_TEXT_TERMINAL,	/* \x1b for what is not printable */
	SEAM_TEXT_JSON,		/* inside a JSON string, quotes not included */
	SEAM_TEXT_XML,		/* inside XML text or a quoted attribute */
	SEAM_TEXT_FOLDED,	/* as terminal; ';' becomes ':' */
	SEAM_TEXT_DOT,		/* inside a quoted record label of Graphviz */
};

/*
 * Whether a byte of unknown encoding can be shown as it is.  isprint() would
 * accept bytes above 0x7f in a single-byte locale, and the output is UTF-8.
 */
static inline bool seam_text_is_printable(uint8_t byte)
{
	return byte >= 0x20 && byte < 0x7f;
}

/* Write @text in @form to @out. */
void seam_text_put(FILE *out, const char *text, enum seam_text_form form);

/*
 * The same into @buf, always NUL-terminated, cut at a character where it does
 * not fit.  Returns @buf, so that it can be an argument.
 */
const char *seam_text_copy(char *buf, size_t cap, const char *text,
			   enum seam_text_form form);

/*
 * @word quoted for a shell: in single quotes where it has anything but
 * letters, digits and _@%+=:,./-  Always NUL-terminated; returns the
 * length of the whole text, as snprintf().
 */
size_t seam_text_quote(char *buf, size_t cap, const char *word);

enum { SEAM_TEXT_SIZE = 32 };

/* @bytes, a multiple of 1024, as "516 KiB" or "16 MiB". */
const char *seam_text_size(char buf[SEAM_TEXT_SIZE], uint64_t bytes);

#endif /* SEAM_TEXT_H */
