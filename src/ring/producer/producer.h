/* SPDX-License-Identifier: MIT */
/*
 * producer.h - put records into a ring, from user space
 *
 *	if (seam_ring_begin(&p, &w, PERF_RECORD_SAMPLE, 0, size) == 0) {
 *		seam_ring_put(&w, &head, sizeof(head));
 *		seam_ring_put(&w, frames, n_bytes);
 *		seam_ring_end(&w);
 *	}
 *
 * For the consumer such a ring is like the kernel's.  A ring belongs to
 * one thread and the signal handlers that interrupt it: writers nest, each
 * reserves its own bytes, and all of them become visible when the outermost
 * ends.  A record that was not visible when its thread died is never seen.
 *
 * Runs inside the traced program: takes no lock, allocates nothing, calls
 * nothing but sendto(2) and fstat(2) for the wakeup, keeps errno, never
 * blocks.  A record that does not fit is counted by its cause, and a LOST
 * record reports it as soon as there is room for one.
 *
 * Each seam_ring_begin() that succeeds needs its seam_ring_end(): after a writer
 * was left by longjmp() nothing further becomes visible.
 */
#pragma once

#include "ring/layout.h"

#include <sys/types.h>

enum {
	/* Writers inside one another; the next is refused. */
	SEAM_RING_MAX_NESTED = 8,
};

/*
 * Wakes the recorder: an empty datagram through one end of a socket pair of the
 * program's.  The program may close the descriptor (closefrom) and get the same
 * number for a file of its own, so its identity is compared before each wakeup.
 * A wakeup that is not sent costs the recorder time, not data.
 *
 * Why a socket: each has an inode of its own, where all eventfds share one; and
 * MSG_DONTWAIT holds for the one send, whatever flags the descriptor has.
 */
struct seam_ring_wakeup {
	int fd;			/* -1: none */
	dev_t device;
	ino_t inode;
	mode_t mode;
};

/*
 * One for each ring, in memory of the thread.  Nothing that bounds an access
 * is read back from the ring.
 */
struct seam_ring_producer {
	struct seam_ring_control *control;
	uint8_t *data;
	uint64_t size;			/* bytes of data, a power of two */
	uint64_t watermark;		/* bytes between wakeups */
	const struct seam_ring_wakeup *wakeup;	/* NULL: none */
	uint64_t id;			/* of the event, in LOST records */
};

/* A record that is being written. */
struct seam_ring_writer {
	struct seam_ring_producer *ring;
	uint64_t pos;		/* of the next byte */
	uint64_t limit, end;	/* of the payload; of the record */
};

/*
 * Produce into the ring in @memory: @page_bytes of control page, then
 * @data_bytes, a power of two.  Continues at the ring's head.  A wakeup is
 * sent each time that half of the ring was filled; the caller may set the
 * other fields, @wakeup included, before the first record.
 */
void seam_ring_producer_init(struct seam_ring_producer *p, void *memory,
			     size_t page_bytes, size_t data_bytes);

/*
 * Bytes of payload that a record begun now could have, a multiple of 8.  A
 * signal handler that writes makes it less.
 */
size_t seam_ring_room(const struct seam_ring_producer *p);

/*
 * Begin a record with a payload of @bytes, padded with zeros to a multiple of
 * 8.  Returns 0, or why there is no record:
 *
 *	-ENOBUFS   the ring is full
 *	-EMSGSIZE  no record can be so large
 *	-EBUSY     too many writers inside one another
 *	-EAGAIN    paused by the consumer
 *
 * A loss is counted already, and seam_ring_end() must not be called.
 * Cost: 12 ns a record with its end, 6 when full (bench/ring.c).
 */
int seam_ring_begin(struct seam_ring_producer *p, struct seam_ring_writer *w,
		    uint32_t type, uint16_t misc, size_t bytes);

/* The next bytes of the payload.  What exceeds it is dropped. */
void seam_ring_put(struct seam_ring_writer *w, const void *src, size_t bytes);

/* End the record; the outermost writer makes all of them visible. */
void seam_ring_end(struct seam_ring_writer *w);

/* A whole record.  Returns as seam_ring_begin(). */
int seam_ring_write(struct seam_ring_producer *p, uint32_t type,
		    uint16_t misc, const void *payload, size_t bytes);

/* ---- wakeups ---- */

/* Use @fd, which stays the caller's; nothing is sent if it is no socket. */
void seam_ring_wakeup_init(struct seam_ring_wakeup *w, int fd);

/*
 * Wake the recorder.  Safe in a signal handler; keeps errno, is no cancellation
 * point, raises no signal, never blocks: a full queue means that a wakeup is
 * pending already.  False when none was sent.  Cost: two system calls.
 */
bool seam_ring_wakeup_send(const struct seam_ring_wakeup *w);

/* Whether the descriptor is still the socket that it was at init. */
bool seam_ring_wakeup_is_intact(const struct seam_ring_wakeup *w);
