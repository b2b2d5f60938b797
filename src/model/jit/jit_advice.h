/* SPDX-License-Identifier: MIT */
/* jit_advice.h - how to record a runtime whose code came without names */
#ifndef SEAM_JIT_ADVICE_H
#define SEAM_JIT_ADVICE_H

#include "model/jit/jit_sources.h"

/*
 * Add a note for each process of a known runtime that has samples in JIT code
 * without a name: the flag that would have given them.  Who announced a dump,
 * says @sources, had it.  And a note of how many samples have a name that may
 * be another's, because a perf map without times has several for the address.
 */
void seam_jit_advise(struct seam_profile *profile,
		     const struct seam_jit_sources *sources);

#endif /* SEAM_JIT_ADVICE_H */
