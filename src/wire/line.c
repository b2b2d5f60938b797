/* SPDX-License-Identifier: MIT */
/* line.c - each field in one of two forms; see line.h */
#include "wire/line.h"

#include <inttypes.h>
#include <stdlib.h>

#include "base/text.h"

struct seam_line seam_line_begin(FILE *out, enum seam_line_form form,
				 uint64_t offset, const char *type, int width)
{
	struct seam_line line = {
		.out = out,
		.form = form,
		.j = seam_json_make(out, false),
	};

	if (seam_line_is_json(&line)) {
		seam_json_open(&line.j, NULL, '{');
		seam_json_u64(&line.j, "offset", offset);
		seam_json_string(&line.j, "type", type);
	} else {
		fprintf(out, "%#10" PRIx64 " %-*s", offset, width, type);
	}
	return line;
}

void seam_line_end(struct seam_line *line)
{
	if (seam_line_is_json(line))
		seam_json_close(&line->j);
	else
		fputc('\n', line->out);
}

/* In text: between two elements of a list. */
static const char *separator(struct seam_line *line)
{
	bool is_later = line->is_later;

	line->is_later = true;
	return is_later ? " " : "";
}

/* One call: a second fprintf() costs a dump a sixth of its time. */
#define PUT_NUMBER(line, name, format, v)				\
	((name) ? fprintf((line)->out, " %s=" format, (name), (v)) :	\
		  fprintf((line)->out, "%s" format, separator(line), (v)))

/* In text: " name=", or the separator. */
static FILE *begin_text(struct seam_line *line, const char *name)
{
	if (name)
		fprintf(line->out, " %s=", name);
	else
		fputs(separator(line), line->out);
	return line->out;
}

void seam_line_u64(struct seam_line *line, const char *name, uint64_t v)
{
	if (seam_line_is_json(line))
		seam_json_u64(&line->j, name, v);
	else
		PUT_NUMBER(line, name, "%" PRIu64, v);
}

void seam_line_i64(struct seam_line *line, const char *name, int64_t v)
{
	if (seam_line_is_json(line))
		seam_json_i64(&line->j, name, v);
	else
		PUT_NUMBER(line, name, "%" PRId64, v);
}

void seam_line_hex(struct seam_line *line, const char *name, uint64_t v)
{
	if (seam_line_is_json(line))
		seam_json_u64(&line->j, name, v);
	else
		PUT_NUMBER(line, name, "%#" PRIx64, v);
}

void seam_line_string(struct seam_line *line, const char *name, const char *v)
{
	if (seam_line_is_json(line)) {
		seam_json_string(&line->j, name, v);
		return;
	}
	fputc('"', begin_text(line, name));
	seam_text_put(line->out, v, SEAM_TEXT_TERMINAL);
	fputc('"', line->out);
}

void seam_line_text(struct seam_line *line, const char *name,
		    struct seam_bytes v)
{
	char *text = strndup(v.size ? (const char *)v.data : "", v.size);

	seam_line_string(line, name, text ? text : "");
	free(text);
}

void seam_line_bytes(struct seam_line *line, const char *name,
		     struct seam_bytes v)
{
	if (seam_line_is_json(line)) {
		seam_json_hex(&line->j, name, v);
		return;
	}
	begin_text(line, name);
	for (size_t i = 0; i < v.size; i++)
		fprintf(line->out, "%02x", v.data[i]);
}

void seam_line_data(struct seam_line *line, const char *name,
		    struct seam_bytes v)
{
	if (line->form == SEAM_LINE_TEXT)
		fprintf(begin_text(line, name), "[%zu bytes]", v.size);
	else
		seam_line_bytes(line, name, v);
}

void seam_line_mark(struct seam_line *line, const char *name, const char *text)
{
	if (seam_line_is_json(line))
		seam_json_bool(&line->j, name, true);
	else
		fprintf(line->out, " %s", text);
}

void seam_line_record(struct seam_line *line, const struct seam_record *table,
		      const void *in)
{
	for (size_t i = 0; i < table->n_fields; i++) {
		const struct seam_field *f = &table->fields[i];
		const void *at = (const char *)in + f->offset;

		if (f->type == SEAM_WIRE_CSTR)
			seam_line_string(line, f->name,
					 *(const char *const *)at);
		else if (f->type == SEAM_WIRE_REST)
			seam_line_data(line, f->name,
				       *(const struct seam_bytes *)at);
		else if (f->type == SEAM_WIRE_STRING)
			seam_line_text(line, f->name,
				       *(const struct seam_bytes *)at);
		else if (f->type == SEAM_WIRE_I32)
			seam_line_i64(line, f->name, *(const int32_t *)at);
		else if (f->type == SEAM_WIRE_I64)
			seam_line_i64(line, f->name, *(const int64_t *)at);
		else
			seam_line_hex(line, f->name, seam_wire_uint(f, in));
	}
}

void seam_line_open(struct seam_line *line, const char *name, char bracket)
{
	if (seam_line_is_json(line))
		seam_json_open(&line->j, name, bracket);
	else
		fputc(bracket, begin_text(line, name));
	line->is_later = false;
}

void seam_line_close(struct seam_line *line, char bracket)
{
	if (seam_line_is_json(line))
		seam_json_close(&line->j);
	else
		fputs(bracket == '}' ? " }" : "]", line->out);
	line->is_later = true;
}
