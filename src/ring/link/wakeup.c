/* SPDX-License-Identifier: MIT */
/* wakeup.c - a socket that may be gone; see wakeup.h */
#include "ring/link/wakeup.h"

#include <errno.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

void seam_ring_bell_init(struct seam_ring_bell *bell, int fd)
{
	struct stat st;

	*bell = (struct seam_ring_bell) { .fd = -1 };
	if (fd < 0 || fstat(fd, &st) || !S_ISSOCK(st.st_mode))
		return;
	*bell = (struct seam_ring_bell) {
		.fd = fd, .device = st.st_dev, .inode = st.st_ino,
		.mode = st.st_mode,
	};
}

bool seam_ring_bell_is_whole(const struct seam_ring_bell *bell)
{
	struct stat st;

	return bell->fd >= 0 && fstat(bell->fd, &st) == 0 &&
	       st.st_dev == bell->device && st.st_ino == bell->inode &&
	       st.st_mode == bell->mode;
}

bool seam_ring_bell_ring(const struct seam_ring_bell *bell)
{
	int saved = errno;
	bool heard;

	if (!bell || bell->fd < 0)
		return false;
	/* Not send(): a thread could be cancelled in it. */
	heard = seam_ring_bell_is_whole(bell) &&
		(syscall(SYS_sendto, bell->fd, "", 0,
			 MSG_DONTWAIT | MSG_NOSIGNAL, NULL, 0) == 0 ||
		 errno == EAGAIN);
	errno = saved;
	return heard;
}
