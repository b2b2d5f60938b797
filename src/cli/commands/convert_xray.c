/* SPDX-License-Identifier: MIT */
/* convert_xray.c - XRay logs to formats of events; see convert_xray.h */
#include "cli/commands/convert_xray.h"

#include <errno.h>
#include <inttypes.h>

#include "cli/command.h"
#include "cli/output_file.h"
#include "export/xray/trace_json.h"
#include "export/xray/xray_log.h"
#include "export/xray/xray_yaml.h"

static int write_log(FILE *out, const struct seam_trace *trace,
		     const struct seam_call_names *names,
		     struct seam_xray_problems *problems, struct seam_err *err)
{
	(void)names;
	return seam_xray_log(out, trace, problems, err);
}

static const struct format {
	const char *name;
	int (*write)(FILE *out, const struct seam_trace *trace,
		     const struct seam_call_names *names,
		     struct seam_xray_problems *problems,
		     struct seam_err *err);
} formats[] = {
	{ "trace-json", seam_trace_json },
	{ "xray-yaml", seam_xray_yaml },
	{ "xray", write_log },
};

static const struct format *find_format(const char *name)
{
	for (size_t i = 0; i < SEAM_ARRAY_SIZE(formats); i++)
		if (strcmp(formats[i].name, name) == 0)
			return &formats[i];
	return NULL;
}

bool seam_convert_xray_has(const char *to)
{
	return find_format(to) != NULL;
}

static int write_to(const char *path, const struct format *format,
		    const struct seam_trace *trace,
		    const struct seam_call_names *names,
		    struct seam_xray_problems *problems, struct seam_err *err)
{
	struct seam_output output;
	int r = seam_output_open(&output, path, err), closed;

	if (r)
		return r;
	r = format->write(output.file, trace, names, problems, err);
	closed = seam_output_close(&output, r == 0, r ? NULL : err);
	return r ? r : closed;
}

/* What the output cannot say.  Returns the exit status. */
static int tell(const struct seam_trace *trace,
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

int seam_convert_xray(const char *to, const char *output,
		      const struct seam_reading *reading,
		      const char *const *paths, size_t n_paths)
{
	struct seam_xray_problems problems = { 0 };
	struct seam_call_names names = { 0 };
	struct seam_trace trace = { 0 };
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
		r = write_to(output, find_format(to), &trace, &names, &problems,
			     &err);
	seam_trace_problems(&trace, &problems);
	if (r) {
		seam_command_failed(&err);
		status = failed;
	} else {
		status = tell(&trace, &problems);
	}
	seam_trace_close(&trace);
	seam_call_names_fini(&names);
	return status;
}
