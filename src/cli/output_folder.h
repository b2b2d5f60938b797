/* SPDX-License-Identifier: MIT */
/*
 * output_folder.h - a folder that a command creates, and removes if it fails
 *
 * Only files that it made are removed: the file of another program stays, and then
 * the folder too.
 */
#pragma once

#include "base/array.h"
#include "base/err.h"

/* Zeroed is valid: nothing was made. */
struct seam_output_folder {
	const char *path;		/* of the folder; borrowed */
	int folder;			/* open, where path is not NULL */
	SEAM_ARRAY(char *) names;	/* in it, by creation */
};

/* Create folder @path, which must not exist.  0 or -errno. */
int seam_output_folder_begin(struct seam_output_folder *made, const char *path,
			     struct seam_err *err);

/*
 * Create file @name in the folder, mode 0600.  A descriptor to
 * write to, or -errno.
 */
int seam_output_folder_create(struct seam_output_folder *made,
			      const char *name, struct seam_err *err);

/*
 * Copy the regular files of folder @from and of its subfolders to @to, except
 * the file @but at the top.  Links are neither followed nor copied.  0 or
 * -errno.
 */
int seam_output_folder_copy(struct seam_output_folder *to, const char *from,
			    const char *but, struct seam_err *err);

/* Remove all files that were made, then the folder if it is empty. */
void seam_output_folder_undo(struct seam_output_folder *made);

/* Remove folder @path with all that is in it; links are not followed. */
void seam_output_folder_remove(const char *path);

/* Keep all files; free the list. */
void seam_output_folder_fini(struct seam_output_folder *made);
