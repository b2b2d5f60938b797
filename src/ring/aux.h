/* SPDX-License-Identifier: MIT */
/*
 * aux.h - take bytes out of an AUX buffer, the kernel's or a program's
 *
 * Normal mode drains, as consumer.h does: peek, use, advance.
 *
 * Snapshot mode copies the newest bytes of a free-running buffer, and writes
 * nothing to the control page.  The head is the number of bytes written, but
 * some drivers (Intel PT) keep it below the buffer's size: a head of 100 may
 * mean 100 bytes, or the whole buffer.  A new buffer is zeroed, so non-zero
 * bytes after the head mean that the writer has wrapped.  So does a head that
 * has gone back.
 *
 * Nothing is trusted: positions are masked, and a program's free-running head
 * that goes back is counted and becomes the new start.
 */
#pragma once

#include "ring/consumer.h"

/* Zeroed is valid: a buffer of no bytes. */
struct seam_ring_aux {
	struct seam_ring_control *control;
	const uint8_t *buffer;
	uint64_t size;		/* bytes, a power of two */
	uint64_t tail;		/* private; aux_tail is a copy */
	uint64_t first;		/* bytes before it are an earlier owner's */
	uint64_t last_head;	/* at the last snapshot, free-running */
	bool wrapped;		/* the whole buffer has been written */
	size_t mapped_bytes;	/* 0: mapped by the caller */
	uint64_t n_resyncs;	/* invalid heads */
};

struct seam_ring_aux_snapshot {
	uint8_t *copy;		/* owned; room for the buffer */
	size_t room;		/* bytes */
	const uint8_t *data;	/* the newest bytes, in copy */
	size_t bytes;
	uint64_t offset;	/* free-running position of the first */
};

/*
 * Map the AUX buffer of perf event @fd, whose ring @ring is mapped: @bytes, a
 * power of two.  @overwrite maps it read-only, which makes it free-running.
 * -EOPNOTSUPP: events of this PMU have no AUX buffer.
 */
int seam_ring_aux_map(struct seam_ring_aux *aux, struct seam_ring *ring,
		      int fd, size_t bytes, bool overwrite,
		      struct seam_err *err);

/* Use the buffer at @buffer, which must outlive @aux. */
void seam_ring_aux_attach(struct seam_ring_aux *aux,
			  struct seam_ring_control *control, const void *buffer,
			  size_t bytes);

/* Valid on a zeroed struct. */
void seam_ring_aux_fini(struct seam_ring_aux *aux);

/* Normal mode: the bytes that can be read now.  Their number, 0 for none. */
size_t seam_ring_aux_peek(struct seam_ring_aux *aux,
			  struct seam_ring_span *span);

/* Give the span back to the writer. */
void seam_ring_aux_advance(struct seam_ring_aux *aux,
			   const struct seam_ring_span *span);

/* Allocate memory for snapshots of @aux.  -ENOMEM. */
int seam_ring_aux_snapshot_init(struct seam_ring_aux_snapshot *snapshot,
				const struct seam_ring_aux *aux,
				struct seam_err *err);
void seam_ring_aux_snapshot_fini(struct seam_ring_aux_snapshot *snapshot);

/*
 * Snapshot mode, of a kernel buffer, whose event must be disabled meanwhile.
 * Returns the number of bytes.
 */
size_t seam_ring_aux_snapshot(struct seam_ring_aux *aux,
			      struct seam_ring_aux_snapshot *snapshot);

/*
 * Snapshot mode, of a program, which need not stop: bytes that it may have
 * overwritten during the copy are left out.  Meanwhile aux_held is set, and the
 * program takes no bytes back, but for once if it was about to.
 */
size_t seam_ring_aux_snapshot_program(struct seam_ring_aux *aux,
				      struct seam_ring_aux_snapshot *snapshot);
