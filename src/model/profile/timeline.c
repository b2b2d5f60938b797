/* SPDX-License-Identifier: MIT */
/* timeline.c - columns sorted by thread, logs merged by time; see timeline.h */
#include "model/profile/timeline.h"

#include <errno.h>
#include <stdlib.h>

#include "base/heap.h"

struct seam_open_track {
	const struct seam_track *track;
	void *cursor;
	struct seam_item item;		/* the next one */
	size_t order;			/* decides equal times */
	uint32_t n_inside;		/* open callers_of or callees_of */
	bool last_call_counts;		/* the one that began last */
};

/* -- the order ---------------------------------------------------------- */

/* A table of a profile, as the context of qsort_r(). */
struct timeline_column {
	const struct seam_profile *profile;
	enum seam_timeline_table table;
	size_t n;
};

/* SEAM_NONE: the row is in no timeline. */
static uint32_t thread_of(const struct timeline_column *c, size_t i)
{
	const struct seam_profile *p = c->profile;

	if (c->table == SEAM_TIMELINE_TRACKS)
		return p->tracks.items[i].thread;
	if (c->table == SEAM_TIMELINE_MARKS)
		return p->marks.items[i].thread;
	return p->events.items[p->samples.event[i]].is_measured ? SEAM_NONE :
	       p->samples.thread[i];
}

static uint64_t time_of(const struct seam_profile *profile,
			enum seam_timeline_table table, size_t i)
{
	return table == SEAM_TIMELINE_TRACKS ?
	       profile->tracks.items[i].start_ns :
	       table == SEAM_TIMELINE_MARKS ? profile->marks.items[i].time_ns :
	       profile->samples.time_ns[i];
}

static int by_time(const void *a, const void *b, void *context)
{
	uint32_t i = *(const uint32_t *)a, k = *(const uint32_t *)b;
	const struct timeline_column *c = context;

	return SEAM_COMPARE(time_of(c->profile, c->table, i),
			    time_of(c->profile, c->table, k)) ?:
	       SEAM_COMPARE(i, k);
}

/* A counting sort by thread, then each thread by time. */
static int make_order(struct seam_thread_rows *order,
		      struct timeline_column *column)
{
	size_t n_threads = column->profile->threads.n;
	size_t *first = calloc(n_threads + 2, sizeof(*first));
	uint32_t *items = malloc((column->n + 1) * sizeof(*items));

	order->first = first;
	order->items = items;
	if (!first || !items)
		return -ENOMEM;
	for (size_t i = 0; i < column->n; i++) {
		uint32_t thread = thread_of(column, i);

		if (thread < n_threads)
			first[thread + 2]++;
	}
	for (size_t i = 2; i < n_threads + 2; i++)
		first[i] += first[i - 1];
	/* first[thread + 1] is where the next row of thread goes */
	for (size_t i = 0; i < column->n; i++) {
		uint32_t thread = thread_of(column, i);

		if (thread < n_threads)
			items[first[thread + 1]++] = (uint32_t)i;
	}
	/* most are in order already: a thread is on one CPU at a time */
	for (size_t i = 0; i < n_threads; i++)
		for (size_t k = first[i] + 1; k < first[i + 1]; k++)
			if (by_time(&items[k - 1], &items[k], column) > 0) {
				qsort_r(items + first[i],
					first[i + 1] - first[i],
					sizeof(*items), by_time, column);
				break;
			}
	return 0;
}

int seam_timelines_init(struct seam_timelines *timelines,
			const struct seam_profile *profile)
{
	const size_t n[SEAM_N_TIMELINE_TABLES] = {
		profile->samples.n, profile->tracks.n, profile->marks.n,
	};
	int r = 0;

	*timelines = (struct seam_timelines) { .profile = profile };
	for (int i = 0; i < SEAM_N_TIMELINE_TABLES && !r; i++)
		r = n[i] >= SEAM_NONE ? -EOVERFLOW :
		    make_order(&timelines->tables[i],
			       &(struct timeline_column) {
				profile, (enum seam_timeline_table)i, n[i] });
	if (r)
		seam_timelines_fini(timelines);
	return r;
}

void seam_timelines_fini(struct seam_timelines *timelines)
{
	for (int i = 0; i < SEAM_N_TIMELINE_TABLES; i++) {
		free(timelines->tables[i].items);
		free(timelines->tables[i].first);
	}
	*timelines = (struct seam_timelines) { 0 };
}

/* -- the merge ---------------------------------------------------------- */

void seam_timeline_open(struct seam_timeline *timeline,
			const struct seam_timelines *timelines,
			const struct seam_selected *selected, uint32_t thread)
{
	*timeline = (struct seam_timeline) {
		.all = timelines, .selected = selected, .thread = thread,
	};
	for (int i = 0; i < SEAM_N_TIMELINE_TABLES; i++)
		timeline->next[i] = timelines->tables[i].first[thread];
}

static bool is_before(const void *a, const void *b)
{
	const struct seam_open_track *x = a, *y = b;

	return x->item.time_ns != y->item.time_ns ?
	       x->item.time_ns < y->item.time_ns : x->order < y->order;
}

static void close_track(struct seam_open_track *open)
{
	if (open->cursor)
		open->track->reader->close(open->cursor);
	free(open);
}

/* Read the next item of the track on top; at its end the track is closed. */
static int advance_track(struct seam_timeline *t)
{
	struct seam_open_track **heap = t->open.items;
	int r = heap[0]->track->reader->next(heap[0]->cursor, &heap[0]->item);

	if (r == 0) {
		close_track(heap[0]);
		heap[0] = heap[--t->open.n];
	}
	if (r >= 0 && t->open.n > 1)
		seam_heap_sink((void **)heap, t->open.n, 0, is_before);
	return r;
}

/* Open the track @order, which may turn out to be empty. */
static int open_track(struct seam_timeline *t, size_t order)
{
	const struct seam_track *track = &t->all->profile->tracks.items[
		t->all->tables[SEAM_TIMELINE_TRACKS].items[order]];
	struct seam_open_track *open = calloc(1, sizeof(*open));
	int r;

	if (!open || !SEAM_ARRAY_ADD(&t->open, open)) {
		free(open);
		return -ENOMEM;
	}
	open->track = track;
	open->order = order;
	r = track->reader->open(track, &open->cursor);
	if (!r)
		r = track->reader->next(open->cursor, &open->item);
	if (r <= 0) {
		close_track(open);
		t->open.n--;
		return r;
	}
	seam_heap_rise((void **)t->open.items, t->open.n - 1, is_before);
	return 0;
}

static bool has_more(const struct seam_timeline *t,
		     enum seam_timeline_table table)
{
	return t->next[table] < t->all->tables[table].first[t->thread + 1];
}

/* The time of the next row; UINT64_MAX: none. */
static uint64_t next_ns(const struct seam_timeline *t,
			enum seam_timeline_table table)
{
	return has_more(t, table) ? time_of(t->all->profile, table,
			t->all->tables[table].items[t->next[table]]) :
	       UINT64_MAX;
}

/* The same for items of the open tracks. */
static uint64_t next_track_ns(const struct seam_timeline *t)
{
	return t->open.n ? t->open.items[0]->item.time_ns : UINT64_MAX;
}

/* Open the tracks that may have the next item. */
static int open_due(struct seam_timeline *t)
{
	while (has_more(t, SEAM_TIMELINE_TRACKS)) {
		uint64_t start = next_ns(t, SEAM_TIMELINE_TRACKS);
		int r;

		if (start > next_track_ns(t) ||
		    start > next_ns(t, SEAM_TIMELINE_SAMPLES) ||
		    start > next_ns(t, SEAM_TIMELINE_MARKS))
			break;
		r = open_track(t, t->next[SEAM_TIMELINE_TRACKS]++);
		if (r)
			return r;
	}
	return 0;
}

static uint32_t next_row(struct seam_timeline *t,
			 enum seam_timeline_table table)
{
	return t->all->tables[table].items[t->next[table]++];
}

/* The next item, whether it is selected or not: 1, 0 at the end, or -errno. */
static int take(struct seam_timeline *t, struct seam_item *item,
		uint32_t *event)
{
	const struct seam_profile *p = t->all->profile;
	const struct seam_profile_mark *mark;
	int r = t->is_taken ? advance_track(t) : 0;

	t->is_taken = false;
	*event = SEAM_NONE;
	if (r >= 0)
		r = open_due(t);
	if (r < 0)
		return r;
	*item = (struct seam_item) {
		.function = SEAM_NONE, .depth = t->depth,
	};
	if (t->open.n &&
	    next_track_ns(t) <= next_ns(t, SEAM_TIMELINE_SAMPLES) &&
	    next_track_ns(t) <= next_ns(t, SEAM_TIMELINE_MARKS)) {
		/* it stays on top until the next take(), for counts() */
		*item = t->open.items[0]->item;
		t->depth -= item->kind == SEAM_ITEM_END;
		item->depth = t->depth;
		t->depth += item->kind == SEAM_ITEM_BEGIN;
		t->is_taken = true;
	} else if (has_more(t, SEAM_TIMELINE_MARKS) &&
		   next_ns(t, SEAM_TIMELINE_MARKS) <=
		   next_ns(t, SEAM_TIMELINE_SAMPLES)) {
		mark = &p->marks.items[next_row(t, SEAM_TIMELINE_MARKS)];
		item->time_ns = mark->time_ns;
		item->kind = mark->kind;
		item->value = mark->value;
		*event = mark->event;
	} else if (has_more(t, SEAM_TIMELINE_SAMPLES)) {
		item->kind = SEAM_ITEM_SAMPLE;
		item->sample = next_row(t, SEAM_TIMELINE_SAMPLES);
		item->time_ns = p->samples.time_ns[item->sample];
	} else {
		return 0;
	}
	return 1;
}

/* -- the selection ------------------------------------------------------ */

static bool track_item_counts(const struct seam_selected *s, uint32_t thread,
			      struct seam_open_track *track)
{
	const struct seam_item *item = &track->item;
	bool is_end = item->kind == SEAM_ITEM_END, is_counted;
	struct seam_instant at = {
		.time_ns = is_end ? item->begin_ns : item->time_ns,
		.thread = thread, .event = track->track->event,
	};
	bool is_call = is_end || item->kind == SEAM_ITEM_BEGIN;
	bool is_entry = is_call && seam_selected_is_entry(s, item->function);

	if (item->kind == SEAM_ITEM_ARGUMENT)
		return track->last_call_counts;
	track->n_inside += is_entry && !is_end;
	at.is_inside = track->n_inside > 0;
	track->n_inside -= is_entry && is_end;
	is_counted = is_call ?
		     seam_selected_has_call(s, &at, item->function) :
		     item->kind == SEAM_ITEM_LOSS ?
		     seam_selected_has_loss(s, &at) :
		     seam_selected_has_mark(s, &at, item->data);
	if (item->kind == SEAM_ITEM_BEGIN)
		track->last_call_counts = is_counted;
	return is_counted;
}

static bool counts(struct seam_timeline *t, const struct seam_item *item,
		   uint32_t event)
{
	struct seam_instant at = {
		.time_ns = item->time_ns, .thread = t->thread, .event = event,
	};

	if (t->is_taken)
		return track_item_counts(t->selected, t->thread,
					 t->open.items[0]);
	return item->kind == SEAM_ITEM_SAMPLE ?
	       seam_selected_has(t->selected, item->sample) :
	       seam_selected_has_loss(t->selected, &at);
}

int seam_timeline_next(struct seam_timeline *timeline, struct seam_item *item)
{
	uint32_t event;
	int r;

	do {
		r = take(timeline, item, &event);
	} while (r > 0 && timeline->selected &&
		 !counts(timeline, item, event));
	return r;
}

void seam_timeline_close(struct seam_timeline *timeline)
{
	for (size_t i = 0; i < timeline->open.n; i++)
		close_track(timeline->open.items[i]);
	free(timeline->open.items);
	*timeline = (struct seam_timeline) { 0 };
}
