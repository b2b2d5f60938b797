/* SPDX-License-Identifier: MIT */
/*
 * aux_writer.h - put bytes into an AUX buffer, as a PMU or a traced program
 *
 * Barriers are those of doc/design/ring.md.  A buffer that is drained gets an
 * AUX record {offset, size, flags} in @ring for each chunk, with the flag
 * TRUNCATED where not all fitted.
 */
#ifndef AUX_WRITER_H
#define AUX_WRITER_H

#include "ring/bytes.h"
#include "ring/producer/producer.h"

struct aux_writer {
	struct seam_ring_producer *ring;
	uint8_t *buffer;
	uint64_t size, pos;
	bool free_running;
};

static inline void aux_writer_init(struct aux_writer *w,
				   struct seam_ring_producer *ring,
				   void *buffer, size_t size,
				   bool free_running)
{
	uint64_t head = atomic_load(&ring->control->aux_head);

	*w = (struct aux_writer) { ring, buffer, size, head, free_running };
	atomic_store(&ring->control->program.aux_head, head);
}

static inline void aux_put_record(struct aux_writer *w, uint64_t offset,
				  uint64_t size, uint64_t flags)
{
	const uint64_t words[] = { offset, size, flags };

	seam_ring_write(w->ring, PERF_RECORD_AUX, 0, words, sizeof(words));
}

static inline uint64_t aux_room(const struct aux_writer *w)
{
	uint64_t used;

	if (w->free_running)
		return UINT64_MAX;
	/* acquire: A, pairs with D */
	used = w->pos - atomic_load_explicit(&w->ring->control->aux_tail,
					     memory_order_acquire);
	return used < w->size ? w->size - used : 0;
}

/* One chunk of @n bytes; how many of them were taken. */
static inline size_t aux_write(struct aux_writer *w, const void *bytes,
			       size_t n)
{
	struct seam_ring_control *control = w->ring->control;
	uint64_t start = w->pos, room = aux_room(w);
	size_t taken = n < room ? n : room;
	/* of more than the buffer's size only the end is left */
	size_t skip = taken > w->size ? taken - w->size : 0;

	atomic_store_explicit(&control->program.aux_head, start + taken,
			      memory_order_relaxed);
	/* E: pairs with F */
	atomic_thread_fence(memory_order_release);
	seam_ring_test_point();
	seam_ring_store(w->buffer, w->size - 1, start + skip,
			(const uint8_t *)bytes + skip, taken - skip);
	seam_ring_test_point();
	w->pos += taken;
	/* release: B, pairs with C */
	atomic_store_explicit(&control->aux_head, w->pos, memory_order_release);
	if (!w->free_running)
		aux_put_record(w, start, taken,
			       taken < n ? PERF_AUX_FLAG_TRUNCATED : 0);
	return taken;
}

#endif /* AUX_WRITER_H */
