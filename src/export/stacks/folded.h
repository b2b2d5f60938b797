/* SPDX-License-Identifier: MIT */
/*
 * folded.h - stacks as lines: "group;root;...;leaf COUNT"
 *
 * The format that flame graph scripts, speedscope and many others read.  One
 * line for each distinct stack, sorted by bytes.  A suffix of a frame's name
 * is its layer: _[k] kernel, _[j] JIT, _[g] guest, _[i] inlined native.  A ';'
 * in a name becomes ':', and control characters are escaped.
 */
#ifndef SEAM_FOLDED_H
#define SEAM_FOLDED_H

#include "model/profile/tally.h"

/*
 * Write the selected samples, each stack below the name of its @group (equal
 * names are merged).  COUNT is the number of samples, or the sum of their
 * weights.  0, -ENOMEM, or -EFBIG after SEAM_FOLDED_MAX_BYTES: a line has all
 * frames of its stack, so a log of a few megabytes with deeply nested calls
 * would fill any disk.  The caller checks the stream for errors; the first one
 * ends the writing.
 */
#define SEAM_FOLDED_MAX_BYTES (UINT64_C(4) << 30)

int seam_folded_write(const struct seam_selected *selected,
		      enum seam_group group, bool by_weight, FILE *out);

#endif /* SEAM_FOLDED_H */
