/* SPDX-License-Identifier: MIT */
/* tenants.c - claims, proofs, deaths; see tenants.h */
#include "ring/tenants.h"

#include "ring/proof.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>

int seam_tenants_init(struct seam_tenants *t,
		      const struct seam_ring_memory *memory, int fd,
		      struct seam_err *err)
{
	struct stat st;

	*t = (struct seam_tenants) { .memory = memory, .fd = fd };
	if (fstat(fd, &st))
		return seam_err_set(err, -errno, "cannot stat rings: %s",
				    strerror(errno));
	t->device = st.st_dev;
	t->inode = st.st_ino;
	t->items = calloc(memory->shape.n_slots, sizeof(*t->items));
	if (!t->items)
		return seam_err_set(err, -ENOMEM, "out of memory");
	return 0;
}

void seam_tenants_fini(struct seam_tenants *t)
{
	free(t->items);
	*t = (struct seam_tenants) { 0 };
}

static _Atomic uint64_t *word_of(const struct seam_tenants *t, uint32_t i)
{
	return &t->memory->slots[i].word;
}

static uint64_t load_word(const struct seam_tenants *t, uint32_t i)
{
	/* acquire: pairs with the release in seam_ring_memory_close() */
	return atomic_load_explicit(word_of(t, i), memory_order_acquire);
}

static void set_free(struct seam_tenants *t, uint32_t i, uint32_t generation)
{
	/* release: pairs with the acquire in seam_ring_memory_claim() */
	atomic_store_explicit(word_of(t, i),
			      seam_ring_word(SEAM_RING_FREE, generation, 0),
			      memory_order_release);
}

/* Give slot @i its pages; the control page says what is where. */
static int make_present(struct seam_tenants *t, uint32_t i)
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

int seam_tenants_prepare(struct seam_tenants *t, uint32_t n_free,
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

/* Another thread of a process whose mapping was seen need not prove it. */
static bool is_known(const struct seam_tenants *t, uint32_t pid)
{
	for (uint32_t i = 0; i < t->n_present; i++)
		if (t->items[i].word && !t->items[i].is_ending &&
		    t->items[i].pid == pid)
			return true;
	return false;
}

static void prove(struct seam_tenants *t, struct seam_tenant *tenant)
{
	struct seam_thread_identity id;
	int has;

	tenant->proof = SEAM_TENANT_UNPROVEN;
	if (seam_thread_identify(tenant->tid, &id) < 0)
		return;
	has = is_known(t, id.pid) ? 1 :
	      seam_thread_has_mapped(tenant->tid, t->device, t->inode);
	if (has < 0)
		return;
	tenant->start_time = id.start_time;
	tenant->proof = has ? SEAM_TENANT_PROVEN : SEAM_TENANT_FORGED;
	tenant->pid = has ? id.pid : 0;
}

static void move_in(struct seam_tenants *t, uint32_t i, uint64_t word)
{
	const struct seam_ring_shape *shape = &t->memory->shape;
	struct seam_tenant *tenant = &t->items[i];
	struct seam_ring_control *control =
		seam_ring_memory_control(t->memory, i);

	*tenant = (struct seam_tenant) {
		.tid = seam_ring_word_tid(word),
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

static uint32_t look_at_slot(struct seam_tenants *t, uint32_t i)
{
	struct seam_tenant *tenant = &t->items[i];
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
	/* Of a forger nothing is worth waiting for. */
	tenant->is_ending = state == SEAM_RING_CLOSED ||
			    tenant->proof == SEAM_TENANT_FORGED;
	return 1;
}

uint32_t seam_tenants_look(struct seam_tenants *t)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < t->n_present; i++)
		n += look_at_slot(t, i);
	return n;
}

static bool is_alive(const struct seam_tenants *t,
		     const struct seam_tenant *tenant, bool maps)
{
	struct seam_thread_identity id;

	if (seam_thread_identify(tenant->tid, &id) < 0)
		return false;
	if (tenant->proof != SEAM_TENANT_PROVEN)
		return true;		/* whoever that is: not our business */
	return id.start_time == tenant->start_time && id.pid == tenant->pid &&
	       (!maps ||
		seam_thread_has_mapped(tenant->tid, t->device, t->inode) != 0);
}

uint32_t seam_tenants_check(struct seam_tenants *t, bool maps)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < t->n_present; i++) {
		struct seam_tenant *tenant = &t->items[i];

		if (!tenant->word || tenant->is_ending ||
		    is_alive(t, tenant, maps))
			continue;
		tenant->is_ending = tenant->is_orphan = true;
		n++;
	}
	return n;
}

void seam_tenants_counts(const struct seam_tenants *t, uint32_t i,
			 struct seam_tenant_counts *counts)
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
void seam_tenants_release(struct seam_tenants *t, uint32_t i)
{
	struct seam_tenant *tenant = &t->items[i];
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
	*tenant = (struct seam_tenant) { 0 };
	set_free(t, i, generation);
}
