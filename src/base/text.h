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
#pragma once

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

static inline bool seam_text_are_printable(struct seam_bytes bytes)
{
	for (size_t i = 0; i < bytes.size; i++)
		if (!seam_text_is_printable(bytes.data[i]))
			return false;
	return true;
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

/* The value of a hexadecimal digit; 16 for all else. */
static inline unsigned int seam_text_digit(char c)
{
	unsigned int letter = (unsigned char)c | 0x20u;

	return c >= '0' && c <= '9' ? (unsigned int)(c - '0') :
	       letter >= 'a' && letter <= 'f' ? letter - 'a' + 10 : 16;
}

/*
 * The number of the digits of @base, 10 or 16, from @at on but before @end.
 * Returns what is after them; NULL where there are none, or more than 64 bits.
 */
static inline const char *seam_text_number(const char *at, const char *end,
					   unsigned int base, uint64_t *value)
{
	const char *p = at;

	for (*value = 0; p < end && seam_text_digit(*p) < base; p++)
		if (__builtin_mul_overflow(*value, base, value) ||
		    __builtin_add_overflow(*value, seam_text_digit(*p), value))
			return NULL;
	return p > at ? p : NULL;
}

/*
 * The nanoseconds of @text, a number and a unit: ns, us, ms or s.  False where
 * it is none, or more than 64 bits.
 */
bool seam_text_ns(const char *text, uint64_t *ns);

/* Two lower-case digits a byte, with a NUL.  Returns @text. */
const char *seam_text_hex(char *text, const uint8_t *bytes, size_t n);

/* At most @cap bytes of such @text; 0 where it is not of that form. */
size_t seam_text_unhex(uint8_t *bytes, size_t cap, const char *text,
		       size_t size);

enum { SEAM_TEXT_SIZE = 32 };

/* @bytes, a multiple of 1024, as "516 KiB" or "16 MiB". */
const char *seam_text_size(char buf[SEAM_TEXT_SIZE], uint64_t bytes);
