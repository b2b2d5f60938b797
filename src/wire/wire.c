/* SPDX-License-Identifier: MIT */
/* wire.c - generic walks over record tables; the contract is in wire.h */
#include "wire/wire.h"

#include <string.h>

static const struct {
	const char *name;
	size_t size;		/* bytes on the wire, 0 when it varies */
} types[] = {
	[SEAM_WIRE_U8] = { "u8", 1 },	 [SEAM_WIRE_U16] = { "u16", 2 },
	[SEAM_WIRE_U32] = { "u32", 4 },	 [SEAM_WIRE_U64] = { "u64", 8 },
	[SEAM_WIRE_I32] = { "i32", 4 },	 [SEAM_WIRE_I64] = { "i64", 8 },
	[SEAM_WIRE_CSTR] = { "cstr", 0 }, [SEAM_WIRE_REST] = { "bytes", 0 },
};

uint64_t seam_wire_uint(const struct seam_field *f, const void *rec)
{
	const char *p = (const char *)rec + f->offset;

	switch (types[f->type].size) {
	case 1: return *(const uint8_t *)p;
	case 2: return *(const uint16_t *)(const void *)p;
	case 4: return *(const uint32_t *)(const void *)p;
	case 8: return *(const uint64_t *)(const void *)p;
	}
	return 0;
}

int seam_wire_read(struct seam_cursor *c, const struct seam_record *rec,
		   void *out)
{
	for (size_t i = 0; i < rec->n_fields; i++) {
		const struct seam_field *f = &rec->fields[i];
		void *p = (char *)out + f->offset;
		struct seam_bytes rest;

		switch (f->type) {
		case SEAM_WIRE_U8: *(uint8_t *)p = seam_cursor_u8(c); break;
		case SEAM_WIRE_U16: *(uint16_t *)p = seam_cursor_u16(c); break;
		case SEAM_WIRE_U32: *(uint32_t *)p = seam_cursor_u32(c); break;
		case SEAM_WIRE_U64: *(uint64_t *)p = seam_cursor_u64(c); break;
		case SEAM_WIRE_I32:
			*(int32_t *)p = (int32_t)seam_cursor_u32(c);
			break;
		case SEAM_WIRE_I64:
			*(int64_t *)p = (int64_t)seam_cursor_u64(c);
			break;
		case SEAM_WIRE_CSTR:
			*(const char **)p = seam_cursor_cstr(c);
			break;
		case SEAM_WIRE_REST:
			rest.size = seam_cursor_left(c);
			rest.data = seam_cursor_bytes(c, rest.size);
			*(struct seam_bytes *)p = rest;
			break;
		}
	}
	return c->error;
}

/* Append @n bytes if they fit; always count them. */
static size_t put(uint8_t *buf, size_t cap, size_t pos, const void *data,
		  size_t n)
{
	if (n && pos <= cap && n <= cap - pos)
		memcpy(buf + pos, data, n);
	return pos + n;
}

void seam_wire_put_uint(uint8_t *to, uint64_t v, size_t n,
			enum seam_endian endian)
{
	for (size_t i = 0; i < n; i++)
		to[endian == SEAM_LITTLE ? i : n - 1 - i] =
			(uint8_t)(v >> 8 * i);
}

static size_t put_uint(uint8_t *buf, size_t cap, size_t pos, uint64_t v,
		       size_t n, enum seam_endian endian)
{
	uint8_t bytes[8];

	seam_wire_put_uint(bytes, v, n, endian);
	return put(buf, cap, pos, bytes, n);
}

size_t seam_wire_write(const struct seam_record *rec, const void *in,
		       enum seam_endian endian, uint8_t *buf, size_t cap)
{
	size_t pos = 0;

	for (size_t i = 0; i < rec->n_fields; i++) {
		const struct seam_field *f = &rec->fields[i];
		const void *p = (const char *)in + f->offset;

		if (f->type == SEAM_WIRE_CSTR) {
			const char *s = *(const char *const *)p;

			pos = put(buf, cap, pos, s, strlen(s) + 1);
		} else if (f->type == SEAM_WIRE_REST) {
			const struct seam_bytes *b = p;

			pos = put(buf, cap, pos, b->data, b->size);
		} else {
			pos = put_uint(buf, cap, pos, seam_wire_uint(f, in),
				       types[f->type].size, endian);
		}
	}
	return pos;
}

void seam_wire_doc(FILE *out, const struct seam_record *rec)
{
	size_t offset = 0;
	bool fixed = true;

	fprintf(out, "### %s\n\nSource: %s\n\n", rec->name, rec->spec);
	fputs("| offset | type | field | meaning |\n|---|---|---|---|\n", out);
	for (size_t i = 0; i < rec->n_fields; i++) {
		const struct seam_field *f = &rec->fields[i];

		if (fixed)
			fprintf(out, "| %zu ", offset);
		else
			fputs("| - ", out);
		fprintf(out, "| %s | %s | %s |\n", types[f->type].name,
			f->name, f->doc);
		offset += types[f->type].size;
		fixed = fixed && types[f->type].size;
	}
}
