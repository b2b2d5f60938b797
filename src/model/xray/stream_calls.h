/* SPDX-License-Identifier: MIT */
/*
 * stream_calls.h - the calls of one thread of a trace, into a sink
 *
 * Joins trace.h, which orders events, with calls.h, which nests them, and
 * handles two cases that need both: calls open when a child was forked begin
 * again in the child; and calls that began before the log can be opened before
 * its first event, so that each call is under its caller.
 */
#pragma once

#include "base/index.h"
#include "model/profile/timeline.h"
#include "model/xray/calls.h"

/* Not to be moved or copied between its begin and its end. */
struct seam_stream {
	struct seam_calls *calls;	/* of the caller; repairs are added */
	struct seam_trace_reader reader;	/* problems of the log */
	struct seam_xray_batch *batch;	/* of the caller: scratch space */
	bool follows;			/* all events so far were shadows */
};

/* Begin stream @stream of @trace, which outlives @s. */
void seam_stream_begin(struct seam_stream *s, struct seam_calls *calls,
		       const struct seam_trace *trace, size_t stream,
		       struct seam_xray_batch *batch);

/*
 * Replay shadow events [0, @n) of the batch: they open and end calls, without a
 * sink.
 */
void seam_stream_follow(struct seam_stream *s, size_t n);

/* Begin the open calls again, at the time of the last shadow event. */
void seam_stream_reopen(struct seam_stream *s,
			const struct seam_calls_sink *sink, void *context);

/* Take the records that form runs, for a sink that has ended(). */
void seam_stream_run(struct seam_stream *s,
		     const struct seam_calls_sink *sink, void *context);

/*
 * One batch of events into @sink.  False at the end, or when calls->error is
 * set, which a sink may do.  Inline, so that a constant sink is called
 * directly.
 */
static inline __attribute__((always_inline)) bool
seam_stream_step(struct seam_stream *s, const struct seam_calls_sink *sink,
		 void *context)
{
	struct seam_calls *calls = s->calls;
	size_t from;

	if (sink->ended && !s->follows)
		seam_stream_run(s, sink, context);
	if (calls->error || !seam_trace_next(&s->reader, s->batch, &from))
		return false;
	calls->before_ns = calls->last_ns;
	if (from) {
		seam_stream_follow(s, from);
		s->follows = true;
	}
	if (s->follows && from < s->batch->n) {
		seam_stream_reopen(s, sink, context);
		s->follows = false;
		if (calls->error)
			return false;
	}
	calls->last_ns = s->reader.last_ns;
	seam_calls_feed(calls, s->batch, from, s->batch->n, sink, context);
	return true;
}

/* After the last step: calls that are open end at the last event. */
void seam_stream_end(struct seam_stream *s,
		     const struct seam_calls_sink *sink, void *context);

/*
 * The calls of one stream, each under its caller even where the caller's entry
 * is missing: a first pass finds those callers.  Problems of the log are added
 * to @problems.  0, -ENOMEM, or the calls->error that a sink has set.
 */
int seam_stream_calls(struct seam_calls *calls, const struct seam_trace *trace,
		      size_t stream, const struct seam_calls_sink *sink,
		      void *context, struct seam_xray_problems *problems);

/*
 * The calls and events of one thread of a trace, one by one
 *
 * An iterator over what goes to a sink: entries, arguments,
 * exits and events as struct seam_item, whose functions are XRay ids.  It
 * holds the items of one batch of events.
 */

/* Not to be moved or copied while it is open. */
struct seam_stream_items {
	struct seam_calls calls;	/* repairs; its error ends the items */
	struct seam_stream stream;	/* its reader has the problems */
	SEAM_ARRAY(struct seam_item) items;	/* of the last batch */
	size_t at;			/* the next of these */
	uint64_t last_ns;		/* no later item is earlier */
	uint64_t n_problems;		/* for which there is a LOSS item */
	bool is_over;			/* no batch follows */
};

/* 0 or -errno; to be closed in either case.  @trace outlives @items. */
int seam_stream_items_open(struct seam_stream_items *items,
			   const struct seam_trace *trace, size_t stream);
void seam_stream_items_close(struct seam_stream_items *items);

/* Read another batch.  False at the end, or with calls.error. */
bool seam_stream_items_fill(struct seam_stream_items *items);

/* The next item, valid until the call after it; NULL where that is false. */
static inline const struct seam_item *
seam_stream_items_next(struct seam_stream_items *items)
{
	return items->at < items->items.n || seam_stream_items_fill(items) ?
	       &items->items.items[items->at++] : NULL;
}

/*
 * All calls of a thread as one tree of stacks, exactly
 *
 * A node is a function as called along one path.  Its time is the sum of
 * the calls that took this path, so that a flame graph's widths are measured
 * and not sampled.  Size: the program's distinct stacks, not its calls.
 *
 * A hostile log can have a new stack for each call, at 8 bytes a call, so the
 * number of nodes has a limit.  A call whose stack would exceed it is not in
 * the tree: its time counts as its caller's.
 */

struct seam_call_path {
	uint32_t parent;	/* node; SEAM_NONE for node 0 */
	uint32_t function;	/* XRay id; SEAM_NONE for node 0 */
	uint64_t first_ns;	/* when the first of the calls began */
	uint64_t count;		/* calls that began in the trace's range */
	uint64_t total_ns;	/* with callees, as far as in the range */
	uint64_t self_ns;	/* without callees */
};

enum { SEAM_CALL_PATHS_MAX = 1 << 21 };	/* of a whole log */

/* Zeroed is valid; node 0 is above all roots; parents come first. */
struct seam_call_paths {
	SEAM_ARRAY(struct seam_call_path) nodes;
	struct seam_index index;
	size_t max;		/* nodes, node 0 apart; 0: no limit */
	uint64_t n_left_out;	/* calls whose stack exceeded max */
};

/*
 * Add the calls of stream @stream of @trace.  @calls is scratch space that
 * collects the repairs.  0 or -ENOMEM.  Cost: about 20 ns a call.
 */
int seam_call_paths_add(struct seam_call_paths *tree,
			const struct seam_trace *trace, size_t stream,
			struct seam_calls *calls,
			struct seam_xray_problems *problems);

/*
 * The node of @function called from node @parent, new if need be; makes node
 * 0 in an empty tree.  SEAM_NONE if that would exceed max, or @parent is that;
 * 0 when memory ran out.
 */
uint32_t seam_call_paths_child(struct seam_call_paths *tree, uint32_t parent,
			       uint32_t function);

void seam_call_paths_fini(struct seam_call_paths *tree);
