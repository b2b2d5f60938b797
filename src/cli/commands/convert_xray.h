/* SPDX-License-Identifier: MIT */
/* convert_xray.h - 'seam convert' where every single event counts */
#ifndef SEAM_CONVERT_XRAY_H
#define SEAM_CONVERT_XRAY_H

#include "cli/reading.h"

/* For the choices of --to. */
#define SEAM_CONVERT_XRAY_FORMATS "trace-json|xray-yaml|xray"

/* Whether @to is one of them. */
bool seam_convert_xray_has(const char *to);

/*
 * Write the XRay logs at @paths as @to, one of the formats, to @output.
 * Of @reading, map and time count.  Returns the exit status.
 */
int seam_convert_xray(const char *to, const char *output,
		      const struct seam_reading *reading,
		      const char *const *paths, size_t n_paths);

#endif /* SEAM_CONVERT_XRAY_H */
