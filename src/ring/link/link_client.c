/* SPDX-License-Identifier: MIT */
/*
 * link_client.c - connect, hello, welcome; see link_client.h
 *
 * Runs in the traced program, so the few fields of its messages are laid out
 * here by hand; a test compares them with the tables of link.c.
 */
#include "ring/link/link_client.h"

#include "base/clock.h"

#include <errno.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

enum {
	HEAD_BYTES = 8,
	WELCOME_BYTES = HEAD_BYTES + 6 * 4 + 2 * 8 + 4,
	SERVICES_BYTES = 128,
};

#define NOT_CONNECTED .socket = -1, .wakeup_fd = -1, .wakeup.fd = -1

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

/* A unix socket connects at once or not at all. */
static int open_socket(const char *address)
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
	/* Only root and our own user may record us. */
	return uid != 0 && uid != geteuid() ? -EPERM : 0;
}

static uint8_t *put_string(uint8_t *to, const char *s, size_t max)
{
	size_t n = strnlen(s, max - 1);

	to = put(to, s, n);
	*to++ = '\0';
	return to;
}

static int send_hello(int socket, const char *services, const char *name)
{
	uint8_t bytes[HEAD_BYTES + 4 + SERVICES_BYTES + SEAM_LINK_NAME_BYTES];
	uint32_t pid = (uint32_t)getpid();
	uint8_t *p = put_head(bytes, SEAM_LINK_HELLO);

	p = put(p, &pid, sizeof(pid));
	p = put_string(p, services, SERVICES_BYTES);
	p = put_string(p, name, SEAM_LINK_NAME_BYTES);
	/* The first message finds room at once. */
	return seam_link_send_bytes(socket, bytes, (size_t)(p - bytes), NULL,
				    0, 0);
}

static void read_welcome(const uint8_t *p, struct seam_link_welcome *w)
{
	p = get(p + HEAD_BYTES, &w->service, sizeof(w->service));
	p = get(p, &w->n_more, sizeof(w->n_more));
	p = get(p, &w->n_slots, sizeof(w->n_slots));
	p = get(p, &w->mode, sizeof(w->mode));
	p = get(p, &w->aux_free_running, sizeof(w->aux_free_running));
	p = get(p, &w->watermark, sizeof(w->watermark));
	p = get(p, &w->data_bytes, sizeof(w->data_bytes));
	p = get(p, &w->aux_bytes, sizeof(w->aux_bytes));
	get(p, &w->pid, sizeof(w->pid));
}

/* Map the memory; returns how many more WELCOMEs follow, or -errno. */
static int accept_welcome(struct seam_link_client *c,
			  struct seam_link_message *m)
{
	struct seam_ring_geometry geometry;
	struct seam_link_welcome w;
	int r;

	read_welcome(m->bytes, &w);
	if (m->n_fds != 2 || w.n_more >= SEAM_LINK_MAX_SERVICES ||
	    w.service >= SEAM_LINK_MAX_SERVICES || c->memories[w.service].head)
		return -EBADMSG;
	/* The recorder could not verify thread ids of another namespace. */
	if (w.pid != (uint32_t)getpid())
		return -EXDEV;
	geometry = (struct seam_ring_geometry) {
		.n_slots = w.n_slots, .mode = w.mode,
		.data_bytes = w.data_bytes, .aux_bytes = w.aux_bytes,
		.aux_free_running = w.aux_free_running,
		.watermark = w.watermark,
	};
	r = seam_ring_memory_adopt(&c->memories[w.service], m->fds[0],
				   &geometry);
	if (r < 0)
		return r;
	/* The same one in each WELCOME. */
	if (c->wakeup_fd < 0) {
		c->wakeup_fd = m->fds[1];
		m->n_fds = 1;
		seam_ring_wakeup_init(&c->wakeup, c->wakeup_fd);
	}
	return (int)w.n_more;
}

/* Returns how many more WELCOMEs follow, or -errno. */
static int receive_welcome(struct seam_link_client *c, int timeout_ms)
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

void seam_link_client_fini(struct seam_link_client *c)
{
	seam_link_client_disconnect(c);
	/* The program may have closed it and reused the number. */
	if (seam_ring_wakeup_is_intact(&c->wakeup))
		close(c->wakeup_fd);
	for (int i = 0; i < SEAM_LINK_MAX_SERVICES; i++)
		seam_ring_memory_fini(&c->memories[i]);
	*c = (struct seam_link_client) { NOT_CONNECTED };
}

static int receive_welcomes(struct seam_link_client *c, int timeout_ms)
{
	uint64_t end = seam_clock_ns() + (uint64_t)timeout_ms * SEAM_NS_PER_MS;
	int r = 1;

	for (int i = 0; r > 0 && i < SEAM_LINK_MAX_SERVICES; i++) {
		uint64_t now = seam_clock_ns(),
			 left = end > now ? end - now : 0;

		r = receive_welcome(c, (int)(left / SEAM_NS_PER_MS));
	}
	return r > 0 ? -EBADMSG : r;
}

int seam_link_client_connect(struct seam_link_client *c, const char *address,
			     const char *services, const char *name,
			     int timeout_ms)
{
	int r;

	*c = (struct seam_link_client) { NOT_CONNECTED };
	r = open_socket(address);
	if (r < 0)
		return r;
	c->socket = r;
	r = check_peer(c->socket);
	if (r == 0)
		r = send_hello(c->socket, services, name);
	if (r == 0)
		r = receive_welcomes(c, timeout_ms);
	if (r < 0)
		seam_link_client_fini(c);
	return r;
}

void seam_link_client_disconnect(struct seam_link_client *c)
{
	if (c->socket >= 0)
		close(c->socket);
	c->socket = -1;
}

int seam_link_client_claim(struct seam_link_client *c, uint32_t i, uint32_t tid,
			   struct seam_ring_claim *claim)
{
	int r = seam_ring_memory_claim(&c->memories[i], tid, claim);

	if (r == 0)
		claim->ring.wakeup = &c->wakeup;
	return r;
}
