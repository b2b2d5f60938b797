/* SPDX-License-Identifier: MIT */
/* inject.c - 'seam inject': convert a recording with JIT code for perf */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <unistd.h>

#include "cli/command.h"
#include "cli/output_folder.h"
#include "cli/reading.h"
#include "export/inject/inject.h"
#include "model/input.h"
#include "model/load.h"
#include "model/perf/load_perf.h"

struct inject_options {
	const char *output;
	struct seam_reading reading;	/* input and jit */
};

#define OPTION(...) SEAM_OPTION(struct inject_options, __VA_ARGS__)
static const struct seam_option options[] = {
	OPTION(output, STRING, 'o', "output", "DIR",
	       "create folder DIR and write to it",
	       .detail = "DIR/data is the recording, DIR/jitted-PID.so the "
	       "code of a process. The recording has their absolute paths: "
	       "DIR must not be moved."),
	SEAM_INPUT_OPTION(struct inject_options, reading),
	OPTION(reading.jit, STRINGS, 0, "jit", "PATH",
	       "a jitdump or perf map, or a folder of them",
	       .detail = "May be given several times. These are searched "
	       "first; then the bundle, the recording's folder, and where the "
	       "runtime wrote its files."),
};
#undef OPTION

/* -- one recording ------------------------------------------------------ */

struct injection {
	const struct inject_options *settings;
	const char *path;		/* of the recording */
	struct seam_input recording;
	struct seam_perf_data data;
	struct seam_profile profile;	/* without samples */
	struct seam_inject_code code;
	struct seam_output_folder made;		/* the output */
	char *folder_path;		/* absolute */
	bool is_damaged;
};

/* The recording's processes and JIT code. */
static int read_code(struct injection *in, struct seam_err *err)
{
	const struct seam_input *recording = &in->recording;
	struct seam_perf_input input = {
		.data = &recording->data, .parts = recording->parts.items,
		.n_parts = recording->parts.n,
		.jit = {
			.paths = in->settings->reading.jit.items,
			.n_paths = in->settings->reading.jit.n,
			.bundle = recording->folder,
			.recording = recording->folder ? NULL : in->path,
		},
	};

	return seam_load_perf(&in->profile, &input, NULL, err);
}

static int create_file(void *context, const char *name, struct seam_err *err)
{
	struct injection *in = context;

	return seam_output_folder_create(&in->made, name, err);
}

static int write_data(struct injection *in, struct seam_perf_rewrite *rewrite,
		      struct seam_err *err)
{
	int r, fd = seam_output_folder_create(&in->made, "data", err);
	FILE *out;

	if (fd < 0)
		return fd;
	out = fdopen(fd, "w");
	if (!out) {
		r = seam_err_errno(err, "cannot open 'data'");
		close(fd);
		return r;
	}
	r = seam_perf_rewrite(rewrite, out, err);
	if (fclose(out) && r == 0)
		r = seam_err_errno(err, "cannot write 'data'");
	return r;
}

static void say_result(const struct injection *in,
		       const struct seam_perf_rewrite *rewrite)
{
	const struct seam_inject_code *code = &in->code;
	size_t n_functions = code->functions.n;
	size_t n_processes = code->processes.n;
	size_t n_files = in->profile.jit->files.n;

	if (in->profile.jit->is_untimed)
		seam_command_say("the recording does not have the clock of "
				 "the dumps (perf record -k mono): an "
				 "address that was reused has only its last "
				 "code");
	seam_reading_say_notes(&in->profile);
	if (code->n_bad_tables)
		seam_command_say("%" PRIu64 " unwinding tables could not be "
				 "copied", code->n_bad_tables);
	if (code->functions.n == 0)
		seam_command_say("no JIT code was found; --jit names dumps and "
				 "maps");
	seam_command_say("%zu function%s of %zu process%s, from %zu file%s; %"
			 PRIu64 " mapping%s added, %" PRIu64 " left out",
			 n_functions, n_functions == 1 ? "" : "s",
			 n_processes, n_processes == 1 ? "" : "es",
			 n_files, n_files == 1 ? "" : "s",
			 rewrite->n_written, rewrite->n_written == 1 ? "" : "s",
			 rewrite->n_left_out);
}

static int make(struct injection *in, struct seam_err *err)
{
	struct seam_perf_rewrite rewrite = {
		.data = &in->data, .context = &in->code,
		.leaves_out = seam_inject_code_is_hidden_by,
	};
	const char *path = in->settings->output;
	int r = read_code(in, err);

	if (r == 0)
		r = seam_output_folder_begin(&in->made, path, err);
	if (r == 0)
		in->folder_path = realpath(path, NULL);
	if (r == 0 && !in->folder_path)
		r = seam_err_errno(err, "cannot open '%s'", path);
	if (r == 0)
		r = seam_inject_code_make(&in->code, in->folder_path, err);
	if (r == 0 && in->recording.folder)
		r = seam_output_folder_copy(&in->made, in->recording.folder,
					    "data", err);
	if (r < 0)
		return r;
	rewrite.added = in->code.added.items;
	rewrite.n_added = in->code.added.n;
	r = write_data(in, &rewrite, err);
	in->is_damaged = r == -ENODATA || r == -EBADMSG;
	if (r == 0 || in->is_damaged)
		say_result(in, &rewrite);
	return r;
}

static int inject(const char *path, const struct inject_options *settings)
{
	struct injection in = {
		.settings = settings, .path = path,
		.code = { .profile = &in.profile, .create = create_file,
			  .context = &in },
	};
	struct seam_err err = { 0 };
	int r = seam_input_open(&in.recording, path, &err);
	int status = SEAM_EXIT_DONE;
	bool is_begun;

	if (r == 0 && seam_profile_init(&in.profile))
		r = seam_err_no_memory(&err);
	if (r == 0)
		r = seam_perf_data_open(&in.data, in.recording.data.bytes,
					&err);
	is_begun = r == 0;
	if (r == 0) {
		seam_perf_data_name_events(&in.data,
					   in.recording.manifest.events,
					   in.recording.manifest.n_events);
		r = make(&in, &err);
	}
	if (r < 0) {
		seam_err_add(&err, r, is_begun ? "cannot inject all of '%s'" :
			     "cannot read '%s'", path);
		status = seam_command_failed(&err);
		if (in.is_damaged)
			status = SEAM_EXIT_LOSSY;
		else
			seam_output_folder_undo(&in.made);
	}
	seam_inject_code_fini(&in.code);
	seam_profile_fini(&in.profile);
	seam_perf_data_close(&in.data);
	seam_input_close(&in.recording);
	free(in.folder_path);
	seam_output_folder_fini(&in.made);
	return status;
}

static int run(const struct seam_command *self, int argc, char **argv)
{
	struct inject_options settings = { 0 };
	const char *path;
	int first;
	int status = seam_command_parse(self, argc, argv, &settings, &first);

	if (status)
		return status;
	if (!settings.output)
		return seam_command_misused(self, "-o DIR is missing");
	status = seam_reading_operand(self, &settings.reading, argc, argv,
				      first, &path);
	return status ? status : inject(path ? path : SEAM_LOAD_DEFAULT, &settings);
}

const struct seam_command seam_inject_command = {
	.name = "inject",
	.summary = "convert a recording with JIT code for perf",
	.synopsis = "[options] -o DIR [FILE]",
	.description =
		"Makes a recording that plain perf shows with the names "
		"and the machine code of just-in-time compilers, without "
		"source lines. Seam's own commands do not need it.\n\n"
		"FILE is a recording of seam or a perf.data file; its jitdumps "
		"and perf maps are found as for seam report. The code of a "
		"process becomes one ELF file with a symbol for each function, "
		"and mappings of its parts are added to a copy of the "
		"recording at the times when the code was loaded or moved. "
		"Anonymous mappings that would hide them are left out. All "
		"else is copied byte for byte.",
	.examples =
		"seam inject -o for-perf\tthe last recording\n"
		"perf report -i for-perf\tas perf shows it\n"
		"seam inject -o out --jit dumps perf.data\t"
		"with dumps that are in a folder\n",
	.options = options,
	.n_options = SEAM_ARRAY_SIZE(options),
	.reads = true,
	.run = run,
};
