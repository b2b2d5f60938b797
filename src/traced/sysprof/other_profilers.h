/* SPDX-License-Identifier: MIT */
/*
 * other_profilers.h - whether this process is profiled already
 *
 * Not in a handler: it takes the loader's lock.
 */
#ifndef SEAM_OTHER_PROFILERS_H
#define SEAM_OTHER_PROFILERS_H

#include "base/base.h"

/*
 * Whether LuaJIT's own profiler (jit.p) runs, or the agent of a recorder
 * samples, or another copy of this library in the process, as one that was
 * linked statically.
 */
bool seam_other_profiler_runs(void);

#endif /* SEAM_OTHER_PROFILERS_H */
