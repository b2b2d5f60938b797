/* SPDX-License-Identifier: MIT */
/* record_merge.c - a heap of rings; see record_merge.h */
#include "record/perf/record_merge.h"

#include <linux/perf_event.h>
#include <stdlib.h>

void seam_record_merge_begin(struct seam_record_merge *merge, uint64_t until)
{
	merge->until = until;
	merge->rings.n = merge->heap.n = 0;
}

static uint64_t time_of(const struct seam_record_merge *merge,
			const struct seam_merge_ring *ring)
{
	size_t size = ring->header.size;
	size_t at = ring->header.type == PERF_RECORD_SAMPLE ?
		    merge->sample_time_pos : size - merge->time_from_end;
	uint64_t time;

	/* too short for one: at once */
	if (at >= size || size - at < sizeof(time))
		return 0;
	memcpy(&time, seam_ring_bytes(&ring->span, ring->pos + at,
				      sizeof(time), &time), sizeof(time));
	return time;
}

/* Read the header at pos.  False: the ring has no further record. */
static bool read_header(const struct seam_record_merge *merge,
			struct seam_merge_ring *ring)
{
	if (!seam_ring_record(&ring->span, ring->pos, &ring->header))
		return false;
	ring->time = time_of(merge, ring);
	ring->is_cut = ring->time > merge->until;
	return !ring->is_cut;
}

/* Equal times: rings that were added later first. */
static bool is_before(const struct seam_record_merge *merge, uint32_t a,
		      uint32_t b)
{
	uint64_t x = merge->rings.items[a].time;
	uint64_t y = merge->rings.items[b].time;

	return x < y || (x == y && a > b);
}

static void swap(uint32_t *a, uint32_t *b)
{
	uint32_t t = *a;

	*a = *b;
	*b = t;
}

static void sift_up(struct seam_record_merge *merge, size_t i)
{
	uint32_t *heap = merge->heap.items;

	for (; i > 0 && is_before(merge, heap[i], heap[(i - 1) / 2]);
	     i = (i - 1) / 2)
		swap(&heap[i], &heap[(i - 1) / 2]);
}

static void sift_down(struct seam_record_merge *merge)
{
	uint32_t *heap = merge->heap.items;
	size_t i = 0, n = merge->heap.n;

	for (;;) {
		size_t first = i, left = 2 * i + 1;

		for (size_t c = left; c < n && c <= left + 1; c++)
			if (is_before(merge, heap[c], heap[first]))
				first = c;
		if (first == i)
			return;
		swap(&heap[i], &heap[first]);
		i = first;
	}
}

bool seam_record_merge_add(struct seam_record_merge *merge,
			   const struct seam_ring_span *span, uint32_t id)
{
	struct seam_merge_ring ring = { .span = *span, .id = id };

	if (!SEAM_ARRAY_RESERVE(&merge->heap, 1) ||
	    !SEAM_ARRAY_RESERVE(&merge->rings, 1))
		return false;
	if (read_header(merge, &ring)) {
		merge->heap.items[merge->heap.n++] = (uint32_t)merge->rings.n;
		merge->rings.items[merge->rings.n++] = ring;
		sift_up(merge, merge->heap.n - 1);
	} else {
		merge->rings.items[merge->rings.n++] = ring;
	}
	return true;
}

struct seam_merge_ring *
seam_record_merge_next(struct seam_record_merge *merge, size_t *pos,
		       struct seam_ring_header *header)
{
	struct seam_merge_ring *ring;

	if (merge->heap.n == 0)
		return NULL;
	ring = &merge->rings.items[merge->heap.items[0]];
	*pos = ring->pos;
	*header = ring->header;
	ring->pos += header->size;
	if (!read_header(merge, ring))
		merge->heap.items[0] = merge->heap.items[--merge->heap.n];
	sift_down(merge);
	return ring;
}

void seam_record_merge_fini(struct seam_record_merge *merge)
{
	free(merge->rings.items);
	free(merge->heap.items);
	*merge = (struct seam_record_merge) { 0 };
}
