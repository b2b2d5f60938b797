/* SPDX-License-Identifier: MIT */
/* export_file.h - an exporter and the file that it writes */
#ifndef SEAM_EXPORT_FILE_H
#define SEAM_EXPORT_FILE_H

#include "export/exporter.h"

/*
 * Write @export, whose out is set here, to @path ("-": standard output) by
 * @exporter.  0, or -errno with the reason, and what was at @path is there
 * still.
 */
int seam_export_file(const char *path, const struct seam_exporter *exporter,
		     struct seam_export *export, struct seam_err *err);

#endif /* SEAM_EXPORT_FILE_H */
