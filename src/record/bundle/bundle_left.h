/* SPDX-License-Identifier: MIT */
/*
 * bundle_left.h - what recorders that were killed have left beside bundles
 *
 * A recorder that is killed before its bundle has its name leaves a folder
 * .seam-PID-N, which is no recording yet.  The next recording in that folder
 * removes it, where all of this holds: it is this user's and nobody else may
 * enter it, there is no process PID, no recorder has it locked (which holds
 * across PID namespaces), and it has a manifest of Seam's or what is written
 * before that, and nothing else in it.
 */
#ifndef SEAM_BUNDLE_LEFT_H
#define SEAM_BUNDLE_LEFT_H

#include "base/err.h"

/*
 * Lock the folder @dir that a recorder has just made, as long as its
 * descriptor lives.  Where a file system has no locks, PID has to do.
 */
void seam_bundle_claim(int dir);

/*
 * Remove what was left in the folder that @path is in.  Looks at a bounded
 * number of names; what cannot be removed stays, without a word.
 */
void seam_bundle_clear_left(const char *path);

/* -- of bundle.c, for bundle_left.c ------------------------------------- */

/*
 * Whether folder @dir, at @path, is a recording with a manifest and nothing
 * else in it: 0, -EEXIST when it is not, or what kept us from looking.
 */
int seam_bundle_check(int dir, const char *path, struct seam_err *err);

/* Remove the entries of a recording from @dir. */
void seam_bundle_empty(int dir);

#endif /* SEAM_BUNDLE_LEFT_H */
