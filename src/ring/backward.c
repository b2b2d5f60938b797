/* SPDX-License-Identifier: MIT */
/* backward.c - copy first, then drop what changed; see backward.h */
#include "ring/backward.h"

#include "ring/bytes.h"

#include <errno.h>
#include <stdlib.h>

int seam_ring_snapshot_init(struct seam_ring_snapshot *snapshot,
			    size_t data_bytes, struct seam_err *err)
{
	*snapshot = (struct seam_ring_snapshot) {
		.copy = aligned_alloc(8, data_bytes), .room = data_bytes,
		.is_first = true,
	};
	if (!snapshot->copy)
		return seam_err_set(err, -ENOMEM,
				    "cannot copy a ring of %zu KiB: "
				    "out of memory", data_bytes / 1024);
	return 0;
}

void seam_ring_snapshot_fini(struct seam_ring_snapshot *snapshot)
{
	free(snapshot->copy);
	*snapshot = (struct seam_ring_snapshot) { 0 };
}

/* Count the records in the first @valid bytes of the copy. */
static size_t count_records(struct seam_ring_snapshot *snapshot, size_t valid)
{
	struct seam_ring_header header;
	size_t pos = 0;

	snapshot->n_records = 0;
	snapshot->span = (struct seam_ring_span) {
		.part = { snapshot->copy, snapshot->copy }, .size = { valid },
	};
	/* Also ends at the zeros of a ring that was never full. */
	while (seam_ring_record(&snapshot->span, pos, &header)) {
		pos += header.size;
		snapshot->n_records++;
	}
	snapshot->span.size[0] = pos;
	return pos;
}

/* The bytes since the last snapshot; all when that is unknown. */
static void set_new_bytes(struct seam_ring_snapshot *snapshot, uint64_t head)
{
	uint64_t moved = snapshot->head - head;
	size_t bytes = snapshot->span.size[0];

	snapshot->new_bytes =
		snapshot->is_first || moved > bytes ? bytes : moved;
	snapshot->span.end = head + bytes;
	snapshot->head = head;
	snapshot->is_first = false;
}

static size_t take_snapshot(struct seam_ring *ring,
			    struct seam_ring_snapshot *snapshot, bool own)
{
	uint64_t head, moved, valid = ring->size;
	size_t bytes;

	snapshot->span = (struct seam_ring_span) { 0 };
	snapshot->n_records = snapshot->new_bytes = 0;
	if (!ring->control || snapshot->room < ring->size)
		return 0;
	/* acquire: C, pairs with B; the records come after.  Loaded once. */
	head = atomic_load_explicit(&ring->control->data_head,
				    memory_order_acquire) & ~UINT64_C(7);
	seam_ring_load(ring->data, ring->size - 1, head, snapshot->copy,
		       ring->size);
	if (own) {
		/* F: pairs with E; the copy comes before this load */
		atomic_thread_fence(memory_order_acquire);
		/* relaxed: ordered by the fence */
		moved = head - atomic_load_explicit(
			&ring->control->own.head, memory_order_relaxed);
		valid -= moved < valid ? moved : valid;
		/* The bytes from the tail on are an earlier owner's. */
		if (ring->tail - head < valid)
			valid = ring->tail - head;
	}
	bytes = count_records(snapshot, valid);
	set_new_bytes(snapshot, head);
	return bytes;
}

size_t seam_ring_snapshot(struct seam_ring *ring,
			  struct seam_ring_snapshot *snapshot)
{
	return take_snapshot(ring, snapshot, false);
}

size_t seam_ring_snapshot_own(struct seam_ring *ring,
			      struct seam_ring_snapshot *snapshot)
{
	return take_snapshot(ring, snapshot, true);
}

void seam_ring_pause(struct seam_ring *ring, bool pause)
{
	if (ring->control)
		/* relaxed: a request; what it changes is ordered by F */
		atomic_store_explicit(&ring->control->own.paused, pause,
				      memory_order_relaxed);
}
