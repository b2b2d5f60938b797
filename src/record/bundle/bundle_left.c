/* SPDX-License-Identifier: MIT */
/* bundle_left.c - folders of killed recorders, sizes; see bundle.h */
#include "record/bundle/bundle.h"

#include "base/file.h"
#include "base/folder_walk.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
	OPEN_FOLDER = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC |
		      O_NONBLOCK,
	/* Entries of the parent folder that are read: 2 ms. */
	MAX_NAMES = 8192,
	MAX_DEPTH = 8,			/* a bundle's files are at 2 */
};

void seam_bundle_claim(int dir)
{
	/* without a lock, the PID in its name protects it */
	if (flock(dir, LOCK_EX | LOCK_NB) < 0)
		return;
}

/* The PID in ".seam-PID-N"; 0: it is not such a name. */
static pid_t maker_of(const char *name)
{
	static const char prefix[] = ".seam-";
	size_t digits, n;
	long pid;

	if (strncmp(name, prefix, sizeof(prefix) - 1) != 0)
		return 0;
	name += sizeof(prefix) - 1;
	digits = strspn(name, "0123456789");
	if (digits == 0 || digits > 9 || name[digits] != '-')
		return 0;
	pid = strtol(name, NULL, 10);
	n = strspn(name + digits + 1, "0123456789");
	return n > 0 && n < 3 && !name[digits + 1 + n] ? (pid_t)pid : 0;
}

/* Whether it is a perf.data file, or empty. */
static bool is_begun_data(int dir, const char *name)
{
	char magic[8];
	struct stat st;
	int fd = openat(dir, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC |
			O_NONBLOCK);
	ssize_t n;

	if (fd < 0)
		return false;
	n = fstat(fd, &st) == 0 && S_ISREG(st.st_mode) ?
	    read(fd, magic, sizeof(magic)) : -1;
	close(fd);
	return n == 0 ||
	       (n == sizeof(magic) && memcmp(magic, "PERFILE2", 8) == 0);
}

/* Whether it has only files that are written before the manifest. */
static bool is_begun(int dir)
{
	int copy = openat(dir, ".", OPEN_FOLDER);
	DIR *names = copy < 0 ? NULL : fdopendir(copy);
	const struct dirent *e;
	bool is = names != NULL;

	while (is && (e = readdir(names))) {
		if (strcmp(e->d_name, ".") == 0 ||
		    strcmp(e->d_name, "..") == 0)
			continue;
		is = strcmp(e->d_name, "meta.json.part") == 0 ||
		     ((strcmp(e->d_name, "data") == 0 ||
		       strcmp(e->d_name, "data.part") == 0) &&
		      is_begun_data(dir, e->d_name));
	}
	if (names)
		closedir(names);
	else
		seam_file_close_fd(copy);
	return is;
}

static bool is_ours(int dir)
{
	struct stat st;

	return fstat(dir, &st) == 0 && st.st_uid == geteuid() &&
	       (st.st_mode & 07777) == 0700;
}

static void clear_one(int folder, const char *name)
{
	int dir = openat(folder, name, OPEN_FOLDER);

	if (dir < 0)
		return;
	if (is_ours(dir) && flock(dir, LOCK_EX | LOCK_NB) == 0 &&
	    (is_begun(dir) || seam_bundle_check(dir, name, NULL) == 0)) {
		seam_bundle_empty(dir);
		unlinkat(folder, name, AT_REMOVEDIR);
	}
	close(dir);
}

static bool is_gone(pid_t pid)
{
	return pid > 0 && kill(pid, 0) < 0 && errno == ESRCH;
}

void seam_bundle_clear_left(const char *path)
{
	const char *slash = strrchr(path, '/');
	char *folder = slash ? strndup(path, (size_t)(slash + 1 - path)) :
		       strdup(".");
	DIR *names = folder ? opendir(folder) : NULL;
	const struct dirent *e;

	for (int i = 0; names && i < MAX_NAMES && (e = readdir(names)); i++)
		if (is_gone(maker_of(e->d_name)))
			clear_one(dirfd(names), e->d_name);
	if (names)
		closedir(names);
	free(folder);
}

/* ---- sizes ---- */

static int add_size(void *context, const struct seam_walk_entry *entry)
{
	uint64_t *sum = context;

	if (S_ISREG(entry->st.st_mode))
		*sum += (uint64_t)entry->st.st_size;
	return SEAM_WALK_ON;
}

uint64_t seam_bundle_bytes(const struct seam_bundle *bundle)
{
	uint64_t sum = 0;

	seam_walk(bundle->dir, MAX_DEPTH, add_size, &sum);
	return sum;
}
