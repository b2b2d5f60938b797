/* SPDX-License-Identifier: MIT */
/*
 * tracefs.h - the kernel's tracing files, mounted or not
 *
 * Where tracefs is not mounted, root reads it through a mount of its own, which
 * has no place in the tree and ends with its descriptor (fsmount(2)).  perf
 * mounts tracefs in the tree instead, and leaves it there.
 */
#ifndef SEAM_TRACEFS_H
#define SEAM_TRACEFS_H

#include "base/err.h"

/*
 * Open the root of tracefs, a descriptor (O_PATH) that the caller closes; files
 * are opened relative to it.  -ENOENT: not mounted, and this user may not mount
 * it; -EACCES, -EPERM: this user may not read it.  The message has the remedy.
 */
int seam_tracefs_open(struct seam_err *err);

/* The command that lets a group of users read it, after error @code. */
const char *seam_tracefs_remedy(int code);

/*
 * The id of event @name of @system, for perf_event_open().  -ENOENT: there is
 * no such event; -EACCES: this user may not read it.
 */
int seam_tracefs_id(int root, const char *system, const char *name,
		    struct seam_err *err);

#endif /* SEAM_TRACEFS_H */
