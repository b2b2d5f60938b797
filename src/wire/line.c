/* SPDX-License-Identifier: MIT */
/* line.c - each field in one of two forms; see line.h */
#include "wire/line.h"

#include <inttypes.h>

#include "base/text.h"

struct seam_line seam_line_begin(FILE *out, bool is_json, uint64_t offset,
				 const char *type, int width)
{
	struct seam_line line = {
		.out = out,
		.is_json = is_json,
		.j = seam_json_make(out, false),
	};

	if (is_json) {
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
	if (line->is_json)
		seam_json_close(&line->j);
	else
		fputc('\n', line->out);
}

void seam_line_u64(struct seam_line *line, const char *name, uint64_t v)
{
	if (line->is_json)
		seam_json_u64(&line->j, name, v);
	else
		fprintf(line->out, " %s=%" PRIu64, name, v);
}

void seam_line_i64(struct seam_line *line, const char *name, int64_t v)
{
	if (line->is_json)
		seam_json_i64(&line->j, name, v);
	else
		fprintf(line->out, " %s=%" PRId64, name, v);
}

void seam_line_hex(struct seam_line *line, const char *name, uint64_t v)
{
	if (line->is_json)
		seam_json_u64(&line->j, name, v);
	else
		fprintf(line->out, " %s=%#" PRIx64, name, v);
}

void seam_line_string(struct seam_line *line, const char *name, const char *v)
{
	if (line->is_json) {
		seam_json_string(&line->j, name, v);
		return;
	}
	fprintf(line->out, " %s=\"", name);
	seam_text_put(line->out, v, SEAM_TEXT_TERMINAL);
	fputc('"', line->out);
}

void seam_line_bytes(struct seam_line *line, const char *name,
		     struct seam_bytes v)
{
	if (line->is_json) {
		seam_json_hex(&line->j, name, v);
		return;
	}
	fprintf(line->out, " %s=", name);
	for (size_t i = 0; i < v.size; i++)
		fprintf(line->out, "%02x", v.data[i]);
}

void seam_line_size(struct seam_line *line, const char *name,
		    struct seam_bytes v)
{
	if (line->is_json)
		seam_json_hex(&line->j, name, v);
	else
		fprintf(line->out, " %s=[%zu bytes]", name, v.size);
}

void seam_line_mark(struct seam_line *line, const char *name, const char *text)
{
	if (line->is_json)
		seam_json_bool(&line->j, name, true);
	else
		fprintf(line->out, " %s", text);
}

void seam_line_record(struct seam_line *line, const struct seam_record *table,
		      const void *in)
{
	if (line->is_json)
		seam_wire_json(&line->j, table, in);
	else
		seam_wire_fields(line->out, table, in);
}

void seam_line_open_list(struct seam_line *line, const char *name)
{
	if (line->is_json)
		seam_json_open(&line->j, name, '[');
	else
		fprintf(line->out, " %s=[", name);
}

void seam_line_close_list(struct seam_line *line)
{
	if (line->is_json)
		seam_json_close(&line->j);
	else
		fputc(']', line->out);
}
