/* SPDX-License-Identifier: MIT */
/* export_file.h - write the output of an exporter to a file */
#ifndef SEAM_EXPORT_FILE_H
#define SEAM_EXPORT_FILE_H

#include "export/exporter.h"

/*
 * Write @export with @exporter to @path ("-": standard output); sets
 * @export->out.  0, or -errno with the reason and the file at @path unchanged.
 */
int seam_export_file(const char *path, const struct seam_exporter *exporter,
		     struct seam_export *export, struct seam_err *err);

#endif /* SEAM_EXPORT_FILE_H */
