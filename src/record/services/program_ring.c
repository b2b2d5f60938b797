/* SPDX-License-Identifier: MIT */
/* program_ring.c - copy a ring, use the copy, end; see program_ring.h */
#include "record/services/program_ring.h"

#include <stdlib.h>

#include "base/clock.h"
#include "ring/bytes.h"
#include "ring/link/owners.h"

enum {
	/* A thread counts no item in less: a refusal takes twice that. */
	ITEM_NS = 1,
	/* Rounds for the owner of a ring to be found. */
	MAX_ROUNDS = 3,
};

uint64_t seam_program_ring_limit(const struct seam_link_target *target,
				 uint64_t n, uint64_t n_threads)
{
	uint64_t max = (seam_clock_ns() - target->connected_ns) / ITEM_NS *
		       n_threads;

	return n < max ? n : max;
}

struct seam_program_ring *
seam_program_ring_get(struct seam_services *s, struct seam_link_target *target,
		      struct seam_link_rings *rings, uint32_t i)
{
	struct seam_owner *owner = &rings->owners.items[i];
	struct seam_program_ring *ring = owner->input;

	if (ring || !owner->word)
		return ring;
	ring = owner->input = calloc(1, sizeof(*ring));
	if (ring)
		*ring = (struct seam_program_ring) {
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

static bool find_owner(struct seam_services *s, struct seam_program_ring *ring)
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

void seam_program_ring_check(struct seam_services *s,
			     struct seam_program_ring *ring)
{
	if (ring->process)
		seam_task_tree_check(&s->tree, ring->process);
	else
		seam_task_tree_ask(&s->tree, ring->owner->tid);
}

static bool begin(struct seam_services *s, struct seam_program_ring *ring)
{
	const struct seam_service *service = ring->stream.service;

	if (!ring->has_begun && find_owner(s, ring))
		ring->has_begun = !service->begin ||
				  service->begin(&ring->stream) == 0;
	return ring->has_begun;
}

/* ---- copy ---- */

void seam_program_ring_copy(struct seam_services *s,
			    struct seam_program_ring *ring)
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
static void preview(const struct seam_services *s,
		    struct seam_program_ring *ring)
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

void seam_program_ring_preview(struct seam_services *s,
			       struct seam_program_ring *ring)
{
	if (find_owner(s, ring))
		preview(s, ring);
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

static void take_records(struct seam_services *s,
			 struct seam_program_ring *ring)
{
	struct seam_service *service = ring->stream.service;
	struct seam_ring_header header;

	/* of an owner who was not known when the others were previewed */
	preview(s, ring);
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
static void take_units(struct seam_services *s, struct seam_program_ring *ring)
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
static void take_newest(struct seam_program_ring *ring,
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

static void take_aux(struct seam_services *s, struct seam_program_ring *ring)
{
	const struct seam_service *service = ring->stream.service;

	if (!service->link.geometry.aux_bytes)
		return;
	if (!service->link.geometry.aux_free_running)
		take_units(s, ring);
	else if (ring->is_complete)
		take_newest(ring, service->take_aux);
}

void seam_program_ring_snapshot_aux(struct seam_services *s,
				    struct seam_program_ring *ring)
{
	const struct seam_service *service = ring->stream.service;

	if (service->snapshot_aux && service->link.geometry.aux_free_running &&
	    !ring->is_complete && begin(s, ring))
		take_newest(ring, service->snapshot_aux);
}

void seam_program_ring_skip_gap(struct seam_program_ring *ring,
				unsigned int cause)
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
static void report_losses(struct seam_services *s,
			  struct seam_program_ring *ring,
			  const struct seam_owner_counts *counts)
{
	struct seam_service *service = ring->stream.service;
	uint64_t n = 0;

	for (int i = 0; i < SEAM_RING_N_LOSSES; i++)
		n += counts->n_lost[i];
	/* at the end also those that were begun and never ended */
	if (ring->is_complete && counts->n_begun > ring->n_copied)
		n += counts->n_begun - ring->n_copied;
	n = seam_program_ring_limit(ring->target, n, 1);
	if (!service->event || n <= ring->n_reported)
		return;
	seam_synth_lost(&s->round, service->event_id, 0, seam_clock_ns(),
			n - ring->n_reported);
	service->n_lost += n - ring->n_reported;
	ring->n_reported = n;
}

static void end(struct seam_program_ring *ring,
		struct seam_owner_counts *counts)
{
	struct seam_service *service = ring->stream.service;

	service->n_bad += ring->owner->aux.n_resyncs;
	counts->n_offered = seam_program_ring_limit(ring->target,
						    counts->n_offered, 1);
	for (int i = 0; i < SEAM_RING_N_SKIPPED; i++)
		counts->n_skipped[i] = seam_program_ring_limit(
			ring->target, counts->n_skipped[i], 1);
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

void seam_program_ring_take(struct seam_services *s,
			    struct seam_program_ring *ring)
{
	bool is_over = s->is_last || ring->is_complete;
	struct seam_owner_counts counts;

	if (begin(s, ring)) {
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
		end(ring, &counts);
}
