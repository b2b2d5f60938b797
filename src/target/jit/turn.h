/* SPDX-License-Identifier: MIT */
/*
 * turn.h - one call at a time, for code that lives in somebody else's process
 *
 * A mutex would hang where this must not: in a signal handler that interrupted
 * its own thread's call, in a child forked while another thread was in a call,
 * and behind a thread that a handler threw out of its call.  So the word that
 * is the lock holds the pid too (a turn taken before a fork is nobody's in the
 * child), the owner is known, and waiting ends.
 *
 * Also here: who we are, without a system call each time.
 */
#ifndef SEAM_TARGET_TURN_H
#define SEAM_TARGET_TURN_H

#include "base/base.h"

#include <stdatomic.h>

/* Zeroed: nobody's. */
struct seam_turn {
	_Atomic uint64_t word;	/* who has it; see turn.c.  Any thread */
};

/*
 * Take the turn.  0; -EDEADLK when this thread has it; -EBUSY when it was not
 * to be had for a second.
 */
int seam_turn_take(struct seam_turn *turn);
void seam_turn_give(struct seam_turn *turn);

/* The process and the thread that run this, right after a fork too. */
int32_t seam_turn_pid(void);
int32_t seam_turn_tid(void);

/* Before anything else; again is harmless. */
void seam_turn_init(void);

#endif /* SEAM_TARGET_TURN_H */
