/* SPDX-License-Identifier: MIT */
/* drain.c - peek at all rings, write once, advance; see drain.h */
#include "record/drain.h"

#include "base/clock.h"
#include "base/hash.h"
#include "base/heap.h"
#include "record/perf/auxtrace.h"
#include "record/session.h"
#include "wire/perf/perf_record.h"
#include "wire/perf/wait_events.h"

#include <stdlib.h>

enum {
	LOST_POS = sizeof(struct seam_ring_header) +
		   offsetof(struct seam_perf_lost, lost),
	MAX_RECORD_BYTES = UINT16_MAX + 1,
	/* Of a ring: below WAKEUP_PART of sources.c, for a wakeup. */
	FULL_PART = 5,
	MAX_TID = 1 << 22,	/* Source: PID_MAX_LIMIT, Linux */
	/* --overwrite: 16,000 samples of samplers, of 500 bytes. */
	GUEST_BYTES = 8 << 20,
};

/* ---- the records of several rings in the order of time ---- */

/* Read the header at pos.  False: the ring has no further record. */
static bool read_header(const struct seam_record_merge *merge,
			struct seam_merge_ring *ring)
{
	size_t size, at;

	if (!seam_ring_record(&ring->span, ring->pos, &ring->header))
		return false;
	size = ring->header.size;
	at = ring->header.type == PERF_RECORD_SAMPLE ?
	     merge->sample_time_pos : size - merge->time_from_end;
	ring->time = 0;		/* at once, where it is too short for a time */
	if (at < size && size - at >= sizeof(ring->time))
		memcpy(&ring->time,
		       seam_ring_bytes(&ring->span, ring->pos + at,
				       sizeof(ring->time), &ring->time),
		       sizeof(ring->time));
	ring->is_cut = ring->time > merge->until;
	return !ring->is_cut;
}

/* Equal times: rings that were added later first. */
static bool is_before(const void *a, const void *b)
{
	const struct seam_merge_ring *x = a, *y = b;

	return x->time < y->time || (x->time == y->time && x > y);
}

/* Add the records in @span, of ring @id.  False: out of memory. */
static bool merge_add(struct seam_record_merge *merge,
		      const struct seam_ring_span *span, uint32_t id)
{
	const struct seam_merge_ring ring = { .span = *span, .id = id };

	return SEAM_ARRAY_RESERVE(&merge->heap, merge->rings.n + 1) &&
	       SEAM_ARRAY_ADD(&merge->rings, ring);
}

/* Once all rings are there, and their addresses are final. */
static void fill_heap(struct seam_record_merge *merge)
{
	merge->is_begun = true;
	for (size_t i = 0; i < merge->rings.n; i++) {
		if (!read_header(merge, &merge->rings.items[i]))
			continue;
		merge->heap.items[merge->heap.n] = &merge->rings.items[i];
		seam_heap_rise(merge->heap.items, merge->heap.n++, is_before);
	}
}

/*
 * The ring of the next record, which is at *@pos of its span and has
 * *@header; NULL: that was the last one.
 */
static struct seam_merge_ring *merge_next(struct seam_record_merge *merge,
					  size_t *pos,
					  struct seam_ring_header *header)
{
	struct seam_merge_ring *ring;

	if (!merge->is_begun)
		fill_heap(merge);
	if (merge->heap.n == 0)
		return NULL;
	ring = merge->heap.items[0];
	*pos = ring->pos;
	*header = ring->header;
	ring->pos += header->size;
	if (!read_header(merge, ring))
		merge->heap.items[0] = merge->heap.items[--merge->heap.n];
	if (merge->heap.n)
		seam_heap_sink(merge->heap.items, merge->heap.n, 0, is_before);
	return ring;
}

static void merge_fini(struct seam_record_merge *merge)
{
	free(merge->rings.items);
	free(merge->heap.items);
	*merge = (struct seam_record_merge) { 0 };
}

/* ---- init ---- */

/* --keep-files: the files that a sample is in. */
static void keep_files_of(void *context, uint32_t event, const void *record)
{
	struct seam_session *s = context;

	seam_kept_files_sample(&s->kept_files,
			       &s->recording.data.events[event].attr,
			       seam_perf_record_at(record).payload);
}

/* Of events whose samples are unwound while they are drained. */
static int init_stacks(struct seam_session *s, struct seam_err *err)
{
	long max_chain = seam_procfs_sysctl("perf_event_max_stack", 127);
	struct seam_perf_attr *attrs = calloc(s->events.n, sizeof(*attrs));
	int r;

	if (!attrs)
		return seam_err_no_memory(err);
	for (size_t e = 0; e < s->events.n; e++)
		if (s->events.items[e].is_unwound)
			attrs[e] = seam_perf_attr_of(&s->events.items[e].attr);
	r = seam_live_stacks_init(&s->stacks, attrs, s->events.n,
				  (size_t)max_chain, &s->recording.data.stacks,
				  err);
	free(attrs);
	if (r == 0 && s->blocked.event_id)
		r = seam_blocked_stacks_init(&s->blocked,
					     s->options->off_cpu.min_ns, err);
	s->stacks.on_sample = s->options->keep_files ? keep_files_of : NULL;
	s->stacks.context = s;
	if (!s->stacks.is_used)
		return r;
	s->drain.stacks = &s->stacks;
	s->kept_files.follow.on_code = seam_session_take_code;
	return r;
}

static int init_history(struct seam_session *s, struct seam_err *err)
{
	if (s->options->overwrite && s->drain.superseder)
		s->drain.guests.max_bytes = GUEST_BYTES;
	if (!s->options->off_cpu.is_used || !s->options->overwrite)
		return 0;
	s->drain.history = &s->history;
	return seam_switch_history_init(&s->history, &seam_sources_common, err);
}

int seam_drain_init(struct seam_session *s, struct seam_err *err)
{
	struct seam_perf_layout layout =
		seam_perf_layout_make(&seam_sources_common, SEAM_NATIVE);
	struct seam_drain *d = &s->drain;
	int r;

	d->session = s;
	d->sources = &s->sources;
	d->file = &s->recording.data;
	d->superseder = seam_services_superseder(&s->services);
	d->id_pos = sizeof(struct seam_ring_header) + layout.id;
	d->tid_pos = sizeof(struct seam_ring_header) + layout.tid;
	d->time_pos = sizeof(struct seam_ring_header) + layout.time;
	d->merge.sample_time_pos = d->time_pos;
	/* the trailer begins with pid, tid and time */
	d->merge.time_from_end = seam_perf_sample_id_bytes(
					&seam_sources_common) - 8;
	d->raw_pos = sizeof(struct seam_ring_header) + layout.fixed_bytes;
	if (s->options->off_cpu.wakers)
		d->switched = calloc(MAX_TID / 8, 1);
	d->scratch = malloc(MAX_RECORD_BYTES);
	d->pieces = malloc(3 * sizeof(*d->pieces));
	if (!d->scratch || !d->pieces ||
	    (s->options->off_cpu.wakers && !d->switched))
		return seam_err_no_memory(err);
	r = init_history(s, err);
	return r ? r : init_stacks(s, err);
}

void seam_drain_attached(struct seam_session *s)
{
	const struct seam_number_list *tids = &s->sources.tids;
	uint64_t now_ns = seam_clock_ns();

	if (s->options->off_cpu.is_used && !seam_sources_is_system_wide(
		    &s->sources))
		s->switches_from_ns = now_ns;
	for (size_t i = 0; i < tids->n; i++)
		if (tids->items[i] > 0)
			seam_blocked_stacks_attach(&s->blocked,
				(uint32_t)seam_targets_process(tids->items[i]),
				(uint32_t)tids->items[i], now_ns);
}

void seam_drain_fini(struct seam_drain *d)
{
	merge_fini(&d->merge);
	free(d->spans);
	free(d->pieces);
	free(d->kept.items);
	free(d->scratch);
	free(d->switched);
	seam_index_fini(&d->ids);
	seam_newest_records_fini(&d->guests);
	if (d->history)
		seam_switch_history_fini(d->history);
	*d = (struct seam_drain) { 0 };
}

/*
 * Make room for the sources and rings of new threads.  Returns how many of the
 * mapped rings can be drained: all, unless memory has run out.
 */
static size_t make_room(struct seam_drain *d)
{
	size_t n = d->sources->live.n;

	for (; d->n_ids < d->sources->list.n; d->n_ids++)
		seam_index_add(&d->ids, seam_hash_u64(
			       d->sources->list.items[d->n_ids].id),
			       (uint32_t)d->n_ids);
	if (n > d->room) {
		void *spans = realloc(d->spans, 2 * n * sizeof(*d->spans));
		void *pieces;

		d->spans = spans ? spans : d->spans;
		pieces = realloc(d->pieces, (4 * n + 3) * sizeof(*d->pieces));
		d->pieces = pieces ? pieces : d->pieces;
		/* without memory, later rings are not drained */
		if (spans && pieces)
			d->room = 2 * n;
	}
	return n < d->room ? n : d->room;
}

/* The event whose records carry @id; the first for an unknown id. */
static uint32_t event_of(const struct seam_drain *d, uint64_t id)
{
	uint32_t i = SEAM_INDEX_FIND(&d->ids, seam_hash_u64(id), k,
				     d->sources->list.items[k].id == id);

	if (i != SEAM_NONE)
		return d->sources->list.items[i].event;
	for (uint32_t e = 0; id & SEAM_EVENT_PROGRAM_ID &&
	     e < d->sources->n_events; e++)
		if (d->sources->events[e].program_id == id)
			return e;
	return 0;
}

/* A number in a record; aligned, so the ring's end does not split it. */
static uint64_t u64_at(const struct seam_ring_span *span, size_t pos)
{
	uint64_t v;

	memcpy(&v, seam_ring_bytes(span, pos, sizeof(v), &v), sizeof(v));
	return v;
}

/* @ring: NULL, of a program. */
static void count_sample(struct seam_drain *d, struct seam_source_ring *ring,
			 const struct seam_ring_span *span, size_t pos,
			 const struct seam_ring_header *header)
{
	struct seam_data_file_counts *counts = &d->file->counts;
	uint32_t event;
	uint64_t ns;

	counts->n_samples++;
	/* two events: this one and the side-band's */
	event = d->sources->n_events <= 2 ? 0 :
		event_of(d, u64_at(span, pos + d->id_pos));
	d->file->by_event[event].n_samples++;
	if (ring && d->sources->events[event].is_switch_stack)
		seam_switch_stacks_count(ring);
	if ((header->misc & PERF_RECORD_MISC_CPUMODE_MASK) ==
	    PERF_RECORD_MISC_KERNEL)
		counts->n_kernel_samples++;
	if (header->size < d->time_pos + sizeof(ns))
		return;
	ns = u64_at(span, pos + d->time_pos);
	if (counts->first_ns == 0 || ns < counts->first_ns)
		counts->first_ns = ns;
	if (ns > counts->last_ns)
		counts->last_ns = ns;
}

/* A number in @record, at @pos. */
static uint32_t u32_of(const void *record, size_t pos)
{
	uint32_t v;

	memcpy(&v, (const uint8_t *)record + pos, sizeof(v));
	return v;
}

/* Remember the thread of a SWITCH record: it may be woken. */
static void see_switch(struct seam_drain *d, const void *record, size_t size)
{
	/* the trailer begins with pid and tid */
	uint32_t tid = size < d->merge.time_from_end + 4 ? 0 :
		       u32_of(record, size - d->merge.time_from_end - 4);

	if (tid < MAX_TID)
		d->switched[tid / 8] |= (uint8_t)(1u << tid % 8);
}

/* Whether a sample of sched_waking is of a thread that was recorded. */
static bool wakes_recorded(const struct seam_drain *d, const void *record,
			   size_t size)
{
	size_t pos = d->raw_pos + sizeof(uint32_t) + SEAM_WAKING_TID;
	uint32_t tid = size < pos + 4 ? MAX_TID : u32_of(record, pos);

	return tid < MAX_TID && d->switched[tid / 8] >> tid % 8 & 1;
}

static bool is_of_task(const struct seam_ring_header *header)
{
	return header->type == PERF_RECORD_FORK ||
	       header->type == PERF_RECORD_EXIT ||
	       (header->type == PERF_RECORD_COMM &&
		header->misc & PERF_RECORD_MISC_COMM_EXEC);
}

/*
 * @is_seen: the services had it, as a record of a task.  False: the record is
 * left out, beyond the share of its user.
 */
static bool read_sideband(struct seam_drain *d, const void *bytes,
			  const struct seam_ring_header *header, bool is_seen)
{
	struct seam_session *s = d->session;
	struct seam_perf_sideband record;

	d->n_sideband++;
	if (!seam_sources_read_sideband(bytes, &record))
		return true;
	if (!is_seen && is_of_task(header))
		seam_services_see_task(&s->services, &record);
	if (!seam_user_shares_take(&s->shares, &record, header->size,
				   d->begin_ns)) {
		d->file->losses.n[SEAM_COUNT_OVER_SHARE]++;
		d->file->n_records--;
		return false;
	}
	seam_session_track_files(s, &record, true);
	SEAM_SERVICES_CALL(&s->services, sideband, &record);
	seam_sparse_see(&s->sparse, &record);
	if (s->sources.per_thread && !s->sources.no_inherit)
		seam_new_threads_read(&s->new_threads, &record);
	if (!seam_sources_is_system_wide(&s->sources))
		seam_stopped_read(&s->stopped, &record);
	seam_blocked_stacks_sideband(&s->blocked, &record);
	return true;
}

/*
 * Whether a sampler has a sample of the same thread and time.  Samples of other
 * events have no weight in common with the samplers'.  The recorder's stay in
 * place of those of samplers that were dropped (--overwrite).
 */
static bool is_superseded(const struct seam_drain *d,
			  const struct seam_ring_span *span, size_t pos,
			  const struct seam_ring_header *header)
{
	struct seam_service *by = d->superseder;
	uint64_t id, time_ns;
	bool is_one;

	if (!by || header->size < d->time_pos + sizeof(uint64_t))
		return false;
	id = u64_at(span, pos + d->id_pos);
	time_ns = u64_at(span, pos + d->time_pos);
	/* tid is the upper half */
	is_one = seam_event_is_cpu_time(&d->sources->events[event_of(d, id)]) &&
		 time_ns > d->guests_from_ns &&
		 by->supersedes(by, (uint32_t)(u64_at(span, pos +
						      d->tid_pos) >> 32),
				time_ns);
	seam_sparse_sample(&d->session->sparse, id, is_one);
	d->file->losses.n[SEAM_COUNT_GUEST_SUPERSEDED] += is_one;
	return is_one;
}

bool seam_drain_count(struct seam_drain *d, struct seam_source_ring *ring,
		      const struct seam_ring_span *span, size_t pos,
		      const struct seam_ring_header *header)
{
	struct seam_perf_record record;
	struct seam_perf_aux aux;
	bool is_kept = d->history && ring->use == SEAM_RING_OF_SWITCHES;
	uint64_t position;

	if (header->type == PERF_RECORD_SAMPLE &&
	    ring->use == SEAM_RING_OF_SAMPLES &&
	    is_superseded(d, span, pos, header))
		return false;
	ring->n_records++;
	/* what the history has is counted with a copy of it */
	d->file->n_records += !is_kept;
	switch (header->type) {
	case PERF_RECORD_SWITCH:
	case PERF_RECORD_SWITCH_CPU_WIDE:
		if (d->switched && ring->use == SEAM_RING_OF_SWITCHES)
			see_switch(d, seam_ring_bytes(span, pos, header->size,
						      d->scratch),
				   header->size);
		return true;
	case PERF_RECORD_SAMPLE:
		if (d->switched && ring->use == SEAM_RING_OF_SWITCHES &&
		    !wakes_recorded(d, seam_ring_bytes(span, pos, header->size,
						       d->scratch),
				    header->size)) {
			d->file->n_records -= !is_kept;
			return false;
		}
		if (is_kept)
			return true;
		count_sample(d, ring, span, pos, header);
		if (!d->stacks && d->session->options->keep_files)
			keep_files_of(d->session,
				      event_of(d, u64_at(span,
							 pos + d->id_pos)),
				      seam_ring_bytes(span, pos, header->size,
						      d->scratch));
		return true;
	case PERF_RECORD_LOST:
		if (header->size >= LOST_POS + sizeof(uint64_t))
			ring->n_lost += u64_at(span, pos + LOST_POS);
		/* lost records may have reported a full AUX buffer */
		ring->is_stopped = true;
		return true;
	case PERF_RECORD_AUX:
		record = seam_perf_record_at(seam_ring_bytes(span, pos,
						header->size, d->scratch));
		if (seam_perf_record_read(
			    seam_perf_record_table(PERF_RECORD_AUX, 0),
			    record.payload, SEAM_NATIVE, &aux))
			return true;
		seam_auxtrace_count(&d->file->losses, &aux);
		ring->is_stopped |= !!(aux.flags & PERF_AUX_FLAG_TRUNCATED);
		return true;
	case PERF_RECORD_THROTTLE:
		d->file->losses.n[SEAM_COUNT_THROTTLED]++;
		return true;
	}
	position = span->end - seam_ring_span_bytes(span) + pos;
	return ring->use != SEAM_RING_OF_SIDEBAND ||
	       read_sideband(d, seam_ring_bytes(span, pos, header->size,
						d->scratch), header,
			     (int64_t)(position - ring->tasks_read) < 0);
}

static size_t add_piece(struct seam_drain *d, size_t n, const uint8_t *data,
			size_t size)
{
	if (size == 0)
		return n;
	d->pieces[n] = (struct iovec) {
		.iov_base = (void *)(uintptr_t)data, .iov_len = size,
	};
	return n + 1;
}

static struct seam_source_ring *live_ring(const struct seam_drain *d, size_t i)
{
	return &d->sources->rings.items[d->sources->live.items[i]];
}

/* Add the first @good bytes of a span, which may wrap. */
static size_t add_span(struct seam_drain *d, size_t n,
		       const struct seam_ring_span *span, size_t good)
{
	size_t first = good < span->size[0] ? good : span->size[0];

	n = add_piece(d, n, span->part[0], first);
	return add_piece(d, n, span->part[1], good - first);
}

static void note_fullest(struct seam_drain *d,
			 const struct seam_source_ring *ring, size_t bytes,
			 size_t *max)
{
	if (bytes <= ring->size_bytes / FULL_PART || bytes <= *max)
		return;
	*max = bytes;
	d->fullest_cpu = ring->cpu;
}

/*
 * Count the records of @span; with @copies copy those that are not superseded
 * or beyond a share.  Returns the bytes of whole records.  A record without
 * memory is lost.
 */
static size_t walk(struct seam_drain *d, struct seam_source_ring *ring,
		   const struct seam_ring_span *span, bool copies)
{
	struct seam_ring_header header;
	size_t pos = 0;

	for (; seam_ring_record(span, pos, &header); pos += header.size) {
		if (!seam_drain_count(d, ring, span, pos, &header) || !copies)
			continue;
		if (!SEAM_ARRAY_EXTEND(&d->kept, (const uint8_t *)
				       seam_ring_bytes(span, pos, header.size,
						       d->scratch),
				       header.size))
			d->file->losses.n[SEAM_COUNT_UNWRITTEN]++;
	}
	d->file->losses.n[SEAM_COUNT_BAD_BYTES] +=
		seam_ring_span_bytes(span) - pos;
	ring->n_bytes += pos;
	return pos;
}

/* ---- the history ---- */

/* Whether a record is of switches or waits: no other samples are drained. */
static bool is_of_history(const struct seam_drain *d, const uint8_t *record,
			  const struct seam_ring_header *header)
{
	const struct seam_event *event;
	uint64_t id;

	switch (header->type) {
	case PERF_RECORD_SWITCH:
	case PERF_RECORD_SWITCH_CPU_WIDE:
	case PERF_RECORD_SAMPLE:
		return true;
	case PERF_RECORD_LOST:
		memcpy(&id, record + sizeof(*header), sizeof(id));
		event = &d->sources->events[event_of(d, id)];
		return event->is_switches || event->is_waking;
	}
	return false;
}

/* Records that are kept in place of the file; true: it is one. */
typedef bool taker(struct seam_drain *d, const uint8_t *record,
		   const struct seam_ring_header *header);

static bool to_history(struct seam_drain *d, const uint8_t *record,
		       const struct seam_ring_header *header)
{
	bool is_taken = is_of_history(d, record, header);

	if ((is_taken || header->type == PERF_RECORD_EXIT) &&
	    !seam_switch_history_add(d->history, record))
		d->file->losses.n[SEAM_COUNT_UNWRITTEN]++;
	return is_taken;
}

/* Samples of samplers; names of their functions stay, which later ones need. */
static bool to_guests(struct seam_drain *d, const uint8_t *record,
		      const struct seam_ring_header *header)
{
	const uint8_t *oldest;
	uint64_t id, time_ns;

	if (header->type != PERF_RECORD_SAMPLE)
		return false;
	/* checked by a service: long enough */
	memcpy(&id, record + d->id_pos, sizeof(id));
	if (id != d->superseder->event_id)
		return false;
	if (!seam_newest_records_add(&d->guests, record, header->size))
		d->file->losses.n[SEAM_COUNT_UNWRITTEN]++;
	while ((oldest = seam_newest_records_drop(&d->guests))) {
		memcpy(&time_ns, oldest + d->time_pos, sizeof(time_ns));
		if (time_ns > d->guests_from_ns)
			d->guests_from_ns = time_ns;
	}
	return true;
}

/* Move the records that @take takes.  Returns the bytes of those that stay. */
static size_t move_records(struct seam_drain *d, uint8_t *records, size_t n,
			   taker *take)
{
	struct seam_ring_span span = { .part = { records }, .size = { n } };
	struct seam_ring_header header;
	size_t kept = 0;

	for (size_t pos = 0; seam_ring_record(&span, pos, &header);
	     pos += header.size) {
		if (take(d, records + pos, &header))
			continue;
		memmove(records + kept, records + pos, header.size);
		kept += header.size;
	}
	return kept;
}

/* Peek at all rings.  Returns the number of pieces to write. */
static size_t gather_as_they_are(struct seam_drain *d)
{
	size_t n = 0, n_rings = make_room(d), max = 0;

	d->kept.n = 0;
	for (size_t i = 0; i < n_rings; i++) {
		struct seam_source_ring *ring = live_ring(d, i);
		struct seam_ring_span *span = &d->spans[i];
		bool copies = ring->use == SEAM_RING_OF_SIDEBAND ||
			      ((d->switched || d->history) &&
			       ring->use == SEAM_RING_OF_SWITCHES) ||
			      (d->superseder &&
			       ring->use == SEAM_RING_OF_SAMPLES);
		size_t good;

		*span = (struct seam_ring_span) { .end = ring->ring.tail };
		if (ring->is_backward || seam_ring_peek(&ring->ring, span) == 0)
			continue;
		good = walk(d, ring, span, copies);
		if (!copies)
			n = add_span(d, n, span, good);
		note_fullest(d, ring, good, &max);
	}
	if (d->history)
		d->kept.n = move_records(d, d->kept.items, d->kept.n,
					 to_history);
	return add_piece(d, n, d->kept.items, d->kept.n);
}

/*
 * Peek at all rings for the merge, at those of the side-band last: what a
 * sample needs was written before it.
 */
static void peek_in_order(struct seam_drain *d)
{
	/* the kernel's own clock cannot be read */
	bool has_clock = !seam_sources_has_aux(d->sources);

	d->merge.until = d->is_last || !has_clock ? UINT64_MAX : d->begin_ns;
	d->merge.is_begun = false;
	d->merge.rings.n = d->merge.heap.n = 0;
	for (size_t i = make_room(d); i-- > 0; ) {
		struct seam_source_ring *ring = live_ring(d, i);
		struct seam_ring_span *span = &d->spans[i];

		*span = (struct seam_ring_span) { .end = ring->ring.tail };
		if (!ring->is_backward &&
		    seam_ring_peek(&ring->ring, span) > 0 &&
		    !merge_add(&d->merge, span, (uint32_t)i))
			span->end = ring->ring.tail;
	}
}

/* All records of @from were taken, or those before the time of the merge. */
static size_t end_ring(struct seam_drain *d, size_t n,
		       const struct seam_merge_ring *from, size_t *max)
{
	struct seam_source_ring *ring = live_ring(d, from->id);
	struct seam_ring_span *span = &d->spans[from->id];

	if (from->is_cut)
		span->end = ring->ring.tail + from->pos;
	else
		d->file->losses.n[SEAM_COUNT_BAD_BYTES] +=
			seam_ring_span_bytes(span) - from->pos;
	ring->n_bytes += from->pos;
	note_fullest(d, ring, from->pos, max);
	if (ring->use == SEAM_RING_OF_AUX)
		return add_span(d, n, span, from->pos);
	/* all of it was copied: the kernel can use the space at once */
	seam_ring_advance(&ring->ring, span);
	return n;
}

/* A stack of a switch: the wait that follows needs no other. */
static void take_stack(struct seam_drain *d, uint32_t event,
		       const uint8_t *record)
{
	if (d->sources->events[event].is_switch_stack)
		seam_blocked_stacks_sample(&d->session->blocked,
					   u32_of(record, d->tid_pos),
					   u32_of(record, d->tid_pos + 4));
}

/* Take a SWITCH record. */
static void take_switch(struct seam_drain *d, const uint8_t *record,
			const struct seam_ring_header *header)
{
	size_t at = header->size - d->merge.time_from_end;
	uint32_t task[2];		/* pid and tid, before the time */
	uint64_t time;

	memcpy(task, record + at - sizeof(task), sizeof(task));
	memcpy(&time, record + at, sizeof(time));
	seam_blocked_stacks_switch(&d->session->blocked, task[0], task[1], time,
		header->misc & PERF_RECORD_MISC_SWITCH_OUT,
		header->misc & PERF_RECORD_MISC_SWITCH_OUT_PREEMPT);
}

/* The stacks of threads that wait now. */
static void add_blocked(struct seam_drain *d)
{
	struct seam_blocked_stacks *blocked = &d->session->blocked;
	struct seam_ring_header header;
	const void *record;

	while (!d->is_last && (record = seam_blocked_stacks_next(blocked))) {
		struct seam_ring_span span = { .part = { record } };

		memcpy(&header, record, sizeof(header));
		span.size[0] = header.size;
		if (!d->history) {
			d->file->n_records++;
			count_sample(d, NULL, &span, 0, &header);
		}
		seam_live_stacks_sample(d->stacks,
					event_of(d, blocked->event_id), record);
	}
}

/*
 * The records of all rings in the order of time, samples with their stacks
 * unwound.  Returns the number of pieces to write.
 */
static size_t gather_unwound(struct seam_drain *d)
{
	struct seam_ring_header header;
	struct seam_merge_ring *from;
	size_t n = 0, max = 0, pos;
	const void *record;
	uint32_t event;

	peek_in_order(d);
	seam_live_stacks_begin_round(d->stacks, d->is_last);
	while ((from = merge_next(&d->merge, &pos, &header))) {
		struct seam_source_ring *ring = live_ring(d, from->id);

		/* records of AUX rings are written as they are */
		if (!seam_drain_count(d, ring, &from->span, pos, &header) ||
		    ring->use == SEAM_RING_OF_AUX)
			continue;
		record = seam_ring_bytes(&from->span, pos, header.size,
					 d->scratch);
		if (header.type == PERF_RECORD_SAMPLE) {
			event = event_of(d, u64_at(&from->span,
						   pos + d->id_pos));
			seam_live_stacks_sample(d->stacks, event, record);
			take_stack(d, event, record);
		} else {
			seam_live_stacks_copy(d->stacks, record);
		}
		if (header.type == PERF_RECORD_SWITCH ||
		    header.type == PERF_RECORD_SWITCH_CPU_WIDE)
			take_switch(d, record, &header);
	}
	add_blocked(d);
	for (size_t i = 0; i < d->merge.rings.n; i++)
		n = end_ring(d, n, &d->merge.rings.items[i], &max);
	d->file->losses.n[SEAM_COUNT_UNWRITTEN] += d->stacks->n_dropped;
	d->stacks->n_dropped = 0;
	if (d->history)
		d->stacks->out.n = move_records(d, d->stacks->out.items,
						d->stacks->out.n, to_history);
	return add_piece(d, n, d->stacks->out.items, d->stacks->out.n);
}

static size_t gather(struct seam_drain *d)
{
	d->fullest_cpu = -1;
	return d->stacks ? gather_unwound(d) : gather_as_they_are(d);
}

static void release(struct seam_drain *d)
{
	for (size_t i = 0; i < d->sources->live.n && i < d->room; i++)
		seam_ring_advance(&live_ring(d, i)->ring, &d->spans[i]);
}

/*
 * Write at least the AUX data that this round's AUX records describe.  Sources
 * that stopped because the buffer was full are enabled again.
 */
static int drain_aux(struct seam_drain *d, struct seam_err *err)
{
	ssize_t r = 0;

	if (d->sources->aux_snapshots)
		return 0;
	for (size_t k = 0; r >= 0 && k < d->sources->live.n; k++) {
		uint32_t i = d->sources->live.items[k];
		struct seam_source_ring *ring = &d->sources->rings.items[i];

		if (!ring->aux.size)
			continue;
		r = seam_auxtrace_drain(d->file, ring, i, d->is_last, err);
		if (ring->is_stopped && !d->is_last)
			seam_sources_restart(d->sources, i);
		ring->is_stopped = false;
	}
	return r < 0 ? (int)r : 0;
}

/* ---- programs ---- */

/* The records of tasks in @ring that were not read before. */
static void read_tasks(struct seam_drain *d, struct seam_source_ring *ring)
{
	struct seam_perf_sideband record;
	struct seam_ring_header header;
	struct seam_ring_span span;
	uint64_t tail;
	size_t n = seam_ring_peek(&ring->ring, &span), pos;

	tail = span.end - n;
	/* later ones may have been read with all others */
	pos = ring->tasks_read - tail <= n ? ring->tasks_read - tail : 0;
	for (; seam_ring_record(&span, pos, &header); pos += header.size)
		if (is_of_task(&header) &&
		    seam_sources_read_sideband(
			    seam_ring_bytes(&span, pos, header.size,
					    d->scratch), &record))
			seam_services_see_task(&d->session->services, &record);
	ring->tasks_read = tail + pos;
}

void seam_drain_count_all(struct seam_drain *d, const uint8_t *records,
			  size_t n)
{
	struct seam_ring_span span = { .part = { records }, .size = { n } };
	struct seam_ring_header header;

	for (size_t pos = 0; seam_ring_record(&span, pos, &header);
	     pos += header.size) {
		d->file->n_records++;
		if (header.type == PERF_RECORD_SAMPLE)
			count_sample(d, NULL, &span, pos, &header);
	}
}

/* The records of programs, counted and in one piece. */
static size_t gather_programs(struct seam_drain *d, size_t n)
{
	struct seam_services *services = &d->session->services;
	struct seam_bytes records = seam_services_take(services);

	if (d->guests.max_bytes)
		records.size = move_records(d, services->round.bytes.items,
					    records.size, to_guests);
	seam_drain_count_all(d, records.data, records.size);
	return add_piece(d, n, records.data, records.size);
}

ssize_t seam_drain_round(struct seam_drain *d, struct seam_err *err)
{
	struct seam_services *services = &d->session->services;
	struct seam_data_file *file = d->file;
	uint64_t before = file->writer.data_bytes;
	bool ends_round;
	size_t n;
	int r = 0;

	seam_data_file_mark(file);
	d->begin_ns = seam_clock_ns();
	seam_services_copy(services, d->is_last);
	/*
	 * Records of forks, execs and exits before any record is written, if a
	 * program can connect: they say whose the rings are.
	 */
	for (size_t i = 0; services->is_open && i < d->sources->live.n; i++)
		if (live_ring(d, i)->use == SEAM_RING_OF_SIDEBAND)
			read_tasks(d, live_ring(d, i));
	seam_services_learn(services);
	n = gather_programs(d, gather(d));
	/* records older than those before the last FINISHED_ROUND may follow */
	ends_round = !d->sources->overwrite && !d->unordered &&
		     (!d->stacks ||
		      seam_live_stacks_oldest(d->stacks) >= d->finished);
	if (n > 0)
		r = seam_data_file_add_batch(file, d->pieces, n, ends_round,
					     err);
	if (n > 0 && ends_round)
		d->finished = d->merge.until;
	if (r < 0)
		seam_data_file_revert(file);
	else
		r = drain_aux(d, err);
	release(d);
	return r < 0 ? r : (ssize_t)(file->writer.data_bytes - before);
}

size_t seam_drain_unwind(struct seam_drain *d, const uint8_t *records, size_t n)
{
	struct seam_ring_span span = { .part = { records }, .size = { n } };
	struct seam_ring_header header;
	size_t pos = 0;

	for (; d->stacks->waiting.n_bytes < SEAM_LIVE_WAITING_BYTES / 2 &&
	     seam_ring_record(&span, pos, &header); pos += header.size)
		if (header.type == PERF_RECORD_SAMPLE)
			seam_live_stacks_sample(d->stacks,
				event_of(d, u64_at(&span, pos + d->id_pos)),
				records + pos);
		else
			seam_live_stacks_copy(d->stacks, records + pos);
	return pos;
}

void seam_drain_drop_waiting(struct seam_drain *d)
{
	uint32_t event;

	while (d->stacks && (event = seam_live_stacks_drop(d->stacks)) !=
			    SEAM_NONE) {
		d->file->losses.n[SEAM_COUNT_UNWRITTEN]++;
		d->file->counts.n_samples--;
		d->file->by_event[event].n_samples--;
	}
}

void seam_drain_discard(struct seam_drain *d)
{
	seam_data_file_mark(d->file);
	gather(d);
	release(d);
	seam_data_file_revert(d->file);
	/* those of this round: the counts are reverted */
	while (d->stacks && seam_live_stacks_drop(d->stacks) != SEAM_NONE)
		;
}
