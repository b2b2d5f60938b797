/* SPDX-License-Identifier: MIT */
/* convert_xray.h - 'seam convert' where every single event counts */
#ifndef SEAM_CONVERT_XRAY_H
#define SEAM_CONVERT_XRAY_H

#include "cli/reading.h"
#include "export/exporter.h"

/*
 * Write the XRay logs at @paths by @exporter, which needs such, to @output.
 * Of @reading, map and time count.  Returns the exit status.
 */
int seam_convert_xray(const struct seam_exporter *exporter, const char *output,
		      const struct seam_reading *reading,
		      const char *const *paths, size_t n_paths);

#endif /* SEAM_CONVERT_XRAY_H */
