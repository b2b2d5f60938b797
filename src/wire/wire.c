/* SPDX-License-Identifier: MIT */
/* wire.c - generic walks over record tables; the contract is in wire.h */
#include "wire/wire.h"

#include <errno.h>
#include <string.h>

/* Bytes on the wire; 0: it varies. */
static const uint8_t sizes[] = {
	[SEAM_WIRE_U8] = 1, [SEAM_WIRE_U16] = 2, [SEAM_WIRE_U32] = 4,
	[SEAM_WIRE_U64] = 8, [SEAM_WIRE_I32] = 4, [SEAM_WIRE_I64] = 8,
	[SEAM_WIRE_CSTR] = 0, [SEAM_WIRE_REST] = 0,
	[SEAM_WIRE_ULEB] = 0, [SEAM_WIRE_STRING] = 0,
};

uint64_t seam_wire_uint(const struct seam_field *f, const void *rec)
{
	const char *p = (const char *)rec + f->offset;

	if (f->type == SEAM_WIRE_ULEB)
		return *(const uint64_t *)(const void *)p;
	switch (sizes[f->type]) {
	case 1: return *(const uint8_t *)p;
	case 2: return *(const uint16_t *)(const void *)p;
	case 4: return *(const uint32_t *)(const void *)p;
	case 8: return *(const uint64_t *)(const void *)p;
	}
	return 0;
}

uint64_t seam_wire_uleb(struct seam_cursor *c)
{
	size_t start = c->pos;
	uint64_t v = seam_cursor_uleb128(c);

	if (c->pos - start > SEAM_ULEB_BYTES)
		seam_cursor_fail(c, -EBADMSG, start);
	return v;
}

static struct seam_bytes read_bytes(struct seam_cursor *c, uint64_t size)
{
	size_t start = c->pos;
	struct seam_bytes bytes = { NULL, 0 };

	if (size > seam_cursor_left(c))
		seam_cursor_fail(c, -ENODATA, start);
	bytes.data = seam_cursor_bytes(c, (size_t)size);
	bytes.size = bytes.data ? (size_t)size : 0;
	return bytes;
}

int seam_wire_read(struct seam_cursor *c, const struct seam_record *rec,
		   void *out)
{
	for (size_t i = 0; i < rec->n_fields; i++) {
		const struct seam_field *f = &rec->fields[i];
		void *p = (char *)out + f->offset;

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
			*(struct seam_bytes *)p =
				read_bytes(c, seam_cursor_left(c));
			break;
		case SEAM_WIRE_ULEB: *(uint64_t *)p = seam_wire_uleb(c); break;
		case SEAM_WIRE_STRING:
			*(struct seam_bytes *)p =
				read_bytes(c, seam_wire_uleb(c));
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

static size_t put_uleb(uint8_t *buf, size_t cap, size_t pos, uint64_t v)
{
	uint8_t bytes[SEAM_ULEB_BYTES];

	return put(buf, cap, pos, bytes, seam_wire_put_uleb(bytes, v));
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
		} else if (f->type == SEAM_WIRE_REST ||
			   f->type == SEAM_WIRE_STRING) {
			const struct seam_bytes *b = p;

			if (f->type == SEAM_WIRE_STRING)
				pos = put_uleb(buf, cap, pos, b->size);
			pos = put(buf, cap, pos, b->data, b->size);
		} else if (f->type == SEAM_WIRE_ULEB) {
			pos = put_uleb(buf, cap, pos, *(const uint64_t *)p);
		} else {
			pos = put_uint(buf, cap, pos, seam_wire_uint(f, in),
				       sizes[f->type], endian);
		}
	}
	return pos;
}
