/* SPDX-License-Identifier: MIT */
/*
 * claim.h - a thread of the traced program claims a ring
 *
 * Safe in a signal handler: takes no lock, allocates nothing, makes no system
 * call but those that map a ring the first time.
 */
#pragma once

#include "ring/producer/producer.h"
#include "ring/ring_memory.h"

/*
 * A ring that a thread has claimed.  A forked child must not write by its
 * parent's claim: it claims a ring of its own.
 */
struct seam_ring_claim {
	uint32_t slot;
	uint64_t word;		/* of the slot, while the claim holds */
	struct seam_ring_producer ring;
	uint8_t *aux;		/* the AUX buffer; NULL: none */
	uint64_t aux_bytes;	/* of it, a power of two */
};

/*
 * Claim a ring for thread @tid, the caller.  Returns 0, or -ENOSPC when all
 * are taken, which is counted, or no further one can be mapped.  At most
 * n_slots steps; errno may change.
 */
int seam_ring_memory_claim(struct seam_ring_memory *m, uint32_t tid,
			   struct seam_ring_claim *claim);

/* Whether a claim may succeed now; it counts nothing. */
bool seam_ring_memory_has_free(const struct seam_ring_memory *m);

/* The thread writes no further record.  Those in the ring will be read. */
void seam_ring_memory_close(struct seam_ring_memory *m,
			    const struct seam_ring_claim *claim);

/* Count a record that a thread without a ring could not write. */
void seam_ring_memory_lose(struct seam_ring_memory *m);

/* Whether the ring is still the claimer's, and was not taken from it. */
static inline bool seam_ring_memory_is_held(const struct seam_ring_memory *m,
					    const struct seam_ring_claim *c)
{
	/* relaxed: a hint; records written too late are not read */
	return atomic_load_explicit(&m->slots[c->slot].word,
				    memory_order_relaxed) == c->word;
}
