/* SPDX-License-Identifier: MIT */
/* tracepoints.c - formats out of TRACING_DATA, fields out of RAW bytes */
#include "wire/tracepoints.h"

#include <inttypes.h>
#include <stdlib.h>
#include <traceevent/event-parse.h>

#include "base/cursor.h"
#include "base/text.h"

static const uint8_t magic[] = "\x17\x08\x44tracing";

/* A format is a page or two of text; libtraceevent sees no more. */
#define MAX_FORMAT_BYTES 65536

struct seam_tracepoints {
	struct tep_handle *tep;
	enum seam_endian endian;
};

static void skip_sized(struct seam_cursor *c)
{
	uint64_t size = seam_cursor_u64(c);

	seam_cursor_skip(c, seam_cursor_count(c, size, 1));
}

static void take_format(struct seam_tracepoints *t, struct seam_cursor *c,
			const char *system)
{
	uint64_t size = seam_cursor_u64(c);
	size_t n = seam_cursor_count(c, size, 1);
	const uint8_t *text = seam_cursor_bytes(c, n);

	if (text && n <= MAX_FORMAT_BYTES)
		tep_parse_event(t->tep, (const char *)text, n, system);
}

/* Magic, version, byte order, word and page size; then two header pages. */
static void read_head(struct seam_tracepoints *t, struct seam_cursor *c)
{
	seam_cursor_skip(c, sizeof(magic) - 1);
	seam_cursor_cstr(c);
	t->endian = seam_cursor_u8(c) ? SEAM_BIG : SEAM_LITTLE;
	tep_set_file_bigendian(t->tep, t->endian == SEAM_BIG ?
			       TEP_BIG_ENDIAN : TEP_LITTLE_ENDIAN);
	tep_set_long_size(t->tep, seam_cursor_u8(c));
	seam_cursor_u32(c);
	c->swap = seam_cursor_make(NULL, 0, t->endian).swap;
	for (int i = 0; i < 2; i++) {
		seam_cursor_cstr(c);	/* header_page, header_event */
		skip_sized(c);
	}
}

static void read_formats(struct seam_tracepoints *t, struct seam_cursor *c)
{
	uint32_t n = seam_cursor_u32(c);

	for (n = (uint32_t)seam_cursor_count(c, n, 8); n > 0 && !c->error; n--)
		take_format(t, c, "ftrace");
	n = seam_cursor_u32(c);
	for (n = (uint32_t)seam_cursor_count(c, n, 5); n > 0 && !c->error;
	     n--) {
		const char *system = seam_cursor_cstr(c);
		uint32_t events = seam_cursor_u32(c);

		for (events = (uint32_t)seam_cursor_count(c, events, 8);
		     events > 0 && !c->error; events--)
			take_format(t, c, system);
	}
}

struct seam_tracepoints *seam_tracepoints_new(struct seam_bytes blob)
{
	struct seam_cursor c = seam_cursor_make(blob.data, blob.size,
						SEAM_LITTLE);
	struct seam_tracepoints *t;

	if (blob.size < sizeof(magic) ||
	    memcmp(blob.data, magic, sizeof(magic) - 1) != 0)
		return NULL;
	t = calloc(1, sizeof(*t));
	if (!t)
		return NULL;
	tep_set_loglevel(TEP_LOG_NONE);
	t->tep = tep_alloc();
	if (!t->tep) {
		free(t);
		return NULL;
	}
	read_head(t, &c);
	read_formats(t, &c);
	return t;
}

void seam_tracepoints_free(struct seam_tracepoints *t)
{
	if (t) {
		tep_free(t->tep);
		free(t);
	}
}

static struct tep_event *find(const struct seam_tracepoints *t, uint64_t id)
{
	return t && id <= INT32_MAX ? tep_find_event(t->tep, (int)id) : NULL;
}

const char *seam_tracepoints_name(const struct seam_tracepoints *t,
				  uint64_t id, char *buf, size_t cap)
{
	const struct tep_event *event = find(t, id);

	if (!event)
		return NULL;
	snprintf(buf, cap, "%s:%s", event->system, event->name);
	return buf;
}

/* An integer of 1, 2, 4 or 8 bytes; false when it is of another size. */
static bool read_number(const struct seam_tracepoints *t,
			struct seam_bytes bytes, bool is_signed, int64_t *v)
{
	struct seam_cursor c = seam_cursor_make(bytes.data, bytes.size,
						t->endian);

	switch (bytes.size) {
	case 1: *v = seam_cursor_u8(&c);
		*v = is_signed ? (int8_t)*v : *v;
		return true;
	case 2: *v = seam_cursor_u16(&c);
		*v = is_signed ? (int16_t)*v : *v;
		return true;
	case 4: *v = seam_cursor_u32(&c);
		*v = is_signed ? (int32_t)*v : *v;
		return true;
	case 8: *v = (int64_t)seam_cursor_u64(&c);
		return true;
	}
	return false;
}

static void put_number(struct seam_json *j, FILE *out, const char *name,
		       bool is_signed, int64_t v)
{
	if (j && is_signed)
		seam_json_i64(j, name, v);
	else if (j)
		seam_json_u64(j, name, (uint64_t)v);
	else if (is_signed)
		fprintf(out, "%" PRId64, v);
	else
		fprintf(out, "%#" PRIx64, (uint64_t)v);
}

static void put_text(struct seam_json *j, FILE *out, const char *name,
		     struct seam_bytes bytes)
{
	char text[4096];
	size_t n = bytes.size < sizeof(text) - 1 ? bytes.size :
		   sizeof(text) - 1;

	memcpy(text, bytes.data, n);
	text[n] = '\0';
	if (j) {
		seam_json_string(j, name, text);
		return;
	}
	fputc('"', out);
	seam_text_put(out, text, SEAM_TEXT_TERMINAL);
	fputc('"', out);
}

static void put_array(const struct seam_tracepoints *t, struct seam_json *j,
		      FILE *out, const struct tep_format_field *field,
		      struct seam_bytes bytes)
{
	bool is_signed = field->flags & TEP_FIELD_IS_SIGNED;
	size_t each = field->elementsize > 0 ? (size_t)field->elementsize : 1;
	int64_t v;

	if (j)
		seam_json_open(j, field->name, '[');
	else
		fputc('[', out);
	for (size_t at = 0; each <= bytes.size - at; at += each) {
		struct seam_bytes one = { bytes.data + at, each };

		if (!read_number(t, one, is_signed, &v))
			break;
		if (!j && at)
			fputc(' ', out);
		put_number(j, out, NULL, is_signed, v);
	}
	if (j)
		seam_json_close(j);
	else
		fputc(']', out);
}

/* Where a field lies: dynamic ones have (size << 16 | offset) in their place. */
static bool locate(const struct seam_tracepoints *t,
		   const struct tep_format_field *field, struct seam_bytes raw,
		   struct seam_bytes *at)
{
	size_t offset = (size_t)field->offset, size = (size_t)field->size;
	int64_t v;

	if (field->offset < 0 || field->size < 0 || offset > raw.size ||
	    size > raw.size - offset)
		return false;
	*at = (struct seam_bytes) { raw.data + offset, size };
	if (!(field->flags & TEP_FIELD_IS_DYNAMIC))
		return true;
	if (!read_number(t, *at, false, &v) || size != 4)
		return false;
	offset = (size_t)(v & 0xffff) +
		 (field->flags & TEP_FIELD_IS_RELATIVE ? offset + size : 0);
	size = (size_t)(v >> 16 & 0xffff);
	if (offset > raw.size || size > raw.size - offset)
		return false;
	*at = (struct seam_bytes) { raw.data + offset, size };
	return true;
}

static void put_field(const struct seam_tracepoints *t, struct seam_json *j,
		      FILE *out, const struct tep_format_field *field,
		      struct seam_bytes raw)
{
	bool is_signed = field->flags & TEP_FIELD_IS_SIGNED;
	struct seam_bytes at;
	int64_t v;

	if (!locate(t, field, raw, &at))
		return;
	if (!j)
		fprintf(out, " %s=", field->name);
	if (field->flags & TEP_FIELD_IS_STRING)
		put_text(j, out, field->name, at);
	else if (field->flags & TEP_FIELD_IS_ARRAY)
		put_array(t, j, out, field, at);
	else if (read_number(t, at, is_signed, &v))
		put_number(j, out, field->name, is_signed, v);
	else if (j)
		seam_json_hex(j, field->name, at);
}

bool seam_tracepoints_fields(const struct seam_tracepoints *t, uint64_t id,
			     struct seam_bytes raw, struct seam_json *j,
			     FILE *out)
{
	struct tep_event *event = find(t, id);

	if (!event)
		return false;
	for (const struct tep_format_field *field = event->format.fields;
	     field; field = field->next)
		put_field(t, j, out, field, raw);
	return true;
}
