/* SPDX-License-Identifier: MIT */
/*
 * unwound.h - how the user stack of a sample was unwound
 *
 * The recorder unwinds user stacks and writes them as callchains.  The RAW data
 * of such a sample has what a callchain cannot express: why the walk ended, and
 * where the frames were on the stack.  A reader counts complete stacks, and
 * finds the missing callers of others, by it.  doc/formats/unwound.md
 *
 * Threads: nothing is shared.
 */
#pragma once

#include "base/cursor.h"

enum {
	SEAM_UNWOUND_VERSION = 1,
	SEAM_UNWOUND_HEAD_BYTES = 4,	/* "Su", version, end */
	/* Of a record; CFAs beyond are left out. */
	SEAM_UNWOUND_MAX_BYTES = 16384,
};

/* A record; zeroed is valid: a stack without frames. */
struct seam_unwound {
	uint8_t end;		/* enum seam_stack_end, maybe a later one */
	/*
	 * That were walked, of the user part of the callchain, from the leaf
	 * on.  Frames after them are of the kernel's callchain.
	 */
	uint64_t n_frames;
	/* The CFA of frame i of these, from the leaf on; at most n_frames. */
	uint64_t n_cfas;
	struct seam_cursor cfas;	/* for seam_unwound_next() */
	uint64_t last;
};

/*
 * Whether @raw begins as a record of a version that can be read; *@end is its
 * end.  Cost: four bytes.
 */
bool seam_unwound_is(struct seam_bytes raw, uint8_t *end);

/*
 * Read @raw.  0; -ENOTSUP: no such record, or of a later version; -EBADMSG: it
 * breaks the format.  All CFAs can be read then.
 */
int seam_unwound_read(struct seam_bytes raw, struct seam_unwound *out);

/* The next CFA, of which there are n_cfas. */
uint64_t seam_unwound_next(struct seam_unwound *unwound);

/*
 * Write a record of @n_frames frames, of which the first @n_cfas have CFAs, as
 * RAW data: with its size before it, and zeros up to a multiple of 8 bytes.
 * CFAs that are no multiple of 8 apart, and those after them, are left out.
 * Returns the bytes written to @to, at most SEAM_UNWOUND_MAX_BYTES.
 */
size_t seam_unwound_write(uint8_t *to, uint8_t end, size_t n_frames,
			  const uint64_t *cfas, size_t n_cfas);
