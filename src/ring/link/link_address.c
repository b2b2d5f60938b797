/* SPDX-License-Identifier: MIT */
/*
 * link_address.c - the recorder's socket in the file system; link_server.h
 *
 * A killed recorder leaves its socket, which in /tmp would stay until the next
 * boot: the next recorder removes it.
 */
#include "ring/link/link_server.h"

#include "base/clock.h"
#include "base/file.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
	MAX_NAMES = 1000,	/* read at once; the next recorder continues */
	RANDOM_DIGITS = 16,
};

/* Our folder below @parent, made now or before, with no access for others. */
static bool make_folder(char *path, size_t room, const char *parent)
{
	struct stat st;
	int n = snprintf(path, room, "%s/seam-%u", parent, (unsigned)geteuid());

	if (n < 0 || (size_t)n >= room)
		return false;
	if (mkdir(path, 0700) && errno != EEXIST)
		return false;
	return lstat(path, &st) == 0 && S_ISDIR(st.st_mode) &&
	       st.st_uid == geteuid() && (st.st_mode & 077) == 0;
}

void seam_link_choose_address(char *address, size_t room)
{
	const char *run = getenv("XDG_RUNTIME_DIR");
	char folder[SEAM_LINK_ADDRESS_BYTES];
	uint64_t random = 0;
	int n = -1;

	if (getrandom(&random, sizeof(random), 0) != sizeof(random))
		random = seam_clock_ns();
	if ((run && run[0] == '/' &&
	     make_folder(folder, sizeof(folder), run)) ||
	    make_folder(folder, sizeof(folder), "/tmp"))
		n = snprintf(address, room, "%s/%d-%016jx", folder, getpid(),
			     (uintmax_t)random);
	if (n < 0 || (size_t)n >= room)
		snprintf(address, room, "@seam-%d-%016jx", getpid(),
			 (uintmax_t)random);
}

/* The pid of the recorder that made socket @name, "PID-RANDOM"; or 0. */
static pid_t recorder_of(const char *name)
{
	size_t digits = strspn(name, "0123456789");

	if (digits == 0 || digits > 9 || name[digits] != '-' ||
	    strspn(name + digits + 1, "0123456789abcdef") != RANDOM_DIGITS ||
	    name[digits + 1 + RANDOM_DIGITS])
		return 0;
	return atoi(name);
}

/*
 * Whether no process listens at @address.  A recorder that does not listen yet
 * refuses too, but its pid is alive; one of another pid namespace listens.
 */
static bool is_refused(const char *address)
{
	int fd = seam_link_connect(address);

	seam_file_close_fd(fd);
	return fd == -ECONNREFUSED;
}

static void remove_if_stale(int dir, const char *folder, const char *name)
{
	char address[SEAM_LINK_ADDRESS_BYTES];
	pid_t pid = recorder_of(name);
	int n;

	if (!pid || kill(pid, 0) == 0 || errno != ESRCH)
		return;
	n = snprintf(address, sizeof(address), "%s/%s", folder, name);
	if (n > 0 && (size_t)n < sizeof(address) && is_refused(address))
		unlinkat(dir, name, 0);
}

void seam_link_remove_stale(const char *address)
{
	char folder[SEAM_LINK_ADDRESS_BYTES];
	const char *slash = strrchr(address, '/');
	struct dirent *e;
	DIR *names;

	if (address[0] != '/' || !slash)
		return;
	snprintf(folder, sizeof(folder), "%.*s", (int)(slash - address),
		 address);
	names = opendir(folder);
	for (int i = 0; names && i < MAX_NAMES && (e = readdir(names)); i++)
		remove_if_stale(dirfd(names), folder, e->d_name);
	if (names)
		closedir(names);
}
