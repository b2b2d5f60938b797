/* SPDX-License-Identifier: MIT */
/* jit_hints.h - how to record the names of a JIT */
#ifndef SEAM_JIT_HINTS_H
#define SEAM_JIT_HINTS_H

#include "model/jit/jit_sources.h"

/*
 * Add a note for each process of a known runtime that has samples in JIT code
 * without a name: the flag that makes the runtime write names.  A process that
 * announced a dump had that flag.  Another note counts samples whose name may
 * be wrong, because a perf map without times has several for the address.
 */
void seam_jit_hint(struct seam_profile *profile,
		   struct seam_jit_sources *sources);

#endif /* SEAM_JIT_HINTS_H */
