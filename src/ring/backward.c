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

/* Limit the span to the whole records in the first @valid bytes of the copy. */
static size_t find_records(struct seam_ring_snapshot *snapshot, size_t valid)
{
	struct seam_ring_header header;
	size_t pos = 0;

	snapshot->span = (struct seam_ring_span) {
		.part = { snapshot->copy, snapshot->copy }, .size = { valid },
	};
	/* Also ends at the zeros of a ring that was never full. */
	while (seam_ring_record(&snapshot->span, pos, &header))
		pos += header.size;
	snapshot->span.size[0] = pos;
	return pos;
}

size_t seam_ring_snapshot(struct seam_ring *ring,
			  struct seam_ring_snapshot *snapshot,
			  bool of_a_program)
{
	uint64_t head, moved, valid = ring->size;
	size_t bytes;

	snapshot->span = (struct seam_ring_span) { 0 };
	if (!ring->control || snapshot->room < ring->size)
		return 0;
	/* acquire: C, pairs with B; the records come after.  Loaded once. */
	head = atomic_load_explicit(&ring->control->data_head,
				    memory_order_acquire) & ~UINT64_C(7);
	seam_ring_load(ring->data, ring->size - 1, head, snapshot->copy,
		       ring->size);
	if (of_a_program) {
		/* F: pairs with E; the copy comes before this load */
		atomic_thread_fence(memory_order_acquire);
		/* relaxed: ordered by the fence */
		moved = head - atomic_load_explicit(
			&ring->control->program.head, memory_order_relaxed);
		valid -= moved < valid ? moved : valid;
		/* The bytes from the tail on are an earlier owner's. */
		if (ring->tail - head < valid)
			valid = ring->tail - head;
	}
	bytes = find_records(snapshot, valid);
	snapshot->span.end = head + bytes;
	return bytes;
}

void seam_ring_pause(struct seam_ring_control *control, bool pause)
{
	/* relaxed: a request; what it changes is ordered by F */
	atomic_store_explicit(&control->program.paused, pause,
			      memory_order_relaxed);
}
