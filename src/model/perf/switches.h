/* SPDX-License-Identifier: MIT */
/*
 * switches.h - from switches of threads to the times that they ran and waited
 *
 * A SWITCH record says that a thread got a CPU (in), or lost it: because it
 * blocked (out), or while it could still run (out, runnable).  Each CPU has a
 * ring of its own, and a thread that migrates goes out in one, and in in
 * another: all records are sorted by time first.  Then each thread is in one
 * state:
 *
 *	state		begins with		ends with
 *	not known	the recording		its first record
 *	running		in			out, exit
 *	blocked		out			in, exit, end of the recording
 *	preempted	out, runnable		the same
 *	ended		exit			never
 *
 * A thread whose first record is "out" ran from its start, or that of the
 * recording, on.  What was before a first "in" is not known, and no wait, as of
 * a new thread; unless the thread was seen to be blocked before: then it was
 * from the begin of the recording on.  The kernel does not report the last "out"
 * of a thread that exits.
 *
 * Nothing is guessed where records are missing.  Two "in", or two "out", in a
 * row: the time between the first of them and the next record that fits is
 * not known.  LOST: records of one ring are missing since its record before;
 * what any thread did in that time is not known.
 *
 * Threads: one.  Cost: some 20 ns a record.
 */
#pragma once

#include "model/profile/profile.h"
#include "model/profile/waits.h"

enum seam_switch_kind {
	SEAM_SWITCH_IN,
	SEAM_SWITCH_OUT,
	SEAM_SWITCH_OUT_RUNNABLE,
	SEAM_SWITCH_EXIT,	/* of the thread */
	SEAM_SWITCH_SEEN,	/* it is blocked: it was looked at */
	SEAM_SWITCH_LOST,	/* records of this ring before it; no thread */
};

struct seam_switch {
	uint64_t time_ns;
	uint32_t thread;	/* in a scan: a task key */
	uint16_t cpu;		/* whose ring it was in */
	uint8_t kind;		/* enum seam_switch_kind */
	/* seam_switches_replay(): threads that run from then on */
	uint16_t n_running;
};

struct seam_switches {
	SEAM_ARRAY(struct seam_switch) items;
};

/*
 * Sort the records, then replay them.  Times of a thread go to
 * @profile->thread_times, which has an element for each thread then, and waits
 * to @waits, by their ends.  @profile has the times of threads; exits are added
 * from there.
 * @begin_ns, @end_ns: of the recording.  0 or -ENOMEM.
 */
int seam_switches_replay(struct seam_switches *switches,
			 struct seam_profile *profile, uint64_t begin_ns,
			 uint64_t end_ns, struct seam_waits *waits);

/*
 * How many threads ran at @time_ns, as far as is known; of the replay.
 */
uint16_t seam_switches_running(const struct seam_switches *switches,
			       uint64_t time_ns);
