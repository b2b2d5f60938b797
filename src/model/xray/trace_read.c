/* SPDX-License-Identifier: MIT */
/* trace_read.c - the events of a stream, their times and spans; see trace.h */
#include "model/xray/trace.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>

enum { LEAST_RUN = 16 };	/* records; a batch is as good for fewer */

uint64_t seam_trace_start_ns(const struct seam_trace *trace, size_t stream)
{
	const struct seam_trace_stream *s = &trace->streams.items[stream];
	const struct seam_xray_block *first =
		trace->blocks.items[s->first_block].block;

	return seam_trace_clock_time(&trace->clocks.items[s->clock],
				     first->first_tsc);
}

/* Have the reader's clock be the one at @tsc. */
static inline void choose_clock(struct seam_trace_reader *reader, uint64_t tsc)
{
	if (__builtin_expect(tsc - reader->clock->origin_tsc >=
			     reader->clock_ticks, 0))
		reader->clock = seam_trace_clock_at(reader->times, tsc,
						    &reader->clock_ticks);
}

uint64_t seam_trace_time(struct seam_trace_reader *reader, uint64_t tsc)
{
	choose_clock(reader, tsc);
	return seam_ticks_time(reader->clock, tsc);
}

/* When the last record of the stream's last block was written. */
static uint64_t end_of_stream(const struct seam_trace *trace, size_t stream,
			      struct seam_xray_batch *batch)
{
	struct seam_trace_reader reader;
	size_t n_shadow;

	seam_trace_read(&reader, trace, stream);
	reader.next_block = reader.stream->n_blocks - 1;
	while (seam_trace_next(&reader, batch, &n_shadow))
		;
	return reader.last_ns;
}

int seam_trace_span(const struct seam_trace *trace, uint64_t *start_ns,
		    uint64_t *end_ns)
{
	struct seam_xray_batch *batch = malloc(sizeof(*batch));

	*start_ns = trace->streams.n ? UINT64_MAX : 0;
	*end_ns = 0;
	if (!batch)
		return -ENOMEM;
	for (size_t i = 0; i < trace->streams.n; i++) {
		uint64_t start = seam_trace_start_ns(trace, i);
		uint64_t end = end_of_stream(trace, i, batch);

		*start_ns = start < *start_ns ? start : *start_ns;
		*end_ns = end > *end_ns ? end : *end_ns;
	}
	free(batch);
	return 0;
}

int seam_trace_select(struct seam_trace *trace, const char *text,
		      struct seam_err *err)
{
	uint64_t start, end;

	if (seam_trace_span(trace, &start, &end))
		return seam_err_no_memory(err);
	return seam_time_range_parse(&trace->range, text, start, end, err);
}

void seam_trace_read(struct seam_trace_reader *reader,
		     const struct seam_trace *trace, size_t stream)
{
	assert(stream < trace->streams.n);

	*reader = (struct seam_trace_reader) {
		.trace = trace, .stream = &trace->streams.items[stream],
	};
	reader->times = &trace->clocks.items[reader->stream->clock];
	reader->clock = &reader->times->ticks;
	reader->ids = &trace->logs.items[reader->stream->log].ids;
	reader->last_ns = seam_trace_start_ns(trace, stream);
}

static bool open_block(struct seam_trace_reader *reader)
{
	const struct seam_trace_stream *stream = reader->stream;
	const struct seam_trace_block *b;

	if (reader->next_block == stream->n_blocks)
		return false;
	b = &reader->trace->blocks.items[stream->first_block +
					 reader->next_block++];
	seam_xray_block_open(&reader->block,
			     &reader->trace->logs.items[b->log].index,
			     b->block);
	if (reader->takes_runs)
		seam_xray_short_batches(&reader->block.fdr);
	reader->n_shadow = b->n_shadow;
	reader->in_block = true;
	reader->shift_ns = 0;
	return true;
}

/*
 * Convert ticks to nanoseconds.  When the counter of a thread steps back, the
 * time stands still for that step and then rises with the counter.
 */
static void convert_times(struct seam_trace_reader *reader,
			  struct seam_xray_batch *batch)
{
	struct seam_ticks clock = *reader->clock;
	uint64_t last = reader->last_ns, shift = reader->shift_ns;

	for (size_t i = 0; i < batch->n; i++) {
		struct seam_xray_event *event = &batch->events[i];
		uint64_t ns;

		if (event->kind == SEAM_XRAY_ARGUMENT)
			continue;
		if (__builtin_expect(event->tsc - clock.origin_tsc >=
				     reader->clock_ticks, 0)) {
			choose_clock(reader, event->tsc);
			clock = *reader->clock;
		}
		ns = seam_ticks_time(&clock, event->tsc) + shift;
		if (__builtin_expect(ns < last, 0)) {
			shift += last - ns;
			ns = last;
			reader->n_steps++;
		}
		event->tsc = last = ns;
	}
	reader->last_ns = last;
	reader->shift_ns = shift;
}

/* Number the functions as those of all logs are. */
static void convert_functions(const struct seam_trace_ids *ids,
			      struct seam_xray_batch *batch)
{
	if (ids->others == 0)
		return;
	for (size_t i = 0; i < batch->n; i++)
		if (batch->events[i].kind <= SEAM_XRAY_ENTRY_ARGS)
			batch->events[i].function = seam_trace_function(
				ids, batch->events[i].function);
}

static void mark_entries(const struct seam_trace *trace,
			 struct seam_xray_batch *batch)
{
	const uint64_t *bits = trace->entries_only;

	for (size_t i = 0; bits && i < batch->n; i++) {
		struct seam_xray_event *event = &batch->events[i];
		uint32_t f = event->function;

		if ((event->kind == SEAM_XRAY_ENTRY ||
		     event->kind == SEAM_XRAY_ENTRY_ARGS) &&
		    f < trace->n_entries_only && bits[f / 64] >> f % 64 & 1)
			event->kind = SEAM_TRACE_ENTRY_ONLY;
	}
}

/*
 * Remove what is not in the range; arguments go with their entry.  Returns how
 * many of the first @n_shadow events are left.
 */
static size_t cut(struct seam_trace_reader *reader,
		  struct seam_xray_batch *batch, size_t n_shadow)
{
	const struct seam_time_range *range = &reader->trace->range;
	size_t n = 0, shadows = 0;

	if (seam_time_range_is_all(range))
		return n_shadow;
	for (size_t i = 0; i < batch->n; i++) {
		const struct seam_xray_event event = batch->events[i];

		if (event.kind != SEAM_XRAY_ARGUMENT)
			reader->in_range = seam_time_range_has(range,
				seam_trace_time(reader, event.tsc));
		if (!reader->in_range)
			continue;
		batch->events[n++] = event;
		shadows += i < n_shadow;
	}
	batch->n = n;
	return shadows;
}

static bool next_batch(struct seam_trace_reader *reader,
		       struct seam_xray_batch *batch, size_t *n_shadow)
{
	for (;;) {
		int err;

		if (!reader->in_block && !open_block(reader))
			return false;
		err = seam_xray_block_next(&reader->block, batch);
		if (err)
			seam_xray_problems_add(&reader->problems,
					       &reader->block.fdr.problem);
		reader->in_block = !err && batch->n > 0;
		if (batch->n > 0)
			break;
	}
	*n_shadow = reader->n_shadow < batch->n ? reader->n_shadow : batch->n;
	reader->n_shadow -= *n_shadow;
	return true;
}

bool seam_trace_next(struct seam_trace_reader *reader,
		     struct seam_xray_batch *batch, size_t *n_shadow)
{
	do {
		if (!next_batch(reader, batch, n_shadow))
			return false;
		if (reader->raw) {
			*n_shadow = cut(reader, batch, *n_shadow);
		} else {
			convert_times(reader, batch);
			convert_functions(reader->ids, batch);
			mark_entries(reader->trace, batch);
		}
	} while (batch->n == 0);
	return true;
}

/* No record of @run is to be beyond the clock's piece.  False: too few. */
static bool keep_in_piece(const struct seam_trace_reader *reader,
			  struct seam_trace_run *run)
{
	uint64_t left = reader->clock_ticks - (run->wire.tsc -
					       reader->clock->origin_tsc);

	if (left >> 32 >= run->wire.n)
		return true;
	run->wire.n = (uint32_t)(left >> 32);
	return run->wire.n >= LEAST_RUN;
}

bool seam_trace_run(struct seam_trace_reader *reader,
		    struct seam_trace_run *run)
{
	const struct seam_ticks *clock;
	uint64_t ticks, delta;

	if (reader->trace->entries_only)
		return false;
	reader->takes_runs = true;
	if ((!reader->in_block && !open_block(reader)) || reader->n_shadow ||
	    !seam_xray_run(&reader->block.fdr, &run->wire))
		return false;
	if (run->wire.n > SEAM_TRACE_RUN)
		run->wire.n = SEAM_TRACE_RUN;
	choose_clock(reader, run->wire.tsc);
	clock = reader->clock;
	if (!keep_in_piece(reader, run))
		return false;
	delta = (uint64_t)run->wire.n << 32;	/* at most, of all records */
	if (run->wire.tsc < clock->origin_tsc ||
	    run->wire.tsc > UINT64_MAX - delta ||
	    run->wire.tsc + delta - clock->origin_tsc >= clock->exact_below ||
	    reader->shift_ns >= SEAM_TICKS_MAX_NS)
		return false;
	ticks = run->wire.tsc - clock->origin_tsc;
	run->clock = clock;
	run->ids = reader->ids;
	run->ticks = ticks;
	run->origin_ns = clock->origin_ns + reader->shift_ns;
	return seam_ticks_scale(clock, ticks, false) + run->origin_ns >=
	       reader->last_ns;
}

void seam_trace_run_take(struct seam_trace_reader *reader,
			 const struct seam_trace_run *run, size_t n)
{
	const struct seam_ticks *clock = run->clock;

	reader->last_ns = run->origin_ns +
			  seam_ticks_scale(clock, run->ticks, false);
	seam_xray_run_take(&reader->block.fdr, &run->wire, n,
			   clock->origin_tsc + run->ticks);
}
