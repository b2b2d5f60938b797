/* SPDX-License-Identifier: MIT */
/* batch_folder.c - list and read batch files; see batch_folder.h */
#include "model/fleet/batch_folder.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>

static bool is_batch(const char *name)
{
	size_t n = strlen(name), end = strlen(SEAM_BATCH_ENDING);

	return n > end && name[0] != '.' &&
	       strcmp(name + n - end, SEAM_BATCH_ENDING) == 0;
}

static int by_name(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

static int list(struct seam_batch_folder *folder, DIR *dir,
		struct seam_err *err)
{
	const struct dirent *entry;

	while ((entry = readdir(dir))) {
		char *name = is_batch(entry->d_name) ? strdup(entry->d_name) :
			     NULL;

		if (!name && !is_batch(entry->d_name))
			continue;
		if (folder->names.n == SEAM_BATCH_FOLDER_FILES) {
			free(name);
			return seam_err_set(err, -E2BIG, "more than %d files",
					    SEAM_BATCH_FOLDER_FILES);
		}
		if (!name || !SEAM_ARRAY_ADD(&folder->names, name)) {
			free(name);
			return seam_err_no_memory(err);
		}
	}
	SEAM_ARRAY_SORT(&folder->names, by_name);
	return 0;
}

int seam_batch_folder_open(struct seam_batch_folder *folder, const char *path,
			   struct seam_err *err)
{
	int fd, r;
	DIR *dir;

	*folder = (struct seam_batch_folder) {
		.fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC),
	};
	fd = folder->fd < 0 ? -1 : openat(folder->fd, ".", O_RDONLY |
					  O_DIRECTORY | O_CLOEXEC);
	dir = fd < 0 ? NULL : fdopendir(fd);
	if (!dir) {
		r = seam_err_errno(err, "cannot open the folder '%s'", path);
		seam_file_close_fd(fd);
		return r;
	}
	r = list(folder, dir, err);
	closedir(dir);
	return r ? seam_err_add(err, r, "cannot list the folder '%s'", path) :
	       0;
}

void seam_batch_folder_close(struct seam_batch_folder *folder)
{
	seam_file_close_fd(folder->fd);
	while (folder->names.n)
		free(folder->names.items[--folder->names.n]);
	free(folder->names.items);
	*folder = (struct seam_batch_folder) { .fd = -1 };
}

int seam_batch_folder_head(int folder, const char *name,
			   struct seam_batch_head *head, struct seam_err *err)
{
	uint8_t *bytes = malloc(SEAM_BATCH_HEAD_MAX);
	size_t n = 0;
	int fd, r = 0;

	*head = (struct seam_batch_head) { 0 };
	if (!bytes)
		return seam_err_no_memory(err);
	fd = seam_file_open_fd(folder, name, O_NOFOLLOW, err);
	while (fd >= 0 && !r && n < SEAM_BATCH_HEAD_MAX) {
		ssize_t got = read(fd, bytes + n, SEAM_BATCH_HEAD_MAX - n);

		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			r = seam_err_errno(err, "cannot read it");
		if (got <= 0)
			break;
		n += (size_t)got;
	}
	if (fd >= 0 && !r)
		r = seam_batch_head_read(head, (struct seam_bytes) { bytes, n },
					 err);
	seam_file_close_fd(fd);
	free(bytes);
	return fd < 0 ? fd : r;
}

int seam_batch_folder_read(int folder, const char *name,
			   struct seam_batch *batch, struct seam_err *err)
{
	struct seam_file file;
	int r = seam_file_read(&file, folder, name, SEAM_BATCH_FILE_MAX, err);

	*batch = (struct seam_batch) { 0 };
	if (!r)
		r = seam_batch_file_read(batch, file.bytes, err);
	seam_file_close(&file);
	return r;
}
