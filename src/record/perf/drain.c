/* SPDX-License-Identifier: MIT */
/* drain.c - peek at all rings, write once, advance; see drain.h */
#include "record/perf/drain.h"

#include "base/hash.h"
#include "wire/perf/perf_record.h"

#include <errno.h>
#include <stdlib.h>

enum {
	/* IDENTIFIER, IP and TID come before TIME; see SAMPLE_TYPE. */
	SAMPLE_TIME_POS = sizeof(struct seam_ring_header) + 3 * 8,
	MAX_RECORD_BYTES = UINT16_MAX + 1,
	/* A ring that holds so much has woken us; see WAKEUP_PART. */
	FULL_PART = 5,
};

int seam_drain_init(struct seam_drain *d, struct seam_err *err)
{
	d->scratch = malloc(MAX_RECORD_BYTES);
	d->n_by_event = calloc(d->sources->n_events, sizeof(*d->n_by_event));
	d->n_by_event_before = calloc(d->sources->n_events,
				      sizeof(*d->n_by_event_before));
	if (!d->scratch || !d->n_by_event || !d->n_by_event_before)
		return seam_err_set(err, -ENOMEM, "out of memory");
	return 0;
}

void seam_drain_fini(struct seam_drain *d)
{
	free(d->spans);
	free(d->pieces);
	free(d->scratch);
	free(d->n_by_event);
	free(d->n_by_event_before);
	seam_index_fini(&d->ids);
	*d = (struct seam_drain) { 0 };
}

/*
 * Rings and sources come with the threads, and rings go with them.  Returns
 * how many to see, the first of those that are mapped.
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
		pieces = realloc(d->pieces, (4 * n + 1) * sizeof(*d->pieces));
		d->pieces = pieces ? pieces : d->pieces;
		/* without memory the later threads wait in their rings */
		if (spans && pieces)
			d->room = 2 * n;
	}
	return n < d->room ? n : d->room;
}

/* The event whose records carry @id; the first where nobody knows. */
static uint32_t event_of(const struct seam_drain *d, uint64_t id)
{
	struct seam_index_probe probe =
		seam_index_probe(&d->ids, seam_hash_u64(id));
	uint32_t i;

	while ((i = seam_index_next(&d->ids, &probe)) != SEAM_NONE)
		if (d->sources->list.items[i].id == id)
			return d->sources->list.items[i].event;
	return 0;
}

/* A number in a record; at a multiple of 8, so the ring's end is no matter. */
static uint64_t u64_at(const struct seam_ring_span *span, size_t pos)
{
	uint64_t v;

	memcpy(&v, seam_ring_bytes(span, pos, sizeof(v), &v), sizeof(v));
	return v;
}

static void count_sample(struct seam_drain *d,
			 const struct seam_ring_span *span, size_t pos,
			 const struct seam_ring_header *header)
{
	uint64_t ns;

	d->in_file.n_samples++;
	if (d->sources->n_events <= 2)
		d->n_by_event[0]++;	/* there is but one that samples */
	else
		d->n_by_event[event_of(d, u64_at(span, pos + 8))]++;
	if ((header->misc & PERF_RECORD_MISC_CPUMODE_MASK) ==
	    PERF_RECORD_MISC_KERNEL)
		d->in_file.n_kernel_samples++;
	if (header->size < SAMPLE_TIME_POS + sizeof(ns))
		return;
	ns = u64_at(span, pos + SAMPLE_TIME_POS);
	if (d->in_file.first_ns == 0 || ns < d->in_file.first_ns)
		d->in_file.first_ns = ns;
	if (ns > d->in_file.last_ns)
		d->in_file.last_ns = ns;
}

void seam_drain_count(struct seam_drain *d, struct seam_source_ring *ring,
		      const struct seam_ring_span *span, size_t pos,
		      const struct seam_ring_header *header)
{
	ring->n_records++;
	d->n_records++;
	switch (header->type) {
	case PERF_RECORD_SAMPLE:
		count_sample(d, span, pos, header);
		if (d->on_sample)
			d->on_sample(d->context,
				     event_of(d, u64_at(span, pos + 8)),
				     seam_ring_bytes(span, pos, header->size,
						     d->scratch));
		return;
	case PERF_RECORD_LOST:
		/* the header, u64 id, u64 lost */
		if (header->size >= sizeof(*header) + 16)
			ring->n_lost += u64_at(span, pos + 16);
		/* it may have said that the area was full */
		ring->is_stopped = true;
		return;
	case PERF_RECORD_AUX:
		if (d->aux && seam_auxtrace_see(d->aux,
				seam_ring_bytes(span, pos, header->size,
						d->scratch)) &
			      PERF_AUX_FLAG_TRUNCATED)
			ring->is_stopped = true;
		return;
	case PERF_RECORD_THROTTLE:
		d->n_throttled++;
		return;
	}
	if (ring->use != SEAM_RING_OF_SIDEBAND)
		return;
	d->n_sideband++;
	if (d->on_sideband)
		d->on_sideband(d->context,
			       seam_ring_bytes(span, pos, header->size,
					       d->scratch));
}

/* Count what is in the ring.  Returns the bytes of whole records. */
static size_t walk(struct seam_drain *d, struct seam_source_ring *ring,
		   const struct seam_ring_span *span)
{
	struct seam_ring_header header;
	size_t pos = 0;

	while (seam_ring_record(span, pos, &header)) {
		seam_drain_count(d, ring, span, pos, &header);
		pos += header.size;
	}
	ring->n_bad_bytes += seam_ring_span_bytes(span) - pos;
	ring->n_bytes += pos;
	return pos;
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

/* Look at all rings.  Returns the number of pieces there are to write. */
static size_t gather(struct seam_drain *d)
{
	size_t n = 0, n_rings = make_room(d), most = 0;

	d->fullest_cpu = -1;
	for (size_t i = 0; i < n_rings; i++) {
		struct seam_source_ring *ring = live_ring(d, i);
		struct seam_ring_span *span = &d->spans[i];
		size_t good, first;

		*span = (struct seam_ring_span) { .end = ring->ring.tail };
		if (ring->is_backward ||
		    seam_ring_peek(&ring->ring, span) == 0)
			continue;
		good = walk(d, ring, span);
		if (good > ring->size_bytes / FULL_PART && good > most) {
			most = good;
			d->fullest_cpu = ring->cpu;
		}
		first = good < span->size[0] ? good : span->size[0];
		n = add_piece(d, n, span->part[0], first);
		n = add_piece(d, n, span->part[1], good - first);
	}
	return n;
}

static void release(struct seam_drain *d)
{
	for (size_t i = 0; i < d->sources->live.n && i < d->room; i++)
		seam_ring_advance(&live_ring(d, i)->ring, &d->spans[i]);
}

/*
 * What the AUX records of this round tell of, and more.  Who found its area
 * full goes on now that there is room again.
 */
static int drain_area(struct seam_drain *d, uint32_t i, struct seam_err *err)
{
	struct seam_source_ring *ring = &d->sources->rings.items[i];
	ssize_t r = seam_auxtrace_drain(d->aux, ring, i, d->is_last, err);

	if (ring->is_stopped && !d->is_last)
		seam_sources_restart(d->sources, i);
	ring->is_stopped = false;
	return r < 0 ? (int)r : 0;
}

static int drain_areas(struct seam_drain *d, struct seam_err *err)
{
	int r = 0;

	if (!d->aux || d->sources->free_running)
		return 0;
	for (size_t i = 0; r == 0 && i < d->sources->live.n; i++)
		if (live_ring(d, i)->aux.size)
			r = drain_area(d, d->sources->live.items[i], err);
	return r;
}

/* How things stood before a round. */
struct mark {
	uint64_t n_records;
	struct seam_drain_counts in_file;
};

static struct mark mark(struct seam_drain *d)
{
	memcpy(d->n_by_event_before, d->n_by_event,
	       d->sources->n_events * sizeof(*d->n_by_event));
	return (struct mark) { d->n_records, d->in_file };
}

/* What was drained since then did not come to the file. */
static void forget(struct seam_drain *d, const struct mark *since)
{
	d->n_unwritten += d->n_records - since->n_records;
	d->in_file = since->in_file;
	memcpy(d->n_by_event, d->n_by_event_before,
	       d->sources->n_events * sizeof(*d->n_by_event));
}

ssize_t seam_drain_round(struct seam_drain *d, struct seam_err *err)
{
	static const struct seam_ring_header end = {
		.type = SEAM_PERF_FINISHED_ROUND, .size = sizeof(end),
	};
	uint64_t before = d->writer->data_bytes;
	struct mark since = mark(d);
	size_t n = gather(d);
	int r = 0;

	if (n > 0 && d->compress->stream) {
		r = seam_compress_batch(d->compress, d->pieces, n, err);
		n = add_piece(d, 0, d->compress->out.items,
			      d->compress->out.n);
	}
	if (n > 0 && r == 0) {
		if (!d->sources->overwrite && !d->no_ends)
			n = add_piece(d, n, (const uint8_t *)&end,
				      sizeof(end));
		r = seam_perf_writer_append(d->writer, d->pieces, n, err);
		d->n_rounds++;
	}
	if (r < 0)
		forget(d, &since);
	else
		r = drain_areas(d, err);
	release(d);
	return r < 0 ? r : (ssize_t)(d->writer->data_bytes - before);
}

void seam_drain_discard(struct seam_drain *d)
{
	struct mark since = mark(d);

	gather(d);
	release(d);
	forget(d, &since);
}
