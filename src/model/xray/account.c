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

/* The sums of the streams that one worker counted. */
struct sums {
	struct sums *next;		/* in a job's free list */
	struct seam_calls calls;	/* with the repairs */
	SEAM_ARRAY(uint32_t) row_of;	/* by slot: row + 1; 0: none yet */
	/* slowest: with up to as many that are faster; in any order */
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

/* The row of the function in @slot; NULL: no memory. */
static inline struct seam_account_row *find_row(struct sums *sums, uint64_t slot)
{
	uint32_t *row_of = &sums->row_of.items[slot];

	if (__builtin_expect(!*row_of, 0) && SEAM_ARRAY_ADD(&sums->account.rows,
			(struct seam_account_row) {
				.function = seam_calls_function(
					&sums->calls, (uint32_t)slot),
				.min_ns = UINT64_MAX }))
		*row_of = (uint32_t)sums->account.rows.n;
	return *row_of ? &sums->account.rows.items[*row_of - 1] : NULL;
}

/* The octave of *@id, which is 0 where there is none yet; NULL: no memory. */
static inline struct seam_octave *find_octave(struct seam_account *account,
					      uint32_t *id)
{
	while (__builtin_expect(!*id, 0)) {	/* octave 0 is in no row */
		if (!SEAM_ARRAY_ADD(&account->octaves,
				    (struct seam_octave) { 0 }))
			return NULL;
		*id = (uint32_t)account->octaves.n - 1;
	}
	return &account->octaves.items[*id];
}

bool seam_account_count(struct seam_account *account,
			struct seam_account_row *row, uint64_t ns)
{
	unsigned int bucket = seam_histogram_bucket(ns);
	struct seam_octave *octave = find_octave(account,
		&row->octave[bucket / SEAM_HISTOGRAM_STEPS]);

	if (octave)
		octave->n[bucket % SEAM_HISTOGRAM_STEPS]++;
	return octave != NULL;
}

/* Add @call to @row and to @octave of its histogram. */
static inline void count(struct seam_account_row *row,
			 struct seam_octave *octave,
			 const struct seam_ended_call *call,
			 unsigned int bucket)
{
	/* recursion is hard to predict: an index costs less than a jump */
	row->of_depth_ns[call->n_open == 0] += call->ns;
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
	struct seam_account_row *row = find_row(sums, call->slot);
	struct seam_octave *octave = !row ? NULL :
		find_octave(&sums->account,
			    &row->octave[bucket / SEAM_HISTOGRAM_STEPS]);

	if (octave)
		count(row, octave, call, bucket);
	else
		sums->calls.error = -ENOMEM;
}

static void count_ended(void *context, struct seam_calls *calls,
			const struct seam_ended_calls *ended)
{
	const struct seam_ended_call *call = ended->items;
	const struct seam_ended_call *end = call + ended->n;
	struct sums *sums = context;
	struct seam_octave *octaves = sums->account.octaves.items;
	struct seam_account_row *rows = sums->account.rows.items;
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

		octave = !row ? 0 : rows[row - 1].octave[
					bucket / SEAM_HISTOGRAM_STEPS];
		if (__builtin_expect(octave, 1)) {
			count(&rows[row - 1], &octaves[octave], call, bucket);
		} else {
			count_one(sums, call);
			octaves = sums->account.octaves.items;
			rows = sums->account.rows.items;
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

static void count_logged(void *context, struct seam_calls *calls,
			 const struct seam_xray_batch *batch,
			 const struct seam_xray_event *event)
{
	struct sums *sums = context;

	(void)calls;
	(void)batch;
	sums->account.n_logged += event->kind != SEAM_XRAY_ARGUMENT;
}

static const struct seam_calls_sink plain_sink = {
	.end = end_call, .ended = count_ended, .event = count_logged,
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
	.end = end_detailed, .event = count_logged,
};

/* Count the calls of stream @id; open ones end at its last event. */
static void count_stream(struct sums *sums, const struct seam_trace *trace,
			 uint32_t id)
{
	bool is_detailed = sums->options->edges || sums->options->n_slowest ||
			   !seam_time_range_is_all(&trace->range);
	struct seam_stream s;

	sums->stream = id;
	sums->range = trace->range;
	seam_stream_begin(&s, &sums->calls, trace, id, &sums->batch);
	/* a sink is a constant in each of the calls, so that it is inlined */
	if (is_detailed)
		while (seam_stream_step(&s, &detailed_sink, sums))
			;
	else
		while (seam_stream_step(&s, &plain_sink, sums))
			;
	seam_stream_end(&s, is_detailed ? &detailed_sink : &plain_sink, sums);
	seam_xray_problems_merge(&sums->account.problems, &s.reader.problems);
}

/* Add the row @from of other sums, whose octaves are in @octaves. */
static int add_row(struct sums *sums, const struct seam_account_row *from,
		   const struct seam_octave *octaves)
{
	uint32_t slot = seam_calls_slot(&sums->calls, from->function);
	struct seam_account_row *row = slot != SEAM_NONE && grow_slots(sums) ?
				       find_row(sums, slot) : NULL;

	if (!row)
		return -ENOMEM;
	row->of_depth_ns[0] += from->of_depth_ns[0];
	row->of_depth_ns[1] += from->of_depth_ns[1];
	row->child_ns += from->child_ns;
	row->min_ns = from->min_ns < row->min_ns ? from->min_ns : row->min_ns;
	row->max_ns = from->max_ns > row->max_ns ? from->max_ns : row->max_ns;
	for (size_t o = 0; o < SEAM_HISTOGRAM_OCTAVES; o++) {
		struct seam_octave *octave;

		if (!from->octave[o])
			continue;
		octave = find_octave(&sums->account, &row->octave[o]);
		if (!octave)
			return -ENOMEM;
		for (size_t i = 0; i < SEAM_HISTOGRAM_STEPS; i++)
			octave->n[i] += octaves[from->octave[o]].n[i];
	}
	return 0;
}

/* Add @from, whose calls have ended, to @sums.  0 or calls.error. */
static int add_sums(struct sums *sums, const struct sums *from)
{
	const struct seam_account *account = &from->account;
	int *error = &sums->calls.error;

	for (size_t i = 0; i < account->rows.n && !*error; i++)
		if (add_row(sums, &account->rows.items[i],
			    account->octaves.items) && !*error)
			*error = -ENOMEM;
	for (size_t i = 0; i < account->edges.n && !*error; i++)
		add_edge(sums, &account->edges.items[i]);
	for (size_t i = 0; i < account->slowest.n && !*error; i++)
		keep_slowest(sums, &account->slowest.items[i]);
	for (size_t i = 0; i < SEAM_N_REPAIRS; i++)
		seam_repairs_add(&sums->calls.repairs[i],
				 from->calls.repairs[i]);
	sums->account.n_in_runs += account->n_in_runs;
	sums->account.n_logged += account->n_logged;
	seam_xray_problems_merge(&sums->account.problems, &account->problems);
	return *error;
}

/* Those of another task, or new ones; NULL: no memory. */
static struct sums *take_sums(struct account_job *job)
{
	struct sums *sums;

	pthread_mutex_lock(&job->lock);
	sums = job->free;
	if (sums)
		job->free = sums->next;
	pthread_mutex_unlock(&job->lock);
	if (!sums)
		sums = calloc(1, sizeof(*sums));
	if (sums && !sums->options) {
		sums->options = job->options;
		sums->least.stream = UINT32_MAX;	/* slower than no call */
	}
	return sums;
}

static void work(void *context, size_t i)
{
	struct account_job *job = context;
	struct sums *sums = take_sums(job);

	if (sums && !sums->calls.error)
		count_stream(sums, job->trace, job->tasks.items[i].stream);
	pthread_mutex_lock(&job->lock);
	if (!sums || sums->calls.error)
		job->error = sums ? sums->calls.error : -ENOMEM;
	if (sums) {
		sums->next = job->free;
		job->free = sums;
	}
	pthread_mutex_unlock(&job->lock);
}

static void free_list(struct sums *sums)
{
	while (sums) {
		struct sums *next = sums->next;

		seam_calls_fini(&sums->calls);
		seam_index_fini(&sums->edge_index);
		free(sums->row_of.items);
		seam_account_fini(&sums->account);
		free(sums);
		sums = next;
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

/* What is known only when all streams are counted. */
static void complete_row(const struct seam_account *account,
			 struct seam_account_row *row)
{
	for (size_t o = 0; o < SEAM_HISTOGRAM_OCTAVES; o++)
		for (size_t i = 0; row->octave[o] && i < SEAM_HISTOGRAM_STEPS;
		     i++)
			row->count += account->octaves.items[row->octave[o]]
				      .n[i];
	row->total_ns = row->of_depth_ns[1];
	row->sum_ns = row->of_depth_ns[0] + row->total_ns;
	row->self_ns = row->sum_ns - row->child_ns;
}

/* The account of @sums, whose arrays it takes over. */
static void take_account(struct seam_account *account, struct sums *sums)
{
	struct seam_account *from = &sums->account;

	cut_slowest(sums);
	for (size_t i = 0; i < from->rows.n; i++) {
		complete_row(from, &from->rows.items[i]);
		from->n_calls += from->rows.items[i].count;
	}
	SEAM_ARRAY_SORT(&from->rows, row_by_sum);
	SEAM_ARRAY_SORT(&from->edges, edge_by_total);
	from->in_ticks = account->in_ticks;
	seam_xray_problems_merge(&from->problems, &account->problems);
	for (size_t i = 0; i < SEAM_N_REPAIRS; i++) {
		from->repairs[i] = account->repairs[i];
		seam_repairs_add(&from->repairs[i], sums->calls.repairs[i]);
	}
	*account = *from;
	*from = (struct seam_account) { 0 };
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
	if (!job->error && job->free)
		take_account(account, job->free);
	return job->error;
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

	*account = (struct seam_account) {
		.in_ticks = trace->in_ticks, .problems = trace->problems,
		.repairs[SEAM_REPAIR_EXTENTS] = trace->n_extents,
	};
	r = build(&job, account);
	free_list(job.free);
	free(job.tasks.items);
	if (r) {
		seam_account_fini(account);
		return seam_err_no_memory(err);
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
