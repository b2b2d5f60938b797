/* SPDX-License-Identifier: MIT */
/*
 * aux.h - take bytes out of an AUX area: the kernel's, or one of our own
 *
 * Normal mode drains, as consumer.h does: peek, use, advance.
 *
 * Snapshot mode copies the newest bytes of an area that runs free, and
 * writes nothing to the shared page.  How much is there follows from the
 * head; but some drivers (Intel PT) keep the head below the area's size, so
 * that a head of 100 may mean 100 bytes, or the whole area.  Then what lies
 * behind the head decides: an area is born zeroed, so anything else means
 * that the writer has been there, and once round.  A head that has gone back
 * means the same.
 *
 * Nothing is trusted: positions are masked, and a free-running head that goes
 * back is counted and begun at anew.
 */
#ifndef SEAM_RING_AUX_H
#define SEAM_RING_AUX_H

#include "ring/consumer.h"

/* Zeroed is valid: an area of no bytes. */
struct seam_ring_aux {
	struct seam_ring_control *control;
	const uint8_t *area;
	uint64_t size;		/* bytes, a power of two; ours */
	uint64_t tail;		/* ours; aux_tail is only a copy */
	uint64_t first;		/* what is before it is not this owner's */
	uint64_t last_head;	/* at the last snapshot, free-running */
	bool wrapped;		/* the whole area has been written */
	size_t mapped_bytes;	/* 0: the memory is somebody else's */
	uint64_t n_resyncs;	/* heads that could not be */
};

struct seam_ring_aux_snapshot {
	uint8_t *copy;		/* owned; room for the area */
	size_t room;		/* bytes */
	const uint8_t *data;	/* the newest bytes, in copy */
	size_t bytes;
	uint64_t offset;	/* free-running position of the first */
	bool has_gap;		/* the writer was stopped inside, ... */
	uint64_t gap_offset;	/* ... here; own areas only, its claim */
};

/*
 * Map the AUX area of perf event @fd, whose ring @ring is mapped: @bytes, a
 * power of two.  @overwrite maps it read-only, which makes it run free.
 * -EOPNOTSUPP: not an event that has one.
 */
int seam_ring_aux_map(struct seam_ring_aux *aux, struct seam_ring *ring,
		      int fd, size_t bytes, bool overwrite,
		      struct seam_err *err);

/* Use the area at @area, which must outlive @aux. */
void seam_ring_aux_attach(struct seam_ring_aux *aux,
			  struct seam_ring_control *control, const void *area,
			  size_t bytes);

/* Valid on a zeroed struct. */
void seam_ring_aux_fini(struct seam_ring_aux *aux);

/* Normal mode: what can be read now, as in consumer.h; bytes, 0 for none. */
size_t seam_ring_aux_peek(struct seam_ring_aux *aux,
			  struct seam_ring_span *span);

/* Give the span back to the writer. */
void seam_ring_aux_advance(struct seam_ring_aux *aux,
			   const struct seam_ring_span *span);

/* Get memory for snapshots of @aux.  -ENOMEM. */
int seam_ring_aux_snapshot_init(struct seam_ring_aux_snapshot *shot,
				const struct seam_ring_aux *aux,
				struct seam_err *err);
void seam_ring_aux_snapshot_fini(struct seam_ring_aux_snapshot *shot);

/*
 * Snapshot mode, kernel: its event must be disabled meanwhile.  Returns the
 * number of bytes.
 */
size_t seam_ring_aux_snapshot(struct seam_ring_aux *aux,
			      struct seam_ring_aux_snapshot *shot);

/*
 * Snapshot mode, an area of our own, whose writer need not have stopped:
 * what it may have written over during the copy is left out.
 */
size_t seam_ring_aux_snapshot_own(struct seam_ring_aux *aux,
				  struct seam_ring_aux_snapshot *shot);

/* Ask a writer of our own to stop, which it does at its next chunk. */
void seam_ring_aux_pause(struct seam_ring_aux *aux, bool pause);

#endif /* SEAM_RING_AUX_H */
