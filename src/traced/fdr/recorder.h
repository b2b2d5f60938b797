/* SPDX-License-Identifier: MIT */
/*
 * recorder.h - the recorder that a program starts, for a full trace or to write
 * what a flight recorder has
 *
 * doc/design/standalone.md has the protocol.  Not in handlers.  Threads: one at
 * a time calls start or stop.
 */
#pragma once

#include <limits.h>

#include "base/err.h"
#include "base/tsc.h"
#include "ring/link/link.h"

/*
 * Find the program of the recorder; @library is the file that this code is in.
 * 0 or -ENOENT.
 */
int seam_fdr_recorder_find(const char *library, char program[PATH_MAX],
			   struct seam_err *err);

/*
 * Start a recorder for a bundle at the absolute @path, and wait until it
 * listens, 10 s at most.  @since: when the calls of a flight recorder began;
 * NULL: now.  Returns 0 with the @address of its link; or -errno:
 * -ENOENT: there is no seam, or no folder for the bundle; -EEXIST: @path is
 * something else.  Uses malloc.
 */
int seam_fdr_recorder_start(const char *path, const char *library,
			    const struct seam_tsc_tie *since,
			    char address[SEAM_LINK_ADDRESS_BYTES],
			    struct seam_err *err);

/*
 * In the process that started the recorder: have the bundle completed, and wait
 * for that, 60 s at most; in a forked child: leave the recorder.  The link is
 * not connected afterwards.  Returns 0; -EBADF: the program has closed the
 * descriptor; or -errno of the bundle.
 */
int seam_fdr_recorder_stop(void);

/*
 * The process that started the recorder ends: wait for the bundle, unless
 * another process records.
 */
void seam_fdr_recorder_exit(void);

/* In a forked child of @parent: the recorder learns of the child. */
void seam_fdr_recorder_forked(pid_t parent);

/*
 * The absolute path of the bundle of a recorder that this process or a parent
 * has started; "": there is none, or it was stopped.
 */
const char *seam_fdr_recorder_path(void);
