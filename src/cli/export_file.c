/* SPDX-License-Identifier: MIT */
/* export_file.c - open, write, close; see export_file.h */
#include "cli/export_file.h"

#include "cli/output_file.h"

int seam_export_file(const char *path, const struct seam_exporter *exporter,
		     struct seam_export *export, struct seam_err *err)
{
	struct seam_output output;
	int r = seam_output_open(&output, path, err), closed;

	if (r)
		return r;
	export->out = output.file;
	r = exporter->write(export, err);
	closed = seam_output_close(&output, r == 0, r ? NULL : err);
	return r ? r : closed;
}
