/* SPDX-License-Identifier: MIT */
/* result.c - ends and CFAs of walks; see result.h */
#include "unwind/walk/result.h"

enum seam_stack_end seam_unwind_stack_end(const struct seam_unwind_stack *stack,
					  bool is_whole)
{
	if (is_whole)
		return SEAM_STACK_COMPLETE;
	switch ((enum seam_unwind_end)stack->end) {
	case SEAM_UNWIND_ROOT: return SEAM_STACK_COMPLETE;
	case SEAM_UNWIND_UNREADABLE: return SEAM_STACK_UNREADABLE;
	case SEAM_UNWIND_UNKNOWN_REGISTER: return SEAM_STACK_LOST_REGISTER;
	case SEAM_UNWIND_WITHOUT_CFI: return SEAM_STACK_WITHOUT_CFI;
	case SEAM_UNWIND_BROKEN_CFI: return SEAM_STACK_BROKEN_CFI;
	case SEAM_UNWIND_NO_PROGRESS: return SEAM_STACK_NO_PROGRESS;
	case SEAM_UNWIND_TRUNCATED:
		return stack->end_cfa && stack->end_cfa - stack->frames[0].sp >
		       SEAM_STACK_MAX_COPY ? SEAM_STACK_BEYOND :
		       SEAM_STACK_TRUNCATED;
	case SEAM_UNWIND_NO_MAPPING: return SEAM_STACK_NO_MAPPING;
	case SEAM_UNWIND_OTHER_STACK: return SEAM_STACK_OTHER_STACK;
	case SEAM_UNWIND_CALLER:	/* a walk does not end so */
	case SEAM_UNWIND_TOO_DEEP: break;
	}
	return SEAM_STACK_TOO_DEEP;
}

size_t seam_unwind_write(const struct seam_unwind_stack *stack,
			 enum seam_stack_end end, uint64_t *cfas, uint8_t *to)
{
	size_t n = 0;

	for (size_t i = 1; i < stack->n; i++)
		cfas[n++] = stack->frames[i].sp;
	if (stack->n && stack->end_cfa)
		cfas[n++] = stack->end_cfa;
	return seam_unwound_write(to, (uint8_t)end, stack->n, cfas, n);
}
