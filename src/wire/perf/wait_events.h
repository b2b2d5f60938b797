/* SPDX-License-Identifier: MIT */
/*
 * wait_events.h - the events of a recording of waits (seam record --off-cpu)
 *
 *	seam:switches	a dummy event with attr.context_switch, in rings of
 *			its own: one SWITCH record each time a thread gets or
 *			loses a CPU
 *	seam:switch_stack
 *			PERF_COUNT_SW_CONTEXT_SWITCHES with call chains: the
 *			stack with which a thread lost its CPU.  Only with the
 *			right to samples of the kernel
 *	seam:blocked_stack
 *			an event of a program: the stack of a thread that
 *			waited, read from outside.  Its time lies in the wait,
 *			its WEIGHT is the number of the system call; -1: none
 *
 * Readers make waits of these (model/perf/waits.h).
 */
#ifndef SEAM_WAIT_EVENTS_H
#define SEAM_WAIT_EVENTS_H

#define SEAM_SWITCH_EVENT "seam:switches"
#define SEAM_SWITCH_STACK_EVENT "seam:switch_stack"
#define SEAM_BLOCKED_STACK_EVENT "seam:blocked_stack"

/* The shortest wait with a row of its own, unless the user sets another. */
#define SEAM_WAIT_MIN_NS UINT64_C(1000000)

#endif /* SEAM_WAIT_EVENTS_H */
