/* SPDX-License-Identifier: MIT */
/*
 * flight_areas.c - slots of threads, their areas, and copies; see its header
 *
 * What a forked child must not have is in one mapping that it finds zeroed
 * (MADV_WIPEONFORK), and the areas are not in it at all (MADV_DONTFORK).  A
 * thread in the child still has its parent's cursor, in a slot that is wiped:
 * 0 is the start of a chunk, so it comes to the slow path, and claims anew.
 *
 * A slot is claimed by its thread and copied by a writer; neither waits.  The
 * writer sets held first: its thread takes nothing back meanwhile, and a thread
 * that claims the slot sees held and gives the slot back.
 */
#include "traced/fdr/flight/flight_areas.h"

#include <errno.h>
#include <linux/membarrier.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "ring/layout.h"
#include "traced/fdr/record/system.h"

enum {
	CHUNK = SEAM_XRAY_CHUNK_BYTES,
	AREA = SEAM_FDR_FLIGHT_AREA_BYTES,
	LOCK_MS = 10000,
};

enum slot_state { FREE, CLAIMED, ENDED };

/* A thread's, which writes all but held and tail. */
struct flight_slot {
	_Atomic uint64_t cursor, reserved;
	_Atomic uint64_t n_lost, n_paused;
	_Atomic uint32_t state;
	_Atomic uint32_t held;		/* not 0: it is being copied */
	_Atomic uint64_t tail;		/* nothing before it is of use */
	uint8_t *bytes;			/* the area; kept for the next thread */
	uint64_t ended_at;		/* order of ends */
} __attribute__((aligned(64)));

/* All of a process; zeroes in a forked child. */
struct flight_slots {
	_Atomic uint64_t n_lost;	/* without an area */
	_Atomic uint64_t n_ends;
	_Atomic bool is_locked;
	struct flight_slot list[SEAM_FDR_FLIGHT_AREAS];
};

static struct flight_slots *slots;
static bool has_membarrier;

/* Where its thread has come to, without the count of records taken back. */
static uint64_t position(struct flight_slot *s)
{
	/* acquire: the records before it; the owner stores it after them */
	return atomic_load_explicit(&s->cursor, memory_order_acquire) &
	       SEAM_RING_AUX_POSITION;
}

/* ---- the source ---- */

static bool take(struct flight_slot *s, uint32_t from)
{
	if (!atomic_compare_exchange_strong(&s->state, &from, CLAIMED))
		return false;
	if (!atomic_load(&s->held))
		return true;
	atomic_store(&s->state, from);
	return false;
}

/* Memory for one slot, once. */
static bool has_memory(struct flight_slot *s)
{
	void *p = s->bytes ? NULL : seam_fdr_map(AREA);

	if (!p)
		return s->bytes;
	/* a hint: what is copied at a fork is only never used */
	madvise(p, AREA, MADV_DONTFORK);
	s->bytes = p;
	return true;
}

static struct flight_slot *take_free(void)
{
	for (uint32_t i = 0; i < SEAM_FDR_FLIGHT_AREAS; i++)
		if (take(&slots->list[i], FREE))
			return &slots->list[i];
	return NULL;
}

/* That of the thread that ended first; by another thread it may be taken. */
static struct flight_slot *take_ended(void)
{
	struct flight_slot *first = NULL;

	for (uint32_t i = 0; i < SEAM_FDR_FLIGHT_AREAS; i++) {
		struct flight_slot *s = &slots->list[i];

		if (atomic_load(&s->state) == ENDED && !atomic_load(&s->held) &&
		    (!first || s->ended_at < first->ended_at))
			first = s;
	}
	return first && take(first, ENDED) ? first : NULL;
}

static int claim(uint32_t tid, struct seam_fdr_area *area)
{
	struct flight_slot *s = slots ? take_free() ?: take_ended() : NULL;
	uint64_t at;

	(void)tid;
	if (s && !has_memory(s)) {
		atomic_store(&s->state, FREE);
		s = NULL;
	}
	if (!s)
		return -ENOSPC;
	/*
	 * A chunk that is not begun, and nothing of the thread before.  The
	 * tail first: a writer reads the cursor, then the tail.
	 */
	at = (position(s) + CHUNK - 1) & ~(uint64_t)(CHUNK - 1);
	atomic_store(&s->tail, at);
	atomic_store(&s->reserved, at);
	atomic_store(&s->cursor, at);
	*area = (struct seam_fdr_area) {
		.bytes = s->bytes, .size = AREA, .cursor = &s->cursor,
		.reserved = &s->reserved, .n_lost = &s->n_lost,
		.n_paused = &s->n_paused, .held = &s->held,
		.slot = (uint32_t)(s - slots->list),
	};
	return 0;
}

static void close_slot(struct seam_fdr_area *area)
{
	struct flight_slot *s = &slots->list[area->slot];

	s->ended_at = atomic_fetch_add(&slots->n_ends, 1);
	atomic_store(&s->state, ENDED);
}

/*
 * A trigger's record.  No recorder takes it; but what led up to it is to be
 * kept, so the areas are frozen until the end.
 */
static bool send(struct seam_fdr_area *area, const void *payload, size_t bytes)
{
	(void)area;
	(void)payload;
	(void)bytes;
	return true;
}

const struct seam_fdr_source seam_fdr_source_flight = {
	.claim = claim, .close = close_slot, .send = send,
};

/* ---- copies ---- */

/*
 * Copy @size bytes at @at, which the thread may overwrite.  False: it has,
 * meanwhile.
 */
static bool copy_chunk(const struct flight_slot *s, uint64_t at, size_t size,
		       uint8_t *to)
{
	memcpy(to, s->bytes + (at & (AREA - 1)), size);
	/* acquire fence: the copy comes before the load; pairs with the
	 * release fence after the owner's store of reserved */
	atomic_thread_fence(memory_order_acquire);
	return atomic_load_explicit(&s->reserved, memory_order_relaxed) <=
	       at + AREA;
}

/* The cursor first: see claim(). */
static int put_slot(struct flight_slot *s, uint8_t *chunk,
		    int (*put)(void *context, const uint8_t *chunk,
			       size_t size),
		    void *context)
{
	uint64_t end = position(s), at = atomic_load(&s->tail);
	int r = 0;

	if (end > at && end - at > AREA)
		at = ((end - 1) & ~(uint64_t)(CHUNK - 1)) + CHUNK - AREA;
	for (; r == 0 && at < end; at += CHUNK) {
		size_t size = end - at < CHUNK ? (size_t)(end - at) : CHUNK;

		if (copy_chunk(s, at, size, chunk))
			r = put(context, chunk, size);
	}
	return r;
}

/* A thread that is taking records back begins again, and sees held. */
static void hold(struct flight_slot *s)
{
	atomic_store(&s->held, 1);
	if (has_membarrier)
		syscall(SYS_membarrier,
			MEMBARRIER_CMD_PRIVATE_EXPEDITED_RSEQ, 0, 0);
}

int seam_fdr_flight_areas_each(int (*put)(void *context, const uint8_t *chunk,
					  size_t size),
			       void *context)
{
	uint8_t *chunk = seam_fdr_map(CHUNK);
	int r = 0;

	if (!chunk)
		return -ENOMEM;
	for (uint32_t i = 0; slots && r == 0 && i < SEAM_FDR_FLIGHT_AREAS;
	     i++) {
		struct flight_slot *s = &slots->list[i];

		if (atomic_load(&s->state) == FREE || !s->bytes)
			continue;
		hold(s);
		r = put_slot(s, chunk, put, context);
		atomic_store(&s->held, 0);
	}
	seam_fdr_unmap(chunk, CHUNK);
	return r;
}

void seam_fdr_flight_areas_discard(void)
{
	for (uint32_t i = 0; slots && i < SEAM_FDR_FLIGHT_AREAS; i++) {
		struct flight_slot *s = &slots->list[i];
		uint64_t at = atomic_load(&s->cursor);
		uint64_t next = (at | (CHUNK - 1)) + 1;

		/* a thread that records all the same is after that */
		if ((at & SEAM_RING_AUX_POSITION) % CHUNK)
			atomic_compare_exchange_strong(&s->cursor, &at, next);
		atomic_store(&s->tail, (position(s) + CHUNK - 1) &
				       ~(uint64_t)(CHUNK - 1));
	}
}

/* ---- counts ---- */

bool seam_fdr_flight_has_records(void)
{
	for (uint32_t i = 0; slots && i < SEAM_FDR_FLIGHT_AREAS; i++) {
		struct flight_slot *s = &slots->list[i];

		if (position(s) > atomic_load(&s->tail))
			return true;
	}
	return false;
}

uint64_t seam_fdr_flight_lost(void)
{
	uint64_t n = slots ? atomic_load(&slots->n_lost) : 0;

	for (uint32_t i = 0; slots && i < SEAM_FDR_FLIGHT_AREAS; i++)
		n += atomic_load(&slots->list[i].n_lost);
	return n;
}

uint64_t seam_fdr_flight_paused(void)
{
	uint64_t n = 0;

	for (uint32_t i = 0; slots && i < SEAM_FDR_FLIGHT_AREAS; i++)
		n += atomic_load(&slots->list[i].n_paused);
	return n;
}

/* ---- begin ---- */

bool seam_fdr_flight_lock(void)
{
	const struct timespec pause = { .tv_nsec = 1000 * 1000 };

	for (int i = 0; slots && i < LOCK_MS; i++) {
		if (!atomic_exchange(&slots->is_locked, true))
			return true;
		nanosleep(&pause, NULL);
	}
	return false;
}

void seam_fdr_flight_unlock(void)
{
	atomic_store(&slots->is_locked, false);
}

int seam_fdr_flight_areas_init(void)
{
	if (!slots)
		slots = seam_fdr_map_per_process(sizeof(*slots));
	if (!slots)
		return -ENOMEM;
	seam_fdr_n_lost = &slots->n_lost;
	has_membarrier = syscall(SYS_membarrier,
			MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED_RSEQ, 0,
			0) == 0;
	return 0;
}
