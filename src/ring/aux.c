/* SPDX-License-Identifier: MIT */
/* aux.c - drain and snapshot; barriers are named as in producer.c */
#include "ring/aux.h"

#include "ring/bytes.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>

enum { MAX_TRIES = 4 };

void seam_ring_aux_attach(struct seam_ring_aux *aux,
			  struct seam_ring_control *control, const void *buffer,
			  size_t bytes)
{
	/* relaxed: only the consumer writes it */
	uint64_t tail = atomic_load_explicit(&control->aux_tail,
					     memory_order_relaxed);

	*aux = (struct seam_ring_aux) {
		.control = control, .buffer = buffer, .size = bytes,
		.tail = tail, .first = tail, .last_head = tail,
	};
}

int seam_ring_aux_map(struct seam_ring_aux *aux, struct seam_ring *ring,
		      int fd, size_t bytes, bool overwrite,
		      struct seam_err *err)
{
	int prot = overwrite ? PROT_READ : PROT_READ | PROT_WRITE;
	/* After the data, as the kernel requires. */
	uint64_t offset = ring->mapped_bytes;
	void *p;

	*aux = (struct seam_ring_aux) { 0 };
	ring->control->aux_offset = offset;
	ring->control->aux_size = bytes;
	p = mmap(NULL, bytes, prot, MAP_SHARED, fd, (off_t)offset);
	if (p == MAP_FAILED)
		return seam_err_errno(err, "cannot map %zu KiB of AUX data",
				      bytes / 1024);
	seam_ring_aux_attach(aux, ring->control, p, bytes);
	aux->mapped_bytes = bytes;
	return 0;
}

void seam_ring_aux_fini(struct seam_ring_aux *aux)
{
	if (aux->mapped_bytes)
		munmap((void *)(uintptr_t)aux->buffer, aux->mapped_bytes);
	*aux = (struct seam_ring_aux) { 0 };
}

static uint64_t load_head(const struct seam_ring_aux *aux)
{
	/* acquire: C, pairs with B; the bytes come after.  Loaded once. */
	return atomic_load_explicit(&aux->control->aux_head,
				    memory_order_acquire);
}

/* From position @b to @a, whatever is above the positions. */
static uint64_t distance(uint64_t a, uint64_t b)
{
	return (a - b) & SEAM_RING_AUX_POSITION;
}

static void publish_tail(struct seam_ring_aux *aux, uint64_t pos)
{
	aux->tail = pos;
	/* release: D, pairs with A; our loads of the bytes come before */
	atomic_store_explicit(&aux->control->aux_tail, pos,
			      memory_order_release);
}

size_t seam_ring_aux_peek(struct seam_ring_aux *aux,
			  struct seam_ring_span *span)
{
	uint64_t n;

	*span = (struct seam_ring_span) { .end = aux->tail };
	if (!aux->control)
		return 0;
	n = distance(load_head(aux), aux->tail);
	if (n > aux->size) {
		aux->n_resyncs++;
		publish_tail(aux, aux->tail + n);
		span->end = aux->tail;
		return 0;
	}
	*span = seam_ring_span_make(aux->buffer, aux->size, aux->tail,
				    aux->tail + n);
	return n;
}

void seam_ring_aux_advance(struct seam_ring_aux *aux,
			   const struct seam_ring_span *span)
{
	if (aux->control && span->end != aux->tail)
		publish_tail(aux, span->end);
}

int seam_ring_aux_snapshot_init(struct seam_ring_aux_snapshot *snapshot,
				const struct seam_ring_aux *aux,
				struct seam_err *err)
{
	*snapshot = (struct seam_ring_aux_snapshot) {
		.copy = malloc(aux->size), .room = aux->size,
	};
	if (!snapshot->copy)
		return seam_err_set(err, -ENOMEM,
				    "cannot copy an AUX buffer: out of memory");
	return 0;
}

void seam_ring_aux_snapshot_fini(struct seam_ring_aux_snapshot *snapshot)
{
	free(snapshot->copy);
	*snapshot = (struct seam_ring_aux_snapshot) { 0 };
}

/* Copy the @n bytes that end at @head. */
static void copy(const struct seam_ring_aux *aux,
		 struct seam_ring_aux_snapshot *snapshot, uint64_t head,
		 size_t n)
{
	seam_ring_load(aux->buffer, aux->size - 1, head - n, snapshot->copy, n);
	snapshot->data = snapshot->copy;
	snapshot->bytes = n;
	snapshot->offset = head - n;
}

static bool is_zero(const uint8_t *p, uint64_t bytes)
{
	for (uint64_t i = 0; i < bytes; i++)
		if (p[i])
			return false;
	return true;
}

/* The free-running position of a head that may be an offset in the buffer. */
static uint64_t unwrap(struct seam_ring_aux *aux, uint64_t head)
{
	uint64_t rounds = aux->last_head & ~(aux->size - 1);
	uint64_t at = head & (aux->size - 1);

	if (aux->last_head > rounds + at)
		rounds += aux->size;	/* it went back: it has wrapped */
	if (!aux->wrapped && rounds == 0 && head < aux->size &&
	    !is_zero(aux->buffer + head, aux->size - head))
		rounds = aux->size;
	return rounds + at;
}

size_t seam_ring_aux_snapshot(struct seam_ring_aux *aux,
			      struct seam_ring_aux_snapshot *snapshot)
{
	uint64_t head;

	snapshot->bytes = 0;
	if (!aux->control || snapshot->room < aux->size)
		return 0;
	head = load_head(aux);
	/* free-running from 0: a head beyond the size has wrapped */
	aux->wrapped = aux->wrapped || aux->last_head >= aux->size;
	if (head < aux->size)
		head = unwrap(aux, head);
	else if (aux->last_head > head)
		aux->n_resyncs++;
	aux->wrapped = aux->wrapped || head >= aux->size;
	aux->last_head = head;
	copy(aux, snapshot, head,
	     head < aux->size && !aux->wrapped ? head : aux->size);
	return snapshot->bytes;
}

/* Leave out bytes overwritten during the copy.  False: all of them. */
static bool drop_overwritten(const struct seam_ring_aux *aux,
			     struct seam_ring_aux_snapshot *snapshot,
			     uint64_t head)
{
	uint64_t ahead, drop = 0;

	/* relaxed: ordered by the caller's fence */
	ahead = distance(atomic_load_explicit(&aux->control->program.aux_head,
					      memory_order_relaxed), head);
	if (ahead > aux->size)
		drop = snapshot->bytes;
	else if (ahead + snapshot->bytes > aux->size)
		drop = ahead + snapshot->bytes - aux->size;
	snapshot->data += drop;
	snapshot->bytes -= drop;
	snapshot->offset += drop;
	return snapshot->bytes > 0;
}

/*
 * The bytes before @head that a snapshot may have.  A head that is a little
 * further back than before is of bytes that were taken back.
 */
static uint64_t bytes_before(struct seam_ring_aux *aux, uint64_t head)
{
	uint64_t n = distance(head, aux->first);
	uint64_t back = distance(aux->last_head, head);

	if (back < SEAM_RING_AUX_POSITION / 2 &&
	    (n > SEAM_RING_AUX_POSITION / 2 || back > aux->size)) {
		aux->n_resyncs++;
		aux->first = head;
		n = 0;
	}
	aux->last_head = head;
	return n < aux->size ? n : aux->size;
}

/* One try.  False: bytes were taken back meanwhile, or all overwritten. */
static bool copy_program(struct seam_ring_aux *aux,
			 struct seam_ring_aux_snapshot *snapshot)
{
	uint64_t word = load_head(aux), head = word & SEAM_RING_AUX_POSITION;
	uint64_t n = bytes_before(aux, head);
	bool is_left;

	copy(aux, snapshot, head, n);
	snapshot->offset &= SEAM_RING_AUX_POSITION;
	/* F: pairs with E; the copy comes before the loads from here on */
	atomic_thread_fence(memory_order_acquire);
	is_left = drop_overwritten(aux, snapshot, head) || n == 0;
	return is_left && (load_head(aux) ^ word) < SEAM_RING_AUX_REWOUND;
}

static void hold(const struct seam_ring_aux *aux, uint32_t held)
{
	/* seq_cst: before the loads that follow; the program's may be late */
	atomic_store(&aux->control->program.aux_held, held);
}

size_t seam_ring_aux_snapshot_program(struct seam_ring_aux *aux,
				      struct seam_ring_aux_snapshot *snapshot)
{
	snapshot->bytes = 0;
	if (!aux->control || snapshot->room < aux->size)
		return 0;
	hold(aux, 1);
	for (int i = 0; i < MAX_TRIES && !copy_program(aux, snapshot); i++)
		if (i == MAX_TRIES - 1)
			snapshot->bytes = 0;
	hold(aux, 0);
	return snapshot->bytes;
}
