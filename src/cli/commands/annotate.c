/* SPDX-License-Identifier: MIT */
/* annotate.c - 'seam annotate': machine code with its samples */
#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/array.h"
#include "cli/hints.h"
#include "cli/pager.h"
#include "cli/reading.h"
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

/* ---- source files ---- */

struct source_file {
	char *path;
	struct seam_file file;		/* empty: not found */
	SEAM_ARRAY(uint32_t) starts;	/* of lines */
};

/* Zeroed is valid and empty. */
struct sources {
	const struct seam_option_list *symfs;	/* borrowed */
	SEAM_ARRAY(struct source_file) files;
	char line[512];			/* the last one returned */
};

static struct source_file *find(struct sources *sources, const char *path)
{
	struct source_file *slot;
	struct seam_bytes bytes;

	for (size_t i = 0; i < sources->files.n; i++)
		if (strcmp(sources->files.items[i].path, path) == 0)
			return &sources->files.items[i];
	slot = SEAM_ARRAY_PUSH(&sources->files);
	if (!slot)
		return NULL;
	*slot = (struct source_file) { .path = strdup(path) };
	if (!slot->path) {
		sources->files.n--;
		return NULL;
	}
	seam_reading_source(sources->symfs, path, &slot->file);
	bytes = slot->file.bytes;
	for (size_t i = 0; i < bytes.size; i++)
		if (i == 0 || bytes.data[i - 1] == '\n')
			SEAM_ARRAY_ADD(&slot->starts, (uint32_t)i);
	return slot;
}

/* Line @line (from 1) of @path, cut at 511 bytes; NULL: there is none. */
static const char *source_line(void *context, const char *path, uint32_t line)
{
	struct sources *sources = context;
	struct source_file *source = *path ? find(sources, path) : NULL;
	const char *text;
	size_t left, n;

	if (!source || line == 0 || line > source->starts.n)
		return NULL;
	text = (const char *)source->file.bytes.data +
	       source->starts.items[line - 1];
	left = source->file.bytes.size - source->starts.items[line - 1];
	for (n = 0; n < left && text[n] != '\n' && text[n] != '\r'; n++)
		;
	if (n >= sizeof(sources->line))
		n = sizeof(sources->line) - 1;
	/* A tab would be shown as an escape. */
	for (size_t i = 0; i < n; i++)
		sources->line[i] = text[i] == '\t' ? ' ' : text[i];
	sources->line[n] = '\0';
	return sources->line;
}

/* ---- the command ---- */

static void print(const struct seam_annotation *annotation,
		  const struct seam_opened *opened,
		  const struct annotate_options *settings, const char *symbol,
		  int status)
{
	struct seam_report report = {
		.profile = &opened->profile, .selected = &opened->selected,
		.path = seam_command_named(opened->path),
		.details = seam_command_verbose(),
	};
	struct sources sources = { .symfs = &settings->reading.symfs };
	struct seam_annotate_view what = {
		.report = &report, .annotation = annotation,
		.symbol = symbol, .no_source = settings->no_source,
		.only_hot = settings->hot, .source = source_line,
		.context = &sources,
	};
	struct seam_view view = seam_view_make(stdout,
					seam_command_colors(STDOUT_FILENO));

	seam_pager_start(status);
	if (settings->json)
		seam_annotate_json(&what, stdout);
	else
		seam_annotate_text(&what, &view);
	for (size_t i = 0; i < sources.files.n; i++) {
		free(sources.files.items[i].path);
		free(sources.files.items[i].starts.items);
		seam_file_close(&sources.files.items[i].file);
	}
	free(sources.files.items);
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
	size_t n_bare = 0;
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
		for (size_t i = 0; i < annotation.bodies.n; i++)
			n_bare += annotation.bodies.items[i].problem != NULL;
		if (n_bare)
			status = n_bare == annotation.bodies.n ?
				 SEAM_EXIT_FAILED : SEAM_EXIT_LOSSY;
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
	int first;
	int status = seam_command_parse(self, argc, argv, &settings, &first);

	if (status)
		return status;
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
