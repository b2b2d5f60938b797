/* SPDX-License-Identifier: MIT */
/* output_folder.c - a list of names, removed in reverse; output_folder.h */
#include "cli/output_folder.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

int seam_output_folder_begin(struct seam_output_folder *made, const char *path,
			     struct seam_err *err)
{
	*made = (struct seam_output_folder) { 0 };
	if (mkdir(path, 0700))
		return seam_err_errno(err, "cannot make folder '%s'", path);
	made->path = path;
	made->folder = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (made->folder < 0)
		return seam_err_errno(err, "cannot open '%s'", path);
	return 0;
}

/* A file, or an empty folder. */
static void remove_one(const struct seam_output_folder *made, const char *name)
{
	if (unlinkat(made->folder, name, 0) && errno == EISDIR)
		unlinkat(made->folder, name, AT_REMOVEDIR);
}

int seam_output_folder_note(struct seam_output_folder *made, const char *name,
			    struct seam_err *err)
{
	char *copy = strdup(name);

	if (copy && SEAM_ARRAY_ADD(&made->names, copy))
		return 0;
	free(copy);
	remove_one(made, name);
	return seam_err_no_memory(err);
}

int seam_output_folder_create(struct seam_output_folder *made,
			      const char *name, struct seam_err *err)
{
	int fd = openat(made->folder, name, O_WRONLY | O_CREAT | O_EXCL |
			O_CLOEXEC, 0600);
	int r = fd < 0 ? seam_err_errno(err, "cannot create '%s'", name) :
		seam_output_folder_note(made, name, err);

	if (!r)
		return fd;
	if (fd >= 0)
		close(fd);
	return r;
}

void seam_output_folder_undo(struct seam_output_folder *made)
{
	if (!made->path)
		return;
	for (size_t i = made->names.n; i-- > 0;)
		remove_one(made, made->names.items[i]);
	rmdir(made->path);
	seam_output_folder_fini(made);
}

void seam_output_folder_fini(struct seam_output_folder *made)
{
	if (made->path && made->folder >= 0)
		close(made->folder);
	for (size_t i = 0; i < made->names.n; i++)
		free(made->names.items[i]);
	free(made->names.items);
	*made = (struct seam_output_folder) { 0 };
}
