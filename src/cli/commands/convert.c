/* SPDX-License-Identifier: MIT */
/* convert.c - 'seam convert': a recording as another tool's file */
#include <unistd.h>

#include "cli/output_file.h"
#include "cli/reading.h"

struct convert_options {
	struct seam_reading reading;
	const char *to;
	const char *output;
	const char *by;
	bool weight;
};

#define OPTION(...) SEAM_OPTION(struct convert_options, __VA_ARGS__)

static const struct seam_option options[] = {
	OPTION(to, STRING, 't', "to", "FORMAT", "the format to write",
	       .choices = SEAM_EXPORTER_CHOICES,
	       .detail = SEAM_EXPORTERS_HELP),
	OPTION(output, STRING, 'o', "output", "FILE",
	       "the output, - for standard output (-)"),
	OPTION(weight, FLAG, 0, "weight", NULL,
	       "folded: weights (nanoseconds, occurrences), not samples"),
	SEAM_GROUP_OPTION(struct convert_options, by),
	SEAM_INPUT_OPTION(struct convert_options, reading),
	SEAM_READING_OPTIONS(struct convert_options, reading),
};

static int convert(struct seam_opened *opened, const struct convert_options *o,
		   const struct seam_exporter *exporter)
{
	struct seam_export export = {
		.group = seam_reading_group(o->by), .say = seam_command_say,
		.by_weight = o->weight,
	};
	uint32_t event;

	if (exporter->needs == SEAM_NEEDS_PROFILE)
		return seam_reading_export(opened, o->output, exporter,
					   &export);
	seam_reading_take_one_event(opened);
	/* of calls, of waits and of several events, only times add up */
	event = seam_selected_event(&opened->selected);
	if (event == SEAM_NONE ? opened->selected.events != NULL :
	    opened->profile.events.items[event].is_measured ||
	    opened->profile.events.items[event].is_wait)
		export.by_weight = true;
	return seam_reading_export(opened, o->output, exporter, &export);
}

/* XRay logs, in formats of single events. */
static int convert_logs(const struct convert_options *o,
			const struct seam_exporter *exporter,
			const char *const *paths, size_t n_paths)
{
	struct seam_xray_problems problems = { 0 };
	struct seam_xray_map names = { 0 };
	struct seam_trace trace = { 0 };
	struct seam_export export = {
		.trace = &trace, .names = &names, .problems = &problems,
	};
	struct seam_err err = { 0 };
	int r, status = seam_reading_open_logs(&trace, &names, &o->reading,
					       paths, n_paths);

	if (status == SEAM_EXIT_DONE) {
		r = seam_export_file(o->output, exporter, &export, &err);
		seam_xray_problems_merge(&problems, &trace.problems);
		status = r ? seam_command_failed(&err) :
			 seam_reading_say_problems(&trace, &problems);
		if (!r && seam_reading_say_lost_calls(paths, n_paths))
			status = SEAM_EXIT_LOSSY;
	}
	seam_trace_close(&trace);
	seam_xray_map_fini(&names);
	return status;
}

static int run(const struct seam_command *self, int argc, char **argv)
{
	struct convert_options o = { .output = "-", .by = "comm" };
	const struct seam_exporter *exporter;
	struct seam_opened opened;
	int first;
	int status = seam_command_parse(self, argc, argv, &o, &first);

	if (status)
		return status;
	if (!o.to)
		return seam_command_misused(self, "--to FORMAT is missing");
	exporter = seam_exporter_find(o.to);
	if (exporter->is_binary && strcmp(o.output, "-") == 0 &&
	    isatty(STDOUT_FILENO))
		return seam_command_misused(self, "--to %s is binary, and "
			"standard output a terminal: give -o FILE", o.to);
	if (exporter->needs == SEAM_NEEDS_LOGS) {
		if (first == argc)
			return seam_command_misused(self, "--to %s needs a "
						    "FILE", o.to);
		if (o.reading.thread || o.reading.layers || o.reading.event)
			return seam_command_misused(self, "--to %s writes all "
				"threads and events of a log; only --time "
				"selects", o.to);
		return convert_logs(&o, exporter,
				    (const char *const *)argv + first,
				    (size_t)(argc - first));
	}
	status = seam_reading_open(&opened, self, &o.reading, argc, argv,
				   first);
	if (status == SEAM_EXIT_DONE)
		status = convert(&opened, &o, exporter);
	seam_reading_close(&opened);
	return status;
}

const struct seam_command seam_convert_command = {
	.name = "convert",
	.summary = "write a recording in another tool's format",
	.synopsis = "--to FORMAT [options] [FILE...]",
	.description =
		"Reads the same files as 'seam report' and writes them in "
		"another format. The output file is replaced only when the "
		"new one is complete. If data was lost, or the format cannot "
		"hold some of the samples, the exit status is 3.",
	.examples =
		"seam convert --to folded -o app.folded\t"
		"stacks for flame graph scripts and speedscope\n"
		"seam convert --to firefox -o app.json\t"
		"a time line of threads, for profiler.firefox.com\n"
		"seam convert --to pprof --time 10%,20% -o app.pprof\t"
		"a part of it, for go tool pprof\n"
		"seam convert --to perfetto -o app.pftrace\t"
		"samples, calls and waits, for ui.perfetto.dev\n"
		"seam convert --to folded --layer jit,guest | sort -t' ' "
		"-k2\tonly the code of a virtual machine\n"
		"seam convert --to trace-json --map ./app -o app.json app.xray"
		"\tevery call as JSON\n",
	.options = options,
	.n_options = SEAM_ARRAY_SIZE(options),
	.reads = true,
	.run = run,
};
