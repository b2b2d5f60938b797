/* SPDX-License-Identifier: MIT */
/*
 * output_file.h - the file that a command writes, whole or not at all
 *
 * A temporary file in the same folder is renamed when it is complete, so that a
 * full disk or an interrupt leaves the previous file.  Standard output ("-"),
 * devices, pipes and links are written directly.
 */
#ifndef SEAM_OUTPUT_FILE_H
#define SEAM_OUTPUT_FILE_H

#include "base/base.h"
#include "base/err.h"
#include "export/exporter.h"

/* Must not be copied while it is open. */
struct seam_output {
	FILE *file;
	int fd;			/* of the file, unless that is stdout */
	int code;		/* errno of the first write that failed, or 0 */
	const char *path;	/* borrowed */
	char *temporary;	/* path until the rename; NULL: none */
};

/* 0, or -errno with the reason. */
int seam_output_open(struct seam_output *output, const char *path,
		     struct seam_err *err);

/*
 * Finish: 0, or -errno when not all was written.  Without @keep, or on
 * failure, the temporary file is removed.  Standard output stays open; main()
 * checks it at exit.
 */
int seam_output_close(struct seam_output *output, bool keep,
		      struct seam_err *err);

/*
 * Write @export with @exporter to @path ("-": standard output); sets
 * @export->out.  0, or -errno with the reason and the file at @path unchanged.
 */
int seam_export_file(const char *path, const struct seam_exporter *exporter,
		     struct seam_export *export, struct seam_err *err);

#endif /* SEAM_OUTPUT_FILE_H */
