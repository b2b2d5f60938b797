/* SPDX-License-Identifier: MIT */
/*
 * plan.h - from the options to open events
 *
 * Nothing is on disk yet, so a refusal leaves no trace.
 */
#ifndef SEAM_PLAN_H
#define SEAM_PLAN_H

#include "record/session.h"

/* Open what the options ask for.  Needs the command to be prepared. */
int seam_plan_open(struct seam_session *s, struct seam_err *err);

/*
 * Whether the command is what is recorded.  Beside -a, -p and -t it only says
 * how long to record, as in perf.
 */
bool seam_plan_follows_command(const struct seam_session *s);

/* Tell the user what the recording does without. */
void seam_plan_tell(const struct seam_session *s);

#endif /* SEAM_PLAN_H */
