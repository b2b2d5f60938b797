/* SPDX-License-Identifier: MIT */
/*
 * new_threads.h - threads that come while a per-thread recording goes on
 *
 * The kernel does not inherit into rings of threads.  The side-band, which
 * it does inherit, tells of each birth; the thread's events are opened then.
 * The time between, in which it ran unseen, is measured; a thread that ended
 * before it could be opened is counted, and so is one that could not be.
 */
#ifndef SEAM_NEW_THREADS_H
#define SEAM_NEW_THREADS_H

#include "base/array.h"
#include "record/loop.h"
#include "record/perf/auxtrace.h"
#include "record/perf/sources.h"
#include "wire/perf/perf_writer.h"

struct seam_thread_news {
	int tid;
	bool died;
	uint64_t time_ns;
	uint64_t ended_ns;	/* of one that was born: in this round; or 0 */
};

/* The first members are the caller's. */
struct seam_new_threads {
	struct seam_sources *sources;	/* borrowed, as all of these */
	struct seam_perf_writer *writer;
	struct seam_loop *loop;
	struct seam_auxtrace *aux;
	bool other_clock;	/* of the records: lateness is not known */

	SEAM_ARRAY(struct seam_thread_news) news;	/* of this round */
	uint64_t n_late;	/* threads that ran before they were opened */
	uint64_t late_ns;	/* all that time; of those unseen, their lives */
	uint64_t longest_ns;	/* of one thread */
	uint64_t n_unseen;	/* threads that ended before they were opened */
	uint64_t n_refused;	/* those that could not be opened, and why */
	struct seam_err refusal;	/* of the first */
};

/* Look at a side-band record, whole and in one piece. */
void seam_new_threads_see(struct seam_new_threads *follow,
		     const struct seam_ring_header *record);

/*
 * After the round that has drained what the dead left: open who was born,
 * close who died.  0, or -errno of a write to the file.
 */
int seam_new_threads_act(struct seam_new_threads *follow, struct seam_err *err);

void seam_new_threads_fini(struct seam_new_threads *follow);

#endif /* SEAM_NEW_THREADS_H */
