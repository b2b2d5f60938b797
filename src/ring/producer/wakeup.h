/* SPDX-License-Identifier: MIT */
/*
 * wakeup.h - wake the recorder from inside the traced program
 *
 * A wakeup is an empty datagram through one end of a socket pair; each program
 * has a pair of its own.  The program did not open the descriptor, so it may
 * close it (closefrom) and get the same number for a file of its own.  So the
 * descriptor's identity is compared before each wakeup, and nothing is sent
 * where it differs.  A wakeup that is not sent costs the recorder time, not
 * data: it also scans its rings at intervals.
 *
 * Why a socket: each has an inode of its own, where all eventfds share one
 * and cannot be told apart; and MSG_DONTWAIT holds for the one send, whatever
 * the program has made of the descriptor's flags.
 */
#ifndef SEAM_WAKEUP_H
#define SEAM_WAKEUP_H

#include "base/base.h"

#include <sys/types.h>

struct seam_ring_wakeup {
	int fd;			/* -1: none */
	dev_t device;
	ino_t inode;
	mode_t mode;
};

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

#endif /* SEAM_WAKEUP_H */
