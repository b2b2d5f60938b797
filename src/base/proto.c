/* SPDX-License-Identifier: MIT */
/* proto.c - varints, and lengths that are inserted; see proto.h */
#include "base/proto.h"

#include <endian.h>

#include "base/text.h"

enum {
	VARINT = 0,		/* wire types */
	FIXED64 = 1,
	LENGTH = 2,
	MAX_VARINT = 10,	/* bytes */
};

static size_t encode(uint8_t *to, uint64_t value)
{
	size_t n = 0;

	for (; value >= 0x80; value >>= 7)
		to[n++] = (uint8_t)(value | 0x80);
	to[n++] = (uint8_t)value;
	return n;
}

/* Room for @size bytes, or the writer has failed. */
static bool reserve(struct seam_proto *p, size_t size)
{
	if (!p->is_failed && !SEAM_ARRAY_RESERVE(p, size))
		p->is_failed = true;
	return !p->is_failed;
}

void seam_proto_packed(struct seam_proto *p, uint64_t value)
{
	if (reserve(p, MAX_VARINT))
		p->n += encode(p->items + p->n, value);
}

void seam_proto_u64(struct seam_proto *p, unsigned int field, uint64_t value)
{
	seam_proto_packed(p, field << 3 | VARINT);
	seam_proto_packed(p, value);
}

void seam_proto_fixed64(struct seam_proto *p, unsigned int field,
			uint64_t value)
{
	uint64_t bytes = htole64(value);

	seam_proto_packed(p, field << 3 | FIXED64);
	if (!reserve(p, sizeof(bytes)))
		return;
	memcpy(p->items + p->n, &bytes, sizeof(bytes));
	p->n += sizeof(bytes);
}

void seam_proto_bytes(struct seam_proto *p, unsigned int field,
		      struct seam_bytes bytes)
{
	seam_proto_packed(p, field << 3 | LENGTH);
	seam_proto_packed(p, bytes.size);
	if (!bytes.size || !reserve(p, bytes.size))
		return;
	memcpy(p->items + p->n, bytes.data, bytes.size);
	p->n += bytes.size;
}

void seam_proto_text(struct seam_proto *p, unsigned int field,
		     const char *text)
{
	size_t opened = seam_proto_open(p, field);
	size_t most = 4 * strlen(text) + 12;	/* \x1b; \u202e of 3 bytes */

	if (reserve(p, most))
		p->n += strlen(seam_text_copy((char *)p->items + p->n, most,
					      text, SEAM_TEXT_TERMINAL));
	seam_proto_close(p, opened);
}

size_t seam_proto_open(struct seam_proto *p, unsigned int field)
{
	seam_proto_packed(p, field << 3 | LENGTH);
	return p->n;
}

/* The length is before the content, whose size is known only now. */
void seam_proto_close(struct seam_proto *p, size_t opened)
{
	uint8_t length[MAX_VARINT];
	size_t size = p->n - opened, n = encode(length, size);

	if (!reserve(p, n))
		return;
	memmove(p->items + opened + n, p->items + opened, size);
	memcpy(p->items + opened, length, n);
	p->n += n;
}
