/* SPDX-License-Identifier: MIT */
/* source_link.c - see source_link.h */
#include "target/fdr/source_link.h"

#include "ring/producer/local.h"
#include "wire/xray/xray_chunk.h"

#include <errno.h>

enum {
	CHUNK = SEAM_XRAY_CHUNK_BYTES,
	REFUSED = 1,		/* in area->word: counted as without a ring */
};

struct seam_link_client seam_fdr_link = { .socket = -1, .wakeup_fd = -1 };

static struct seam_ring_memory *memory(void)
{
	return &seam_fdr_link.memories[SEAM_FDR_SERVICE_CALLS];
}

int seam_fdr_link_connect(const char *address, int timeout_ms)
{
	int r = seam_link_client_connect(&seam_fdr_link, address,
					 SEAM_FDR_SERVICES, timeout_ms);

	if (r < 0)
		return r;
	if (memory()->head && memory()->geometry.aux_bytes >= 2 * CHUNK)
		return 0;
	seam_link_client_fini(&seam_fdr_link);
	return -ENOPROTOOPT;
}

/* The ring's last owner may have ended within a chunk, which ends here. */
static void begin_at_chunk(const struct seam_ring_claim *claim)
{
	struct seam_ring_control *control = claim->ring.control;
	uint64_t at = seam_local_load(&control->aux_head);

	for (; at % CHUNK; at++)
		claim->aux.buffer[at & (claim->aux.size - 1)] = 0;
	seam_local_store(&control->program.aux_head,
			 at & SEAM_RING_AUX_POSITION);
	/* release: B in ring/producer/aux_producer.c */
	atomic_store_explicit(&control->aux_head, at, memory_order_release);
}

static int claim_ring(uint32_t tid, struct seam_fdr_area *area)
{
	struct seam_ring_control *control;
	struct seam_ring_claim claim;
	int r;

	/* a thread that tries again is counted once */
	if (area->word == REFUSED && !seam_ring_memory_has_free(memory()))
		return -ENOSPC;
	r = seam_link_client_claim(&seam_fdr_link, SEAM_FDR_SERVICE_CALLS, tid,
				   &claim);
	/* the recorder prepares another */
	seam_ring_wakeup_send(&seam_fdr_link.wakeup);
	if (r < 0) {
		area->word = REFUSED;
		return -ENOSPC;
	}
	begin_at_chunk(&claim);
	control = claim.ring.control;
	*area = (struct seam_fdr_area) {
		.bytes = claim.aux.buffer, .size = claim.aux.size,
		.cursor = &control->aux_head,
		.reserved = &control->program.aux_head,
		.tail = claim.aux.free_running ? NULL : &control->aux_tail,
		.n_lost = &control->program.n_skipped[0],
		.held = &control->program.aux_held,
		.n_paused = &control->program.n_skipped[1],
		.wakeup = &seam_fdr_link.wakeup,
		.slot = claim.slot, .word = claim.word, .ring = claim.ring,
	};
	return 0;
}

static void close_ring(struct seam_fdr_area *area)
{
	const struct seam_ring_claim claim = {
		.slot = area->slot, .word = area->word,
	};

	seam_ring_memory_close(memory(), &claim);
	/* for the next thread */
	seam_ring_wakeup_send(&seam_fdr_link.wakeup);
}

static void lose(void)
{
	seam_ring_memory_lose(memory());
}

static bool send(struct seam_fdr_area *area, const void *payload, size_t bytes)
{
	if (seam_ring_write(&area->ring, PERF_RECORD_SAMPLE, 0, payload, bytes))
		return false;
	seam_ring_wakeup_send(area->wakeup);
	return true;
}

const struct seam_fdr_source seam_fdr_source_link = {
	.claim = claim_ring, .close = close_ring, .lose = lose, .send = send,
};
