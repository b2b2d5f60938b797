/* SPDX-License-Identifier: MIT */
/*
 * rounds.h - the rounds of a recording: wait, drain, do what is due
 *
 * A round begins with a wakeup or after a time, drains the rings, and makes a
 * snapshot or ends the recording where that is due: by a signal, by a limit, or
 * because everything recorded has ended.
 */
#ifndef SEAM_ROUNDS_H
#define SEAM_ROUNDS_H

#include "base/err.h"
#include "record/sched.h"

struct seam_session;

struct seam_rounds {
	struct seam_sched sched;	/* the recorder's CPU */
	uint64_t full_ns;	/* when a ring was above its watermark last */
	bool is_delayed;	/* samples are not enabled yet (--delay) */
	uint64_t enable_ns;	/* when they will be */
	uint64_t end_ns;	/* of the recording; UINT64_MAX: none */
	uint64_t snapshot_ns;	/* of the next snapshot; UINT64_MAX: none */
	unsigned int n_snapshots;
	uint64_t wait_end_ns;	/* when seam_rounds_wait() gives up */
	bool must_end;		/* a signal in seam_rounds_wait() demands it */
};

/* Round after round until the recording ends.  0 or -errno of a write. */
int seam_rounds_run(struct seam_session *s, struct seam_err *err);

/*
 * For work outside the rounds: seam_rounds_wait() may take this long from now.
 */
void seam_rounds_allow(struct seam_session *s, uint64_t ns);

/*
 * Wait until @fd is readable or @timeout_ms is over, and read signals.  False:
 * a signal or the end of the allowed time wants the work to stop.  @session is
 * a struct seam_session.
 */
bool seam_rounds_wait(void *session, int fd, int timeout_ms);

/*
 * After the recording: wait for the command's end, which is our exit status.
 * A command that only defines the time of a recording of other processes
 * (-p, -t) is ended.
 */
void seam_rounds_wait_for_command(struct seam_session *s);

#endif /* SEAM_ROUNDS_H */
