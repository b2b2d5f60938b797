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
 *			its WEIGHT is the number of the system call; -1: none;
 *			SEAM_BLOCKED_NOT_READ: the thread waited, and its stack
 *			could not be read
 *	seam:waking
 *			the tracepoint sched:sched_waking with its fields, of all
 *			threads that wake a recorded one (--wakers)
 *
 * Readers make waits of these (model/perf/off_cpu.h).
 */
#pragma once

#define SEAM_SWITCH_EVENT "seam:switches"
#define SEAM_SWITCH_STACK_EVENT "seam:switch_stack"
#define SEAM_BLOCKED_STACK_EVENT "seam:blocked_stack"
#define SEAM_WAKING_EVENT "seam:waking"

/*
 * In the fields of sched:sched_waking: the thread that is woken, and whether by
 * an interrupt, which has nothing to do with the thread that it interrupted.
 * Source: Linux 6.18, include/trace/events/sched.h, sched_wakeup_template; the
 * same since 3.0; enum trace_flag_type of include/linux/trace_events.h.
 */
enum {
	SEAM_WAKING_FLAGS = 2,		/* u8 common_flags */
	SEAM_WAKING_TID = 24,		/* s32 pid */
	SEAM_WAKING_IN_INTERRUPT = 0x08 | 0x10,
};

#define SEAM_BLOCKED_NOT_READ (UINT64_MAX - 1)

/* The shortest wait with a row of its own, unless the user sets another. */
#define SEAM_WAIT_MIN_NS UINT64_C(1000000)
