/* SPDX-License-Identifier: MIT */
/*
 * recursion.h - what a stack repeats at its outer end
 *
 * A recursion has the same functions again and again, at the same distances:
 * the last frames of its stack, and those one period before, have the same
 * return addresses, and stack pointers that differ by one number.
 *
 * Threads: nothing is shared.
 * Cost: at most SEAM_RECURSION_MAX_PERIOD^2 comparisons.
 */
#ifndef SEAM_RECURSION_H
#define SEAM_RECURSION_H

#include "unwind/walk/walk.h"

enum {
	SEAM_RECURSION_MAX_PERIOD = 256,
	/* That must be repeated; a longer period, as a whole. */
	SEAM_RECURSION_MIN_FRAMES = 12,
};

struct seam_recursion {
	size_t period;			/* frames */
	uint64_t bytes;			/* of stack, for a period */
};

/* The shortest period of the last frames of @stack.  False: there is none. */
bool seam_recursion_find(struct seam_recursion *recursion,
			 const struct seam_unwind_stack *stack);

#endif /* SEAM_RECURSION_H */
