/* SPDX-License-Identifier: MIT */
/* section_unpack.c - zlib and zstd with a bound; see section_unpack.h */
#include "symbol/elf/section_unpack.h"

#include "base/cursor.h"

#include <elf.h>
#include <errno.h>
#include <stdlib.h>
#include <zlib.h>
#include <zstd.h>

enum { COMPRESS_ZSTD = 2 };	/* ELFCOMPRESS_ZSTD of newer elf.h */

static bool unpack_zlib(struct seam_bytes from, uint8_t *to, size_t size)
{
	uLongf n = size;

	return uncompress(to, &n, from.data, from.size) == Z_OK && n == size;
}

static bool unpack_zstd(struct seam_bytes from, uint8_t *to, size_t size)
{
	return ZSTD_decompress(to, size, from.data, from.size) == size;
}

/* What is left of @c, which has @size bytes when it is unpacked. */
static int unpack(struct seam_cursor *c, uint32_t type, uint64_t size,
		  size_t max, struct seam_bytes *whole)
{
	struct seam_bytes from = { c->base + c->pos, seam_cursor_left(c) };
	uint8_t *to;
	bool is_done;

	if (c->error)
		return -EBADMSG;
	if (type != ELFCOMPRESS_ZLIB && type != COMPRESS_ZSTD)
		return -ENOTSUP;
	if (size > max)
		return -EFBIG;
	to = malloc(size ? size : 1);
	if (!to)
		return -ENOMEM;
	is_done = type == ELFCOMPRESS_ZLIB ? unpack_zlib(from, to, size) :
					     unpack_zstd(from, to, size);
	if (!is_done) {
		free(to);
		return -EBADMSG;
	}
	*whole = (struct seam_bytes) { to, size };
	return 0;
}

int seam_section_unpack(struct seam_bytes packed, size_t max,
			struct seam_bytes *whole)
{
	struct seam_cursor c = seam_cursor_make(packed.data, packed.size,
						SEAM_LITTLE);
	uint32_t type = seam_cursor_u32(&c);
	uint64_t size;

	seam_cursor_skip(&c, 4);	/* ch_reserved */
	size = seam_cursor_u64(&c);
	seam_cursor_skip(&c, 8);	/* ch_addralign */
	return unpack(&c, type, size, max, whole);
}

int seam_section_unpack_zdebug(struct seam_bytes packed, size_t max,
			       struct seam_bytes *whole)
{
	struct seam_cursor c = seam_cursor_make(packed.data, packed.size,
						SEAM_BIG);
	const uint8_t *magic = seam_cursor_bytes(&c, 4);
	uint64_t size = seam_cursor_u64(&c);

	if (!magic || memcmp(magic, "ZLIB", 4) != 0)
		return -EBADMSG;
	return unpack(&c, ELFCOMPRESS_ZLIB, size, max, whole);
}
