/* SPDX-License-Identifier: MIT */
/* prompt.h - be scheduled soon after a wake-up, without any right to it */
#ifndef SEAM_PROMPT_H
#define SEAM_PROMPT_H

/*
 * Ask for short slices of time: a thread that asks for less at once is run
 * earlier, and has no more of the CPU in the end.  For the calling thread,
 * after fork(): a command must not inherit it.  Kernels before 6.12 take no
 * notice.
 *
 * Source: sched_setattr(2); "custom slice" in kernel/sched/fair.c, Linux 6.12.
 */
void seam_prompt_request(void);

#endif /* SEAM_PROMPT_H */
