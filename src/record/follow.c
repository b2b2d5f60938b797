/* SPDX-License-Identifier: MIT */
/* follow.c - births and deaths out of the side-band; see follow.h */
#include "record/follow.h"

#include "base/clock.h"
#include "base/cursor.h"

#include <errno.h>
#include <stdlib.h>

void seam_follow_see(struct seam_follow *follow,
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
	slot = c.error ? NULL : SEAM_ARRAY_PUSH(&follow->news);
	if (slot)
		*slot = news;
	else
		follow->n_unseen += !news.died;
}

static void count_late(struct seam_follow *follow, uint64_t from_ns,
		       uint64_t to_ns)
{
	uint64_t ns = to_ns > from_ns && !follow->other_clock ?
		      to_ns - from_ns : 0;

	follow->late_ns += ns;
	if (ns > follow->longest_ns)
		follow->longest_ns = ns;
}

/* The samples of the new sources carry ids that the file must know. */
static int tell_of(struct seam_follow *follow, size_t first,
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

/* Each ring's news are in order, those of several are not. */
static int by_time(const void *a, const void *b)
{
	const struct seam_thread_news *x = a, *y = b;

	if (x->time_ns != y->time_ns)
		return x->time_ns < y->time_ns ? -1 : 1;
	return x->died - y->died;	/* born, and dead at once */
}

/* When thread @tid ended, by the news behind @i; 0: not yet. */
static uint64_t end_of(const struct seam_follow *follow, size_t i, int tid)
{
	while (++i < follow->news.n)
		if (follow->news.items[i].tid == tid &&
		    follow->news.items[i].died)
			return follow->news.items[i].time_ns;
	return 0;
}

static int open_born(struct seam_follow *follow, size_t i,
		     struct seam_err *err)
{
	struct seam_thread_news born = follow->news.items[i];
	uint64_t ended_ns = end_of(follow, i, born.tid);
	size_t first = follow->sources->list.n;

	if (ended_ns || seam_sources_add_thread(follow->sources, born.tid,
						NULL) < 0) {
		follow->n_unseen++;
		if (ended_ns)
			count_late(follow, born.time_ns, ended_ns);
		return 0;
	}
	follow->n_late++;
	count_late(follow, born.time_ns, seam_clock_ns());
	return tell_of(follow, first, err);
}

/* The last bytes of the thread's areas, and its end. */
static int close_dead(struct seam_follow *follow, int tid,
		      struct seam_err *err)
{
	struct seam_sources *sources = follow->sources;
	ssize_t r = 0;

	if (sources->area_bytes)
		seam_sources_stop_thread(sources, tid);
	for (size_t i = 0; r >= 0 && i < sources->rings.n; i++) {
		struct seam_source_ring *ring = &sources->rings.items[i];

		if (ring->tid != tid || !ring->aux.size)
			continue;
		r = sources->free_running ?
		    seam_auxtrace_snapshot(follow->aux, ring, (uint32_t)i,
					   false, err) :
		    seam_auxtrace_drain(follow->aux, ring, (uint32_t)i, true,
					err);
	}
	seam_sources_end_thread(sources, tid);
	return r < 0 ? (int)r : 0;
}

int seam_follow_act(struct seam_follow *follow, struct seam_err *err)
{
	int r = 0;

	if (follow->news.n)
		qsort(follow->news.items, follow->news.n,
		      sizeof(*follow->news.items), by_time);
	for (size_t i = 0; r == 0 && i < follow->news.n; i++) {
		if (follow->news.items[i].died)
			r = close_dead(follow, follow->news.items[i].tid, err);
		else
			r = open_born(follow, i, err);
	}
	follow->news.n = 0;
	return r;
}

void seam_follow_fini(struct seam_follow *follow)
{
	free(follow->news.items);
	*follow = (struct seam_follow) { 0 };
}
