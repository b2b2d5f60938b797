/* SPDX-License-Identifier: MIT */
/* input.c - open a folder or a file; see input.h */
#include "model/input.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "base/clock.h"
#include "model/fleet/load_batch.h"
#include "model/load.h"

enum { MAX_TRIGGER_LINES = 3 };

int seam_input_manifest(struct seam_manifest *manifest, const char *folder,
			struct seam_err *err)
{
	struct seam_file json;
	char path[PATH_MAX];
	int r;

	*manifest = (struct seam_manifest) { 0 };
	snprintf(path, sizeof(path), "%s/meta.json", folder);
	r = seam_file_read(&json, AT_FDCWD, path, SEAM_INPUT_MAX_MANIFEST, err);
	if (r == 0)
		r = seam_manifest_read(manifest, json.bytes, err);
	seam_file_close(&json);
	return r;
}

/* A folder made by perf has no manifest, which is no error. */
static void read_manifest(struct seam_input *input)
{
	struct seam_err why = { 0 };
	int r = seam_input_manifest(&input->manifest, input->folder, &why);

	if (r < 0 && r != -ENOENT)
		input->bad_manifest = why;
}

static int open_parts(struct seam_input *input, const char *folder,
		      struct seam_err *err)
{
	for (;;) {
		char path[PATH_MAX];
		struct seam_file part;
		int r;

		snprintf(path, sizeof(path), "%s/data.%zu", folder,
			 input->parts.n);
		r = seam_file_open(&part, path, err);
		if (r == -ENOENT)
			return 0;
		if (r < 0)
			return seam_err_add(err, r, "cannot open '%s'", path);
		if (input->parts.n == SEAM_INPUT_MAX_PARTS)
			r = seam_err_set(err, -E2BIG, "cannot open '%s': more "
					 "than %d files of one recording",
					 folder, SEAM_INPUT_MAX_PARTS);
		else if (!SEAM_ARRAY_ADD(&input->parts, part))
			r = seam_err_no_memory(err);
		if (r < 0) {
			seam_file_close(&part);
			return r;
		}
	}
}

static int is_log(const struct dirent *entry)
{
	size_t n = strlen(entry->d_name), end = strlen(".xray");

	return n > end && strcmp(entry->d_name + n - end, ".xray") == 0;
}

static int by_name(const struct dirent **a, const struct dirent **b)
{
	return strcmp((*a)->d_name, (*b)->d_name);
}

int seam_input_logs(const char *folder, struct dirent ***entries)
{
	char path[PATH_MAX];

	snprintf(path, sizeof(path), "%s/xray", folder);
	return scandir(path, entries, is_log, by_name);
}

/* How many there are in @folder; -1: there is no place for them. */
static int count_logs(const char *folder)
{
	struct dirent **entries = NULL;
	int n = seam_input_logs(folder, &entries);

	for (int i = 0; i < n; i++)
		free(entries[i]);
	free(entries);
	return n;
}

static int open_folder(struct seam_input *input, const char *folder,
		       struct seam_err *err)
{
	char path[PATH_MAX];
	int n_logs, r;

	input->folder = folder;
	snprintf(path, sizeof(path), "%s/data", folder);
	r = seam_file_open(&input->data, path, err);
	n_logs = r == -ENOENT ? count_logs(folder) : -1;
	input->is_logs = n_logs > 0;
	input->is_batches = r == -ENOENT && !input->is_logs &&
			    seam_load_batch_is(folder);
	if (input->is_batches)
		return 0;
	if (n_logs == 0)
		return seam_err_set(err, -ENOTSUP,
				    "no calls were recorded in it");
	if (r < 0 && !input->is_logs)
		return seam_err_add(err, r, "cannot open '%s'", path);
	r = input->is_logs ? 0 : open_parts(input, folder, err);
	if (r == 0)
		read_manifest(input);
	return r;
}

int seam_input_open(struct seam_input *input, const char *path,
		    struct seam_err *err)
{
	char data[PATH_MAX];
	struct stat st;
	int r;

	*input = (struct seam_input) { 0 };
	if (!path)
		path = SEAM_LOAD_DEFAULT;
	input->path = path;
	if (stat(path, &st) == 0 && S_ISDIR(st.st_mode))
		r = open_folder(input, path, err);
	else
		r = seam_file_open(&input->data, path, err);
	snprintf(data, sizeof(data), "%s%s", path, input->is_logs ? "/xray" :
		 input->folder ? "/data" : "");
	/* standard input counts as written now */
	input->written_ns = strcmp(path, "-") != 0 && stat(data, &st) == 0 ?
			    seam_clock_of(st.st_mtim) :
			    seam_clock_now(CLOCK_REALTIME);
	return r;
}

void seam_input_close(struct seam_input *input)
{
	seam_manifest_fini(&input->manifest);
	seam_file_close(&input->data);
	while (input->parts.n > 0)
		seam_file_close(&input->parts.items[--input->parts.n]);
	free(input->parts.items);
}

bool seam_input_trigger(const struct seam_input *input, size_t i,
			char text[SEAM_INPUT_TRIGGER])
{
	const struct seam_manifest *m = &input->manifest;

	if (i >= m->n_triggers || i > MAX_TRIGGER_LINES)
		return false;
	if (i < MAX_TRIGGER_LINES)
		seam_manifest_trigger_describe(text, SEAM_INPUT_TRIGGER,
					       &m->triggers[i], m->start_ns);
	else
		snprintf(text, SEAM_INPUT_TRIGGER, "%zu more triggers are in "
			 "meta.json", m->n_triggers - MAX_TRIGGER_LINES);
	return true;
}
