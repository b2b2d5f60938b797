/* SPDX-License-Identifier: MIT */
/*
 * plan.h - from the options to open events
 *
 * Nothing is on disk yet, so a refusal leaves no trace.
 */
#ifndef SEAM_PLAN_H
#define SEAM_PLAN_H

#include "record/session.h"

/* Open the events of the options, after seam_child_prepare(). */
int seam_plan_open(struct seam_session *s, struct seam_err *err);

/* What the events of the options are for an agent, which samples CPU time. */
struct seam_plan_clock {
	/*
	 * CPU time between two samples of the first event that samples it; of
	 * a number of cycles, whose time is not known, 1 ms; 0: there is none
	 */
	uint64_t period_ns;
	bool has_aux;
};

/* Before seam_plan_open(), which reports the cause if this is false. */
bool seam_plan_clock(struct seam_session *s, struct seam_plan_clock *clock);

/* Whether all threads are recorded: -a, or CPUs and nothing else. */
bool seam_plan_is_system_wide(const struct seam_record_options *options);

/*
 * Whether the command is recorded.  Beside -a, -p and -t it only defines how
 * long to record, as in perf.
 */
bool seam_plan_records_command(const struct seam_record_options *options);

/* Report to the user what is left out or smaller than requested. */
void seam_plan_report(const struct seam_session *s);

#endif /* SEAM_PLAN_H */
