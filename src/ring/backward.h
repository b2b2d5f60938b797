/* SPDX-License-Identifier: MIT */
/*
 * backward.h - take a snapshot of a ring that overwrites
 *
 *	seam_ring_snapshot_init(&snapshot, data_bytes, err);
 *	... PERF_EVENT_IOC_PAUSE_OUTPUT 1 ...
 *	seam_ring_snapshot(&ring, &snapshot);
 *	... resume ...
 *	while (seam_ring_record(&snapshot.span, pos, &header))
 *		pos += header.size;
 *
 * The producer goes from high positions to low ones: the newest record begins
 * at the head, and older ones follow at growing positions, up to the one whose
 * end has been overwritten.  A snapshot is a private copy of all whole
 * records, newest first.
 *
 * Only the kernel's rings overwrite; they must be paused.
 */
#ifndef SEAM_RING_BACKWARD_H
#define SEAM_RING_BACKWARD_H

#include "ring/consumer.h"

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

#endif /* SEAM_RING_BACKWARD_H */
