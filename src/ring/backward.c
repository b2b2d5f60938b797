/* SPDX-License-Identifier: MIT */
/* backward.c - copy first, then ask what of it is true; see backward.h */
#include "ring/backward.h"

#include "ring/bytes.h"

#include <errno.h>
#include <stdlib.h>

int seam_ring_snapshot_init(struct seam_ring_snapshot *shot,
			    size_t data_bytes, struct seam_err *err)
{
	*shot = (struct seam_ring_snapshot) {
		.copy = aligned_alloc(8, data_bytes), .room = data_bytes,
		.is_first = true,
	};
	if (!shot->copy)
		return seam_err_set(err, -ENOMEM,
				    "cannot copy a ring of %zu KiB: "
				    "out of memory", data_bytes / 1024);
	return 0;
}

void seam_ring_snapshot_fini(struct seam_ring_snapshot *shot)
{
	free(shot->copy);
	*shot = (struct seam_ring_snapshot) { 0 };
}

/* Take the records of the first @valid bytes of the copy. */
static size_t walk(struct seam_ring_snapshot *shot, size_t valid)
{
	struct seam_ring_header header;
	size_t pos = 0;

	shot->n_records = 0;
	shot->span = (struct seam_ring_span) {
		.part = { shot->copy, shot->copy }, .size = { valid },
	};
	/* Ends at the zeros of a ring that was never full, too. */
	while (seam_ring_record(&shot->span, pos, &header)) {
		pos += header.size;
		shot->n_records++;
	}
	shot->span.size[0] = pos;
	return pos;
}

/* What came since the last time; all of it when that is unknown. */
static void compare(struct seam_ring_snapshot *shot, uint64_t head)
{
	uint64_t moved = shot->head - head;
	size_t bytes = shot->span.size[0];

	shot->new_bytes = shot->is_first || moved > bytes ? bytes : moved;
	shot->span.end = head + bytes;
	shot->head = head;
	shot->is_first = false;
}

static size_t take(struct seam_ring *ring, struct seam_ring_snapshot *shot,
		   bool own)
{
	uint64_t head, moved = 0;
	size_t bytes;

	shot->span = (struct seam_ring_span) { 0 };
	shot->n_records = shot->new_bytes = 0;
	if (!ring->control || shot->room < ring->size)
		return 0;
	/* acquire: C, pairs with B; the records come after.  Loaded once. */
	head = atomic_load_explicit(&ring->control->data_head,
				    memory_order_acquire) & ~UINT64_C(7);
	seam_ring_load(ring->data, ring->size - 1, head, shot->copy,
		       ring->size);
	if (own) {
		/* F: pairs with E; the copy comes before this load */
		atomic_thread_fence(memory_order_acquire);
		/* relaxed: ordered by the fence */
		moved = head - atomic_load_explicit(
			&ring->control->own.head, memory_order_relaxed);
	}
	bytes = walk(shot, moved < ring->size ? ring->size - moved : 0);
	compare(shot, head);
	return bytes;
}

size_t seam_ring_snapshot(struct seam_ring *ring,
			  struct seam_ring_snapshot *shot)
{
	return take(ring, shot, false);
}

size_t seam_ring_snapshot_own(struct seam_ring *ring,
			      struct seam_ring_snapshot *shot)
{
	return take(ring, shot, true);
}

void seam_ring_pause(struct seam_ring *ring, bool pause)
{
	if (ring->control)
		/* relaxed: a request; what it changes is ordered by F */
		atomic_store_explicit(&ring->control->own.paused, pause,
				      memory_order_relaxed);
}
