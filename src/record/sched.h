/* SPDX-License-Identifier: MIT */
/* sched.h - run the recorder soon after a wakeup, and on a chosen CPU */
#ifndef SEAM_SCHED_H
#define SEAM_SCHED_H

#include "base/base.h"
#include "base/err.h"

#include <sched.h>

/*
 * Request a short time slice, which needs no privilege: such a thread runs
 * earlier after a wakeup, without more CPU time in total.  With CAP_SYS_NICE
 * also a lower nice value, so that it is not preempted for a whole slice of
 * another thread.  For the calling thread, after fork(): a command must not
 * inherit it.  Kernels before 6.12 ignore the slice.
 *
 * Source: sched_setattr(2); "custom slice" in kernel/sched/fair.c, Linux 6.12.
 */
void seam_sched_request(void);

/*
 * Real-time @priority for the calling thread, not inherited by fork().  0, or
 * -EPERM: it needs CAP_SYS_NICE.
 */
int seam_sched_realtime(int priority, struct seam_err *err);

/* Zeroed: the thread runs on its usual CPUs. */
struct seam_sched {
	bool is_moved;
	int cpu;		/* where it was moved to */
	cpu_set_t usual[8];	/* its CPUs before: of up to 8192 */
};

/*
 * Run the calling thread on @cpu only, or with -1 on its usual CPUs again.
 *
 * For floods of records: a ring that is drained on its own CPU does not fill
 * meanwhile, and no idle CPU has to be woken, which in a virtual machine takes
 * longer than a ring takes to fill.  Errors are ignored.
 */
void seam_sched_move(struct seam_sched *sched, int cpu);

#endif /* SEAM_SCHED_H */
