/* SPDX-License-Identifier: MIT */
/*
 * lock.h - a lock for code that runs inside another program
 *
 * A mutex would hang where this must not: in a signal handler that interrupted
 * its own thread's call, in a child forked while another thread was in a call,
 * and after a thread died in its call, or left it by a handler's exception.
 * So the word that is the lock has the owner's thread and process in it (in a
 * child, a lock taken before the fork is free), and waiting ends:
 *
 *  - the lock of a thread that died is acquired by the next one with
 *    SEAM_LOCK_OWNER_DIED, because the owner's work stopped in the middle;
 *  - where the owner lives and does not release the lock for a second, it is
 *    stuck, and further threads do not wait until the owner releases it.
 *
 * Also here: the ids of the caller, without a system call each time.
 */
#ifndef SEAM_TRACED_LOCK_H
#define SEAM_TRACED_LOCK_H

#include "base/base.h"

#include <stdatomic.h>

/* Zeroed: free.  Any thread writes any of it. */
struct seam_lock {
	_Atomic uint64_t word;		/* the owner; see lock.c */
	_Atomic uint32_t n_released;	/* counts releases */
	_Atomic uint32_t is_stuck;	/* a wait timed out: do not wait */
};

enum seam_lock_state {
	SEAM_LOCK_WAS_FREE,
	SEAM_LOCK_OWNER_DIED,	/* and did not release it */
};

/*
 * Acquire the lock.  Returns one of the above; -EDEADLK when this thread owns
 * it; -EBUSY when its owner did not release it for a second, or it is stuck.
 */
int seam_lock_acquire(struct seam_lock *lock);

/*
 * Acquire it from any owner: for the last call of all, when no other thread is
 * in a call.
 */
enum seam_lock_state seam_lock_seize(struct seam_lock *lock);

void seam_lock_release(struct seam_lock *lock);

/* The process and the thread that run this, right after a fork too. */
int32_t seam_lock_pid(void);
int32_t seam_lock_tid(void);

/* Before anything else; again is harmless. */
void seam_lock_init(void);

#endif /* SEAM_TRACED_LOCK_H */
