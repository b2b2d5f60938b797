/* SPDX-License-Identifier: MIT */
/*
 * output_file.h - the file that a command writes, whole or not at all
 *
 * A file is written beside its place and moved there when it is complete, so
 * that a full disk or an interrupt leaves what was there before.  Standard
 * output ("-"), devices, pipes and links are written as they stand.
 */
#ifndef SEAM_OUTPUT_FILE_H
#define SEAM_OUTPUT_FILE_H

#include "base/base.h"
#include "base/err.h"

/* Not to be copied while it is open. */
struct seam_output {
	FILE *file;
	int fd;			/* of the file, unless that is stdout */
	int code;		/* errno of the first write that failed, or 0 */
	const char *path;	/* borrowed */
	char *temporary;	/* where it is for now; NULL: in its place */
};

/* 0, or -errno with the reason. */
int seam_output_open(struct seam_output *output, const char *path,
		     struct seam_err *err);

/*
 * Finish: 0, or -errno when not all was written.  Without @keep, or on
 * failure, the file does not come to be.  Standard output stays open, and
 * its errors are found at exit.
 */
int seam_output_close(struct seam_output *output, bool keep,
		      struct seam_err *err);

#endif /* SEAM_OUTPUT_FILE_H */
