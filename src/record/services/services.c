/* SPDX-License-Identifier: MIT */
/* services.c - open, see the side-band, copy, take, end; see services.h */
#include "record/services/services.h"

#include <assert.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/clock.h"
#include "ring/bytes.h"
#include "ring/link/owners.h"

enum {
	MAX_RING_BYTES = 256 << 20,	/* of all programs; or so many rings: */
	MIN_RINGS = 8,
	RECORD_BYTES = UINT16_MAX + 1,
	/* A thread counts no item in less: a refusal takes twice that. */
	ITEM_NS = 1,
	/* Rounds for the owner of a ring to be found. */
	MAX_ROUNDS = 3,
};

/*
 * One ring of a program as an input of the drain: from when the ring is first
 * seen with a claim, until its owner has ended and the ring is empty.
 * owner->input points to it.
 */
struct program_ring {
	const struct seam_link_target *target;
	struct seam_link_rings *rings;
	uint32_t i;			/* which of these */
	struct seam_owner *owner;
	struct seam_service_stream stream;
	struct seam_tree_process *process;	/* the owner's; NULL: unknown */
	SEAM_ARRAY(uint8_t) records;	/* copied and not used, whole */
	bool has_begun;			/* for the service */
	bool is_previewed;		/* these records were */
	bool is_complete;		/* nothing will follow the copy */
	uint32_t n_unknown;		/* rounds before it began */
	uint64_t n_copied;		/* records that the program began */
	uint64_t n_reported;		/* losses written so far */
	uint64_t n_gaps;		/* items skipped before aux.first */
};

/*
 * @n, or the most that @n_threads of a program, running at once, can have
 * counted since it connected.
 */
static uint64_t limit_count(const struct seam_link_target *target, uint64_t n,
			    uint64_t n_threads)
{
	uint64_t max = (seam_clock_ns() - target->connected_ns) / ITEM_NS *
		       n_threads;

	return n < max ? n : max;
}

/* Ring @i of @rings; NULL: it has no owner, or there is no memory. */
static struct program_ring *ring_get(struct seam_services *s,
				     struct seam_link_target *target,
				     struct seam_link_rings *rings, uint32_t i)
{
	struct seam_owner *owner = &rings->owners.items[i];
	struct program_ring *ring = owner->input;

	if (ring || !owner->word)
		return ring;
	ring = owner->input = calloc(1, sizeof(*ring));
	if (ring)
		*ring = (struct program_ring) {
			.target = target, .rings = rings, .i = i,
			.owner = owner,
			.stream = {
				.service = s->items[rings->service],
				.tid = owner->tid,
				.since_ns = target->connected_ns,
			},
		};
	return ring;
}

/* ---- the owner ---- */

static bool find_owner(struct seam_services *s, struct program_ring *ring)
{
	const struct seam_link_target *target = ring->target;
	uint32_t tid = ring->owner->tid;

	/* of another clock, the times are those at which records are read */
	if (!ring->process && target->process)
		ring->process = seam_task_tree_owner(
			&s->tree, tid, target->process,
			s->other_clock ? 0 : target->rings_ns);
	if (!ring->process && target->process && s->believes_claims)
		ring->process = seam_task_tree_believe(&s->tree, tid,
						       target->process);
	ring->stream.pid = ring->process ? ring->process->pid : 0;
	return ring->process;
}

/* Ask the kernel for what the side-band may have lost: owner, or its end. */
static void ring_check(struct seam_services *s, struct program_ring *ring)
{
	if (ring->process)
		seam_task_tree_check(&s->tree, ring->process);
	else
		seam_task_tree_ask(&s->tree, ring->owner->tid);
}

static bool ring_begin(struct seam_services *s, struct program_ring *ring)
{
	const struct seam_service *service = ring->stream.service;

	if (!ring->has_begun && find_owner(s, ring))
		ring->has_begun = !service->begin ||
				  service->begin(&ring->stream) == 0;
	return ring->has_begun;
}

/* ---- copy ---- */

/* Copy what @ring holds, unless an earlier copy is still to be used. */
static void ring_copy(struct seam_services *s, struct program_ring *ring)
{
	struct seam_service *service = ring->stream.service;
	struct seam_owner *owner = ring->owner;
	struct seam_ring_header header;
	struct seam_ring_span span;
	size_t pos = 0;

	/* Without an owner, the records stay in the ring. */
	if (ring->is_complete || ring->records.n)
		return;
	/* Before the copy: a record that came before the end is in it. */
	ring->is_complete = s->is_last || owner->is_ending ||
		ring->target->is_over ||
		(ring->process && seam_task_tree_has_ended(
					  &s->tree, ring->process, owner->tid));
	seam_ring_peek(&owner->ring, &span);
	for (; seam_ring_copy(&span, pos, &header, s->record);
	     pos += header.size) {
		ring->n_copied += header.type != PERF_RECORD_LOST;
		service->n_bad += !SEAM_ARRAY_EXTEND(&ring->records, s->record,
						     header.size);
	}
	service->n_bad += pos != seam_ring_span_bytes(&span);
	seam_ring_advance(&owner->ring, &span);
}

/* Hand the copy to preview(), once, unless take_sample() will refuse it. */
static void preview_records(const struct seam_services *s,
			    struct program_ring *ring)
{
	struct seam_service *service = ring->stream.service;
	struct seam_ring_header header;

	if (!service->preview || ring->is_previewed || !ring->records.n ||
	    (service->event && s->other_clock))
		return;
	ring->is_previewed = true;
	for (size_t pos = 0; pos < ring->records.n; pos += header.size) {
		memcpy(&header, ring->records.items + pos, sizeof(header));
		service->preview(service, &ring->stream,
				 ring->records.items + pos, header.size);
	}
}

/* Find the owner of @ring, and hand a new copy to preview(). */
static void ring_preview(struct seam_services *s, struct program_ring *ring)
{
	if (find_owner(s, ring))
		preview_records(s, ring);
	/* in the first round it may be too early for its record */
	else if (ring->n_unknown == 1)
		seam_task_tree_ask(&s->tree, ring->owner->tid);
}

/* ---- use ---- */

/*
 * A sample of the service's event.  Its time is not before the end of the
 * round before the last, unless readers sort all of "data": at the end of a
 * round they use what is older than the newest record of the round before.
 */
static void take_sample(struct seam_services *s,
			struct seam_service_stream *stream, uint8_t *record,
			const struct seam_ring_header *header)
{
	struct seam_service *service = stream->service;
	uint64_t now_ns = seam_clock_ns(), until_ns = stream->until_ns;
	const struct seam_ring_identity identity = {
		.sample_type = service->sample_type, .id = service->event_id,
		.pid = stream->pid, .tid = stream->tid,
		.min_ns = s->is_unordered ? stream->since_ns : s->floor_ns,
		.max_ns = until_ns && until_ns < now_ns ? until_ns : now_ns,
	};

	if (s->other_clock || identity.max_ns < identity.min_ns ||
	    !seam_ring_set_owner(record, header, &identity)) {
		service->n_bad++;
		return;
	}
	if (seam_ring_sample_time(record, service->sample_type) <
	    service->from_ns)
		return;
	if (!service->take(stream, record, header->size) ||
	    !SEAM_ARRAY_EXTEND(&s->round.bytes, record, header->size))
		service->n_bad++;
	else
		service->n_samples++;
}

static void take_records(struct seam_services *s, struct program_ring *ring)
{
	struct seam_service *service = ring->stream.service;
	struct seam_ring_header header;

	/* of an owner who was not known when the others were previewed */
	preview_records(s, ring);
	ring->is_previewed = false;
	for (size_t pos = 0; pos < ring->records.n; pos += header.size) {
		uint8_t *record = ring->records.items + pos;

		memcpy(&header, record, sizeof(header));
		if (!service->event)
			service->take(&ring->stream, record, header.size);
		else if (header.type == PERF_RECORD_SAMPLE)
			take_sample(s, &ring->stream, record, &header);
		else if (header.type != PERF_RECORD_LOST &&
			 header.type != PERF_RECORD_AUX)
			service->n_bad++;
	}
	free(ring->records.items);
	ring->records.items = NULL;
	ring->records.n = ring->records.cap = 0;
}

/*
 * Of a buffer that is drained the whole units, and what is after them if
 * nothing will follow: an owner may take back its newest bytes.  An owner
 * begins with a unit: the rest of a unit is of the owner before.
 */
static void take_units(struct seam_services *s, struct program_ring *ring)
{
	struct seam_service *service = ring->stream.service;
	struct seam_ring_aux *aux = &ring->owner->aux;
	struct seam_ring_span span;
	size_t n = seam_ring_aux_peek(aux, &span), next;

	for (; n > 0; n -= next) {
		uint64_t begun = aux->tail % service->aux_unit;

		next = service->aux_unit - begun;
		if (next > n && !ring->is_complete)
			break;
		next = next < n ? next : n;
		if (!begun) {
			seam_ring_load(aux->buffer, aux->size - 1, aux->tail,
				       s->unit, next);
			service->take_aux(&ring->stream, s->unit, next);
		}
		span.end = (aux->tail + next) & SEAM_RING_AUX_POSITION;
		seam_ring_aux_advance(aux, &span);
	}
}

/* Hand on the newest bytes of a free-running buffer, from a whole unit on. */
static void take_newest(struct program_ring *ring,
			void (*take)(struct seam_service_stream *stream,
				     const uint8_t *bytes, size_t size))
{
	struct seam_service *service = ring->stream.service;
	struct seam_ring_aux *aux = &ring->owner->aux;
	uint64_t unit = service->aux_unit, skip;
	struct seam_ring_aux_snapshot snapshot;

	if (seam_ring_aux_snapshot_init(&snapshot, aux, NULL) < 0) {
		service->n_bad++;
		return;
	}
	seam_ring_aux_snapshot_program(aux, &snapshot);
	skip = (unit - snapshot.offset % unit) % unit;
	if (snapshot.bytes > skip)
		take(&ring->stream, snapshot.data + skip,
		     snapshot.bytes - skip);
	seam_ring_aux_snapshot_fini(&snapshot);
}

static void take_aux(struct seam_services *s, struct program_ring *ring)
{
	const struct seam_service *service = ring->stream.service;

	if (!service->link.geometry.aux_bytes)
		return;
	if (!service->link.geometry.aux_free_running)
		take_units(s, ring);
	else if (ring->is_complete)
		take_newest(ring, service->take_aux);
}

/* Hand what is in a free-running AUX buffer now on, for a snapshot. */
static void ring_snapshot_aux(struct seam_services *s,
			      struct program_ring *ring)
{
	const struct seam_service *service = ring->stream.service;

	if (service->snapshot_aux && service->link.geometry.aux_free_running &&
	    !ring->is_complete && ring_begin(s, ring))
		take_newest(ring, service->snapshot_aux);
}

/*
 * If the owner has skipped items for @cause since the last call: later copies
 * of its free-running AUX buffer begin at its present position.
 */
static void ring_skip_gap(struct program_ring *ring, unsigned int cause)
{
	const struct seam_ring_control *control = ring->owner->ring.control;
	uint64_t unit = ring->stream.service->aux_unit;
	/* relaxed: a count; the position is of a thread that waits, or later */
	uint64_t n = atomic_load_explicit(&control->program.n_skipped[cause],
					  memory_order_relaxed);
	uint64_t head = atomic_load_explicit(&control->aux_head,
					     memory_order_relaxed) &
			SEAM_RING_AUX_POSITION;

	if (n == ring->n_gaps)
		return;
	ring->n_gaps = n;
	/* the gap is where a unit begins */
	ring->owner->aux.first = head / unit * unit;
}

/* ---- the end ---- */

/* Write what was lost since the last time. */
static void report_losses(struct seam_services *s, struct program_ring *ring,
			  const struct seam_owner_counts *counts)
{
	struct seam_service *service = ring->stream.service;
	uint64_t n = 0;

	for (int i = 0; i < SEAM_RING_N_LOSSES; i++)
		n += counts->n_lost[i];
	/* at the end also those that were begun and never ended */
	if (ring->is_complete && counts->n_begun > ring->n_copied)
		n += counts->n_begun - ring->n_copied;
	n = limit_count(ring->target, n, 1);
	if (!service->event || n <= ring->n_reported)
		return;
	seam_synth_lost_samples(&s->round, service->event_id, 0,
				seam_clock_ns(), n - ring->n_reported);
	service->n_lost += n - ring->n_reported;
	ring->n_reported = n;
}

static void ring_end(struct program_ring *ring,
		     struct seam_owner_counts *counts)
{
	struct seam_service *service = ring->stream.service;

	service->n_bad += ring->owner->aux.n_resyncs;
	counts->n_offered = limit_count(ring->target, counts->n_offered, 1);
	for (int i = 0; i < SEAM_RING_N_SKIPPED; i++)
		counts->n_skipped[i] = limit_count(ring->target,
						   counts->n_skipped[i], 1);
	if (!ring->has_begun) {
		service->n_unowned++;
		service->n_unowned_offered += counts->n_offered;
	} else if (service->end) {
		service->end(&ring->stream, counts);
	}
	seam_tree_process_unref(ring->process);
	free(ring->records.items);
	seam_owners_release(&ring->rings->owners, ring->i);
	free(ring);
}

/*
 * Hand the copy to the service, if the owner is known.  Ends the input of an
 * owner that has ended; in the last round each.
 */
static void ring_take(struct seam_services *s, struct program_ring *ring)
{
	bool is_over = s->is_last || ring->is_complete;
	struct seam_owner_counts counts;

	if (ring_begin(s, ring)) {
		if (ring->process->has_executed)
			ring->stream.until_ns = ring->process->end_ns - 1;
		take_records(s, ring);
		take_aux(s, ring);
	} else if (!s->is_last && ++ring->n_unknown < MAX_ROUNDS) {
		is_over = false;
	}
	seam_owners_counts(&ring->rings->owners, ring->i, &counts);
	if (ring->has_begun)
		report_losses(s, ring, &counts);
	if (is_over)
		ring_end(ring, &counts);
}

/* ---- open ---- */

void seam_services_add(struct seam_services *s, struct seam_service *service)
{
	assert(s->n < SEAM_LINK_MAX_SERVICES);
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
	s->record = malloc(RECORD_BYTES);
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
		uint64_t n = atomic_load_explicit(
			&rings->owners.memory.head->n_lost,
			memory_order_relaxed);

		n = limit_count(target, n, n_cpus);
		if (n <= rings->n_without_ring)
			continue;
		n -= rings->n_without_ring;
		rings->n_without_ring += n;
		service->n_without_ring += n;
		if (service->event)
			seam_synth_lost_samples(&s->round, service->event_id, 0,
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
static struct program_ring *next_ring(struct seam_services *s,
				      struct ring_walk *w)
{
	for (; w->target < s->server.n_targets; w->target++, w->rings = 0) {
		struct seam_link_target *target = s->server.targets[w->target];

		for (; w->rings < target->n_rings; w->rings++, w->i = 0) {
			struct seam_link_rings *rings =
				&target->rings[w->rings];

			while (w->i < rings->owners.n_present) {
				struct program_ring *ring =
					ring_get(s, target, rings, w->i++);

				if (ring)
					return ring;
			}
		}
	}
	return NULL;
}

static void each_ring(struct seam_services *s,
		      void (*visit)(struct seam_services *s,
				    struct program_ring *ring))
{
	struct program_ring *ring;
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
	each_ring(s, ring_copy);
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
		each_ring(s, ring_check);
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
	each_ring(s, ring_preview);
}

struct seam_bytes seam_services_take(struct seam_services *s)
{
	s->round.bytes.n = 0;
	if (!s->is_open)
		return (struct seam_bytes) { 0 };
	each_ring(s, ring_take);
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
		each_ring(s, ring_snapshot_aux);
}

/* The next ring of @service that process @pid has. */
static struct program_ring *
next_of(struct seam_services *s, struct ring_walk *walk,
	const struct seam_service *service, uint32_t pid)
{
	struct program_ring *ring;

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
	struct program_ring *ring;
	struct ring_walk walk = { 0 };

	while ((ring = next_of(s, &walk, service, pid)))
		ring_skip_gap(ring, cause);
}

struct seam_ring_control *seam_services_control(
		struct seam_services *s, const struct seam_service *service,
		uint32_t pid)
{
	struct ring_walk walk = { 0 };
	struct program_ring *ring = next_of(s, &walk, service, pid);

	return ring ? ring->owner->ring.control : NULL;
}

/* ---- all services ---- */

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
