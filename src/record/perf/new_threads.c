/* SPDX-License-Identifier: MIT */
/* new_threads.c - births and deaths out of the side-band; see new_threads.h */
#include "record/perf/new_threads.h"

#include "base/clock.h"
#include "base/cursor.h"
#include "base/hash.h"
#include "base/index.h"

#include <errno.h>
#include <stdlib.h>

static void refuse(struct seam_new_threads *follow, int code, const char *why)
{
	if (follow->n_refused++ == 0)
		seam_err_set(&follow->refusal, code, "%s", why);
}

void seam_new_threads_see(struct seam_new_threads *follow,
		     const struct seam_ring_header *record)
{
	struct seam_cursor c = seam_cursor_make(record, record->size,
						SEAM_LITTLE);
	struct seam_thread_news *slot, news;

	if (record->type != PERF_RECORD_FORK &&
	    record->type != PERF_RECORD_EXIT)
		return;
	seam_cursor_skip(&c, sizeof(*record) + 8);	/* pid, ppid */
	news = (struct seam_thread_news) {
		.tid = (int32_t)seam_cursor_u32(&c),
		.died = record->type == PERF_RECORD_EXIT,
	};
	seam_cursor_skip(&c, 4);			/* ptid */
	news.time_ns = seam_cursor_u64(&c);
	if (c.error)
		return;
	slot = SEAM_ARRAY_PUSH(&follow->news);
	if (slot)
		*slot = news;
	else if (!news.died)
		refuse(follow, -ENOMEM, "out of memory");
}

static void count_late(struct seam_new_threads *follow, uint64_t from_ns,
		       uint64_t to_ns)
{
	uint64_t ns = to_ns > from_ns && !follow->other_clock ?
		      to_ns - from_ns : 0;

	follow->late_ns += ns;
	if (ns > follow->longest_ns)
		follow->longest_ns = ns;
}

/* The samples of the new sources carry ids that the file must know. */
static int tell_of(struct seam_new_threads *follow, size_t first,
		   struct seam_err *err)
{
	int r = 0;

	for (size_t i = first; r == 0 && i < follow->sources->list.n; i++) {
		const struct seam_source *source =
			&follow->sources->list.items[i];

		r = seam_perf_writer_add_id(follow->writer, source->event,
					    source->id, err);
		if (r == 0)
			r = seam_loop_add_ring(follow->loop, source->fd, err);
	}
	return r;
}

/* Whether the file has room for the ids of the sources from @first on. */
static bool has_room(const struct seam_new_threads *follow, size_t first)
{
	for (size_t i = first; i < follow->sources->list.n; i++) {
		const struct seam_perf_event *event = &follow->writer->events[
			follow->sources->list.items[i].event];

		/* of each event there are no more than all of these */
		if (event->n_ids + (follow->sources->list.n - first) >
		    event->max_ids)
			return false;
	}
	return true;
}

/* Each ring's news are in order, those of several are not. */
static int by_time(const void *a, const void *b)
{
	const struct seam_thread_news *x = a, *y = b;

	if (x->time_ns != y->time_ns)
		return x->time_ns < y->time_ns ? -1 : 1;
	return x->died - y->died;	/* born, and dead at once */
}

/*
 * Say of each thread that was born in this round when it ended, if it did:
 * from the last of the news to the first, with the end of each id at hand.
 */
static void match_ends(struct seam_new_threads *follow)
{
	struct seam_index ends = { 0 };

	for (size_t i = follow->news.n; i-- > 0; ) {
		struct seam_thread_news *news = &follow->news.items[i];
		uint64_t hash = seam_hash_u64((uint32_t)news->tid);
		struct seam_index_probe probe = seam_index_probe(&ends, hash);
		uint32_t id, first = SEAM_NONE;

		while ((id = seam_index_next(&ends, &probe)) != SEAM_NONE)
			if (follow->news.items[id].tid == news->tid &&
			    id < first)
				first = id;
		if (news->died)
			seam_index_add(&ends, hash, (uint32_t)i);
		else if (first != SEAM_NONE)
			news->ended_ns = follow->news.items[first].time_ns;
	}
	seam_index_fini(&ends);
}

static int open_born(struct seam_new_threads *follow, size_t i,
		     struct seam_err *err)
{
	struct seam_thread_news born = follow->news.items[i];
	size_t first = follow->sources->list.n;
	struct seam_err why = { 0 };
	int r;

	if (born.ended_ns) {
		follow->n_unseen++;
		count_late(follow, born.time_ns, born.ended_ns);
		return 0;
	}
	r = seam_sources_add_thread(follow->sources, born.tid, &why);
	if (r == -ESRCH) {
		follow->n_unseen++;
		return 0;
	}
	if (r == 0 && !has_room(follow, first)) {
		seam_sources_end_thread(follow->sources, born.tid);
		r = seam_err_set(&why, -EMFILE, "the recording has no room "
				 "for its ids");
	}
	if (r < 0) {
		refuse(follow, r, why.cause[0]);
		return 0;
	}
	follow->n_late++;
	count_late(follow, born.time_ns, seam_clock_ns());
	return tell_of(follow, first, err);
}

/* The last bytes of the thread's areas, and its end. */
static int close_dead(struct seam_new_threads *follow, int tid,
		      struct seam_err *err)
{
	struct seam_sources *sources = follow->sources;
	const struct seam_source_thread *thread =
		seam_sources_thread(sources, tid);
	ssize_t r = 0;

	if (!thread)
		return 0;
	if (sources->area_bytes)
		seam_sources_stop_thread(sources, tid);
	for (uint32_t k = 0; r >= 0 && k < thread->n_rings; k++) {
		uint32_t i = thread->first_ring + k;
		struct seam_source_ring *ring = &sources->rings.items[i];

		if (!ring->aux.size)
			continue;
		r = sources->free_running ?
		    seam_auxtrace_snapshot(follow->aux, ring, i, false, err) :
		    seam_auxtrace_drain(follow->aux, ring, i, true, err);
	}
	seam_sources_end_thread(sources, tid);
	return r < 0 ? (int)r : 0;
}

int seam_new_threads_act(struct seam_new_threads *follow, struct seam_err *err)
{
	int r = 0;

	if (follow->news.n)
		qsort(follow->news.items, follow->news.n,
		      sizeof(*follow->news.items), by_time);
	match_ends(follow);
	for (size_t i = 0; r == 0 && i < follow->news.n; i++) {
		if (follow->news.items[i].died)
			r = close_dead(follow, follow->news.items[i].tid, err);
		else
			r = open_born(follow, i, err);
	}
	follow->news.n = 0;
	return r;
}

void seam_new_threads_fini(struct seam_new_threads *follow)
{
	free(follow->news.items);
	*follow = (struct seam_new_threads) { 0 };
}
