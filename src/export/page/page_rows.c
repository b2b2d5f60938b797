/* SPDX-License-Identifier: MIT */
/* page_rows.c - rows in bounded memory; see page_rows.h */
#include "export/page/page_rows.h"

#include <errno.h>
#include <inttypes.h>

#include "base/hash.h"
#include "base/radix_sort.h"

enum {
	MAX_DEPTH = UINT16_MAX,
	LEAST_BUCKET_NS = 1000,
};

/* Doubles are exact below 2^53, and differences of such numbers need a bit. */
#define MAX_NUMBER (UINT64_C(1) << 52)

uint64_t seam_page_number(uint64_t v)
{
	return v < MAX_NUMBER ? v : MAX_NUMBER;
}

uint64_t seam_page_since(const struct seam_profile *profile, uint64_t time_ns)
{
	return time_ns <= profile->start_ns ? 0 :
	       seam_page_number(time_ns - profile->start_ns);
}

uint32_t seam_page_word(struct seam_page_rows *rows, const char *text)
{
	uint32_t id;

	/* a program may write a million distinct texts into its log */
	if (rows->words.texts.n >= SEAM_PAGE_WORDS) {
		id = seam_strings_find(&rows->words, text);
		rows->n_more_words += id == SEAM_NONE;
		return id == SEAM_NONE ? 0 : id;
	}
	id = seam_strings_put(&rows->words, text);
	rows->is_failed |= id == SEAM_NONE;
	return id == SEAM_NONE ? 0 : id;
}

/* -- samples -------------------------------------------------------------- */

/* What is added up: all samples of a bucket of time, and waits below. */
struct page_grain {
	uint64_t bucket_ns;	/* 0: each sample is a row */
	uint64_t least_wait_ns;
};

static uint8_t event_of(const struct seam_parts *parts, uint32_t event)
{
	uint8_t i = 0;

	while (i < parts->n_events && parts->events[i] != event)
		i++;
	return i;
}

static uint32_t word_of(struct seam_page_rows *rows, uint32_t string)
{
	return string ? seam_page_word(rows, seam_profile_text(
			rows->parts->profile, string)) : 0;
}

static struct seam_page_sample row_of(struct seam_page_rows *rows, size_t i)
{
	const struct seam_parts *parts = rows->parts;
	const struct seam_profile *p = parts->profile;
	const struct seam_samples *s = &p->samples;
	const struct seam_profile_event *event =
		&p->events.items[s->event[i]];

	return (struct seam_page_sample) {
		.time_ns = seam_page_since(p, s->time_ns[i]),
		.weight = seam_page_number(seam_selected_weight(
						parts->selected, i)),
		.count = seam_page_number(seam_samples_count(s, i)),
		.thread = s->thread[i],
		.stack = seam_selected_stack(parts->selected, i),
		.reason = word_of(rows, seam_samples_wait(s, i)),
		.waker = word_of(rows, seam_samples_waker(s, i)),
		.cpu = s->cpu[i], .event = event_of(parts, s->event[i]),
		.is_placed = !event->is_measured &&
			     (!event->is_wait || seam_samples_count(s, i) == 1),
	};
}

/* Make the row one of its bucket, or of no place in time. */
static void coarsen(const struct page_grain *grain, bool is_wait,
		    struct seam_page_sample *row)
{
	if (!row->is_placed || (is_wait && row->weight >= grain->least_wait_ns))
		return;
	row->cpu = UINT16_MAX;
	if (is_wait)
		row->is_placed = 0;
	else
		row->time_ns -= row->time_ns % grain->bucket_ns;
}

static bool is_same_row(const struct seam_page_sample *a,
			const struct seam_page_sample *b)
{
	return a->stack == b->stack && a->thread == b->thread &&
	       a->event == b->event && a->is_placed == b->is_placed &&
	       (!a->is_placed || a->time_ns == b->time_ns) &&
	       a->cpu == b->cpu && a->reason == b->reason &&
	       a->waker == b->waker;
}

static uint64_t hash_row(const struct seam_page_sample *row)
{
	uint64_t hash = seam_hash_u64((uint64_t)row->stack << 32 |
				      row->thread);

	hash = seam_hash_u64(hash ^ (row->is_placed ? row->time_ns : 1));
	return seam_hash_u64(hash ^ ((uint64_t)row->reason << 32 |
				     row->waker)) + row->event;
}

/* Add @row to an equal one, or append it. */
static bool merge_row(struct seam_page_rows *rows, struct seam_index *index,
		      const struct seam_page_sample *row)
{
	uint64_t hash = hash_row(row);
	uint32_t i = SEAM_INDEX_FIND(index, hash, k, is_same_row(
					&rows->samples.items[k], row));
	struct seam_page_sample *same;

	if (i == SEAM_NONE)
		return SEAM_INDEX_APPEND(index, hash, &rows->samples, *row) !=
		       SEAM_NONE;
	same = &rows->samples.items[i];
	same->weight = seam_page_number(same->weight + row->weight);
	same->count = seam_page_number(same->count + row->count);
	rows->n_merged++;
	return true;
}

/* 1, 0 where these are too many rows, or -ENOMEM. */
static int add_samples(struct seam_page_rows *rows,
		       const struct page_grain *grain)
{
	const struct seam_profile *p = rows->parts->profile;
	struct seam_index index = { 0 };
	bool has_room = true;

	rows->samples.n = 0;
	rows->n_merged = 0;
	for (size_t i = 0; i < p->samples.n && has_room; i++) {
		struct seam_page_sample row;

		if (!seam_selected_has(rows->parts->selected, i))
			continue;
		row = row_of(rows, i);
		if (grain->bucket_ns)
			coarsen(grain, p->events.items[p->samples.event[i]]
				.is_wait, &row);
		if (!(grain->bucket_ns ? merge_row(rows, &index, &row) :
		      SEAM_ARRAY_ADD(&rows->samples, row)))
			rows->is_failed = true;
		has_room = !rows->is_failed &&
			   rows->samples.n <= rows->max_rows;
	}
	seam_index_fini(&index);
	return rows->is_failed ? -ENOMEM : has_room;
}

/*
 * As fine as there is room for.  The last bucket is the whole recording: then
 * there are as many rows as distinct stacks, all of which are in memory anyway.
 */
static int find_samples(struct seam_page_rows *rows)
{
	const struct seam_profile *p = rows->parts->profile;
	uint64_t span = seam_page_since(p, p->end_ns) + 1;
	int r = add_samples(rows, &(struct page_grain) { 0, 0 });

	for (uint64_t ns = LEAST_BUCKET_NS; r == 0 && ns < 4 * span; ns *= 4)
		r = add_samples(rows, &(struct page_grain) { ns, ns });
	return r < 0 ? r : r == 0 ? -EFBIG :
	       SEAM_RADIX_SORT(&rows->samples, time_ns);
}

/* -- calls ---------------------------------------------------------------- */

struct page_open_call {
	uint32_t call;
	struct seam_off_time before;	/* of the thread, when it began */
	char text[120];
	size_t n_text;
};

struct page_thread {
	struct seam_page_rows *rows;
	uint32_t id;
	struct seam_wait_cursor waits;
	SEAM_ARRAY(struct page_open_call) open;
};

/* The waits of @thread, which has another number where they are. */
static struct seam_wait_cursor waits_of(const struct seam_page_rows *rows,
					uint32_t thread)
{
	static const struct seam_wait_cursor none;
	const struct seam_profile *p = rows->parts->profile;
	const struct seam_profile *others = rows->part->wait_threads;
	const struct seam_thread *of = &p->threads.items[thread];

	for (uint32_t i = 0; others && i < others->threads.n; i++) {
		const struct seam_thread *t = &others->threads.items[i];

		if (t->tid == of->tid && of->start_ns < t->end_ns &&
		    others->processes.items[t->process].pid ==
		    p->processes.items[of->process].pid)
			return seam_waits_of(rows->part->waits, i);
	}
	return none;
}

static bool begin_call(struct page_thread *t, const struct seam_item *item)
{
	struct seam_page_rows *rows = t->rows;
	const struct seam_page_call call = {
		.begin_ns = seam_page_since(rows->parts->profile,
					    item->time_ns),
		.function = item->function, .thread = t->id,
		.depth = (uint16_t)(t->open.n < MAX_DEPTH ? t->open.n :
				    MAX_DEPTH),
	};

	return rows->calls.n < SEAM_NONE &&
	       SEAM_ARRAY_ADD(&rows->calls, call) &&
	       SEAM_ARRAY_ADD(&t->open, (struct page_open_call) {
			.call = (uint32_t)rows->calls.n - 1,
			.before = seam_waits_until(&t->waits,
						   item->time_ns) });
}

static void add_argument(struct page_thread *t, const struct seam_item *item)
{
	struct page_open_call *open;

	if (!t->open.n)
		return;
	open = &t->open.items[t->open.n - 1];
	if (open->n_text + 24 < sizeof(open->text))
		open->n_text += (size_t)snprintf(open->text + open->n_text,
				sizeof(open->text) - open->n_text,
				"%s%" PRIu64, open->n_text ? ", " : "",
				item->value);
}

/*
 * End the innermost call.  A short one is left out with all that it called:
 * these are the last rows.
 */
static void end_call(struct page_thread *t, uint64_t end_ns)
{
	struct seam_page_rows *rows = t->rows;
	struct page_open_call *open = &t->open.items[--t->open.n];
	struct seam_page_call *call = &rows->calls.items[open->call];
	uint64_t time_ns = seam_page_since(rows->parts->profile, end_ns);

	call->duration_ns = time_ns < call->begin_ns ? 0 :
			    time_ns - call->begin_ns;
	call->off = seam_off_time_less(seam_waits_until(&t->waits, end_ns),
				       open->before);
	if (call->duration_ns >= rows->least_call_ns) {
		call->text = open->n_text ? seam_page_word(rows, open->text) :
			     0;
		return;
	}
	rows->n_short_calls += rows->calls.n - open->call;
	if (t->open.n)
		rows->calls.items[t->open.items[t->open.n - 1].call]
			.hidden_ns += call->duration_ns;
	rows->calls.n = open->call;
}

void seam_page_add_mark(struct seam_page_rows *rows, struct seam_page_mark mark)
{
	if (rows->marks.n >= SEAM_PAGE_MARKS)
		rows->n_more_marks++;
	else if (!SEAM_ARRAY_ADD(&rows->marks, mark))
		rows->is_failed = true;
}

static void add_instant(struct page_thread *t, const struct seam_item *item)
{
	char name[SEAM_INSTANT_NAME], data[SEAM_INSTANT_DATA];
	bool is_loss = item->kind == SEAM_ITEM_LOSS;

	if (is_loss)
		snprintf(data, sizeof(data), item->value ? "%" PRIu64
			 " records" : "", item->value);
	seam_page_add_mark(t->rows, (struct seam_page_mark) {
		.time_ns = seam_page_since(t->rows->parts->profile,
					   item->time_ns),
		.thread = t->id,
		.kind = is_loss ? SEAM_PAGE_LOSS :
			item->kind == SEAM_ITEM_TYPED ? SEAM_PAGE_TYPED :
			SEAM_PAGE_CUSTOM,
		.name = seam_page_word(t->rows, seam_instant_name(item, name)),
		.text = seam_page_word(t->rows, is_loss ? data :
				       seam_instant_data(item->data, data)),
	});
}

static void add_item(struct page_thread *t, const struct seam_item *item)
{
	switch (item->kind) {
	case SEAM_ITEM_BEGIN:
		if (!begin_call(t, item))
			t->rows->is_failed = true;
		break;
	case SEAM_ITEM_ARGUMENT:
		add_argument(t, item);
		break;
	case SEAM_ITEM_END:
		/* logs of one thread overlap where a program ran twice */
		if (t->open.n && t->rows->calls.items[t->open.items[
				t->open.n - 1].call].function ==
				item->function)
			end_call(t, item->time_ns);
		break;
	case SEAM_ITEM_CUSTOM:
	case SEAM_ITEM_TYPED:
	case SEAM_ITEM_LOSS:
		add_instant(t, item);
		break;
	case SEAM_ITEM_SAMPLE:
		break;
	}
}

static int find_calls_of(struct seam_page_rows *rows, uint32_t thread)
{
	struct page_thread t = {
		.rows = rows, .id = thread, .waits = waits_of(rows, thread),
	};
	struct seam_timeline timeline;
	struct seam_item item;
	int r;

	seam_timeline_open(&timeline, &rows->parts->timelines,
			   rows->parts->selected, thread);
	while ((r = seam_timeline_next(&timeline, &item)) > 0 &&
	       !rows->is_failed)
		add_item(&t, &item);
	seam_timeline_close(&timeline);
	while (t.open.n)
		end_call(&t, rows->parts->profile->end_ns);
	free(t.open.items);
	return rows->is_failed ? -ENOMEM : r;
}

struct page_track {
	struct seam_page_rows *rows;
	const struct seam_track *track;
};

static int add_interval(void *context, const struct seam_marked *marked)
{
	const struct page_track *t = context;
	struct seam_page_rows *rows = t->rows;
	const struct seam_profile *p = rows->parts->profile;
	const struct seam_instant at = {
		.time_ns = marked->begin_ns, .thread = t->track->thread,
		.event = t->track->event,
	};
	struct seam_bytes name = {
		.data = (const uint8_t *)marked->name,
		.size = strlen(marked->name),
	};
	uint64_t begin_ns = seam_page_since(p, marked->begin_ns);
	char text[SEAM_INSTANT_DATA];

	if (!seam_selected_has_mark(rows->parts->selected, &at, name))
		return 0;
	if (rows->intervals.n >= rows->max_rows) {
		rows->n_more_intervals++;
		return 0;
	}
	return SEAM_ARRAY_ADD(&rows->intervals, (struct seam_page_interval) {
		.begin_ns = begin_ns, .thread = t->track->thread,
		.duration_ns = seam_page_since(p, marked->end_ns) - begin_ns,
		.off = marked->off,
		.name = seam_page_word(rows, marked->name),
		.text = seam_page_word(rows, seam_instant_data(marked->text,
							       text)),
	}) ? 0 : -ENOMEM;
}

static int by_begin(const void *a, const void *b)
{
	const struct seam_page_interval *x = a, *y = b;

	return SEAM_COMPARE(x->thread, y->thread) ?:
	       SEAM_COMPARE(x->begin_ns, y->begin_ns) ?:
	       SEAM_COMPARE(y->duration_ns, x->duration_ns);
}

static int find_intervals(struct seam_page_rows *rows)
{
	const struct seam_profile *p = rows->parts->profile;
	int r = 0;

	for (size_t i = 0; i < p->tracks.n && !r; i++) {
		struct page_track t = { rows, &p->tracks.items[i] };

		if (t.track->reader->marked)
			r = t.track->reader->marked(t.track,
				waits_of(rows, t.track->thread), add_interval,
				&t);
	}
	SEAM_ARRAY_SORT(&rows->intervals, by_begin);
	return r;
}

/* The shortest duration of which there are few enough calls. */
static int find_least(struct seam_page_rows *rows)
{
	struct seam_durations durations = { 0 };
	uint64_t n = 0;
	unsigned int i = 64;
	int r = seam_parts_durations(rows->parts, &durations);

	if (r || durations.n_calls <= rows->max_rows)
		return r;
	while (i > 0 && (n += durations.n[i - 1]) <= rows->max_rows)
		i--;
	rows->least_call_ns = i < 64 ? UINT64_C(1) << i : UINT64_MAX;
	return 0;
}

int seam_page_sort_marks(struct seam_page_rows *rows)
{
	return SEAM_RADIX_SORT(&rows->marks, time_ns);
}

int seam_page_rows_init(struct seam_page_rows *rows,
			const struct seam_page_part *part,
			const struct seam_parts *parts, uint64_t max_rows)
{
	const struct seam_profile *p = parts->profile;
	int r;

	*rows = (struct seam_page_rows) {
		.part = part, .parts = parts, .max_rows = max_rows,
	};
	seam_page_word(rows, "");
	r = find_samples(rows);
	if (!r && p->tracks.n)
		r = find_least(rows);
	for (uint32_t i = 0; !r && i < p->threads.n; i++)
		r = find_calls_of(rows, i);
	return r ? r : find_intervals(rows);
}

void seam_page_rows_fini(struct seam_page_rows *rows)
{
	seam_strings_fini(&rows->words);
	free(rows->samples.items);
	free(rows->calls.items);
	free(rows->marks.items);
	free(rows->intervals.items);
}
