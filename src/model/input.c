/* SPDX-License-Identifier: MIT */
/* input.c - a folder or a file, opened; see input.h */
#include "model/input.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sys/stat.h>
#include <time.h>

#include "model/load.h"

/* More than any that we write: a line of JSON for each ring. */
#define MAX_MANIFEST_BYTES ((size_t)16 << 20)

/* A folder of perf's has none, and that is no error. */
static void read_manifest(struct seam_input *recording)
{
	struct seam_err why = { 0 };
	struct seam_file json;
	char path[PATH_MAX];
	int r;

	snprintf(path, sizeof(path), "%s/meta.json", recording->folder);
	r = seam_file_read(&json, AT_FDCWD, path, MAX_MANIFEST_BYTES, &why);
	if (r == 0)
		r = seam_manifest_read(&recording->manifest, json.bytes, &why);
	if (r < 0 && r != -ENOENT)
		recording->bad_manifest = why;
	seam_file_close(&json);
}

static int open_folder(struct seam_input *recording, const char *folder,
		       struct seam_err *err)
{
	char path[PATH_MAX];
	int r;

	recording->folder = folder;
	snprintf(path, sizeof(path), "%s/data", folder);
	r = seam_file_open(&recording->data, path, err);
	if (r < 0)
		return seam_err_add(err, r, "cannot open '%s'", path);
	while (recording->n_parts < SEAM_RECORDING_PARTS) {
		snprintf(path, sizeof(path), "%s/data.%zu", folder,
			 recording->n_parts);
		r = seam_file_open(&recording->parts[recording->n_parts],
				   path, err);
		if (r == -ENOENT)
			break;
		if (r < 0)
			return seam_err_add(err, r, "cannot open '%s'", path);
		recording->n_parts++;
	}
	read_manifest(recording);
	return 0;
}

/* Standard input is written now. */
static void note_time(struct seam_input *recording)
{
	char data[PATH_MAX];
	struct timespec at;
	struct stat st;

	snprintf(data, sizeof(data), "%s%s", recording->path,
		 recording->folder ? "/data" : "");
	if (strcmp(recording->path, "-") != 0 && stat(data, &st) == 0)
		at = st.st_mtim;
	else
		clock_gettime(CLOCK_REALTIME, &at);
	recording->written_ns = (uint64_t)at.tv_sec * 1000000000 +
				(uint64_t)at.tv_nsec;
}

int seam_input_open(struct seam_input *recording, const char *path,
			struct seam_err *err)
{
	struct stat st;
	int r;

	*recording = (struct seam_input) { 0 };
	if (!path)
		path = SEAM_LOAD_DEFAULT;
	recording->path = path;
	if (stat(path, &st) == 0 && S_ISDIR(st.st_mode))
		r = open_folder(recording, path, err);
	else
		r = seam_file_open(&recording->data, path, err);
	note_time(recording);
	return r;
}

void seam_input_close(struct seam_input *recording)
{
	seam_manifest_fini(&recording->manifest);
	seam_file_close(&recording->data);
	while (recording->n_parts > 0)
		seam_file_close(&recording->parts[--recording->n_parts]);
}
