/* SPDX-License-Identifier: MIT */
/* sched.h - be scheduled soon after a wake-up */
#ifndef SEAM_SCHED_H
#define SEAM_SCHED_H

#include "base/cpu_mask.h"
#include "base/err.h"

/*
 * Ask for short slices of time, which needs no right: a thread that asks for
 * less at once is run earlier, and has no more of the CPU in the end.  And,
 * where that is allowed (CAP_SYS_NICE), for weight: who runs for 40 us of a ms
 * must not wait for another's 4 ms in the middle of that.  For the calling
 * thread, after fork(): a command must not inherit it.  Kernels before 6.12
 * take no notice of the slice.
 *
 * Source: sched_setattr(2); "custom slice" in kernel/sched/fair.c, Linux 6.12.
 */
void seam_sched_request(void);

/*
 * Real-time @priority for the calling thread; what it forks does not inherit
 * it.  0, or -EPERM: it needs CAP_SYS_NICE.
 */
int seam_sched_realtime(int priority, struct seam_err *err);

/* Zeroed: the thread runs where it may. */
struct seam_sched {
	bool is_moved;
	int cpu;		/* it was moved to */
	struct seam_cpu_mask usual;	/* where it ran before */
};

/*
 * Have the calling thread run on @cpu alone, or with -1 where it ran before.
 *
 * For floods: what is drained where it comes from cannot fill its ring
 * meanwhile, and no other CPU has to be woken first, which on a virtual
 * machine takes longer than a ring does to fill.  Refusals are ignored.
 */
void seam_sched_move(struct seam_sched *prompt, int cpu);

/* Valid on a zeroed one. */
void seam_sched_fini(struct seam_sched *prompt);

#endif /* SEAM_SCHED_H */
