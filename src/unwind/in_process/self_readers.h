/* SPDX-License-Identifier: MIT */
/*
 * self_readers.h - handlers that read what the owner's thread replaces
 *
 * The tables are published as one immutable object.  The owner replaces it and
 * frees the old one when no handler can have it: epoch-based reclamation.
 * Each thread has a slot in which its handler announces the epoch.
 *
 *	handler					owner
 *	A: slot.epoch = epoch			C: current = new
 *	B: use current				D: retired = epoch++
 *	...					E: read slot.epoch of all
 *	slot.epoch = 0				F: free what was retired
 *
 * All are sequentially consistent.  An owner that sees 0 at E precedes A, so
 * B is after C and sees the new object; one that sees an epoch above
 * .retired was announced after D, with the same result.
 *
 * What else may happen to a thread:
 *  - A signal interrupts its walk, and that handler walks as well: the outer
 *    announcement holds for both.
 *  - A walk is left by longjmp() of such a handler: the next walk on the same
 *    stack, at the same or a higher address, replaces the announcement.
 *  - It ends: the owner frees slots of threads that do not exist; where it
 *    is too slow for the program's threads, a new one takes such a slot.
 *  - It forks: the child's slots are zeroed by the kernel (MADV_WIPEONFORK,
 *    Linux 4.14), and its thread claims a new one at its next walk.
 *
 * A slot costs 64 bytes; a thread without one (more than SEAM_SELF_SLOTS live
 * ones have walked) walks without tables.
 */
#pragma once

#include <stdatomic.h>

#include "unwind/in_process/self_memory.h"

enum { SEAM_SELF_SLOTS = 4096 };

struct seam_self_slot {
	/*
	 * Thread id and a serial number; 0: free.  A thread claims it, the
	 * owner frees it; both by compare and exchange.
	 */
	_Alignas(64) _Atomic uint64_t thread;
	_Atomic uint64_t epoch;		/* its thread writes; 0: no walk */
};

/* In memory that is zeroes in a forked child. */
struct seam_self_process {
	_Atomic uint32_t is_owned;	/* an owner's call is running */
	uint32_t n_refreshes;		/* the owner's; 0: none here yet */
	struct seam_self_slot slots[SEAM_SELF_SLOTS];
};

/*
 * Of this thread; only it reads and writes.  Within the space for
 * initial-exec variables that libc keeps for libraries loaded at run time.
 */
struct seam_self_thread {
	struct seam_self_slot *slot;
	uint64_t slot_thread;		/* ->thread while the slot is ours */
	struct seam_self_range stack;	/* empty: not known */
	_Atomic uint64_t entered;	/* frame of the outermost walk, or 0 */
};

extern __thread struct seam_self_thread seam_self_thread
	__attribute__((tls_model("initial-exec")));

/* Set once, by seam_self_readers_init(). */
extern _Atomic(struct seam_self_process *) seam_self_process;

/* What handlers read. */
extern _Atomic(const struct seam_self_images *) seam_self_current;

/* 0; again is harmless.  Not in a handler. */
int seam_self_readers_init(void);

/* A walk that was announced, or not: then nothing shared may be used. */
struct seam_self_visit {
	bool is_announced;
	bool is_outermost;
	const struct seam_self_images *images;	/* NULL: none are published */
};

/*
 * Announce a walk whose frame is at @here; @alternate: uc_stack of the
 * context.  What is used after seam_self_leave() may be gone.
 */
struct seam_self_visit seam_self_enter(uint64_t here,
				       const stack_t *alternate);
void seam_self_leave(const struct seam_self_visit *visit);

/* Of the owner: free slots of dead threads, after each thousand of new ones. */
void seam_self_free_slots(void);

/* Of the owner: what was replaced before this call; see seam_self_unused(). */
uint64_t seam_self_retire(void);

/* Whether no handler can have what was retired at @epoch.  Bounded work. */
bool seam_self_unused(uint64_t epoch);
