/* SPDX-License-Identifier: MIT */
/*
 * link.h - how a traced program and its recorder meet
 *
 * Once, when the program's agent is loaded, over a unix socket of packets:
 *
 *	program                         recorder
 *	connect, check who listens      accept, check who connects
 *	HELLO  pid, name        ----->
 *	                        <-----  WELCOME  shape of rings
 *	                                  + memfd, bell
 *	                        <-----  or REFUSED  reason
 *	...
 *	BYE  counts             ----->  (or the end of the connection)
 *
 * Each side asks the kernel who the other is and believes nothing else.  No
 * call waits longer than it was told; a peer that sends what it should not
 * is cut off, and nobody else notices.
 *
 * The address is a path in a folder of mode 0700, or where that would be too
 * long for a socket (108 bytes) an abstract name, written "@name".  It goes
 * to the program in its environment.
 *
 * Both sides are of the same machine: integers are in its byte order.
 */
#ifndef SEAM_RING_LINK_H
#define SEAM_RING_LINK_H

#include "base/err.h"
#include "ring/ring_memory.h"
#include "wire/wire.h"

#include <sys/types.h>

enum {
	SEAM_LINK_VERSION = 1,
	SEAM_LINK_MOST_BYTES = 512,	/* of a message */
	SEAM_LINK_MOST_FDS = 4,		/* with a message */
	SEAM_LINK_ADDRESS_BYTES = 108,	/* Source: unix(7), sun_path */
	SEAM_LINK_NAME_BYTES = 64,
};

/* Where a program finds the address of its recorder. */
#define SEAM_LINK_VARIABLE "SEAM_LINK"

#define SEAM_LINK_MAGIC UINT32_C(0x6d616573)	/* "seam" */

/* A receiver ignores kinds that it does not know. */
enum seam_link_kind {
	SEAM_LINK_HELLO = 1,
	SEAM_LINK_WELCOME,
	SEAM_LINK_REFUSED,
	SEAM_LINK_BYE,
};

/* Every message begins so. */
struct seam_link_head {
	uint32_t magic;
	uint16_t version;
	uint16_t kind;
};

struct seam_link_hello {
	uint32_t pid;			/* as the program sees it */
	const char *name;
};

struct seam_link_welcome {
	uint32_t n_slots, mode, aux_free_running, watermark;
	uint64_t data_bytes, aux_bytes;
	uint32_t pid;		/* of the program, by the kernel's word */
};

struct seam_link_refused {
	const char *reason;
};

struct seam_link_bye {
	uint64_t n_lost;		/* records, for want of a ring */
	uint64_t n_unclaimed;		/* threads without one */
};

/* One table for each kind, NULL for others. */
const struct seam_record *seam_link_table(uint16_t kind);

struct seam_link_message {
	struct seam_link_head head;
	union {
		struct seam_link_hello hello;
		struct seam_link_welcome welcome;
		struct seam_link_refused refused;
		struct seam_link_bye bye;
	};
	uint8_t bytes[SEAM_LINK_MOST_BYTES];	/* names point in here */
	int fds[SEAM_LINK_MOST_FDS];		/* the receiver's to close */
	size_t n_fds;
};

/*
 * Send @body (a struct of the kind's table) and @fds within @timeout_ms.
 * Returns 0, -ETIMEDOUT, -EPIPE and the like.  Raises no signal.
 */
int seam_link_send(int socket, enum seam_link_kind kind, const void *body,
		   const int *fds, size_t n_fds, int timeout_ms);

/*
 * Receive one message within @timeout_ms (0: only what is there).  Returns
 * 1, or 0 when the peer has closed; -EAGAIN, -ETIMEDOUT when nothing came;
 * -EBADMSG for what is no message.  Descriptors are closed unless 1 is
 * returned.
 */
int seam_link_receive(int socket, struct seam_link_message *m,
		      int timeout_ms);

/*
 * The same with a message as bytes, laid out or not yet read: for the traced
 * program, which has no tables.  The receiver's result is their number.
 */
int seam_link_send_bytes(int socket, const void *bytes, size_t n,
			 const int *fds, size_t n_fds, int timeout_ms);
int seam_link_receive_bytes(int socket, struct seam_link_message *m,
			    int timeout_ms);

/* Close the descriptors that came with @m. */
void seam_link_drop_fds(struct seam_link_message *m);

/* Who is at the other end, by the kernel's word.  0 or a negative errno. */
int seam_link_peer(int socket, pid_t *pid, uid_t *uid);

/* Whether user @peer may be at the other end of a link of ours. */
bool seam_link_may_meet(uid_t peer);

struct sockaddr_un;

/* "@name" or a path as a socket address: its length, or -ENAMETOOLONG. */
int seam_link_sockaddr(const char *address, struct sockaddr_un *out);

#endif /* SEAM_RING_LINK_H */
