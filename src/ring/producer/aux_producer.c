/* SPDX-License-Identifier: MIT */
/*
 * aux_producer.c - the writing half of the AUX buffer
 *
 * Barriers are those of the table in producer.c with aux_head and aux_tail
 * in place of the data's.  The reservation, program.aux_head, is ahead of
 * aux_head while bytes are being stored.
 *
 * aux_head is published before the AUX record: a reader that sees the record
 * can read the bytes it describes.  (The kernel writes the record first, and
 * its reader must read the buffer later.)
 */
#include "ring/producer/aux_producer.h"

#include "ring/bytes.h"
#include "ring/producer/local.h"

#include <errno.h>

static struct seam_ring_state *
state_of(const struct seam_ring_aux_producer *aux)
{
	return &aux->ring->control->program;
}

/* relaxed, both: only this thread and its handlers write the flags */
static uint32_t flags_of(const struct seam_ring_aux_producer *aux)
{
	return atomic_load_explicit(&state_of(aux)->aux_flags,
				    memory_order_relaxed);
}

static void change_flags(struct seam_ring_aux_producer *aux, uint32_t clear,
			 uint32_t set)
{
	seam_local_fence();
	atomic_store_explicit(&state_of(aux)->aux_flags,
			      (flags_of(aux) & ~clear) | set,
			      memory_order_relaxed);
	seam_local_fence();
}

static void set_nest(struct seam_ring_aux_producer *aux, uint32_t n)
{
	seam_local_fence();
	/* relaxed: for this thread's handlers */
	atomic_store_explicit(&state_of(aux)->aux_nest, n,
			      memory_order_relaxed);
	seam_local_fence();
}

void seam_ring_aux_producer_init(struct seam_ring_aux_producer *aux,
				 struct seam_ring_producer *ring, void *buffer,
				 size_t buffer_bytes, bool free_running)
{
	struct seam_ring_state *state = &ring->control->program;
	/* relaxed: only this thread writes it */
	uint64_t head = atomic_load_explicit(&ring->control->aux_head,
					     memory_order_relaxed);

	*aux = (struct seam_ring_aux_producer) {
		.ring = ring, .buffer = buffer, .size = buffer_bytes,
		.free_running = free_running,
	};
	seam_local_store(&state->aux_head, head);
	change_flags(aux, UINT32_MAX, 0);
	set_nest(aux, 0);
}

/* Returns whether the record is in the ring. */
static bool put_record(struct seam_ring_aux_producer *aux, uint64_t offset,
		       uint64_t size, uint64_t flags)
{
	const uint64_t words[] = { offset, size, flags | aux->format };

	return seam_ring_write(aux->ring, PERF_RECORD_AUX, 0, words,
			       sizeof(words)) == 0;
}

/*
 * Write an AUX record, unless there is nothing to report.  A record that is
 * lost sets UNREPORTED, so that the next has the flag PARTIAL: bytes before it
 * are missing.
 */
static void report(struct seam_ring_aux_producer *aux, uint64_t offset,
		   uint64_t size, uint64_t flags)
{
	uint32_t had = flags_of(aux);
	bool full = flags & PERF_AUX_FLAG_TRUNCATED;

	if (had & SEAM_RING_AUX_COLLIDED)
		flags |= PERF_AUX_FLAG_COLLISION;
	if (had & SEAM_RING_AUX_UNREPORTED)
		flags |= PERF_AUX_FLAG_PARTIAL;
	/* A full buffer is reported once, while it stays full. */
	if (size == 0 && full && had & SEAM_RING_AUX_REPORTED_FULL)
		return;
	if (size == 0 && !flags)
		return;
	change_flags(aux, SEAM_RING_AUX_COLLIDED | SEAM_RING_AUX_UNREPORTED |
		     SEAM_RING_AUX_REPORTED_FULL,
		     full ? SEAM_RING_AUX_REPORTED_FULL : 0);
	if (!put_record(aux, offset, size, flags))
		change_flags(aux, SEAM_RING_AUX_REPORTED_FULL,
			     SEAM_RING_AUX_UNREPORTED);
}

int seam_ring_aux_begin(struct seam_ring_aux_producer *aux,
			struct seam_ring_aux_chunk *chunk)
{
	struct seam_ring_state *state = state_of(aux);

	/* relaxed: this thread alone writes it */
	if (atomic_load_explicit(&state->aux_nest, memory_order_relaxed)) {
		change_flags(aux, 0, SEAM_RING_AUX_COLLIDED);
		return -EBUSY;
	}
	set_nest(aux, 1);
	*chunk = (struct seam_ring_aux_chunk) {
		.aux = aux, .start = seam_local_load(&state->aux_head),
	};
	chunk->pos = chunk->start;
	return 0;
}

/* Bytes that may be written at @pos. */
static uint64_t room_at(const struct seam_ring_aux_producer *aux, uint64_t pos)
{
	uint64_t used;

	if (aux->free_running)
		return UINT64_MAX;
	/* acquire: A, pairs with D; an invalid tail leaves no room */
	used = pos - atomic_load_explicit(&aux->ring->control->aux_tail,
					  memory_order_acquire);
	return used < aux->size ? aux->size - used : 0;
}

static void publish(struct seam_ring_aux_producer *aux, uint64_t pos)
{
	seam_ring_test_point();
	/* release: B, pairs with C; the bytes come before it */
	atomic_store_explicit(&aux->ring->control->aux_head, pos,
			      memory_order_release);
}

size_t seam_ring_aux_put(struct seam_ring_aux_chunk *chunk, const void *src,
			 size_t bytes)
{
	struct seam_ring_aux_producer *aux = chunk->aux;
	uint64_t room = room_at(aux, chunk->pos);
	uint64_t skip;

	if (bytes > room) {
		chunk->flags |= PERF_AUX_FLAG_TRUNCATED;
		seam_local_add(&state_of(aux)->aux_n_lost_bytes, bytes - room);
		bytes = room;
	}
	if (bytes == 0)
		return 0;
	seam_local_store(&state_of(aux)->aux_head, chunk->pos + bytes);
	/* E: pairs with F; our stores come after the reservation */
	atomic_thread_fence(memory_order_release);
	seam_ring_test_point();
	/* Of more than the buffer's size only the end would be left. */
	skip = bytes > aux->size ? bytes - aux->size : 0;
	seam_ring_store(aux->buffer, aux->size - 1, chunk->pos + skip,
			(const uint8_t *)src + skip, bytes - skip);
	chunk->pos += bytes;
	if (aux->free_running)
		publish(aux, chunk->pos);
	return bytes;
}

void seam_ring_aux_end(struct seam_ring_aux_chunk *chunk, uint64_t flags)
{
	struct seam_ring_aux_producer *aux = chunk->aux;

	if (!aux->free_running) {
		publish(aux, chunk->pos);
		report(aux, chunk->start, chunk->pos - chunk->start,
		       flags | chunk->flags);
	}
	set_nest(aux, 0);
}
