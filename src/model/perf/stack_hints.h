/* SPDX-License-Identifier: MIT */
/* stack_hints.h - how to record complete stacks */
#ifndef SEAM_STACK_HINTS_H
#define SEAM_STACK_HINTS_H

#include "model/profile/profile.h"

/*
 * Add a note if a sampled recording has no callchains (@has_chains: those of
 * some event have), or if many of them end before the function in which their
 * thread began.
 *
 * Estimator: a callchain by frame pointers counts as complete where its
 * outermost user frame is the code that starts threads and processes, by
 * its name (_start, clone3, start_thread, ...) or, without one, by its file
 * (the C library or its loader).  A function that a program calls by itself
 * on a stack of its own (a coroutine) counts as cut though it is complete.
 */
void seam_stack_hint(struct seam_profile *profile, bool has_chains);

#endif /* SEAM_STACK_HINTS_H */
