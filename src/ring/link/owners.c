/* SPDX-License-Identifier: MIT */
/* owners.c - claims, proofs, deaths; see owners.h */
#include "ring/link/owners.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>

int seam_owners_init(struct seam_owners *t,
		      const struct seam_ring_memory *memory, int fd,
		      struct seam_err *err)
{
	struct stat st;

	*t = (struct seam_owners) { .memory = memory, .fd = fd };
	if (fstat(fd, &st))
		return seam_err_set(err, -errno, "cannot stat rings: %s",
				    strerror(errno));
	t->device = st.st_dev;
	t->inode = st.st_ino;
	t->items = calloc(memory->shape.n_slots, sizeof(*t->items));
	t->claims = calloc(memory->shape.n_slots, sizeof(*t->claims));
	if (!t->items || !t->claims)
		return seam_err_set(err, -ENOMEM, "out of memory");
	return 0;
}

void seam_owners_fini(struct seam_owners *t)
{
	free(t->items);
	free(t->claims);
	*t = (struct seam_owners) { 0 };
}

static _Atomic uint64_t *word_of(const struct seam_owners *t, uint32_t i)
{
	return &t->memory->slots[i].word;
}

static uint64_t load_word(const struct seam_owners *t, uint32_t i)
{
	/* acquire: pairs with the release in seam_ring_memory_close() */
	return atomic_load_explicit(word_of(t, i), memory_order_acquire);
}

static void set_free(struct seam_owners *t, uint32_t i, uint32_t generation)
{
	/* release: pairs with the acquire in seam_ring_memory_claim() */
	atomic_store_explicit(word_of(t, i),
			      seam_ring_word(SEAM_RING_FREE, generation, 0),
			      memory_order_release);
}

/* Give slot @i its pages; the control page says what is where. */
static int make_present(struct seam_owners *t, uint32_t i)
{
	const struct seam_ring_shape *shape = &t->memory->shape;
	struct seam_ring_control *control =
		seam_ring_memory_control(t->memory, i);
	off_t at = (uint8_t *)control - (uint8_t *)t->memory->head;

	if (fallocate(t->fd, 0, at, (off_t)t->memory->ring_bytes))
		return -errno;
	control->data_offset = SEAM_RING_PAGE;
	control->data_size = shape->data_bytes;
	control->aux_offset = SEAM_RING_PAGE + shape->data_bytes;
	control->aux_size = shape->aux_bytes;
	set_free(t, i, 0);
	return 0;
}

int seam_owners_prepare(struct seam_owners *t, uint32_t n_free,
			 struct seam_err *err)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < t->n_present; i++)
		n += seam_ring_word_state(load_word(t, i)) == SEAM_RING_FREE;
	while (n < n_free && t->n_present < t->memory->shape.n_slots) {
		int r = make_present(t, t->n_present);

		if (r < 0)
			return seam_err_set(err, r, "cannot get memory for "
					    "more rings: %s", strerror(-r));
		t->n_present++;
		n++;
	}
	return 0;
}

static void set_proven(struct seam_owner *tenant, uint32_t tid,
		       const struct seam_thread_identity *id)
{
	tenant->proof = SEAM_OWNER_PROVEN;
	tenant->tid = tid;
	tenant->pid = id->pid;
	tenant->start_time = id->start_time;
}

/*
 * In our pid namespace.  1: the claimer is proven.  0: another has its name.
 * -ESRCH: nobody has.  Or another negative errno.  That another thread of its
 * process was proven says nothing: there may have been an exec since.
 */
static int prove(const struct seam_owners *t, struct seam_owner *tenant)
{
	struct seam_thread_identity id, after;
	int r = seam_thread_identify(tenant->tid, &id);

	if (r < 0)
		return r;
	r = seam_thread_has_mapped(tenant->tid, t->device, t->inode);
	/* The mapping is that of the thread which was identified. */
	if (r == 1 && (seam_thread_identify(tenant->tid, &after) < 0 ||
		       after.start_time != id.start_time ||
		       after.pid != id.pid))
		r = -EAGAIN;
	if (r == 1)
		set_proven(tenant, tenant->tid, &id);
	/* On its way out; or the first of threads that go on. */
	return r == -ESRCH ? -EAGAIN : r;
}

static void move_in(struct seam_owners *t, uint32_t i, uint64_t word)
{
	const struct seam_ring_shape *shape = &t->memory->shape;
	struct seam_owner *tenant = &t->items[i];
	struct seam_ring_control *control =
		seam_ring_memory_control(t->memory, i);

	*tenant = (struct seam_owner){
		.tid = seam_ring_word_tid(word),
		.proof = SEAM_OWNER_UNPROVEN,
	};
	prove(t, tenant);
	tenant->word = word;
	seam_ring_attach(&tenant->ring, control, SEAM_RING_PAGE,
			 shape->data_bytes);
	if (shape->aux_bytes)
		seam_ring_aux_attach(&tenant->aux, control,
				     (uint8_t *)control + SEAM_RING_PAGE +
				     shape->data_bytes, shape->aux_bytes);
}

static uint32_t look_at_slot(struct seam_owners *t, uint32_t i)
{
	struct seam_owner *tenant = &t->items[i];
	uint64_t word = load_word(t, i);
	enum seam_ring_slot_state state = seam_ring_word_state(word);

	if (tenant->word) {
		/* Closed, or anything else that it was not. */
		if (word == tenant->word || tenant->is_ending)
			return 0;
		tenant->is_ending = true;
		return 1;
	}
	if (state != SEAM_RING_CLAIMED && state != SEAM_RING_CLOSED)
		return 0;
	move_in(t, i, word);
	tenant->is_ending = state == SEAM_RING_CLOSED;
	return 1;
}

uint32_t seam_owners_look(struct seam_owners *t)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < t->n_present; i++)
		n += look_at_slot(t, i);
	return n;
}

/* Of a proven one.  What cannot be known now is not death. */
static bool is_alive(const struct seam_owners *t,
		     const struct seam_owner *tenant, bool maps)
{
	struct seam_thread_identity id;
	int r = seam_thread_identify(tenant->tid, &id);

	if (r < 0)
		return r != -ESRCH;
	return id.start_time == tenant->start_time && id.pid == tenant->pid &&
	       (!maps ||
		seam_thread_has_mapped(tenant->tid, t->device, t->inode) != 0);
}

static void become_orphan(struct seam_owner *tenant)
{
	tenant->is_ending = tenant->is_orphan = true;
}

/* One that was not proven so far: look again, and then in all of /proc. */
static void seek(struct seam_owners *t, struct seam_owner *tenant,
		 struct seam_thread_claims *sought)
{
	int r = prove(t, tenant);

	tenant->is_sought = r != 1;
	if (r == 1)
		return;
	tenant->proof = r == 0 ? SEAM_OWNER_FORGED : SEAM_OWNER_UNPROVEN;
	sought->items[sought->n++] = (struct seam_thread_claim){
		.own_tid = tenant->tid,
		.found = r == -ESRCH ? 0 : r,
	};
}

/* Those whose claims are in @claims: found below, dead, or not to be known. */
static uint32_t settle(struct seam_owners *t,
		       const struct seam_thread_claims *claims)
{
	size_t k = 0;
	uint32_t n = 0;

	for (uint32_t i = 0; k < claims->n; i++) {
		const struct seam_thread_claim *claim = &claims->items[k];
		struct seam_owner *tenant = &t->items[i];

		if (!tenant->is_sought)
			continue;
		tenant->is_sought = false;
		k++;
		if (claim->found == 1)
			set_proven(tenant, claim->tid, &claim->id);
		else if (claim->found < 0)
			tenant->proof = SEAM_OWNER_UNPROVEN;
		else
			become_orphan(tenant);
		n += tenant->is_orphan;
	}
	return n;
}

uint32_t seam_owners_check(struct seam_owners *t, bool maps)
{
	struct seam_thread_claims sought = {
		.items = t->claims,
		.device = t->device,
		.inode = t->inode,
	};
	uint32_t n = 0;

	for (uint32_t i = 0; i < t->n_present; i++) {
		struct seam_owner *tenant = &t->items[i];

		if (!tenant->word || tenant->is_ending)
			continue;
		if (tenant->proof != SEAM_OWNER_PROVEN) {
			seek(t, tenant, &sought);
		} else if (!is_alive(t, tenant, maps)) {
			become_orphan(tenant);
			n++;
		}
	}
	if (sought.n)
		seam_threads_find_below(&sought);
	return n + settle(t, &sought);
}

void seam_owners_counts(const struct seam_owners *t, uint32_t i,
			 struct seam_owner_counts *counts)
{
	const struct seam_ring_state *own =
		&seam_ring_memory_control(t->memory, i)->own;

	/* relaxed, all: each count by itself */
	counts->n_begun = atomic_load_explicit(&own->n_begun,
					       memory_order_relaxed);
	counts->n_offered = atomic_load_explicit(&own->n_offered,
						 memory_order_relaxed);
	for (int k = 0; k < SEAM_RING_N_LOSSES; k++)
		counts->n_lost[k] = atomic_load_explicit(&own->n_lost[k],
							 memory_order_relaxed);
	counts->aux_lost_bytes = atomic_load_explicit(&own->aux_n_lost_bytes,
						      memory_order_relaxed);
}

/* The next owner begins where we have read up to, with counts of 0. */
void seam_owners_release(struct seam_owners *t, uint32_t i)
{
	struct seam_owner *tenant = &t->items[i];
	struct seam_ring_control *control = tenant->ring.control;
	uint64_t aux_at = t->memory->shape.aux_free_running ?
			  tenant->aux.last_head : tenant->aux.tail;
	uint32_t generation = (uint32_t)(tenant->word >> 8 & 0xffffff) + 1;

	if (!tenant->word)
		return;
	/* relaxed, all: set_free() below publishes them */
	memset((void *)&control->own, 0, sizeof(control->own));
	atomic_store_explicit(&control->data_head, tenant->ring.tail,
			      memory_order_relaxed);
	atomic_store_explicit(&control->data_tail, tenant->ring.tail,
			      memory_order_relaxed);
	atomic_store_explicit(&control->aux_head, aux_at,
			      memory_order_relaxed);
	atomic_store_explicit(&control->aux_tail, aux_at,
			      memory_order_relaxed);
	*tenant = (struct seam_owner) { 0 };
	set_free(t, i, generation);
}
