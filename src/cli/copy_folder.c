/* SPDX-License-Identifier: MIT */
/* copy_folder.c - a walk that follows no link; see copy_folder.h */
#include "cli/copy_folder.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/folder_walk.h"

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
	return seam_output_folder_note(c->to, name, c->err);
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

int seam_copy_folder(const char *from, struct seam_output_folder *to,
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
