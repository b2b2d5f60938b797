/* SPDX-License-Identifier: MIT */
/*
 * live_waits.h - how long threads ran and waited, step by step
 *
 * By switches, as model/perf/switches.h, for a recording that goes on: a wait
 * that has not ended counts with what it had in each step, so that the steps
 * add up to the time.  A thread's first record begins its time; what was lost is
 * not known here: the caller counts lost records.
 *
 * Threads are numbers of the caller, stacks are values of the caller.
 */
#pragma once

#include "model/profile/profile.h"

enum seam_live_state {
	SEAM_LIVE_UNKNOWN,	/* or it has ended */
	SEAM_LIVE_RUNNING,
	SEAM_LIVE_BLOCKED,
	SEAM_LIVE_PREEMPTED,
};

struct seam_live_run {
	enum seam_live_state state;
	uint64_t since_ns;	/* when it began */
	uint64_t counted_ns;	/* up to when it is in the steps */
	uint64_t stack, stack_ns;	/* the last one, and its time */
};

/* A wait, or the part of it in this step. */
struct seam_live_wait {
	uint32_t thread;
	bool is_preempted, has_stack;
	uint64_t stack;
	uint64_t to_ns, ns;
};

struct seam_live_waits {
	uint64_t min_ns;	/* shorter waits are no waits of a step */
	SEAM_ARRAY(struct seam_live_run) runs;		/* by thread */
	SEAM_ARRAY(struct seam_thread_time) times;	/* of this step */
	SEAM_ARRAY(struct seam_live_wait) waits;	/* of this step */
};

/* Valid on a zeroed struct. */
void seam_live_waits_fini(struct seam_live_waits *waits);

/* A stack with which @thread waits, or is about to.  0 or -ENOMEM. */
int seam_live_waits_stack(struct seam_live_waits *waits, uint32_t thread,
			  uint64_t stack, uint64_t ns);

/* From @ns on the thread is in @state; UNKNOWN: it has ended.  0 or -ENOMEM. */
int seam_live_waits_enter(struct seam_live_waits *waits, uint32_t thread,
			  enum seam_live_state state, uint64_t ns);

/* Count all states up to @ns.  0 or -ENOMEM. */
int seam_live_waits_step(struct seam_live_waits *waits, uint64_t ns);

/* Once waits and times were taken: the next step begins. */
void seam_live_waits_next(struct seam_live_waits *waits);
