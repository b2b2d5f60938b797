/* SPDX-License-Identifier: MIT */
/*
 * ended_threads.h - the newest calls of threads that have ended
 *
 * A flight recorder has the newest calls of each thread in the thread's own
 * memory, which goes to another thread when it ends.  Here they are kept, up to
 * a number of bytes in all; then those of the threads that ended first are
 * dropped, and counted.
 */
#ifndef SEAM_ENDED_THREADS_H
#define SEAM_ENDED_THREADS_H

#include "base/base.h"

enum { SEAM_ENDED_THREADS_BYTES = 128 << 20 };	/* the default limit */

/* Of one thread: chunks (wire/xray/xray_chunk.h). */
struct seam_ended_thread {
	struct seam_ended_thread *next;	/* that ended after it */
	uint32_t pid, tid;
	uint64_t since_ns;		/* with pid, its program */
	size_t size;
	uint8_t bytes[];
};

/* Zeroed with a limit is valid and empty. */
struct seam_ended_threads {
	uint64_t max_bytes;		/* of calls, and of what each needs */
	struct seam_ended_thread *first, *last;	/* in order of end */
	uint64_t n_bytes;
	uint64_t n_dropped;		/* threads */
};

/*
 * Keep a copy of @thread, with @bytes, which are thread->size.  Without memory,
 * or beyond the limit, it is dropped.
 */
void seam_ended_threads_add(struct seam_ended_threads *ended,
			    const struct seam_ended_thread *thread,
			    const uint8_t *bytes);

void seam_ended_threads_fini(struct seam_ended_threads *ended);

#endif /* SEAM_ENDED_THREADS_H */
