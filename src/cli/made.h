/* SPDX-License-Identifier: MIT */
/*
 * made.h - a folder that a command makes, to be taken away if it fails
 *
 * Only what was noted is removed: a file that somebody else put into the
 * folder stays, and the folder with it.
 */
#ifndef SEAM_MADE_H
#define SEAM_MADE_H

#include "base/array.h"
#include "base/err.h"

/* Zeroed is valid: nothing was made. */
struct seam_made {
	const char *path;		/* of the folder; borrowed */
	int folder;			/* open, where path is not NULL */
	SEAM_ARRAY(char *) names;	/* below it, in order of their making */
};

/* Make folder @path, which must not be there.  0 or -errno. */
int seam_made_begin(struct seam_made *made, const char *path,
		    struct seam_err *err);

/*
 * Note file or folder @name, a path below the folder, as made by us.  0 or
 * -ENOMEM; then it is gone again.
 */
int seam_made_note(struct seam_made *made, const char *name,
		   struct seam_err *err);

/* Take away all that was made, the folder too. */
void seam_made_undo(struct seam_made *made);

/* What was made stays. */
void seam_made_fini(struct seam_made *made);

#endif /* SEAM_MADE_H */
