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

/* A table of the profile that has a thread and a time in each row. */
struct thread_column {
	const struct seam_profile *profile;
	size_t n;
	/* SEAM_NONE: the row is in no timeline */
	uint32_t (*thread)(const struct seam_profile *profile, size_t i);
	uint64_t (*time_ns)(const struct seam_profile *profile, size_t i);
};

static uint32_t sample_thread(const struct seam_profile *p, size_t i)
{
	return p->events.items[p->samples.event[i]].is_measured ? SEAM_NONE :
	       p->samples.thread[i];
}

static uint64_t sample_time(const struct seam_profile *p, size_t i)
{
	return p->samples.time_ns[i];
}

static uint32_t track_thread(const struct seam_profile *p, size_t i)
{
	return p->tracks.items[i].thread;
}

static uint64_t track_start(const struct seam_profile *p, size_t i)
{
	return p->tracks.items[i].start_ns;
}

static uint32_t mark_thread(const struct seam_profile *p, size_t i)
{
	return p->marks.items[i].thread;
}

static uint64_t mark_time(const struct seam_profile *p, size_t i)
{
	return p->marks.items[i].time_ns;
}

static int by_time(const void *a, const void *b, void *context)
{
	uint32_t i = *(const uint32_t *)a, k = *(const uint32_t *)b;
	const struct thread_column *column = context;
	uint64_t x = column->time_ns(column->profile, i);
	uint64_t y = column->time_ns(column->profile, k);

	if (x != y)
		return x < y ? -1 : 1;
	return i < k ? -1 : i > k;
}

/* Most threads' rows are in order already: a thread is on one CPU at a time. */
static void sort_thread(struct thread_column *column, uint32_t *items,
			size_t n)
{
	for (size_t i = 1; i < n; i++) {
		if (by_time(&items[i - 1], &items[i], column) > 0) {
			qsort_r(items, n, sizeof(*items), by_time, column);
			return;
		}
	}
}

/* A counting sort by thread, then each thread by time. */
static int make_order(struct seam_thread_items *order,
		      struct thread_column *column)
{
	const struct seam_profile *profile = column->profile;
	size_t n_threads = profile->threads.n;
	size_t *first = calloc(n_threads + 2, sizeof(*first));
	uint32_t *items = malloc((column->n + 1) * sizeof(*items));

	order->first = first;
	order->items = items;
	if (!first || !items)
		return -ENOMEM;
	for (size_t i = 0; i < column->n; i++) {
		uint32_t thread = column->thread(profile, i);

		if (thread < n_threads)
			first[thread + 2]++;
	}
	for (size_t i = 2; i < n_threads + 2; i++)
		first[i] += first[i - 1];
	/* first[thread + 1] is where the next row of thread goes */
	for (size_t i = 0; i < column->n; i++) {
		uint32_t thread = column->thread(profile, i);

		if (thread < n_threads)
			items[first[thread + 1]++] = (uint32_t)i;
	}
	for (size_t i = 0; i < n_threads; i++)
		sort_thread(column, items + first[i], first[i + 1] - first[i]);
	return 0;
}

int seam_timelines_init(struct seam_timelines *timelines,
			const struct seam_profile *profile)
{
	int r;

	*timelines = (struct seam_timelines) { .profile = profile };
	if (profile->samples.n >= SEAM_NONE || profile->tracks.n >= SEAM_NONE ||
	    profile->marks.n >= SEAM_NONE)
		return -EOVERFLOW;
	r = make_order(&timelines->samples, &(struct thread_column) {
		profile, profile->samples.n, sample_thread, sample_time });
	if (!r)
		r = make_order(&timelines->tracks, &(struct thread_column) {
			profile, profile->tracks.n, track_thread,
			track_start });
	if (!r)
		r = make_order(&timelines->marks, &(struct thread_column) {
			profile, profile->marks.n, mark_thread, mark_time });
	if (r)
		seam_timelines_fini(timelines);
	return r;
}

static void free_order(struct seam_thread_items *order)
{
	free(order->items);
	free(order->first);
}

void seam_timelines_fini(struct seam_timelines *timelines)
{
	free_order(&timelines->samples);
	free_order(&timelines->tracks);
	free_order(&timelines->marks);
	*timelines = (struct seam_timelines) { 0 };
}

/* -- the merge ---------------------------------------------------------- */

void seam_timeline_open(struct seam_timeline *timeline,
			const struct seam_timelines *timelines,
			const struct seam_selected *selected, uint32_t thread)
{
	*timeline = (struct seam_timeline) {
		.all = timelines, .selected = selected, .thread = thread,
		.sample = timelines->samples.first[thread],
		.track = timelines->tracks.first[thread],
		.mark = timelines->marks.first[thread],
	};
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

/* Open the thread's next track, which may turn out to be empty. */
static int open_track(struct seam_timeline *t)
{
	size_t order = t->track++;
	const struct seam_track *track = &t->all->profile->tracks.items[
		t->all->tracks.items[order]];
	struct seam_open_track **slot = SEAM_ARRAY_PUSH(&t->open), *open;
	int r;

	open = slot ? calloc(1, sizeof(*open)) : NULL;
	if (!open) {
		t->open.n -= slot != NULL;
		return -ENOMEM;
	}
	*slot = open;
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
		     const struct seam_thread_items *order, size_t at)
{
	return at < order->first[t->thread + 1];
}

/* The time of the next sample, mark, or item of a track; UINT64_MAX: none. */
static uint64_t next_sample_ns(const struct seam_timeline *t)
{
	return has_more(t, &t->all->samples, t->sample) ?
	       sample_time(t->all->profile,
			   t->all->samples.items[t->sample]) : UINT64_MAX;
}

static uint64_t next_mark_ns(const struct seam_timeline *t)
{
	return has_more(t, &t->all->marks, t->mark) ?
	       mark_time(t->all->profile, t->all->marks.items[t->mark]) :
	       UINT64_MAX;
}

static uint64_t next_track_ns(const struct seam_timeline *t)
{
	return t->open.n ? t->open.items[0]->item.time_ns : UINT64_MAX;
}

/* Open the tracks that may have the next item. */
static int open_due(struct seam_timeline *t)
{
	while (has_more(t, &t->all->tracks, t->track)) {
		uint64_t start = track_start(t->all->profile,
				t->all->tracks.items[t->track]);
		int r;

		if (start > next_track_ns(t) || start > next_sample_ns(t) ||
		    start > next_mark_ns(t))
			break;
		r = open_track(t);
		if (r)
			return r;
	}
	return 0;
}

/* The track stays on top until the next take(): counts() needs it there. */
static void take_from_track(struct seam_timeline *t, struct seam_item *item)
{
	*item = t->open.items[0]->item;
	t->depth -= item->kind == SEAM_ITEM_END;
	item->depth = t->depth;
	t->depth += item->kind == SEAM_ITEM_BEGIN;
	t->is_taken = true;
}

static void take_mark(struct seam_timeline *t, struct seam_item *item,
		      uint32_t *event)
{
	const struct seam_profile_mark *mark = &t->all->profile->marks.items[
		t->all->marks.items[t->mark++]];

	*item = (struct seam_item) {
		.time_ns = mark->time_ns, .kind = mark->kind,
		.function = SEAM_NONE, .value = mark->value,
		.depth = t->depth,
	};
	*event = mark->event;
}

static void take_sample(struct seam_timeline *t, struct seam_item *item)
{
	*item = (struct seam_item) {
		.kind = SEAM_ITEM_SAMPLE, .function = SEAM_NONE,
		.sample = t->all->samples.items[t->sample++],
		.depth = t->depth,
	};
	item->time_ns = sample_time(t->all->profile, item->sample);
}

/* The next item, whether it is selected or not: 1, 0 at the end, or -errno. */
static int take(struct seam_timeline *t, struct seam_item *item,
		uint32_t *event)
{
	int r = t->is_taken ? advance_track(t) : 0;

	t->is_taken = false;
	*event = SEAM_NONE;
	if (r >= 0)
		r = open_due(t);
	if (r < 0)
		return r;
	if (t->open.n && next_track_ns(t) <= next_sample_ns(t) &&
	    next_track_ns(t) <= next_mark_ns(t))
		take_from_track(t, item);
	else if (has_more(t, &t->all->marks, t->mark) &&
		 next_mark_ns(t) <= next_sample_ns(t))
		take_mark(t, item, event);
	else if (has_more(t, &t->all->samples, t->sample))
		take_sample(t, item);
	else
		return 0;
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
	if (t->is_taken)
		return track_item_counts(t->selected, t->thread,
					 t->open.items[0]);
	return item->kind == SEAM_ITEM_SAMPLE ?
	       seam_selected_has(t->selected, item->sample) :
	       seam_selected_has_loss(t->selected, &(struct seam_instant) {
			.time_ns = item->time_ns, .thread = t->thread,
			.event = event });
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
