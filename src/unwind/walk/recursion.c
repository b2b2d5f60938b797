/* SPDX-License-Identifier: MIT */
/* recursion.c - periods of the last frames; see recursion.h */
#include "unwind/walk/recursion.h"

/* Whether @n frames that end at @last are those of a period before. */
static bool repeats(const struct seam_unwind_frame *last, size_t n,
		    const struct seam_recursion *r)
{
	for (size_t i = 0; i < n; i++, last--)
		if (last->pc != last[-(ptrdiff_t)r->period].pc ||
		    last->sp - last[-(ptrdiff_t)r->period].sp != r->bytes)
			return false;
	return true;
}

bool seam_recursion_find(struct seam_recursion *recursion,
			 const struct seam_unwind_stack *stack)
{
	for (size_t period = 1; period <= SEAM_RECURSION_MAX_PERIOD;
	     period++) {
		const struct seam_unwind_frame *last;
		size_t n = period > SEAM_RECURSION_MIN_FRAMES ? period :
			   SEAM_RECURSION_MIN_FRAMES;

		/* the innermost frame is no return address */
		if (stack->n < 1 + n + period)
			return false;
		last = &stack->frames[stack->n - 1];
		*recursion = (struct seam_recursion) {
			.period = period,
			.bytes = last->sp - last[-(ptrdiff_t)period].sp,
		};
		if (recursion->bytes && repeats(last, n, recursion))
			return true;
	}
	return false;
}
