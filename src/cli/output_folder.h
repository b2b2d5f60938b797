/* SPDX-License-Identifier: MIT */
/*
 * output_folder.h - a folder that a command makes, to be taken away if it fails
 *
 * Only what was noted is removed: a file that somebody else put into the
 * folder stays, and the folder with it.
 */
#ifndef SEAM_OUTPUT_FOLDER_H
#define SEAM_OUTPUT_FOLDER_H

#include "base/array.h"
#include "base/err.h"

/* Zeroed is valid: nothing was made. */
struct seam_output_folder {
	const char *path;		/* of the folder; borrowed */
	int folder;			/* open, where path is not NULL */
	SEAM_ARRAY(char *) names;	/* below it, in order of their making */
};

/* Make folder @path, which must not be there.  0 or -errno. */
int seam_output_folder_begin(struct seam_output_folder *made, const char *path,
			     struct seam_err *err);

/*
 * Note file or folder @name, a path below the folder, as made by us.  0 or
 * -ENOMEM; then it is gone again.
 */
int seam_output_folder_note(struct seam_output_folder *made, const char *name,
			    struct seam_err *err);

/* Take away all that was made, the folder too. */
void seam_output_folder_undo(struct seam_output_folder *made);

/* What was made stays. */
void seam_output_folder_fini(struct seam_output_folder *made);

#endif /* SEAM_OUTPUT_FOLDER_H */
