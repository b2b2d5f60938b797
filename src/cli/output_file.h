/* SPDX-License-Identifier: MIT */
/*
 * output_file.h - the file that a command writes, whole or not at all
 *
 * A temporary file in the same folder is renamed when it is complete, so that a
 * full disk or an interrupt leaves the previous file.  Standard output ("-"),
 * devices, pipes and links are written directly.
 */
#pragma once

#include "base/err.h"
#include "export/exporter.h"

/*
 * Write @export with @exporter to @path ("-": standard output, which main()
 * checks at exit); sets @export->out.  0, or -errno with the reason and the
 * file at @path unchanged.
 */
int seam_export_file(const char *path, const struct seam_exporter *exporter,
		     struct seam_export *export, struct seam_err *err);
