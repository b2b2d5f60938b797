/* SPDX-License-Identifier: MIT */
/*
 * backward.h - what a ring that overwrites holds at this moment
 *
 *	seam_ring_snapshot_init(&shot, data_bytes, err);
 *	... PERF_EVENT_IOC_PAUSE_OUTPUT 1, or seam_ring_pause(&ring, true) ...
 *	seam_ring_snapshot(&ring, &shot);
 *	... resume ...
 *	while (seam_ring_record(&shot.span, pos, &header))
 *		pos += header.size;
 *
 * The producer goes from high positions to low ones, so the head is where
 * the newest record begins and older ones follow at growing positions, up to
 * the one whose end has been overwritten.  A snapshot is a private copy of
 * all whole records, newest first.
 *
 * A kernel ring must be paused.  A ring of our own need not be, nor is
 * pausing more than a request there, since a writer may be in the middle of
 * a record: the place it reserved is looked at after the copy, and what it
 * may have overwritten meanwhile is dropped, the oldest records first.
 */
#ifndef SEAM_RING_BACKWARD_H
#define SEAM_RING_BACKWARD_H

#include "ring/consumer.h"

struct seam_ring_snapshot {
	uint8_t *copy;			/* owned; room for the ring's data */
	size_t room;			/* bytes */
	struct seam_ring_span span;	/* whole records, newest first */
	size_t n_records;
	/*
	 * Bytes at the span's start that the snapshot before this one did not
	 * hold; the rest is there again.
	 */
	size_t new_bytes;
	uint64_t head;			/* of the last snapshot */
	bool is_first;
};

/* Get memory for snapshots of a ring with @data_bytes.  -ENOMEM. */
int seam_ring_snapshot_init(struct seam_ring_snapshot *shot,
			    size_t data_bytes, struct seam_err *err);

/* Valid on a zeroed struct. */
void seam_ring_snapshot_fini(struct seam_ring_snapshot *shot);

/*
 * Copy what the kernel's ring @ring holds.  Returns the bytes of whole
 * records, 0 when there are none or @shot has no room for the ring.
 */
size_t seam_ring_snapshot(struct seam_ring *ring,
			  struct seam_ring_snapshot *shot);

/* The same for a ring of our own, whose producer need not have stopped. */
size_t seam_ring_snapshot_own(struct seam_ring *ring,
			      struct seam_ring_snapshot *shot);

/* Ask a producer of our own to refuse records, which it counts, or go on. */
void seam_ring_pause(struct seam_ring *ring, bool pause);

#endif /* SEAM_RING_BACKWARD_H */
