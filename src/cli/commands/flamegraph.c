/* SPDX-License-Identifier: MIT */
/* flamegraph.c - 'seam flamegraph': one SVG of a recording */
#include "report/flamegraph.h"

#include <errno.h>

#include "cli/reading.h"

struct flamegraph_options {
	struct seam_reading reading;
	const char *output;
	const char *title;
	const char *by;
	double min_percent;
	bool inverted;
};

#define OPTION(...) SEAM_OPTION(struct flamegraph_options, __VA_ARGS__)

static const struct seam_option options[] = {
	OPTION(output, STRING, 'o', "output", "FILE",
	       "the output, - for standard output (flamegraph.svg)"),
	OPTION(inverted, FLAG, 0, "inverted", NULL,
	       "put the root at the top: an icicle graph"),
	OPTION(title, STRING, 0, "title", "TEXT",
	       "title of the picture (the recorded command)"),
	OPTION(min_percent, PERCENT, 0, "min-percent", "PERCENT",
	       "do not draw narrower frames (0.01)",
	       .detail = "The default also draws only the 20,000 widest "
	       "frames. The picture has the number of frames that are not "
	       "drawn, and dashed frames in their place; a search counts "
	       "them nevertheless. A page larger than 50 MB is refused."),
	SEAM_GROUP_OPTION(struct flamegraph_options, by),
	SEAM_INPUT_OPTION(struct flamegraph_options, reading),
	SEAM_READING_OPTIONS(struct flamegraph_options, reading),
};

static int write_svg(const struct seam_export *export, struct seam_err *err)
{
	const struct seam_flamegraph *graph = export->picture;
	int r = seam_flamegraph_write(graph, export->out);

	if (r == -EFBIG)
		return seam_err_set(err, r, "cannot draw: the page would be "
			"larger than 50 MB; a larger --min-percent makes it "
			"smaller (%g omits invisible frames)",
			graph->min_percent < 0.01 ? 0.01 :
			10 * graph->min_percent);
	return r ? seam_err_set(err, r, "cannot draw: %s", strerror(-r)) : 0;
}

/* The writer is in src/report, which src/export may not include. */
static const struct seam_exporter svg = {
	.name = "svg", .write = write_svg,
};

static int draw(struct seam_opened *opened, const struct flamegraph_options *o)
{
	const char *command = seam_profile_text(&opened->profile,
						opened->profile.command);
	const struct seam_flamegraph graph = {
		.selected = &opened->selected,
		.group = seam_reading_group(o->by),
		.title = o->title ? o->title : *command ? command :
			 seam_command_named(opened->path),
		.inverted = o->inverted, .min_percent = o->min_percent,
	};
	struct seam_export export = { .picture = &graph };
	int status;

	seam_reading_take_one_event(opened);
	status = seam_reading_export(opened, o->output, &svg, &export);
	if (status != SEAM_EXIT_FAILED && strcmp(o->output, "-") != 0)
		seam_command_say("wrote '%s'; open it in a browser", o->output);
	return status;
}

static int run(const struct seam_command *self, int argc, char **argv)
{
	struct flamegraph_options o = {
		.output = "flamegraph.svg", .min_percent = -1, .by = "comm",
	};
	struct seam_opened opened;
	int first;
	int status = seam_command_parse(self, argc, argv, &o, &first);

	if (status)
		return status;
	status = seam_reading_open(&opened, self, &o.reading, argc, argv,
				   first);
	if (status == SEAM_EXIT_DONE)
		status = draw(&opened, &o);
	seam_reading_close(&opened);
	return status;
}

const struct seam_command seam_flamegraph_command = {
	.name = "flamegraph",
	.summary = "draw a recording as one interactive SVG",
	.synopsis = "[options] [FILE...]",
	.description =
		"Draws all stacks of a recording as one picture, in which "
		"the width of a frame is its share. The file needs no "
		"network and no other file. Several XRay logs of one program "
		"make one picture.\n\n"
		"In a browser, a click or Enter zooms to a frame, Escape "
		"resets, Backspace goes back; the arrow keys move from frame "
		"to frame; / or Ctrl-F searches by regular expression and "
		"shows the matched share. The URL has the zoom and the "
		"search, so that a view can be shared.\n\n"
		"Colours are layers: blue native code, light blue inlined "
		"functions, orange the kernel, green JIT code, purple "
		"functions of a guest VM, yellow unknown addresses.",
	.examples =
		"seam flamegraph\tflamegraph.svg of the last recording\n"
		"seam flamegraph --inverted --layer native,jit -o app.svg "
		"app.seam\t"
		"an icicle graph without the kernel\n",
	.options = options,
	.n_options = SEAM_ARRAY_SIZE(options),
	.reads = true,
	.run = run,
};
