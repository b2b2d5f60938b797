/* SPDX-License-Identifier: MIT */
/* missing.h - samples that have no name because their file is not here */
#ifndef SEAM_MISSING_H
#define SEAM_MISSING_H

#include "model/perf/resolver.h"

/*
 * Add a note for each file that was looked for and not found: how many samples
 * have no name because of it.  Reasons are another file at its path, and a
 * recording of another machine without build ids; where the recording was made
 * on this machine (@is_here), also a file that is gone.  After all samples were
 * resolved.
 */
void seam_missing_note(const struct seam_resolver *resolver, bool is_here);

#endif /* SEAM_MISSING_H */
