/* SPDX-License-Identifier: MIT */
/* convert_xray.c - XRay logs to formats of single events; see convert_xray.h */
#include "cli/commands/convert_xray.h"

#include <errno.h>

#include "cli/command.h"
#include "cli/export_file.h"

int seam_convert_xray(const struct seam_exporter *exporter, const char *output,
		      const struct seam_reading *reading,
		      const char *const *paths, size_t n_paths)
{
	struct seam_xray_problems problems = { 0 };
	struct seam_xray_map names = { 0 };
	struct seam_trace trace = { 0 };
	struct seam_export export = {
		.trace = &trace, .names = &names, .problems = &problems,
	};
	struct seam_err err = { 0 };
	int status = SEAM_EXIT_DONE, failed = SEAM_EXIT_FAILED;
	int r = reading->map ?
		seam_xray_map_open(&names, reading->map, &err) : 0;

	if (!r)
		r = seam_trace_open(&trace, paths, n_paths, &err);
	if (!r && reading->time) {
		r = seam_trace_select(&trace, reading->time, &err);
		if (r == -EINVAL)
			failed = SEAM_EXIT_USAGE;
	}
	if (!r)
		r = seam_export_file(output, exporter, &export, &err);
	seam_trace_problems(&trace, &problems);
	if (r) {
		seam_command_failed(&err);
		status = failed;
	} else {
		status = seam_reading_say_problems(&trace, &problems);
	}
	seam_trace_close(&trace);
	seam_xray_map_fini(&names);
	return status;
}
