/* SPDX-License-Identifier: MIT */
/*
 * flight.h - the flight recorder of calls: newest calls, and their snapshots
 *
 * With --flight-recorder each thread's calls are in a buffer of its own that
 * overwrites itself, in memory that the recorder holds.  They are written only
 * to a snapshot, and to the recording itself at its end:
 *
 *	of a thread that runs	copied while it goes on (ring/aux.h)
 *	of one that has ended	copied at its end, kept in memory with a limit
 *				(record/trace/ended_threads.h)
 *
 * A snapshot has the newest chunks of each thread up to the moment of its copy;
 * threads are copied one after another.  A thread writes into the oldest of its
 * chunks meanwhile, so a buffer of SIZE bytes gives between SIZE - 2 chunks and
 * SIZE - 1 chunk (64 KiB each), and less where the copy takes longer than the
 * thread needs for a chunk.
 *
 * From a trigger on, until it is copied, each thread of its program uses half
 * of its buffer at most, and leaves out what does not fit
 * (traced/fdr/check/triggers.h).  So a snapshot for a trigger has the newest
 * SIZE / 2 - 1 chunk of what came before it, or more, however late it is; and
 * what came after it, up to SIZE / 2.  Where calls were left out later copies
 * begin, so none shows calls of before and after as if they were nested.
 */
#ifndef SEAM_FLIGHT_H
#define SEAM_FLIGHT_H

#include "record/tracing.h"

struct seam_flight_options;

/*
 * Have the services of @t, which are not added yet, keep the newest calls, and
 * make snapshots for triggers.
 */
void seam_flight_init(struct seam_tracing *t,
		      const struct seam_flight_options *options);

/* Add the triggers of the snapshot which is being made to its manifest. */
void seam_flight_describe(struct seam_tracing *t, struct seam_manifest *m);

/* The rings are closed: write what is kept to the recording's logs. */
void seam_flight_finish(struct seam_tracing *t);

#endif /* SEAM_FLIGHT_H */
