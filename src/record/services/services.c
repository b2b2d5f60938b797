/* SPDX-License-Identifier: MIT */
/* services.c - open, see the side-band, copy, take, end; see services.h */
#include "record/services/services.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/clock.h"
#include "record/services/program_ring.h"

enum {
	MAX_RING_BYTES = 256 << 20,	/* of all programs; or so many rings: */
	MIN_RINGS = 8,
};

void seam_services_add(struct seam_services *s, struct seam_service *service)
{
	if (s->n < SEAM_LINK_MAX_SERVICES)
		s->items[s->n++] = service;
}

static uint64_t max_bytes(const struct seam_services *s)
{
	uint64_t max = MAX_RING_BYTES;

	for (size_t i = 0; i < s->n; i++) {
		const struct seam_ring_geometry *g =
			&s->items[i]->link.geometry;
		uint64_t bytes = MIN_RINGS * (g->data_bytes + g->aux_bytes);

		if (bytes < s->items[i]->max_bytes)
			bytes = s->items[i]->max_bytes;
		max = bytes > max ? bytes : max;
	}
	return max;
}

static int open_server(struct seam_services *s, struct seam_err *why)
{
	struct seam_link_service services[SEAM_LINK_MAX_SERVICES];
	size_t unit = 1;

	for (size_t i = 0; i < s->n; i++) {
		services[i] = s->items[i]->link;
		if (unit < s->items[i]->aux_unit)
			unit = s->items[i]->aux_unit;
	}
	s->record = malloc(SEAM_PROGRAM_RING_RECORD_BYTES);
	s->unit = malloc(unit);
	if (!s->record || !s->unit)
		return seam_err_no_memory(why);
	return seam_link_server_open(&s->server, services, s->n, why);
}

void seam_services_open(struct seam_services *s, struct seam_err *why)
{
	if (open_server(s, why) < 0) {
		seam_link_server_close(&s->server);
		return;
	}
	s->server.max_bytes = max_bytes(s);
	s->floor_ns = s->round_ns = seam_clock_ns();
	s->is_open = true;
}

void seam_services_see(struct seam_services *s,
		       const struct seam_perf_sideband *record)
{
	for (size_t i = 0; i < s->n; i++)
		if (s->items[i]->sideband)
			s->items[i]->sideband(s->items[i], record);
}

/* ---- programs that have ended ---- */

/* Items of threads that found no ring: the count is of the whole program. */
static void count_without_ring(struct seam_services *s,
			       struct seam_link_target *target)
{
	uint64_t n_cpus = (uint64_t)sysconf(_SC_NPROCESSORS_ONLN);

	for (uint32_t k = 0; k < target->n_rings; k++) {
		struct seam_link_rings *rings = &target->rings[k];
		struct seam_service *service = s->items[rings->service];
		/* relaxed: a count */
		uint64_t n = seam_program_ring_limit(
			target, atomic_load_explicit(
					&rings->owners.memory.head->n_lost,
					memory_order_relaxed), n_cpus);

		if (n <= rings->n_without_ring)
			continue;
		n -= rings->n_without_ring;
		rings->n_without_ring += n;
		service->n_without_ring += n;
		if (service->event)
			seam_synth_lost(&s->round, service->event_id, 0,
					seam_clock_ns(), n);
	}
}

/*
 * After the rings are drained.  Their memory is large, and more may connect.  A
 * program's last process may have claimed a ring since the scan, where its end
 * was learned later.
 */
static void forget_ended(struct seam_services *s)
{
	for (size_t i = s->server.n_targets; i-- > 0;) {
		struct seam_link_target *target = s->server.targets[i];
		bool is_read = true;

		if (!target->is_over)
			continue;
		/* the next round can read the rest, and give the memory back */
		s->server.is_behind = true;
		for (uint32_t k = 0; k < target->n_rings; k++) {
			struct seam_owners *o = &target->rings[k].owners;

			seam_owners_scan(o);
			for (uint32_t n = 0; n < o->n_present; n++)
				is_read &= !o->items[n].word;
		}
		if (!is_read)
			continue;
		count_without_ring(s, target);
		seam_tree_process_unref(target->process);
		seam_link_server_forget(&s->server, i);
	}
}

/* ---- rounds ---- */

/* From here on a writer drops its records. */
static void stop_rings(const struct seam_link_target *target)
{
	for (uint32_t k = 0; k < target->n_rings; k++) {
		const struct seam_link_rings *rings = &target->rings[k];

		for (uint32_t i = 0; i < rings->owners.n_present; i++)
			seam_ring_pause(
				seam_ring_memory_control(&rings->owners.memory,
							 i), true);
	}
}

/* A place among the rings of all programs; zeroed: the first. */
struct ring_walk {
	size_t target;
	uint32_t rings, i;
};

/* The next ring that has an owner; NULL: there is none. */
static struct seam_program_ring *next_ring(struct seam_services *s,
					   struct ring_walk *w)
{
	for (; w->target < s->server.n_targets; w->target++, w->rings = 0) {
		struct seam_link_target *target = s->server.targets[w->target];

		for (; w->rings < target->n_rings; w->rings++, w->i = 0) {
			struct seam_link_rings *rings =
				&target->rings[w->rings];

			while (w->i < rings->owners.n_present) {
				struct seam_program_ring *ring =
					seam_program_ring_get(s, target, rings,
							      w->i++);

				if (ring)
					return ring;
			}
		}
	}
	return NULL;
}

static void each_ring(struct seam_services *s,
		      void (*visit)(struct seam_services *s,
				    struct seam_program_ring *ring))
{
	struct seam_program_ring *ring;
	struct ring_walk walk = { 0 };

	while ((ring = next_ring(s, &walk)))
		visit(s, ring);
}

void seam_services_copy(struct seam_services *s, bool is_last)
{
	s->begin_ns = seam_clock_ns();
	s->is_last = is_last;
	if (!s->is_open || (!s->is_ready && !s->server.n_targets))
		return;
	s->is_ready = false;
	seam_link_server_step(&s->server);
	for (size_t i = 0; i < s->server.n_targets; i++) {
		struct seam_link_target *target = s->server.targets[i];

		if (is_last)
			stop_rings(target);
		for (uint32_t k = 0; is_last && k < target->n_rings; k++)
			seam_owners_scan(&target->rings[k].owners);
	}
	each_ring(s, seam_program_ring_copy);
}

void seam_services_see_task(struct seam_services *s,
			    const struct seam_perf_sideband *record)
{
	if (s->is_open)
		seam_task_tree_see(&s->tree, record, s->other_clock ?
			       seam_clock_ns() : record->sample_id.time);
}

void seam_services_learn(struct seam_services *s)
{
	/* of another clock it is not known how far all records have come */
	uint64_t until_ns = s->is_last || s->other_clock ? UINT64_MAX :
			    s->begin_ns;
	bool is_check;

	if (!s->is_open)
		return;
	seam_task_tree_apply(&s->tree, until_ns);
	/* of processes whose end was not recorded */
	is_check = s->begin_ns - s->checked_ns >= SEAM_NS_PER_S;
	if (is_check) {
		s->checked_ns = s->begin_ns;
		each_ring(s, seam_program_ring_check);
	}
	for (size_t i = 0; i < s->server.n_targets; i++) {
		struct seam_link_target *target = s->server.targets[i];

		if (is_check && target->process)
			seam_task_tree_check(&s->tree, target->process);
		if (!target->n_rings || target->rings_ns > until_ns)
			continue;
		if (!target->process)
			target->process = seam_task_tree_get(
				&s->tree, (uint32_t)target->pid,
				s->other_clock ? UINT64_MAX : target->rings_ns);
		target->is_over =
			target->process &&
			!seam_tree_process_has_memory(target->process);
	}
	each_ring(s, seam_program_ring_preview);
}

struct seam_bytes seam_services_take(struct seam_services *s)
{
	s->round.bytes.n = 0;
	if (!s->is_open)
		return (struct seam_bytes) { 0 };
	each_ring(s, seam_program_ring_take);
	for (size_t i = 0; i < s->n; i++)
		if (s->items[i]->finish_round)
			s->items[i]->finish_round(s->items[i], &s->round);
	if (!s->is_last)
		forget_ended(s);
	for (size_t i = 0; s->is_last && i < s->server.n_targets; i++)
		count_without_ring(s, s->server.targets[i]);
	s->floor_ns = s->round_ns;
	s->round_ns = seam_clock_ns();
	return (struct seam_bytes) { s->round.bytes.items, s->round.bytes.n };
}

void seam_services_snapshot_aux(struct seam_services *s)
{
	if (s->is_open)
		each_ring(s, seam_program_ring_snapshot_aux);
}

/* The next ring of @service that process @pid has. */
static struct seam_program_ring *
next_of(struct seam_services *s, struct ring_walk *walk,
	const struct seam_service *service, uint32_t pid)
{
	struct seam_program_ring *ring;

	do
		ring = next_ring(s, walk);
	while (ring && (!ring->has_begun || ring->stream.service != service ||
			ring->stream.pid != pid));
	return ring;
}

void seam_services_skip_gaps(struct seam_services *s,
			     const struct seam_service *service, uint32_t pid,
			     unsigned int cause)
{
	struct seam_program_ring *ring;
	struct ring_walk walk = { 0 };

	while ((ring = next_of(s, &walk, service, pid)))
		seam_program_ring_skip_gap(ring, cause);
}

struct seam_ring_control *seam_services_control(
		struct seam_services *s, const struct seam_service *service,
		uint32_t pid)
{
	struct ring_walk walk = { 0 };
	struct seam_program_ring *ring = next_of(s, &walk, service, pid);

	return ring ? ring->owner->ring.control : NULL;
}

/* ---- all services ---- */

void seam_services_start(struct seam_services *s,
			 const struct seam_bundle *bundle,
			 uint64_t sideband_id)
{
	for (size_t i = 0; i < s->n; i++)
		if (s->items[i]->start)
			s->items[i]->start(s->items[i], bundle, sideband_id);
}

struct seam_service *seam_services_superseder(const struct seam_services *s)
{
	for (size_t i = 0; i < s->n; i++)
		if (s->items[i]->supersedes)
			return s->items[i];
	return NULL;
}

void seam_services_set_from(struct seam_services *s, uint64_t ns)
{
	for (size_t i = 0; i < s->n; i++)
		if (!s->items[i]->has_names)
			s->items[i]->from_ns = ns;
}

void seam_services_after_round(struct seam_services *s, bool at_end)
{
	for (size_t i = 0; i < s->n; i++)
		if (s->items[i]->after_round)
			s->items[i]->after_round(s->items[i], at_end);
}

uint64_t seam_services_due_ns(const struct seam_services *s)
{
	uint64_t due_ns = UINT64_MAX;

	for (size_t i = 0; i < s->n; i++)
		if (s->items[i]->due_ns && s->items[i]->due_ns(s->items[i]) <
					   due_ns)
			due_ns = s->items[i]->due_ns(s->items[i]);
	return due_ns;
}

uint64_t seam_services_bytes(const struct seam_services *s)
{
	uint64_t bytes = 0;

	for (size_t i = 0; i < s->n; i++)
		if (s->items[i]->n_bytes)
			bytes += s->items[i]->n_bytes(s->items[i]);
	return bytes;
}

int seam_services_copy_to(struct seam_services *s,
			  const struct seam_bundle *bundle,
			  struct seam_err *err)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < s->n; i++)
		if (s->items[i]->copy)
			r = s->items[i]->copy(s->items[i], bundle, err);
	return r;
}

void seam_services_finish(struct seam_services *s)
{
	for (size_t i = 0; i < s->n; i++)
		if (s->items[i]->finish)
			s->items[i]->finish(s->items[i]);
}

void seam_services_describe(const struct seam_services *s,
			    struct seam_manifest *m, bool is_snapshot)
{
	for (size_t i = 0; i < s->n; i++)
		if (s->items[i]->describe)
			s->items[i]->describe(s->items[i], m, is_snapshot);
}

/* ---- the end ---- */

void seam_services_close(struct seam_services *s)
{
	if (!s->is_open)
		return;
	/* Without effect after the last round. */
	seam_services_copy(s, true);
	seam_services_learn(s);
	seam_services_take(s);
	/* Rings that became free, for children to come. */
	for (size_t i = 0; i < s->server.n_targets; i++) {
		stop_rings(s->server.targets[i]);
		seam_tree_process_unref(s->server.targets[i]->process);
	}
	s->n_failed = s->server.n_failed;
	s->why = s->server.why;
	s->n_notes = s->server.n_notes;
	memcpy(s->note, s->server.note, sizeof(s->note));
	seam_link_server_close(&s->server);
	s->is_open = false;
}

void seam_services_fini(struct seam_services *s)
{
	seam_services_close(s);
	seam_task_tree_fini(&s->tree);
	seam_synth_fini(&s->round);
	free(s->record);
	free(s->unit);
	*s = (struct seam_services) { 0 };
}
