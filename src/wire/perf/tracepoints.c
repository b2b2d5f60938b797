/* SPDX-License-Identifier: MIT */
/*
 * tracepoints.c - formats out of TRACING_DATA, fields out of RAW bytes
 *
 * A field is a line of a format:
 *
 *	field:unsigned long args[6]; offset:16; size:48; signed:0;
 *	field:__data_loc char[] name; offset:8; size:4; signed:0;
 *
 * The texts come from a file and are untrusted.  libtraceevent, which prints
 * all of them as the kernel would, crashes on damaged ones (1.7.1); a dump
 * needs little of them, so they are read here.
 */
#include "wire/perf/tracepoints.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include "base/arena.h"
#include "base/array.h"
#include "base/cursor.h"

static const uint8_t magic[] = "\x17\x08\x44tracing";

enum tracepoint_kind {
	NUMBER,
	NUMBERS,		/* an array; each has element_bytes */
	TEXT,
};

struct format_field {
	const char *name;
	enum tracepoint_kind kind;
	uint32_t offset, size;	/* in the RAW bytes */
	uint32_t element_bytes;
	bool is_signed;
	bool is_dynamic;	/* in its place is (size << 16 | offset) */
	bool is_relative;	/* and the offset counts from the end of that */
};

struct event {
	uint64_t id;
	const char *system, *name;
	size_t first, n;	/* in fields */
};

struct seam_tracepoints {
	enum seam_endian endian;
	struct seam_arena arena;
	SEAM_ARRAY(struct event) events;
	SEAM_ARRAY(struct format_field) fields;
};

/* -- one format --------------------------------------------------------- */

static bool begins(const char *text, const char *with)
{
	return strncmp(text, with, strlen(with)) == 0;
}

/* The number after @key in @text; 0 where there is none. */
static uint32_t number_of(const char *text, const char *key)
{
	const char *p = text ? strstr(text, key) : NULL;
	unsigned long v = p ? strtoul(p + strlen(key), NULL, 10) : 0;

	return v > UINT32_MAX ? UINT32_MAX : (uint32_t)v;
}

static enum tracepoint_kind kind_of(const char *type, bool is_many)
{
	bool is_char = strstr(type, "char") && !strstr(type, "unsigned char") &&
		       !strchr(type, '*');

	return !is_many ? NUMBER : is_char ? TEXT : NUMBERS;
}

/* Bytes of one number of a dynamic array, by the name of its type. */
static uint32_t type_bytes(const char *type)
{
	if (strstr(type, "64") || strstr(type, "long"))
		return 8;
	if (strstr(type, "32") || strstr(type, "int"))
		return 4;
	return strstr(type, "16") || strstr(type, "short") ? 2 : 1;
}

/* A name that C allows, so it needs no escapes, in JSON either. */
static bool is_identifier(const char *name)
{
	size_t n = 0;

	while (isalnum((unsigned char)name[n]) || name[n] == '_')
		n++;
	return n > 0 && !name[n];
}

/* "unsigned long args[6]; offset:16; ...", which is cut up. */
static int add_field(struct seam_tracepoints *t, char *line)
{
	char *declaration = strsep(&line, ";");
	char *bracket = strrchr(declaration, '['), *name;
	uint32_t count = bracket ? number_of(bracket, "[") : 0;
	struct format_field field = {
		.offset = number_of(line, "offset:"),
		.size = number_of(line, "size:"),
		.is_signed = number_of(line, "signed:"),
		.is_relative = begins(declaration, "__rel_loc"),
	};
	char type[128];

	/* "__data_loc char[] name" has its brackets in the type */
	if (bracket && strcmp(bracket + strcspn(bracket, "]"), "]") == 0)
		*bracket = '\0';
	else
		count = 0;
	name = declaration + strlen(declaration);
	while (name > declaration && !strchr(" *", name[-1]))
		name--;
	if (!is_identifier(name) || begins(name, "common_"))
		return 0;
	snprintf(type, sizeof(type), "%.*s", (int)(name - declaration),
		 declaration);
	field.name = name;
	field.is_dynamic = field.is_relative ||
			   begins(declaration, "__data_loc");
	field.kind = kind_of(type, count > 0 || field.is_dynamic);
	field.element_bytes = count ? field.size / count : type_bytes(type);
	return SEAM_ARRAY_ADD(&t->fields, field) ? 0 : -ENOMEM;
}

/* The lines of @format, which are cut up; names point into them. */
static int add_event(struct seam_tracepoints *t, char *format,
		     const char *system)
{
	struct event event = { .system = system, .first = t->fields.n };
	char *line;

	while ((line = strsep(&format, "\n")) && !begins(line, "print fmt:")) {
		line += strspn(line, " \t");
		if (begins(line, "name: "))
			event.name = line + strlen("name: ");
		else if (begins(line, "ID: "))
			event.id = number_of(line, "ID: ");
		else if (begins(line, "field:") &&
			 add_field(t, line + strlen("field:")))
			return -ENOMEM;
	}
	event.n = t->fields.n - event.first;
	return !event.name || SEAM_ARRAY_ADD(&t->events, event) ? 0 : -ENOMEM;
}

/* -- all of them -------------------------------------------------------- */

static struct seam_bytes take_sized(struct seam_cursor *c)
{
	size_t n = seam_cursor_count(c, seam_cursor_u64(c), 1);

	return (struct seam_bytes) { seam_cursor_bytes(c, n), n };
}

/* Magic, version, byte order, word and page size; then two header pages. */
static void read_head(struct seam_tracepoints *t, struct seam_cursor *c)
{
	seam_cursor_skip(c, sizeof(magic) - 1);
	seam_cursor_cstr(c);
	t->endian = seam_cursor_u8(c) ? SEAM_BIG : SEAM_LITTLE;
	c->swap = seam_cursor_make(NULL, 0, t->endian).swap;
	seam_cursor_u8(c);
	seam_cursor_u32(c);
	for (int i = 0; i < 2; i++) {
		seam_cursor_cstr(c);	/* header_page, header_event */
		take_sized(c);
	}
}

/* @n formats, each with at least the 8 bytes of its size. */
static int read_formats(struct seam_tracepoints *t, struct seam_cursor *c,
			uint32_t n, const char *system)
{
	for (size_t i = seam_cursor_count(c, n, 8); i > 0; i--) {
		struct seam_bytes format = take_sized(c);
		char *text;

		if (c->error)
			break;
		text = seam_arena_text(&t->arena, (const char *)format.data,
				       format.size);
		if (!text || add_event(t, text, system))
			return -ENOMEM;
	}
	return 0;
}

static int read_systems(struct seam_tracepoints *t, struct seam_cursor *c)
{
	uint32_t n = seam_cursor_u32(c);
	int r = read_formats(t, c, n, "ftrace");

	n = seam_cursor_u32(c);
	for (size_t i = seam_cursor_count(c, n, 5); r == 0 && i > 0; i--) {
		const char *system = seam_cursor_cstr(c);

		n = seam_cursor_u32(c);
		if (c->error)
			break;
		r = read_formats(t, c, n, system);
	}
	return r;
}

static int by_id(const void *a, const void *b)
{
	const struct event *x = a, *y = b;

	return SEAM_COMPARE(x->id, y->id);
}

struct seam_tracepoints *seam_tracepoints_new(struct seam_bytes blob)
{
	struct seam_cursor c = seam_cursor_over(blob, SEAM_LITTLE);
	struct seam_tracepoints *t;

	if (blob.size < sizeof(magic) ||
	    memcmp(blob.data, magic, sizeof(magic) - 1) != 0)
		return NULL;
	t = calloc(1, sizeof(*t));
	if (!t)
		return NULL;
	read_head(t, &c);
	if (read_systems(t, &c)) {
		seam_tracepoints_free(t);
		return NULL;
	}
	SEAM_ARRAY_SORT(&t->events, by_id);
	return t;
}

void seam_tracepoints_free(struct seam_tracepoints *t)
{
	if (!t)
		return;
	free(t->events.items);
	free(t->fields.items);
	seam_arena_fini(&t->arena);
	free(t);
}

static const struct event *find(const struct seam_tracepoints *t, uint64_t id)
{
	size_t n = t ? t->events.n : 0;
	size_t at = SEAM_ARRAY_SEARCH(i, n, t->events.items[i].id < id);

	return at < n && t->events.items[at].id == id ? &t->events.items[at] :
	       NULL;
}

const char *seam_tracepoints_name(const struct seam_tracepoints *t,
				  uint64_t id, char *buf, size_t cap)
{
	const struct event *event = find(t, id);

	if (!event)
		return NULL;
	snprintf(buf, cap, "%s:%s", event->system, event->name);
	return buf;
}

/* -- the fields of a sample --------------------------------------------- */

/* An integer of 1, 2, 4 or 8 bytes; false when it is of another size. */
static bool read_number(const struct seam_tracepoints *t,
			struct seam_bytes bytes, bool is_signed, int64_t *v)
{
	struct seam_cursor c = seam_cursor_over(bytes, t->endian);

	unsigned int unused_bits = 64 - 8 * (unsigned int)(bytes.size & 15);
	uint64_t u;

	switch (bytes.size) {
	case 1: u = seam_cursor_u8(&c); break;
	case 2: u = seam_cursor_u16(&c); break;
	case 4: u = seam_cursor_u32(&c); break;
	case 8: u = seam_cursor_u64(&c); break;
	default: return false;
	}
	*v = is_signed ? (int64_t)(u << unused_bits) >> unused_bits :
	     (int64_t)u;
	return true;
}

/* Those @size bytes of @raw, if it has them. */
static bool slice(struct seam_bytes raw, size_t offset, size_t size,
		  struct seam_bytes *out)
{
	if (offset > raw.size || size > raw.size - offset)
		return false;
	*out = (struct seam_bytes) { raw.data + offset, size };
	return true;
}

/* Where a field lies, if it lies in @raw. */
static bool locate(const struct seam_tracepoints *t,
		   const struct format_field *field,
		   struct seam_bytes raw, struct seam_bytes *at)
{
	size_t offset = field->offset, size = field->size;
	int64_t v;

	if (!slice(raw, offset, size, at))
		return false;
	if (!field->is_dynamic)
		return true;
	if (size != 4 || !read_number(t, *at, false, &v))
		return false;
	return slice(raw, (size_t)(v & 0xffff) + (field->is_relative ?
		     offset + size : 0), (size_t)(v >> 16 & 0xffff), at);
}

static void put_number(struct seam_line *line, const char *name,
		       bool is_signed, int64_t v)
{
	if (is_signed)
		seam_line_i64(line, name, v);
	else
		seam_line_hex(line, name, (uint64_t)v);
}

static void put_numbers(const struct seam_tracepoints *t,
			struct seam_line *line,
			const struct format_field *field,
			struct seam_bytes bytes)
{
	size_t each = field->element_bytes ? field->element_bytes : 1;
	int64_t v;

	seam_line_open(line, field->name, '[');
	for (size_t at = 0; each <= bytes.size - at; at += each) {
		struct seam_bytes one = { bytes.data + at, each };

		if (!read_number(t, one, field->is_signed, &v))
			break;
		put_number(line, NULL, field->is_signed, v);
	}
	seam_line_close(line, ']');
}

static void put_field(const struct seam_tracepoints *t, struct seam_line *line,
		      const struct format_field *field, struct seam_bytes raw)
{
	struct seam_bytes at;
	int64_t v;

	if (!locate(t, field, raw, &at))
		return;
	if (field->kind == TEXT)
		seam_line_text(line, field->name, at);
	else if (field->kind == NUMBERS)
		put_numbers(t, line, field, at);
	else if (read_number(t, at, field->is_signed, &v))
		put_number(line, field->name, field->is_signed, v);
	else
		seam_line_data(line, field->name, at);
}

bool seam_tracepoints_fields(const struct seam_tracepoints *t, uint64_t id,
			     struct seam_bytes raw, struct seam_line *line)
{
	const struct event *event = find(t, id);

	if (!event)
		return false;
	for (size_t i = 0; i < event->n; i++)
		put_field(t, line, &t->fields.items[event->first + i], raw);
	return true;
}
