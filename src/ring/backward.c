/* SPDX-License-Identifier: MIT */
/* backward.c - copy a ring, find its records; see backward.h */
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

size_t seam_ring_snapshot(struct seam_ring *ring,
			  struct seam_ring_snapshot *snapshot)
{
	struct seam_ring_header header;
	size_t pos = 0;
	uint64_t head;

	snapshot->span = (struct seam_ring_span) { 0 };
	if (!ring->control || snapshot->room < ring->size)
		return 0;
	/* acquire: C, pairs with B; the records come after.  Loaded once. */
	head = atomic_load_explicit(&ring->control->data_head,
				    memory_order_acquire) & ~UINT64_C(7);
	seam_ring_load(ring->data, ring->size - 1, head, snapshot->copy,
		       ring->size);
	snapshot->span = (struct seam_ring_span) {
		.part = { snapshot->copy, snapshot->copy },
		.size = { ring->size },
	};
	/* Also ends at the zeros of a ring that was never full. */
	while (seam_ring_record(&snapshot->span, pos, &header))
		pos += header.size;
	snapshot->span.size[0] = pos;
	snapshot->span.end = head + pos;
	return pos;
}
