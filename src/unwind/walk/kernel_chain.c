/* SPDX-License-Identifier: MIT */
/* kernel_chain.c - the rest of a stack; the contract is in kernel_chain.h */
#include "unwind/walk/kernel_chain.h"

/* Of frames: a hostile recursion would take the square of its length. */
enum { MAX_COMPARED = 256 };

/* Whether the last frame is right, and only its caller was not found. */
static bool is_cut(const struct seam_unwind_stack *stack)
{
	switch ((enum seam_unwind_end)stack->end) {
	case SEAM_UNWIND_TRUNCATED:
	case SEAM_UNWIND_UNREADABLE:
	case SEAM_UNWIND_UNKNOWN_REGISTER:
	case SEAM_UNWIND_WITHOUT_CFI:
	case SEAM_UNWIND_BROKEN_CFI:
		return stack->n > 0;
	default:
		return false;
	}
}

/* How many frames are equal, from the last one and @chain[@at] inwards. */
static size_t equal_frames(const struct seam_unwind_stack *stack,
			   const uint64_t *chain, size_t at)
{
	size_t n = 0;

	while (n < stack->n && n <= at && n < MAX_COMPARED &&
	       stack->frames[stack->n - 1 - n].pc == chain[at - n])
		n++;
	return n;
}

size_t seam_unwind_kernel_rest(const struct seam_unwind_stack *stack,
			       const uint64_t *chain, size_t n)
{
	size_t most = 0, rest = n;

	if (!is_cut(stack))
		return n;
	for (size_t i = 0; i < n && most < stack->n; i++) {
		size_t equal = equal_frames(stack, chain, i);

		if (equal > most) {
			most = equal;
			rest = i + 1;
		}
	}
	return rest;
}
