/* SPDX-License-Identifier: MIT */
/*
 * owners.h - which thread owns which ring of a memory
 *
 *	seam_owners_scan(&o);			each round: new claims
 *	for each o.items[i] with a word: drain its ring; when it is ending and
 *	    the ring is empty: seam_owners_release(&o, i);
 *	seam_owners_check(&o, maps);		once a second: which are dead
 *
 * A slot's word names the thread that claims the ring.  The program can write
 * any number there, so the claim is checked in /proc, with one of 3 results:
 *
 *	VERIFIED	that thread lives, and its process has this memory
 *			mapped, as only the program and its children can
 *	REFUTED		that thread lives, and has not
 *	UNVERIFIED	it is dead already, or /proc cannot be read
 *
 * An unverified claim can still be resolved from the side-band, which is the
 * caller's part: record/services/task_history.h.
 *
 * A claim that is not verified keeps its ring while the claimer may live: two
 * writers in one ring would destroy each other's records.  It is checked
 * again, also under the ids that threads have in other pid namespaces, and
 * the ring is ending when all of /proc was read without finding the claimer.
 *
 * The word is copied when it is first seen: whatever a program writes to its
 * slot later can only end the ownership, never change the owner.
 *
 * Threads: one recorder thread.
 */
#ifndef SEAM_OWNERS_H
#define SEAM_OWNERS_H

#include "ring/aux.h"
#include "ring/link/thread_identity.h"
#include "ring/ring_memory.h"

#include <sys/types.h>

enum seam_owner_status {
	SEAM_OWNER_VERIFIED,
	SEAM_OWNER_UNVERIFIED,
	SEAM_OWNER_REFUTED,
};

struct seam_owner {
	uint64_t word;		/* as first seen; 0: the ring has no owner */
	bool is_ending;		/* no further record; drain, then release */
	bool is_dead;		/* ending without having closed the ring */
	enum seam_owner_status status;
	uint32_t pid, tid;	/* not verified: 0, and as claimed */
	uint64_t start_time;	/* of the thread, clock ticks; proc(5) */
	struct seam_ring ring;
	struct seam_ring_aux aux;	/* zeroed without an AUX buffer */
	void *input;		/* the caller's; NULL at first */
	bool is_ours;		/* the caller's, see seam_owners_check() */
};

/* What the owner of a ring has counted.  Not trusted. */
struct seam_owner_counts {
	uint64_t n_begun;	/* records delivered, or torn by its death */
	uint64_t n_offered;	/* items produced; 0: it counts records */
	uint64_t n_skipped[SEAM_RING_N_SKIPPED];
	uint64_t n_lost[SEAM_RING_N_LOSSES];
};

struct seam_owners {
	const struct seam_ring_memory *memory;
	int fd;			/* of the memory, borrowed */
	dev_t device;
	ino_t inode;
	uint32_t n_present;	/* slots that have pages: [0, n_present) */
	struct seam_owner *items;	/* one for each slot */
	struct seam_thread_claim *claims;	/* scratch, as many */
};

/* Begin with @memory, which is @fd.  Both must live as long. */
int seam_owners_init(struct seam_owners *o,
		     const struct seam_ring_memory *memory, int fd,
		     struct seam_err *err);

/* Valid on a zeroed struct. */
void seam_owners_fini(struct seam_owners *o);

/*
 * Allocate pages for more slots until @n_free are free.  -ENOSPC and the
 * like: there is no memory; free slots stay free.
 */
int seam_owners_prepare(struct seam_owners *o, uint32_t n_free,
			struct seam_err *err);

/* How many rings are free.  Cost: one load a slot. */
uint32_t seam_owners_n_free(const struct seam_owners *o);

/*
 * Find new claims and closed rings.  Returns how many changed.
 * Cost: one load a slot; for a new claim the reading of /proc/PID/maps.
 */
uint32_t seam_owners_scan(struct seam_owners *o);

/*
 * Find owners that have died, by their start time; with @maps also those that
 * no longer have the memory (exec), by reading /proc/PID/maps.  Claims that
 * are not verified are checked again, in all of /proc unless the caller knows
 * that the claimer's id is of our pid namespace.  Where /proc cannot be read,
 * all live.  Returns how many have died.
 */
uint32_t seam_owners_check(struct seam_owners *o, bool maps);

/* The counts of the owner of ring @i. */
void seam_owners_counts(const struct seam_owners *o, uint32_t i,
			struct seam_owner_counts *counts);

/* The ring of an ending owner is empty: free the slot for another. */
void seam_owners_release(struct seam_owners *o, uint32_t i);

#endif /* SEAM_OWNERS_H */
