/* SPDX-License-Identifier: MIT */
/* copy_folder.c - folder by folder, file by file; see copy_folder.h */
#include "cli/copy_folder.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"

enum {
	MAX_DEPTH = 4,			/* a bundle has 1 */
	CHUNK_BYTES = 1 << 16,
	READ_FLAGS = O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC,
};

/* The destination, which may be inside the source. */
struct target {
	dev_t dev;
	ino_t ino;
	struct seam_output_folder *made;
	char below[PATH_MAX];		/* current folder: "", or "a/b/" */
};

static int fail(struct seam_err *err, const char *verb, const char *name)
{
	return seam_err_set(err, errno ? -errno : -EIO, "cannot %s '%s': %s",
			    verb, name, strerror(errno));
}

static int copy_bytes(int from, int to, const char *name,
		      struct seam_err *err)
{
	char *buf = malloc(CHUNK_BYTES);
	uint64_t pos = 0;
	ssize_t n = 1;
	int r = 0;

	if (!buf)
		return seam_err_no_memory(err);
	while (r == 0 && n > 0) {
		n = read(from, buf, CHUNK_BYTES);
		if (n > 0)
			r = seam_file_write_at(to, buf, (size_t)n, pos, name,
					       err);
		else if (n < 0 && errno == EINTR)
			n = 1;
		else if (n < 0)
			r = fail(err, "read", name);
		pos += n > 0 ? (uint64_t)n : 0;
	}
	free(buf);
	return r;
}

static int note(struct target *target, const char *name, struct seam_err *err)
{
	char path[2 * PATH_MAX];

	snprintf(path, sizeof(path), "%s%s", target->below, name);
	return seam_output_folder_note(target->made, path, err);
}

static int copy_file(int in, int folder, const char *name,
		     struct target *target, struct seam_err *err)
{
	int out = openat(folder, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC,
			 0600);
	int r;

	if (out < 0)
		return fail(err, "create", name);
	r = note(target, name, err);
	if (r == 0)
		r = copy_bytes(in, out, name, err);
	if (close(out) && r == 0)
		r = fail(err, "write", name);
	return r;
}

static int copy_all(int from, int to, const char *but, int depth,
		    struct target *target, struct seam_err *err);

/* Create folder @name in @to and copy @in into it.  Closes @in. */
static int copy_below(int in, int to, const char *name, int depth,
		      struct target *target, struct seam_err *err)
{
	size_t n = strlen(target->below);
	int out, r;

	if (mkdirat(to, name, 0700)) {
		r = fail(err, "make folder", name);
		close(in);
		return r;
	}
	r = note(target, name, err);
	out = r ? -1 : openat(to, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (out < 0) {
		r = r ? r : fail(err, "open", name);
		close(in);
		return r;
	}
	snprintf(target->below + n, sizeof(target->below) - n, "%s/", name);
	r = copy_all(in, out, NULL, depth + 1, target, err);
	target->below[n] = '\0';
	close(out);
	return r;
}

/* Anything but a regular file or a folder is skipped. */
static int copy_one(int from, int to, const char *name, int depth,
		    struct target *target, struct seam_err *err)
{
	int in = openat(from, name, READ_FLAGS);
	struct stat st = { 0 };
	int r = 0;

	if (in < 0)
		return errno == ELOOP || errno == ENXIO ? 0 :
		       fail(err, "open", name);
	if (fstat(in, &st))
		r = fail(err, "read", name);
	else if (S_ISREG(st.st_mode))
		r = copy_file(in, to, name, target, err);
	if (!S_ISDIR(st.st_mode) || depth >= MAX_DEPTH ||
	    (st.st_dev == target->dev && st.st_ino == target->ino)) {
		close(in);
		return r;
	}
	return copy_below(in, to, name, depth, target, err);
}

/* Closes @from. */
static int copy_all(int from, int to, const char *but, int depth,
		    struct target *target, struct seam_err *err)
{
	DIR *dir = fdopendir(from);
	struct dirent *entry;
	int r = 0;

	if (!dir) {
		close(from);
		return fail(err, "list", "folder");
	}
	while (r == 0 && (errno = 0, entry = readdir(dir)) != NULL) {
		const char *name = entry->d_name;

		if (strcmp(name, ".") == 0 || strcmp(name, "..") == 0 ||
		    (but && strcmp(name, but) == 0))
			continue;
		r = copy_one(from, to, name, depth, target, err);
	}
	if (r == 0 && errno)
		r = fail(err, "list", "folder");
	closedir(dir);
	return r;
}

int seam_copy_folder(const char *from, struct seam_output_folder *to,
		     const char *but, struct seam_err *err)
{
	int fd = open(from, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct target target = { .made = to };
	struct stat st;

	if (fd < 0)
		return fail(err, "open", from);
	if (fstat(to->folder, &st)) {
		close(fd);
		return fail(err, "read", "the new folder");
	}
	target.dev = st.st_dev;
	target.ino = st.st_ino;
	return copy_all(fd, to->folder, but, 0, &target, err);
}
