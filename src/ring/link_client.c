/* SPDX-License-Identifier: MIT */
/* link_client.c - connect, hello, welcome; see link_client.h */
#include "ring/link_client.h"

#include <errno.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

/* A unix socket connects at once or not at all: no waiting here. */
static int dial(const char *address, struct seam_err *err)
{
	struct sockaddr_un to;
	int size = seam_link_sockaddr(address, &to);
	int fd, r;

	if (size < 0)
		return seam_err_set(err, size, "no address of a recorder");
	fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK,
		    0);
	if (fd < 0)
		return seam_err_set(err, -errno, "cannot make a socket: %s",
				    strerror(errno));
	if (connect(fd, (struct sockaddr *)&to, (socklen_t)size) == 0)
		return fd;
	r = -errno;
	close(fd);
	return seam_err_set(err, r, "cannot reach the recorder: %s",
			    strerror(-r));
}

static int check_peer(int socket, struct seam_err *err)
{
	pid_t pid;
	uid_t uid;
	int r = seam_link_peer(socket, &pid, &uid);

	if (r < 0)
		return seam_err_set(err, r, "cannot see who records");
	/* Of root alone and of ourselves we let us be recorded. */
	if (uid != 0 && uid != geteuid())
		return seam_err_set(err, -EPERM,
				    "user %u listens where the recorder "
				    "should", (unsigned)uid);
	return 0;
}

static int accept_welcome(struct seam_link_client *c,
			  struct seam_link_message *m, struct seam_err *err)
{
	const struct seam_link_welcome *w = &m->welcome;
	struct seam_ring_shape shape = {
		.n_slots = w->n_slots, .mode = w->mode,
		.data_bytes = w->data_bytes, .aux_bytes = w->aux_bytes,
		.aux_free_running = w->aux_free_running,
		.watermark = w->watermark,
	};
	int r;

	if (m->n_fds != 2)
		return seam_err_set(err, -EBADMSG,
				    "the recorder sent no rings");
	r = seam_ring_memory_map(&c->memory, m->fds[0], &shape, err);
	if (r < 0)
		return r;
	c->bell_fd = m->fds[1];
	close(m->fds[0]);
	m->n_fds = 0;
	seam_ring_bell_init(&c->bell, c->bell_fd);
	return 0;
}

static int await_welcome(struct seam_link_client *c, int timeout_ms,
			 struct seam_err *err)
{
	struct seam_link_message m;
	int r = seam_link_receive(c->socket, &m, timeout_ms);

	if (r <= 0)
		return seam_err_set(err, r ? r : -ECONNRESET,
				    "no answer from the recorder");
	if (m.head.kind == SEAM_LINK_WELCOME)
		r = accept_welcome(c, &m, err);
	else if (m.head.kind == SEAM_LINK_REFUSED)
		r = seam_err_set(err, -ECONNREFUSED, "the recorder says: %s",
				 m.refused.reason);
	else
		r = seam_err_set(err, -EBADMSG, "no answer that we know");
	seam_link_drop_fds(&m);
	return r;
}

int seam_link_client_meet(struct seam_link_client *c, const char *address,
			  const char *name, int timeout_ms,
			  struct seam_err *err)
{
	struct seam_link_hello hello = {
		.pid = (uint32_t)getpid(), .name = name,
	};
	int r;

	*c = (struct seam_link_client) { .socket = -1, .bell_fd = -1 };
	r = dial(address, err);
	if (r < 0)
		return r;
	c->socket = r;
	r = check_peer(c->socket, err);
	if (r == 0)
		/* The first message finds room at once. */
		r = seam_link_send(c->socket, SEAM_LINK_HELLO, &hello, NULL,
				   0, 0);
	if (r == 0)
		r = await_welcome(c, timeout_ms, err);
	if (r < 0) {
		close(c->socket);
		c->socket = -1;
	}
	return r;
}

int seam_link_client_claim(struct seam_link_client *c, uint32_t tid,
			   struct seam_ring_claim *claim)
{
	int r = seam_ring_memory_claim(&c->memory, tid, claim);

	if (r == 0)
		claim->ring.bell = &c->bell;
	return r;
}

void seam_link_client_fini(struct seam_link_client *c)
{
	struct seam_link_bye bye;

	if (c->socket >= 0 && c->memory.head) {
		/* relaxed: counts */
		bye.n_lost = atomic_load_explicit(&c->memory.head->n_lost,
						  memory_order_relaxed);
		bye.n_unclaimed = atomic_load_explicit(
			&c->memory.head->n_unclaimed, memory_order_relaxed);
		seam_link_send(c->socket, SEAM_LINK_BYE, &bye, NULL, 0, 0);
	}
	if (c->socket >= 0)
		close(c->socket);
	if (c->bell_fd >= 0)
		close(c->bell_fd);
	seam_ring_memory_fini(&c->memory);
	*c = (struct seam_link_client) { .socket = -1, .bell_fd = -1 };
}
