/* SPDX-License-Identifier: MIT */
/* account_sums.c - rows, histogram, edges, slowest calls of one worker */
#include "model/xray/account_sums.h"

#include <errno.h>
#include <stdlib.h>

#include "base/hash.h"

/* As many slots as the calls have. */
static int grow_slots(struct seam_account_sums *l)
{
	size_t n = l->calls.n_slots;
	uint32_t *row_of;

	if (n == l->n_slots)
		return 0;
	row_of = realloc(l->row_of, n * sizeof(*row_of));
	if (!row_of)
		return -ENOMEM;
	memset(row_of + l->n_slots, 0, (n - l->n_slots) * sizeof(*row_of));
	l->row_of = row_of;
	l->n_slots = n;
	return 0;
}

static int add_row(struct seam_account_sums *l, uint32_t slot)
{
	struct seam_account_sums_row *row;

	/* row 0 is nobody's, so that 0 in row_of can say so */
	do {
		row = SEAM_ARRAY_PUSH(&l->rows);
		if (!row)
			return -ENOMEM;
		*row = (struct seam_account_sums_row) {
			.function = seam_calls_function(&l->calls, slot),
			.min_ns = UINT64_MAX,
		};
	} while (l->rows.n == 1);
	l->row_of[slot] = (uint32_t)l->rows.n - 1;
	return 0;
}

/* The row of @function, if it has one. */
static struct seam_account_sums_row *known_row(struct seam_account_sums *l,
					 uint32_t function)
{
	uint32_t slot = seam_calls_slot(&l->calls, function);

	return slot < l->n_slots && l->row_of[slot] ?
	       &l->rows.items[l->row_of[slot]] : NULL;
}

static int add_octave(struct seam_account_sums *l, uint32_t *id)
{
	do {	/* octave 0 is nobody's, likewise */
		struct seam_octave *octave = SEAM_ARRAY_PUSH(&l->octaves);

		if (!octave)
			return -ENOMEM;
		*octave = (struct seam_octave) { 0 };
	} while (l->octaves.n == 1);
	*id = (uint32_t)l->octaves.n - 1;
	return 0;
}

/* One more call in @row and in the part @octave of its histogram. */
static inline void count(struct seam_account_sums_row *row,
			 struct seam_octave *octave,
			 const struct seam_ended_call *call,
			 unsigned int bucket)
{
	/* recursion is hard to predict: an index costs less than a jump */
	row->sum_ns[call->n_open == 0] += call->ns;
	row->child_ns += call->child_ns;
	octave->n[bucket % SEAM_HISTOGRAM_STEPS]++;
	if (__builtin_expect(call->ns < row->min_ns, 0))
		row->min_ns = call->ns;
	if (__builtin_expect(call->ns > row->max_ns, 0))
		row->max_ns = call->ns;
}

/* A call of which neither need be there yet. */
static void count_one(struct seam_account_sums *l,
		      const struct seam_ended_call *call)
{
	unsigned int bucket = seam_histogram_bucket(call->ns);
	struct seam_account_sums_row *row;
	uint32_t *octave;

	if (!l->row_of[call->slot] && add_row(l, (uint32_t)call->slot))
		goto fail;
	row = &l->rows.items[l->row_of[call->slot]];
	octave = &row->octave[bucket / SEAM_HISTOGRAM_STEPS];
	if (!*octave && add_octave(l, octave))
		goto fail;
	count(row, &l->octaves.items[*octave], call, bucket);
	return;
fail:
	l->calls.error = -ENOMEM;
}

static void count_ended(void *context, struct seam_calls *calls,
			const struct seam_ended_calls *ended)
{
	const struct seam_ended_call *call = ended->items;
	const struct seam_ended_call *end = call + ended->n;
	struct seam_account_sums *l = context;
	struct seam_octave *octaves = l->octaves.items;
	struct seam_account_sums_row *rows = l->rows.items;
	const uint32_t *row_of;

	if (grow_slots(l)) {
		calls->error = -ENOMEM;
		return;
	}
	l->n_in_runs += ended->n;
	row_of = l->row_of;
	for (; call < end; call++) {
		unsigned int bucket = seam_histogram_bucket(call->ns);
		uint32_t row = row_of[call->slot], octave;

		octave = row ? rows[row].octave[bucket / SEAM_HISTOGRAM_STEPS] :
			       0;
		if (__builtin_expect(octave, 1)) {
			count(&rows[row], &octaves[octave], call, bucket);
		} else {
			count_one(l, call);
			octaves = l->octaves.items;
			rows = l->rows.items;
		}
	}
}

static void end_call(void *context, struct seam_calls *calls,
		     const struct seam_call *call, uint64_t end_ns)
{
	uint64_t ns = end_ns - call->begin_ns;
	struct seam_account_sums *l = context;

	if (grow_slots(l))
		calls->error = -ENOMEM;
	else
		count_one(l, &(struct seam_ended_call) {
			.ns = ns, .child_ns = call->child_ns,
			.slot = call->slot,
			.n_open = calls->active[call->slot],
		});
}

static const struct seam_calls_sink plain_sink = {
	.end = end_call, .ended = count_ended,
};

static void count_edge(struct seam_account_sums *l, struct seam_calls *calls,
		       const struct seam_call *call, uint64_t end_ns)
{
	uint32_t caller = calls->calls[calls->n - 1].function;
	uint64_t hash = seam_hash_u64((uint64_t)caller << 32 | call->function);
	struct seam_index_probe probe = seam_index_probe(&l->edge_index, hash);
	struct seam_account_edge *edge = NULL;
	uint32_t id;

	while ((id = seam_index_next(&l->edge_index, &probe)) != SEAM_NONE) {
		edge = &l->edges.items[id];
		if (edge->caller == caller && edge->callee == call->function)
			break;
	}
	if (id == SEAM_NONE) {
		edge = SEAM_ARRAY_PUSH(&l->edges);
		if (!edge || seam_index_add(&l->edge_index, hash,
					    (uint32_t)(l->edges.n - 1))) {
			calls->error = -ENOMEM;
			return;
		}
		*edge = (struct seam_account_edge) {
			.caller = caller, .callee = call->function,
		};
	}
	edge->count++;
	edge->sum_ns += end_ns - call->begin_ns;
}

/* Longer first; equal ones in the order of the program. */
int seam_account_by_length(const void *a, const void *b)
{
	const struct seam_account_call *x = a, *y = b;
	uint64_t dx = x->end_ns - x->begin_ns, dy = y->end_ns - y->begin_ns;

	if (dx != dy)
		return dx < dy ? 1 : -1;
	if (x->stream != y->stream)
		return x->stream < y->stream ? -1 : 1;
	return x->begin_ns < y->begin_ns ? -1 : x->begin_ns > y->begin_ns;
}

/* Let the heap's element @at sink to its place; the shortest call is on top. */
static void sift(struct seam_account_call *heap, size_t at, size_t n)
{
	for (;;) {
		size_t child = 2 * at + 1;
		struct seam_account_call moved = heap[at];

		if (child >= n)
			return;
		if (child + 1 < n &&
		    seam_account_by_length(&heap[child + 1], &heap[child]) > 0)
			child++;
		if (seam_account_by_length(&heap[child], &moved) <= 0)
			return;
		heap[at] = heap[child];
		heap[child] = moved;
		at = child;
	}
}

static void keep_slowest(struct seam_account_sums *l,
			 const struct seam_account_call *call)
{
	size_t cap = l->options->n_slowest;
	struct seam_account_call *slot;

	if (cap == 0 || (l->options->wanted &&
			 !l->options->wanted(l->options->context,
					     call->function)))
		return;
	if (l->slowest.n == cap) {
		if (seam_account_by_length(call, &l->slowest.items[0]) > 0)
			return;
		l->slowest.items[0] = *call;
		sift(l->slowest.items, 0, cap);
		return;
	}
	slot = SEAM_ARRAY_PUSH(&l->slowest);
	if (!slot) {
		l->calls.error = -ENOMEM;
		return;
	}
	*slot = *call;
	if (l->slowest.n == cap)
		for (size_t at = cap / 2; at-- > 0;)
			sift(l->slowest.items, at, cap);
}

static void end_detailed(void *context, struct seam_calls *calls,
			 const struct seam_call *call, uint64_t end_ns)
{
	struct seam_account_sums *l = context;

	if (!seam_time_range_has(&l->range, call->begin_ns))
		return;
	end_call(l, calls, call, end_ns);
	if (l->options->edges)
		count_edge(l, calls, call, end_ns);
	keep_slowest(l, &(struct seam_account_call) {
		.begin_ns = call->begin_ns, .end_ns = end_ns,
		.function = call->function, .stream = l->stream,
	});
}

static const struct seam_calls_sink detailed_sink = {
	.end = end_detailed,
};

static bool is_detailed(const struct seam_account_sums *l)
{
	return l->options->edges || l->options->n_slowest ||
	       !seam_time_range_is_all(&l->range);
}

static void prepare(struct seam_account_sums *l, const struct seam_trace *trace,
		    uint32_t stream)
{
	l->stream = stream;
	l->range = trace->range;
	seam_calls_begin(&l->calls);
	l->calls.start_ns = seam_trace_start_ns(trace, stream);
}

void seam_account_sums_count_part(struct seam_account_sums *l,
			    const struct seam_trace *trace,
			    const struct seam_part *part, bool goes_on)
{
	struct seam_trace_reader reader;

	if (!goes_on) {
		prepare(l, trace, part->stream);
		l->calls.last_ns = l->calls.start_ns;
	}
	seam_trace_read_part(&reader, trace, part->stream, part->first,
			     part->n, l->calls.last_ns);
	if (is_detailed(l))
		seam_stream_feed_part(&l->calls, &reader, &l->batch,
				      &detailed_sink, l);
	else
		seam_stream_feed_part(&l->calls, &reader, &l->batch,
				      &plain_sink, l);
	seam_xray_problems_merge(&l->problems, &reader.problems);
}

/*
 * With nothing open here, it is the end of a call from before, if that is the
 * innermost one there.  With something open, it depends on what is open
 * before whether this is an exception's doing; that is not decided here.
 */
static void keep_outer(void *context, struct seam_calls *calls,
		       const struct seam_xray_event *event, bool is_stray)
{
	struct seam_call *base = &calls->calls[0];
	struct seam_account_sums *l = context;
	const struct seam_account_sums_row *row = known_row(l, event->function);
	struct seam_outer_exit *exit;
	uint32_t *closed;

	if (is_stray) {
		closed = SEAM_ARRAY_PUSH(&l->closed);
		if (closed)
			*closed = event->function;
		else
			calls->error = -ENOMEM;
		return;
	}
	exit = calls->n == 1 ? SEAM_ARRAY_PUSH(&l->exits) : NULL;
	if (!exit) {
		calls->error = calls->n == 1 ? -ENOMEM : -EAGAIN;
		return;
	}
	*exit = (struct seam_outer_exit) {
		.ns = event->tsc, .child_ns = base->child_ns,
		.total_ns = row ? row->sum_ns[1] : 0,
		.function = event->function,
	};
	base->child_ns = 0;
	base->tail = event->kind == SEAM_XRAY_TAIL_EXIT ?
		     event->function + 1 : 0;
}

static const struct seam_calls_sink plain_inner_sink = {
	.end = end_call, .outer = keep_outer, .ended = count_ended,
};

static const struct seam_calls_sink detailed_inner_sink = {
	.end = end_detailed, .outer = keep_outer,
};

void seam_account_sums_count_inner(struct seam_account_sums *l,
			     const struct seam_trace *trace,
			     const struct seam_part *part)
{
	struct seam_trace_reader reader;

	prepare(l, trace, part->stream);
	seam_trace_read_part(&reader, trace, part->stream, part->first,
			     part->n, 0);
	if (is_detailed(l))
		seam_stream_feed_part(&l->calls, &reader, &l->batch,
				      &detailed_inner_sink, l);
	else
		seam_stream_feed_part(&l->calls, &reader, &l->batch,
				      &plain_inner_sink, l);
	l->first_ns = reader.first_ns;
	seam_xray_problems_merge(&l->problems, &reader.problems);
}

static uint32_t n_open(struct seam_account_sums *l, uint32_t function)
{
	uint32_t slot = seam_calls_slot(&l->calls, function);

	return slot == SEAM_NONE ? 0 : l->calls.active[slot];
}

/* Whether @next was right in what it took for granted. */
static bool can_join(struct seam_account_sums *l, const struct seam_account_sums *next)
{
	const struct seam_calls *calls = &l->calls;

	if (calls->error || next->calls.error || calls->too_deep ||
	    next->first_ns < calls->last_ns ||
	    next->exits.n > calls->n - 1 ||
	    calls->n + next->calls.cap > SEAM_CALLS_MAX_DEPTH)
		return false;
	for (size_t i = 0; i < next->exits.n; i++)
		if (calls->calls[calls->n - 1 - i].function !=
		    next->exits.items[i].function)
			return false;
	for (size_t i = 0; i < next->closed.n; i++)
		if (n_open(l, next->closed.items[i]))
			return false;
	return !calls->error;
}

/* @ns of @row were taken for those of outermost calls. */
static void call_recursive(struct seam_account_sums_row *row, uint64_t ns)
{
	row->sum_ns[0] += ns;
	row->sum_ns[1] -= ns;
}

/*
 * Time that @next counted into a function's total while a call of it was open
 * before: that call's time has it already.
 */
static void take_back(struct seam_account_sums *next, uint32_t function, uint64_t ns)
{
	struct seam_account_sums_row *row = known_row(next, function);

	if (row)
		call_recursive(row, ns);
}

static void leave_one(struct seam_account_sums *l, uint64_t ns)
{
	if (is_detailed(l))
		seam_calls_leave(&l->calls, ns, &detailed_sink, l);
	else
		seam_calls_leave(&l->calls, ns, &plain_sink, l);
}

static void end_outer(struct seam_account_sums *l, struct seam_account_sums *next)
{
	for (size_t i = 0; i < next->exits.n; i++) {
		const struct seam_outer_exit *exit = &next->exits.items[i];

		l->calls.calls[l->calls.n - 1].child_ns += exit->child_ns;
		leave_one(l, exit->ns);
		if (n_open(l, exit->function) == 0)
			take_back(next, exit->function, exit->total_ns);
	}
}

/* What is open before and after @next: all its time is theirs. */
static void put_totals_right(struct seam_account_sums *l, struct seam_account_sums *next)
{
	for (size_t i = 1; i < next->rows.n; i++) {
		struct seam_account_sums_row *row = &next->rows.items[i];

		if (row->sum_ns[1] && n_open(l, row->function))
			call_recursive(row, row->sum_ns[1]);
	}
}

static void open_again(struct seam_account_sums *l, const struct seam_calls *next)
{
	for (size_t i = 1; i < next->n; i++) {
		struct seam_call call = next->calls[i];

		if ((l->calls.n == l->calls.cap &&
		     !seam_calls_grow(&l->calls)))
			return;
		call.slot = seam_calls_slot(&l->calls, call.function);
		if (call.slot == SEAM_NONE)
			return;
		l->calls.active[call.slot]++;
		l->calls.calls[l->calls.n++] = call;
	}
}

bool seam_account_sums_join(struct seam_account_sums *l, struct seam_account_sums *next)
{
	const struct seam_call *base = &next->calls.calls[0];
	struct seam_call *top;

	if (!can_join(l, next))
		return false;
	end_outer(l, next);
	put_totals_right(l, next);
	top = &l->calls.calls[l->calls.n - 1];
	top->child_ns += base->child_ns;
	if (base->tail)
		top->tail = base->tail;
	open_again(l, &next->calls);
	if (next->first_ns != UINT64_MAX)
		l->calls.last_ns = next->calls.last_ns;
	return true;
}

void seam_account_sums_end(struct seam_account_sums *l)
{
	while (l->calls.n > 1 && !l->calls.error) {
		l->calls.repairs[SEAM_REPAIR_UNFINISHED]++;
		leave_one(l, l->calls.last_ns);
	}
}

void seam_account_sums_count(struct seam_account_sums *l, const struct seam_trace *trace,
		       uint32_t stream)
{
	struct seam_trace_reader reader;

	prepare(l, trace, stream);
	seam_trace_read(&reader, trace, stream);
	if (is_detailed(l))
		seam_stream_feed(&l->calls, &reader, &l->batch, &detailed_sink,
				 l);
	else
		seam_stream_feed(&l->calls, &reader, &l->batch, &plain_sink, l);
	seam_xray_problems_merge(&l->problems, &reader.problems);
}

void seam_account_sums_free(struct seam_account_sums *l)
{
	if (!l)
		return;
	seam_calls_fini(&l->calls);
	seam_index_fini(&l->edge_index);
	free(l->rows.items);
	free(l->row_of);
	free(l->octaves.items);
	free(l->edges.items);
	free(l->slowest.items);
	free(l->exits.items);
	free(l->closed.items);
	free(l);
}
