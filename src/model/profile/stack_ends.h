/* SPDX-License-Identifier: MIT */
/*
 * stack_ends.h - how many user stacks are complete, and why others are not
 *
 * Counted from the samples that are selected, each of which has how its stack
 * ended (profile.h).  A recording of which only its manifest has counts, as
 * those of earlier versions, has one answer for every selection.
 *
 * Threads: nothing is shared.  Cost: O(stacks + samples).
 */
#pragma once

#include "model/profile/selection.h"

/*
 * Count the stacks of @profile's samples, or of those @selected (NULL: all), to
 * @counts, the worst files first.  0 or -ENOMEM.
 */
int seam_stack_ends_count(const struct seam_profile *profile,
			  const struct seam_selected *selected,
			  struct seam_stack_counts *counts);
