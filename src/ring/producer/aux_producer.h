/* SPDX-License-Identifier: MIT */
/*
 * aux_producer.h - put bytes into the AUX buffer, from user space
 *
 *	seam_ring_aux_begin(&aux, &chunk);
 *	seam_ring_aux_put(&chunk, bytes, n);
 *	seam_ring_aux_end(&chunk, 0);
 *
 * The AUX buffer holds bytes of any format; here the traced program
 * plays the part of the PMU.  There are two modes:
 *
 * normal	The reader's tail is respected.  The end of each chunk makes
 *		it visible and puts an AUX record {offset, size, flags} into
 *		the ring.  Bytes that do not fit are dropped and counted, and
 *		the record of that chunk has the flag TRUNCATED.
 * free-running	Old bytes are overwritten, each put is visible at once, and
 *		no record is written.
 *
 * One writer at a time: a second one, in a signal handler, is refused, and
 * the first one's record has the flag COLLISION.  Other rules are as in
 * producer.h.
 *
 * Source: "AUX events" and "Snapshot mode" in Documentation/userspace-api/
 * perf_ring_buffer.rst, sections 3.2 and 3.3; flags in linux/perf_event.h.
 */
#ifndef SEAM_RING_AUX_PRODUCER_H
#define SEAM_RING_AUX_PRODUCER_H

#include "ring/producer/producer.h"

/* In seam_ring_state.aux_flags; only the owner uses them. */
enum seam_ring_aux_flag {
	SEAM_RING_AUX_REPORTED_FULL = 1,	/* by a TRUNCATED record */
	SEAM_RING_AUX_COLLIDED = 2,	/* a second writer was refused */
	SEAM_RING_AUX_UNREPORTED = 4,	/* an AUX record was lost */
};

struct seam_ring_aux_producer {
	struct seam_ring_producer *ring;	/* where AUX records go */
	uint8_t *buffer;
	uint64_t size;		/* bytes, a power of two */
	bool free_running;
	uint64_t format;	/* added to each record's flags */
};

struct seam_ring_aux_chunk {
	struct seam_ring_aux_producer *aux;
	uint64_t start, pos;	/* first byte; next byte */
	uint64_t flags;		/* PERF_AUX_FLAG_* so far */
};

/*
 * Produce into @buffer, which goes with @ring and must live as long.
 * Continues at the buffer's head; no older byte counts as this producer's.
 */
void seam_ring_aux_producer_init(struct seam_ring_aux_producer *aux,
				 struct seam_ring_producer *ring, void *buffer,
				 size_t buffer_bytes, bool free_running);

/* Begin a chunk.  Returns 0, or -EBUSY inside another one. */
int seam_ring_aux_begin(struct seam_ring_aux_producer *aux,
			struct seam_ring_aux_chunk *chunk);

/* Add bytes.  Returns how many were taken; the rest is counted as lost. */
size_t seam_ring_aux_put(struct seam_ring_aux_chunk *chunk, const void *src,
			 size_t bytes);

/* End the chunk.  @flags: added to its record, as PERF_AUX_FLAG_PARTIAL. */
void seam_ring_aux_end(struct seam_ring_aux_chunk *chunk, uint64_t flags);

#endif /* SEAM_RING_AUX_PRODUCER_H */
