/* SPDX-License-Identifier: MIT */
/*
 * alternate.h - record two commands in turn: A B A B ...
 *
 * Machines drift: their clock rates, caches and neighbours change over minutes,
 * so runs of A and B have to alternate to differ by their builds only.
 */
#pragma once

#include "base/base.h"
#include "base/err.h"

struct seam_alternate {
	char **commands[2];		/* each ends with NULL; borrowed */
	size_t n_runs;			/* of each */
	const char *const *options;	/* of 'seam record' */
	size_t n_options;
	const char *keep;		/* folder to make; NULL: a temporary one */

	char *folder;			/* made */
	char **paths;			/* all of A, then all of B */
};

/*
 * Run each command n_runs times under 'seam record', with standard input and
 * output on /dev/null, into recordings a-1.seam, b-1.seam, ... of the folder.  A
 * command that fails ends it.  0 or -errno; seam_alternate_fini() is due.
 *
 * From here to seam_alternate_end() signals that end a program are only
 * remembered (forward.h): the recorder and its command get them, -EINTR is
 * returned when they have ended, and the folder does not stay.
 */
int seam_alternate_run(struct seam_alternate *what, struct seam_err *err);

/*
 * The recordings have been read: remove the folder, unless it is to be kept.
 * Returns the signal that came, or 0.
 */
int seam_alternate_end(struct seam_alternate *what);

/* Free the paths. */
void seam_alternate_fini(struct seam_alternate *what);
