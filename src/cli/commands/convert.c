/* SPDX-License-Identifier: MIT */
/* convert.c - 'seam convert': a recording as another tool's file */
#include <errno.h>

#include "cli/commands/convert_xray.h"
#include "cli/output_file.h"
#include "cli/reading.h"
#include "export/stacks/folded.h"

struct convert_options {
	struct seam_reading reading;
	const char *to;
	const char *output;
	const char *by;
	bool weight;
};

/* A format: one row here, and its name among the choices of --to. */
static const struct format {
	const char *name;
	int (*write)(const struct seam_selected *selected,
		     enum seam_group group, bool by_weight, FILE *out);
} formats[] = {
	{ "folded", seam_folded_write },
};

#define OPTION(member, kind, letter, name, value, help, ...) \
	SEAM_OPTION(struct convert_options, member, SEAM_OPTION_##kind, letter, name, \
		    value, help, __VA_ARGS__)

static const struct seam_option options[] = {
	OPTION(to, STRING, 't', "to", "FORMAT", "what to write",
	       .choices = "folded|" SEAM_CONVERT_XRAY_FORMATS,
	       .detail = "Folded has a line for each stack: thread name "
	       "(or what --by says), frames from the root to the leaf, "
	       "divided by semicolons, and a count. The end of a frame's name is its layer: _[k] for "
	       "the kernel, _[j] for JIT code, _[g] for a guest, _[i] for "
	       "an inlined function. "
	       "The others take XRay logs, one or several of a program, and "
	       "keep every event: trace-json is for chrome://tracing and "
	       "ui.perfetto.dev, xray-yaml for llvm-xray, xray is one log of "
	       "version 5."),
	OPTION(output, STRING, 'o', "output", "FILE",
	       "where to, - for standard output (-)"),
	OPTION(weight, FLAG, 0, "weight", NULL,
	       "count weights (nanoseconds, occurrences), not samples"),
	SEAM_GROUP_OPTION(struct convert_options, by),
	SEAM_INPUT_OPTION(struct convert_options, reading),
	SEAM_READING_OPTIONS(struct convert_options, reading),
};

static const struct format *find_format(const char *name)
{
	for (size_t i = 0; i < SEAM_ARRAY_SIZE(formats); i++)
		if (strcmp(formats[i].name, name) == 0)
			return &formats[i];
	return NULL;
}

static int write_to(const char *path, const struct format *format,
		    const struct seam_selected *selected,
		    enum seam_group group, bool by_weight)
{
	struct seam_output output;
	struct seam_err err = { 0 };
	int rc = seam_output_open(&output, path, &err), closed;

	if (rc)
		return seam_command_failed(&err);
	rc = format->write(selected, group, by_weight, output.file);
	closed = seam_output_close(&output, rc == 0, &err);
	if (rc == -EFBIG)
		seam_err_set(&err, rc, "cannot convert: the lines are more "
			     "than 4 GiB; choose a part with --time, --thread "
			     "or --layer");
	else if (rc)
		seam_err_set(&err, rc, "cannot convert: %s", strerror(-rc));
	return rc || closed ? seam_command_failed(&err) : SEAM_EXIT_DONE;
}

/* Not sampled: what matters is the time in a stack, not how often. */
static bool is_measured(const struct seam_opened *opened)
{
	uint32_t event = seam_selected_event(&opened->selected);

	return event != SEAM_NONE &&
	       opened->profile.events.items[event].is_measured;
}

static int convert(struct seam_opened *opened, const struct convert_options *o)
{
	seam_reading_take_one_event(opened);
	return write_to(o->output, find_format(o->to), &opened->selected,
			seam_reading_group(o->by),
			o->weight || is_measured(opened));
}

static int run(const struct seam_command *self, int argc, char **argv)
{
	struct convert_options o = { .output = "-", .by = "comm" };
	struct seam_opened opened;
	int first, status;
	int rc = seam_command_parse(self, argc, argv, &o, &first);

	if (rc)
		return rc < 0 ? SEAM_EXIT_USAGE : SEAM_EXIT_DONE;
	if (!o.to)
		return seam_command_misused(self, "--to FORMAT is missing");
	if (seam_convert_xray_has(o.to) && first == argc)
		return seam_command_misused(self, "--to %s needs a FILE",
					    o.to);
	if (seam_convert_xray_has(o.to) &&
	    (o.reading.thread || o.reading.layers || o.reading.event))
		return seam_command_misused(self, "--to %s writes all threads "
			"and events of a log; only --time selects", o.to);
	if (seam_convert_xray_has(o.to))
		return seam_convert_xray(o.to, o.output, &o.reading,
					 (const char *const *)argv + first,
					 (size_t)(argc - first));
	status = seam_reading_open(&opened, self, &o.reading, argc, argv,
				   first);
	if (status == SEAM_EXIT_DONE)
		status = convert(&opened, &o);
	if (status == SEAM_EXIT_DONE) {
		seam_reading_say_losses(&opened);
		status = seam_reading_status(&opened);
	}
	seam_reading_close(&opened);
	return status;
}

const struct seam_command seam_convert_command = {
	.name = "convert",
	.summary = "write a recording in another tool's format",
	.synopsis = "--to FORMAT [options] [FILE...]",
	.description =
		"Reads what 'seam report' reads and writes it for another "
		"tool. The file appears only when it is complete.",
	.examples =
		"seam convert --to folded -o app.folded\t"
		"stacks for flame graph scripts and speedscope\n"
		"seam convert --to folded --layer jit,guest | sort -t' ' "
		"-k2\tonly what the virtual machine ran\n"
		"seam convert --to trace-json --map ./app -o app.json app.xray"
		"\tevery call, for ui.perfetto.dev\n",
	.options = options,
	.n_options = SEAM_ARRAY_SIZE(options),
	.reads = true,
	.run = run,
};
