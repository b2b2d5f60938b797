/* SPDX-License-Identifier: MIT */
/* convert_xray.h - 'seam convert' to formats of single events */
#ifndef SEAM_CONVERT_XRAY_H
#define SEAM_CONVERT_XRAY_H

#include "cli/reading.h"
#include "export/exporter.h"

/*
 * Write the XRay logs at @paths to @output with @exporter, which needs logs.
 * Uses map and time of @reading.  Returns the exit status.
 */
int seam_convert_xray(const struct seam_exporter *exporter, const char *output,
		      const struct seam_reading *reading,
		      const char *const *paths, size_t n_paths);

#endif /* SEAM_CONVERT_XRAY_H */
