/* SPDX-License-Identifier: MIT */
/*
 * channel.h - messages between Seam and its process without rights
 *
 * A message is a kind, a run of bytes and perhaps a descriptor.  Both ends
 * are the same program on the same machine, so numbers go as they are; but
 * the other end may have been taken over by a file that it read, so what
 * arrives is read with a cursor, and its size has a limit.
 *
 * Threads: one at a time for one end.
 */
#ifndef SEAM_CHANNEL_H
#define SEAM_CHANNEL_H

#include "base/array.h"
#include "base/cursor.h"
#include "base/err.h"

/* Zeroed, with a socket in fd, it is ready. */
struct seam_channel {
	int fd;				/* a stream socket, owned */
	SEAM_ARRAY(uint8_t) out;	/* the message being made */
	uint8_t *in;			/* the message received last */
	size_t in_cap;
	bool is_broken;			/* memory ran out while it was made */
	/*
	 * Whether to wait no more, asked each time that the socket's
	 * SO_RCVTIMEO has passed within a message; NULL: wait for ever.
	 */
	bool (*gives_up)(struct seam_channel *channel);
	unsigned int n_waits;		/* for the message that is awaited */
};

struct seam_message {
	uint32_t kind;
	int fd;				/* yours to close; -1: none */
	struct seam_cursor body;	/* valid until the next is received */
};

/* Append to the message that is being made. */
void seam_channel_put(struct seam_channel *channel, const void *data,
		      size_t size);
void seam_channel_put_u32(struct seam_channel *channel, uint32_t v);
void seam_channel_put_u64(struct seam_channel *channel, uint64_t v);
/* With its NUL; NULL goes as "". */
void seam_channel_put_text(struct seam_channel *channel, const char *text);

/*
 * Send what was put, with a copy of descriptor @fd unless it is -1.  0;
 * -EPIPE when the other end is gone; -ENOMEM when it could not be made.
 */
int seam_channel_send(struct seam_channel *channel, uint32_t kind, int fd);

/* Wait for the next message.  0; -EPIPE; -ETIMEDOUT; -EBADMSG; -ENOMEM. */
int seam_channel_receive(struct seam_channel *channel,
			 struct seam_message *message);

/* An error as the rest of a message, and back: the code, or 0. */
void seam_channel_put_err(struct seam_channel *channel,
			  const struct seam_err *err);
int seam_channel_take_err(struct seam_cursor *body, struct seam_err *err);

/* Closes the socket. */
void seam_channel_fini(struct seam_channel *channel);

#endif /* SEAM_CHANNEL_H */
