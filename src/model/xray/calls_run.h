/* SPDX-License-Identifier: MIT */
/*
 * calls_run.h - from the log's bytes to ended calls, without a guess
 *
 * Whether the next record is an entry or an exit is what a CPU predicts
 * worst: where programs do not repeat themselves, every second guess is
 * wrong, and each costs as much as four records.  This loop does for each
 * record what an entry needs and what an exit needs, in a way that the half
 * which is not meant changes nothing, so it has no jump to guess at.
 *
 * It takes records as long as all is as it should be: each is an Entry of a
 * known function or the Exit of the call on top.  At the first that is not it
 * stops, and calls.h, which knows all cases, goes on from there; both work on
 * the same struct seam_calls, and what comes out is the same.
 */
#ifndef SEAM_CALLS_RUN_H
#define SEAM_CALLS_RUN_H

#include "model/xray/calls.h"
#include "model/xray/trace.h"

/*
 * Follow @run from its front.  Returns how many records were taken, with the
 * calls that ended in @ended and run->ticks at the last one; 0 also for want
 * of memory, which is in calls->error.
 */
size_t seam_calls_run(struct seam_calls *calls, struct seam_trace_run *run,
		      struct seam_ended_calls *ended);

#endif /* SEAM_CALLS_RUN_H */
