/* SPDX-License-Identifier: MIT */
/* link.c - packets with descriptors, within a time; see link.h */
#include "ring/link/link.h"

#include "base/clock.h"
#include "base/high_fd.h"

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

/* ---- the program's end ---- */

#define NOT_CONNECTED .wakeup_fd = -1, .wakeup.fd = -1

/*
 * A non-blocking socket that is connected to @address, or -errno.  A unix
 * socket connects at once or not at all.
 */
static int connect_to(const char *address)
{
	struct sockaddr_un to;
	int size = seam_link_sockaddr(address, &to);
	int fd, r;

	if (size < 0)
		return size;
	fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return -errno;
	if (connect(fd, (struct sockaddr *)&to, (socklen_t)size) == 0)
		return fd;
	r = -errno;
	close(fd);
	return r;
}

static int check_peer(int socket)
{
	pid_t pid;
	uid_t uid = (uid_t)-1;
	int r = seam_link_peer(socket, &pid, &uid);

	if (r < 0)
		return r;
	/* Only root and our own user may record us. */
	return uid != 0 && uid != geteuid() ? -EPERM : 0;
}

/* Map the memory; returns how many more WELCOMEs follow, or -errno. */
static int accept_welcome(struct seam_link_client *c,
			  struct seam_link_message *m)
{
	const struct seam_link_welcome *w = &m->welcome;
	int r;

	if (m->n_fds != 2 || w->n_more >= SEAM_LINK_MAX_SERVICES ||
	    w->service >= SEAM_LINK_MAX_SERVICES ||
	    c->memories[w->service].head)
		return -EBADMSG;
	/* The recorder could not verify thread ids of another namespace. */
	if (w->pid != (uint32_t)getpid())
		return -EXDEV;
	r = seam_ring_memory_adopt(&c->memories[w->service], m->fds[0],
				   &w->geometry);
	if (r < 0)
		return r;
	c->parameters[w->service] = w->parameter;
	/* The same one in each WELCOME. */
	if (c->wakeup_fd < 0) {
		c->wakeup_fd = seam_high_fd(m->fds[1]);
		m->n_fds = 1;
		seam_ring_wakeup_init(&c->wakeup, c->wakeup_fd);
	}
	return (int)w->n_more;
}

/* Returns how many more WELCOMEs follow, or -errno. */
static int receive_welcome(struct seam_link_client *c, int socket,
			   int timeout_ms)
{
	struct seam_link_message m;
	int r = seam_link_receive(socket, &m, timeout_ms);

	if (r <= 0)
		return r ? r : -ECONNRESET;
	r = -EBADMSG;
	if (m.head.kind == SEAM_LINK_REFUSED)
		r = strcmp(m.refused.reason, SEAM_LINK_NO_SERVICE) ?
		    -ECONNREFUSED : -ENOPROTOOPT;
	else if (m.head.kind == SEAM_LINK_WELCOME &&
		 m.head.version == SEAM_LINK_VERSION)
		r = accept_welcome(c, &m);
	seam_link_drop_fds(&m);
	return r;
}

void seam_link_client_fini(struct seam_link_client *c)
{
	/* The program may have closed it and reused the number. */
	if (seam_ring_wakeup_is_intact(&c->wakeup))
		close(c->wakeup_fd);
	for (int i = 0; i < SEAM_LINK_MAX_SERVICES; i++)
		seam_ring_memory_fini(&c->memories[i]);
	*c = (struct seam_link_client) { NOT_CONNECTED };
}

static int receive_welcomes(struct seam_link_client *c, int socket,
			    int timeout_ms)
{
	uint64_t end = seam_clock_ns() + (uint64_t)timeout_ms * SEAM_NS_PER_MS;
	int r = 1;

	for (int i = 0; r > 0 && i < SEAM_LINK_MAX_SERVICES; i++) {
		uint64_t now = seam_clock_ns(),
			 left = end > now ? end - now : 0;

		r = receive_welcome(c, socket, (int)(left / SEAM_NS_PER_MS));
	}
	return r > 0 ? -EBADMSG : r;
}

int seam_link_client_note(const char *address, const char *text)
{
	struct seam_link_note note = { 0 };
	int socket = connect_to(address), r;

	if (socket < 0)
		return socket;
	memcpy(note.text, text, strnlen(text, sizeof(note.text) - 1));
	r = check_peer(socket);
	if (r == 0)
		r = seam_link_send(socket, SEAM_LINK_NOTE, &note, NULL, 0, 0);
	close(socket);
	return r;
}

int seam_link_client_connect(struct seam_link_client *c, const char *address,
			     const char *services, int timeout_ms)
{
	struct seam_link_hello hello = { 0 };
	int socket = connect_to(address), r;

	*c = (struct seam_link_client) { NOT_CONNECTED };
	if (socket < 0)
		return socket;
	r = check_peer(socket);
	memcpy(hello.services, services,
	       strnlen(services, sizeof(hello.services) - 1));
	/* The first message finds room at once. */
	if (r == 0)
		r = seam_link_send(socket, SEAM_LINK_HELLO, &hello, NULL, 0, 0);
	if (r == 0)
		r = receive_welcomes(c, socket, timeout_ms);
	close(socket);
	if (r < 0)
		seam_link_client_fini(c);
	return r;
}

int seam_link_client_claim(struct seam_link_client *c, uint32_t i, uint32_t tid,
			   struct seam_ring_claim *claim)
{
	int r = seam_ring_memory_claim(&c->memories[i], tid, claim);

	if (r == 0)
		claim->ring.wakeup = &c->wakeup;
	return r;
}
