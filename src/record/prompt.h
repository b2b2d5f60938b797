/* SPDX-License-Identifier: MIT */
/* prompt.h - be scheduled soon after a wake-up */
#ifndef SEAM_PROMPT_H
#define SEAM_PROMPT_H

#include "base/err.h"

/*
 * Without any right to it: ask for short slices of time.  A thread that asks
 * for less at once is run earlier, and has no more of the CPU in the end.  For the calling thread,
 * after fork(): a command must not inherit it.  Kernels before 6.12 take no
 * notice.
 *
 * Source: sched_setattr(2); "custom slice" in kernel/sched/fair.c, Linux 6.12.
 */
void seam_prompt_request(void);

/*
 * Real-time @priority for the calling thread; what it forks does not inherit
 * it.  0, or -EPERM: it needs CAP_SYS_NICE.
 */
int seam_prompt_realtime(int priority, struct seam_err *err);

#endif /* SEAM_PROMPT_H */
