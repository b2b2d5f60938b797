/* SPDX-License-Identifier: MIT */
/*
 * stream.h - records to a recording Seam, in place of a file
 *
 * The buffer keeps every record of code that is there, for children to
 * inherit; what stands behind @sent is still to go.  With every call as much
 * of that goes into the ring as there is room for.  Nobody waits: a full ring
 * means that records stay behind @sent until the next call.
 *
 * Groups and chunks are those of ring/link/jit_chunk.h.  The dump's turn makes the
 * ring's writers one after the other.
 */
#ifndef SEAM_TARGET_STREAM_H
#define SEAM_TARGET_STREAM_H

#include "ring/link/link_client.h"

struct seam_jitdump;

enum {
	SEAM_STREAM_MEET_MS = 1000,	/* for the recorder to answer */
	SEAM_STREAM_MOST_WAITING = 64 << 20,	/* bytes */
};

struct seam_writer_stream {
	bool is_on;		/* this dump is a stream, not a file */
	bool is_over;		/* nothing more is written */
	bool has_ring;		/* it may be stopped */
	/*
	 * Entries and buffer do not agree for the moment: a child that is
	 * forked now cannot inherit, and nothing may be moved.
	 */
	volatile bool is_moving;
	size_t sent;		/* bytes of whole groups in the ring */
	size_t part;		/* and of the group behind them */
	/* Pieces and moves so far.  Any thread adds. */
	_Atomic uint64_t n_offered;
	uint64_t n_told;	/* of them: in the ring, or as lost without */
	struct seam_link_client client;
	struct seam_ring_claim claim;
};

/*
 * Meet the recorder at @address and claim a ring.  0, or -errno and the dump
 * as it was: a file must do then.
 */
int seam_stream_open(struct seam_jitdump *dump, const char *address);

/* As seam_writer_reserve() and seam_writer_flush(). */
uint8_t *seam_stream_reserve(struct seam_jitdump *dump, size_t size,
			     int *error);
int seam_stream_publish(struct seam_jitdump *dump);

/* Whether records stand in memory that found no room. */
bool seam_stream_waits(const struct seam_jitdump *dump);

/* Leave the ring to the recorder; ours comes with the next. */
void seam_stream_leave(struct seam_jitdump *dump);

/* In a child: leave the parent's ring alone; ours comes with the next. */
void seam_stream_fork(struct seam_jitdump *dump);

/* Write no more; what waits is lost, and the recorder knows how much. */
void seam_stream_close(struct seam_jitdump *dump);

#endif /* SEAM_TARGET_STREAM_H */
