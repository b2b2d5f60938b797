/* SPDX-License-Identifier: MIT */
/* count.c - ends and qualities of walks; see count.h */
#include "unwind/walk/count.h"

enum seam_stack_end seam_unwind_counted_end(enum seam_unwind_end end)
{
	switch (end) {
	case SEAM_UNWIND_ROOT: return SEAM_STACK_COMPLETE;
	case SEAM_UNWIND_UNREADABLE: return SEAM_STACK_UNREADABLE;
	case SEAM_UNWIND_UNKNOWN_REGISTER: return SEAM_STACK_LOST_REGISTER;
	case SEAM_UNWIND_WITHOUT_CFI: return SEAM_STACK_WITHOUT_CFI;
	case SEAM_UNWIND_BROKEN_CFI: return SEAM_STACK_BROKEN_CFI;
	case SEAM_UNWIND_NO_PROGRESS: return SEAM_STACK_NO_PROGRESS;
	case SEAM_UNWIND_TRUNCATED: return SEAM_STACK_TRUNCATED;
	case SEAM_UNWIND_NO_MAPPING: return SEAM_STACK_NO_MAPPING;
	case SEAM_UNWIND_CALLER:	/* a walk does not end so */
	case SEAM_UNWIND_TOO_DEEP: break;
	}
	return SEAM_STACK_TOO_DEEP;
}

static enum seam_stack_quality counted_quality(uint8_t quality)
{
	switch (quality) {
	case SEAM_UNWIND_BY_CFI: return SEAM_STACK_BY_CFI;
	case SEAM_UNWIND_BY_FRAME_POINTER: return SEAM_STACK_BY_FRAME_POINTER;
	default: return SEAM_STACK_BY_REGISTERS;
	}
}

void seam_unwind_count_frames(struct seam_stack_counts *counts,
			      const struct seam_unwind_stack *stack)
{
	for (size_t i = 0; i < stack->n; i++)
		counts->n_frames[counted_quality(stack->frames[i].quality)]++;
}
