/* SPDX-License-Identifier: MIT */
/* account_sums.c - rows, histogram, edges, slowest calls of one worker */
#include "model/xray/account_sums.h"

#include <errno.h>
#include <stdlib.h>

#include "base/hash.h"

/* Make row_of as long as there are slots of calls.  False: no memory. */
static bool grow_slots(struct seam_sums *sums)
{
	return SEAM_ARRAY_GROW(&sums->row_of, sums->calls.active.n);
}

static int add_row(struct seam_sums *sums, uint32_t slot)
{
	/* row 0 is of no function: 0 in row_of means that there is none */
	do {
		if (!SEAM_ARRAY_ADD(&sums->rows, (struct seam_sums_row) {
			.function = seam_calls_function(&sums->calls, slot),
			.min_ns = UINT64_MAX }))
			return -ENOMEM;
	} while (sums->rows.n == 1);
	sums->row_of.items[slot] = (uint32_t)sums->rows.n - 1;
	return 0;
}

/* The row of @function, if it has one. */
static struct seam_sums_row *known_row(struct seam_sums *sums,
				       uint32_t function)
{
	uint32_t slot = seam_calls_slot(&sums->calls, function);

	return slot < sums->row_of.n && sums->row_of.items[slot] ?
	       &sums->rows.items[sums->row_of.items[slot]] : NULL;
}

static int add_octave(struct seam_sums *sums, uint32_t *id)
{
	do {	/* octave 0 is in no row, likewise */
		if (!SEAM_ARRAY_ADD(&sums->account.octaves,
				    (struct seam_octave) { 0 }))
			return -ENOMEM;
	} while (sums->account.octaves.n == 1);
	*id = (uint32_t)sums->account.octaves.n - 1;
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

	if (!sums->row_of.items[call->slot] &&
	    add_row(sums, (uint32_t)call->slot))
		goto fail;
	row = &sums->rows.items[sums->row_of.items[call->slot]];
	octave = &row->octave[bucket / SEAM_HISTOGRAM_STEPS];
	if (!*octave && add_octave(sums, octave))
		goto fail;
	count(row, &sums->account.octaves.items[*octave], call, bucket);
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
	struct seam_octave *octaves = sums->account.octaves.items;
	struct seam_sums_row *rows = sums->rows.items;
	const uint32_t *row_of;

	if (!grow_slots(sums)) {
		calls->error = -ENOMEM;
		return;
	}
	sums->account.n_in_runs += ended->n;
	row_of = sums->row_of.items;
	for (; call < end; call++) {
		unsigned int bucket = seam_histogram_bucket(call->ns);
		uint32_t row = row_of[call->slot], octave;

		octave = row ? rows[row].octave[bucket / SEAM_HISTOGRAM_STEPS] :
			       0;
		if (__builtin_expect(octave, 1)) {
			count(&rows[row], &octaves[octave], call, bucket);
		} else {
			count_one(sums, call);
			octaves = sums->account.octaves.items;
			rows = sums->rows.items;
		}
	}
}

static void end_call(void *context, struct seam_calls *calls,
		     const struct seam_call *call, uint64_t end_ns)
{
	uint64_t ns = end_ns - call->begin_ns;
	struct seam_sums *sums = context;

	if (!grow_slots(sums))
		calls->error = -ENOMEM;
	else
		count_one(sums, &(struct seam_ended_call) {
			.ns = ns, .child_ns = call->child_ns,
			.slot = call->slot,
			.n_open = calls->active.items[call->slot],
		});
}

static const struct seam_calls_sink plain_sink = {
	.end = end_call, .ended = count_ended,
};

static void add_edge(struct seam_sums *sums,
		     const struct seam_account_edge *added)
{
	uint64_t hash = seam_hash_u64((uint64_t)added->caller << 32 |
				      added->callee);
	struct seam_account_edge *edges = sums->account.edges.items;
	uint32_t id = SEAM_INDEX_FIND(&sums->edge_index, hash, i,
				      edges[i].caller == added->caller &&
				      edges[i].callee == added->callee);

	if (id != SEAM_NONE) {
		edges[id].count += added->count;
		edges[id].total_ns += added->total_ns;
	} else if (SEAM_INDEX_APPEND(&sums->edge_index, hash,
				     &sums->account.edges, *added) ==
		   SEAM_NONE) {
		sums->calls.error = -ENOMEM;
	}
}

/* Longer calls first; equal ones in the order of the program. */
static int by_length(const void *a, const void *b)
{
	const struct seam_account_call *x = a, *y = b;

	return SEAM_COMPARE(y->end_ns - y->begin_ns, x->end_ns - x->begin_ns) ?:
	       SEAM_COMPARE(x->stream, y->stream) ?:
	       SEAM_COMPARE(x->begin_ns, y->begin_ns);
}

void seam_sums_cut_slowest(struct seam_sums *sums)
{
	size_t most = sums->options->n_slowest;

	SEAM_ARRAY_SORT(&sums->account.slowest, by_length);
	if (sums->account.slowest.n < most || most == 0)
		return;
	sums->account.slowest.n = most;
	sums->least = sums->account.slowest.items[most - 1];
}

static void keep_slowest(struct seam_sums *sums,
			 const struct seam_account_call *call)
{
	const struct seam_account_options *options = sums->options;

	if (options->n_slowest == 0 || by_length(call, &sums->least) > 0 ||
	    (options->wanted &&
	     !options->wanted(options->context, call->function)))
		return;
	if (!SEAM_ARRAY_ADD(&sums->account.slowest, *call))
		sums->calls.error = -ENOMEM;
	else if (sums->account.slowest.n == 2 * options->n_slowest)
		seam_sums_cut_slowest(sums);
}

static void end_detailed(void *context, struct seam_calls *calls,
			 const struct seam_call *call, uint64_t end_ns)
{
	struct seam_sums *sums = context;

	if (!seam_time_range_has(&sums->range, call->begin_ns))
		return;
	end_call(sums, calls, call, end_ns);
	if (sums->options->edges)
		add_edge(sums, &(struct seam_account_edge) {
			.caller = calls->calls[calls->n - 1].function,
			.callee = call->function, .count = 1,
			.total_ns = calls->active.items[call->slot] ? 0 :
				    end_ns - call->begin_ns,
		});
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

	if (is_stray) {
		if (!SEAM_ARRAY_ADD(&sums->closed, event->function))
			calls->error = -ENOMEM;
		return;
	}
	if (calls->n > 1) {
		calls->error = -EAGAIN;
		return;
	}
	if (!SEAM_ARRAY_ADD(&sums->exits, (struct seam_outer_exit) {
		.ns = event->tsc, .child_ns = base->child_ns,
		.total_ns = row ? row->sum_ns[1] : 0,
		.function = event->function })) {
		calls->error = -ENOMEM;
		return;
	}
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

/* A sink is a constant in each of the calls, so that it is inlined. */
static void feed(struct seam_sums *sums, struct seam_trace_reader *reader,
		 bool is_inner)
{
	struct seam_calls *calls = &sums->calls;
	struct seam_xray_batch *batch = &sums->batch;

	if (is_detailed(sums) && is_inner)
		seam_stream_feed(calls, reader, batch, &detailed_inner_sink,
				 sums);
	else if (is_detailed(sums))
		seam_stream_feed(calls, reader, batch, &detailed_sink, sums);
	else if (is_inner)
		seam_stream_feed(calls, reader, batch, &plain_inner_sink, sums);
	else
		seam_stream_feed(calls, reader, batch, &plain_sink, sums);
	seam_xray_problems_merge(&sums->account.problems, &reader->problems);
}

void seam_sums_count(struct seam_sums *sums, const struct seam_trace *trace,
		     const struct seam_part *part, enum seam_part_place place)
{
	struct seam_trace_reader reader;

	if (place != SEAM_PART_NEXT) {
		sums->stream = part->stream;
		sums->range = trace->range;
		seam_calls_begin(&sums->calls);
		sums->calls.start_ns = seam_trace_start_ns(trace,
							   part->stream);
	}
	if (place == SEAM_PART_FIRST)
		sums->calls.last_ns = sums->calls.start_ns;
	seam_trace_read_part(&reader, trace, part->stream, part->first,
			     part->n, sums->calls.last_ns);
	feed(sums, &reader, place == SEAM_PART_INNER);
	sums->first_ns = reader.first_ns;
}

static uint32_t n_open(struct seam_sums *sums, uint32_t function)
{
	uint32_t slot = seam_calls_slot(&sums->calls, function);

	return slot == SEAM_NONE ? 0 : sums->calls.active.items[slot];
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
		sums->calls.active.items[call.slot]++;
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

/* Add the row @from of other sums, whose octaves are in @octaves. */
static int add_sums_row(struct seam_sums *sums,
			const struct seam_sums_row *from,
			const struct seam_octave *octaves)
{
	uint32_t slot = seam_calls_slot(&sums->calls, from->function);
	struct seam_sums_row *row;

	if (slot == SEAM_NONE || !grow_slots(sums) ||
	    (!sums->row_of.items[slot] && add_row(sums, slot)))
		return -ENOMEM;
	row = &sums->rows.items[sums->row_of.items[slot]];
	row->sum_ns[0] += from->sum_ns[0];
	row->sum_ns[1] += from->sum_ns[1];
	row->child_ns += from->child_ns;
	row->min_ns = from->min_ns < row->min_ns ? from->min_ns : row->min_ns;
	row->max_ns = from->max_ns > row->max_ns ? from->max_ns : row->max_ns;
	for (size_t o = 0; o < SEAM_HISTOGRAM_OCTAVES; o++) {
		if (!from->octave[o])
			continue;
		if (!row->octave[o] && add_octave(sums, &row->octave[o]))
			return -ENOMEM;
		for (size_t i = 0; i < SEAM_HISTOGRAM_STEPS; i++)
			sums->account.octaves.items[row->octave[o]].n[i] +=
				octaves[from->octave[o]].n[i];
	}
	return 0;
}

int seam_sums_add(struct seam_sums *sums, const struct seam_sums *from)
{
	int *error = &sums->calls.error;

	for (size_t i = 1; i < from->rows.n && !*error; i++)
		if (add_sums_row(sums, &from->rows.items[i],
				 from->account.octaves.items) && !*error)
			*error = -ENOMEM;
	for (size_t i = 0; i < from->account.edges.n && !*error; i++)
		add_edge(sums, &from->account.edges.items[i]);
	for (size_t i = 0; i < from->account.slowest.n && !*error; i++)
		keep_slowest(sums, &from->account.slowest.items[i]);
	for (size_t i = 0; i < SEAM_N_REPAIRS; i++)
		seam_repairs_add(&sums->calls.repairs[i],
				 from->calls.repairs[i]);
	sums->account.n_in_runs += from->account.n_in_runs;
	seam_xray_problems_merge(&sums->account.problems,
				 &from->account.problems);
	return *error;
}

struct seam_sums *seam_sums_new(const struct seam_account_options *options)
{
	struct seam_sums *sums = calloc(1, sizeof(*sums));

	if (!sums)
		return NULL;
	sums->options = options;
	sums->least.stream = UINT32_MAX;	/* slower than no call */
	return sums;
}

void seam_sums_free(struct seam_sums *sums)
{
	if (!sums)
		return;
	seam_calls_fini(&sums->calls);
	seam_index_fini(&sums->edge_index);
	free(sums->rows.items);
	free(sums->row_of.items);
	seam_account_fini(&sums->account);
	free(sums->exits.items);
	free(sums->closed.items);
	free(sums);
}
