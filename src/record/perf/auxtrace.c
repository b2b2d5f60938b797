/* SPDX-License-Identifier: MIT */
/* auxtrace.c - AUXTRACE records, their data, their index; see auxtrace.h */
#include "record/perf/auxtrace.h"

#include "base/clock.h"
#include "record/events/pmu.h"
#include "wire/perf/perf_record.h"

#include <errno.h>
#include <stdlib.h>

/* PERF_RECORD_AUXTRACE; its AUX data follow it. */
struct auxtrace {
	struct seam_perf_header header;
	struct seam_perf_auxtrace fields;
};

_Static_assert(sizeof(struct auxtrace) == 48, "as in perf's util/event.h");

void seam_auxtrace_count(struct seam_counts *losses,
			 const struct seam_perf_aux *record)
{
	uint64_t flags = record->flags, *n = losses->n;

	n[SEAM_COUNT_AUX_TRUNCATED] += !!(flags & PERF_AUX_FLAG_TRUNCATED);
	n[SEAM_COUNT_AUX_PARTIAL] += !!(flags & PERF_AUX_FLAG_PARTIAL);
	n[SEAM_COUNT_AUX_COLLISION] += !!(flags & PERF_AUX_FLAG_COLLISION);
}

/* Append @span, which begins at @offset of the AUX data. */
static int append(struct seam_data_file *file,
		  const struct seam_source_ring *ring, uint32_t idx,
		  const struct seam_ring_span *span, uint64_t offset,
		  struct seam_err *err)
{
	static const uint8_t zeros[8];
	size_t bytes = seam_ring_span_bytes(span);
	size_t padding = -bytes & 7;
	struct auxtrace record = {
		.header = { .type = SEAM_PERF_AUXTRACE,
			    .size = sizeof(record) },
		.fields = {
			.size = bytes + padding,
			.aux_offset = offset,
			/* different in records at one offset */
			.reference = seam_clock_ns(),
			.idx = idx,
			.tid = ring->tid,
			.cpu = (uint32_t)ring->cpu,
		},
	};
	struct iovec pieces[] = {
		{ &record, sizeof(record) },
		{ (void *)(uintptr_t)span->part[0], span->size[0] },
		{ (void *)(uintptr_t)span->part[1], span->size[1] },
		{ (void *)(uintptr_t)zeros, padding },
	};
	struct seam_auxtrace_entry entry = {
		.offset = file->writer.data_offset + file->writer.data_bytes,
		.size = sizeof(record),
	};
	int r;

	if (!SEAM_ARRAY_ADD(&file->auxtraces, entry))
		return seam_err_no_memory(err);
	r = seam_perf_writer_append(&file->writer, pieces,
				    SEAM_ARRAY_SIZE(pieces), err);
	if (r < 0)
		file->auxtraces.n--;
	else
		file->counts.n_aux_bytes += bytes;
	return r;
}

/* Take the last @n bytes off @span. */
static void shorten(struct seam_ring_span *span, size_t n)
{
	size_t second = n < span->size[1] ? n : span->size[1];

	span->size[1] -= second;
	span->size[0] -= n - second;
	span->end -= n;
}

ssize_t seam_auxtrace_drain(struct seam_data_file *file,
			    struct seam_source_ring *ring, uint32_t idx,
			    bool is_last, struct seam_err *err)
{
	struct seam_ring_span span;
	size_t bytes = seam_ring_aux_peek(&ring->aux, &span);
	int r;

	if (!is_last) {
		shorten(&span, bytes & 7);
		bytes &= ~(size_t)7;
	}
	if (bytes == 0)
		return 0;
	r = append(file, ring, idx, &span, span.end - bytes, err);
	seam_ring_aux_advance(&ring->aux, &span);
	return r < 0 ? r : (ssize_t)bytes;
}

ssize_t seam_auxtrace_snapshot(struct seam_data_file *file,
			       struct seam_source_ring *ring, uint32_t idx,
			       uint64_t max_bytes, struct seam_err *err)
{
	struct seam_ring_aux_snapshot copy = { 0 };
	int r = seam_ring_aux_snapshot_init(&copy, &ring->aux, err);
	size_t bytes = 0;

	if (r == 0)
		bytes = seam_ring_aux_snapshot(&ring->aux, &copy);
	if (bytes) {
		size_t left_out = max_bytes && bytes > max_bytes ?
				  bytes - max_bytes : 0;
		struct seam_ring_span span = {
			.part = { copy.data + left_out, copy.data },
			.size = { bytes -= left_out, 0 },
		};

		r = append(file, ring, idx, &span, copy.offset + left_out,
			   err);
	}
	seam_ring_aux_snapshot_fini(&copy);
	return r < 0 ? r : (ssize_t)bytes;
}

static const struct seam_event *first_event(const struct seam_sources *s)
{
	for (size_t e = 0; e < s->n_events; e++)
		if (s->events[e].aux_kind)
			return &s->events[e];
	return NULL;
}

/* All events with AUX buffers use the kernel's clock: any ring has it. */
static struct seam_aux_clock read_clock(const struct seam_sources *s)
{
	for (size_t i = 0; i < s->rings.n; i++)
		if (s->rings.items[i].aux.size)
			return seam_aux_clock_read(
				s->rings.items[i].ring.control);
	return (struct seam_aux_clock) { 0 };
}

void seam_auxtrace_describe(const struct seam_sources *s,
			    struct seam_synth *synth)
{
	struct seam_aux_words words = { 0 };
	struct seam_aux_facts facts = {
		.event = first_event(s),
		.cpus = s->sampled.n ? &s->sampled : &s->cpus,
		.clock = read_clock(s),
		.snapshot_mode = s->aux_snapshots,
		.by_cpu = !s->per_thread || s->sampled.n,
		.system_wide = seam_sources_is_system_wide(s),
	};

	if (!facts.event)
		return;
	if (facts.clock.is_known) {
		const uint64_t conversion[] = {
			facts.clock.shift, facts.clock.mult, facts.clock.zero,
		};

		seam_synth_words(synth, SEAM_PERF_TIME_CONV, conversion,
				 SEAM_ARRAY_SIZE(conversion));
	}
	if (facts.event->aux_kind != SEAM_AUX_UNKNOWN) {
		words.no_memory = !SEAM_ARRAY_ADD(&words.list,
						  facts.event->aux_kind);
		seam_aux_pmu_info(&facts, &words);
		seam_synth_words(synth, SEAM_PERF_AUXTRACE_INFO,
				 words.list.items, words.list.n);
	}
	synth->no_memory |= words.no_memory;
	free(words.list.items);
}

int seam_auxtrace_snapshot_all(struct seam_sources *s,
			       struct seam_data_file *file,
			       struct seam_err *err)
{
	ssize_t r = 0;

	seam_sources_hold_aux(s, true);
	for (size_t i = 0; r >= 0 && i < s->rings.n; i++)
		if (s->rings.items[i].aux.size)
			r = seam_auxtrace_snapshot(file, &s->rings.items[i],
						   (uint32_t)i,
						   s->aux_snapshot_bytes,
						   err);
	return r < 0 ? (int)r : 0;
}
