/* SPDX-License-Identifier: MIT */
/*
 * jit_chunk.h - how code of a JIT lies in a ring
 *
 * What belongs together is a group: the header of a dump; a load with the
 * debug and unwinding information before it; a move; a close.  A group is
 * bytes of JITDUMP, and larger than a record may be, so it goes in chunks,
 * one in each SAMPLE record, whose payload is
 *
 *	flags:u32 size:u32 bytes[size] padding
 *
 * A group begins with a chunk that is FIRST and ends with one that is LAST;
 * its chunks follow one another.  A group whose LAST never came, because its
 * writer died, was never there.
 *
 * The writer is src/target/jit/stream.c, the reader src/record/services/jit_stream.c.
 */
#ifndef SEAM_RING_JIT_CHUNK_H
#define SEAM_RING_JIT_CHUNK_H

#include "base/base.h"

enum {
	SEAM_JIT_CHUNK_FIRST = 1,
	SEAM_JIT_CHUNK_LAST = 2,
	/* A larger group is neither written nor believed. */
	SEAM_JIT_MOST_GROUP = 64 << 20,
};

struct seam_jit_chunk {
	uint32_t flags;
	uint32_t size;
};

#endif /* SEAM_RING_JIT_CHUNK_H */
