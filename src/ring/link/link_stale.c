/* SPDX-License-Identifier: MIT */
/*
 * link_stale.c - sockets of recorders that were killed; see link_server.h
 *
 * Nobody else removes them, and in /tmp they would stay until the next boot.
 */
#include "ring/link/link_server.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

enum {
	MAX_LOOKED_AT = 1000,	/* in one go; the next recorder goes on */
	RANDOM_DIGITS = 16,
};

/* The recorder whose socket @name is, "PID-RANDOM"; 0: it is none. */
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
 * Whether nobody listens at @address.  A recorder that has not begun to
 * listen refuses too, but is alive; one that is alive in another pid namespace
 * listens.
 */
static bool is_refused(const char *address)
{
	struct sockaddr_un at;
	int size = seam_link_sockaddr(address, &at);
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC |
			SOCK_NONBLOCK, 0);
	bool refused = false;

	if (fd < 0)
		return false;
	if (size > 0)
		refused = connect(fd, (struct sockaddr *)&at,
				  (socklen_t)size) < 0 &&
			  errno == ECONNREFUSED;
	close(fd);
	return refused;
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
	for (int i = 0; names && i < MAX_LOOKED_AT && (e = readdir(names));
	     i++)
		remove_if_stale(dirfd(names), folder, e->d_name);
	if (names)
		closedir(names);
}
