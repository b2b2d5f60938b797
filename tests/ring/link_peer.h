/* SPDX-License-Identifier: MIT */
/* link_peer.h - a server of one service, and programs that say HELLO to it */
#ifndef SEAM_TESTS_LINK_PEER_H
#define SEAM_TESTS_LINK_PEER_H

#include "fixture.h"

#include <sys/socket.h>
#include <sys/un.h>

#include "ring/link/link_server.h"

static const struct seam_link_service numbers = {
	.name = "numbers", .n_free = 4,
	.geometry = { .n_slots = 16, .data_bytes = 65536 },
};

static inline void serve(struct seam_link_server *s)
{
	struct seam_err err;

	if (seam_link_server_open(s, &numbers, 1, &err)) {
		seam_err_print(stderr, "serve", &err);
		fail();
	}
}

/* Connect as a stranger would. */
static inline int connect_raw(const struct seam_link_server *s)
{
	struct sockaddr_un to;
	int size = seam_link_sockaddr(s->address, &to);
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

	assert_int_equal(connect(fd, (struct sockaddr *)&to,
				 (socklen_t)size), 0);
	return fd;
}

/* Send a hello for @names; the first answer is @m.  Returns the socket. */
static inline int greet(struct seam_link_server *s, const char *names,
			struct seam_link_message *m)
{
	struct seam_link_hello hello = { 0 };
	int socket = connect_raw(s);

	snprintf(hello.services, sizeof(hello.services), "%s", names);
	assert_int_equal(seam_link_send(socket, SEAM_LINK_HELLO, &hello, NULL,
					0, 0), 0);
	seam_link_server_step(s);
	seam_link_server_step(s);
	assert_int_equal(seam_link_receive(socket, m, 1000), 1);
	return socket;
}

/* The kind of the answer to a hello that goes with @socket. */
static inline uint16_t send_hello(struct seam_link_server *s, int *socket)
{
	struct seam_link_message m;

	*socket = greet(s, "numbers", &m);
	seam_link_drop_fds(&m);
	return m.head.kind;
}

#endif /* SEAM_TESTS_LINK_PEER_H */
