/* SPDX-License-Identifier: MIT */
/*
 * account.c - streams to workers, quantiles from histograms; see account.h
 *
 * A task is a stream.  A worker takes a ledger from the free ones, or makes
 * one, and gives it back: as many ledgers as workers, whatever the number of
 * streams.
 */
#include "model/account.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>

#include "base/workers.h"
#include "model/account_ledger.h"

struct job {
	const struct seam_trace *trace;
	const struct seam_account_options *options;
	const uint32_t *order;		/* streams, the longest first */
	pthread_mutex_t lock;		/* guards all below */
	struct seam_ledger *free;
	int error;
};

static struct seam_ledger *take_ledger(struct job *job)
{
	struct seam_ledger *l;

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

static void give_back(struct job *job, struct seam_ledger *l)
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
	struct seam_ledger *l = take_ledger(job);

	if (l && !l->calls.error)
		seam_ledger_count(l, job->trace, job->order[task]);
	give_back(job, l);
}

static void free_ledgers(struct seam_ledger *list)
{
	while (list) {
		struct seam_ledger *next = list->next;

		seam_ledger_free(list);
		list = next;
	}
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
		r = job.error ? job.error :
		    seam_account_merge(account, job.free, options->n_slowest);
	}
	free_ledgers(job.free);
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
