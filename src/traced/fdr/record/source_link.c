/* SPDX-License-Identifier: MIT */
/* source_link.c - see source.h */
#include "traced/fdr/record/fdr_thread.h"

#include "ring/producer/local.h"
#include "traced/fdr/record/system.h"
#include "wire/xray/trace_service.h"
#include "wire/xray/xray_chunk.h"

#include <errno.h>
#include <unistd.h>

enum {
	CHUNK = SEAM_XRAY_CHUNK_BYTES,
	REFUSED = 1,		/* in area->word: counted as without a ring */
};

struct seam_link_client seam_fdr_link = { .wakeup_fd = -1 };

static struct seam_ring_memory *memory(void)
{
	return &seam_fdr_link.memories[SEAM_FDR_SERVICE_CALLS];
}

/* The ring's last owner may have ended within a chunk: end that chunk. */
static void begin_at_chunk(struct seam_fdr_area *area)
{
	uint64_t at = seam_local_load(area->cursor);

	for (; at % CHUNK; at++)
		area->bytes[at & (area->size - 1)] = 0;
	seam_local_store(area->reserved, at & SEAM_RING_AUX_POSITION);
	/* release: B of doc/design/ring.md */
	atomic_store_explicit(area->cursor, at, memory_order_release);
}

/*
 * Rings of this process whose threads have ended, for its next threads, whose
 * chunks begin with their own ids.  The recorder, which may be slow, frees no
 * such ring before the process ends.  Zeroed in a forked child.
 */
struct idle_rings {
	_Atomic uint64_t bits[SEAM_RING_MAX_SLOTS / 64];
	struct seam_fdr_area areas[SEAM_RING_MAX_SLOTS];
};

static struct idle_rings *idle;		/* NULL: each ring is closed */

static void put_idle(const struct seam_fdr_area *area)
{
	idle->areas[area->slot] = *area;
	/* release: pairs with the acquire in take_slot() */
	atomic_fetch_or_explicit(&idle->bits[area->slot / 64],
				 UINT64_C(1) << area->slot % 64,
				 memory_order_release);
}

/* Ring @slot, if it is idle and at most @most bytes of it are unread. */
static bool take_slot(uint32_t slot, uint64_t most, struct seam_fdr_area *area)
{
	uint64_t bit = UINT64_C(1) << slot % 64, end, tail;
	struct seam_fdr_area found;

	/* acquire: pairs with the release in put_idle() */
	if (!(atomic_fetch_and_explicit(&idle->bits[slot / 64], ~bit,
					memory_order_acquire) & bit))
		return false;
	found = idle->areas[slot];
	if (!seam_ring_memory_is_held(memory(), &(struct seam_ring_claim) {
				.slot = slot, .word = found.word }))
		return false;
	end = seam_local_load(found.cursor) & SEAM_RING_AUX_POSITION;
	/* relaxed: a hint */
	tail = atomic_load_explicit(found.tail, memory_order_relaxed);
	if (end - tail > most) {
		put_idle(&found);
		return false;
	}
	*area = found;
	return true;
}

static bool take_idle(uint64_t most, struct seam_fdr_area *area)
{
	for (uint32_t i = 0; idle && i < SEAM_RING_MAX_SLOTS / 64; i++) {
		/* relaxed: a hint */
		uint64_t bits = atomic_load_explicit(&idle->bits[i],
						     memory_order_relaxed);

		for (; bits; bits &= bits - 1)
			if (take_slot(i * 64 + (uint32_t)__builtin_ctzll(bits),
				      most, area))
				return true;
	}
	return false;
}

/* For @owner: a thread, or a process whose later threads use the ring. */
static int take_free(uint32_t owner, struct seam_fdr_area *area)
{
	struct seam_ring_control *control;
	_Atomic uint64_t *skipped;
	struct seam_ring_claim claim;
	int r;

	/* a thread that tries again is counted once */
	if (area->word == REFUSED && !seam_ring_memory_has_free(memory()))
		return -ENOSPC;
	r = seam_link_client_claim(&seam_fdr_link, SEAM_FDR_SERVICE_CALLS,
				   owner, &claim);
	/* the recorder prepares another */
	seam_ring_wakeup_send(&seam_fdr_link.wakeup);
	if (r < 0) {
		area->word = REFUSED;
		return -ENOSPC;
	}
	control = claim.ring.control;
	skipped = control->program.n_skipped;
	*area = (struct seam_fdr_area) {
		.bytes = claim.aux, .size = claim.aux_bytes,
		.cursor = &control->aux_head,
		.reserved = &control->program.aux_head,
		.tail = memory()->geometry.aux_free_running ? NULL :
			&control->aux_tail,
		.n_lost = &skipped[SEAM_TRACE_SKIPPED_FULL],
		.held = &control->program.aux_held,
		.n_paused = &skipped[SEAM_TRACE_SKIPPED_FROZEN],
		.wakeup = &seam_fdr_link.wakeup,
		.wakeup_at = seam_local_load(&control->aux_head),
		.slot = claim.slot, .word = claim.word, .ring = claim.ring,
	};
	return 0;
}

static int claim_ring(uint32_t tid, struct seam_fdr_area *area)
{
	if (!memory()->head)
		return -ENOSPC;
	if (idle)
		tid = seam_fdr_states_pid();
	/* where the recorder is slow, rather another ring than a full ring */
	if (!take_idle(memory()->geometry.aux_bytes / 2, area) &&
	    (seam_ring_memory_has_free(memory()) ||
	     !take_idle(UINT64_MAX, area)) &&
	    take_free(tid, area))
		return -ENOSPC;
	begin_at_chunk(area);
	/* threads that have had the ring */
	seam_local_add(&area->ring.control->program.n_offered, 1);
	return 0;
}

static void close_ring(struct seam_fdr_area *area)
{
	const struct seam_ring_claim claim = {
		.slot = area->slot, .word = area->word,
	};

	if (idle) {
		put_idle(area);
		return;
	}
	seam_ring_memory_close(memory(), &claim);
	/* for the next thread */
	if (seam_fdr_may_call_system())
		seam_ring_wakeup_send(&seam_fdr_link.wakeup);
}

static bool send(struct seam_fdr_area *area, const void *payload, size_t bytes)
{
	if (seam_ring_write(&area->ring, PERF_RECORD_SAMPLE, 0, payload, bytes))
		return false;
	seam_ring_wakeup_send(area->wakeup);
	return true;
}

/* Idle rings of a connection before are forgotten. */
static void prepare_idle(void)
{
	if (!idle)
		idle = seam_fdr_map_per_process(sizeof(*idle));
	for (size_t i = 0; idle && i < SEAM_RING_MAX_SLOTS / 64; i++)
		atomic_store(&idle->bits[i], 0);
}

int seam_fdr_link_connect(const char *address, int timeout_ms)
{
	int r = seam_link_client_connect(&seam_fdr_link, address,
					 SEAM_TRACE_SERVICES, timeout_ms);

	if (r < 0)
		return r;
	if (memory()->head && memory()->geometry.aux_bytes >= 2 * CHUNK) {
		/* a flight recorder keeps the newest calls of each thread */
		if (!memory()->geometry.aux_free_running)
			prepare_idle();
		seam_fdr_n_lost = &memory()->head->n_lost;
		return 0;
	}
	seam_link_client_fini(&seam_fdr_link);
	return -ENOPROTOOPT;
}

void seam_fdr_link_leave(void)
{
	for (int i = 0; i < SEAM_LINK_MAX_SERVICES; i++)
		seam_ring_memory_abandon(&seam_fdr_link.memories[i]);
	/* relaxed: the zeroes bring threads to where it is read */
	atomic_fetch_add_explicit(&seam_fdr_connection, 1,
				  memory_order_relaxed);
	if (seam_ring_wakeup_is_intact(&seam_fdr_link.wakeup))
		close(seam_fdr_link.wakeup_fd);
	seam_fdr_link.wakeup.fd = seam_fdr_link.wakeup_fd = -1;
}

const struct seam_fdr_source seam_fdr_source_link = {
	.claim = claim_ring, .close = close_ring, .send = send,
};
