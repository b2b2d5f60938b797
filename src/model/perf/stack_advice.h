/* SPDX-License-Identifier: MIT */
/* stack_advice.h - whether stacks are there and whole, and what would help */
#ifndef SEAM_STACK_ADVICE_H
#define SEAM_STACK_ADVICE_H

#include "model/profile/profile.h"

/*
 * Notes of a sampled recording: that its samples have no call chains
 * (@has_chains: those of some event have), or that many of them end before
 * the function in which their thread began.
 *
 * Estimator: a call chain by frame pointers is taken for whole where its
 * outermost user frame is the code that starts threads and processes, by
 * its name (_start, clone3, start_thread, ...) or, without one, by its file
 * (the C library or its loader).  A function that a program calls by itself
 * on a stack of its own (a coroutine) is counted as cut though it is whole.
 */
void seam_stack_advise(struct seam_profile *profile, bool has_chains);

#endif /* SEAM_STACK_ADVICE_H */
