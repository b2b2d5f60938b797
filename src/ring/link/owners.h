/* SPDX-License-Identifier: MIT */
/*
 * owners.h - who has which ring of a memory, as the recorder finds it
 *
 *	seam_owners_look(&t);			now and then, and when told
 *	for each tenant with a word: drain t.items[i].ring, stamp its records
 *	    with t.items[i].pid and tid; when it is ending and its ring is
 *	    empty: seam_owners_release(&t, i);
 *	seam_owners_check(&t);			once a second: who has died
 *
 * A slot's word says which thread claims the ring.  That is a claim: the
 * program could write any number there.  It is proven when that thread
 * lives, and its process has this very memory mapped, as /proc shows to us;
 * only the program and its forked children can.  A thread that was gone
 * before we looked leaves a ring whose owner is unproven.
 *
 * A claim that is not proven keeps its ring while the claimer may live: two
 * writers in one ring would garble each other's records.  It is looked for
 * again, under the names that threads have in other pid namespaces too, and
 * the ring is free when all of /proc has been seen and it was not there.
 *
 * The recorder's own word is kept aside: whatever a program does to its
 * slot later makes the tenant leave, and never become another.
 *
 * Threads: one recorder thread.
 */
#ifndef SEAM_OWNERS_H
#define SEAM_OWNERS_H

#include "ring/aux.h"
#include "ring/link/proof.h"
#include "ring/ring_memory.h"

#include <sys/types.h>

enum seam_owner_proof {
	SEAM_OWNER_PROVEN,
	SEAM_OWNER_UNPROVEN, /* gone already, or /proc is shut to us */
	SEAM_OWNER_FORGED,   /* the claim stands, and is nobody's */
};

struct seam_owner {
	uint64_t word;		/* as first seen; 0: nobody has this ring */
	bool is_ending;		/* writes no more; drain, then release */
	bool is_orphan;		/* ending because it is dead */
	bool is_sought;         /* within seam_owners_check() */
	enum seam_owner_proof proof;
	uint32_t pid, tid;      /* ours; not proven: 0, and as claimed */
	uint64_t start_time;	/* of the thread, clock ticks; proc(5) */
	struct seam_ring ring;
	struct seam_ring_aux aux;	/* zeroed where there is no area */
	void *drainer;		/* of whoever drains it; NULL at first */
};

/* What a ring's owner says of itself, for loss reports. */
struct seam_owner_counts {
	uint64_t n_begun;	/* delivered + torn by its death */
	uint64_t n_offered;	/* things to tell; 0 where it counts none */
	uint64_t n_lost[SEAM_RING_N_LOSSES];
	uint64_t aux_lost_bytes;
};

struct seam_owners {
	const struct seam_ring_memory *memory;
	int fd;			/* of the memory, borrowed */
	dev_t device;
	ino_t inode;
	uint32_t n_present;	/* slots that have pages: [0, n_present) */
	struct seam_owner *items;	/* one for each slot */
	struct seam_thread_claim *claims; /* as many; to look for */
};

/* Look after @memory, which is @fd.  Both must live as long. */
int seam_owners_init(struct seam_owners *t,
		      const struct seam_ring_memory *memory, int fd,
		      struct seam_err *err);

/* Valid on a zeroed struct. */
void seam_owners_fini(struct seam_owners *t);

/*
 * Give pages to more slots until @n_free are free.  -ENOSPC and the like:
 * there is no memory; what is free stays so.
 */
int seam_owners_prepare(struct seam_owners *t, uint32_t n_free,
			 struct seam_err *err);

/*
 * Take note of new claims and of closed rings.  Returns how many changed.
 * Cost: one load a slot; for a new claim the reading of /proc/PID/maps.
 */
uint32_t seam_owners_look(struct seam_owners *t);

/*
 * Find tenants that have died, by their start time, or who have the memory
 * no more (exec), by @maps too, which reads /proc/PID/maps.  Those that are
 * not proven are looked for again, in all of /proc where need be.  Where
 * /proc cannot be read everybody lives.  Returns how many have died.
 */
uint32_t seam_owners_check(struct seam_owners *t, bool maps);

/* What the owner of ring @i has counted.  Not trusted. */
void seam_owners_counts(const struct seam_owners *t, uint32_t i,
			 struct seam_owner_counts *counts);

/* The ring of an ending tenant is empty: the slot is free for the next. */
void seam_owners_release(struct seam_owners *t, uint32_t i);

#endif /* SEAM_OWNERS_H */
