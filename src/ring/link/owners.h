/* SPDX-License-Identifier: MIT */
/*
 * owners.h - the rings of a memory, and the threads that have claimed them
 *
 *	seam_owners_scan(&o);			each round: new claims
 *	for each o.items[i] with a word: drain its ring; when it is ending and
 *	    the ring is empty: seam_owners_release(&o, i);
 *
 * A slot's word names a thread, and is not trusted: the caller checks that the
 * thread has this memory (record/services/task_tree.h).  The first word seen is
 * copied: later writes of the program can only end the ownership, never change
 * the owner.
 *
 * Threads: one recorder thread.
 */
#pragma once

#include "ring/aux.h"
#include "ring/ring_memory.h"

struct seam_owner {
	uint64_t word;		/* as first seen; 0: the ring has no owner */
	bool is_ending;		/* no further record; drain, then release */
	uint32_t tid;		/* as claimed, not trusted */
	struct seam_ring ring;
	struct seam_ring_aux aux;	/* zeroed without an AUX buffer */
	void *input;		/* the caller's; NULL at first */
};

/* The counts of a ring's owner.  Not trusted. */
struct seam_owner_counts {
	uint64_t n_begun;	/* records delivered, or torn by a death */
	uint64_t n_offered;	/* items produced; 0: records are counted */
	uint64_t n_skipped[SEAM_RING_N_SKIPPED];
	uint64_t n_lost[SEAM_RING_N_LOSSES];
};

struct seam_owners {
	struct seam_ring_memory memory;
	int fd;			/* of the memory; -1: not open */
	uint32_t n_present;	/* slots that have pages: [0, n_present) */
	struct seam_owner *items;	/* one for each slot */
};

/* Make a memory, all slots absent.  -EINVAL: invalid geometry; or -errno. */
int seam_owners_open(struct seam_owners *o,
		     const struct seam_ring_geometry *geometry,
		     struct seam_err *err);

/* Valid after a failed open, and again after itself. */
void seam_owners_close(struct seam_owners *o);

/*
 * Allocate pages for more slots until @n_free are free.  0; or -ENOSPC and the
 * like without memory, and then the slots that are free stay free.
 */
int seam_owners_prepare(struct seam_owners *o, uint32_t n_free,
			struct seam_err *err);

/* How many rings are free.  Cost: one load a slot. */
uint32_t seam_owners_n_free(const struct seam_owners *o);

/*
 * Find new claims and closed rings.  Returns how many changed.
 * Cost: one load a slot.
 */
uint32_t seam_owners_scan(struct seam_owners *o);

/* The counts of the owner of ring @i. */
void seam_owners_counts(const struct seam_owners *o, uint32_t i,
			struct seam_owner_counts *counts);

/* The ring of an ending owner is empty: free the slot for another. */
void seam_owners_release(struct seam_owners *o, uint32_t i);

/*
 * A program can write any event id, process, thread and time into its records.
 * The recorder overwrites them with those of the ring's event and owner, and
 * bounds the time.  It accepts samples only: a program must not report
 * mappings, names or exits, and its losses are taken from the ring's counts.
 */
struct seam_ring_identity {
	uint64_t sample_type;	/* with IDENTIFIER, TID and TIME */
	uint64_t id;		/* of the event */
	uint32_t pid, tid;
	uint64_t min_ns, max_ns;	/* of the time; inclusive */
};

/*
 * Write @identity into @record, a private copy of header->size bytes
 * (seam_ring_copy()).  False when it is no sample, or too short: drop it.
 */
bool seam_ring_set_owner(void *record, const struct seam_ring_header *header,
			 const struct seam_ring_identity *identity);

/* The time in a sample that seam_ring_set_owner() has accepted. */
uint64_t seam_ring_sample_time(const void *record, uint64_t sample_type);
