/* SPDX-License-Identifier: MIT */
/*
 * own_slots.h - what the threads of a program without a recorder write into
 *
 * For source_own.c, which gives slots to threads, and own_chunks.c, which
 * writes what is in them to logs.
 *
 * What a forked child must not have is in one mapping that it finds zeroed
 * (MADV_WIPEONFORK), and the areas are not in it at all (MADV_DONTFORK).  A
 * thread in the child still has its parent's cursor, in a slot that is wiped:
 * 0 is the start of a chunk, so it comes to the slow path, and claims anew.
 */
#ifndef SEAM_FDR_OWN_SLOTS_H
#define SEAM_FDR_OWN_SLOTS_H

#include <stdatomic.h>

#include "ring/layout.h"
#include "traced/fdr/own/own_chunks.h"
#include "traced/fdr/own/source_own.h"

enum seam_fdr_slot_state {
	SEAM_FDR_SLOT_FREE,
	SEAM_FDR_SLOT_CLAIMED,
	SEAM_FDR_SLOT_ENDED,	/* of a flight recorder: its thread has ended */
};

/* A thread's.  Its thread writes, but where @lock says otherwise. */
struct seam_fdr_slot {
	_Atomic uint64_t cursor, reserved;
	_Atomic uint64_t n_lost, n_paused;
	_Atomic uint32_t state;
	/* taken by the thread that writes chunks to a log */
	_Atomic uint32_t lock;
	_Atomic uint32_t held;		/* not 0: it is being copied */
	/* with the lock */
	_Atomic uint64_t tail;		/* written up to here */
	uint8_t *bytes;			/* the area, and a chunk to work in */
	uint64_t ended_at;		/* order of ends */
} __attribute__((aligned(64)));

/* All of a process; zeroes in a forked child. */
struct seam_fdr_slots {
	_Atomic uint64_t n_records, n_lost, n_bad_bytes, n_ends;
	_Atomic int error;		/* -errno of the first failed write */
	_Atomic uint32_t log_lock;	/* of the log, whichever it is */
	struct seam_fdr_slot list[SEAM_FDR_OWN_AREAS];
};

/* What a forked child has too. */
struct seam_fdr_own {
	bool is_flight;
	uint32_t n_slots;		/* of the list, that are used */
	uint64_t area_bytes;		/* a power of two */
	struct seam_xray_log *(*log)(void);	/* seam_fdr_own_begin() */
};

/* Set by seam_fdr_own_begin(); NULL and zeroes before it. */
extern struct seam_fdr_slots *seam_fdr_slots;
extern struct seam_fdr_own seam_fdr_own;

/* Where its thread has come to, without the count of records taken back. */
static inline uint64_t seam_fdr_slot_position(struct seam_fdr_slot *s)
{
	/* acquire: the records before it; the owner stores it after them */
	return atomic_load_explicit(&s->cursor, memory_order_acquire) &
	       SEAM_RING_AUX_POSITION;
}

/* ---- own_chunks.c ---- */

/* Before the first record.  0 or -ENOMEM. */
int seam_fdr_chunks_init(void);

/*
 * Write the whole chunks of @slot to the process' log; @and_rest: the one that
 * its thread was filling too, which has ended.  Without a log they are lost.
 * By the thread of the slot.
 */
void seam_fdr_chunks_write(struct seam_fdr_slot *slot, bool and_rest);

#endif /* SEAM_FDR_OWN_SLOTS_H */
