/* SPDX-License-Identifier: MIT */
/* link_rings.c - how many rings, and when; see link_rings.h */
#include "ring/link/link_rings.h"

#include "base/clock.h"

#include <errno.h>

enum {
	/* Most processes have ended some time after their connection. */
	ENDING_NS = 100 * 1000 * 1000,
	MAKING_NS = 2 * 1000 * 1000,	/* in one step, beyond one each */
};

static uint64_t bytes_of(const struct seam_link_rings *rings)
{
	return rings->owners.n_present * rings->memory.ring_bytes;
}

static uint64_t bytes_of_all(const struct seam_link_server *s)
{
	uint64_t bytes = 0;

	for (size_t i = 0; i < s->n_targets; i++)
		for (uint32_t k = 0; k < s->targets[i]->n_rings; k++)
			bytes += bytes_of(&s->targets[i]->rings[k]);
	return bytes;
}

static bool has_plenty(const struct seam_link_server *s, uint64_t bytes)
{
	return bytes < s->max_bytes / 4;
}

/* How many rings of @service to keep free, where all rings have @bytes. */
static uint32_t n_to_keep_free(const struct seam_link_server *s,
			       uint32_t service, uint64_t bytes)
{
	uint32_t n_free = s->services[service].n_free;

	if (has_plenty(s, bytes))
		return n_free;
	if (bytes < s->max_bytes / 2 && n_free >= 4)
		return n_free / 4;
	return bytes < s->max_bytes ? 1 : 0;
}

/* Of @n rings, how many a program waits for. */
static uint32_t n_first(const struct seam_link_server *s, uint32_t service,
			uint32_t n)
{
	uint32_t first = s->services[service].n_first;

	return first && first < n ? first : n;
}

int seam_link_rings_make(const struct seam_link_server *s,
			 struct seam_link_target *target, uint32_t service)
{
	struct seam_link_rings *rings = &target->rings[target->n_rings];
	uint32_t n = n_first(s, service, n_to_keep_free(s, service,
							bytes_of_all(s)));
	/* No system call here returns that: it is our own limit. */
	int r = n ? seam_ring_memory_create(&rings->memory,
					    &s->services[service].geometry,
					    NULL) : -EDQUOT;

	if (r < 0)
		return r;
	rings->service = service;
	rings->fd = r;
	target->n_rings++;
	r = seam_owners_init(&rings->owners, &rings->memory, rings->fd, NULL);
	return r < 0 ? r : seam_owners_prepare(&rings->owners, n, NULL);
}

/* Threads that begin faster than rings are made: keep more for the next. */
static void note_unclaimed(const struct seam_link_server *s,
			   struct seam_link_rings *rings)
{
	uint32_t n_free = s->services[rings->service].n_free;
	/* relaxed: a count, and the program's */
	uint64_t n = atomic_load_explicit(&rings->memory.head->n_unclaimed,
					  memory_order_relaxed);

	if (n == rings->n_unclaimed)
		return;
	rings->n_unclaimed = n;
	if (rings->n_more < 3 * n_free)
		rings->n_more += n_free;
}

/*
 * Make rings until @n are free, one at least, and no other after @until_ns; add
 * their bytes to @bytes.  False: there was no time for all.  Where there is no
 * memory, threads without a ring are counted.
 */
static bool make_free(struct seam_link_rings *rings, uint32_t n,
		      uint64_t until_ns, uint64_t *bytes)
{
	struct seam_owners *o = &rings->owners;

	for (uint32_t k = seam_owners_n_free(o); k < n; k++) {
		uint32_t n_present = o->n_present;

		if (seam_owners_prepare(o, k + 1, NULL) < 0 ||
		    o->n_present == n_present)
			break;
		*bytes += rings->memory.ring_bytes;
		if (seam_clock_ns() >= until_ns)
			return k + 1 == n;
	}
	return true;
}

static bool has_just_ended(const struct seam_link_target *target)
{
	return target->socket < 0 &&
	       seam_clock_ns() - target->disconnected_ns < ENDING_NS;
}

/* Make what @target should have free; false: there was no time for all. */
static bool fill(const struct seam_link_server *s,
		 struct seam_link_target *target, uint64_t until_ns,
		 uint64_t *bytes)
{
	bool is_ending = has_just_ended(target);

	for (uint32_t k = 0; k < target->n_rings; k++) {
		struct seam_link_rings *rings = &target->rings[k];
		uint32_t n = n_to_keep_free(s, rings->service, *bytes);

		/*
		 * Children that it may have left have what is free now.  Where
		 * all were made before WELCOME, threads have claimed the rest.
		 */
		if (is_ending && s->services[rings->service].n_first)
			continue;
		if (has_plenty(s, *bytes))
			n += rings->n_more;
		if (!make_free(rings, n, until_ns, bytes))
			return false;
	}
	return true;
}

bool seam_link_rings_keep_free(const struct seam_link_server *s)
{
	uint64_t bytes = bytes_of_all(s), until_ns;
	bool is_done = true;

	for (size_t i = 0; i < s->n_targets; i++)
		for (uint32_t k = 0; k < s->targets[i]->n_rings; k++) {
			struct seam_link_rings *rings =
				&s->targets[i]->rings[k];

			seam_owners_scan(&rings->owners);
			note_unclaimed(s, rings);
			make_free(rings, bytes < s->max_bytes, UINT64_MAX,
				  &bytes);
		}
	until_ns = seam_clock_ns() + MAKING_NS;
	for (size_t i = 0; is_done && i < s->n_targets; i++)
		is_done = fill(s, s->targets[i], until_ns, &bytes);
	return is_done;
}
