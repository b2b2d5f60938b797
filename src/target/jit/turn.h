/* SPDX-License-Identifier: MIT */
/*
 * turn.h - one call at a time, for code that lives in somebody else's process
 *
 * A mutex would hang where this must not: in a signal handler that interrupted
 * its own thread's call, in a child forked while another thread was in a call,
 * and after a thread that died in its call, or that a handler threw out of it.
 * So the word that is the lock holds the pid too (a turn taken before a fork
 * is nobody's in the child), the owner is known, and waiting ends:
 *
 *  - the turn of a thread that has died is taken over, and whoever takes it
 *    over is told, because the work of that thread stopped in the middle;
 *  - where the owner lives and does not give the turn for a second, the turn
 *    is stuck, and from then on nobody waits for it until its owner gives it.
 *
 * Also here: the ids of the caller, without a system call each time.
 */
#ifndef SEAM_TARGET_TURN_H
#define SEAM_TARGET_TURN_H

#include "base/base.h"

#include <stdatomic.h>

/* Zeroed: nobody's.  Any thread writes any of it. */
struct seam_turn {
	_Atomic uint64_t word;		/* the owner; see turn.c */
	_Atomic uint32_t n_given;	/* it moves while owners come and go */
	_Atomic uint32_t is_stuck;	/* somebody waited in vain: do not */
};

enum seam_turn_taken {
	SEAM_TURN_FREE,		/* the last owner gave it */
	SEAM_TURN_ABANDONED,	/* the last owner died in its call */
};

/*
 * Take the turn.  One of the above; -EDEADLK when this thread has it; -EBUSY
 * when its owner did not give it for a second, or is known not to.
 */
int seam_turn_take(struct seam_turn *turn);

/*
 * Take it from whoever has it: for the last call of all, when no other thread
 * is in a call.  One of the above.
 */
enum seam_turn_taken seam_turn_seize(struct seam_turn *turn);

void seam_turn_give(struct seam_turn *turn);

/* The process and the thread that run this, right after a fork too. */
int32_t seam_turn_pid(void);
int32_t seam_turn_tid(void);

/* Before anything else; again is harmless. */
void seam_turn_init(void);

#endif /* SEAM_TARGET_TURN_H */
