/* SPDX-License-Identifier: MIT */
/* claim.c - take a free slot by compare-and-swap; see claim.h */
#include "ring/producer/claim.h"

#include "ring/producer/local.h"

#include <errno.h>

static void open_ring(const struct seam_ring_geometry *geometry, void *ring,
		      struct seam_ring_claim *c)
{
	struct seam_ring_control *control = ring;
	uint8_t *memory = ring;

	seam_ring_producer_init(&c->ring, memory, SEAM_RING_PAGE,
				geometry->data_bytes, geometry->mode);
	if (geometry->watermark)
		c->ring.watermark = geometry->watermark;
	if (!geometry->aux_bytes)
		return;
	c->aux = memory + SEAM_RING_PAGE + geometry->data_bytes;
	c->aux_bytes = geometry->aux_bytes;
	/* nothing is reserved beyond the last owner's bytes */
	seam_local_store(&control->program.aux_head,
			 seam_local_load(&control->aux_head));
}

int seam_ring_memory_claim(struct seam_ring_memory *m, uint32_t tid,
			   struct seam_ring_claim *claim)
{
	uint32_t n = m->head ? m->geometry.n_slots : 0;
	bool is_short = false;

	for (uint32_t i = 0; i < n; i++) {
		/* relaxed: the exchange below decides */
		uint64_t word = atomic_load_explicit(&m->slots[i].word,
						     memory_order_relaxed);
		uint64_t mine = (word & 0xffffff00) |
				seam_ring_word(SEAM_RING_CLAIMED, 0, tid);
		void *ring;

		if (seam_ring_word_state(word) != SEAM_RING_FREE)
			continue;
		ring = seam_ring_memory_control(m, i);
		if (!ring) {
			is_short = true;
			continue;
		}
		/*
		 * acquire: pairs with the release in set_free(), owners.c:
		 * the ring is as the recorder prepared it
		 */
		if (!atomic_compare_exchange_strong_explicit(
				&m->slots[i].word, &word, mine,
				memory_order_acq_rel, memory_order_relaxed))
			continue;
		*claim = (struct seam_ring_claim) { .slot = i, .word = mine };
		open_ring(&m->geometry, ring, claim);
		return 0;
	}
	/* more rings would help */
	if (m->head && !is_short)
		/* relaxed: a count */
		atomic_fetch_add_explicit(&m->head->n_unclaimed, 1,
					  memory_order_relaxed);
	return -ENOSPC;
}

bool seam_ring_memory_has_free(const struct seam_ring_memory *m)
{
	for (uint32_t i = 0; m->head && i < m->geometry.n_slots; i++)
		/* relaxed: a hint */
		if (seam_ring_word_state(atomic_load_explicit(
				&m->slots[i].word, memory_order_relaxed)) ==
		    SEAM_RING_FREE)
			return true;
	return false;
}

void seam_ring_memory_close(struct seam_ring_memory *m,
			    const struct seam_ring_claim *claim)
{
	uint64_t word = claim->word;
	uint64_t closed = (word & ~UINT64_C(0xff)) | SEAM_RING_CLOSED;

	/*
	 * release: pairs with the acquire in load_word(), owners.c; our last
	 * record comes before it.  A slot that was taken from us stays so.
	 */
	atomic_compare_exchange_strong_explicit(&m->slots[claim->slot].word,
						&word, closed,
						memory_order_release,
						memory_order_relaxed);
}

void seam_ring_memory_lose(struct seam_ring_memory *m)
{
	if (m->head)
		/* relaxed: a count */
		atomic_fetch_add_explicit(&m->head->n_lost, 1,
					  memory_order_relaxed);
}
