/* SPDX-License-Identifier: MIT */
/* folder_walk.c - readdir(3), level by level; see folder_walk.h */
#include "base/folder_walk.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum {
	OPEN_FOLDER = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC |
		      O_NONBLOCK,
};

struct folder_walk {
	seam_walk_visit *visit;
	void *context;
	unsigned int max_depth;
	int failed;		/* -errno; 0: nothing did */
	char path[PATH_MAX];	/* of the entry that is visited */
};

/* What was there a moment ago is no failure. */
static void note_failure(struct folder_walk *w, int error)
{
	if (!w->failed && error != ENOENT && error != ENOTDIR &&
	    error != ELOOP)
		w->failed = -error;
}

/* Closes @dir; -1: it could not be opened.  @size: of its path, in w->path. */
static int walk_folder(struct folder_walk *w, int dir, size_t size,
		       unsigned int depth);

static int visit_entry(struct folder_walk *w, int dir, const char *name,
		       size_t size, unsigned int depth)
{
	int n = snprintf(w->path + size, sizeof(w->path) - size, "%s%s",
			 size ? "/" : "", name);
	struct seam_walk_entry entry = {
		.folder = dir, .name = name, .path = w->path, .depth = depth,
	};
	int r;

	if (n < 0 || (size_t)n >= sizeof(w->path) - size)
		return 0;
	if (fstatat(dir, name, &entry.st, AT_SYMLINK_NOFOLLOW)) {
		note_failure(w, errno);
		return 0;
	}
	r = w->visit(w->context, &entry);
	if (r != SEAM_WALK_ON || !S_ISDIR(entry.st.st_mode) ||
	    depth >= w->max_depth)
		return r == SEAM_WALK_SKIP ? 0 : r;
	return walk_folder(w, openat(dir, name, OPEN_FOLDER),
			   size + (size_t)n, depth);
}

static int walk_folder(struct folder_walk *w, int dir, size_t size,
		       unsigned int depth)
{
	DIR *names = dir < 0 ? NULL : fdopendir(dir);
	const struct dirent *e;
	int r = 0;

	if (!names) {
		note_failure(w, errno);
		if (dir >= 0)
			close(dir);
		return 0;
	}
	while (r == 0 && (errno = 0, e = readdir(names)))
		if (strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0)
			r = visit_entry(w, dir, e->d_name, size, depth + 1);
	if (r == 0 && errno)
		note_failure(w, errno);
	closedir(names);
	return r;
}

int seam_walk(int dir, unsigned int max_depth, seam_walk_visit *visit,
	      void *context)
{
	struct folder_walk w = {
		.visit = visit, .context = context, .max_depth = max_depth,
	};
	int r = walk_folder(&w, openat(dir, ".", OPEN_FOLDER), 0, 0);

	return r ? r : w.failed;
}
