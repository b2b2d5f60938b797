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
	/* Rounds for the owner of a complete copy to be found. */
	MAX_ROUNDS = 3,
};

struct input {
	struct seam_service_stream stream;	/* pid 0: it has not begun */
	struct seam_tree_process *process;	/* the owner's; NULL: unknown */
	SEAM_ARRAY(uint8_t) records;	/* copied and not used, whole */
	SEAM_ARRAY(uint8_t) aux;	/* likewise */
	bool is_previewed;		/* these records were */
	bool is_complete;		/* nothing will follow the copy */
	uint32_t n_unknown;		/* rounds without an owner */
	uint32_t n_rounds;		/* of these, since it is complete */
	uint64_t n_copied;		/* records that the program began */
	uint64_t n_reported;		/* losses written so far */
	uint64_t n_gaps;		/* items skipped before aux.first */
};

uint64_t seam_program_ring_limit(const struct seam_link_target *target,
				 uint64_t n, uint64_t n_threads)
{
	uint64_t max = (seam_clock_ns() - target->connected_ns) / ITEM_NS *
		       n_threads;

	return n < max ? n : max;
}

/* ---- the owner ---- */

/* The owner of a ring, if it is known by now. */
static bool find_owner(struct seam_services *s,
		       const struct seam_program_ring *ring,
		       struct seam_service_stream *stream)
{
	const struct seam_link_target *target = ring->target;
	struct input *in = ring->owner->input;

	if (!in->process && target->process)
		in->process = seam_task_tree_owner(
			&s->tree, ring->owner->tid, target->process,
			seam_services_since(s, target));
	if (!in->process && target->process && s->believes_claims)
		in->process = seam_task_tree_believe(
			&s->tree, ring->owner->tid, target->process);
	if (!in->process)
		return false;
	stream->pid = in->process->pid;
	stream->tid = ring->owner->tid;
	stream->since_ns = target->connected_ns;
	return true;
}

/* Whether nothing will follow what the ring holds. */
static bool is_ending(const struct seam_services *s,
		      const struct seam_program_ring *ring)
{
	const struct input *in = ring->owner->input;

	return ring->owner->is_ending || ring->target->is_over ||
	       (in->process &&
		seam_task_tree_has_ended(&s->tree, in->process,
					 ring->owner->tid));
}

void seam_program_ring_check(struct seam_services *s,
			     const struct seam_program_ring *ring,
			     bool is_last)
{
	const struct input *in = ring->owner->input;

	(void)is_last;
	if (in && in->process)
		seam_task_tree_check(&s->tree, in->process);
	else if (in)
		seam_task_tree_ask(&s->tree, ring->owner->tid);
}

/* ---- copy ---- */

static void append(struct seam_services *s, struct seam_service *service,
		   struct input *in, const struct seam_ring_header *header)
{
	in->n_copied += header->type != PERF_RECORD_LOST;
	service->n_bad += !SEAM_ARRAY_EXTEND(&in->records, s->record,
					     header->size);
}

static void copy_records(struct seam_services *s,
			 const struct seam_program_ring *ring, struct input *in)
{
	struct seam_owner *owner = ring->owner;
	struct seam_ring_header header;
	struct seam_ring_span span;
	size_t pos = 0;

	seam_ring_peek(&owner->ring, &span);
	for (; seam_ring_copy(&span, pos, &header, s->record);
	     pos += header.size)
		append(s, ring->service, in, &header);
	ring->service->n_bad += pos != seam_ring_span_bytes(&span);
	seam_ring_advance(&owner->ring, &span);
}

static void append_aux(struct seam_service *service, struct input *in,
		       const uint8_t *bytes, size_t size)
{
	service->n_bad += !SEAM_ARRAY_EXTEND(&in->aux, bytes, size);
}

/* Whether the AUX buffer is drained, and by units: then it needs no copy. */
static bool has_aux_units(const struct seam_service *service)
{
	const struct seam_ring_geometry *g = &service->link.geometry;

	return g->aux_bytes && !g->aux_free_running && service->aux_unit;
}

static void copy_aux(const struct seam_program_ring *ring, struct input *in)
{
	struct seam_ring_aux *aux = &ring->owner->aux;
	struct seam_ring_span span;

	seam_ring_aux_peek(aux, &span);
	append_aux(ring->service, in, span.part[0], span.size[0]);
	append_aux(ring->service, in, span.part[1], span.size[1]);
	seam_ring_aux_advance(aux, &span);
}

/* The newest bytes, from a position that the service can read from. */
static struct seam_bytes newest_aux(const struct seam_program_ring *ring,
				    struct seam_ring_aux_snapshot *snapshot)
{
	uint64_t unit = ring->service->aux_unit ? ring->service->aux_unit : 1;
	size_t skip = (unit - snapshot->offset % unit) % unit;

	if (snapshot->bytes <= skip)
		return (struct seam_bytes) { 0 };
	return (struct seam_bytes) { snapshot->data + skip,
				     snapshot->bytes - skip };
}

static void copy_free_running(const struct seam_program_ring *ring,
			      struct input *in)
{
	struct seam_ring_aux *aux = &ring->owner->aux;
	struct seam_ring_aux_snapshot snapshot;
	struct seam_bytes newest;

	if (seam_ring_aux_snapshot_init(&snapshot, aux, NULL) == 0) {
		seam_ring_aux_snapshot_program(aux, &snapshot);
		newest = newest_aux(ring, &snapshot);
		append_aux(ring->service, in, newest.data, newest.size);
	}
	seam_ring_aux_snapshot_fini(&snapshot);
}

/* Hand the copy to preview(), once, unless take_sample() will refuse it. */
static void preview(const struct seam_services *s, struct seam_service *service,
		    struct input *in, struct seam_service_stream *stream)
{
	struct seam_ring_header header;

	if (!service->preview || in->is_previewed || !in->records.n ||
	    (service->event && s->other_clock))
		return;
	in->is_previewed = true;
	for (size_t pos = 0; pos < in->records.n; pos += header.size) {
		memcpy(&header, in->records.items + pos, sizeof(header));
		service->preview(service, stream, in->records.items + pos,
				 header.size);
	}
}

void seam_program_ring_copy(struct seam_services *s,
			    const struct seam_program_ring *ring, bool is_last)
{
	const struct seam_ring_geometry *g = &ring->service->link.geometry;
	struct seam_owner *owner = ring->owner;
	struct input *in = owner->input;

	if (!in)
		in = owner->input = calloc(1, sizeof(*in));
	/* Without memory, or an owner, the records stay in the ring. */
	if (!in || in->is_complete || in->records.n || in->aux.n)
		return;
	/* Before the copy: a record that came before the end is in it. */
	in->is_complete = is_last || is_ending(s, ring);
	copy_records(s, ring, in);
	if (g->aux_bytes && !g->aux_free_running && !ring->service->aux_unit)
		copy_aux(ring, in);
	else if (g->aux_bytes && g->aux_free_running && in->is_complete)
		copy_free_running(ring, in);
}

/* Before begin(), if the owner is known by now: for that, keep the state. */
void seam_program_ring_preview(struct seam_services *s,
			       const struct seam_program_ring *ring,
			       bool is_last)
{
	struct input *in = ring->owner->input;
	struct seam_service_stream stream;

	(void)is_last;
	if (!in)
		return;
	stream = in->stream;
	if (!stream.service && !find_owner(s, ring, &stream)) {
		/* in the first round it may be too early for its record */
		if (++in->n_unknown == 2)
			seam_task_tree_ask(&s->tree, ring->owner->tid);
		return;
	}
	preview(s, ring->service, in, &stream);
	in->stream.state = stream.state;
}

/* ---- begin ---- */

static bool begin(struct seam_services *s,
		  const struct seam_program_ring *ring)
{
	struct input *in = ring->owner->input;

	if (in->stream.service)
		return true;
	if (!find_owner(s, ring, &in->stream))
		return false;
	in->stream.service = ring->service;
	if (!ring->service->begin || ring->service->begin(&in->stream) == 0)
		return true;
	in->stream.service = NULL;
	in->stream.pid = 0;
	return false;
}

/* ---- use ---- */

/*
 * A sample of the service's event.  Its time is not before the end of the
 * round before the last, unless readers sort all of "data": at the end of a
 * round they use what is older than the newest record of the round before.
 */
static void take_sample(struct seam_services *s, struct input *in,
			uint8_t *record, const struct seam_ring_header *header)
{
	struct seam_service *service = in->stream.service;
	uint64_t now_ns = seam_clock_ns(), until_ns = in->stream.until_ns;
	const struct seam_ring_identity identity = {
		.sample_type = service->sample_type, .id = service->event_id,
		.pid = in->stream.pid, .tid = in->stream.tid,
		.min_ns = s->is_unordered ? in->stream.since_ns : s->floor_ns,
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
	if (!service->take(&in->stream, record, header->size) ||
	    !SEAM_ARRAY_EXTEND(&s->round.bytes, record, header->size))
		service->n_bad++;
	else
		service->n_samples++;
}

static void take_records(struct seam_services *s, struct input *in)
{
	struct seam_service *service = in->stream.service;
	struct seam_ring_header header;

	preview(s, service, in, &in->stream);
	in->is_previewed = false;
	for (size_t pos = 0; pos < in->records.n; pos += header.size) {
		uint8_t *record = in->records.items + pos;

		memcpy(&header, record, sizeof(header));
		if (!service->event)
			service->take(&in->stream, record, header.size);
		else if (header.type == PERF_RECORD_SAMPLE)
			take_sample(s, in, record, &header);
		else if (header.type != PERF_RECORD_LOST &&
			 header.type != PERF_RECORD_AUX)
			service->n_bad++;
	}
	if (in->aux.n && service->take_aux)
		service->take_aux(&in->stream, in->aux.items, in->aux.n);
	free(in->records.items);
	free(in->aux.items);
	in->records.items = in->aux.items = NULL;
	in->records.n = in->records.cap = in->aux.n = in->aux.cap = 0;
}

/* Hand on the @n bytes at the tail, which are of one unit; give them back. */
static void take_unit(struct seam_services *s, struct seam_ring_aux *aux,
		      struct input *in, size_t n)
{
	struct seam_service *service = in->stream.service;
	struct seam_ring_span span = {
		.end = (aux->tail + n) & SEAM_RING_AUX_POSITION,
	};
	/* an owner begins with a unit: the rest of one is of the last owner */
	bool is_rest = aux->tail % service->aux_unit;

	if (!is_rest) {
		seam_ring_load(aux->buffer, aux->size - 1, aux->tail, s->unit,
			       n);
		service->take_aux(&in->stream, s->unit, n);
	}
	seam_ring_aux_advance(aux, &span);
}

/*
 * The whole units in the AUX buffer, and what is after them if nothing will
 * follow: an owner may take back its newest bytes.
 */
static void take_units(struct seam_services *s,
		       const struct seam_program_ring *ring, struct input *in)
{
	struct seam_ring_aux *aux = &ring->owner->aux;
	uint32_t unit = ring->service->aux_unit;
	struct seam_ring_span span;
	size_t n = seam_ring_aux_peek(aux, &span), next;

	for (; n > 0; n -= next) {
		next = unit - aux->tail % unit;
		if (next > n && !in->is_complete)
			break;
		next = next < n ? next : n;
		take_unit(s, aux, in, next);
	}
}

static void snapshot_aux(const struct seam_program_ring *ring)
{
	struct input *in = ring->owner->input, now = { 0 };

	copy_free_running(ring, &now);
	if (now.aux.n)
		ring->service->snapshot_aux(&in->stream, now.aux.items,
					    now.aux.n);
	free(now.aux.items);
}

void seam_program_ring_snapshot_aux(struct seam_services *s,
				    const struct seam_program_ring *ring,
				    bool is_last)
{
	const struct seam_ring_geometry *g = &ring->service->link.geometry;
	struct input *in = ring->owner->input;

	(void)is_last;
	if (ring->service->snapshot_aux && g->aux_bytes &&
	    g->aux_free_running && in && !in->is_complete && begin(s, ring))
		snapshot_aux(ring);
}

void seam_program_ring_skip_gap(const struct seam_program_ring *ring,
				unsigned int cause)
{
	const struct seam_ring_control *control = ring->owner->ring.control;
	uint64_t unit = ring->service->aux_unit ? ring->service->aux_unit : 1;
	struct input *in = ring->owner->input;
	/* relaxed: a count; the position is of a thread that waits, or later */
	uint64_t n = atomic_load_explicit(&control->program.n_skipped[cause],
					  memory_order_relaxed);
	uint64_t head = atomic_load_explicit(&control->aux_head,
					     memory_order_relaxed) &
			SEAM_RING_AUX_POSITION;

	if (n == in->n_gaps)
		return;
	in->n_gaps = n;
	/* the gap is where a unit begins */
	ring->owner->aux.first = head / unit * unit;
}

bool seam_program_ring_is_of(const struct seam_program_ring *ring, uint32_t pid)
{
	const struct input *in = ring->owner->input;

	return in && in->stream.service && in->stream.pid == pid;
}

/* Records lost so far, and at the end those that were begun and never ended. */
static uint64_t count_lost(const struct input *in,
			   const struct seam_owner_counts *counts)
{
	uint64_t n = 0;

	for (int i = 0; i < SEAM_RING_N_LOSSES; i++)
		n += counts->n_lost[i];
	if (in->is_complete && counts->n_begun > in->n_copied)
		n += counts->n_begun - in->n_copied;
	return n;
}

/* Write what was lost since the last time. */
static void report_losses(struct seam_services *s, struct input *in,
			  const struct seam_link_target *target,
			  const struct seam_owner_counts *counts)
{
	struct seam_service *service = in->stream.service;
	uint64_t n = seam_program_ring_limit(target, count_lost(in, counts),
					     1);

	if (!service->event || n <= in->n_reported)
		return;
	seam_synth_lost(&s->round, service->event_id, 0, seam_clock_ns(),
			n - in->n_reported);
	service->n_lost += n - in->n_reported;
	in->n_reported = n;
}

/* Of a ring whose owner was not found: what preview() made must not stay. */
static void end_previewed(struct seam_service *service, struct input *in)
{
	static const struct seam_owner_counts none;

	if (!in || !in->stream.state || !service->end)
		return;
	in->stream.service = service;
	service->end(&in->stream, &none);
}

static void end(struct seam_services *s, const struct seam_program_ring *ring)
{
	struct seam_service *service = ring->service;
	struct input *in = ring->owner->input;
	struct seam_owner_counts counts;

	seam_owners_counts(&ring->rings->owners, ring->i, &counts);
	service->n_bad += ring->owner->aux.n_resyncs;
	counts.n_offered = seam_program_ring_limit(ring->target,
						   counts.n_offered, 1);
	for (int i = 0; i < SEAM_RING_N_SKIPPED; i++)
		counts.n_skipped[i] = seam_program_ring_limit(
			ring->target, counts.n_skipped[i], 1);
	if (in && in->stream.service) {
		report_losses(s, in, ring->target, &counts);
		if (service->end)
			service->end(&in->stream, &counts);
	} else {
		service->n_unowned++;
		service->n_unowned_offered += counts.n_offered;
		end_previewed(service, in);
	}
	if (in) {
		seam_tree_process_unref(in->process);
		free(in->records.items);
		free(in->aux.items);
		free(in);
	}
	seam_owners_release(&ring->rings->owners, ring->i);
}

void seam_program_ring_take(struct seam_services *s,
			    const struct seam_program_ring *ring, bool is_last)
{
	struct input *in = ring->owner->input;
	bool is_over = is_last || (in && in->is_complete);
	struct seam_owner_counts counts;

	if (in && begin(s, ring)) {
		if (in->process->has_executed)
			in->stream.until_ns = in->process->end_ns - 1;
		take_records(s, in);
		if (has_aux_units(ring->service))
			take_units(s, ring, in);
		seam_owners_counts(&ring->rings->owners, ring->i, &counts);
		if (!in->is_complete)
			report_losses(s, in, ring->target, &counts);
	} else if (in && in->is_complete && !is_last) {
		is_over = ++in->n_rounds == MAX_ROUNDS;
	}
	if (is_over)
		end(s, ring);
}
