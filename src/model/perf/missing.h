/* SPDX-License-Identifier: MIT */
/* missing.h - samples that have no name because their file is not here */
#ifndef SEAM_MISSING_H
#define SEAM_MISSING_H

#include "model/perf/resolver.h"

/*
 * Note, for each file that was looked for in vain, how many samples have no
 * name for it: another file is in its place, or it was recorded elsewhere and
 * nothing tells it from others; where the recording was made on this machine
 * (@is_here), also one that is gone.  After all samples were resolved.
 */
void seam_missing_tell(const struct seam_resolver *resolver, bool is_here);

#endif /* SEAM_MISSING_H */
