/* SPDX-License-Identifier: MIT */
/*
 * link.h - how a traced program and its recorder connect
 *
 * Once, when a library of Seam is loaded in the program, over a unix socket of
 * packets:
 *
 *	program                         recorder
 *	connect, check the peer's uid   accept, check the peer's uid
 *	HELLO  services            -->
 *	                            <-- WELCOME  geometry + memfd, wakeup
 *	                            <-- WELCOME  of the next service
 *	                            <-- or REFUSED  reason
 *	both close the connection
 *
 * HELLO lists the services of the program; for each that the recorder has there
 * is a WELCOME, with rings of a geometry of its own.  In place of HELLO a
 * program may send a NOTE, a line for the recorder's user.
 *
 * Each side gets the other's pid and uid from the kernel and trusts nothing
 * else.  No call blocks longer than its timeout; a peer that sends anything
 * invalid is disconnected, without an effect on others.
 *
 * The address is a path in a folder of mode 0700, or where that would be too
 * long for a socket an abstract name, written "@name".  Both sides are of the
 * same machine: a message is a struct of fixed size.
 */
#pragma once

#include "base/err.h"
#include "ring/producer/claim.h"
#include "ring/ring_memory.h"

#include <sys/types.h>

enum {
	SEAM_LINK_VERSION = 4,
	SEAM_LINK_MAX_BYTES = 512,	/* of a message */
	SEAM_LINK_MAX_FDS = 4,		/* with a message */
	SEAM_LINK_ADDRESS_BYTES = 108,	/* Source: unix(7), sun_path */
	SEAM_LINK_SERVICES_BYTES = 128,
	SEAM_LINK_MAX_SERVICES = 8,	/* of a program */
	SEAM_LINK_NOTE_BYTES = 256,
};

/* The environment variable that holds the recorder's address. */
#define SEAM_LINK_VARIABLE "SEAM_LINK"

#define SEAM_LINK_MAGIC UINT32_C(0x6d616573)	/* "seam" */

/* A connection with another kind is closed. */
enum seam_link_kind {
	SEAM_LINK_HELLO = 1,
	SEAM_LINK_WELCOME,
	SEAM_LINK_REFUSED,
	SEAM_LINK_NOTE,
};

/* The start of every message; seam_link_send() sets it. */
struct seam_link_head {
	uint32_t magic;
	uint16_t version;
	uint16_t kind;
};

struct seam_link_hello {
	struct seam_link_head head;
	char services[SEAM_LINK_SERVICES_BYTES]; /* with a space in between */
};

/* The rings of one service. */
struct seam_link_welcome {
	struct seam_link_head head;
	uint32_t service;	/* index in the list of HELLO */
	uint32_t n_more;	/* WELCOMEs that follow */
	struct seam_ring_geometry geometry;
	uint32_t pid;		/* of the program; SO_PEERCRED */
	uint32_t parameter;	/* the service's own; 0: none */
};

struct seam_link_refused {
	struct seam_link_head head;
	char reason[SEAM_LINK_MAX_BYTES / 2];	/* for people; or this: */
};

#define SEAM_LINK_NO_SERVICE "no service that is recorded here"

struct seam_link_note {
	struct seam_link_head head;
	char text[SEAM_LINK_NOTE_BYTES];	/* for people */
};

_Static_assert(sizeof(struct seam_link_welcome) == 56, "without padding");

struct seam_link_message {
	union {
		struct seam_link_head head;
		struct seam_link_hello hello;
		struct seam_link_welcome welcome;
		struct seam_link_refused refused;
		struct seam_link_note note;
		uint8_t bytes[SEAM_LINK_MAX_BYTES];
	};
	int fds[SEAM_LINK_MAX_FDS];		/* the receiver's to close */
	size_t n_fds;
};

/*
 * Send @message, the struct of @kind, and @fds within @timeout_ms.  Returns 0,
 * -ETIMEDOUT, -EPIPE and the like.  Raises no signal.
 */
int seam_link_send(int socket, enum seam_link_kind kind, void *message,
		   const int *fds, size_t n_fds, int timeout_ms);

/*
 * Receive one message within @timeout_ms (0: without waiting).  Returns 1, or
 * 0 when the peer has closed; -EAGAIN, -ETIMEDOUT when there is none;
 * -EBADMSG for an invalid one.  Of another version or kind only its head is
 * valid.  Descriptors are closed unless 1 is returned.
 */
int seam_link_receive(int socket, struct seam_link_message *m, int timeout_ms);

/* Close the descriptors that came with @m. */
void seam_link_drop_fds(struct seam_link_message *m);

/* The process at the other end, by SO_PEERCRED.  0 or -errno. */
int seam_link_peer(int socket, pid_t *pid, uid_t *uid);

struct sockaddr_un;

/* "@name" or a path as a socket address: its length, or -ENAMETOOLONG. */
int seam_link_sockaddr(const char *address, struct sockaddr_un *out);

/*
 * ---- the program's end ----
 *
 * Used once, at load; later only producer/claim.h, which needs no descriptor.
 * Only the wakeup's descriptor stays open, close-on-exec.
 */

struct seam_link_client {
	int wakeup_fd;			/* -1: not connected */
	struct seam_ring_wakeup wakeup;
	/* in the order of the services; head NULL: the recorder lacks it */
	struct seam_ring_memory memories[SEAM_LINK_MAX_SERVICES];
	uint32_t parameters[SEAM_LINK_MAX_SERVICES];	/* of WELCOME */
};

/*
 * Connect to the recorder at @address, and get rings for @services, names
 * with a space between them, all within @timeout_ms.  Returns 0; -EPERM when
 * another user listens there, -ENOPROTOOPT when the recorder has none of
 * @services, -ECONNREFUSED when it refused for another reason or none listens,
 * -EXDEV when it is of another pid namespace, -ETIMEDOUT, or the failure's
 * errno.  After a failure the struct is valid and holds nothing.
 */
int seam_link_client_connect(struct seam_link_client *c, const char *address,
			     const char *services, int timeout_ms);

/*
 * Send @text, a line for the recorder's user, over a connection of its own.
 * Returns as seam_link_client_connect().
 */
int seam_link_client_note(const char *address, const char *text);

/*
 * Claim a ring of service @i for thread @tid, the caller, ready to write.  As
 * seam_ring_memory_claim(); safe in a signal handler and in a forked child.
 */
int seam_link_client_claim(struct seam_link_client *c, uint32_t i, uint32_t tid,
			   struct seam_ring_claim *claim);

/* Close the wakeup, and unmap the rings. */
void seam_link_client_fini(struct seam_link_client *c);
