/* SPDX-License-Identifier: MIT */
/*
 * sysprof_write.h - items as bytes of a stream
 *
 * What seam_sysprof_next() read, written in the newest versions (ljs 3, ljp 2)
 * with numbers of the fewest bytes: a stream of these versions that LuaJIT
 * wrote comes out as the same bytes.
 */
#ifndef SEAM_SYSPROF_WRITE_H
#define SEAM_SYSPROF_WRITE_H

#include "wire/sysprof/sysprof.h"

/* Bytes that were written.  Zeroed is valid and empty; free(items) ends it. */
struct seam_sysprof_buffer {
	uint8_t *items;
	size_t n, cap;
};

/*
 * Append @item; its offset, version and is_event of others than symbols are
 * not used.  A sample's addresses must not be 0, which would end its stack.
 * 0, or -ENOMEM with the buffer as it was.
 */
int seam_sysprof_write(struct seam_sysprof_buffer *out,
		       const struct seam_sysprof_item *item);

#endif /* SEAM_SYSPROF_WRITE_H */
