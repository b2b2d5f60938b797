/* SPDX-License-Identifier: MIT */
/*
 * stream_calls.h - the calls of one thread of a trace, into a sink
 *
 * Joins trace.h, which orders events, with calls.h, which nests them, and
 * settles what only both together know: calls that were open when a child
 * was forked begin anew in the child, and calls that began before the log
 * are opened first when a caller wants to see them where they belong.
 */
#ifndef SEAM_STREAM_CALLS_H
#define SEAM_STREAM_CALLS_H

#include "model/xray/calls_run.h"
#include "model/xray/stray_exits.h"
#include "model/xray/trace.h"

/* The calls of shadow events [0, @n): followed, not told to any sink. */
void seam_stream_follow(struct seam_calls *calls,
			const struct seam_xray_batch *batch, size_t n);

/* Begin what is open anew, at the last followed event. */
void seam_stream_reopen(struct seam_calls *calls,
			const struct seam_calls_sink *sink, void *context);

/* What can be taken in runs, for a sink that has ended(). */
void seam_stream_run(struct seam_calls *calls,
		     struct seam_trace_reader *reader,
		     const struct seam_calls_sink *sink, void *context);

/*
 * All that @reader has.  Inline for the sake of a sink that is a constant;
 * @batch is scratch space.  A caller that cannot go on sets calls->error,
 * which ends the stream.
 */
static inline __attribute__((always_inline)) void
seam_stream_feed_part(struct seam_calls *calls,
		      struct seam_trace_reader *reader,
		      struct seam_xray_batch *batch,
		      const struct seam_calls_sink *sink, void *context)
{
	bool follows = false;
	size_t from;

	calls->ahead = &seam_stray_exits;
	calls->reader = reader;
	calls->batch = batch;
	for (;;) {
		if (sink->ended && !follows)
			seam_stream_run(calls, reader, sink, context);
		if (calls->error || !seam_trace_next(reader, batch, &from))
			break;
		if (from) {
			seam_stream_follow(calls, batch, from);
			follows = true;
		}
		if (follows && from < batch->n) {
			seam_stream_reopen(calls, sink, context);
			follows = false;
			if (calls->error)
				break;
		}
		calls->last_ns = reader->last_ns;
		seam_calls_feed(calls, batch, from, batch->n, sink, context);
	}
	if (follows)
		seam_calls_begin(calls);
	calls->ahead = NULL;
	calls->reader = NULL;
	calls->batch = NULL;
	calls->repairs[SEAM_REPAIR_CLOCK] += reader->n_steps;
}

/* The same, to the stream's end, where open calls end. */
static inline __attribute__((always_inline)) void
seam_stream_feed(struct seam_calls *calls, struct seam_trace_reader *reader,
		 struct seam_xray_batch *batch,
		 const struct seam_calls_sink *sink, void *context)
{
	seam_stream_feed_part(calls, reader, batch, sink, context);
	seam_calls_end(calls, sink, context);
}

/*
 * The calls of stream @stream, each under its caller even where its entry is
 * missing: costs a first pass that finds those.  Problems of the log are
 * added to @problems, repairs to calls->repairs.  0 or -ENOMEM.
 */
int seam_stream_calls(struct seam_calls *calls, const struct seam_trace *trace,
		      size_t stream, const struct seam_calls_sink *sink,
		      void *context, struct seam_xray_problems *problems);

#endif /* SEAM_STREAM_CALLS_H */
