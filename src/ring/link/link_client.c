/* SPDX-License-Identifier: MIT */
/*
 * link_client.c - connect, hello, welcome; see link_client.h
 *
 * Runs in the traced program, so the few fields of its messages are laid out
 * here by hand; a test holds them against the tables of link.c.
 */
#include "ring/link/link_client.h"

#include <errno.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

enum {
	HEAD_BYTES = 8,
	WELCOME_BYTES = HEAD_BYTES + 4 * 4 + 2 * 8 + 4,
	BYE_BYTES = HEAD_BYTES + 2 * 8,
};

#define NOBODY .socket = -1, .bell_fd = -1, .bell.fd = -1

static uint8_t *put(uint8_t *to, const void *bytes, size_t n)
{
	memcpy(to, bytes, n);
	return to + n;
}

static uint8_t *put_head(uint8_t *to, uint16_t kind)
{
	struct seam_link_head head = {
		.magic = SEAM_LINK_MAGIC, .version = SEAM_LINK_VERSION,
		.kind = kind,
	};

	return put(to, &head, sizeof(head));
}

static const uint8_t *get(const uint8_t *from, void *to, size_t n)
{
	memcpy(to, from, n);
	return from + n;
}

/* A unix socket connects at once or not at all: no waiting here. */
static int dial(const char *address)
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

static int check_peer(int socket)
{
	pid_t pid;
	uid_t uid;
	int r = seam_link_peer(socket, &pid, &uid);

	if (r < 0)
		return r;
	/* Of root alone and of ourselves we let us be recorded. */
	return uid != 0 && uid != geteuid() ? -EPERM : 0;
}

static int say_hello(int socket, const char *name)
{
	uint8_t bytes[SEAM_LINK_MOST_BYTES], *p;
	size_t n = strnlen(name, SEAM_LINK_NAME_BYTES - 1);
	uint32_t pid = (uint32_t)getpid();

	p = put_head(bytes, SEAM_LINK_HELLO);
	p = put(p, &pid, sizeof(pid));
	p = put(p, name, n);
	*p++ = '\0';
	/* The first message finds room at once. */
	return seam_link_send_bytes(socket, bytes, (size_t)(p - bytes), NULL,
				    0, 0);
}

static void read_welcome(const uint8_t *p, struct seam_link_welcome *w)
{
	p = get(p + HEAD_BYTES, &w->n_slots, sizeof(w->n_slots));
	p = get(p, &w->mode, sizeof(w->mode));
	p = get(p, &w->aux_free_running, sizeof(w->aux_free_running));
	p = get(p, &w->watermark, sizeof(w->watermark));
	p = get(p, &w->data_bytes, sizeof(w->data_bytes));
	p = get(p, &w->aux_bytes, sizeof(w->aux_bytes));
	get(p, &w->pid, sizeof(w->pid));
}

static int accept_welcome(struct seam_link_client *c,
			  struct seam_link_message *m)
{
	struct seam_ring_shape shape;
	struct seam_link_welcome w;
	int r;

	if (m->n_fds != 2)
		return -EBADMSG;
	read_welcome(m->bytes, &w);
	/* Our thread ids mean nothing to it, and it could not prove them. */
	if (w.pid != (uint32_t)getpid())
		return -EXDEV;
	shape = (struct seam_ring_shape) {
		.n_slots = w.n_slots, .mode = w.mode,
		.data_bytes = w.data_bytes, .aux_bytes = w.aux_bytes,
		.aux_free_running = w.aux_free_running,
		.watermark = w.watermark,
	};
	r = seam_ring_memory_adopt(&c->memory, m->fds[0], &shape);
	if (r < 0)
		return r;
	c->bell_fd = m->fds[1];
	close(m->fds[0]);
	m->n_fds = 0;
	seam_ring_bell_init(&c->bell, c->bell_fd);
	return 0;
}

static int await_welcome(struct seam_link_client *c, int timeout_ms)
{
	struct seam_link_message m;
	int r = seam_link_receive_bytes(c->socket, &m, timeout_ms);
	size_t n = r > 0 ? (size_t)r : 0;

	if (r <= 0)
		return r ? r : -ECONNRESET;
	r = -EBADMSG;
	if (n >= HEAD_BYTES) {
		get(m.bytes, &m.head, sizeof(m.head));
		if (m.head.magic != SEAM_LINK_MAGIC)
			r = -EBADMSG;
		else if (m.head.kind == SEAM_LINK_REFUSED)
			r = -ECONNREFUSED;
		else if (m.head.kind == SEAM_LINK_WELCOME &&
			 n >= WELCOME_BYTES)
			r = accept_welcome(c, &m);
	}
	seam_link_drop_fds(&m);
	return r;
}

int seam_link_client_meet(struct seam_link_client *c, const char *address,
			  const char *name, int timeout_ms)
{
	int r;

	*c = (struct seam_link_client) { NOBODY };
	r = dial(address);
	if (r < 0)
		return r;
	c->socket = r;
	r = check_peer(c->socket);
	if (r == 0)
		r = say_hello(c->socket, name);
	if (r == 0)
		r = await_welcome(c, timeout_ms);
	if (r < 0)
		seam_link_client_part(c);
	return r;
}

void seam_link_client_part(struct seam_link_client *c)
{
	if (c->socket >= 0)
		close(c->socket);
	c->socket = -1;
}

int seam_link_client_claim(struct seam_link_client *c, uint32_t tid,
			   struct seam_ring_claim *claim)
{
	int r = seam_ring_memory_claim(&c->memory, tid, claim);

	if (r == 0)
		claim->ring.bell = &c->bell;
	return r;
}

static void say_bye(const struct seam_link_client *c)
{
	uint8_t bytes[BYE_BYTES], *p;
	/* relaxed: counts */
	uint64_t n_lost = atomic_load_explicit(&c->memory.head->n_lost,
					       memory_order_relaxed);
	uint64_t n_unclaimed = atomic_load_explicit(
		&c->memory.head->n_unclaimed, memory_order_relaxed);

	p = put_head(bytes, SEAM_LINK_BYE);
	p = put(p, &n_lost, sizeof(n_lost));
	put(p, &n_unclaimed, sizeof(n_unclaimed));
	seam_link_send_bytes(c->socket, bytes, sizeof(bytes), NULL, 0, 0);
}

void seam_link_client_fini(struct seam_link_client *c)
{
	if (c->socket >= 0 && c->memory.head)
		say_bye(c);
	seam_link_client_part(c);
	/* By now the number may be somebody else's. */
	if (seam_ring_bell_is_whole(&c->bell))
		close(c->bell_fd);
	seam_ring_memory_fini(&c->memory);
	*c = (struct seam_link_client) { NOBODY };
}
