/* SPDX-License-Identifier: MIT */
/*
 * tracing.h - the calls of instrumented programs (--trace)
 *
 * What fdr_service.h takes from programs becomes xray/ of the recording, and
 * of each snapshot of a flight recorder: newest calls, and their snapshots.
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
#ifndef SEAM_TRACING_H
#define SEAM_TRACING_H

#include "base/err.h"

struct seam_preload;
struct seam_session;

struct seam_tracing;

/*
 * Before the command is forked, and before any thread: add the services, and
 * libseam-fdr to @preload.  0, with NULL in *@made without --trace; -errno
 * where programs cannot be traced.
 */
int seam_tracing_new(struct seam_tracing **made, struct seam_session *s,
		     struct seam_preload *preload, struct seam_err *err);

/* Change the environment, which the command inherits; and change it back. */
void seam_tracing_set(struct seam_tracing *tracing);
void seam_tracing_restore(struct seam_tracing *tracing);

/* May be NULL. */
void seam_tracing_free(struct seam_tracing *tracing);

#endif /* SEAM_TRACING_H */
