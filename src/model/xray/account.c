/* SPDX-License-Identifier: MIT */
/*
 * account.c - sums of each worker, added up; quantiles; see account.h
 *
 * A task is a stream: one worker counts one thread.  A worker takes sums from
 * a free list, or allocates them, and returns them: there are as many as
 * workers, whatever the number of streams.
 */
#include "model/xray/account.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>

#include "base/hash.h"
#include "base/index.h"
#include "base/workers.h"
#include "model/xray/stream_calls.h"

/*
 * The sums of a function, as few as possible: a call changes two of them and
 * a bucket.  The number of calls is the sum of the buckets.
 */
struct sums_row {
	uint64_t sum_ns[2];		/* of recursive, of outermost calls */
	uint64_t child_ns;
	uint64_t min_ns, max_ns;
	uint32_t function;		/* XRay id */
	/* as in struct seam_account_row */
	uint32_t octave[SEAM_HISTOGRAM_OCTAVES];
};

/* The sums of the streams that one worker counted. */
struct sums {
	struct sums *next;		/* in a job's free list */
	struct seam_calls calls;
	SEAM_ARRAY(struct sums_row) rows;
	SEAM_ARRAY(uint32_t) row_of;	/* by slot; 0: none yet */
	/*
	 * Its octaves, edges, problems, and slowest calls, with up to as many
	 * that are faster; in any order.
	 */
	struct seam_account account;
	struct seam_index edge_index;
	struct seam_account_call least;	/* faster calls are not the slowest */
	const struct seam_account_options *options;
	uint32_t stream;
	struct seam_time_range range;
	struct seam_xray_batch batch;
};

struct task {
	uint32_t stream;
	uint64_t n_bytes;
};

struct account_job {
	const struct seam_trace *trace;
	const struct seam_account_options *options;
	SEAM_ARRAY(struct task) tasks;
	pthread_mutex_t lock;		/* guards all below */
	struct sums *free;
	int error;
};

/* Make row_of as long as there are slots of calls.  False: no memory. */
static bool grow_slots(struct sums *sums)
{
	return SEAM_ARRAY_GROW(&sums->row_of, sums->calls.active.n);
}

static int add_row(struct sums *sums, uint32_t slot)
{
	/* row 0 is of no function: 0 in row_of means that there is none */
	do {
		if (!SEAM_ARRAY_ADD(&sums->rows, (struct sums_row) {
			.function = seam_calls_function(&sums->calls, slot),
			.min_ns = UINT64_MAX }))
			return -ENOMEM;
	} while (sums->rows.n == 1);
	sums->row_of.items[slot] = (uint32_t)sums->rows.n - 1;
	return 0;
}

static int add_octave(struct sums *sums, uint32_t *id)
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
static inline void count(struct sums_row *row,
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
static void count_one(struct sums *sums,
		      const struct seam_ended_call *call)
{
	unsigned int bucket = seam_histogram_bucket(call->ns);
	struct sums_row *row;
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
	struct sums *sums = context;
	struct seam_octave *octaves = sums->account.octaves.items;
	struct sums_row *rows = sums->rows.items;
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
	struct sums *sums = context;

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

static void add_edge(struct sums *sums,
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

/* Put the slowest calls in order, the longest first, and cut the others. */
static void cut_slowest(struct sums *sums)
{
	size_t most = sums->options->n_slowest;

	SEAM_ARRAY_SORT(&sums->account.slowest, by_length);
	if (sums->account.slowest.n < most || most == 0)
		return;
	sums->account.slowest.n = most;
	sums->least = sums->account.slowest.items[most - 1];
}

static void keep_slowest(struct sums *sums,
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
		cut_slowest(sums);
}

static void end_detailed(void *context, struct seam_calls *calls,
			 const struct seam_call *call, uint64_t end_ns)
{
	struct sums *sums = context;

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

static bool is_detailed(const struct sums *sums)
{
	return sums->options->edges || sums->options->n_slowest ||
	       !seam_time_range_is_all(&sums->range);
}

/* Count the calls of stream @id; open ones end at its last event. */
static void count_stream(struct sums *sums, const struct seam_trace *trace,
			 uint32_t id)
{
	struct seam_trace_reader reader;

	sums->stream = id;
	sums->range = trace->range;
	seam_calls_begin(&sums->calls);
	sums->calls.start_ns = seam_trace_start_ns(trace, id);
	sums->calls.last_ns = sums->calls.start_ns;
	seam_trace_read(&reader, trace, id);
	/* a sink is a constant in each of the calls, so that it is inlined */
	if (is_detailed(sums)) {
		seam_stream_feed(&sums->calls, &reader, &sums->batch,
				 &detailed_sink, sums);
		seam_calls_end(&sums->calls, &detailed_sink, sums);
	} else {
		seam_stream_feed(&sums->calls, &reader, &sums->batch,
				 &plain_sink, sums);
		seam_calls_end(&sums->calls, &plain_sink, sums);
	}
	seam_xray_problems_merge(&sums->account.problems, &reader.problems);
}

/* Add the row @from of other sums, whose octaves are in @octaves. */
static int add_sums_row(struct sums *sums,
			const struct sums_row *from,
			const struct seam_octave *octaves)
{
	uint32_t slot = seam_calls_slot(&sums->calls, from->function);
	struct sums_row *row;

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

/* Add @from, whose calls have ended, to @sums.  0 or calls.error. */
static int add_sums(struct sums *sums, const struct sums *from)
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

static struct sums *new_sums(const struct seam_account_options *options)
{
	struct sums *sums = calloc(1, sizeof(*sums));

	if (!sums)
		return NULL;
	sums->options = options;
	sums->least.stream = UINT32_MAX;	/* slower than no call */
	return sums;
}

static void free_sums(struct sums *sums)
{
	if (!sums)
		return;
	seam_calls_fini(&sums->calls);
	seam_index_fini(&sums->edge_index);
	free(sums->rows.items);
	free(sums->row_of.items);
	seam_account_fini(&sums->account);
	free(sums);
}

static struct sums *take_sums(struct account_job *job)
{
	struct sums *sums;

	pthread_mutex_lock(&job->lock);
	sums = job->free;
	if (sums)
		job->free = sums->next;
	pthread_mutex_unlock(&job->lock);
	return sums ? sums : new_sums(job->options);
}

static void give_back(struct account_job *job, struct sums *sums)
{
	pthread_mutex_lock(&job->lock);
	if (!sums || sums->calls.error)
		job->error = sums ? sums->calls.error : -ENOMEM;
	if (sums) {
		sums->next = job->free;
		job->free = sums;
	}
	pthread_mutex_unlock(&job->lock);
}

static void work(void *context, size_t i)
{
	struct account_job *job = context;
	struct sums *sums = take_sums(job);

	if (sums && !sums->calls.error)
		count_stream(sums, job->trace, job->tasks.items[i].stream);
	give_back(job, sums);
}

static void free_list(struct sums *list)
{
	while (list) {
		struct sums *next = list->next;

		free_sums(list);
		list = next;
	}
}

/* So that no worker ends long after the others. */
static int longest_first(const void *a, const void *b)
{
	const struct task *x = a, *y = b;

	return SEAM_COMPARE(y->n_bytes, x->n_bytes);
}

static int edge_by_total(const void *a, const void *b)
{
	const struct seam_account_edge *x = a, *y = b;

	return SEAM_COMPARE(y->total_ns, x->total_ns) ?:
	       SEAM_COMPARE(x->caller, y->caller) ?:
	       SEAM_COMPARE(x->callee, y->callee);
}

static int row_by_sum(const void *a, const void *b)
{
	const struct seam_account_row *x = a, *y = b;

	return SEAM_COMPARE(y->sum_ns, x->sum_ns) ?:
	       SEAM_COMPARE(x->function, y->function);
}

static uint64_t count_of(const struct seam_account *account,
			 const struct sums_row *row)
{
	uint64_t n = 0;

	for (size_t o = 0; o < SEAM_HISTOGRAM_OCTAVES; o++)
		for (size_t i = 0; row->octave[o] && i < SEAM_HISTOGRAM_STEPS;
		     i++)
			n += account->octaves.items[row->octave[o]].n[i];
	return n;
}

/* The account of @sums, whose arrays it takes over. */
static int take_account(struct seam_account *account, struct sums *sums)
{
	struct seam_account *from = &sums->account;

	for (size_t i = 1; i < sums->rows.n; i++) {
		const struct sums_row *r = &sums->rows.items[i];
		struct seam_account_row row = {
			.function = r->function, .count = count_of(from, r),
			.min_ns = r->min_ns, .max_ns = r->max_ns,
			.sum_ns = r->sum_ns[0] + r->sum_ns[1],
			.total_ns = r->sum_ns[1],
			.self_ns = r->sum_ns[0] + r->sum_ns[1] - r->child_ns,
		};

		memcpy(row.octave, r->octave, sizeof(row.octave));
		account->n_calls += row.count;
		if (!SEAM_ARRAY_ADD(&account->rows, row))
			return -ENOMEM;
	}
	cut_slowest(sums);
	SEAM_ARRAY_SORT(&account->rows, row_by_sum);
	SEAM_ARRAY_SORT(&from->edges, edge_by_total);
	account->octaves = from->octaves;
	account->edges = from->edges;
	account->slowest = from->slowest;
	account->n_in_runs = from->n_in_runs;
	seam_xray_problems_merge(&account->problems, &from->problems);
	*from = (struct seam_account) { 0 };
	for (size_t i = 0; i < SEAM_N_REPAIRS; i++)
		seam_repairs_add(&account->repairs[i],
				 sums->calls.repairs[i]);
	return 0;
}

static int build(struct account_job *job, struct seam_account *account)
{
	const struct seam_trace *trace = job->trace;

	for (uint32_t id = 0; id < trace->streams.n; id++)
		if (!SEAM_ARRAY_ADD(&job->tasks, (struct task) {
			id, trace->streams.items[id].n_bytes }))
			return -ENOMEM;
	SEAM_ARRAY_SORT(&job->tasks, longest_first);
	seam_workers_run(job->tasks.n, work, job);
	for (struct sums *next = job->free ? job->free->next : NULL;
	     next && !job->error; next = next->next)
		job->error = add_sums(job->free, next);
	return job->error || !job->free ? job->error :
	       take_account(account, job->free);
}

int seam_account_build(struct seam_account *account,
		       const struct seam_trace *trace,
		       const struct seam_account_options *options,
		       struct seam_err *err)
{
	struct account_job job = {
		.trace = trace, .options = options,
		.lock = PTHREAD_MUTEX_INITIALIZER,
	};
	int r;

	*account = (struct seam_account) { .in_ticks = trace->in_ticks };
	seam_trace_problems(trace, &account->problems);
	account->repairs[SEAM_REPAIR_EXTENTS] = seam_trace_n_extents(trace);
	r = build(&job, account);
	free_list(job.free);
	free(job.tasks.items);
	if (r) {
		seam_account_fini(account);
		return seam_calls_failed(r, err);
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

/*
 * The nearest rank, ceil(@fraction * @count), of 1 to @count.  The product is
 * inexact: 0.07 * 100 is a little more than 7, but its rank is 7.
 */
static uint64_t nearest_rank(uint64_t count, double fraction)
{
	double product = fraction * (double)count;
	uint64_t rank = product < 0 ? 0 : product >= (double)count ? count :
			(uint64_t)product;

	if ((double)rank < product * (1 - 0x1p-50))
		rank++;
	return rank == 0 ? 1 : rank > count ? count : rank;
}

static uint64_t clamp(uint64_t ns, const struct seam_account_row *row)
{
	return ns < row->min_ns ? row->min_ns :
	       ns > row->max_ns ? row->max_ns : ns;
}

uint64_t seam_account_quantile(const struct seam_account *account,
			       const struct seam_account_row *row,
			       double fraction)
{
	uint64_t rank = nearest_rank(row->count, fraction), seen = 0;

	if (rank == 1)
		return row->min_ns;
	if (rank == row->count)
		return row->max_ns;
	if (row->count == 3)
		return clamp(row->sum_ns - row->min_ns - row->max_ns, row);
	for (unsigned int o = 0; o < SEAM_HISTOGRAM_OCTAVES; o++) {
		const struct seam_octave *octave = row->octave[o] ?
			&account->octaves.items[row->octave[o]] : NULL;

		for (unsigned int i = 0; octave && i < SEAM_HISTOGRAM_STEPS;
		     i++) {
			unsigned int bucket = o * SEAM_HISTOGRAM_STEPS + i;
			uint64_t least = seam_histogram_least(bucket);

			seen += octave->n[i];
			if (seen >= rank)
				return clamp(o <= 1 ? least : least +
					(UINT64_C(1) << (o - 2)), row);
		}
	}
	return row->max_ns;
}
