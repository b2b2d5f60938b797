/* SPDX-License-Identifier: MIT */
/*
 * hanging_file.c - a file system whose server does not answer
 *
 * Loaded with LD_PRELOAD: opening a file whose path has $HANG in it takes for
 * ever, or $HANG_MS, once the file $HANG_SINCE is there.  So behaves a mount of
 * FUSE or NFS; O_NONBLOCK does not help there.
 */
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

int open64(const char *path, int flags, ...);

static int hangs(const char *path)
{
	const char *name = getenv("HANG"), *since = getenv("HANG_SINCE");
	char real[PATH_MAX];
	ssize_t n = strncmp(path, "/proc/self/fd/", 14) ? -1 :
		    readlink(path, real, sizeof(real) - 1);

	if (n < 0 || !name || !since || access(since, F_OK))
		return 0;
	real[n] = '\0';
	return strstr(real, name) != NULL;
}

__attribute__((visibility("default")))
int open64(const char *path, int flags, ...)
{
	int mode = 0;

	if (flags & O_CREAT) {
		__builtin_va_list args;

		__builtin_va_start(args, flags);
		mode = __builtin_va_arg(args, int);
		__builtin_va_end(args);
	}
	while (hangs(path) && !getenv("HANG_MS"))
		pause();
	if (hangs(path))
		usleep((useconds_t)atoi(getenv("HANG_MS")) * 1000);
	return (int)syscall(SYS_openat, AT_FDCWD, path, flags, mode);
}
