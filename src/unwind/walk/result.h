/* SPDX-License-Identifier: MIT */
/*
 * result.h - a walk's result, as recordings have it
 *
 * Threads: nothing is shared.
 */
#ifndef SEAM_UNWIND_RESULT_H
#define SEAM_UNWIND_RESULT_H

#include "unwind/walk/walk.h"
#include "wire/perf/unwound.h"
#include "wire/stack_counts.h"

/* The end of a walk, of which @is_whole: the kernel's chain has the root. */
enum seam_stack_end seam_unwind_stack_end(const struct seam_unwind_stack *stack,
					  bool is_whole);

/*
 * Write RAW data (wire/perf/unwound.h) of the frames of @stack, which ended by
 * @end, to the SEAM_UNWOUND_MAX_BYTES at @to.  @cfas has room for as many
 * numbers as there are frames.  Returns the bytes written.
 */
size_t seam_unwind_write(const struct seam_unwind_stack *stack,
			 enum seam_stack_end end, uint64_t *cfas, uint8_t *to);

#endif /* SEAM_UNWIND_RESULT_H */
