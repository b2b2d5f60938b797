/* SPDX-License-Identifier: MIT */
/*
 * wakeup.h - wake the recorder from inside the traced program
 *
 * The bell is one end of a pair of datagram sockets, each program's its own,
 * and a ring is an empty datagram.  The program does not know of it, so it may
 * close it (closefrom) and get the same number for a file of its own: before
 * each ring the descriptor is compared with what it was.  Where it is another,
 * the bell is silent.  A bell that does not ring costs the recorder time, not
 * data: it looks at its rings now and then without being called.
 *
 * Why a socket: each has an inode of its own, where all eventfds share one
 * and cannot be told apart; and a send says for itself that it must not wait,
 * whatever somebody has made of the descriptor's flags.
 */
#ifndef SEAM_WAKEUP_H
#define SEAM_WAKEUP_H

#include "base/base.h"

#include <sys/types.h>

struct seam_ring_bell {
	int fd;			/* -1: none */
	dev_t device;
	ino_t inode;
	mode_t mode;
};

/* Take @fd, which stays the caller's, for a bell; silent if it is no socket. */
void seam_ring_bell_init(struct seam_ring_bell *bell, int fd);

/*
 * Ring.  Safe in a signal handler, keeps errno, no point of cancellation, no
 * signal, never waits: a queue that is full says that it was rung already.
 * False when nobody can have heard.  Cost: two system calls.
 */
bool seam_ring_bell_ring(const struct seam_ring_bell *bell);

/* The descriptor is still what it was when it was taken. */
bool seam_ring_bell_is_whole(const struct seam_ring_bell *bell);

#endif /* SEAM_WAKEUP_H */
