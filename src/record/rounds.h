/* SPDX-License-Identifier: MIT */
/*
 * rounds.h - wait, drain, check limits
 *
 * A round begins with a wakeup or a timeout and drains the rings.  It makes a
 * snapshot if one is due, and ends the recording on a signal, at a limit, or
 * when all recorded processes have ended.
 *
 * The first drain that fails cuts the recording short: no more records are
 * written, and those in the file stay readable.  The rounds go on until the
 * command ends.
 */
#ifndef SEAM_ROUNDS_H
#define SEAM_ROUNDS_H

#include "record/session.h"

/* Run rounds until the recording ends.  0, or as seam_rounds_failure(). */
int seam_rounds_run(struct seam_session *s, struct seam_err *err);

/*
 * Drain the rings once: in the middle of a round, for long work while programs
 * are recorded, and before and after the rounds.  0 or -errno.
 */
int seam_rounds_drain(struct seam_session *s);

/*
 * The same if they were not drained for some ms, and read signals without
 * waiting.  False: stop, as seam_session_wait() says.
 */
bool seam_rounds_wait_and_drain(struct seam_session *s);

/* -errno of the drain that failed, with its cause in @err; 0: none has. */
int seam_rounds_failure(const struct seam_session *s, struct seam_err *err);

/* Make a snapshot; after a failure the recording goes on.  True: it is made. */
bool seam_rounds_snapshot(struct seam_session *s);

/* Write no more records; those in the file stay readable. */
void seam_rounds_cut_short(struct seam_session *s);

#endif /* SEAM_ROUNDS_H */
