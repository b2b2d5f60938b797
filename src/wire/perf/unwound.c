/* SPDX-License-Identifier: MIT */
/* unwound.c - a head, then distances as LEB128; see unwound.h */
#include "wire/perf/unwound.h"

#include <errno.h>

#include "wire/wire.h"

enum {
	WORD = 8,
	/* Size, head, three numbers, zeros. */
	MAX_AROUND = 4 + SEAM_UNWOUND_HEAD_BYTES + 3 * SEAM_ULEB_BYTES + WORD,
};

bool seam_unwound_is(struct seam_bytes raw, uint8_t *end)
{
	if (raw.size < SEAM_UNWOUND_HEAD_BYTES || raw.data[0] != 'S' ||
	    raw.data[1] != 'u' || raw.data[2] != SEAM_UNWOUND_VERSION)
		return false;
	*end = raw.data[3];
	return true;
}

int seam_unwound_read(struct seam_bytes raw, struct seam_unwound *out)
{
	struct seam_cursor c = seam_cursor_over(raw, SEAM_NATIVE);
	struct seam_unwound read = { .end = 0 };

	if (!seam_unwound_is(raw, &read.end))
		return -ENOTSUP;
	seam_cursor_skip(&c, SEAM_UNWOUND_HEAD_BYTES);
	read.n_frames = seam_cursor_uleb128(&c);
	read.n_cfas = seam_cursor_uleb128(&c);
	read.cfas = c;
	if (c.error || read.n_cfas > read.n_frames ||
	    read.n_cfas > raw.size)
		return -EBADMSG;
	*out = read;
	for (uint64_t i = 0; i < read.n_cfas; i++)
		seam_unwound_next(&read);
	return read.cfas.error ? -EBADMSG : 0;
}

uint64_t seam_unwound_next(struct seam_unwound *unwound)
{
	unwound->last += WORD * (uint64_t)seam_cursor_sleb128(&unwound->cfas);
	return unwound->last;
}

/* The distances; *@n becomes how many were written. */
static size_t put_cfas(uint8_t *to, const uint64_t *cfas, size_t *n)
{
	uint64_t last = 0;
	size_t size = 0, i = 0;

	for (; i < *n && size < SEAM_UNWOUND_MAX_BYTES - 2 * MAX_AROUND &&
	     (cfas[i] - last) % WORD == 0; i++) {
		int64_t v = (int64_t)(cfas[i] - last) / WORD;

		for (; v < -64 || v > 63; v >>= 7)
			to[size++] = (uint8_t)(v & 0x7f) | 0x80;
		to[size++] = (uint8_t)(v & 0x7f);
		last = cfas[i];
	}
	*n = i;
	return size;
}

size_t seam_unwound_write(uint8_t *to, uint8_t end, size_t n_frames,
			  const uint64_t *cfas, size_t n_cfas)
{
	size_t n = sizeof(uint32_t), body = put_cfas(to + MAX_AROUND, cfas,
						     &n_cfas);
	uint32_t size;

	to[n++] = 'S';
	to[n++] = 'u';
	to[n++] = SEAM_UNWOUND_VERSION;
	to[n++] = end;
	n += seam_wire_put_uleb(to + n, n_frames);
	n += seam_wire_put_uleb(to + n, n_cfas);
	memmove(to + n, to + MAX_AROUND, body);
	for (n += body; n % WORD; n++)
		to[n] = 0;
	size = (uint32_t)(n - sizeof(size));
	memcpy(to, &size, sizeof(size));
	return n;
}
