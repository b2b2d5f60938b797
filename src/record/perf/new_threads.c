/* SPDX-License-Identifier: MIT */
/* new_threads.c - forks and exits of the side-band; see new_threads.h */
#include "record/perf/new_threads.h"

#include "base/clock.h"
#include "record/perf/auxtrace.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/ioctl.h>

static void count_refused(struct seam_new_threads *threads, const char *why)
{
	struct seam_counts *losses = &threads->file->losses;

	if (losses->n[SEAM_COUNT_THREADS_REFUSED]++ == 0)
		snprintf(losses->refusal, sizeof(losses->refusal), "%.*s",
			 (int)sizeof(losses->refusal) - 1, why);
}

void seam_new_threads_read(struct seam_new_threads *threads,
			   const struct seam_perf_sideband *record)
{
	bool is_exit = record->type == PERF_RECORD_EXIT;
	const struct seam_thread_change change = {
		.tid = record->task.tid, .is_exit = is_exit,
		.time_ns = record->task.time,
	};

	if ((record->type == PERF_RECORD_FORK || is_exit) &&
	    !SEAM_ARRAY_ADD(&threads->changes, change) && !is_exit)
		count_refused(threads, "out of memory");
}

/*
 * A thread was not sampled from @from_ns to @to_ns.  Not with AUX buffers: the
 * times of records are of another clock then.
 */
static void count_late(struct seam_new_threads *threads, uint64_t from_ns,
		       uint64_t to_ns)
{
	uint64_t *n = threads->file->losses.n;

	if (to_ns <= from_ns || seam_sources_has_aux(threads->sources))
		return;
	n[SEAM_COUNT_LATE_NS] += to_ns - from_ns;
	if (to_ns - from_ns > n[SEAM_COUNT_LONGEST_LATE_NS])
		n[SEAM_COUNT_LONGEST_LATE_NS] = to_ns - from_ns;
}

/*
 * The changes of each thread together, in the order of time: the records of one
 * ring are in order, those of several are not.
 */
static int by_thread_and_time(const void *a, const void *b)
{
	const struct seam_thread_change *x = a, *y = b;

	return SEAM_COMPARE(x->tid, y->tid) ?:
	       SEAM_COMPARE(x->time_ns, y->time_ns) ?: x->is_exit - y->is_exit;
}

/* @exit_ns: when the thread ended, in this round; 0: it did not. */
static int open_thread(struct seam_new_threads *threads,
		       const struct seam_thread_change *fork,
		       uint64_t exit_ns, struct seam_err *err)
{
	struct seam_counts *losses = &threads->file->losses;
	const struct seam_sources *sources = threads->sources;
	size_t first = sources->list.n;
	struct seam_err why = { 0 };
	bool has_room = true;	/* in the file, for the ids */
	int r;

	if (exit_ns) {
		losses->n[SEAM_COUNT_THREADS_UNSEEN]++;
		count_late(threads, fork->time_ns, exit_ns);
		return 0;
	}
	r = seam_sources_add_thread(threads->sources, fork->tid, &why);
	if (r == -ESRCH) {
		losses->n[SEAM_COUNT_THREADS_UNSEEN]++;
		return 0;
	}
	for (size_t i = first; r == 0 && i < sources->list.n; i++) {
		const struct seam_perf_event *event =
			&threads->file->events[sources->list.items[i].event];

		/* at most, all the new sources are of this event */
		has_room &= event->n_ids + (sources->list.n - first) <=
			    event->max_ids;
	}
	if (r == 0 && !has_room) {
		seam_sources_end_thread(threads->sources, fork->tid);
		r = seam_err_set(&why, -EMFILE, "the recording has no room "
				 "for its ids");
	}
	if (r < 0) {
		count_refused(threads, why.cause[0]);
		return 0;
	}
	losses->n[SEAM_COUNT_THREADS_LATE]++;
	count_late(threads, fork->time_ns, seam_clock_ns());
	return seam_data_file_add_ids(threads->file, threads->sources, first,
				      err);
}

/* Write what is left in the thread's AUX buffers, and close its events. */
static int close_thread(struct seam_new_threads *threads, int tid,
			struct seam_err *err)
{
	struct seam_sources *sources = threads->sources;
	const struct seam_source_thread *thread =
		seam_sources_thread(sources, tid);
	ssize_t r = 0;

	if (!thread)
		return 0;
	/* stopped: the heads of its AUX buffers are final */
	for (uint32_t k = 0; sources->aux_bytes && k < thread->n_sources; k++)
		ioctl(sources->list.items[thread->first_source + k].fd,
		      PERF_EVENT_IOC_DISABLE, 0);
	for (uint32_t k = 0; r >= 0 && k < thread->n_rings; k++) {
		uint32_t i = thread->first_ring + k;
		struct seam_source_ring *ring = &sources->rings.items[i];

		if (!ring->aux.size)
			continue;
		r = sources->aux_snapshots ?
		    seam_auxtrace_snapshot(threads->file, ring, i,
					   sources->aux_snapshot_bytes, err) :
		    seam_auxtrace_drain(threads->file, ring, i, true, err);
	}
	seam_sources_end_thread(sources, tid);
	return r < 0 ? (int)r : 0;
}

int seam_new_threads_update(struct seam_new_threads *threads,
			    struct seam_err *err)
{
	struct seam_thread_change *changes = threads->changes.items;
	size_t n = threads->changes.n;
	int r = 0;

	SEAM_ARRAY_SORT(&threads->changes, by_thread_and_time);
	for (size_t i = 0; r == 0 && i < n; i++) {
		const struct seam_thread_change *next = i + 1 < n &&
			changes[i + 1].tid == changes[i].tid ?
			&changes[i + 1] : NULL;

		r = changes[i].is_exit ?
		    close_thread(threads, changes[i].tid, err) :
		    open_thread(threads, &changes[i], next && next->is_exit ?
				next->time_ns : 0, err);
	}
	threads->changes.n = 0;
	return r;
}

void seam_new_threads_fini(struct seam_new_threads *threads)
{
	free(threads->changes.items);
	*threads = (struct seam_new_threads) { 0 };
}
