/* SPDX-License-Identifier: MIT */
/* wakeup.c - a datagram, if the socket is still ours; see wakeup.h */
#include "ring/producer/wakeup.h"

#include <errno.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

void seam_ring_wakeup_init(struct seam_ring_wakeup *w, int fd)
{
	struct stat st;

	*w = (struct seam_ring_wakeup) { .fd = -1 };
	if (fd < 0 || fstat(fd, &st) || !S_ISSOCK(st.st_mode))
		return;
	*w = (struct seam_ring_wakeup) {
		.fd = fd, .device = st.st_dev, .inode = st.st_ino,
		.mode = st.st_mode,
	};
}

bool seam_ring_wakeup_is_intact(const struct seam_ring_wakeup *w)
{
	struct stat st;

	return w->fd >= 0 && fstat(w->fd, &st) == 0 && st.st_dev == w->device &&
	       st.st_ino == w->inode && st.st_mode == w->mode;
}

bool seam_ring_wakeup_send(const struct seam_ring_wakeup *w)
{
	int saved = errno;
	bool sent;

	if (!w || w->fd < 0)
		return false;
	/* Not send(): a thread could be cancelled in it. */
	sent = seam_ring_wakeup_is_intact(w) &&
	       (syscall(SYS_sendto, w->fd, "", 0, MSG_DONTWAIT | MSG_NOSIGNAL,
			NULL, 0) == 0 ||
		errno == EAGAIN);
	errno = saved;
	return sent;
}
