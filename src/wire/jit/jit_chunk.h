/* SPDX-License-Identifier: MIT */
/*
 * jit_chunk.h - the records of service "jit"
 *
 * A group is the JITDUMP records that belong together: the header of a dump; a
 * load with the debug and unwinding information before it; a move; a close.
 * It can be larger than a ring's record, so it is split into chunks, one in
 * each SAMPLE record, whose payload is
 *
 *	flags:u32 size:u32 bytes[size] padding
 *
 * A group begins with a FIRST chunk and ends with a LAST one; its chunks are
 * consecutive.  A group without its LAST, because the writer died, is dropped.
 *
 * The writer is src/traced/jit/stream.c, the reader
 * src/record/services/jit_stream.c.
 */
#ifndef SEAM_WIRE_JIT_CHUNK_H
#define SEAM_WIRE_JIT_CHUNK_H

#include "base/base.h"

#define SEAM_JIT_SERVICE "jit"	/* in HELLO */

enum {
	SEAM_JIT_CHUNK_FIRST = 1,
	SEAM_JIT_CHUNK_LAST = 2,
	/* A larger group is neither written nor accepted. */
	SEAM_JIT_MAX_GROUP = 64 << 20,
};

struct seam_jit_chunk {
	uint32_t flags;
	uint32_t size;
};

#endif /* SEAM_WIRE_JIT_CHUNK_H */
