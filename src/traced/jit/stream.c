/* SPDX-License-Identifier: MIT */
/* stream.c - the queue of blocks, and its way into the ring; see stream.h */
#include "traced/jit/stream.h"

#include <errno.h>

#include "ring/link/jit_chunk.h"
#include "traced/jit/writer.h"
#include "wire/jit/jitdump.h"

/* No smaller part of a group is sent, unless it is the last. */
enum { MIN_CHUNK = 512 };

static int claim_ring(struct seam_jitdump *dump)
{
	struct seam_writer_stream *s = &dump->stream;
	/* For the process: its threads may end before the dump. */
	int r = seam_link_client_claim(&s->client, 0,
				       (uint32_t)dump->out->pid, &s->claim);

	s->has_ring = r == 0;
	if (r)
		return r;
	/* relaxed: a count; from now on the ring has it */
	atomic_fetch_sub_explicit(&s->client.memories[0].head->n_lost,
				  s->n_announced, memory_order_relaxed);
	s->n_announced = 0;
	return 0;
}

int seam_stream_open(struct seam_jitdump *dump, const char *address)
{
	struct seam_writer_stream *s = &dump->stream;
	int r;

	r = seam_link_client_connect(&s->client, address, SEAM_JIT_SERVICE,
				     SEAM_STREAM_CONNECT_MS);
	if (r)
		return r;
	/* Programs close what they did not open; the ring needs no socket. */
	seam_link_client_disconnect(&s->client);
	r = claim_ring(dump);
	if (r)
		seam_link_client_fini(&s->client);
	s->is_on = r == 0;
	return r;
}

/* ---- the queue ---- */

/* The list is valid after each store; tail and n_queued follow. */
static void push(struct seam_writer_stream *s, struct seam_stream_block *block)
{
	block->next = NULL;
	block->n_sent = 0;
	block->is_queued = true;
	seam_writer_barrier();
	if (s->head)
		s->tail->next = block;
	else
		s->head = block;
	s->tail = block;
	s->n_queued += block->size;
}

static void pop(struct seam_writer_stream *s)
{
	struct seam_stream_block *block = s->head;

	s->head = block->next;
	s->n_queued -= block->size;
	seam_writer_barrier();
	block->is_queued = false;
	if (!block->is_kept)
		seam_stream_free(&s->memory, block);
}

uint8_t *seam_stream_reserve(struct seam_jitdump *dump, size_t size,
			     int *error)
{
	struct seam_writer_stream *s = &dump->stream;

	*error = s->is_over ? -EPIPE :
		 size > SEAM_JIT_MAX_GROUP ? -EMSGSIZE :
		 s->n_queued > SEAM_STREAM_MAX_QUEUED ? -ENOBUFS : 0;
	if (*error)
		return NULL;
	s->reserved = seam_stream_alloc(&s->memory, size);
	if (!s->reserved)
		*error = -ENOMEM;
	return s->reserved ? s->reserved->bytes : NULL;
}

static void count_offered(struct seam_writer_stream *s, uint64_t n)
{
	/* relaxed: a count */
	atomic_fetch_add_explicit(&s->n_offered, n, memory_order_relaxed);
}

void seam_stream_commit(struct seam_jitdump *dump, size_t size, uint64_t n,
			struct seam_writer_entry *entry)
{
	struct seam_writer_stream *s = &dump->stream;
	struct seam_stream_block *block = s->reserved;

	block->size = (uint32_t)size;
	block->n = (uint8_t)n;
	block->is_kept = entry;
	/* First: what is recorded was offered. */
	count_offered(s, n);
	push(s, block);
	if (!entry)
		return;
	block->addr = entry->addr;
	entry->records.block = block;
	seam_writer_barrier();
	entry->size = block->size;
}

void seam_stream_unload(struct seam_jitdump *dump,
			struct seam_writer_entry *entry)
{
	struct seam_stream_block *block = entry->records.block;

	if (!entry->size)
		return;
	entry->size = 0;
	seam_writer_barrier();
	block->is_kept = false;
	if (!block->is_queued)
		seam_stream_free(&dump->stream.memory, block);
}

/* Free all without a store to small blocks: a child shares their pages. */
static void free_blocks(struct seam_jitdump *dump)
{
	struct seam_writer_stream *s = &dump->stream;
	struct seam_writer_entries *entries = &dump->out->entries;

	for (size_t i = 0; i < entries->n; i++) {
		struct seam_writer_entry *entry = &entries->items[i];

		if (entry->size && !entry->records.block->is_queued)
			seam_stream_unmap(entry->records.block);
		entry->size = 0;
	}
	for (struct seam_stream_block *block; (block = s->head); ) {
		s->head = block->next;
		seam_stream_unmap(block);
	}
	seam_stream_memory_fini(&s->memory);
}

/* The recording ended, or the queue is damaged: its records are lost. */
static int end_stream(struct seam_jitdump *dump)
{
	struct seam_writer_stream *s = &dump->stream;
	uint64_t n = 0;

	s->is_over = true;
	for (struct seam_stream_block *b = s->head; b; b = b->next)
		n += b->n;
	/* relaxed: a count; they were offered already */
	atomic_fetch_add_explicit(&dump->n_lost, n, memory_order_relaxed);
	free_blocks(dump);
	return n ? -EPIPE : 0;
}

/* ---- into the ring ---- */

/*
 * Send the next part of @block, which is at the head.  False without room.  A
 * thread may die at any store: whether the part was published is known from
 * the ring then, see seam_stream_repair().
 */
static bool send_chunk(struct seam_writer_stream *s,
		       struct seam_stream_block *block)
{
	struct seam_ring_producer *ring = &s->claim.ring;
	size_t room = seam_ring_room(ring), left = block->size - block->n_sent;
	struct seam_jit_chunk chunk = {
		.flags = block->n_sent ? 0 : SEAM_JIT_CHUNK_FIRST,
	};
	struct seam_ring_writer w;

	room = room > sizeof(chunk) ? room - sizeof(chunk) : 0;
	if (room < left && room < MIN_CHUNK)
		return false;
	chunk.size = (uint32_t)(room < left ? room : left);
	chunk.flags |= chunk.size == left ? SEAM_JIT_CHUNK_LAST : 0;
	if (seam_ring_begin(ring, &w, PERF_RECORD_SAMPLE, 0,
			    sizeof(chunk) + chunk.size))
		return false;
	seam_ring_put(&w, &chunk, sizeof(chunk));
	seam_ring_put(&w, block->bytes + block->n_sent, chunk.size);
	s->n_sent = block->n_sent + chunk.size;
	seam_writer_barrier();
	s->ring_head = w.end;
	seam_writer_barrier();
	seam_ring_end(&w);
	seam_writer_barrier();
	block->n_sent = s->n_sent;
	seam_writer_barrier();
	s->ring_head = 0;
	return true;
}

/* Send whole blocks and, of the next, the part that there is room for. */
static int send_blocks(struct seam_jitdump *dump)
{
	struct seam_writer_stream *s = &dump->stream;

	for (; s->head; pop(s)) {
		struct seam_stream_block *block = s->head;

		/* A program can write over it.  (A header is no record.) */
		if (block->n &&
		    !seam_writer_is_whole(block->bytes, block->size))
			return end_stream(dump);
		while (block->n_sent < block->size)
			if (!send_chunk(s, block))
				return 0;
	}
	return 0;
}

/* Store the count in shared memory, where it outlives this process. */
static void announce_offered(struct seam_writer_stream *s)
{
	/* relaxed: a count */
	uint64_t n = atomic_load_explicit(&s->n_offered,
					  memory_order_relaxed);
	struct seam_ring_memory *m = &s->client.memories[0];

	if (s->has_ring) {
		/* relaxed: a count, written under the lock */
		atomic_store_explicit(
			&s->claim.ring.control->program.n_offered, n,
			memory_order_relaxed);
	} else if (n > s->n_announced) {
		/* relaxed: a count */
		atomic_fetch_add_explicit(&m->head->n_lost,
					  n - s->n_announced,
					  memory_order_relaxed);
	}
	s->n_announced = n;
}

/* Whether the recorder paused the ring: then the recording ends. */
static bool is_paused(const struct seam_writer_stream *s)
{
	/* relaxed: pausing is a request; see ring/backward.h */
	return atomic_load_explicit(&s->claim.ring.control->program.paused,
				    memory_order_relaxed);
}

int seam_stream_send(struct seam_jitdump *dump)
{
	struct seam_writer_stream *s = &dump->stream;

	if (s->is_over) {
		/* Without a ring, losses are counted in the memory's head. */
		if (!s->has_ring)
			announce_offered(s);
		return 0;
	}
	if (!s->has_ring) {
		claim_ring(dump);
		/* Wake the recorder, so that it prepares further rings. */
		seam_ring_wakeup_send(&s->client.wakeup);
	}
	if (s->has_ring && is_paused(s))
		return end_stream(dump);
	/* The program closed the slot, or another process claimed it. */
	if (s->has_ring &&
	    !seam_ring_memory_is_held(&s->client.memories[0], &s->claim)) {
		s->has_ring = false;
		announce_offered(s);
		return end_stream(dump);
	}
	announce_offered(s);
	return s->has_ring ? send_blocks(dump) : 0;
}

/* ---- after a death, and in a child ---- */

void seam_stream_repair(struct seam_jitdump *dump)
{
	struct seam_writer_stream *s = &dump->stream;

	if (s->is_over) {
		free_blocks(dump);
		return;
	}
	/* relaxed: only writers of the ring store it, and none is left */
	if (s->has_ring && s->head && s->ring_head &&
	    s->ring_head == atomic_load_explicit(
			    &s->claim.ring.control->data_head,
			    memory_order_relaxed))
		s->head->n_sent = s->n_sent;
	s->ring_head = 0;
	s->n_queued = 0;
	for (struct seam_stream_block *b = s->head; b; b = b->next) {
		s->n_queued += b->size;
		s->tail = b;
	}
	/* A record that was begun and never ended was not published. */
	if (s->has_ring)
		seam_ring_recover(&s->claim.ring);
}

/* Queue the records of @entry again: of this process, now, at its address. */
static int inherit_entry(struct seam_writer_stream *s,
			 struct seam_writer_entry *entry)
{
	struct seam_stream_block *old = entry->records.block, *block = old;

	/* Lines are shifted in a copy: half of them cannot be done again. */
	if (old->addr != entry->addr) {
		block = seam_stream_alloc(&s->memory, old->size);
		if (!block)
			return -ENOMEM;
		memcpy(block->bytes, old->bytes, old->size);
		block->n = old->n;
		block->is_kept = true;
	}
	if (!seam_writer_adopt(block->bytes, block->size, entry->addr))
		return -EBADMSG;
	block->addr = entry->addr;
	seam_writer_barrier();
	entry->records.block = block;
	seam_writer_barrier();
	if (block != old)
		seam_stream_free(&s->memory, old);
	count_offered(s, 1);
	push(s, block);
	return 0;
}

/* The queue is the parent's: of its blocks only those of code are used. */
static void empty_queue(struct seam_writer_stream *s)
{
	s->has_ring = false;
	s->n_announced = s->ring_head = 0;
	while (s->head)
		pop(s);
	s->n_queued = 0;
	atomic_store_explicit(&s->n_offered, 0, memory_order_relaxed);
}

int seam_stream_inherit(struct seam_jitdump *dump)
{
	struct seam_writer_stream *s = &dump->stream;
	struct seam_writer_entries *entries = &dump->out->entries;
	int first = 0;

	empty_queue(s);
	/* The recorder does without it if memory ran out. */
	seam_writer_add_header(dump);
	for (size_t i = 0; i < entries->n; i++) {
		struct seam_writer_entry *entry = &entries->items[i];
		int r = entry->size ? inherit_entry(s, entry) : 0;

		if (!r)
			continue;
		seam_stream_unload(dump, entry);
		seam_writer_lose(dump, 1, r);
		first = first ? first : r;
	}
	/* Last: if this thread dies before, the next one begins again. */
	seam_writer_barrier();
	dump->out->pid = seam_lock_pid();
	return first;
}

void seam_stream_close(struct seam_jitdump *dump)
{
	struct seam_writer_stream *s = &dump->stream;

	if (!s->is_on)
		return;
	/* A child must not close its parent's ring. */
	if (s->has_ring && dump->out->pid == seam_lock_pid())
		seam_ring_memory_close(&s->client.memories[0], &s->claim);
	free_blocks(dump);
	seam_link_client_fini(&s->client);
	s->is_on = false;
}
