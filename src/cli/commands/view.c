/* SPDX-License-Identifier: MIT */
/* view.c - 'seam view': a recording as a page for a browser */
#include "cli/reading.h"
#include "export/page/page.h"
#include "model/input.h"

struct view_options {
	struct seam_reading reading;
	const char *output;
};

#define OPTION(...) SEAM_OPTION(struct view_options, __VA_ARGS__)

static const struct seam_option options[] = {
	OPTION(output, STRING, 'o', "output", "FILE",
	       "write the page, - for standard output"),
	SEAM_INPUT_OPTION(struct view_options, reading),
	SEAM_READING_OPTIONS(struct view_options, reading),
};

static const struct seam_exporter page_exporter = {
	"page", SEAM_NEEDS_PROFILE, seam_page_write,
};

static int write_page(struct seam_opened *opened, const struct view_options *o)
{
	struct seam_page page = {
		.parts = { { .selected = &opened->selected,
			     .file = opened->path } },
		.n_parts = 1,
	};
	struct seam_export export = {
		.picture = &page, .say = seam_command_say,
	};

	return seam_reading_export(opened, o->output, &page_exporter, &export);
}

static int run(const struct seam_command *self, int argc, char **argv)
{
	struct view_options o = { 0 };
	struct seam_opened opened;
	int first;
	int status = seam_command_parse(self, argc, argv, &o, &first);

	if (status)
		return status;
	status = seam_reading_open(&opened, self, &o.reading, argc, argv,
				   first);
	if (status == SEAM_EXIT_DONE)
		status = write_page(&opened, &o);
	seam_reading_close(&opened);
	return status;
}

const struct seam_command seam_view_command = {
	.name = "view",
	.summary = "look at a recording in a browser",
	.synopsis = "[options] [FILE...]",
	.description = "",
	.options = options,
	.n_options = SEAM_ARRAY_SIZE(options),
	.reads = true,
	.run = run,
};
