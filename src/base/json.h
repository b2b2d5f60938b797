/* SPDX-License-Identifier: MIT */
/*
 * json.h - JSON written as it is produced; strings and data of others read
 *
 * A writer keeps only the open brackets, so a dump of a billion records needs
 * no tree in memory.  It writes commas, quotes and escapes; keys are literals
 * of the program and not escaped.
 *
 *	seam_json_open(&j, NULL, '{');
 *	seam_json_u64(&j, "samples", n);
 *	seam_json_open(&j, "rows", '[');
 *	...
 *	seam_json_close(&j);
 *	seam_json_close(&j);
 *
 * @key is NULL for an element of an array and for the outermost value.
 * Errors of the stream are the caller's to check, with ferror().
 */
#pragma once

#include "base/base.h"

#include <stdio.h>

/* Two levels for each frame of a nested call tree of 240. */
enum { SEAM_JSON_DEPTH = 512 };

struct seam_json {
	FILE *out;
	int depth;
	bool pretty;			/* a line for each value */
	bool begun[SEAM_JSON_DEPTH + 1]; /* a value was written at this depth */
	char closer[SEAM_JSON_DEPTH];
};

struct seam_json seam_json_make(FILE *out, bool pretty);

/* Begin an object or array; @bracket is '{' or '['. */
void seam_json_open(struct seam_json *j, const char *key, char bracket);
void seam_json_close(struct seam_json *j);

void seam_json_u64(struct seam_json *j, const char *key, uint64_t v);
void seam_json_i64(struct seam_json *j, const char *key, int64_t v);
/* @v / 10^@decimals, exact; zeros at the end are left out. */
void seam_json_fixed(struct seam_json *j, const char *key, uint64_t v,
		     unsigned int decimals);
/* In 15 or 17 digits, enough to read it back; null when not finite. */
void seam_json_double(struct seam_json *j, const char *key, double v);
void seam_json_bool(struct seam_json *j, const char *key, bool v);
/* NULL writes null. */
void seam_json_string(struct seam_json *j, const char *key, const char *v);
/* Bytes as a string of hexadecimal digits. */
void seam_json_hex(struct seam_json *j, const char *key, struct seam_bytes v);

/*
 * Whether @text of others is one object or array (RFC 8259), and can be part of
 * a JSON document as it is.
 */
bool seam_json_check(struct seam_bytes text);

/*
 * The characters of the JSON string @text, quotes included, into @buf, with a
 * NUL.  False: @text is not a string, has a NUL, or needs more than @cap bytes.
 */
bool seam_json_unquote(char *buf, size_t cap, struct seam_bytes text);
