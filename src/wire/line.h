/* SPDX-License-Identifier: MIT */
/*
 * line.h - a record on a line: text for people, or an object of JSON
 *
 * All dumps are written through this.  They name each field once; the form of
 * the line decides how it looks:
 *
 *	line = seam_line_begin(out, form, 0x1c8, "COMM", 14);
 *	seam_line_u64(&line, "pid", 42);
 *	seam_line_string(&line, "comm", "lua");
 *	seam_line_end(&line);
 *
 *	     0x1c8 COMM           pid=42 comm="lua"
 *	{"offset":456,"type":"COMM","pid":42,"comm":"lua"}
 *
 * A @name of NULL means an element of a list.  Names from outside are
 * escaped.  Errors of the stream are the caller's to check, with ferror().
 */
#pragma once

#include "base/json.h"
#include "wire/wire.h"

enum seam_line_form {
	SEAM_LINE_TEXT,
	SEAM_LINE_TEXT_BYTES,		/* code and tables as hex */
	SEAM_LINE_JSON,			/* an object a line, hex too */
};

struct seam_line {
	FILE *out;
	enum seam_line_form form;
	bool is_later;		/* text: not the first element of a list */
	struct seam_json j;
};

static inline bool seam_line_is_json(const struct seam_line *line)
{
	return line->form == SEAM_LINE_JSON;
}

/* In text, @type takes @width columns or more. */
struct seam_line seam_line_begin(FILE *out, enum seam_line_form form,
				 uint64_t offset, const char *type, int width);
void seam_line_end(struct seam_line *line);

void seam_line_u64(struct seam_line *line, const char *name, uint64_t v);
void seam_line_i64(struct seam_line *line, const char *name, int64_t v);
/* In hex for people; JSON has decimal numbers only. */
void seam_line_hex(struct seam_line *line, const char *name, uint64_t v);
void seam_line_string(struct seam_line *line, const char *name, const char *v);
/* Text of this size, cut at a NUL. */
void seam_line_text(struct seam_line *line, const char *name,
		    struct seam_bytes v);
/* A few bytes, as hexadecimal digits in every form. */
void seam_line_bytes(struct seam_line *line, const char *name,
		     struct seam_bytes v);
/* Bytes of any number: SEAM_LINE_TEXT has only their number. */
void seam_line_data(struct seam_line *line, const char *name,
		    struct seam_bytes v);
/* A fact: true in JSON, the word @text in text. */
void seam_line_mark(struct seam_line *line, const char *name, const char *text);
/* All fields of a record, by its table. */
void seam_line_record(struct seam_line *line, const struct seam_record *table,
		      const void *in);

/* An object, @bracket is '{' and '}'; or a list, '[' and ']'. */
void seam_line_open(struct seam_line *line, const char *name, char bracket);
void seam_line_close(struct seam_line *line, char bracket);
