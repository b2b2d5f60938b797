/* SPDX-License-Identifier: MIT */
/*
 * account.c - threads to workers, quantiles from histograms; see account.h
 *
 * A task is a stream, or a part of a stream so long that one worker would
 * still count it after all others have finished.  A worker takes sums from a
 * free list, or allocates them, and returns them: there are as many as
 * workers, whatever the number of streams.  A part has sums of its own,
 * because its assumptions are checked after all parts before it.
 */
#include "model/xray/account.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>

#include "base/workers.h"
#include "model/xray/account_sums.h"

enum {
	PARTS_OF_WORKER = 4,		/* so that all end at about one time */
	MIN_PART_BYTES = 4 << 20,
};

struct task {
	struct seam_part part;
	uint64_t n_bytes;
	bool is_divided;		/* part is not the whole stream */
	struct seam_sums *sums;		/* of a divided one: its own */
};

struct account_job {
	const struct seam_trace *trace;
	const struct seam_account_options *options;
	uint64_t part_bytes;		/* of a stream that is divided */
	SEAM_ARRAY(struct task) tasks;
	pthread_mutex_t lock;		/* guards all below */
	struct seam_sums *free;
	int error;
};

static struct seam_sums *take_sums(struct account_job *job)
{
	struct seam_sums *sums;

	pthread_mutex_lock(&job->lock);
	sums = job->free;
	if (sums)
		job->free = sums->next;
	pthread_mutex_unlock(&job->lock);
	return sums ? sums : seam_sums_new(job->options);
}

static void give_back(struct account_job *job, struct seam_sums *sums)
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

static void count_whole(struct account_job *job, const struct task *task)
{
	struct seam_sums *sums = take_sums(job);

	if (sums && !sums->calls.error) {
		seam_sums_count(sums, job->trace, &task->part,
				SEAM_PART_FIRST);
		seam_sums_end(sums);
	}
	give_back(job, sums);
}

static void work(void *context, size_t i)
{
	struct account_job *job = context;
	struct task *task = &job->tasks.items[i];

	if (!task->is_divided) {
		count_whole(job, task);
		return;
	}
	task->sums = seam_sums_new(job->options);
	if (task->sums)
		seam_sums_count(task->sums, job->trace, &task->part,
				task->part.first ? SEAM_PART_INNER :
				SEAM_PART_FIRST);
}

static void free_sums(struct seam_sums *list)
{
	while (list) {
		struct seam_sums *next = list->next;

		seam_sums_free(list);
		list = next;
	}
}

/* So that no worker ends long after the others. */
static int longest_first(const void *a, const void *b)
{
	const struct task *x = a, *y = b;

	return SEAM_COMPARE(y->n_bytes, x->n_bytes);
}

static int in_streams(const void *a, const void *b)
{
	const struct task *x = a, *y = b;

	return SEAM_COMPARE(x->part.stream, y->part.stream) ?:
	       SEAM_COMPARE(x->part.first, y->part.first);
}

/* The least bytes of a part; with one worker nothing is divided. */
static uint64_t find_part_bytes(const struct seam_trace *trace)
{
	uint64_t workers = seam_workers_count(), total = 0, part;

	for (size_t i = 0; i < trace->streams.n; i++)
		total += trace->streams.items[i].n_bytes;
	part = total / (PARTS_OF_WORKER * workers) + 1;
	if (part < MIN_PART_BYTES)
		part = MIN_PART_BYTES;
	return workers > 1 ? part : UINT64_MAX;
}

/*
 * Bytes after which a part of a stream ends.  Edges need whole streams: the
 * caller of the first call in a part is not known there.
 */
static uint64_t part_bytes(const struct account_job *job,
			   const struct seam_trace_stream *stream)
{
	uint64_t part = job->part_bytes;

	if (stream->is_fork || job->options->edges)
		return UINT64_MAX;
	if (job->options->part_blocks)
		return 0;
	/* a stream of two parts or less does not delay the others */
	return stream->n_bytes / 2 > part ? part : UINT64_MAX;
}

static int divide(struct account_job *job, uint32_t id)
{
	const struct seam_trace_stream *stream = &job->trace->streams.items[id];
	uint64_t limit = part_bytes(job, stream);
	size_t least = job->options->part_blocks;
	struct task *task = NULL;

	for (size_t i = 0; i < stream->n_blocks; i++) {
		const struct seam_xray_block *block =
			job->trace->blocks.items[stream->first_block + i].block;

		if (!task || (task->n_bytes >= limit &&
			      task->part.n >= least)) {
			if (!SEAM_ARRAY_ADD(&job->tasks, (struct task) {
				.part = { .stream = id, .first = i },
				.is_divided = limit != UINT64_MAX }))
				return -ENOMEM;
			task = &job->tasks.items[job->tasks.n - 1];
		}
		task->part.n++;
		task->n_bytes += block->end - block->begin;
	}
	return 0;
}

/* Join the parts of one stream, in order, from task @first on. */
static size_t join_stream(struct account_job *job, struct seam_account *account,
			  size_t first)
{
	struct task *tasks = job->tasks.items;
	struct seam_sums *whole = tasks[first].sums;
	size_t i = first;

	for (; i < job->tasks.n &&
	     tasks[i].part.stream == tasks[first].part.stream; i++) {
		struct seam_sums *sums = tasks[i].sums;

		account->n_parts++;
		tasks[i].sums = NULL;
		if (i == first)
			continue;
		if (whole && sums && seam_sums_join(whole, sums)) {
			give_back(job, sums);
			continue;
		}
		seam_sums_free(sums);
		account->n_again++;
		if (whole && !whole->calls.error)
			seam_sums_count(whole, job->trace, &tasks[i].part,
					SEAM_PART_NEXT);
	}
	if (whole)
		seam_sums_end(whole);
	give_back(job, whole);
	return i;
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
			 const struct seam_sums_row *row)
{
	uint64_t n = 0;

	for (size_t o = 0; o < SEAM_HISTOGRAM_OCTAVES; o++)
		for (size_t i = 0; row->octave[o] && i < SEAM_HISTOGRAM_STEPS;
		     i++)
			n += account->octaves.items[row->octave[o]].n[i];
	return n;
}

/* The account of @sums, whose arrays it takes over. */
static int take_account(struct seam_account *account, struct seam_sums *sums)
{
	struct seam_account *from = &sums->account;

	for (size_t i = 1; i < sums->rows.n; i++) {
		const struct seam_sums_row *r = &sums->rows.items[i];
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
	seam_sums_cut_slowest(sums);
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
	size_t i = 0;
	int r = 0;

	job->part_bytes = find_part_bytes(job->trace);
	for (uint32_t s = 0; !r && s < job->trace->streams.n; s++)
		r = divide(job, s);
	if (r)
		return r;
	SEAM_ARRAY_SORT(&job->tasks, longest_first);
	seam_workers_run(job->tasks.n, work, job);
	SEAM_ARRAY_SORT(&job->tasks, in_streams);
	while (i < job->tasks.n)
		i = job->tasks.items[i].is_divided ?
		    join_stream(job, account, i) : i + 1;
	for (struct seam_sums *next = job->free ? job->free->next : NULL;
	     next && !job->error; next = next->next)
		job->error = seam_sums_add(job->free, next);
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
	free_sums(job.free);
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
