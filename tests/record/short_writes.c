/* SPDX-License-Identifier: MIT */
/*
 * short_writes.c - a file system that takes few bytes at a time
 *
 * Loaded with LD_PRELOAD: no call writes more than SHORT_WRITES bytes, which
 * POSIX allows each of them, and which disks do when they are nearly full.
 * strace cannot play that: what it makes a call return was not written.
 */
#include <stdint.h>
#include <stdlib.h>
#include <sys/sendfile.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

static size_t shorten(size_t bytes)
{
	const char *text = getenv("SHORT_WRITES");
	size_t most = text ? strtoull(text, NULL, 10) : SIZE_MAX;

	return bytes < most ? bytes : most;
}

__attribute__((visibility("default")))
ssize_t pwritev64(int fd, const struct iovec *pieces, int n, off_t offset)
{
	struct iovec some[16];
	size_t left = shorten(SIZE_MAX);
	int i = 0;

	for (; i < n && i < 16 && left; i++) {
		some[i] = pieces[i];
		if (some[i].iov_len > left)
			some[i].iov_len = left;
		left -= some[i].iov_len;
	}
	return syscall(SYS_pwritev, fd, some, i, offset, 0);
}

__attribute__((visibility("default")))
ssize_t pwrite64(int fd, const void *bytes, size_t size, off_t offset)
{
	return syscall(SYS_pwrite64, fd, bytes, shorten(size), offset);
}

__attribute__((visibility("default")))
ssize_t write(int fd, const void *bytes, size_t size)
{
	return syscall(SYS_write, fd, bytes, shorten(size));
}

__attribute__((visibility("default")))
ssize_t sendfile64(int to, int from, off_t *offset, size_t size)
{
	return syscall(SYS_sendfile, to, from, offset, shorten(size));
}

__attribute__((visibility("default")))
ssize_t copy_file_range(int from, off_t *from_at, int to, off_t *to_at,
			size_t size, unsigned int flags)
{
	return syscall(SYS_copy_file_range, from, from_at, to, to_at,
		       shorten(size), flags);
}
