/* SPDX-License-Identifier: MIT */
/*
 * stack_plan.h - how user stacks are recorded, and how much of them is copied
 *
 * A program without frame pointers has complete stacks only if the kernel
 * copies the registers and the top of the stack into the ring with each
 * sample.  The ring must then last from one wakeup of the recorder to the
 * next, 11 ms or more on a busy machine: that limits the size of a copy and the
 * frequency.  The recorder unwinds the copies (auto), or writes them (dwarf).
 *
 * By default stacks are copied where this fits and the rate is bounded; else
 * they are those of frame pointers, which the kernel walks itself.
 */
#ifndef SEAM_STACK_PLAN_H
#define SEAM_STACK_PLAN_H

#include "record/events/event.h"

enum {
	SEAM_STACK_PLAN_HZ = 1000,	/* default where stacks are copied */
	/* Default rings there; halved while less may be locked. */
	SEAM_STACK_PLAN_MAX_RING_BYTES = 4 * 1024 * 1024,
	/* perf's default; and the largest, because a record has 64 KiB */
	SEAM_STACK_PLAN_DWARF_BYTES = 8192,
	SEAM_STACK_PLAN_MAX_BYTES = 65528,
	/* The recorder wakes at least so often. */
	SEAM_STACK_PLAN_WAIT_MS = 100,
};

/* Whether copies of stacks can be unwound on this architecture. */
bool seam_stack_plan_is_supported(void);

/*
 * The largest copy that fits rings of @ring_bytes at @hz samples a second on a
 * CPU: 48, 32, 24, 16 or 8 KiB, or 0.  @hz 0: not known, the smallest.
 */
uint32_t seam_stack_plan_bytes(size_t ring_bytes, uint64_t hz);

/* The highest frequency at which copies of @bytes fit @ring_bytes. */
uint64_t seam_stack_plan_max_hz(size_t ring_bytes, uint32_t bytes);

/*
 * Have samples of @event carry a call chain, by @how, with copies of @bytes.
 * Not for SEAM_CALL_GRAPH_DEFAULT.
 */
void seam_stack_plan_apply(struct seam_event *event, enum seam_call_graph how,
			   uint32_t bytes);

#endif /* SEAM_STACK_PLAN_H */
