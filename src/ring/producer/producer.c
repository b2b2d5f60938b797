/* SPDX-License-Identifier: MIT */
/*
 * producer.c - the writing half of the protocol
 *
 *	producer                        consumer
 *
 *	load data_tail                  load data_head
 *	   A  (load-acquire)               C  (load-acquire)
 *	reserve                         load the record
 *	   E  (release fence)              F  (acquire fence)
 *	store the record                load reserve   (overwrite only)
 *	   B  (store-release)              D  (store-release)
 *	store data_head                 store data_tail
 *
 * B pairs with C: who sees the head sees the records before it.  A pairs
 * with D: who sees the tail may overwrite what lies before it.  The kernel
 * leaves A to the control dependency (no store before the branch that allows
 * it); C11 has no such thing, and an acquire costs no more on x86.  E pairs
 * with F: who sees a byte of a new record sees that its place was reserved,
 * so a reader of an overwritten ring knows which bytes to drop.
 *
 * The model of each pair is in tests/model, and fails with any one off.
 *
 * Source: "Writing samples into buffer" and "Memory synchronization" in
 * Documentation/userspace-api/perf_ring_buffer.rst, sections 2.3.2, 2.3.4.
 */
#include "ring/producer/producer.h"

#include "ring/bytes.h"
#include "ring/producer/local.h"

#include <errno.h>

enum {
	MAX_TRIES = 64,	/* each means a handler wrote in between */
	LOST_BYTES = sizeof(struct seam_ring_header) + 2 * sizeof(uint64_t),
};

void seam_ring_producer_init(struct seam_ring_producer *p, void *memory,
			     size_t page_bytes, size_t data_bytes,
			     enum seam_ring_mode mode)
{
	*p = (struct seam_ring_producer) {
		.control = memory,
		.data = (uint8_t *)memory + page_bytes,
		.size = data_bytes,
		.watermark = data_bytes / 2,
		.mode = mode,
	};
	seam_ring_recover(p);
}

void seam_ring_recover(struct seam_ring_producer *p)
{
	struct seam_ring_state *own = &p->control->own;
	/* relaxed: only this thread writes it, and is not writing */
	uint64_t head = atomic_load_explicit(&p->control->data_head,
					     memory_order_relaxed) &
			~UINT64_C(7);

	seam_local_store(&own->head, head);
	seam_local_store(&own->wakeup, head);
	/* relaxed: no handler of ours is active */
	atomic_store_explicit(&own->nest, 0, memory_order_relaxed);
}

static uint32_t nest_of(const struct seam_ring_state *own)
{
	/* relaxed: this thread alone writes it */
	return atomic_load_explicit(&own->nest, memory_order_relaxed);
}

static void set_nest(struct seam_ring_state *own, uint32_t n)
{
	seam_local_fence();
	/* relaxed: for this thread's handlers, between the two fences */
	atomic_store_explicit(&own->nest, n, memory_order_relaxed);
	seam_local_fence();
}

static uint64_t lost_bytes(const struct seam_ring_producer *p)
{
	return LOST_BYTES + 8 * p->n_trailer;
}

static int lose(struct seam_ring_producer *p, enum seam_ring_loss why,
		int error)
{
	struct seam_ring_state *own = &p->control->own;

	seam_local_add(&own->n_lost[why], 1);
	seam_local_add(&own->n_lost_untold, 1);
	return error;
}

/* Ring once for every watermark's worth of bytes. */
static void ring_bell(struct seam_ring_producer *p, uint64_t head)
{
	struct seam_ring_state *own = &p->control->own;
	uint64_t last = seam_local_load(&own->wakeup);
	/* Negative where a handler has published, and rung, after us. */
	int64_t filled = (int64_t)(p->mode & SEAM_RING_BACKWARD ?
				   last - head : head - last);

	if (!p->bell || filled <= (int64_t)p->watermark)
		return;
	seam_local_store(&own->wakeup, head);
	if (seam_ring_bell_ring(p->bell))
		seam_local_add(&own->n_bells, 1);
}

/*
 * The outermost writer publishes for all.  A handler that comes after the
 * head was loaded, and ends before nest is 0, has left its record to us:
 * then head has moved, and once more.  If handlers keep that up the last
 * record waits for the next writer.
 */
static void leave(struct seam_ring_producer *p)
{
	struct seam_ring_state *own = &p->control->own;
	uint64_t head = 0;

	for (int i = 0; i < MAX_TRIES; i++) {
		uint32_t nest = nest_of(own);

		if (nest > 1) {
			set_nest(own, nest - 1);
			return;
		}
		head = seam_local_load(&own->head);
		seam_ring_test_point();
		/* release: B, pairs with C; the records come before it */
		atomic_store_explicit(&p->control->data_head, head,
				      memory_order_release);
		seam_ring_test_point();
		set_nest(own, 0);
		if (i == MAX_TRIES - 1 || seam_local_load(&own->head) == head)
			break;
		set_nest(own, 1);
	}
	ring_bell(p, head);
}

static bool has_room(const struct seam_ring_producer *p, uint64_t head,
		     uint64_t size)
{
	uint64_t tail, used;

	if (p->mode & SEAM_RING_OVERWRITE)
		return true;
	/*
	 * acquire: A, pairs with D; our stores come after its loads.  A tail
	 * that cannot be makes the ring full and nothing worse.
	 */
	tail = atomic_load_explicit(&p->control->data_tail,
				    memory_order_acquire);
	used = p->mode & SEAM_RING_BACKWARD ? tail - head : head - tail;
	/* 8 bytes stay free, as in the kernel. */
	return used <= p->size - 8 && size <= p->size - 8 - used;
}

size_t seam_ring_room(const struct seam_ring_producer *p)
{
	uint64_t head = seam_local_load(&p->control->own.head), tail, used;
	/* What seam_ring_begin() wants beside the payload, at its worst. */
	uint64_t beside = sizeof(struct seam_ring_header) + lost_bytes(p) + 8;
	uint64_t most = SEAM_RING_MOST_RECORD - sizeof(struct seam_ring_header);

	/* acquire: A, as in has_room() */
	tail = atomic_load_explicit(&p->control->data_tail,
				    memory_order_acquire);
	used = p->mode & SEAM_RING_BACKWARD ? tail - head : head - tail;
	if (p->mode & SEAM_RING_OVERWRITE)
		used = 0;
	if (used > p->size || p->size - used < beside)
		return 0;
	used = p->size - used - beside;
	return (size_t)(used < most ? used : most) & ~(size_t)7;
}

/* Take @size bytes; their first position.  Handlers may do so in between. */
static int reserve(struct seam_ring_producer *p, uint64_t size, uint64_t *pos)
{
	struct seam_ring_state *own = &p->control->own;
	bool backward = p->mode & SEAM_RING_BACKWARD;

	for (int i = 0; i < MAX_TRIES; i++) {
		uint64_t head = seam_local_load(&own->head);
		uint64_t next = backward ? head - size : head + size;

		if (!has_room(p, head, size))
			return -ENOBUFS;
		seam_ring_test_point();
		if (!seam_local_replace(&own->head, head, next))
			continue;
		*pos = backward ? next : head;
		/* E: pairs with F; our stores come after the reservation */
		atomic_thread_fence(memory_order_release);
		return 0;
	}
	return -EBUSY;
}

void seam_ring_put(struct seam_ring_writer *w, const void *src, size_t bytes)
{
	if (bytes > w->limit - w->pos)
		bytes = w->limit - w->pos;
	seam_ring_store(w->ring->data, w->ring->size - 1, w->pos, src, bytes);
	w->pos += bytes;
}

static void put_header(struct seam_ring_writer *w, uint32_t type,
		       uint16_t misc, uint64_t size)
{
	struct seam_ring_header header = {
		.type = type, .misc = misc, .size = (uint16_t)size,
	};

	seam_ring_put(w, &header, sizeof(header));
}

/* The record that says how many are missing before this one. */
static void put_lost(struct seam_ring_writer *w, uint64_t size, uint64_t n)
{
	struct seam_ring_producer *p = w->ring;
	uint64_t words[2 + SEAM_RING_MOST_TRAILER] = { p->id, n };

	if (p->n_trailer)
		p->trailer(p->context, words + 2);
	put_header(w, PERF_RECORD_LOST, 0, size);
	seam_ring_put(w, words, size - sizeof(struct seam_ring_header));
}

/*
 * Reserve for the record and, where something was lost, for the record that
 * says so.  What is to be said is taken first, so that nobody says it twice,
 * and given back if there is no room to say it.
 */
static int enter(struct seam_ring_producer *p, struct seam_ring_writer *w,
		 uint64_t size)
{
	struct seam_ring_state *own = &p->control->own;
	uint64_t lost = seam_local_load(&own->n_lost_untold);
	uint64_t lost_size = 0;
	int r;

	if (lost && seam_local_replace(&own->n_lost_untold, lost, 0))
		lost_size = lost_bytes(p);
	r = reserve(p, size + lost_size, &w->pos);
	if (r < 0) {
		if (lost_size)
			seam_local_add(&own->n_lost_untold, lost);
		return r;
	}
	w->ring = p;
	w->end = w->limit = w->pos + lost_size + size;
	seam_ring_test_point();
	if (lost_size)
		put_lost(w, lost_size, lost);
	return 0;
}

int seam_ring_begin(struct seam_ring_producer *p, struct seam_ring_writer *w,
		    uint32_t type, uint16_t misc, size_t bytes)
{
	struct seam_ring_state *own = &p->control->own;
	uint32_t nest = nest_of(own);
	uint64_t size;
	int r;

	/* The sum cannot overflow once the payload alone fits. */
	if (bytes > SEAM_RING_MOST_RECORD - sizeof(struct seam_ring_header))
		return lose(p, SEAM_RING_LOST_BIG, -EMSGSIZE);
	size = (sizeof(struct seam_ring_header) + bytes + 7) & ~UINT64_C(7);
	/* What fits must also fit behind a LOST record, or never will. */
	if (size > p->size - 8 - lost_bytes(p))
		return lose(p, SEAM_RING_LOST_BIG, -EMSGSIZE);
	/* relaxed: pausing is a request; see backward.h */
	if (atomic_load_explicit(&own->paused, memory_order_relaxed))
		return lose(p, SEAM_RING_LOST_PAUSED, -EAGAIN);
	if (nest >= SEAM_RING_MOST_NESTED)
		return lose(p, SEAM_RING_LOST_NESTED, -EBUSY);
	set_nest(own, nest + 1);
	r = enter(p, w, size);
	if (r < 0) {
		lose(p, r == -EBUSY ? SEAM_RING_LOST_NESTED :
		     SEAM_RING_LOST_FULL, r);
		leave(p);
		return r;
	}
	seam_local_add(&own->n_begun, 1);
	seam_ring_test_point();
	put_header(w, type, misc, size);
	w->limit = w->pos + bytes;
	return 0;
}

void seam_ring_end(struct seam_ring_writer *w)
{
	static const uint64_t zero;

	seam_ring_test_point();
	w->limit = w->end;
	while (w->pos != w->end)
		seam_ring_put(w, &zero, sizeof(zero) - w->pos % 8);
	seam_ring_test_point();
	leave(w->ring);
}

int seam_ring_write(struct seam_ring_producer *p, uint32_t type,
		    uint16_t misc, const void *payload, size_t bytes)
{
	struct seam_ring_writer w;
	int r = seam_ring_begin(p, &w, type, misc, bytes);

	if (r < 0)
		return r;
	seam_ring_put(&w, payload, bytes);
	seam_ring_end(&w);
	return 0;
}
