/* SPDX-License-Identifier: MIT */
/*
 * wire.h - one table a record: reader, writer and dumps from it
 *
 * A record's wire layout is its C struct's fields in declaration order, each
 * packed (no padding) in the byte order of the file.  What a field must satisfy
 * (a size that agrees with another, a flag that must be zero) is checked by a
 * short function beside the table, as in jit/jitdump.c.  Tests compare the
 * tables with the pages of doc/formats.
 */
#pragma once

#include "base/base.h"
#include "base/cursor.h"

#include <stdio.h>

enum seam_wire_type {
	SEAM_WIRE_U8,
	SEAM_WIRE_U16,
	SEAM_WIRE_U32,
	SEAM_WIRE_U64,
	SEAM_WIRE_I32,
	SEAM_WIRE_I64,
	SEAM_WIRE_CSTR,		/* const char *, NUL-terminated, borrowed */
	SEAM_WIRE_REST,		/* struct seam_bytes, must be the last field */
	SEAM_WIRE_ULEB,		/* uint64_t as ULEB128 of at most 10 bytes */
	SEAM_WIRE_STRING,	/* struct seam_bytes after its size as ULEB */
};

struct seam_field {
	const char *name;
	const char *doc;	/* meaning and unit; NULL: see the C struct */
	size_t offset;		/* in the C struct */
	enum seam_wire_type type;
};

struct seam_record {
	const char *name;
	const char *spec;	/* where the layout is defined */
	const struct seam_field *fields;
	size_t n_fields;
};

/* The wire type follows from the C type, so the two cannot disagree. */
#define SEAM_FIELD(record, member, text)				\
	{								\
		.name = #member,					\
		.doc = (text),						\
		.offset = offsetof(record, member),			\
		.type = _Generic(((record *)0)->member,			\
			uint8_t: SEAM_WIRE_U8,				\
			uint16_t: SEAM_WIRE_U16,			\
			uint32_t: SEAM_WIRE_U32,			\
			uint64_t: SEAM_WIRE_U64,			\
			int32_t: SEAM_WIRE_I32,				\
			int64_t: SEAM_WIRE_I64,				\
			const char *: SEAM_WIRE_CSTR,			\
			struct seam_bytes: SEAM_WIRE_REST),		\
	}

/* The same for types of the wire that C does not have. */
#define SEAM_FIELD_ULEB(record, member, text)				\
	{								\
		.name = #member, .doc = (text),				\
		.offset = offsetof(record, member),			\
		.type = _Generic(((record *)0)->member,			\
			uint64_t: SEAM_WIRE_ULEB),			\
	}
#define SEAM_FIELD_STRING(record, member, text)				\
	{								\
		.name = #member, .doc = (text),				\
		.offset = offsetof(record, member),			\
		.type = _Generic(((record *)0)->member,			\
			struct seam_bytes: SEAM_WIRE_STRING),		\
	}

/* A table of the fields that follow, each a SEAM_FIELD(). */
#define SEAM_RECORD(label, source, ...)					\
	{								\
		.name = (label), .spec = (source),			\
		.fields = (const struct seam_field[]) { __VA_ARGS__ },	\
		.n_fields = sizeof((const struct seam_field[]) {	\
				__VA_ARGS__ }) /			\
			    sizeof(struct seam_field),			\
	}

/*
 * Read one record into @out, a zeroed or reusable struct of the table's type.
 * Returns 0 or the cursor's error; on error @out is partly written.
 */
int seam_wire_read(struct seam_cursor *c, const struct seam_record *rec,
		   void *out);

/*
 * Write @in at @buf in byte order @endian.  Returns the record's size, which
 * may exceed @cap, as snprintf() does; then @buf holds nothing useful.
 */
size_t seam_wire_write(const struct seam_record *rec, const void *in,
		       enum seam_endian endian, uint8_t *buf, size_t cap);

/* Write the low @n bytes of @v, at most 8, in byte order @endian. */
void seam_wire_put_uint(uint8_t *to, uint64_t v, size_t n,
			enum seam_endian endian);

enum { SEAM_ULEB_BYTES = 10 };	/* of the longest ULEB128 of 64 bits */

/* Read a ULEB128 of at most SEAM_ULEB_BYTES; a longer one is -EBADMSG. */
uint64_t seam_wire_uleb(struct seam_cursor *c);

/* Write @v as ULEB128 of the fewest bytes; returns their number. */
static inline size_t seam_wire_put_uleb(uint8_t to[SEAM_ULEB_BYTES],
					uint64_t v)
{
	size_t n = 0;

	for (; v > 0x7f; v >>= 7)
		to[n++] = (uint8_t)(v | 0x80);
	to[n++] = (uint8_t)v;
	return n;
}

/* The value of an integer field of @rec, zero-extended. */
uint64_t seam_wire_uint(const struct seam_field *f, const void *rec);
