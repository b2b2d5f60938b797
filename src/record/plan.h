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

/* ---- sampling.c, for plan.c ---- */

/*
 * How often events are sampled, and what their samples hold.  Frequency, call
 * chains and rings depend on each other: copies of stacks need a ring that
 * lasts until the recorder runs (stack_plan.h), and how large a ring may be is
 * known once it is mapped.  So the events are described for the largest rings,
 * opened, and described again for what was granted.
 */

/*
 * Set rate and contents of the samples of all events, which are as they were
 * parsed.  -EINVAL: the call chains that the options request do not fit.
 */
int seam_sampling_set(struct seam_session *s, struct seam_err *err);

/* The size of rings to map for these events. */
size_t seam_sampling_ring_bytes(const struct seam_session *s);

/*
 * The sources are open.  -EAGAIN: their rings are too small for what the
 * events say; close them, parse the events, and set them again.
 */
int seam_sampling_check(struct seam_session *s, struct seam_err *err);

/* Whether copies of stacks stay in the file (SEAM_CALL_GRAPH_DWARF). */
bool seam_sampling_keeps_copies(const struct seam_session *s);

/* Report to the user rates, rings and stacks that are not as requested. */
void seam_sampling_report(const struct seam_session *s);

#endif /* SEAM_PLAN_H */
