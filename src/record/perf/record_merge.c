/* SPDX-License-Identifier: MIT */
/* record_merge.c - a heap of rings; see record_merge.h */
#include "record/perf/record_merge.h"

#include "base/heap.h"

#include <linux/perf_event.h>
#include <stdlib.h>

void seam_record_merge_begin(struct seam_record_merge *merge, uint64_t until)
{
	merge->until = until;
	merge->is_begun = false;
	merge->rings.n = merge->heap.n = 0;
}

/* Read the header at pos.  False: the ring has no further record. */
static bool read_header(const struct seam_record_merge *merge,
			struct seam_merge_ring *ring)
{
	size_t size, at;

	if (!seam_ring_record(&ring->span, ring->pos, &ring->header))
		return false;
	size = ring->header.size;
	at = ring->header.type == PERF_RECORD_SAMPLE ?
	     merge->sample_time_pos : size - merge->time_from_end;
	ring->time = 0;		/* at once, where it is too short for a time */
	if (at < size && size - at >= sizeof(ring->time))
		memcpy(&ring->time,
		       seam_ring_bytes(&ring->span, ring->pos + at,
				       sizeof(ring->time), &ring->time),
		       sizeof(ring->time));
	ring->is_cut = ring->time > merge->until;
	return !ring->is_cut;
}

/* Equal times: rings that were added later first. */
static bool is_before(const void *a, const void *b)
{
	const struct seam_merge_ring *x = a, *y = b;

	return x->time < y->time || (x->time == y->time && x > y);
}

bool seam_record_merge_add(struct seam_record_merge *merge,
			   const struct seam_ring_span *span, uint32_t id)
{
	const struct seam_merge_ring ring = { .span = *span, .id = id };

	return SEAM_ARRAY_RESERVE(&merge->heap, merge->rings.n + 1) &&
	       SEAM_ARRAY_ADD(&merge->rings, ring);
}

/* Once all rings are there, and their addresses are final. */
static void fill_heap(struct seam_record_merge *merge)
{
	merge->is_begun = true;
	for (size_t i = 0; i < merge->rings.n; i++) {
		if (!read_header(merge, &merge->rings.items[i]))
			continue;
		merge->heap.items[merge->heap.n] = &merge->rings.items[i];
		seam_heap_rise(merge->heap.items, merge->heap.n++, is_before);
	}
}

struct seam_merge_ring *
seam_record_merge_next(struct seam_record_merge *merge, size_t *pos,
		       struct seam_ring_header *header)
{
	struct seam_merge_ring *ring;

	if (!merge->is_begun)
		fill_heap(merge);
	if (merge->heap.n == 0)
		return NULL;
	ring = merge->heap.items[0];
	*pos = ring->pos;
	*header = ring->header;
	ring->pos += header->size;
	if (!read_header(merge, ring))
		merge->heap.items[0] = merge->heap.items[--merge->heap.n];
	if (merge->heap.n)
		seam_heap_sink(merge->heap.items, merge->heap.n, 0, is_before);
	return ring;
}

void seam_record_merge_fini(struct seam_record_merge *merge)
{
	free(merge->rings.items);
	free(merge->heap.items);
	*merge = (struct seam_record_merge) { 0 };
}
