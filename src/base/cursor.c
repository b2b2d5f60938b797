/* SPDX-License-Identifier: MIT */
/*
 * cursor.c - bounded reads from untrusted bytes; the contract is in cursor.h
 *
 * All bounds arithmetic is in take().  It compares a length with what is left
 * (size - pos, which cannot wrap because pos <= size) and never adds a length
 * from the data to an offset or a pointer.
 */
#include "base/cursor.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

/* An address for empty windows: NULL + 0 is undefined and breaks memchr(). */
static const uint8_t empty_window;

struct seam_cursor seam_cursor_make(const void *data, size_t size,
				    enum seam_endian endian)
{
	assert(data || size == 0);

	return (struct seam_cursor) {
		.base = data ? data : &empty_window,
		.size = size,
		.swap = endian != SEAM_NATIVE,
	};
}

void seam_cursor_fail(struct seam_cursor *c, int error, size_t pos)
{
	assert(error < 0);

	if (c->error)
		return;
	c->error = error;
	c->error_pos = pos;
}

/* Claim the next @n bytes, or fail.  Every read goes through here. */
static const uint8_t *take(struct seam_cursor *c, size_t n)
{
	const uint8_t *p;

	if (c->error)
		return NULL;
	if (n > seam_cursor_left(c)) {
		seam_cursor_fail(c, -ENODATA, c->pos);
		return NULL;
	}

	p = c->base + c->pos;
	c->pos += n;
	return p;
}

uint8_t seam_cursor_u8(struct seam_cursor *c)
{
	const uint8_t *p = take(c, 1);

	return p ? *p : 0;
}

uint16_t seam_cursor_u16(struct seam_cursor *c)
{
	const uint8_t *p = take(c, 2);
	uint16_t v = 0;

	if (p)
		memcpy(&v, p, sizeof(v));
	return c->swap ? __builtin_bswap16(v) : v;
}

uint32_t seam_cursor_u32(struct seam_cursor *c)
{
	const uint8_t *p = take(c, 4);
	uint32_t v = 0;

	if (p)
		memcpy(&v, p, sizeof(v));
	return c->swap ? __builtin_bswap32(v) : v;
}

uint64_t seam_cursor_u64(struct seam_cursor *c)
{
	const uint8_t *p = take(c, 8);
	uint64_t v = 0;

	if (p)
		memcpy(&v, p, sizeof(v));
	return c->swap ? __builtin_bswap64(v) : v;
}

/*
 * 7 bits at a time.  Bits 0..62 come from nine groups; the tenth (shift 63) has
 * room for one bit more, the sign.  Every group after the tenth, and its other
 * bits, must be pure padding.
 */
static inline uint64_t take_leb128(struct seam_cursor *c, bool is_signed)
{
	size_t start = c->pos;
	unsigned int shift = 0;
	uint64_t value = 0;
	uint8_t byte;

	if (c->error)
		return 0;
	/* most numbers are one byte */
	if (c->pos < c->size && c->base[c->pos] < 0x80) {
		byte = c->base[c->pos++];
		return is_signed && byte & 0x40 ? byte | ~UINT64_C(0x7f) : byte;
	}
	do {
		uint64_t bits, last, padding;

		byte = seam_cursor_u8(c);
		bits = byte & 0x7f;
		if (shift < 63) {
			value |= bits << shift;
			shift += 7;
			continue;
		}
		last = shift == 63 ? bits & 1 : value >> 63;
		padding = is_signed ? last * 0x7f : shift == 63 ? last : 0;
		if (bits != padding)
			seam_cursor_fail(c, -EOVERFLOW, start);
		value |= last << 63;
		shift = 70;
	} while (byte & 0x80 && !c->error);

	if (c->error) {
		c->error_pos = start;
		return 0;
	}
	if (is_signed && shift < 64 && (byte & 0x40))
		value |= ~UINT64_C(0) << shift;
	return value;
}

uint64_t seam_cursor_uleb128(struct seam_cursor *c)
{
	return take_leb128(c, false);
}

int64_t seam_cursor_sleb128(struct seam_cursor *c)
{
	return (int64_t)take_leb128(c, true);
}

const uint8_t *seam_cursor_bytes(struct seam_cursor *c, size_t n)
{
	return take(c, n);
}

const char *seam_cursor_cstr(struct seam_cursor *c)
{
	const uint8_t *p = take(c, 0);
	const uint8_t *nul;

	if (!p)
		return NULL;
	nul = memchr(p, '\0', seam_cursor_left(c));
	if (!nul) {
		seam_cursor_fail(c, -ENODATA, c->pos);
		return NULL;
	}
	return (const char *)take(c, (size_t)(nul - p) + 1);
}

void seam_cursor_skip(struct seam_cursor *c, size_t n)
{
	take(c, n);
}

void seam_cursor_align(struct seam_cursor *c, size_t align)
{
	assert(align && (align & (align - 1)) == 0);

	take(c, -c->pos & (align - 1));
}

struct seam_cursor seam_cursor_split(struct seam_cursor *c, size_t n)
{
	struct seam_cursor child = *c;
	const uint8_t *p = take(c, n);

	child.base = p ? p : &empty_window;
	child.size = p ? n : 0;
	child.pos = 0;
	child.error = c->error;
	child.error_pos = 0;
	return child;
}

size_t seam_cursor_count(struct seam_cursor *c, uint64_t n, size_t min_size)
{
	assert(min_size > 0);

	if (c->error)
		return 0;
	if (n > seam_cursor_left(c) / min_size) {
		seam_cursor_fail(c, -EBADMSG, c->pos);
		return 0;
	}
	return (size_t)n;
}
