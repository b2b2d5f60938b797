/* SPDX-License-Identifier: MIT */
/*
 * rounds.h - the rounds of a recording: wait, drain, check limits
 *
 * A round begins with a wakeup or a timeout and drains the rings.  It makes a
 * snapshot if one is due, and ends the recording on a signal, at a limit, or
 * when all recorded processes have ended.
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
	bool must_end;		/* seam_rounds_wait() has found the end */
};

/* Run rounds until the recording ends.  0 or -errno of a write. */
int seam_rounds_run(struct seam_session *s, struct seam_err *err);

/*
 * Limit work outside the rounds: seam_rounds_wait() returns false @ns from now.
 */
void seam_rounds_allow(struct seam_session *s, uint64_t ns);

/*
 * Wait until @fd is readable or @timeout_ms is over, and read signals.  False:
 * stop the work, because of a signal or because the allowed time is over.
 * @session is a struct seam_session.
 */
bool seam_rounds_wait(void *session, int fd, int timeout_ms);

/*
 * After the recording: wait until the command has ended, for its exit status.
 * A command that is not recorded itself, with -p or -t, is terminated.
 */
void seam_rounds_wait_for_command(struct seam_session *s);

#endif /* SEAM_ROUNDS_H */
