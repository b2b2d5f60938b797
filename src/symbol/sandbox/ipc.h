/* SPDX-License-Identifier: MIT */
/*
 * ipc.h - messages between Seam and its sandboxed process
 *
 * A message is a kind, a run of bytes and perhaps a descriptor.  Both ends are
 * the same program on the same machine, so numbers are sent in memory order.
 * The other end may have been taken over by a file that it parsed, so messages
 * are read with a cursor, and their size has a limit.
 *
 * Threads: one at a time for one end.
 */
#ifndef SEAM_IPC_H
#define SEAM_IPC_H

#include "base/array.h"
#include "base/cursor.h"
#include "base/err.h"

/* Zeroed, with a socket in fd, it is ready. */
struct seam_ipc {
	int fd;				/* a stream socket, owned */
	SEAM_ARRAY(uint8_t) out;	/* the message being made */
	uint8_t *in;			/* the message received last */
	size_t in_cap;
	bool is_broken;			/* memory ran out while it was made */
	/*
	 * Called each second that a message takes, and each time that the
	 * socket's SO_RCVTIMEO expires; true ends the wait.  NULL: wait without
	 * a limit.
	 */
	bool (*is_timed_out)(struct seam_ipc *ipc);
	unsigned int n_waits;		/* calls for this message */
	uint64_t wait_ns;		/* when the last one was */
};

struct seam_message {
	uint32_t kind;
	int fd;				/* the caller's to close; -1: none */
	struct seam_cursor body;	/* valid until the next is received */
};

/* Append to the message that is being made. */
void seam_ipc_put(struct seam_ipc *ipc, const void *data, size_t size);
void seam_ipc_put_u32(struct seam_ipc *ipc, uint32_t v);
void seam_ipc_put_u64(struct seam_ipc *ipc, uint64_t v);
/* With its NUL; NULL is sent as "". */
void seam_ipc_put_text(struct seam_ipc *ipc, const char *text);

/*
 * Send what was put, with a copy of descriptor @fd unless it is -1.  0;
 * -EPIPE when the other end has closed; -ENOMEM when a put had failed.
 */
int seam_ipc_send(struct seam_ipc *ipc, uint32_t kind, int fd);

/* Wait for the next message.  0; -EPIPE; -ETIMEDOUT; -EBADMSG; -ENOMEM. */
int seam_ipc_receive(struct seam_ipc *ipc, struct seam_message *message);

/* An error as the rest of a message, and back: the code, or 0. */
void seam_ipc_put_err(struct seam_ipc *ipc, const struct seam_err *err);
int seam_ipc_take_err(struct seam_cursor *body, struct seam_err *err);

/* Closes the socket. */
void seam_ipc_fini(struct seam_ipc *ipc);

#endif /* SEAM_IPC_H */
