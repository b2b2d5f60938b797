/* SPDX-License-Identifier: MIT */
/* link_client.c - connect, hello, welcome; see link_client.h */
#include "ring/link/link_client.h"

#include "base/clock.h"
#include "base/high_fd.h"

#include <errno.h>
#include <sys/socket.h>
#include <unistd.h>

#define NOT_CONNECTED .wakeup_fd = -1, .wakeup.fd = -1

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
	int socket = seam_link_connect(address), r;

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
	int socket = seam_link_connect(address), r;

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
