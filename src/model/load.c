/* SPDX-License-Identifier: MIT */
/* load.c - what a path holds, and who reads it; see load.h */
#include "model/load.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "base/file.h"
#include "model/load_perf.h"
#include "wire/perf_data.h"

/* Files of one recording: data, and data.0, data.1... of perf's threads. */
struct files {
	struct seam_file data;
	struct seam_file parts[SEAM_PERF_PARTS];
	size_t n_parts;
	const char *bundle;		/* the folder; NULL for a file alone */
};

static void close_files(struct files *files)
{
	seam_file_close(&files->data);
	while (files->n_parts > 0)
		seam_file_close(&files->parts[--files->n_parts]);
}

static int open_in_folder(struct files *files, const char *folder,
			  struct seam_err *err)
{
	char path[PATH_MAX];
	int r;

	snprintf(path, sizeof(path), "%s/data", folder);
	r = seam_file_open(&files->data, path, err);
	if (r < 0)
		return seam_err_add(err, r, "cannot open '%s'", path);
	files->bundle = folder;
	while (files->n_parts < SEAM_PERF_PARTS) {
		snprintf(path, sizeof(path), "%s/data.%zu", folder,
			 files->n_parts);
		if (seam_file_open(&files->parts[files->n_parts], path, NULL))
			break;
		files->n_parts++;
	}
	return 0;
}

static int open_files(struct files *files, const char *path,
		      struct seam_err *err)
{
	struct stat st;
	int r;

	if (stat(path, &st) == 0 && S_ISDIR(st.st_mode))
		return open_in_folder(files, path, err);
	r = seam_file_open(&files->data, path, err);
	return r;
}

static int load_data(struct seam_profile *profile, const struct files *files,
		     const struct seam_load_options *options,
		     struct seam_err *err)
{
	struct seam_symbols *symbols;
	struct seam_perf_input input = {
		.data = &files->data, .parts = files->parts,
		.n_parts = files->n_parts,
	};
	int r;

	if (!seam_perf_data_is(files->data.bytes))
		return seam_err_set(err, -EBADMSG, files->data.bytes.size ?
				    "not a recording that Seam knows" :
				    "the file is empty");
	symbols = seam_symbols_new(&(struct seam_symbols_options) {
		.bundle = files->bundle, .symfs = options->symfs,
		.n_symfs = options->n_symfs, .no_inline = options->no_inline,
		.no_lines = options->no_lines,
		.debuginfod = options->debuginfod,
	});
	if (!symbols)
		return seam_err_set(err, -ENOMEM, "out of memory");
	r = seam_load_perf(profile, &input, symbols, err);
	seam_symbols_free(symbols);
	return r;
}

int seam_load(struct seam_profile *profile, const char *path,
	      const struct seam_load_options *options, struct seam_err *err)
{
	struct files files = { 0 };
	int r;

	if (!path)
		path = SEAM_LOAD_DEFAULT;
	r = open_files(&files, path, err);
	if (r == 0)
		r = load_data(profile, &files, options, err);
	close_files(&files);
	if (r < 0)
		seam_err_add(err, r, "cannot read '%s'", path);
	return r;
}
