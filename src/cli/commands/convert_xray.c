/* SPDX-License-Identifier: MIT */
/* convert_xray.c - XRay logs to formats of events; see convert_xray.h */
#include "cli/commands/convert_xray.h"

#include <errno.h>
#include <inttypes.h>

#include "cli/command.h"
#include "cli/export_file.h"

/* What the output cannot say.  Returns the exit status. */
static int say_problems(const struct seam_trace *trace,
		const struct seam_xray_problems *problems)
{
	if (trace->blocks.n == 0 && problems->n == 0)
		seam_command_say("the log is empty: nothing was recorded");
	if (trace->in_ticks)
		seam_command_say("times are ticks: the log does not say how "
				 "many make a second");
	if (problems->n)
		seam_command_say("%" PRIu64 " part%s of the log could not be "
				 "read, %" PRIu64 " byte%s", problems->n,
				 problems->n == 1 ? "" : "s",
				 problems->lost_bytes,
				 problems->lost_bytes == 1 ? "" : "s");
	return problems->n || trace->in_ticks ? SEAM_EXIT_LOSSY :
	       SEAM_EXIT_DONE;
}

int seam_convert_xray(const struct seam_exporter *exporter, const char *output,
		      const struct seam_reading *reading,
		      const char *const *paths, size_t n_paths)
{
	struct seam_xray_problems problems = { 0 };
	struct seam_call_names names = { 0 };
	struct seam_trace trace = { 0 };
	struct seam_export export = {
		.trace = &trace, .names = &names, .problems = &problems,
	};
	struct seam_err err = { 0 };
	int status = SEAM_EXIT_DONE, failed = SEAM_EXIT_FAILED;
	int r = seam_call_names_open(&names, reading->map, &err);

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
		status = say_problems(&trace, &problems);
	}
	seam_trace_close(&trace);
	seam_call_names_fini(&names);
	return status;
}
