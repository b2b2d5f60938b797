/* SPDX-License-Identifier: MIT */
/*
 * switch_stacks.h - a limit on the stacks of switches (--off-cpu)
 *
 * A program may switch 100,000 times a second on a CPU: each with a copy of the
 * stack costs the program 5 us more, the rings 24 KiB, and the recorder a walk.
 * So
 * each ring has a budget of stacks, SEAM_SWITCH_STACKS_HZ a second, of which it
 * may save those of a fifth of one.  When it is spent, the event with the
 * stacks is disabled, until there is budget again for a twentieth.  Of the waits
 * that begin meanwhile long ones are read while they last (blocked_stacks.h),
 * others have no stack; their times are those of SWITCH records, which go on.  Of
 * a ring that overwrites nothing is drained: its budget is spent by the bytes
 * that the kernel wrote.
 *
 * A longer period in place of this would have no effect: the kernel changes it
 * in one thread, not in those that inherited the event.  A frequency adapts
 * within one thread, and stays low for the long waits after many short ones.
 */
#pragma once

#include "record/perf/sources.h"

enum {
	SEAM_SWITCH_STACKS_HZ = 2000,	/* of a ring */
	SEAM_SWITCH_STACK_NS = 1000000000 / SEAM_SWITCH_STACKS_HZ,
};

/* Zeroed is valid. */
struct seam_switch_stacks {
	uint64_t checked_ns;	/* 0: not yet */
	uint64_t n_spent;	/* how often a budget was spent */
};

/* A stack was drained from @ring. */
static inline void seam_switch_stacks_count(struct seam_source_ring *ring)
{
	ring->budget.left_ns -= SEAM_SWITCH_STACK_NS;
}

/* After a round: spend, refill, disable, enable.  @now_ns: CLOCK_MONOTONIC. */
void seam_switch_stacks_check(struct seam_switch_stacks *stacks,
			      struct seam_sources *sources, uint64_t now_ns);
