/* SPDX-License-Identifier: MIT */
/* source_own.c - slots of threads and their areas; see source_own.h */
#include "traced/fdr/own/source_own.h"

#include <errno.h>
#include <sys/mman.h>

#include "traced/fdr/own/own_slots.h"
#include "traced/fdr/record/map_memory.h"
#include "traced/fdr/record/short_lock.h"
#include "traced/fdr/record/system.h"

enum { CHUNK = SEAM_XRAY_CHUNK_BYTES };

struct seam_fdr_slots *seam_fdr_slots;
struct seam_fdr_own seam_fdr_own;

/* ---- slots ---- */

static bool take(struct seam_fdr_slot *s, uint32_t from)
{
	/* acquire: what the last owner did; pairs with the release in give() */
	return atomic_compare_exchange_strong_explicit(&s->state, &from,
			SEAM_FDR_SLOT_CLAIMED, memory_order_acquire,
			memory_order_relaxed);
}

static void give(struct seam_fdr_slot *s, uint32_t state)
{
	atomic_store_explicit(&s->state, state, memory_order_release);
}

/* Memory for one slot, once; the areas are kept for the next thread. */
static bool has_memory(struct seam_fdr_slot *s)
{
	size_t bytes = seam_fdr_own.area_bytes + CHUNK;
	void *p;

	if (s->bytes)
		return true;
	p = seam_fdr_map(bytes);
	if (!p)
		return false;
	/* a hint: what is copied at a fork is only never used */
	madvise(p, bytes, MADV_DONTFORK);
	s->bytes = p;
	return true;
}

static struct seam_fdr_slot *take_free(void)
{
	for (uint32_t i = 0; i < seam_fdr_own.n_slots; i++)
		if (take(&seam_fdr_slots->list[i], SEAM_FDR_SLOT_FREE))
			return &seam_fdr_slots->list[i];
	return NULL;
}

static bool has_ended(const struct seam_fdr_slot *s)
{
	/* relaxed: take() decides */
	return atomic_load_explicit(&s->state, memory_order_relaxed) ==
	       SEAM_FDR_SLOT_ENDED;
}

/* That of the thread that ended first. */
static struct seam_fdr_slot *take_ended(void)
{
	struct seam_fdr_slot *first;

	do {
		first = NULL;
		for (uint32_t i = 0; i < seam_fdr_own.n_slots; i++) {
			struct seam_fdr_slot *s = &seam_fdr_slots->list[i];

			if (has_ended(s) &&
			    (!first || s->ended_at < first->ended_at))
				first = s;
		}
	} while (first && !take(first, SEAM_FDR_SLOT_ENDED));
	return first;
}

/* ---- the source ---- */

static int claim(uint32_t tid, struct seam_fdr_area *area)
{
	struct seam_fdr_slot *s = NULL;

	(void)tid;
	if (seam_fdr_slots)
		s = take_free() ?: take_ended();
	if (!s)
		return -ENOSPC;
	if (!has_memory(s)) {
		give(s, SEAM_FDR_SLOT_FREE);
		return -ENOSPC;
	}
	seam_fdr_short_lock(&s->lock);
	/* a chunk that is not begun, and nothing of the thread before */
	atomic_store(&s->cursor, (seam_fdr_slot_position(s) + CHUNK - 1) &
				 ~(uint64_t)(CHUNK - 1));
	atomic_store(&s->tail, seam_fdr_slot_position(s));
	atomic_store(&s->reserved, seam_fdr_slot_position(s));
	seam_fdr_short_unlock(&s->lock);
	*area = (struct seam_fdr_area) {
		.bytes = s->bytes, .size = seam_fdr_own.area_bytes,
		.cursor = &s->cursor, .reserved = &s->reserved,
		.tail = seam_fdr_own.is_flight ? NULL : &s->tail,
		.n_lost = &s->n_lost, .n_paused = &s->n_paused,
		.held = &s->held, .makes_room = !seam_fdr_own.is_flight,
		.slot = (uint32_t)(s - seam_fdr_slots->list),
	};
	return 0;
}

/* The area is full: its thread writes it.  Signals are not blocked. */
static bool make_room(struct seam_fdr_area *area)
{
	seam_fdr_chunks_write(&seam_fdr_slots->list[area->slot], false);
	/* or another thread has written them */
	return true;
}

static void close_slot(struct seam_fdr_area *area)
{
	struct seam_fdr_slot *s = &seam_fdr_slots->list[area->slot];

	if (seam_fdr_own.is_flight)
		s->ended_at = atomic_fetch_add(&seam_fdr_slots->n_ends, 1);
	else
		seam_fdr_chunks_write(s, true);
	give(s, seam_fdr_own.is_flight ? SEAM_FDR_SLOT_ENDED :
					 SEAM_FDR_SLOT_FREE);
}

/*
 * A trigger's record.  No recorder takes it; but what led up to it is to be
 * kept, so a flight recorder is frozen until its end.
 */
static bool send(struct seam_fdr_area *area, const void *payload, size_t bytes)
{
	(void)area;
	(void)payload;
	(void)bytes;
	return seam_fdr_own.is_flight;
}

const struct seam_fdr_source seam_fdr_source_own = {
	.claim = claim, .close = close_slot,
	.make_room = make_room, .send = send,
};

/* ---- begin ---- */

int seam_fdr_own_begin(bool is_flight, struct seam_xray_log *(*log)(void))
{
	struct seam_fdr_own *own = &seam_fdr_own;
	int r = seam_fdr_chunks_init();

	if (r)
		return r;
	if (seam_fdr_slots && is_flight != own->is_flight)
		return -EINVAL;
	if (!seam_fdr_slots)
		seam_fdr_slots =
			seam_fdr_map_per_process(sizeof(*seam_fdr_slots));
	if (!seam_fdr_slots)
		return -ENOMEM;
	seam_fdr_n_lost = &seam_fdr_slots->n_lost;
	own->is_flight = is_flight;
	own->log = log;
	own->area_bytes = is_flight ? SEAM_FDR_OWN_FLIGHT_BYTES :
				      SEAM_FDR_OWN_AREA_BYTES;
	own->n_slots = (uint32_t)(SEAM_FDR_OWN_BYTES / own->area_bytes);
	if (own->n_slots > SEAM_FDR_OWN_AREAS)
		own->n_slots = SEAM_FDR_OWN_AREAS;
	return 0;
}
