/* SPDX-License-Identifier: MIT */
/* stream_calls.c - forks, missing entries, two passes; see stream_calls.h */
#include "model/xray/stream_calls.h"

#include <errno.h>
#include <stdlib.h>

static const struct seam_calls_sink no_sink = { 0 };

void seam_stream_follow(struct seam_calls *calls,
			const struct seam_xray_batch *batch, size_t n)
{
	uint64_t repairs[SEAM_N_REPAIRS];
	size_t n_later = calls->later.n;

	memcpy(repairs, calls->repairs, sizeof(repairs));
	calls->later.n = 0;	/* these are of the child's own events */
	seam_calls_feed(calls, batch, 0, n, &no_sink, NULL);
	calls->later.n = n_later;
	memcpy(calls->repairs, repairs, sizeof(repairs));
	/* An argument has its value where others have their time. */
	while (n > 0 && batch->events[n - 1].kind == SEAM_XRAY_ARGUMENT)
		n--;
	if (n > 0)
		calls->last_ns = batch->events[n - 1].tsc;
}

void seam_stream_reopen(struct seam_calls *calls,
			const struct seam_calls_sink *sink, void *context)
{
	size_t n = calls->n - 1;
	uint32_t *open = malloc((n + 1) * sizeof(*open));
	uint64_t ns = calls->last_ns;

	if (!open) {
		calls->error = -ENOMEM;
		return;
	}
	for (size_t i = 0; i < n; i++)
		open[i] = calls->calls[i + 1].function;
	seam_calls_begin(calls);
	calls->start_ns = ns;
	for (size_t i = 0; i < n && !calls->error; i++)
		seam_calls_preset(calls, open[i], ns, sink, context);
	free(open);
}

void seam_stream_run(struct seam_calls *calls,
		     struct seam_trace_reader *reader,
		     const struct seam_calls_sink *sink, void *context)
{
	struct seam_ended_calls ended;
	struct seam_trace_run run;
	size_t n;

	do {
		if (calls->error || !seam_trace_run(reader, &run))
			return;
		n = seam_calls_run(calls, &run, &ended);
		if (n == 0)
			return;
		seam_trace_run_take(reader, &run, n);
		calls->last_ns = reader->last_ns;
		if (ended.n)
			sink->ended(context, calls, &ended);
	} while (n == run.wire.n);
}

/* Find the calls open before the first event, and the stray exits. */
static void find_unseen(struct seam_calls *calls,
			const struct seam_trace *trace, size_t stream,
			struct seam_xray_batch *batch)
{
	uint64_t repairs[SEAM_N_REPAIRS];
	struct seam_trace_reader reader;

	memcpy(repairs, calls->repairs, sizeof(repairs));
	seam_calls_begin(calls);
	calls->start_ns = seam_trace_start_ns(trace, stream);
	calls->strays.n = calls->next_stray = 0;
	calls->later.n = calls->next_later = 0;
	calls->is_first_pass = true;
	seam_trace_read(&reader, trace, stream);
	seam_stream_feed(calls, &reader, batch, &no_sink, NULL);
	calls->is_first_pass = false;
	memcpy(calls->repairs, repairs, sizeof(repairs));
}

static void open_unseen(struct seam_calls *calls, uint64_t start_ns,
			const struct seam_calls_sink *sink, void *context)
{
	for (size_t i = 0; i < calls->unseen.n; i++)
		if (!SEAM_ARRAY_ADD(&calls->later, calls->unseen.items[i])) {
			calls->error = -ENOMEM;
			return;
		}
	seam_calls_begin(calls);
	calls->start_ns = start_ns;
	seam_calls_open_later(calls, sink, context);
}

void seam_stream_begin(struct seam_calls *calls,
		       struct seam_trace_reader *reader,
		       struct seam_xray_batch *batch)
{
	calls->reader = reader;
	calls->batch = batch;
}

void seam_stream_end(struct seam_calls *calls, bool follows)
{
	if (follows)
		seam_calls_begin(calls);
	calls->repairs[SEAM_REPAIR_CLOCK] += calls->reader->n_steps;
	calls->reader = NULL;
	calls->batch = NULL;
}

int seam_stream_open(struct seam_stream *s, struct seam_calls *calls,
		     const struct seam_trace *trace, size_t stream,
		     const struct seam_calls_sink *sink, void *context)
{
	uint64_t start_ns = seam_trace_start_ns(trace, stream);

	*s = (struct seam_stream) {
		.calls = calls, .batch = malloc(sizeof(*s->batch)),
	};
	seam_trace_read(&s->reader, trace, stream);
	if (!s->batch) {
		calls->error = -ENOMEM;
		return calls->error;
	}
	find_unseen(calls, trace, stream, s->batch);
	if (!calls->error)
		open_unseen(calls, start_ns, sink, context);
	seam_stream_begin(calls, &s->reader, s->batch);
	return calls->error;
}

bool seam_stream_next(struct seam_stream *s,
		      const struct seam_calls_sink *sink, void *context)
{
	if (!s->calls->reader)
		return false;
	if (seam_stream_step(s->calls, &s->reader, s->batch, &s->follows, sink,
			     context))
		return true;
	seam_stream_end(s->calls, s->follows);
	seam_calls_end(s->calls, sink, context);
	return false;
}

void seam_stream_close(struct seam_stream *s)
{
	s->calls->strays.n = 0;
	s->calls->later.n = s->calls->next_later = 0;
	s->calls->reader = NULL;
	free(s->batch);
	s->batch = NULL;
}

int seam_stream_calls(struct seam_calls *calls, const struct seam_trace *trace,
		      size_t stream, const struct seam_calls_sink *sink,
		      void *context, struct seam_xray_problems *problems)
{
	struct seam_stream s;

	if (!seam_stream_open(&s, calls, trace, stream, sink, context))
		while (seam_stream_next(&s, sink, context))
			;
	seam_xray_problems_merge(problems, &s.reader.problems);
	seam_stream_close(&s);
	return calls->error;
}
