/* SPDX-License-Identifier: MIT */
/*
 * stream_calls.h - the calls of one thread of a trace, into a sink
 *
 * Joins trace.h, which orders events, with calls.h, which nests them, and
 * handles two cases that need both: calls open when a child was forked begin
 * again in the child; and calls that began before the log can be opened before
 * its first event, so that each call is under its caller.
 */
#ifndef SEAM_STREAM_CALLS_H
#define SEAM_STREAM_CALLS_H

#include "model/xray/calls.h"
#include "model/xray/trace.h"

/*
 * Replay shadow events [0, @n) of @batch: they open and end calls, without a
 * sink.
 */
void seam_stream_follow(struct seam_calls *calls,
			const struct seam_xray_batch *batch, size_t n);

/* Begin the open calls again, at the time of the last shadow event. */
void seam_stream_reopen(struct seam_calls *calls,
			const struct seam_calls_sink *sink, void *context);

/* Take the records that form runs, for a sink that has ended(). */
void seam_stream_run(struct seam_calls *calls,
		     struct seam_trace_reader *reader,
		     const struct seam_calls_sink *sink, void *context);

/*
 * One batch of @reader.  *@follows: all events so far were shadow events;
 * false at first.  Returns false at the end, or when calls->error is set.
 */
static inline __attribute__((always_inline)) bool
seam_stream_step(struct seam_calls *calls, struct seam_trace_reader *reader,
		 struct seam_xray_batch *batch, bool *follows,
		 const struct seam_calls_sink *sink, void *context)
{
	size_t from;

	if (sink->ended && !*follows)
		seam_stream_run(calls, reader, sink, context);
	if (calls->error || !seam_trace_next(reader, batch, &from))
		return false;
	calls->before_ns = calls->last_ns;
	if (from) {
		seam_stream_follow(calls, batch, from);
		*follows = true;
	}
	if (*follows && from < batch->n) {
		seam_stream_reopen(calls, sink, context);
		*follows = false;
		if (calls->error)
			return false;
	}
	calls->last_ns = reader->last_ns;
	seam_calls_feed(calls, batch, from, batch->n, sink, context);
	return true;
}

/* Before the first step, and after the last one. */
void seam_stream_begin(struct seam_calls *calls,
		       struct seam_trace_reader *reader,
		       struct seam_xray_batch *batch);
void seam_stream_end(struct seam_calls *calls, bool follows);

/*
 * All events of @reader; calls stay open.  Inline, so that a constant sink is
 * called directly; @batch is scratch space.  A sink that fails sets
 * calls->error, which ends the stream.
 */
static inline __attribute__((always_inline)) void
seam_stream_feed(struct seam_calls *calls, struct seam_trace_reader *reader,
		 struct seam_xray_batch *batch,
		 const struct seam_calls_sink *sink, void *context)
{
	bool follows = false;

	seam_stream_begin(calls, reader, batch);
	while (seam_stream_step(calls, reader, batch, &follows, sink, context))
		;
	seam_stream_end(calls, follows);
}

/*
 * The calls of one stream, each under its caller even where the caller's entry
 * is missing: opening takes a first pass, which finds those callers.
 */
struct seam_stream {
	struct seam_calls *calls;	/* of the caller; repairs are added */
	struct seam_trace_reader reader;	/* problems of the log */
	struct seam_xray_batch *batch;
	bool follows;
};

/*
 * Open stream @stream of @trace: both outlive @s.  Calls that began before
 * the log go to @sink at once.  0, or calls->error; to be closed in either
 * case.
 */
int seam_stream_open(struct seam_stream *s, struct seam_calls *calls,
		     const struct seam_trace *trace, size_t stream,
		     const struct seam_calls_sink *sink, void *context);

/*
 * The next batch into @sink; false after the last one, whose open calls have
 * ended then, or when calls->error is set.
 */
bool seam_stream_next(struct seam_stream *s,
		      const struct seam_calls_sink *sink, void *context);
void seam_stream_close(struct seam_stream *s);

/*
 * Open, read and close the stream.  Problems of the log are added to @problems.
 * 0, -ENOMEM, or the calls->error that a sink has set.
 */
int seam_stream_calls(struct seam_calls *calls, const struct seam_trace *trace,
		      size_t stream, const struct seam_calls_sink *sink,
		      void *context, struct seam_xray_problems *problems);

#endif /* SEAM_STREAM_CALLS_H */
