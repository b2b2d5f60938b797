/* SPDX-License-Identifier: MIT */
/* link.c - packets with descriptors, within a time; see link.h */
#include "ring/link/link.h"

#include "base/clock.h"

#include <errno.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

/* Wait for @events until @deadline_ns.  0, -ETIMEDOUT or another. */
static int await(int socket, short events, uint64_t deadline_ns)
{
	struct pollfd p = { .fd = socket, .events = events };

	for (;;) {
		uint64_t now = seam_clock_ns();
		uint64_t left = deadline_ns > now ? deadline_ns - now : 0;
		int r = poll(&p, 1, (int)((left + 999999) / 1000000));

		if (r > 0)
			return 0;
		if (r < 0 && errno != EINTR)
			return -errno;
		if (left == 0)
			return -ETIMEDOUT;
	}
}

static uint64_t deadline(int timeout_ms)
{
	return seam_clock_ns() + (uint64_t)timeout_ms * 1000000;
}

/* Room for the descriptors of a message.  Source: cmsg(3) */
union ancillary {
	struct cmsghdr align;
	uint8_t bytes[CMSG_SPACE(SEAM_LINK_MAX_FDS * sizeof(int))];
};

static void put_fds(struct msghdr *msg, union ancillary *room, const int *fds,
		    size_t n)
{
	struct cmsghdr *c = &room->align;

	memset(room, 0, sizeof(*room));
	msg->msg_control = room->bytes;
	msg->msg_controllen = CMSG_SPACE(n * sizeof(int));
	c->cmsg_level = SOL_SOCKET;
	c->cmsg_type = SCM_RIGHTS;
	c->cmsg_len = CMSG_LEN(n * sizeof(int));
	memcpy(CMSG_DATA(c), fds, n * sizeof(int));
}

/* Bytes of a message of @kind; 0: not known. */
static size_t size_of(uint16_t kind)
{
	switch (kind) {
	case SEAM_LINK_HELLO: return sizeof(struct seam_link_hello);
	case SEAM_LINK_WELCOME: return sizeof(struct seam_link_welcome);
	case SEAM_LINK_REFUSED: return sizeof(struct seam_link_refused);
	case SEAM_LINK_NOTE: return sizeof(struct seam_link_note);
	}
	return 0;
}

int seam_link_send(int socket, enum seam_link_kind kind, void *message,
		   const int *fds, size_t n_fds, int timeout_ms)
{
	const struct seam_link_head head = {
		.magic = SEAM_LINK_MAGIC, .version = SEAM_LINK_VERSION,
		.kind = (uint16_t)kind,
	};
	union ancillary room;
	struct iovec io = { message, size_of(head.kind) };
	struct msghdr msg = { .msg_iov = &io, .msg_iovlen = 1 };
	uint64_t until = deadline(timeout_ms);
	int r;

	if (n_fds > SEAM_LINK_MAX_FDS)
		return -EMSGSIZE;
	memcpy(message, &head, sizeof(head));
	if (n_fds)
		put_fds(&msg, &room, fds, n_fds);
	for (;;) {
		if (sendmsg(socket, &msg, MSG_NOSIGNAL | MSG_DONTWAIT) >= 0)
			return 0;
		if (errno != EAGAIN && errno != EINTR)
			return -errno;
		r = await(socket, POLLOUT, until);
		if (r < 0)
			return r;
	}
}

void seam_link_drop_fds(struct seam_link_message *m)
{
	for (size_t i = 0; i < m->n_fds; i++)
		close(m->fds[i]);
	m->n_fds = 0;
}

/* Take all descriptors that came, so that they can be closed. */
static void take_fds(struct seam_link_message *m, struct msghdr *msg)
{
	for (struct cmsghdr *c = CMSG_FIRSTHDR(msg); c;
	     c = CMSG_NXTHDR(msg, c)) {
		size_t n = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);

		if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
			continue;
		if (n > SEAM_LINK_MAX_FDS - m->n_fds)
			n = SEAM_LINK_MAX_FDS - m->n_fds;
		memcpy(m->fds + m->n_fds, CMSG_DATA(c), n * sizeof(int));
		m->n_fds += n;
	}
}

/* Whether the @n bytes of @m are a message.  Its texts end with a NUL then. */
static bool is_message(struct seam_link_message *m, size_t n)
{
	if (n < sizeof(m->head) || m->head.magic != SEAM_LINK_MAGIC)
		return false;
	if (m->head.version != SEAM_LINK_VERSION)
		return true;
	if (m->head.kind == SEAM_LINK_HELLO)
		m->hello.services[sizeof(m->hello.services) - 1] = '\0';
	else if (m->head.kind == SEAM_LINK_REFUSED)
		m->refused.reason[sizeof(m->refused.reason) - 1] = '\0';
	else if (m->head.kind == SEAM_LINK_NOTE)
		m->note.text[sizeof(m->note.text) - 1] = '\0';
	return n >= size_of(m->head.kind);
}

int seam_link_receive(int socket, struct seam_link_message *m, int timeout_ms)
{
	union ancillary room;
	struct iovec io = { m->bytes, sizeof(m->bytes) };
	struct msghdr msg = {
		.msg_iov = &io, .msg_iovlen = 1,
		.msg_control = room.bytes, .msg_controllen = sizeof(room),
	};
	ssize_t n;
	int r;

	m->n_fds = 0;
	r = timeout_ms ? await(socket, POLLIN, deadline(timeout_ms)) : 0;
	if (r < 0)
		return r;
	n = recvmsg(socket, &msg, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
	if (n < 0)
		return -errno;
	take_fds(m, &msg);
	/* we have room for all: the kernel had, with RLIMIT_NOFILE, for less */
	if (msg.msg_flags & MSG_CTRUNC)
		r = m->n_fds < SEAM_LINK_MAX_FDS ? -EMFILE : -EBADMSG;
	else
		r = n == 0 ? 0 : msg.msg_flags & MSG_TRUNC ||
		    !is_message(m, (size_t)n) ? -EBADMSG : 1;
	if (r <= 0)
		seam_link_drop_fds(m);
	return r;
}

int seam_link_peer(int socket, pid_t *pid, uid_t *uid)
{
	struct ucred peer;
	socklen_t size = sizeof(peer);

	if (getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &peer, &size))
		return -errno;
	*pid = peer.pid;
	*uid = peer.uid;
	return 0;
}

int seam_link_sockaddr(const char *address, struct sockaddr_un *out)
{
	size_t n = strlen(address);

	/* A path needs its NUL, which takes the place of the '@' otherwise. */
	if (n == 0 || n >= sizeof(out->sun_path))
		return -ENAMETOOLONG;
	memset(out, 0, sizeof(*out));
	out->sun_family = AF_UNIX;
	memcpy(out->sun_path, address, n);
	if (address[0] == '@')
		out->sun_path[0] = '\0';
	else
		n++;
	return (int)(offsetof(struct sockaddr_un, sun_path) + n);
}

int seam_link_connect(const char *address)
{
	struct sockaddr_un to;
	int size = seam_link_sockaddr(address, &to);
	int fd, r;

	if (size < 0)
		return size;
	fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK,
		    0);
	if (fd < 0)
		return -errno;
	if (connect(fd, (struct sockaddr *)&to, (socklen_t)size) == 0)
		return fd;
	r = -errno;
	close(fd);
	return r;
}
