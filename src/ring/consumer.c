/* SPDX-License-Identifier: MIT */
/*
 * consumer.c - the reading half of the protocol
 *
 * The barriers C and D of doc/design/ring.md are here and in aux.c.  For D the
 * specification names a full barrier; a release is enough, since it orders the
 * loads before it against the store.
 *
 * Source: "Memory synchronization" in Documentation/userspace-api/
 * perf_ring_buffer.rst, section 2.3.4.
 */
#include "ring/consumer.h"

#include "ring/bytes.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

int seam_ring_map(struct seam_ring *ring, int fd, size_t data_bytes,
		  bool overwrite, struct seam_err *err)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	void *p = mmap(NULL, page + data_bytes, overwrite ? PROT_READ :
		       PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

	*ring = (struct seam_ring) { 0 };
	if (p == MAP_FAILED)
		return seam_err_errno(err, "cannot map a ring of %zu KiB",
				      data_bytes / 1024);
	seam_ring_attach(ring, p, page, data_bytes);
	ring->mapped_bytes = page + data_bytes;
	return 0;
}

void seam_ring_attach(struct seam_ring *ring, void *memory, size_t page_bytes,
		      size_t data_bytes)
{
	struct seam_ring_control *control = memory;

	*ring = (struct seam_ring) {
		.control = control,
		.data = (const uint8_t *)memory + page_bytes,
		.size = data_bytes,
		/* relaxed: only the consumer writes it */
		.tail = atomic_load_explicit(&control->data_tail,
					     memory_order_relaxed) &
			~UINT64_C(7),
	};
}

void seam_ring_fini(struct seam_ring *ring)
{
	if (ring->mapped_bytes)
		munmap(ring->control, ring->mapped_bytes);
	*ring = (struct seam_ring) { 0 };
}

/* Free the ring up to @pos. */
static void publish_tail(struct seam_ring *ring, uint64_t pos)
{
	ring->tail = pos;
	/* release: D, pairs with A; our loads of the records come before */
	atomic_store_explicit(&ring->control->data_tail, pos,
			      memory_order_release);
}

size_t seam_ring_peek(struct seam_ring *ring, struct seam_ring_span *span)
{
	uint64_t head, n;

	*span = (struct seam_ring_span) { .end = ring->tail };
	if (!ring->control)
		return 0;
	/* acquire: C, pairs with B; the records come after.  Loaded once. */
	head = atomic_load_explicit(&ring->control->data_head,
				    memory_order_acquire);
	n = head - ring->tail;
	if (n > ring->size || n % 8) {
		/* No record boundary is known: begin at the head. */
		ring->n_resyncs++;
		publish_tail(ring, head & ~UINT64_C(7));
		span->end = ring->tail;
		return 0;
	}
	*span = seam_ring_span_make(ring->data, ring->size, ring->tail, head);
	return n;
}

static const uint8_t *at(const struct seam_ring_span *span, size_t pos)
{
	return pos < span->size[0] ? span->part[0] + pos :
	       span->part[1] + (pos - span->size[0]);
}

bool seam_ring_record(const struct seam_ring_span *span, size_t pos,
		      struct seam_ring_header *header)
{
	size_t left = seam_ring_span_bytes(span) - pos;
	uint64_t word;

	if (left < sizeof(*header))
		return false;
	/*
	 * Positions are multiples of 8, so a header is in one piece.  Loaded
	 * once: the size that is checked is the size that is used.
	 * relaxed: it came with the head, by C.
	 */
	word = atomic_load_explicit((const _Atomic uint64_t *)(const void *)
				    at(span, pos), memory_order_relaxed);
	memcpy(header, &word, sizeof(*header));
	return header->size >= sizeof(*header) && header->size % 8 == 0 &&
	       header->size <= left;
}

const void *seam_ring_bytes(const struct seam_ring_span *span, size_t pos,
			    size_t size, void *scratch)
{
	size_t first;

	if (pos >= span->size[0] || size <= span->size[0] - pos)
		return at(span, pos);
	first = span->size[0] - pos;
	memcpy(scratch, span->part[0] + pos, first);
	memcpy((uint8_t *)scratch + first, span->part[1], size - first);
	return scratch;
}

bool seam_ring_copy(const struct seam_ring_span *span, size_t pos,
		    struct seam_ring_header *header, void *out)
{
	const void *in_place;

	if (!seam_ring_record(span, pos, header))
		return false;
	in_place = seam_ring_bytes(span, pos, header->size, out);
	if (in_place != out)
		memcpy(out, in_place, header->size);
	memcpy(out, header, sizeof(*header));	/* the one that was checked */
	return true;
}

void seam_ring_advance(struct seam_ring *ring,
		       const struct seam_ring_span *span)
{
	if (ring->control && span->end != ring->tail)
		publish_tail(ring, span->end);
}

/* ---- rings that the kernel overwrites ---- */

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
	/* page faults come now, not while the ring is paused */
	memset(snapshot->copy, 0, data_bytes);
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
