/* SPDX-License-Identifier: MIT */
/*
 * stream_calls.c - runs, forks, missing entries, two passes
 *
 * A run goes from the log's bytes to ended calls without branches.
 * Whether the next record is an entry or an exit is hard to predict: in
 * programs that do not repeat themselves, every second branch is mispredicted,
 * and each misprediction costs as much as four records.  For each record, this
 * loop does the work of an entry and that of an exit, so that the work of the
 * other kind has no effect, and needs no branch.
 *
 * It takes records as long as each is an Entry of a known function or the Exit
 * of the call on top.  At the first other record it stops, and calls.h, which
 * handles all cases, takes over.  Both work on the same struct seam_calls,
 * with the same results: tests/model/test_account_runs.c compares them.
 */
#include "model/xray/stream_calls.h"

#include <errno.h>
#include <stdlib.h>

#include "base/hash.h"

static const struct seam_calls_sink no_sink = { 0 };

void seam_stream_follow(struct seam_stream *s, size_t n)
{
	const struct seam_xray_batch *batch = s->batch;
	struct seam_calls *calls = s->calls;
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

void seam_stream_reopen(struct seam_stream *s,
			const struct seam_calls_sink *sink, void *context)
{
	struct seam_calls *calls = s->calls;
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

/*
 * A record's low word, rotated so that the function id is in the low bits and
 * the action in the high ones.  Without the bit in which an exit differs from
 * an entry, it is the function id; of any other record it is a large number.
 */
static inline uint32_t function_of(uint64_t record)
{
	uint32_t word = (uint32_t)record;

	return (word >> 4 | word << 28) & ~(UINT32_C(1) << 29);
}

/* Ids below it are slots after run->ids->first is added. */
static uint32_t end_of_small(const struct seam_calls *calls,
			     const struct seam_trace_ids *ids)
{
	uint32_t n = calls->functions.n_small;

	if (ids->others == 0)
		return n;
	n = n > ids->first ? n - ids->first : 0;
	return n < ids->n ? n : ids->n;
}

/*
 * For each record, exit is all ones or 0, and call is
 *
 *	on exit:  the top, which ends; what is written to it is not used
 *	on entry: the place above the top, of the new call; what is read from
 *		  it is not used
 *
 * so that call - 1 is the caller in both cases.  @is_wide is a constant.
 */
static inline __attribute__((always_inline)) size_t
follow(struct seam_calls *calls, struct seam_trace_run *run,
       struct seam_ended_calls *ended, bool is_wide)
{
	const struct seam_ticks clock = *run->clock;
	uint32_t n_small = end_of_small(calls, run->ids);
	uint32_t first = run->ids->first;
	uint32_t *active = calls->active.items;
	struct seam_call *next = calls->calls + calls->n;
	struct seam_ended_call *out = ended->items;
	uint64_t ticks = run->ticks;
	size_t i;

	for (i = 0; i < run->wire.n; i++) {
		uint64_t record = seam_xray_run_record(&run->wire, i), ns;
		int64_t exit = (int64_t)(record << 62) >> 63;
		uint32_t id = function_of(record), function = first + id;
		struct seam_call *call = next + exit;

		/* small ids are slots; calls[0] has the slot of none */
		if (__builtin_expect(id >= n_small, 0) ||
		    __builtin_expect(((function ^ call->slot) &
				      (uint32_t)exit) != 0, 0))
			break;
		ticks += record >> 32;
		ns = run->origin_ns + seam_ticks_scale(&clock, ticks, is_wide);
		active[function] += 2 * (uint32_t)exit + 1;

		out->ns = ns - call->begin_ns;
		out->child_ns = call->child_ns;
		out->slot = function;
		out->n_open = active[function];
		call[-1].child_ns += out->ns & (uint64_t)exit;
		out -= exit;

		*call = (struct seam_call) {
			.begin_ns = ns, .function = function, .slot = function,
		};
		next = call + 1 + exit;
	}
	calls->n = (size_t)(next - calls->calls);
	ended->n = (size_t)(out - ended->items);
	run->ticks = ticks;
	return i;
}

_Static_assert((int)SEAM_ENDED_CALLS >= (int)SEAM_TRACE_RUN,
	       "a run may end as many calls as it has records");

/*
 * Take records from the front of @run.  Returns how many, with the calls that
 * ended in @ended and run->ticks at the last record; 0 also where memory ran
 * out, which is in calls->error.
 */
static size_t take_run(struct seam_calls *calls, struct seam_trace_run *run,
		       struct seam_ended_calls *ended)
{
	ended->n = 0;
	if (calls->too_deep || !seam_calls_reserve(calls, run->wire.n))
		return 0;
	return seam_ticks_is_wide(run->clock) ?
	       follow(calls, run, ended, true) :
	       follow(calls, run, ended, false);
}

void seam_stream_run(struct seam_stream *s,
		     const struct seam_calls_sink *sink, void *context)
{
	struct seam_calls *calls = s->calls;
	struct seam_ended_calls ended;
	struct seam_trace_run run;
	size_t n;

	do {
		if (calls->error || !seam_trace_run(&s->reader, &run))
			return;
		n = take_run(calls, &run, &ended);
		if (n == 0)
			return;
		seam_trace_run_take(&s->reader, &run, n);
		calls->last_ns = s->reader.last_ns;
		if (ended.n)
			sink->ended(context, calls, &ended);
	} while (n == run.wire.n);
}

void seam_stream_begin(struct seam_stream *s, struct seam_calls *calls,
		       const struct seam_trace *trace, size_t stream,
		       struct seam_xray_batch *batch)
{
	*s = (struct seam_stream) { .calls = calls, .batch = batch };
	seam_trace_read(&s->reader, trace, stream);
	seam_calls_begin(calls);
	calls->start_ns = calls->last_ns = s->reader.last_ns;
	calls->reader = &s->reader;
	calls->batch = batch;
}

void seam_stream_end(struct seam_stream *s,
		     const struct seam_calls_sink *sink, void *context)
{
	struct seam_calls *calls = s->calls;

	if (s->follows)
		seam_calls_begin(calls);
	calls->repairs[SEAM_REPAIR_CLOCK] += s->reader.n_steps;
	calls->reader = NULL;
	calls->batch = NULL;
	seam_calls_end(calls, sink, context);
}

/*
 * Open stream @stream of @trace: both outlive @s.  A first pass finds the calls
 * that began before the log, which go to @sink at once, and the stray exits.
 * 0, or calls->error; @s->batch is to be freed in either case.
 */
static int open_stream(struct seam_stream *s, struct seam_calls *calls,
		       const struct seam_trace *trace, size_t stream,
		       const struct seam_calls_sink *sink, void *context)
{
	struct seam_xray_batch *batch = malloc(sizeof(*batch));
	uint64_t repairs[SEAM_N_REPAIRS];

	*s = (struct seam_stream) { .calls = calls };
	if (!batch) {
		calls->error = -ENOMEM;
		return calls->error;
	}
	memcpy(repairs, calls->repairs, sizeof(repairs));
	calls->strays.n = calls->next_stray = 0;
	calls->later.n = calls->next_later = 0;
	calls->is_first_pass = true;
	seam_stream_begin(s, calls, trace, stream, batch);
	while (seam_stream_step(s, &no_sink, NULL))
		;
	seam_stream_end(s, &no_sink, NULL);
	calls->is_first_pass = false;
	memcpy(calls->repairs, repairs, sizeof(repairs));
	if (!SEAM_ARRAY_EXTEND(&calls->later, calls->unseen.items,
			       calls->unseen.n))
		calls->error = -ENOMEM;
	seam_stream_begin(s, calls, trace, stream, batch);
	if (!calls->error)
		seam_calls_open_later(calls, sink, context);
	return calls->error;
}

/*
 * The next batch into @sink; false after the last one, whose open calls have
 * ended then, or when calls->error is set.
 */
static bool next_batch(struct seam_stream *s,
		       const struct seam_calls_sink *sink, void *context)
{
	if (seam_stream_step(s, sink, context))
		return true;
	if (!s->calls->error)
		seam_stream_end(s, sink, context);
	return false;
}

int seam_stream_calls(struct seam_calls *calls, const struct seam_trace *trace,
		      size_t stream, const struct seam_calls_sink *sink,
		      void *context, struct seam_xray_problems *problems)
{
	struct seam_stream s;

	if (!open_stream(&s, calls, trace, stream, sink, context))
		while (next_batch(&s, sink, context))
			;
	seam_xray_problems_merge(problems, &s.reader.problems);
	free(s.batch);
	return calls->error;
}

/* -- as items ----------------------------------------------------------- */

static struct seam_item *push_item(struct seam_stream_items *items,
				   enum seam_item_kind kind, uint64_t time_ns)
{
	/* a call whose entry is missing begins at the log's start */
	if (time_ns < items->last_ns)
		time_ns = items->last_ns;
	items->last_ns = time_ns;
	if (SEAM_ARRAY_ADD(&items->items, (struct seam_item) {
		.time_ns = time_ns, .kind = kind, .function = SEAM_NONE }))
		return &items->items.items[items->items.n - 1];
	items->calls.error = -ENOMEM;
	return NULL;
}

static void begin_item(void *context, struct seam_calls *calls)
{
	const struct seam_call *call = &calls->calls[calls->n - 1];
	struct seam_item *item = push_item(context, SEAM_ITEM_BEGIN,
					   call->begin_ns);

	if (item)
		item->function = call->function;
}

static void end_item(void *context, struct seam_calls *calls,
		     const struct seam_call *call, uint64_t end_ns)
{
	struct seam_item *item = push_item(context, SEAM_ITEM_END, end_ns);

	(void)calls;
	if (!item)
		return;
	item->function = call->function;
	item->begin_ns = call->begin_ns;
}

static void event_item(void *context, struct seam_calls *calls,
		       const struct seam_xray_batch *batch,
		       const struct seam_xray_event *event)
{
	const struct seam_xray_payload *payload;
	struct seam_stream_items *items = context;
	struct seam_item *item;

	if (event->kind == SEAM_XRAY_ARGUMENT) {
		item = push_item(context, SEAM_ITEM_ARGUMENT,
				 calls->calls[calls->n - 1].begin_ns);
		if (item)
			item->value = event->tsc;
		return;
	}
	payload = &batch->payloads[event->function];
	if (seam_calls_is_gap(batch, event)) {
		item = push_item(items, SEAM_ITEM_LOSS, items->last_ns);
		if (!item)
			return;
		item->value = seam_xray_n_lost(payload);
		item->data = payload->data;
		return;
	}
	item = push_item(context, event->kind == SEAM_XRAY_TYPED ?
			 SEAM_ITEM_TYPED : SEAM_ITEM_CUSTOM, event->tsc);
	if (!item)
		return;
	item->type = payload->type;
	item->data = payload->data;
}

static const struct seam_calls_sink item_sink = {
	.begin = begin_item, .end = end_item, .event = event_item,
};

int seam_stream_items_open(struct seam_stream_items *items,
			   const struct seam_trace *trace, size_t stream)
{
	*items = (struct seam_stream_items) { 0 };
	return open_stream(&items->stream, &items->calls, trace, stream,
			   &item_sink, items);
}

/* Read another batch.  False at the end, or with calls.error. */
bool seam_stream_items_fill(struct seam_stream_items *items)
{
	const struct seam_xray_problems *problems =
		&items->stream.reader.problems;

	items->at = items->items.n = 0;
	while (!items->is_over && !items->calls.error &&
	       items->items.n == 0) {
		items->is_over = !next_batch(&items->stream, &item_sink,
					     items);
		if (problems->n > items->n_problems)
			push_item(items, SEAM_ITEM_LOSS, items->calls.last_ns);
		items->n_problems = problems->n;
	}
	return items->items.n > 0 && !items->calls.error;
}

void seam_stream_items_close(struct seam_stream_items *items)
{
	free(items->stream.batch);
	seam_calls_fini(&items->calls);
	free(items->items.items);
	*items = (struct seam_stream_items) { 0 };
}

/* -- as a tree ---------------------------------------------------------- */

static int make_root(struct seam_call_paths *tree)
{
	return tree->nodes.n == 0 &&
	       !SEAM_ARRAY_ADD(&tree->nodes, (struct seam_call_path) {
			.parent = SEAM_NONE, .function = SEAM_NONE }) ?
	       -ENOMEM : 0;
}

uint32_t seam_call_paths_child(struct seam_call_paths *tree, uint32_t parent,
			       uint32_t function)
{
	uint64_t hash = seam_hash_u64((uint64_t)parent << 32 | function);
	const struct seam_call_path *nodes = tree->nodes.items;
	uint32_t id = SEAM_INDEX_FIND(&tree->index, hash, i,
				      nodes[i].parent == parent &&
				      nodes[i].function == function);

	if (id != SEAM_NONE || parent == SEAM_NONE)
		return id;
	if (make_root(tree))
		return 0;
	if (tree->max && tree->nodes.n > tree->max)
		return SEAM_NONE;
	id = SEAM_INDEX_APPEND(&tree->index, hash, &tree->nodes,
			       (struct seam_call_path) {
				.parent = parent, .function = function });
	return id == SEAM_NONE ? 0 : id;
}

struct paths_pass {
	struct seam_call_paths *tree;
	const struct seam_time_range *range;
};

static void begin_node(void *context, struct seam_calls *calls)
{
	struct seam_call *call = &calls->calls[calls->n - 1];
	struct paths_pass *pass = context;
	size_t n = pass->tree->nodes.n;

	call->user = seam_call_paths_child(pass->tree, call[-1].user,
					   call->function);
	if (call->user == 0)
		calls->error = -ENOMEM;
	else if (pass->tree->nodes.n > n)
		pass->tree->nodes.items[n].first_ns = call->begin_ns;
}

static void end_node(void *context, struct seam_calls *calls,
		     const struct seam_call *call, uint64_t end_ns)
{
	struct paths_pass *pass = context;
	struct seam_call_path *nodes = pass->tree->nodes.items, *node;
	uint64_t ns = seam_time_range_clip(pass->range, call->begin_ns, end_ns);

	(void)calls;
	if (call->user == 0)	/* memory ran out where it began */
		return;
	if (call->user == SEAM_NONE) {
		pass->tree->n_left_out++;
		return;
	}
	node = &nodes[call->user];
	node->count += seam_time_range_has(pass->range, call->begin_ns);
	node->total_ns += ns;
	/* each callee, which ended before, has subtracted its time */
	node->self_ns += ns;
	if (node->parent != 0)
		nodes[node->parent].self_ns -= ns;
}

static const struct seam_calls_sink tree_sink = {
	.begin = begin_node, .end = end_node,
};

int seam_call_paths_add(struct seam_call_paths *tree,
			const struct seam_trace *trace, size_t stream,
			struct seam_calls *calls,
			struct seam_xray_problems *problems)
{
	struct paths_pass pass = { .tree = tree, .range = &trace->range };

	if (make_root(tree))
		return -ENOMEM;
	return seam_stream_calls(calls, trace, stream, &tree_sink, &pass,
				 problems);
}

void seam_call_paths_fini(struct seam_call_paths *tree)
{
	seam_index_fini(&tree->index);
	free(tree->nodes.items);
	*tree = (struct seam_call_paths) { 0 };
}
