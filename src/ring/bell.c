/* SPDX-License-Identifier: MIT */
/* bell.c - an eventfd that may be gone; see bell.h */
#include "ring/bell.h"

#include <errno.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

void seam_ring_bell_init(struct seam_ring_bell *bell, int fd)
{
	struct stat st;

	*bell = (struct seam_ring_bell) { .fd = -1 };
	if (fd < 0 || fstat(fd, &st))
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
	const uint64_t one = 1;
	int saved = errno;
	bool heard;

	if (!bell || bell->fd < 0)
		return false;
	/* Not write(): a thread could be cancelled in it. */
	heard = seam_ring_bell_is_whole(bell) &&
		syscall(SYS_write, bell->fd, &one, sizeof(one)) ==
			sizeof(one);
	errno = saved;
	return heard;
}
