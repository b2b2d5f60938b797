/* SPDX-License-Identifier: MIT */
/*
 * folded.h - stacks as lines: "group;root;...;leaf COUNT"
 *
 * The format that flame graph scripts, speedscope and many others read.  One
 * line for each distinct stack, sorted by bytes.  The end of a frame's name is
 * its layer: _[k] kernel, _[j] JIT, _[g] guest, _[i] inlined native.  A ';' in
 * a name becomes ':', and control characters are escaped.
 */
#ifndef SEAM_FOLDED_H
#define SEAM_FOLDED_H

#include "model/profile/tally.h"

/*
 * Write what is selected, each stack under the name of its @group (equal
 * names are one).  COUNT is the number of samples, or their weights added
 * up.  0, -ENOMEM, or -EFBIG after SEAM_FOLDED_MAX_BYTES: a line has all
 * frames of its stack, so that a log of a few megabytes, of one call inside of
 * another, would fill any disk.  Errors of the stream are the caller's to
 * check; writing ends with the first.
 */
#define SEAM_FOLDED_MAX_BYTES (UINT64_C(4) << 30)

int seam_folded_write(const struct seam_selected *selected,
		      enum seam_group group, bool by_weight, FILE *out);

#endif /* SEAM_FOLDED_H */
