/* SPDX-License-Identifier: MIT */
/* account_sums.c - rows, histogram, edges, slowest calls of one worker */
#include "model/xray/account_sums.h"

#include <errno.h>
#include <stdlib.h>

#include "base/hash.h"

/* Make row_of as long as there are slots of calls. */
static int grow_slots(struct seam_sums *sums)
{
	size_t n = sums->calls.n_slots;
	uint32_t *row_of;

	if (n == sums->n_slots)
		return 0;
	row_of = realloc(sums->row_of, n * sizeof(*row_of));
	if (!row_of)
		return -ENOMEM;
	memset(row_of + sums->n_slots, 0,
	       (n - sums->n_slots) * sizeof(*row_of));
	sums->row_of = row_of;
	sums->n_slots = n;
	return 0;
}

static int add_row(struct seam_sums *sums, uint32_t slot)
{
	struct seam_sums_row *row;

	/* row 0 is of no function: 0 in row_of means that there is none */
	do {
		row = SEAM_ARRAY_PUSH(&sums->rows);
		if (!row)
			return -ENOMEM;
		*row = (struct seam_sums_row) {
			.function = seam_calls_function(&sums->calls, slot),
			.min_ns = UINT64_MAX,
		};
	} while (sums->rows.n == 1);
	sums->row_of[slot] = (uint32_t)sums->rows.n - 1;
	return 0;
}

/* The row of @function, if it has one. */
static struct seam_sums_row *known_row(struct seam_sums *sums,
				       uint32_t function)
{
	uint32_t slot = seam_calls_slot(&sums->calls, function);

	return slot < sums->n_slots && sums->row_of[slot] ?
	       &sums->rows.items[sums->row_of[slot]] : NULL;
}

static int add_octave(struct seam_sums *sums, uint32_t *id)
{
	do {	/* octave 0 is in no row, likewise */
		struct seam_octave *octave = SEAM_ARRAY_PUSH(&sums->octaves);

		if (!octave)
			return -ENOMEM;
		*octave = (struct seam_octave) { 0 };
	} while (sums->octaves.n == 1);
	*id = (uint32_t)sums->octaves.n - 1;
	return 0;
}

/* Add @call to @row and to @octave of its histogram. */
static inline void count(struct seam_sums_row *row,
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

/* The same where the row or the octave may not be there yet. */
static void count_one(struct seam_sums *sums,
		      const struct seam_ended_call *call)
{
	unsigned int bucket = seam_histogram_bucket(call->ns);
	struct seam_sums_row *row;
	uint32_t *octave;

	if (!sums->row_of[call->slot] && add_row(sums, (uint32_t)call->slot))
		goto fail;
	row = &sums->rows.items[sums->row_of[call->slot]];
	octave = &row->octave[bucket / SEAM_HISTOGRAM_STEPS];
	if (!*octave && add_octave(sums, octave))
		goto fail;
	count(row, &sums->octaves.items[*octave], call, bucket);
	return;
fail:
	sums->calls.error = -ENOMEM;
}

static void count_ended(void *context, struct seam_calls *calls,
			const struct seam_ended_calls *ended)
{
	const struct seam_ended_call *call = ended->items;
	const struct seam_ended_call *end = call + ended->n;
	struct seam_sums *sums = context;
	struct seam_octave *octaves = sums->octaves.items;
	struct seam_sums_row *rows = sums->rows.items;
	const uint32_t *row_of;

	if (grow_slots(sums)) {
		calls->error = -ENOMEM;
		return;
	}
	sums->n_in_runs += ended->n;
	row_of = sums->row_of;
	for (; call < end; call++) {
		unsigned int bucket = seam_histogram_bucket(call->ns);
		uint32_t row = row_of[call->slot], octave;

		octave = row ? rows[row].octave[bucket / SEAM_HISTOGRAM_STEPS] :
			       0;
		if (__builtin_expect(octave, 1)) {
			count(&rows[row], &octaves[octave], call, bucket);
		} else {
			count_one(sums, call);
			octaves = sums->octaves.items;
			rows = sums->rows.items;
		}
	}
}

static void end_call(void *context, struct seam_calls *calls,
		     const struct seam_call *call, uint64_t end_ns)
{
	uint64_t ns = end_ns - call->begin_ns;
	struct seam_sums *sums = context;

	if (grow_slots(sums))
		calls->error = -ENOMEM;
	else
		count_one(sums, &(struct seam_ended_call) {
			.ns = ns, .child_ns = call->child_ns,
			.slot = call->slot,
			.n_open = calls->active[call->slot],
		});
}

static const struct seam_calls_sink plain_sink = {
	.end = end_call, .ended = count_ended,
};

static void count_edge(struct seam_sums *sums, struct seam_calls *calls,
		       const struct seam_call *call, uint64_t end_ns)
{
	uint32_t caller = calls->calls[calls->n - 1].function;
	uint64_t hash = seam_hash_u64((uint64_t)caller << 32 | call->function);
	struct seam_index_probe probe = seam_index_probe(&sums->edge_index,
							 hash);
	struct seam_account_edge *edge = NULL;
	uint32_t id;

	while ((id = seam_index_next(&sums->edge_index, &probe)) != SEAM_NONE) {
		edge = &sums->edges.items[id];
		if (edge->caller == caller && edge->callee == call->function)
			break;
	}
	if (id == SEAM_NONE) {
		edge = SEAM_ARRAY_PUSH(&sums->edges);
		if (!edge || seam_index_add(&sums->edge_index, hash,
					    (uint32_t)(sums->edges.n - 1))) {
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

/* Restore the heap below element @at; the shortest call is on top. */
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

static void keep_slowest(struct seam_sums *sums,
			 const struct seam_account_call *call)
{
	size_t cap = sums->options->n_slowest;
	struct seam_account_call *slot;

	if (cap == 0 || (sums->options->wanted &&
			 !sums->options->wanted(sums->options->context,
						call->function)))
		return;
	if (sums->slowest.n == cap) {
		if (seam_account_by_length(call, &sums->slowest.items[0]) > 0)
			return;
		sums->slowest.items[0] = *call;
		sift(sums->slowest.items, 0, cap);
		return;
	}
	slot = SEAM_ARRAY_PUSH(&sums->slowest);
	if (!slot) {
		sums->calls.error = -ENOMEM;
		return;
	}
	*slot = *call;
	if (sums->slowest.n == cap)
		for (size_t at = cap / 2; at-- > 0;)
			sift(sums->slowest.items, at, cap);
}

static void end_detailed(void *context, struct seam_calls *calls,
			 const struct seam_call *call, uint64_t end_ns)
{
	struct seam_sums *sums = context;

	if (!seam_time_range_has(&sums->range, call->begin_ns))
		return;
	end_call(sums, calls, call, end_ns);
	if (sums->options->edges)
		count_edge(sums, calls, call, end_ns);
	keep_slowest(sums, &(struct seam_account_call) {
		.begin_ns = call->begin_ns, .end_ns = end_ns,
		.function = call->function, .stream = sums->stream,
	});
}

static const struct seam_calls_sink detailed_sink = {
	.end = end_detailed,
};

static bool is_detailed(const struct seam_sums *sums)
{
	return sums->options->edges || sums->options->n_slowest ||
	       !seam_time_range_is_all(&sums->range);
}

static void prepare(struct seam_sums *sums, const struct seam_trace *trace,
		    uint32_t stream)
{
	sums->stream = stream;
	sums->range = trace->range;
	seam_calls_begin(&sums->calls);
	sums->calls.start_ns = seam_trace_start_ns(trace, stream);
}

void seam_sums_count_part(struct seam_sums *sums,
			  const struct seam_trace *trace,
			  const struct seam_part *part, bool goes_on)
{
	struct seam_trace_reader reader;

	if (!goes_on) {
		prepare(sums, trace, part->stream);
		sums->calls.last_ns = sums->calls.start_ns;
	}
	seam_trace_read_part(&reader, trace, part->stream, part->first,
			     part->n, sums->calls.last_ns);
	if (is_detailed(sums))
		seam_stream_feed_part(&sums->calls, &reader, &sums->batch,
				      &detailed_sink, sums);
	else
		seam_stream_feed_part(&sums->calls, &reader, &sums->batch,
				      &plain_sink, sums);
	seam_xray_problems_merge(&sums->problems, &reader.problems);
}

/*
 * The exit of a call that is not open in this part.  Where no call is open, it
 * may end the innermost call that is open before the part; joining checks
 * that.  Where calls are open, they may have ended by an exception, which
 * depends on the calls open before: the part must be counted again.
 */
static void keep_outer(void *context, struct seam_calls *calls,
		       const struct seam_xray_event *event, bool is_stray)
{
	struct seam_call *base = &calls->calls[0];
	struct seam_sums *sums = context;
	const struct seam_sums_row *row = known_row(sums, event->function);
	struct seam_outer_exit *exit;
	uint32_t *closed;

	if (is_stray) {
		closed = SEAM_ARRAY_PUSH(&sums->closed);
		if (closed)
			*closed = event->function;
		else
			calls->error = -ENOMEM;
		return;
	}
	exit = calls->n == 1 ? SEAM_ARRAY_PUSH(&sums->exits) : NULL;
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

void seam_sums_count_inner(struct seam_sums *sums,
			   const struct seam_trace *trace,
			   const struct seam_part *part)
{
	struct seam_trace_reader reader;

	prepare(sums, trace, part->stream);
	seam_trace_read_part(&reader, trace, part->stream, part->first,
			     part->n, 0);
	if (is_detailed(sums))
		seam_stream_feed_part(&sums->calls, &reader, &sums->batch,
				      &detailed_inner_sink, sums);
	else
		seam_stream_feed_part(&sums->calls, &reader, &sums->batch,
				      &plain_inner_sink, sums);
	sums->first_ns = reader.first_ns;
	seam_xray_problems_merge(&sums->problems, &reader.problems);
}

static uint32_t n_open(struct seam_sums *sums, uint32_t function)
{
	uint32_t slot = seam_calls_slot(&sums->calls, function);

	return slot == SEAM_NONE ? 0 : sums->calls.active[slot];
}

/* Whether the assumptions of @next hold after @sums. */
static bool can_join(struct seam_sums *sums, const struct seam_sums *next)
{
	const struct seam_calls *calls = &sums->calls;

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
		if (n_open(sums, next->closed.items[i]))
			return false;
	return !calls->error;
}

/* Move @ns of @row from the outermost calls to the recursive ones. */
static void call_recursive(struct seam_sums_row *row, uint64_t ns)
{
	row->sum_ns[0] += ns;
	row->sum_ns[1] -= ns;
}

/*
 * @next counted @ns into the total of @function, while a call of it was open
 * before the part, whose time contains them.
 */
static void uncount_total(struct seam_sums *next, uint32_t function,
			  uint64_t ns)
{
	struct seam_sums_row *row = known_row(next, function);

	if (row)
		call_recursive(row, ns);
}

static void leave_one(struct seam_sums *sums, uint64_t ns)
{
	if (is_detailed(sums))
		seam_calls_leave(&sums->calls, ns, &detailed_sink, sums);
	else
		seam_calls_leave(&sums->calls, ns, &plain_sink, sums);
}

static void end_outer(struct seam_sums *sums, struct seam_sums *next)
{
	for (size_t i = 0; i < next->exits.n; i++) {
		const struct seam_outer_exit *exit = &next->exits.items[i];

		sums->calls.calls[sums->calls.n - 1].child_ns += exit->child_ns;
		leave_one(sums, exit->ns);
		if (n_open(sums, exit->function) == 0)
			uncount_total(next, exit->function, exit->total_ns);
	}
}

/* The same for functions that are open before and after @next. */
static void correct_totals(struct seam_sums *sums, struct seam_sums *next)
{
	for (size_t i = 1; i < next->rows.n; i++) {
		struct seam_sums_row *row = &next->rows.items[i];

		if (row->sum_ns[1] && n_open(sums, row->function))
			call_recursive(row, row->sum_ns[1]);
	}
}

static void open_again(struct seam_sums *sums, const struct seam_calls *next)
{
	for (size_t i = 1; i < next->n; i++) {
		struct seam_call call = next->calls[i];

		if ((sums->calls.n == sums->calls.cap &&
		     !seam_calls_grow(&sums->calls)))
			return;
		call.slot = seam_calls_slot(&sums->calls, call.function);
		if (call.slot == SEAM_NONE)
			return;
		sums->calls.active[call.slot]++;
		sums->calls.calls[sums->calls.n++] = call;
	}
}

bool seam_sums_join(struct seam_sums *sums, struct seam_sums *next)
{
	const struct seam_call *base = &next->calls.calls[0];
	struct seam_call *top;

	if (!can_join(sums, next))
		return false;
	end_outer(sums, next);
	correct_totals(sums, next);
	top = &sums->calls.calls[sums->calls.n - 1];
	top->child_ns += base->child_ns;
	if (base->tail)
		top->tail = base->tail;
	open_again(sums, &next->calls);
	if (next->first_ns != UINT64_MAX)
		sums->calls.last_ns = next->calls.last_ns;
	return true;
}

void seam_sums_end(struct seam_sums *sums)
{
	while (sums->calls.n > 1 && !sums->calls.error) {
		sums->calls.repairs[SEAM_REPAIR_UNFINISHED]++;
		leave_one(sums, sums->calls.last_ns);
	}
}

void seam_sums_count(struct seam_sums *sums, const struct seam_trace *trace,
		     uint32_t stream)
{
	struct seam_trace_reader reader;

	prepare(sums, trace, stream);
	seam_trace_read(&reader, trace, stream);
	if (is_detailed(sums))
		seam_stream_feed(&sums->calls, &reader, &sums->batch,
				 &detailed_sink, sums);
	else
		seam_stream_feed(&sums->calls, &reader, &sums->batch,
				 &plain_sink, sums);
	seam_xray_problems_merge(&sums->problems, &reader.problems);
}

void seam_sums_free(struct seam_sums *sums)
{
	if (!sums)
		return;
	seam_calls_fini(&sums->calls);
	seam_index_fini(&sums->edge_index);
	free(sums->rows.items);
	free(sums->row_of);
	free(sums->octaves.items);
	free(sums->edges.items);
	free(sums->slowest.items);
	free(sums->exits.items);
	free(sums->closed.items);
	free(sums);
}
