/* SPDX-License-Identifier: MIT */
/*
 * consumer.h - take records out of a ring
 *
 *	seam_ring_peek(&ring, &span);
 *	while (seam_ring_record(&span, pos, &header))
 *		pos += header.size;
 *	... use span's first pos bytes ...
 *	seam_ring_advance(&ring, &span);
 *
 * The bytes stay where they are until seam_ring_advance(), so a drain can
 * hand them to pwritev() without a copy.
 *
 * Nothing in a ring is trusted: an invalid position is counted and skipped,
 * a record of invalid size ends the walk, and no access leaves the mapping.
 * A hostile producer loses only its own data.
 *
 * Threads: a ring has one consumer at a time.
 */
#pragma once

#include "base/err.h"
#include "ring/layout.h"

/* Zeroed is valid: a ring of no bytes that is always empty. */
struct seam_ring {
	struct seam_ring_control *control;
	const uint8_t *data;
	uint64_t size;		/* bytes of data, as they were mapped */
	uint64_t tail;		/* private; data_tail is a copy of it */
	size_t mapped_bytes;	/* 0: mapped by the caller */
	uint64_t n_resyncs;	/* invalid positions */
};

/* What can be read now: one run of bytes, or two when it wraps. */
struct seam_ring_span {
	const uint8_t *part[2];
	size_t size[2];		/* bytes; size[1] is 0 without a wrap */
	uint64_t end;		/* position after the last byte */
};

/*
 * Map the ring of perf event @fd with @data_bytes (a power of two, at least
 * a page) of data.  @overwrite, for an event with write_backward: a read-only
 * mapping makes the kernel overwrite; see below; there is no tail to
 * advance.  -EPERM: more memory than this user may lock.
 */
int seam_ring_map(struct seam_ring *ring, int fd, size_t data_bytes,
		  bool overwrite, struct seam_err *err);

/*
 * Use the ring in @memory: a control page and @data_bytes of data, a power
 * of two.  The memory must outlive the ring.
 */
void seam_ring_attach(struct seam_ring *ring, void *memory, size_t page_bytes,
		      size_t data_bytes);

/* Valid on a zeroed ring, and again after itself. */
void seam_ring_fini(struct seam_ring *ring);

/* The bytes that can be read now.  Returns their number, 0 for none. */
size_t seam_ring_peek(struct seam_ring *ring, struct seam_ring_span *span);

/*
 * The header at @pos bytes into the span.  False at the end, and where no
 * valid record begins: @pos is then the number of valid bytes.
 */
bool seam_ring_record(const struct seam_ring_span *span, size_t pos,
		      struct seam_ring_header *header);

/*
 * @size bytes at @pos, in place where they are in one piece, else copied to
 * @scratch, which has room for @size.  @pos + @size must be in the span.
 */
const void *seam_ring_bytes(const struct seam_ring_span *span, size_t pos,
			    size_t size, void *scratch);

/*
 * The record at @pos copied to @out, which has room for 64 KiB, as
 * seam_ring_record() checked it.  For rings of the traced program: bytes in
 * place may change between two reads, @out does not.
 */
bool seam_ring_copy(const struct seam_ring_span *span, size_t pos,
		    struct seam_ring_header *header, void *out);

/* The position that the producer has reached. */
static inline uint64_t seam_ring_head(const struct seam_ring *ring)
{
	/* relaxed: no record is read */
	return !ring->control ? 0 :
	       atomic_load_explicit(&ring->control->data_head,
				    memory_order_relaxed);
}

/* Give the span back to the producer. */
void seam_ring_advance(struct seam_ring *ring,
		       const struct seam_ring_span *span);

/* Request a program to refuse records, which it counts, or to resume. */
static inline void seam_ring_pause(struct seam_ring_control *control,
				   bool pause)
{
	/* relaxed: a request */
	atomic_store_explicit(&control->program.paused, pause,
			      memory_order_relaxed);
}

/* The bytes between two positions of @data, of @size, a power of two. */
static inline struct seam_ring_span
seam_ring_span_make(const uint8_t *data, uint64_t size, uint64_t tail,
		    uint64_t head)
{
	uint64_t at = tail & (size - 1), n = head - tail;
	uint64_t first = n < size - at ? n : size - at;

	return (struct seam_ring_span) {
		.part = { data + at, data },
		.size = { first, n - first },
		.end = head,
	};
}

static inline size_t seam_ring_span_bytes(const struct seam_ring_span *span)
{
	return span->size[0] + span->size[1];
}

/*
 * A copy of a ring that the kernel overwrites:
 *
 *	seam_ring_snapshot_init(&snapshot, data_bytes, err);
 *	... PERF_EVENT_IOC_PAUSE_OUTPUT 1 ...
 *	seam_ring_snapshot(&ring, &snapshot);
 *	... resume ...
 *	while (seam_ring_record(&snapshot.span, pos, &header))
 *		pos += header.size;
 *
 * The kernel goes from high positions to low ones: the newest record begins at
 * the head, and older ones follow at growing positions, up to the one whose end
 * has been overwritten.
 */
struct seam_ring_snapshot {
	uint8_t *copy;			/* owned; room for the ring's data */
	size_t room;			/* bytes */
	struct seam_ring_span span;	/* whole records, newest first */
};

/* Allocate memory for snapshots of a ring with @data_bytes.  -ENOMEM. */
int seam_ring_snapshot_init(struct seam_ring_snapshot *snapshot,
			    size_t data_bytes, struct seam_err *err);

/* Valid on a zeroed struct. */
void seam_ring_snapshot_fini(struct seam_ring_snapshot *snapshot);

/*
 * Copy @ring.  Returns the bytes of whole records, 0 when there are none or
 * @snapshot has no room for the ring.
 */
size_t seam_ring_snapshot(struct seam_ring *ring,
			  struct seam_ring_snapshot *snapshot);
