/* SPDX-License-Identifier: MIT */
/* auxtrace.c - AUXTRACE records, their bytes, their index; see auxtrace.h */
#include "record/perf/auxtrace.h"

#include "base/clock.h"
#include "base/cursor.h"
#include "wire/perf/perf_record.h"

#include <errno.h>
#include <stdlib.h>

/* PERF_RECORD_AUXTRACE; @bytes of the area follow it. */
struct record {
	struct perf_event_header header;
	uint64_t bytes;
	uint64_t offset;	/* in the area, counted from its start */
	uint64_t reference;	/* tells records at one offset apart */
	uint32_t idx, tid, cpu, reserved;
};

_Static_assert(sizeof(struct record) == 48, "as in perf's util/event.h");

uint64_t seam_auxtrace_see(struct seam_auxtrace *trace,
		       const struct seam_ring_header *record)
{
	struct seam_cursor c = seam_cursor_make(record, record->size,
						SEAM_LITTLE);
	uint64_t flags;

	seam_cursor_skip(&c, sizeof(*record) + 16);	/* offset, size */
	flags = seam_cursor_u64(&c);
	if (c.error || record->type != PERF_RECORD_AUX)
		return 0;
	trace->n_records++;
	trace->n_truncated += !!(flags & PERF_AUX_FLAG_TRUNCATED);
	trace->n_overwrite += !!(flags & PERF_AUX_FLAG_OVERWRITE);
	trace->n_partial += !!(flags & PERF_AUX_FLAG_PARTIAL);
	trace->n_collision += !!(flags & PERF_AUX_FLAG_COLLISION);
	return flags;
}

/* @n pieces of @bytes in all, which stood at @offset of the area. */
static int append(struct seam_auxtrace *trace,
		  const struct seam_source_ring *ring, uint32_t idx,
		  const struct seam_ring_span *span, uint64_t offset,
		  struct seam_err *err)
{
	static const uint8_t zeros[8];
	size_t bytes = seam_ring_span_bytes(span);
	size_t padding = -bytes & 7;
	struct record record = {
		.header = { .type = SEAM_PERF_AUXTRACE,
			    .size = sizeof(record) },
		.bytes = bytes + padding,
		.offset = offset,
		.reference = seam_clock_ns(),
		.idx = idx,
		.tid = (uint32_t)ring->tid,
		.cpu = (uint32_t)ring->cpu,
	};
	struct iovec pieces[] = {
		{ &record, sizeof(record) },
		{ (void *)(uintptr_t)span->part[0], span->size[0] },
		{ (void *)(uintptr_t)span->part[1], span->size[1] },
		{ (void *)(uintptr_t)zeros, padding },
	};
	struct seam_auxtrace_entry *entry = SEAM_ARRAY_PUSH(&trace->index);
	int r;

	if (!entry)
		return seam_err_set(err, -ENOMEM, "out of memory");
	*entry = (struct seam_auxtrace_entry) {
		.offset = trace->writer->data_offset +
			  trace->writer->data_bytes,
		.size = sizeof(record),
	};
	r = seam_perf_writer_append(trace->writer, pieces,
				    SEAM_ARRAY_SIZE(pieces), err);
	if (r < 0)
		trace->index.n--;
	else
		trace->n_bytes += bytes;
	return r;
}

/* Leave the last @n bytes of @span where they are. */
static void shorten(struct seam_ring_span *span, size_t n)
{
	size_t second = n < span->size[1] ? n : span->size[1];

	span->size[1] -= second;
	span->size[0] -= n - second;
	span->end -= n;
}

ssize_t seam_auxtrace_drain(struct seam_auxtrace *trace,
			    struct seam_source_ring *ring, uint32_t idx,
			    bool last, struct seam_err *err)
{
	struct seam_ring_span span;
	size_t bytes = seam_ring_aux_peek(&ring->aux, &span);
	int r;

	if (!last) {
		shorten(&span, bytes & 7);
		bytes &= ~(size_t)7;
	}
	if (bytes == 0)
		return 0;
	r = append(trace, ring, idx, &span, span.end - bytes, err);
	seam_ring_aux_advance(&ring->aux, &span);
	return r < 0 ? r : (ssize_t)bytes;
}

ssize_t seam_auxtrace_snapshot(struct seam_auxtrace *trace,
			       struct seam_source_ring *ring, uint32_t idx,
			       bool own, struct seam_err *err)
{
	struct seam_ring_aux_snapshot shot = { 0 };
	int r = seam_ring_aux_snapshot_init(&shot, &ring->aux, err);
	size_t bytes = 0;

	if (r == 0)
		bytes = own ? seam_ring_aux_snapshot_own(&ring->aux, &shot) :
			seam_ring_aux_snapshot(&ring->aux, &shot);
	if (bytes) {
		size_t left_out = trace->most_bytes &&
				  bytes > trace->most_bytes ?
				  bytes - trace->most_bytes : 0;
		struct seam_ring_span span = {
			.part = { shot.data + left_out, shot.data },
			.size = { bytes -= left_out, 0 },
		};

		r = append(trace, ring, idx, &span, shot.offset + left_out,
			   err);
	}
	seam_ring_aux_snapshot_fini(&shot);
	return r < 0 ? r : (ssize_t)bytes;
}

void seam_auxtrace_fini(struct seam_auxtrace *trace)
{
	free(trace->index.items);
	*trace = (struct seam_auxtrace) { 0 };
}
