/* SPDX-License-Identifier: MIT */
/*
 * bundle_left.h - remove folders that killed recorders have left
 *
 * A recorder that is killed before seam_bundle_place() leaves a folder
 * .seam-PID-N.  The next recording in the same parent folder removes it if
 * this user owns it with mode 0700, process PID does not exist, no recorder
 * has it locked (also in another PID namespace), and it has a manifest written
 * by Seam or only the files that are written before the manifest.
 */
#ifndef SEAM_BUNDLE_LEFT_H
#define SEAM_BUNDLE_LEFT_H

#include "base/err.h"

/*
 * Lock the folder @dir that this recorder has made, until @dir is closed.  On a
 * file system without locks, only the PID in its name protects it.
 */
void seam_bundle_claim(int dir);

/*
 * Remove such folders beside @path.  Reads a bounded number of names; ignores
 * errors.
 */
void seam_bundle_clear_left(const char *path);

/* -- from bundle.c, for bundle_left.c ----------------------------------- */

/*
 * Check that folder @dir, at @path, is a recording with a manifest and no
 * other files: 0; -EEXIST: it is not; or the -errno of reading it.
 */
int seam_bundle_check(int dir, const char *path, struct seam_err *err);

/* Remove the entries of a recording from @dir. */
void seam_bundle_empty(int dir);

#endif /* SEAM_BUNDLE_LEFT_H */
