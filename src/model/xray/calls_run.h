/* SPDX-License-Identifier: MIT */
/*
 * calls_run.h - from the log's bytes to ended calls, without branches
 *
 * Whether the next record is an entry or an exit is hard to predict: in
 * programs that do not repeat themselves, every second branch is mispredicted,
 * and each misprediction costs as much as four records.  For each record, this
 * loop does the work of an entry and that of an exit, so that the work of the
 * other kind has no effect, and needs no branch.
 *
 * It takes records as long as each is an Entry of a known function or the Exit
 * of the call on top.  At the first other record it stops, and calls.h, which
 * handles all cases, takes over.  Both work on the same struct seam_calls,
 * with the same results: tests/model/test_account_runs.c compares them.
 */
#ifndef SEAM_CALLS_RUN_H
#define SEAM_CALLS_RUN_H

#include "model/xray/calls.h"
#include "model/xray/trace.h"

/*
 * Take records from the front of @run.  Returns how many, with the calls that
 * ended in @ended and run->ticks at the last record; 0 also where memory ran
 * out, which is in calls->error.
 */
size_t seam_calls_run(struct seam_calls *calls, struct seam_trace_run *run,
		      struct seam_ended_calls *ended);

#endif /* SEAM_CALLS_RUN_H */
