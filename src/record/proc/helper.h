/* SPDX-License-Identifier: MIT */
/*
 * helper.h - a thread for calls that may block
 *
 * Opening, reading or even looking at a file of another user may take as long
 * as that user likes: its file system can be served by a program of theirs.
 * So the thread that drains does none of it.  It submits jobs, which a helper
 * thread runs one at a time in their order, and collects what has ended.
 *
 * A job that makes no progress for its time is given up: its thread is left
 * to itself, with the job, and another one goes on with the next.  After
 * SEAM_HELPER_MAX_STUCK of those all further jobs are given up at once.
 * Nothing waits for a stuck thread; it ends with the process.
 *
 * A job owns all that it uses while it runs: it is a heap object that nobody
 * else looks at until it has been collected.
 *
 * Threads: all calls from one thread, except seam_helper_progress().  The
 * helper thread is not real-time, and has all signals blocked.
 */
#ifndef SEAM_HELPER_H
#define SEAM_HELPER_H

#include "base/base.h"
#include "base/err.h"

enum {
	SEAM_HELPER_MAX_STUCK = 16,
	SEAM_HELPER_MAX_JOBS = 4096,	/* that wait */
};

struct seam_helper_job {
	/* In the helper thread: do it.  May block. */
	void (*run)(struct seam_helper_job *job);
	/* In the caller's: it was run; use its result. */
	void (*done)(struct seam_helper_job *job, void *context);
	/*
	 * In the caller's, in place of done(): @tag's job was given up.  It
	 * counts that, and calls nothing of the helper.  May be NULL.
	 */
	void (*given_up)(void *context, uint64_t tag);
	/* In either: free it and what it holds. */
	void (*free)(struct seam_helper_job *job);
	void *context;
	uint64_t tag;
	uint64_t limit_ns;	/* without progress; 0: SEAM_HELPER_LIMIT_NS */

	struct seam_helper_job *next;	/* the helper's, as the rest */
	uint64_t progress_ns;
	bool is_stuck;
};

#define SEAM_HELPER_LIMIT_NS UINT64_C(500000000)

struct seam_helper;

/* Starts no thread yet.  NULL: no memory or descriptor; @err says which. */
struct seam_helper *seam_helper_new(struct seam_err *err);

/*
 * Drop jobs that wait, and end.  A job that runs is left to its thread.  NULL
 * is ok.
 */
void seam_helper_free(struct seam_helper *helper);

/*
 * Takes @job.  0; or -EAGAIN: too many wait, or -errno of a thread that could
 * not be started: then it was freed, and neither done nor given up.
 */
int seam_helper_submit(struct seam_helper *helper,
		       struct seam_helper_job *job);

/* In a job: it goes on, if slowly. */
void seam_helper_progress(struct seam_helper_job *job);

/*
 * Call done() and given_up() of the jobs that have ended, and free them.
 * done() may submit more.  Returns whether any job waits or runs.
 */
bool seam_helper_collect(struct seam_helper *helper);

/* Give up all jobs, the one that runs too.  given_up() is called for each. */
void seam_helper_abandon(struct seam_helper *helper);

/*
 * Readable when a job has ended since the last collect, while @wanted.  For
 * poll(); without it nobody is woken.
 */
int seam_helper_fd(struct seam_helper *helper, bool wanted);

#endif /* SEAM_HELPER_H */
