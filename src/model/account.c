/* SPDX-License-Identifier: MIT */
/*
 * account.c - one ledger a worker, added up at the end; see account.h
 *
 * A task is a stream.  A worker takes a ledger from the free ones, or makes
 * one, and gives it back: as many ledgers as workers, whatever the number of
 * streams.
 */
#include "model/account.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>

#include "base/hash.h"
#include "base/index.h"
#include "base/workers.h"

struct edge_key {
	uint32_t caller, callee;	/* slots; SEAM_NONE: the thread */
};

struct ledger {
	struct ledger *next;		/* free, or all when it is over */
	struct seam_calls calls;
	SEAM_ARRAY(struct seam_account_row) rows;	/* by slot */
	SEAM_ARRAY(struct seam_octave) octaves;
	SEAM_ARRAY(struct seam_account_edge) edges;
	struct seam_index edge_index;
	SEAM_ARRAY(struct seam_account_call) slowest;	/* heap, least first */
	const struct seam_account_options *options;
	uint32_t stream;
	uint64_t n_entries;		/* of the stream, so far */
	bool shadow;			/* the calls are another process's */
	struct seam_xray_problems problems;
	struct seam_xray_batch batch;
};

struct job {
	const struct seam_trace *trace;
	const struct seam_account_options *options;
	const uint32_t *order;		/* streams, the longest first */
	pthread_mutex_t lock;		/* guards all below */
	struct ledger *free;
	int error;
};

static int grow_rows(struct ledger *l)
{
	while (l->rows.n < l->calls.functions.n) {
		struct seam_account_row *row = SEAM_ARRAY_PUSH(&l->rows);

		if (!row)
			return -ENOMEM;
		*row = (struct seam_account_row) {
			.function = l->calls.functions.ids[l->rows.n - 1],
			.min_ns = UINT64_MAX,
		};
	}
	return 0;
}

static uint32_t add_octave(struct ledger *l)
{
	struct seam_octave *octave = SEAM_ARRAY_PUSH(&l->octaves);

	if (!octave) {
		l->calls.error = -ENOMEM;
		return 0;
	}
	*octave = (struct seam_octave) { 0 };
	return (uint32_t)l->octaves.n;
}

static inline void count(struct ledger *l, struct seam_calls *calls,
			 const struct seam_call *call, uint64_t end_ns)
{
	uint64_t ns = end_ns - call->begin_ns;
	unsigned int bucket = seam_histogram_bucket(ns);
	struct seam_account_row *row;
	uint32_t octave;

	if (__builtin_expect(call->slot >= l->rows.n, 0) && grow_rows(l)) {
		calls->error = -ENOMEM;
		return;
	}
	row = &l->rows.items[call->slot];
	row->count++;
	row->sum_ns += ns;
	row->self_ns += ns - call->child_ns;
	if (calls->active[call->slot] == 0)
		row->total_ns += ns;
	if (ns < row->min_ns)
		row->min_ns = ns;
	if (ns > row->max_ns)
		row->max_ns = ns;
	octave = row->octave[bucket / SEAM_HISTOGRAM_STEPS];
	if (__builtin_expect(!octave, 0)) {
		octave = add_octave(l);
		row->octave[bucket / SEAM_HISTOGRAM_STEPS] = octave;
		if (!octave)
			return;
	}
	l->octaves.items[octave - 1].n[bucket % SEAM_HISTOGRAM_STEPS]++;
}

static void end_call(void *context, struct seam_calls *calls,
		     const struct seam_call *call, uint64_t end_ns)
{
	count(context, calls, call, end_ns);
}

static const struct seam_calls_sink plain_sink = { .end = end_call };

static void count_edge(struct ledger *l, struct seam_calls *calls,
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
static int by_length(const void *a, const void *b)
{
	const struct seam_account_call *x = a, *y = b;
	uint64_t dx = x->end_ns - x->begin_ns, dy = y->end_ns - y->begin_ns;

	if (dx != dy)
		return dx < dy ? 1 : -1;
	if (x->stream != y->stream)
		return x->stream < y->stream ? -1 : 1;
	return x->ordinal < y->ordinal ? -1 : x->ordinal > y->ordinal;
}

/* Let the heap's first element sink to its place. */
static void sift(struct seam_account_call *heap, size_t n)
{
	size_t at = 0;

	for (;;) {
		size_t child = 2 * at + 1;
		struct seam_account_call moved = heap[at];

		if (child >= n)
			return;
		if (child + 1 < n &&
		    by_length(&heap[child + 1], &heap[child]) > 0)
			child++;
		if (by_length(&heap[child], &moved) <= 0)
			return;
		heap[at] = heap[child];
		heap[child] = moved;
		at = child;
	}
}

static void keep_slowest(struct ledger *l, const struct seam_account_call *call)
{
	size_t cap = l->options->n_slowest;
	struct seam_account_call *slot;

	if (cap == 0 || (l->options->wanted &&
			 !l->options->wanted(l->options->context,
					     call->function)))
		return;
	if (l->slowest.n == cap) {
		if (by_length(call, &l->slowest.items[0]) > 0)
			return;
		l->slowest.items[0] = *call;
		sift(l->slowest.items, l->slowest.n);
		return;
	}
	slot = SEAM_ARRAY_PUSH(&l->slowest);
	if (!slot) {
		l->calls.error = -ENOMEM;
		return;
	}
	*slot = *call;
	if (l->slowest.n == cap)	/* least first is a heap */
		qsort(l->slowest.items, cap, sizeof(*slot), by_length);
	if (l->slowest.n == cap)
		for (size_t i = 0; i < cap / 2; i++) {
			struct seam_account_call other = l->slowest.items[i];

			l->slowest.items[i] = l->slowest.items[cap - 1 - i];
			l->slowest.items[cap - 1 - i] = other;
		}
}

static void begin_detailed(void *context, struct seam_calls *calls)
{
	struct ledger *l = context;

	calls->calls[calls->n - 1].user = (uint32_t)l->n_entries++;
}

static void end_detailed(void *context, struct seam_calls *calls,
			 const struct seam_call *call, uint64_t end_ns)
{
	struct ledger *l = context;

	count(l, calls, call, end_ns);
	if (l->options->edges)
		count_edge(l, calls, call, end_ns);
	keep_slowest(l, &(struct seam_account_call) {
		.begin_ns = call->begin_ns, .end_ns = end_ns,
		.function = call->function, .stream = l->stream,
		.ordinal = call->user,
	});
}

static const struct seam_calls_sink detailed_sink = {
	.begin = begin_detailed, .end = end_detailed,
};

static void ignore_end(void *context, struct seam_calls *calls,
		       const struct seam_call *call, uint64_t end_ns)
{
	(void)context, (void)calls, (void)call, (void)end_ns;
}

static const struct seam_calls_sink silent_sink = { .end = ignore_end };

/* The calls that a forked child shares with its parent: kept, not counted. */
static void feed_shadow(struct ledger *l, size_t n)
{
	uint64_t before[SEAM_N_REPAIRS];

	memcpy(before, l->calls.repairs, sizeof(before));
	seam_calls_feed(&l->calls, &l->batch, 0, n, &silent_sink, l);
	seam_calls_inherit(&l->calls, l->batch.events[n - 1].tsc);
	memcpy(l->calls.repairs, before, sizeof(before));
}

static void account_stream(struct ledger *l, const struct seam_trace *trace,
			   uint32_t stream)
{
	bool detailed = l->options->edges || l->options->n_slowest;
	struct seam_calls *calls = &l->calls;
	struct seam_trace_reader reader;
	size_t from;

	l->stream = stream;
	l->n_entries = 0;
	seam_trace_read(&reader, trace, stream);
	seam_calls_begin(calls);
	while (!calls->error && seam_trace_next(&reader, &l->batch, &from)) {
		if (calls->start_ns == 0)
			calls->start_ns = l->batch.events[0].tsc;
		if (from)
			feed_shadow(l, from);
		if (detailed)
			seam_calls_feed(calls, &l->batch, from, l->batch.n,
					&detailed_sink, l);
		else
			seam_calls_feed(calls, &l->batch, from, l->batch.n,
					&plain_sink, l);
	}
	calls->last_ns = reader.last_ns;
	seam_calls_end(calls, detailed ? &detailed_sink : &plain_sink, l);
	calls->repairs[SEAM_REPAIR_CLOCK] += reader.n_steps;
	seam_xray_problems_merge(&l->problems, &reader.problems);
}

static struct ledger *take_ledger(struct job *job)
{
	struct ledger *l;

	pthread_mutex_lock(&job->lock);
	l = job->free;
	if (l)
		job->free = l->next;
	pthread_mutex_unlock(&job->lock);
	if (!l)
		l = calloc(1, sizeof(*l));
	if (l)
		l->options = job->options;
	return l;
}

static void give_back(struct job *job, struct ledger *l)
{
	pthread_mutex_lock(&job->lock);
	if (!l || l->calls.error)
		job->error = -ENOMEM;
	if (l) {
		l->next = job->free;
		job->free = l;
	}
	pthread_mutex_unlock(&job->lock);
}

static void work(void *context, size_t task)
{
	struct job *job = context;
	struct ledger *l = take_ledger(job);

	if (l && !l->calls.error)
		account_stream(l, job->trace, job->order[task]);
	give_back(job, l);
}

static void free_ledger(struct ledger *l)
{
	seam_calls_fini(&l->calls);
	seam_index_fini(&l->edge_index);
	free(l->rows.items);
	free(l->octaves.items);
	free(l->edges.items);
	free(l->slowest.items);
	free(l);
}

/* Add @from, whose octaves are in @octaves, to @into, whose are ours. */
static int merge_row(struct seam_account *account,
		     struct seam_account_row *into,
		     const struct seam_account_row *from,
		     const struct seam_octave *octaves)
{
	into->count += from->count;
	into->sum_ns += from->sum_ns;
	into->total_ns += from->total_ns;
	into->self_ns += from->self_ns;
	if (from->min_ns < into->min_ns)
		into->min_ns = from->min_ns;
	if (from->max_ns > into->max_ns)
		into->max_ns = from->max_ns;
	for (size_t o = 0; o < SEAM_HISTOGRAM_OCTAVES; o++) {
		struct seam_octave *octave;

		if (!from->octave[o])
			continue;
		if (!into->octave[o]) {
			octave = SEAM_ARRAY_PUSH(&account->octaves);
			if (!octave)
				return -ENOMEM;
			*octave = (struct seam_octave) { 0 };
			into->octave[o] = (uint32_t)account->octaves.n;
		}
		octave = &account->octaves.items[into->octave[o] - 1];
		for (size_t i = 0; i < SEAM_HISTOGRAM_STEPS; i++)
			octave->n[i] += octaves[from->octave[o] - 1].n[i];
	}
	return 0;
}

/* Rows of all ledgers, the equal functions' added up; @calls numbers them. */
static int merge_ledger(struct seam_account *account, struct seam_calls *calls,
			const struct ledger *l)
{
	for (size_t i = 0; i < l->rows.n; i++) {
		const struct seam_account_row *from = &l->rows.items[i];
		uint32_t slot = seam_calls_slot(calls, from->function);

		if (slot == SEAM_NONE)
			return -ENOMEM;
		if (slot == account->rows.n) {
			struct seam_account_row *row =
				SEAM_ARRAY_PUSH(&account->rows);

			if (!row)
				return -ENOMEM;
			*row = (struct seam_account_row) {
				.function = from->function,
				.min_ns = UINT64_MAX,
			};
		}
		if (merge_row(account, &account->rows.items[slot], from,
			      l->octaves.items))
			return -ENOMEM;
		account->n_calls += from->count;
	}
	for (size_t i = 0; i < SEAM_N_REPAIRS; i++)
		account->repairs[i] += l->calls.repairs[i];
	seam_xray_problems_merge(&account->problems, &l->problems);
	return 0;
}

static int by_ends(const void *a, const void *b)
{
	const struct seam_account_edge *x = a, *y = b;

	if (x->caller != y->caller)
		return x->caller < y->caller ? -1 : 1;
	return x->callee < y->callee ? -1 : x->callee > y->callee;
}

static int edge_by_sum(const void *a, const void *b)
{
	const struct seam_account_edge *x = a, *y = b;

	if (x->sum_ns != y->sum_ns)
		return x->sum_ns < y->sum_ns ? 1 : -1;
	return by_ends(a, b);
}

static int row_by_sum(const void *a, const void *b)
{
	const struct seam_account_row *x = a, *y = b;

	if (x->sum_ns != y->sum_ns)
		return x->sum_ns < y->sum_ns ? 1 : -1;
	return x->function < y->function ? -1 : x->function > y->function;
}

/* Edges and slowest calls: put in one array, sorted, folded or cut. */
static int merge_details(struct seam_account *account, const struct ledger *l)
{
	if (!SEAM_ARRAY_RESERVE(&account->edges, l->edges.n) ||
	    !SEAM_ARRAY_RESERVE(&account->slowest, l->slowest.n))
		return -ENOMEM;
	if (l->edges.n)
		memcpy(account->edges.items + account->edges.n, l->edges.items,
		       l->edges.n * sizeof(*l->edges.items));
	account->edges.n += l->edges.n;
	if (l->slowest.n)
		memcpy(account->slowest.items + account->slowest.n,
		       l->slowest.items,
		       l->slowest.n * sizeof(*l->slowest.items));
	account->slowest.n += l->slowest.n;
	return 0;
}

static void fold_edges(struct seam_account *account)
{
	struct seam_account_edge *edges = account->edges.items;
	size_t n = 0;

	if (account->edges.n == 0)
		return;
	qsort(edges, account->edges.n, sizeof(*edges), by_ends);
	for (size_t i = 1; i < account->edges.n; i++) {
		if (by_ends(&edges[n], &edges[i]) == 0) {
			edges[n].count += edges[i].count;
			edges[n].sum_ns += edges[i].sum_ns;
		} else {
			edges[++n] = edges[i];
		}
	}
	account->edges.n = n + 1;
	qsort(edges, account->edges.n, sizeof(*edges), edge_by_sum);
}

static int merge(struct seam_account *account, struct job *job)
{
	struct seam_calls calls = { 0 };
	int err = job->error;

	for (struct ledger *l = job->free, *next; l; l = next) {
		next = l->next;
		if (!err)
			err = merge_ledger(account, &calls, l);
		if (!err)
			err = merge_details(account, l);
		free_ledger(l);
	}
	seam_calls_fini(&calls);
	if (err)
		return err;
	fold_edges(account);
	if (account->rows.n)
		qsort(account->rows.items, account->rows.n,
		      sizeof(*account->rows.items), row_by_sum);
	if (account->slowest.n)
		qsort(account->slowest.items, account->slowest.n,
		      sizeof(*account->slowest.items), by_length);
	if (account->slowest.n > job->options->n_slowest)
		account->slowest.n = job->options->n_slowest;
	return 0;
}

struct sized {
	uint64_t n_bytes;
	uint32_t stream;
};

static int by_size(const void *a, const void *b)
{
	const struct sized *x = a, *y = b;

	if (x->n_bytes != y->n_bytes)
		return x->n_bytes < y->n_bytes ? 1 : -1;
	return x->stream < y->stream ? -1 : x->stream > y->stream;
}

/* The longest streams first, so that no worker ends long after the others. */
static uint32_t *order_streams(const struct seam_trace *trace)
{
	size_t n = trace->streams.n;
	struct sized *sized = malloc((n + 1) * sizeof(*sized));
	uint32_t *order = malloc((n + 1) * sizeof(*order));

	for (size_t i = 0; sized && order && i < n; i++)
		sized[i] = (struct sized) {
			.n_bytes = trace->streams.items[i].n_bytes,
			.stream = (uint32_t)i,
		};
	if (sized && order) {
		qsort(sized, n, sizeof(*sized), by_size);
		for (size_t i = 0; i < n; i++)
			order[i] = sized[i].stream;
	} else {
		free(order);
		order = NULL;
	}
	free(sized);
	return order;
}

int seam_account_build(struct seam_account *account,
		       const struct seam_trace *trace,
		       const struct seam_account_options *options,
		       struct seam_err *err)
{
	struct job job = {
		.trace = trace, .options = options,
		.order = order_streams(trace),
		.lock = PTHREAD_MUTEX_INITIALIZER,
	};
	int r = -ENOMEM;

	*account = (struct seam_account) { .in_ticks = trace->in_ticks };
	seam_trace_problems(trace, &account->problems);
	account->repairs[SEAM_REPAIR_EXTENTS] = seam_trace_n_extents(trace);
	if (job.order) {
		seam_workers_run(trace->streams.n, work, &job);
		r = merge(account, &job);
	}
	free((void *)(uintptr_t)job.order);
	if (r) {
		seam_account_fini(account);
		return seam_err_set(err, r, "out of memory");
	}
	return 0;
}

void seam_account_fini(struct seam_account *account)
{
	free(account->rows.items);
	free(account->octaves.items);
	free(account->edges.items);
	free(account->slowest.items);
	*account = (struct seam_account) { 0 };
}

uint64_t seam_account_quantile(const struct seam_account *account,
			       const struct seam_account_row *row,
			       double fraction)
{
	uint64_t rank = (uint64_t)(fraction * (double)(row->count - 1));
	uint64_t seen = 0;

	for (unsigned int o = 0; o < SEAM_HISTOGRAM_OCTAVES; o++) {
		const struct seam_octave *octave = row->octave[o] ?
			&account->octaves.items[row->octave[o] - 1] : NULL;

		for (unsigned int i = 0; octave && i < SEAM_HISTOGRAM_STEPS;
		     i++) {
			unsigned int bucket = o * SEAM_HISTOGRAM_STEPS + i;
			uint64_t least = seam_histogram_least(bucket), middle;

			seen += octave->n[i];
			if (seen <= rank)
				continue;
			middle = o <= 1 ? least :
				 least + (UINT64_C(1) << (o - 2));
			return middle < row->min_ns ? row->min_ns :
			       middle > row->max_ns ? row->max_ns : middle;
		}
	}
	return row->max_ns;
}
