/* SPDX-License-Identifier: MIT */
/* owners.c - slots get pages, are claimed and become free; see owners.h */
#include "ring/link/owners.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#ifndef MFD_NOEXEC_SEAL
#define MFD_NOEXEC_SEAL 8u	/* Linux 6.3, linux/memfd.h */
#endif

/* A memfd of @bytes, of which the first @present have pages. */
static int make_file(uint64_t bytes, uint64_t present)
{
	unsigned flags = MFD_CLOEXEC | MFD_ALLOW_SEALING;
	int fd = memfd_create("seam-rings", flags | MFD_NOEXEC_SEAL);
	int r;

	if (fd < 0 && errno == EINVAL)
		fd = memfd_create("seam-rings", flags);
	if (fd < 0)
		return -errno;
	if (ftruncate(fd, (off_t)bytes) == 0 &&
	    fallocate(fd, 0, 0, (off_t)present) == 0 &&
	    fcntl(fd, F_ADD_SEALS, SEAM_RING_SEALS) == 0)
		return fd;
	r = -errno;
	close(fd);
	return r;
}

int seam_owners_open(struct seam_owners *o,
		     const struct seam_ring_geometry *geometry,
		     struct seam_err *err)
{
	struct seam_ring_memory *m = &o->memory;
	int r;

	*o = (struct seam_owners) { .fd = -1 };
	if (!seam_ring_geometry_is_valid(geometry))
		return seam_err_set(err, -EINVAL, "invalid sizes of rings");
	o->fd = make_file(seam_ring_memory_bytes(geometry),
			  seam_ring_memory_rings_at(geometry));
	r = o->fd < 0 ? o->fd : seam_ring_memory_attach(m, o->fd, geometry);
	if (r == 0) {
		o->items = calloc(geometry->n_slots, sizeof(*o->items));
		r = o->items ? 0 : -ENOMEM;
	}
	if (r < 0) {
		seam_owners_close(o);
		return seam_err_set(
			err, r, "cannot make %ju KiB of rings: %s",
			(uintmax_t)seam_ring_memory_bytes(geometry) / 1024,
			strerror(-r));
	}
	m->head->magic = SEAM_RING_MEMORY_MAGIC;
	m->head->version = SEAM_RING_MEMORY_VERSION;
	m->head->n_slots = geometry->n_slots;
	return 0;
}

void seam_owners_close(struct seam_owners *o)
{
	free(o->items);
	seam_ring_memory_fini(&o->memory);
	if (o->fd >= 0)
		close(o->fd);
	*o = (struct seam_owners) { .fd = -1 };
}

static _Atomic uint64_t *word_of(const struct seam_owners *o, uint32_t i)
{
	return &o->memory.slots[i].word;
}

static uint64_t load_word(const struct seam_owners *o, uint32_t i)
{
	/* acquire: pairs with the release in seam_ring_memory_close() */
	return atomic_load_explicit(word_of(o, i), memory_order_acquire);
}

static void set_free(struct seam_owners *o, uint32_t i, uint32_t generation)
{
	/* release: pairs with the acquire in seam_ring_memory_claim() */
	atomic_store_explicit(word_of(o, i),
			      seam_ring_word(SEAM_RING_FREE, generation, 0),
			      memory_order_release);
}

/* Allocate the pages of slot @i and describe them in the control page. */
static int make_present(struct seam_owners *o, uint32_t i)
{
	const struct seam_ring_geometry *geometry = &o->memory.geometry;
	struct seam_ring_control *control =
		seam_ring_memory_control(&o->memory, i);
	off_t at = (uint8_t *)control - (uint8_t *)o->memory.head;

	if (fallocate(o->fd, 0, at, (off_t)o->memory.ring_bytes))
		return -errno;
	control->data_offset = SEAM_RING_PAGE;
	control->data_size = geometry->data_bytes;
	control->aux_offset = SEAM_RING_PAGE + geometry->data_bytes;
	control->aux_size = geometry->aux_bytes;
	set_free(o, i, 0);
	return 0;
}

uint32_t seam_owners_n_free(const struct seam_owners *o)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < o->n_present; i++)
		n += seam_ring_word_state(load_word(o, i)) == SEAM_RING_FREE;
	return n;
}

int seam_owners_prepare(struct seam_owners *o, uint32_t n_free,
			struct seam_err *err)
{
	uint32_t n = seam_owners_n_free(o);

	while (n < n_free && o->n_present < o->memory.geometry.n_slots) {
		int r = make_present(o, o->n_present);

		if (r < 0)
			return seam_err_set(err, r, "cannot get memory for "
					    "more rings: %s", strerror(-r));
		o->n_present++;
		n++;
	}
	return 0;
}

static void begin_owner(struct seam_owners *o, uint32_t i, uint64_t word)
{
	const struct seam_ring_geometry *geometry = &o->memory.geometry;
	struct seam_owner *owner = &o->items[i];
	struct seam_ring_control *control =
		seam_ring_memory_control(&o->memory, i);

	*owner = (struct seam_owner) {
		.word = word, .tid = seam_ring_word_tid(word),
	};
	seam_ring_attach(&owner->ring, control, SEAM_RING_PAGE,
			 geometry->data_bytes);
	if (geometry->aux_bytes)
		seam_ring_aux_attach(&owner->aux, control,
				     (uint8_t *)control + SEAM_RING_PAGE +
				     geometry->data_bytes,
				     geometry->aux_bytes);
}

static uint32_t scan_slot(struct seam_owners *o, uint32_t i)
{
	struct seam_owner *owner = &o->items[i];
	uint64_t word = load_word(o, i);
	enum seam_ring_slot_state state = seam_ring_word_state(word);

	if (owner->word) {
		/* Closed, or overwritten with anything else. */
		if (word == owner->word || owner->is_ending)
			return 0;
		owner->is_ending = true;
		return 1;
	}
	if (state != SEAM_RING_CLAIMED && state != SEAM_RING_CLOSED)
		return 0;
	begin_owner(o, i, word);
	owner->is_ending = state == SEAM_RING_CLOSED;
	return 1;
}

uint32_t seam_owners_scan(struct seam_owners *o)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < o->n_present; i++)
		n += scan_slot(o, i);
	return n;
}

void seam_owners_counts(const struct seam_owners *o, uint32_t i,
			struct seam_owner_counts *counts)
{
	const struct seam_ring_state *state =
		&seam_ring_memory_control(&o->memory, i)->program;

	/* relaxed, all: each count by itself */
	counts->n_begun = atomic_load_explicit(&state->n_begun,
					       memory_order_relaxed);
	counts->n_offered = atomic_load_explicit(&state->n_offered,
						 memory_order_relaxed);
	for (int k = 0; k < SEAM_RING_N_LOSSES; k++)
		counts->n_lost[k] = atomic_load_explicit(&state->n_lost[k],
							 memory_order_relaxed);
	for (int k = 0; k < SEAM_RING_N_SKIPPED; k++)
		counts->n_skipped[k] =
			atomic_load_explicit(&state->n_skipped[k],
					     memory_order_relaxed);
}

/* The next owner begins where reading stopped, with counts of 0. */
void seam_owners_release(struct seam_owners *o, uint32_t i)
{
	struct seam_owner *owner = &o->items[i];
	struct seam_ring_control *control = owner->ring.control;
	uint64_t aux_at = o->memory.geometry.aux_free_running ?
			  owner->aux.last_head : owner->aux.tail;
	uint32_t generation = (uint32_t)(owner->word >> 8 & 0xffffff) + 1;

	if (!owner->word)
		return;
	/* relaxed, all: set_free() below publishes them */
	memset((void *)&control->program, 0, sizeof(control->program));
	atomic_store_explicit(&control->data_head, owner->ring.tail,
			      memory_order_relaxed);
	atomic_store_explicit(&control->data_tail, owner->ring.tail,
			      memory_order_relaxed);
	atomic_store_explicit(&control->aux_head, aux_at, memory_order_relaxed);
	atomic_store_explicit(&control->aux_tail, aux_at, memory_order_relaxed);
	*owner = (struct seam_owner) { 0 };
	set_free(o, i, generation);
}

/* ---- records ---- */

/* The fields in question.  Source: perf_event_open(2), PERF_RECORD_SAMPLE */
struct fixed {
	uint32_t pid, tid;
	uint64_t time_ns;
};

/* Of the fixed fields in the record. */
static size_t fixed_at(uint64_t sample_type)
{
	return sizeof(struct seam_ring_header) + sizeof(uint64_t) +
	       (sample_type & PERF_SAMPLE_IP ? 8 : 0);
}

uint64_t seam_ring_sample_time(const void *record, uint64_t sample_type)
{
	struct fixed fixed;

	memcpy(&fixed, (const uint8_t *)record + fixed_at(sample_type),
	       sizeof(fixed));
	return fixed.time_ns;
}

bool seam_ring_set_owner(void *record, const struct seam_ring_header *header,
			 const struct seam_ring_identity *identity)
{
	uint8_t *p = record;
	size_t at = fixed_at(identity->sample_type);
	struct seam_ring_header checked = *header;
	struct fixed fixed;

	if (header->type != PERF_RECORD_SAMPLE ||
	    header->size < at + sizeof(fixed))
		return false;
	checked.misc = PERF_RECORD_MISC_USER;
	memcpy(record, &checked, sizeof(checked));
	memcpy(p + sizeof(*header), &identity->id, sizeof(identity->id));
	memcpy(&fixed, p + at, sizeof(fixed));
	fixed.pid = identity->pid;
	fixed.tid = identity->tid;
	if (fixed.time_ns > identity->max_ns)
		fixed.time_ns = identity->max_ns;
	if (fixed.time_ns < identity->min_ns)
		fixed.time_ns = identity->min_ns;
	memcpy(p + at, &fixed, sizeof(fixed));
	return true;
}
