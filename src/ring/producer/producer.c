/* SPDX-License-Identifier: MIT */
/*
 * producer.c - the writing half of the protocol
 *
 * The barriers A to D are those of doc/design/ring.md; tests/model has a model
 * of each pair.  For A the kernel has a control dependency (no store before the
 * branch that allows it); C11 has none, and an acquire costs no more on x86.
 *
 * Source: "Writing samples into buffer" and "Memory synchronization" in
 * Documentation/userspace-api/perf_ring_buffer.rst, sections 2.3.2, 2.3.4.
 */
#include "ring/producer/producer.h"

#include "ring/bytes.h"
#include "ring/producer/local.h"

#include <errno.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

enum {
	MAX_TRIES = 64,	/* each means a handler wrote in between */
	LOST_BYTES = sizeof(struct seam_ring_header) + 2 * sizeof(uint64_t),
};

/* Begin after the last record that was published. */
static void begin_at_head(struct seam_ring_producer *p)
{
	struct seam_ring_state *state = &p->control->program;
	/* relaxed: only this thread writes it, and is not writing */
	uint64_t head = atomic_load_explicit(&p->control->data_head,
					     memory_order_relaxed) &
			~UINT64_C(7);

	seam_local_store(&state->head, head);
	seam_local_store(&state->wakeup_head, head);
	/* relaxed: no handler of ours is active */
	atomic_store_explicit(&state->nest, 0, memory_order_relaxed);
}

void seam_ring_producer_init(struct seam_ring_producer *p, void *memory,
			     size_t page_bytes, size_t data_bytes)
{
	*p = (struct seam_ring_producer) {
		.control = memory,
		.data = (uint8_t *)memory + page_bytes,
		.size = data_bytes,
		.watermark = data_bytes / 2,
	};
	begin_at_head(p);
}

static uint32_t nest_of(const struct seam_ring_state *state)
{
	/* relaxed: this thread alone writes it */
	return atomic_load_explicit(&state->nest, memory_order_relaxed);
}

static void set_nest(struct seam_ring_state *state, uint32_t n)
{
	seam_local_fence();
	/* relaxed: for this thread's handlers, between the two fences */
	atomic_store_explicit(&state->nest, n, memory_order_relaxed);
	seam_local_fence();
}

static int lose(struct seam_ring_producer *p, enum seam_ring_loss cause,
		int error)
{
	struct seam_ring_state *state = &p->control->program;

	seam_local_add(&state->n_lost[cause], 1);
	seam_local_add(&state->n_lost_unreported, 1);
	return error;
}

/* One wakeup for every watermark's worth of bytes. */
static void send_wakeup(struct seam_ring_producer *p, uint64_t head)
{
	struct seam_ring_state *state = &p->control->program;
	uint64_t last = seam_local_load(&state->wakeup_head);
	/* Negative where a handler has published, and woken, after us. */
	int64_t filled = (int64_t)(head - last);

	if (!p->wakeup || filled <= (int64_t)p->watermark)
		return;
	seam_local_store(&state->wakeup_head, head);
	if (seam_ring_wakeup_send(p->wakeup))
		seam_local_add(&state->n_wakeups, 1);
}

/*
 * The outermost writer publishes for all.  A handler that runs after the head
 * was loaded and ends before nest is 0 leaves publishing to us: the head has
 * moved, so publish again.  If handlers keep doing that, the next writer
 * publishes the last record.
 */
static void leave(struct seam_ring_producer *p)
{
	struct seam_ring_state *state = &p->control->program;
	uint64_t head = 0;

	for (int i = 0; i < MAX_TRIES; i++) {
		uint32_t nest = nest_of(state);

		if (nest > 1) {
			set_nest(state, nest - 1);
			return;
		}
		head = seam_local_load(&state->head);
		seam_ring_test_point();
		/* release: B, pairs with C; the records come before it */
		atomic_store_explicit(&p->control->data_head, head,
				      memory_order_release);
		seam_ring_test_point();
		set_nest(state, 0);
		if (i == MAX_TRIES - 1 || seam_local_load(&state->head) == head)
			break;
		set_nest(state, 1);
	}
	send_wakeup(p, head);
}

static bool has_room(const struct seam_ring_producer *p, uint64_t head,
		     uint64_t size)
{
	uint64_t tail, used;

	/*
	 * acquire: A, pairs with D; our stores come after its loads.  An
	 * invalid tail only makes the ring look full.
	 */
	tail = atomic_load_explicit(&p->control->data_tail,
				    memory_order_acquire);
	used = head - tail;
	/* 8 bytes stay free, as in the kernel. */
	return used <= p->size - 8 && size <= p->size - 8 - used;
}

size_t seam_ring_room(const struct seam_ring_producer *p)
{
	uint64_t head = seam_local_load(&p->control->program.head), tail, used;
	/* What seam_ring_begin() needs beside the payload, at most. */
	uint64_t beside = sizeof(struct seam_ring_header) + LOST_BYTES + 8;
	uint64_t max = SEAM_RING_MAX_RECORD - sizeof(struct seam_ring_header);

	/* acquire: A, as in has_room() */
	tail = atomic_load_explicit(&p->control->data_tail,
				    memory_order_acquire);
	used = head - tail;
	if (used > p->size || p->size - used < beside)
		return 0;
	used = p->size - used - beside;
	return (size_t)(used < max ? used : max) & ~(size_t)7;
}

/* Reserve @size bytes from *@pos on.  Handlers may do so in between. */
static int reserve(struct seam_ring_producer *p, uint64_t size, uint64_t *pos)
{
	struct seam_ring_state *state = &p->control->program;

	for (int i = 0; i < MAX_TRIES; i++) {
		uint64_t head = seam_local_load(&state->head);

		if (!has_room(p, head, size))
			return -ENOBUFS;
		seam_ring_test_point();
		if (!seam_local_replace(&state->head, head, head + size))
			continue;
		*pos = head;
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

/* The record that counts those that are missing before this one. */
static void put_lost(struct seam_ring_writer *w, uint64_t n)
{
	uint64_t words[2] = { w->ring->id, n };

	put_header(w, PERF_RECORD_LOST, 0, LOST_BYTES);
	seam_ring_put(w, words, sizeof(words));
}

/*
 * Reserve for the record and, where something was lost, for a LOST record
 * before it.  The count is taken first, so that no handler reports it too,
 * and given back if there is no room.
 */
static int enter(struct seam_ring_producer *p, struct seam_ring_writer *w,
		 uint64_t size)
{
	struct seam_ring_state *state = &p->control->program;
	uint64_t lost = seam_local_load(&state->n_lost_unreported);
	uint64_t lost_size = 0;
	int r;

	if (lost && seam_local_replace(&state->n_lost_unreported, lost, 0))
		lost_size = LOST_BYTES;
	r = reserve(p, size + lost_size, &w->pos);
	if (r < 0) {
		if (lost_size)
			seam_local_add(&state->n_lost_unreported, lost);
		return r;
	}
	w->ring = p;
	w->end = w->limit = w->pos + lost_size + size;
	seam_ring_test_point();
	if (lost_size)
		put_lost(w, lost);
	return 0;
}

int seam_ring_begin(struct seam_ring_producer *p, struct seam_ring_writer *w,
		    uint32_t type, uint16_t misc, size_t bytes)
{
	struct seam_ring_state *state = &p->control->program;
	uint32_t nest = nest_of(state);
	uint64_t size;
	int r;

	/* The sum cannot overflow once the payload alone fits. */
	if (bytes > SEAM_RING_MAX_RECORD - sizeof(struct seam_ring_header))
		return lose(p, SEAM_RING_LOST_BIG, -EMSGSIZE);
	size = (sizeof(struct seam_ring_header) + bytes + 7) & ~UINT64_C(7);
	/* It must also fit after a LOST record, or it never will. */
	if (size > p->size - 8 - LOST_BYTES)
		return lose(p, SEAM_RING_LOST_BIG, -EMSGSIZE);
	/* relaxed: pausing is a request */
	if (atomic_load_explicit(&state->paused, memory_order_relaxed))
		return lose(p, SEAM_RING_LOST_PAUSED, -EAGAIN);
	if (nest >= SEAM_RING_MAX_NESTED)
		return lose(p, SEAM_RING_LOST_NESTED, -EBUSY);
	set_nest(state, nest + 1);
	r = enter(p, w, size);
	if (r < 0) {
		lose(p, r == -EBUSY ? SEAM_RING_LOST_NESTED :
		     SEAM_RING_LOST_FULL, r);
		leave(p);
		return r;
	}
	seam_local_add(&state->n_begun, 1);
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

/* ---- wakeups ---- */

void seam_ring_wakeup_init(struct seam_ring_wakeup *w, int fd)
{
	struct stat st;

	*w = (struct seam_ring_wakeup) { .fd = -1 };
	if (fd < 0 || fstat(fd, &st) || !S_ISSOCK(st.st_mode))
		return;
	*w = (struct seam_ring_wakeup) {
		.fd = fd, .device = st.st_dev, .inode = st.st_ino,
		.mode = st.st_mode,
	};
}

bool seam_ring_wakeup_is_intact(const struct seam_ring_wakeup *w)
{
	struct stat st;

	return w->fd >= 0 && fstat(w->fd, &st) == 0 && st.st_dev == w->device &&
	       st.st_ino == w->inode && st.st_mode == w->mode;
}

bool seam_ring_wakeup_send(const struct seam_ring_wakeup *w)
{
	int saved = errno;
	bool sent;

	if (!w || w->fd < 0)
		return false;
	/* Not send(): a thread could be cancelled in it. */
	sent = seam_ring_wakeup_is_intact(w) &&
	       (syscall(SYS_sendto, w->fd, "", 0, MSG_DONTWAIT | MSG_NOSIGNAL,
			NULL, 0) == 0 ||
		errno == EAGAIN);
	errno = saved;
	return sent;
}
