/* SPDX-License-Identifier: MIT */
/*
 * high_fd.h - descriptors of ours in a process of others
 *
 * A program may count on the lowest free number (open(2)): what it opens first
 * is 3, or 0 once it has closed that.  So what we keep open is above those
 * that programs use by habit; not far, as each fork copies a table up to the
 * highest.
 */
#pragma once

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { SEAM_HIGH_FD_TABLE = 256 };

/*
 * Returns a high number for @fd, which is closed; or @fd, where none is free
 * or RLIMIT_NOFILE leaves none.  It is closed on exec.  Safe in a handler;
 * errno may change.
 */
static inline int seam_high_fd(int fd)
{
	struct rlimit limit;
	int high, first = SEAM_HIGH_FD_TABLE;

	if (getrlimit(RLIMIT_NOFILE, &limit))
		return fd;
	if (limit.rlim_cur < SEAM_HIGH_FD_TABLE)
		first = (int)limit.rlim_cur;
	high = fcntl(fd, F_DUPFD_CLOEXEC, first / 4 * 3);
	if (high < 0)
		return fd;
	/* not close(): a thread could be cancelled in it */
	syscall(SYS_close, fd);
	return high;
}
