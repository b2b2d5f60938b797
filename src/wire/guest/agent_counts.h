/* SPDX-License-Identifier: MIT */
/*
 * agent_counts.h - samples of agents, and ticks without one, by cause
 *
 * Counted by the recorder (record/services/guest_service.h), stored in the
 * manifest, described by "seam record".
 *
 * A tick is a period of a thread's CPU time.  The weights of the samples are
 * in ticks: n_ticks is n_due less the ticks that were lost at the end of
 * threads or in full rings.  A tick without a sample of its own is counted by
 * cause.
 */
#ifndef SEAM_AGENT_COUNTS_H
#define SEAM_AGENT_COUNTS_H

#include "base/base.h"

/*
 * Why ticks have no sample of their own: indices of n_skipped in the state of a
 * ring, which the agent writes and the recorder adds.  Ticks whose records did
 * not fit are in the ring's own counts.
 */
enum seam_agent_skip {
	SEAM_AGENT_MERGED,	/* the signal came late: in the next weight */
	SEAM_AGENT_THROTTLED,	/* samples took too much of the CPU time */
	SEAM_AGENT_NO_STACK,	/* the stack has too little room */
	SEAM_AGENT_ENDED,	/* left over at the end of a thread */
};

/* Zeroed is valid and empty. */
struct seam_agent_counts {
	uint64_t n_processes;	/* that connected; forked ones not counted */
	uint64_t n_samples;
	uint64_t n_guest;	/* of these, with frames of the guest */
	uint64_t n_incomplete;	/* with frames missing, of guest or host */
	uint64_t n_symbols;
	uint64_t n_bad;		/* invalid records, dropped */
	uint64_t n_lost;	/* records that found no room */
	uint64_t n_without_ring;	/* ticks of threads that had no ring */
	uint64_t n_ticks;	/* weights of the samples */
	uint64_t n_due;
	uint64_t n_merged;	/* the signal came late */
	uint64_t n_throttled;	/* samples took too much of the CPU time */
	uint64_t n_no_stack;	/* no room on the thread's signal stack */
	uint64_t n_ended;	/* left over at the end of a thread */
	uint64_t n_superseded;	/* the recorder's own samples, dropped */
};

#endif /* SEAM_AGENT_COUNTS_H */
