/* SPDX-License-Identifier: MIT */
/* own_folder.c - see own_folder.h */
#include "traced/fdr/own/own_folder.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"

enum { OPEN_FOLDER = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC };

static bool is_numbered(const char *name, const char *suffix)
{
	size_t n = strlen(name), end = strlen(suffix);

	return name[0] >= '0' && name[0] <= '9' && n > end &&
	       strcmp(name + n - end, suffix) == 0;
}

static bool is_log_file(const char *name)
{
	static const char *const suffixes[] = {
		".xray", ".xray.part", ".yaml", ".events",
	};

	for (size_t i = 0; i < sizeof(suffixes) / sizeof(suffixes[0]); i++)
		if (is_numbered(name, suffixes[i]))
			return true;
	return false;
}

static bool is_top(const char *name)
{
	return strcmp(name, "meta.json") == 0 ||
	       strcmp(name, "meta.json.part") == 0 ||
	       strcmp(name, "xray") == 0;
}

/*
 * Call @one for each name in @dir, until one is not 0.  Uses no heap; names
 * may be removed meanwhile.
 */
static int each_name(int dir, int (*one)(int dir, const char *name))
{
	_Alignas(struct dirent64) char names[4096];
	ssize_t n = 1;
	int r = 0;

	if (lseek(dir, 0, SEEK_SET) < 0)
		return -errno;
	while (r == 0 && (n = getdents64(dir, names, sizeof(names))) > 0)
		for (ssize_t at = 0; r == 0 && at < n; ) {
			struct dirent64 *e = (void *)(names + at);

			if (strcmp(e->d_name, ".") && strcmp(e->d_name, ".."))
				r = one(dir, e->d_name);
			at += e->d_reclen;
		}
	return n < 0 ? -errno : r;
}

static int check_top(int dir, const char *name)
{
	(void)dir;
	return is_top(name) ? 0 : -EEXIST;
}

static int check_log(int dir, const char *name)
{
	(void)dir;
	return is_log_file(name) ? 0 : -EEXIST;
}

static int remove_name(int dir, const char *name)
{
	return unlinkat(dir, name, 0) ? -errno : 0;
}

/* A manifest that begins as Seam's. */
static bool has_manifest(int dir)
{
	static const char begin[] = "{\n  \"schema\": \"seam.bundle/";
	char text[sizeof(begin) - 1];
	int fd = openat(dir, "meta.json", O_RDONLY | O_NOFOLLOW | O_NONBLOCK |
			O_CLOEXEC);
	bool is = fd >= 0 && read(fd, text, sizeof(text)) == sizeof(text) &&
		  memcmp(text, begin, sizeof(text)) == 0;

	if (fd >= 0)
		close(fd);
	return is;
}

static int none(int dir, const char *name)
{
	(void)dir;
	(void)name;
	return -EEXIST;
}

/* Field @n of /proc/PID/stat, from the 3rd on; "" where it is missing. */
static const char *field_at(const char *text, int n)
{
	/* The 2nd, the name in parentheses, may hold any character. */
	const char *p = strrchr(text, ')');

	for (int field = 2; p && field < n; field++)
		p = strchr(p + 1, ' ');
	return p ? p + 1 : "";
}

/*
 * When process @pid began, in ticks since boot; 0: it has ended, or is a zombie
 * without other threads.  Source: proc(5), fields 3, 20 and 22.
 */
static uint64_t start_ticks(uint32_t pid)
{
	char path[32], text[1024];
	ssize_t n = -1;
	int fd;

	snprintf(path, sizeof(path), "/proc/%u/stat", pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd >= 0) {
		n = read(fd, text, sizeof(text) - 1);
		close(fd);
	}
	text[n > 0 ? n : 0] = '\0';
	if (*field_at(text, 3) == 'Z' && strtoul(field_at(text, 20), NULL, 10)
					 <= 1)
		return 0;
	return strtoull(field_at(text, 22), NULL, 10);
}

/* When the process of @pid began, by the clock of files; 0: it has ended. */
static uint64_t process_began_ns(uint32_t pid)
{
	uint64_t tick_ns = 1000000000 / (uint64_t)sysconf(_SC_CLK_TCK);
	uint64_t ticks = start_ticks(pid);

	if (!ticks)
		return 0;
	return seam_clock_now(CLOCK_REALTIME) - seam_clock_now(CLOCK_BOOTTIME) +
	       ticks * tick_ns;
}

/* 1: a log whose process still runs, and is not a later one of its pid. */
static int has_writer(int dir, const char *name)
{
	/* of the ticks in which both times are measured */
	const uint64_t error_ns = 20 * 1000 * 1000;
	struct stat st;
	uint64_t began;

	if (!is_numbered(name, ".xray") ||
	    fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW))
		return 0;
	began = process_began_ns((uint32_t)strtoul(name, NULL, 10));
	return began && began <= seam_clock_of(st.st_mtim) + error_ns;
}

/* Remove the logs of a bundle; any other folder has to be empty. */
static int empty(int dir, bool may_join)
{
	int logs, r = has_manifest(dir) ? each_name(dir, check_top) :
					  each_name(dir, none);

	if (r)
		return r;
	logs = openat(dir, "xray", OPEN_FOLDER);
	if (logs < 0)
		return errno == ENOENT ? 0 : -EEXIST;
	r = each_name(logs, check_log);
	if (!r && may_join)
		r = each_name(logs, has_writer);
	if (!r)
		r = each_name(logs, remove_name);
	close(logs);
	return r;
}

/*
 * Programs that begin at the same time make the folder one after another.
 * Where the lock cannot be had in WAIT_MS, each goes on: a file system may have
 * none, and a stopped process may hold it.
 */
static void lock(int dir)
{
	enum { WAIT_MS = 1000 };
	const struct timespec ms = { .tv_nsec = 1000000 };

	for (int i = 0; i < WAIT_MS; i++) {
		if (flock(dir, LOCK_EX | LOCK_NB) == 0 || errno != EWOULDBLOCK)
			return;
		nanosleep(&ms, NULL);
	}
}

int seam_fdr_folder_open(const char *path)
{
	int dir;

	if (mkdir(path, 0700) && errno != EEXIST)
		return -errno;
	dir = open(path, OPEN_FOLDER);
	if (dir < 0)
		return errno == ENOTDIR || errno == ELOOP ? -EEXIST : -errno;
	lock(dir);
	return dir;
}

int seam_fdr_folder_make(int dir, bool may_join)
{
	int r = empty(dir, may_join);

	if (!r && mkdirat(dir, "xray", 0700) && errno != EEXIST)
		r = -errno;
	return r;
}

void seam_fdr_folder_close(int dir)
{
	if (dir < 0)
		return;
	/* a child that was forked meanwhile has the lock too */
	flock(dir, LOCK_UN);
	close(dir);
}
