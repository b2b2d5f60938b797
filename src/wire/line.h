/* SPDX-License-Identifier: MIT */
/*
 * line.h - a record on a line: text for people, or an object of JSON
 *
 * What a dump shows is said once; the form of the line decides how it looks:
 *
 *	line = seam_line_begin(out, is_json, 0x1c8, "COMM", 14);
 *	seam_line_u64(&line, "pid", 42);
 *	seam_line_string(&line, "comm", "lua");
 *	seam_line_end(&line);
 *
 *	     0x1c8 COMM           pid=42 comm="lua"
 *	{"offset":456,"type":"COMM","pid":42,"comm":"lua"}
 *
 * Names from outside are escaped.  Errors of the stream are the caller's to
 * check, with ferror().
 */
#ifndef SEAM_LINE_H
#define SEAM_LINE_H

#include "wire/wire.h"

struct seam_line {
	FILE *out;
	bool is_json;
	struct seam_json j;
};

/* In text the @type is as wide as @width, or wider. */
struct seam_line seam_line_begin(FILE *out, bool is_json, uint64_t offset,
				 const char *type, int width);
void seam_line_end(struct seam_line *line);

void seam_line_u64(struct seam_line *line, const char *name, uint64_t v);
void seam_line_i64(struct seam_line *line, const char *name, int64_t v);
/* People read it in hex; JSON has numbers only. */
void seam_line_hex(struct seam_line *line, const char *name, uint64_t v);
void seam_line_string(struct seam_line *line, const char *name, const char *v);
/* Bytes as hexadecimal digits; _size() says in text only how many. */
void seam_line_bytes(struct seam_line *line, const char *name,
		     struct seam_bytes v);
void seam_line_size(struct seam_line *line, const char *name,
		    struct seam_bytes v);
/* Something that holds: true, or in text the word @text. */
void seam_line_mark(struct seam_line *line, const char *name, const char *text);
/* All fields of a record. */
void seam_line_record(struct seam_line *line, const struct seam_record *table,
		      const void *in);

/* What comes between these is the caller's: commas in text too. */
void seam_line_open_list(struct seam_line *line, const char *name);
void seam_line_close_list(struct seam_line *line);

#endif /* SEAM_LINE_H */
