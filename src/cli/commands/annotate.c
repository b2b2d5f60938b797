/* SPDX-License-Identifier: MIT */
/* annotate.c - 'seam annotate': machine code with its samples */
#include <errno.h>
#include <unistd.h>

#include "cli/closest.h"
#include "cli/pager.h"
#include "cli/reading.h"
#include "cli/source_text.h"
#include "report/annotate.h"

struct annotate_options {
	struct seam_reading reading;
	bool json;
	bool total;
	bool no_source;
	bool hot;
	bool stdio;	/* accepted for compatibility with perf */
};

#define OPTION(...) SEAM_OPTION(struct annotate_options, __VA_ARGS__)

static const struct seam_option options[] = {
	OPTION(total, FLAG, 0, "total", NULL, "count samples in callees too",
	       .detail = "A sample in a callee counts at the call "
	       "instruction, once per instruction."),
	OPTION(hot, FLAG, 0, "hot", NULL,
	       "only instructions that have samples"),
	OPTION(no_source, FLAG, 0, "no-source", NULL,
	       "do not show source lines"),
	OPTION(json, FLAG, 0, "json", NULL, "print JSON",
	       .detail = "The schema is seam.annotate/1. Members may be added "
	       "under the same schema, and none is removed."),
	OPTION(stdio, FLAG, 0, "stdio", NULL, "no effect; as in perf"),
	SEAM_INPUT_OPTION(struct annotate_options, reading),
	SEAM_READING_OPTIONS(struct annotate_options, reading),
};

static void print(const struct seam_annotation *annotation,
		  const struct seam_opened *opened,
		  const struct annotate_options *settings, const char *symbol,
		  int status)
{
	struct seam_report report = {
		.profile = &opened->profile, .selected = &opened->selected,
		.path = opened->path, .details = seam_command_verbose(),
	};
	struct seam_source_text sources = { .symfs = &settings->reading.symfs };
	struct seam_annotate_view what = {
		.report = &report, .annotation = annotation,
		.symbol = symbol, .no_source = settings->no_source,
		.only_hot = settings->hot, .source = seam_source_text_line,
		.context = &sources,
	};
	struct seam_view view = seam_view_make(stdout,
					seam_command_colors(STDOUT_FILENO));

	seam_pager_start(status);
	if (settings->json) {
		seam_annotate_json(&what, stdout);
		return;
	}
	seam_annotate_text(&what, &view);
	seam_source_text_fini(&sources);
}

/* Failed without any code; lossy with code missing. */
static int status_of(const struct seam_annotation *annotation, int status)
{
	size_t n_bare = 0;

	for (size_t i = 0; i < annotation->bodies.n; i++)
		n_bare += annotation->bodies.items[i].problem != NULL;
	if (annotation->bodies.n == n_bare)
		return SEAM_EXIT_FAILED;
	return n_bare ? SEAM_EXIT_LOSSY : status;
}

static const char *name_of(const struct seam_profile *profile, size_t i)
{
	return seam_profile_text(profile, profile->functions.items[i].name);
}

/* Report a function that is unknown or has no sample. */
static int explain(const struct seam_profile *profile, const char *symbol,
		   bool total, struct seam_err *err)
{
	const char *like;

	for (size_t i = 0; i < profile->functions.n; i++)
		if (strcmp(name_of(profile, i), symbol) == 0)
			return seam_err_set(err, -ENOENT, "no sample is in "
				"it%s", total ? "" : " itself; --total counts "
				"samples in its callees");
	if (profile->samples.n == 0)
		return seam_err_set(err, -ENOENT, "the recording has no samples");
	if (symbol[0] == '[')
		return seam_err_set(err, -ENOENT, "no sample is near it");
	like = seam_closest_function(profile, symbol);
	if (!like)
		return seam_err_set(err, -ENOENT, "the recording has no "
				    "function of that name");
	return seam_err_set(err, -ENOENT, "the recording has no function of "
			    "that name; did you mean '%.300s'?", like);
}

static int show(const struct seam_opened *opened,
		const struct annotate_options *settings, const char *symbol)
{
	struct seam_annotation annotation = { 0 };
	struct seam_err err = { 0 };
	struct seam_annotation_options how = {
		.symbol = symbol, .with_callers = settings->total,
		.symbols = seam_reading_load_options(&settings->reading)
			   .symbols,
	};
	int status = seam_reading_status(opened);
	int r;

	if (opened->profile.bundle)
		how.symbols.bundle = seam_profile_text(&opened->profile,
						       opened->profile.bundle);
	how.symbols.no_inline = how.symbols.no_lines = false;
	r = seam_annotate(&annotation, &opened->selected, &how, &err);
	if (r == 0 && annotation.bodies.n == 0)
		r = explain(&opened->profile, symbol, settings->total, &err);
	/* Losses first: they may be the cause of a failure. */
	seam_reading_say_losses(opened);
	if (r == 0) {
		status = status_of(&annotation, status);
		print(&annotation, opened, settings, symbol, status);
	} else {
		seam_err_add(&err, r, "cannot annotate '%s'", symbol);
		status = seam_command_failed(&err);
	}
	seam_annotation_fini(&annotation);
	return status;
}

static int run(const struct seam_command *self, int argc, char **argv)
{
	struct annotate_options settings = { 0 };
	struct seam_opened opened;
	int first, status;
	int r = seam_command_parse(self, argc, argv, &settings, &first);

	if (r)
		return r < 0 ? SEAM_EXIT_USAGE : SEAM_EXIT_DONE;
	if (first >= argc)
		return seam_command_misused(self, "SYMBOL is missing");
	status = seam_reading_open(&opened, self, &settings.reading, argc,
				   argv, first + 1);
	if (status == SEAM_EXIT_DONE)
		status = show(&opened, &settings, argv[first]);
	seam_reading_close(&opened);
	return status;
}

const struct seam_command seam_annotate_command = {
	.name = "annotate",
	.summary = "show a function's machine code with its samples",
	.synopsis = "[options] SYMBOL [FILE]",
	.description =
		"Shows the instructions of function SYMBOL, each with the "
		"samples at it and their share of the function, and with "
		"source lines. SYMBOL is a name as seam report shows it; an "
		"inlined function is shown inside its callers. If several "
		"functions have the name, or its code was compiled several "
		"times, the hottest one comes first; a table lists these code "
		"objects, the addresses of each (code of a JIT can move) with "
		"their times, and its share of the samples.\n\n"
		"Code of a JIT comes from its dump, as it was at the time of "
		"the samples; that of programs and libraries from the file "
		"with the recorded build id; that of the kernel from a "
		"vmlinux with its build id (in /usr/lib/debug, /boot or "
		"--symfs), or from /proc/kcore of the running kernel. An "
		"address without a symbol, '[module+0x1234]', selects the "
		"function around it if the file has its bounds, else the "
		"code near it. A file of code that has changed since the "
		"recording is not shown. A function of a program that a VM "
		"interprets is shown as the lines of its source that ran, in "
		"JSON lines instead of instructions. Source is shown as it is "
		"now.\n\n"
		"The exit status is 1 if no code can be shown, and 3 if some "
		"of it cannot.",
	.examples =
		"seam annotate main\tthe last recording\n"
		"seam annotate --hot --total parse perf.data\t"
		"only hot instructions, with callees\n"
		"seam annotate '[libfoo.so+0x1234]'\t"
		"an address without a symbol\n"
		"seam annotate --json f | jq '.functions[0].samples'\t"
		"for scripts\n",
	.options = options,
	.n_options = SEAM_ARRAY_SIZE(options),
	.reads = true,
	.run = run,
};
