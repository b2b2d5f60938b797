/* SPDX-License-Identifier: MIT */
/*
 * count.h - a walk's result, as the counts of a recording
 *
 * Threads: nothing is shared.
 */
#ifndef SEAM_UNWIND_COUNT_H
#define SEAM_UNWIND_COUNT_H

#include "unwind/walk/walk.h"
#include "wire/stack_counts.h"

/* What the end of a walk is in the counts. */
enum seam_stack_end seam_unwind_counted_end(enum seam_unwind_end end);

/* Count the frames of @stack by how they were found. */
void seam_unwind_count_frames(struct seam_stack_counts *counts,
			      const struct seam_unwind_stack *stack);

#endif /* SEAM_UNWIND_COUNT_H */
