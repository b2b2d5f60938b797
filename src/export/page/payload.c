/* SPDX-License-Identifier: MIT */
/* payload.c - a stream over zlib and base64, and columns; see payload.h */
#include "export/page/payload.h"

#include <errno.h>

enum {
	CHUNK_BYTES = 1 << 16,
	GZIP = 16 + MAX_WBITS,		/* a header of gzip, not of zlib */
	LEVEL = 6,
};

/* -- base64 --------------------------------------------------------------- */

static void put_group(struct seam_payload *p, const uint8_t group[3], size_t n)
{
	static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
		"abcdefghijklmnopqrstuvwxyz0123456789+/";
	uint32_t bits = (uint32_t)group[0] << 16 | (uint32_t)group[1] << 8 |
			group[2];

	for (unsigned int i = 0; i < 4; i++)
		putc_unlocked(i <= n ? digits[bits >> (18 - 6 * i) & 63] : '=',
			      p->out);
}

static void encode(struct seam_payload *p, const uint8_t *bytes, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		p->rest[p->n_rest++] = bytes[i];
		if (p->n_rest < 3)
			continue;
		put_group(p, p->rest, 3);
		p->n_rest = 0;
	}
}

static void encode_rest(struct seam_payload *p)
{
	for (size_t i = p->n_rest; i < 3; i++)
		p->rest[i] = 0;
	if (p->n_rest)
		put_group(p, p->rest, p->n_rest);
	p->n_rest = 0;
}

/* -- the stream ----------------------------------------------------------- */

static void deflate_all(struct seam_payload *p, int flush)
{
	uint8_t packed[CHUNK_BYTES];

	do {
		p->gzip.next_out = packed;
		p->gzip.avail_out = sizeof(packed);
		deflate(&p->gzip, flush);
		encode(p, packed, sizeof(packed) - p->gzip.avail_out);
	} while (p->gzip.avail_out == 0);
}

static ssize_t take_bytes(void *cookie, const char *bytes, size_t n)
{
	struct seam_payload *p = cookie;
	size_t part = n < UINT32_MAX ? n : UINT32_MAX;

	p->gzip.next_in = (Bytef *)(uintptr_t)bytes;	/* it reads only */
	p->gzip.avail_in = (uInt)part;
	deflate_all(p, Z_NO_FLUSH);
	return (ssize_t)part;
}

int seam_payload_open(struct seam_payload *payload, FILE *out)
{
	const cookie_io_functions_t calls = { .write = take_bytes };

	*payload = (struct seam_payload) { .out = out };
	if (deflateInit2(&payload->gzip, LEVEL, Z_DEFLATED, GZIP, 8,
			 Z_DEFAULT_STRATEGY) != Z_OK)
		return -ENOMEM;
	payload->stream = fopencookie(payload, "w", calls);
	if (!payload->stream) {
		deflateEnd(&payload->gzip);
		return -ENOMEM;
	}
	setvbuf(payload->stream, NULL, _IOFBF, CHUNK_BYTES);
	fprintf(payload->stream, "seampage%c", SEAM_PAYLOAD_VERSION);
	return 0;
}

int seam_payload_close(struct seam_payload *payload)
{
	int r;

	putc_unlocked(0, payload->stream);	/* a column without a name */
	r = fclose(payload->stream) ? -ENOMEM : 0;
	deflate_all(payload, Z_FINISH);
	deflateEnd(&payload->gzip);
	encode_rest(payload);
	return r;
}

/* -- columns -------------------------------------------------------------- */

static void put_number(FILE *out, uint64_t v)
{
	for (; v >= 0x80; v >>= 7)
		putc_unlocked((int)(v & 0x7f) | 0x80, out);
	putc_unlocked((int)v, out);
}

static uint64_t number_at(const struct seam_column *column, size_t i)
{
	const char *at = (const char *)column->items +
			 i * column->item_bytes + column->offset;
	uint64_t v = 0;

	/* the program is for little-endian machines, as perf.data here is */
	memcpy(&v, at, column->size);
	return v;
}

/* zigzag: the sign becomes the lowest bit */
static uint64_t encoded(const struct seam_column *column, size_t i,
			uint64_t *before)
{
	uint64_t v = number_at(column, i), delta = v - *before;

	*before = v;
	return column->is_delta ? delta << 1 ^ (0 - (delta >> 63)) : v;
}

static size_t length_of(uint64_t v)
{
	return v ? (size_t)(63 - __builtin_clzll(v)) / 7 + 1 : 1;
}

/* The length of the column in bytes; whether it is one number. */
static uint64_t measure(const struct seam_column *column, bool *is_same)
{
	uint64_t n_bytes = 0, before = 0;

	*is_same = !column->is_delta;
	for (size_t i = 0; i < column->n; i++) {
		*is_same &= i == 0 || number_at(column, i) == before;
		n_bytes += length_of(encoded(column, i, &before));
	}
	if (*is_same && column->n)
		n_bytes /= column->n;
	return n_bytes;
}

void seam_payload_column(struct seam_payload *payload,
			 const struct seam_column *column)
{
	FILE *out = payload->stream;
	uint64_t before = 0;
	bool is_same;
	uint64_t n_bytes = measure(column, &is_same);

	putc_unlocked((int)strlen(column->name), out);
	fputs(column->name, out);
	putc_unlocked(column->is_delta ? SEAM_COLUMN_DELTA : is_same ?
		      SEAM_COLUMN_SAME : SEAM_COLUMN_PLAIN, out);
	put_number(out, column->n);
	put_number(out, n_bytes);
	for (size_t i = 0; i < (is_same && column->n ? 1 : column->n); i++)
		put_number(out, encoded(column, i, &before));
}
