/* SPDX-License-Identifier: MIT */
/* output_folder.c - names to remove, a walk to copy; see output_folder.h */
#include "cli/output_folder.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/folder_walk.h"

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

/* Note that @name was created.  0, or -ENOMEM after removing it. */
static int note(struct seam_output_folder *made, const char *name,
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
		note(made, name, err);

	if (!r)
		return fd;
	if (fd >= 0)
		close(fd);
	return r;
}

enum { MAX_DEPTH = 5 };			/* a bundle's files are at 2 */

struct copy {
	const char *but;
	struct stat made;		/* the folder that is copied to */
	struct seam_output_folder *to;
	struct seam_err *err;
};

/* A file that is replaced by something else meanwhile is skipped. */
static int copy_file(const struct copy *c, const struct seam_walk_entry *entry)
{
	int out, in = openat(entry->folder, entry->name, O_RDONLY | O_NOFOLLOW |
			     O_NONBLOCK | O_CLOEXEC);
	const char *name = entry->path;
	struct stat st;
	int r;

	if (in < 0)
		return errno == ELOOP || errno == ENXIO ? 0 :
		       seam_err_errno(c->err, "cannot open '%s'", name);
	if (fstat(in, &st) || !S_ISREG(st.st_mode)) {
		close(in);
		return 0;
	}
	out = seam_output_folder_create(c->to, name, c->err);
	r = out < 0 ? out : seam_file_copy(in, out, UINT64_MAX, name, c->err);
	if (out >= 0 && close(out) && r == 0)
		r = seam_err_errno(c->err, "cannot write '%s'", name);
	close(in);
	return r;
}

static int make_folder(const struct copy *c, const char *name)
{
	if (mkdirat(c->to->folder, name, 0700))
		return seam_err_errno(c->err, "cannot make folder '%s'", name);
	return note(c->to, name, c->err);
}

/* Anything but regular files and folders is skipped. */
static int copy_entry(void *context, const struct seam_walk_entry *entry)
{
	const struct copy *c = context;

	if (S_ISREG(entry->st.st_mode))
		return strcmp(entry->path, c->but) == 0 ? 0 :
		       copy_file(c, entry);
	if (!S_ISDIR(entry->st.st_mode))
		return SEAM_WALK_ON;
	if (entry->depth >= MAX_DEPTH || (entry->st.st_dev == c->made.st_dev &&
					  entry->st.st_ino == c->made.st_ino))
		return SEAM_WALK_SKIP;
	return make_folder(c, entry->path);
}

int seam_output_folder_copy(struct seam_output_folder *to, const char *from,
			    const char *but, struct seam_err *err)
{
	struct copy copy = { .but = but, .to = to, .err = err };
	int r, dir = open(from, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (dir < 0 || fstat(to->folder, &copy.made))
		r = seam_err_errno(err, "cannot open '%s'", from);
	else
		r = seam_walk(dir, MAX_DEPTH, copy_entry, &copy);
	if (r < 0 && err && !err->n_causes)
		seam_err_set(err, r, "cannot read '%s': %s", from,
			     strerror(-r));
	seam_file_close_fd(dir);
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

static int remove_entry(const char *path, const struct stat *st, int type,
			struct FTW *at)
{
	(void)st;
	(void)type;
	(void)at;
	remove(path);
	return 0;
}

void seam_output_folder_remove(const char *path)
{
	enum { FDS = 8 };

	nftw(path, remove_entry, FDS, FTW_DEPTH | FTW_PHYS);
}
