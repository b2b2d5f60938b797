/* SPDX-License-Identifier: MIT */
/*
 * helper.h - a process for calls that may block
 *
 * Opening, reading, closing or even stat() of a file of another user may block
 * for any time (FUSE), where no signal ends the call.  So the thread that
 * drains the rings submits jobs; the helper runs them in order, one at a time;
 * the first thread collects the results.  A helper is a process which shares
 * memory and descriptors with ours (clone(2): CLONE_VM, CLONE_FILES): when it
 * hangs, our process can exit nevertheless.  A thread of ours lends its
 * thread-local storage and stack, so locks, malloc() and errno work.
 *
 * A job without progress for longer than its limit is given up: its process is
 * abandoned together with the job, and a new one runs the next job.  While
 * SEAM_HELPER_MAX_STUCK abandoned processes are in files of one user, all
 * further jobs of that user are given up at once; of all users, while
 * SEAM_HELPER_MAX_ALL_STUCK are.  An abandoned process ends, and is no longer
 * counted, when its file answers after all.
 *
 * A job is a heap object and owns everything that it uses: no other thread
 * accesses it from seam_helper_submit() until it is collected.
 *
 * Threads: all calls from one thread, except those in run().
 */
#pragma once

#include <sys/types.h>

#include "base/base.h"
#include "base/err.h"

enum {
	SEAM_HELPER_MAX_STUCK = 8,	/* of one user */
	SEAM_HELPER_MAX_ALL_STUCK = 64,
	SEAM_HELPER_MAX_JOBS = 4096,	/* in the queue */
};

struct seam_helper_job {
	/* In the helper.  May block. */
	void (*run)(struct seam_helper_job *job);
	/* In the caller's thread, after run(): use the result. */
	void (*done)(struct seam_helper_job *job, void *context);
	/*
	 * In the caller's thread, instead of done(): the job with @tag was
	 * given up.  It must not call the helper.  May be NULL.
	 */
	void (*given_up)(void *context, uint64_t tag);
	/* In the helper: free the job and what the job owns.  May block. */
	void (*free)(struct seam_helper_job *job);
	void *context;
	uint64_t tag;
	uid_t user;		/* whose files it uses; SEAM_HELPER_NO_USER */
	uint64_t limit_ns;	/* without progress; 0: SEAM_HELPER_LIMIT_NS */

	/* Private to the helper. */
	struct seam_helper_job *next;
	struct seam_helper_process *process;	/* that runs it */
	int state;		/* atomic */
};

/* Files of several users, or of an unknown user. */
#define SEAM_HELPER_NO_USER ((uid_t)-1)

#define SEAM_HELPER_LIMIT_NS UINT64_C(500000000)

/*
 * The user who started process @pid, who is accountable for its files also if
 * it runs as another; SEAM_HELPER_NO_USER: it has ended.  Does not block.
 */
uid_t seam_helper_user_of(int32_t pid);

struct seam_helper;

/* Starts no process yet.  NULL: no memory or descriptor; @err says which. */
struct seam_helper *seam_helper_new(struct seam_err *err);

/*
 * Drop the queue, and wait until the helper has freed all jobs, but no longer
 * than SEAM_HELPER_LIMIT_NS: it frees the rest when this process has ended.
 * NULL is ok.
 */
void seam_helper_free(struct seam_helper *helper);

/*
 * Queue @job, which the helper owns from now on.  -EBUSY: the queue is full,
 * or too many processes hang, of its user or in all; or -errno of starting one.
 * On an error only its free() is called.
 */
int seam_helper_submit(struct seam_helper *helper, struct seam_helper_job *job);

/* Close @fd, a file of @user; -1 is ok.  Without a helper at once. */
void seam_helper_close(struct seam_helper *helper, uid_t user, int fd);

/* In run(): the job makes progress; its limit begins again. */
void seam_helper_progress(struct seam_helper_job *job);

/*
 * In run(), for poll(): readable when the process that started the helper has
 * ended; a lock that it held is never released.
 */
int seam_helper_owner_fd(void);

/* In run(): the job uses files of @user from now on; and makes progress. */
void seam_helper_set_user(struct seam_helper_job *job, uid_t user);

/*
 * Call done() and given_up() of the jobs that have ended, and free them.
 * done() may submit more.  Returns whether any job is queued or running.
 */
bool seam_helper_collect(struct seam_helper *helper);

/* Give up all jobs, also the running one; calls given_up() for each. */
void seam_helper_abandon(struct seam_helper *helper);

/*
 * A descriptor for poll() that is readable if a job has ended since the last
 * collect.
 */
int seam_helper_fd(const struct seam_helper *helper);
