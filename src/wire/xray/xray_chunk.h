/* SPDX-License-Identifier: MIT */
/*
 * xray_chunk.h - how a thread's calls lie in memory until they are in a log
 *
 * A thread records into an area of its own, a power of two of bytes, which is
 * divided into chunks.  Position p, which only grows, is at p & (bytes - 1).
 * What is before the *cursor* is recorded: the thread stores a record first,
 * in whole words of 8 bytes, and the new cursor last, so the records of a
 * thread that was killed are whole up to the cursor.
 *
 * A chunk holds records as an FDR log of version 5 has them, with these
 * differences:
 *
 *  - It begins with a preamble of SEAM_XRAY_PREAMBLE_BYTES: NewBuffer,
 *    WallTime, Pid, NewCPUId.  So each chunk can be read without the others.
 *  - All bytes after the fields of a metadata record are zero.
 *  - The payload of an event is padded with zeroes to an odd multiple of 8
 *    bytes, so all records are aligned, and each record, with the arguments
 *    that belong to it and with the TSCWrap or NewCPUId before it, has an odd
 *    number of words.
 *  - A word of zeroes where a record would begin ends the chunk: function 0
 *    does not exist.  The rest of the chunk is zeroes too.
 *
 * A cursor at the start of a chunk means that this chunk is not begun.  The
 * thread begins one by storing its end as the *reserved* position (aux_head of
 * struct seam_ring_state): in an area that overwrites itself, what is older
 * than reserved - bytes is lost from then on.
 *
 * Source of the record formats: wire/xray/xray_fdr.h.
 */
#pragma once

#include "wire/xray/xray.h"

enum {
	SEAM_XRAY_CHUNK_BYTES = 64 << 10,
	SEAM_XRAY_PREAMBLE_BYTES = 64,	/* four metadata records */
	/* the largest payload of an event; what is longer is cut */
	SEAM_XRAY_MAX_PAYLOAD = 4096,
	SEAM_XRAY_MAX_ARGUMENTS = 6,	/* in registers; System V ABI, 3.2.3 */
	/* a function record with its arguments, and what may be before it */
	SEAM_XRAY_MAX_CALL_BYTES = 16 + 8 + SEAM_XRAY_MAX_ARGUMENTS * 16,
};

/* The first word of a function record, which a sled holds ready-made. */
static inline uint32_t seam_xray_word(uint32_t function,
				      enum seam_xray_kind action)
{
	return function << 4 | (uint32_t)action << 1;
}

/* Room for a payload of @bytes: an odd multiple of 8. */
static inline size_t seam_xray_payload_room(size_t bytes)
{
	return (bytes + 7) / 16 * 16 + 8;
}

/*
 * Functions seen, one bit each by their ids.  An id that has no bit is not
 * noted: where @max >= @n, whoever has more room walks the chunk again.
 */
struct seam_xray_seen {
	uint64_t *bits;			/* borrowed; room for n of them */
	uint32_t n;			/* a multiple of 64 */
	uint32_t max;			/* the largest id so far */
};

/* What a chunk held. */
struct seam_xray_chunk {
	/* of its preamble; not trusted, and 0 where that was invalid */
	int32_t pid, tid;
	uint64_t wall_us;		/* CLOCK_MONOTONIC, when it began */
	uint64_t tsc;
	/* function records and events; arguments are part of their record */
	uint64_t n_records;
	size_t n_bytes;			/* written to the block */
	size_t bad_bytes;		/* from the first invalid record on */
};

/*
 * Read the first @size bytes of a chunk, at most SEAM_XRAY_CHUNK_BYTES, of
 * a producer that is not trusted, and write to @out what an FDR block of
 * version 5 has after its Pid: the preamble's NewCPUId and all records up to
 * the first invalid one, without padding.  @out has room for @size bytes and
 * does not overlap @chunk, which is not changed meanwhile.  @seen may be NULL.
 *
 * Cost: 1 ns a function record.
 */
void seam_xray_chunk_read(const uint8_t *chunk, size_t size, uint8_t *out,
			  struct seam_xray_seen *seen,
			  struct seam_xray_chunk *found);

/* Whether a function was seen. */
static inline bool seam_xray_has_seen(const struct seam_xray_seen *seen,
				      uint32_t function)
{
	return function < seen->n &&
	       seen->bits[function / 64] >> function % 64 & 1;
}
