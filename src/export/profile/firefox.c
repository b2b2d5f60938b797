/* SPDX-License-Identifier: MIT */
/*
 * firefox.c - the Firefox Profiler's processed profile; see exporter.h
 *
 * Version 60: the oldest in which threads share their tables, and the newest
 * that Perfetto reads too; the viewer upgrades it.  Its tables are columns, so
 * the rows of a thread are read once for each column.
 *
 * A thread of the file has samples of one unit: those of the main event, and
 * waits beside them as Idle.  Samples of another event are a thread of their
 * own in the same process.  Calls, waits and what the program logged are markers of
 * the first.
 *
 * Source: github.com/firefox-devtools/profiler, src/types/profile.ts and
 * docs-developer/CHANGELOG-formats.md, 2026-08.
 */
#include "export/exporter.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include "base/clock.h"
#include "export/profile/firefox_tables.h"

enum {
	VERSION = 60, GECKO_VERSION = 31,
	MS_DECIMALS = 6,		/* of nanoseconds */
	MAX_MARKERS = 100000,
	MAX_ARGUMENTS = 6,		/* of a call */
	INSTANT = 0, INTERVAL = 1,	/* phases of a marker */
	ROW_BYTES = 40, NODE_BYTES = 24, FRAME_BYTES = 80,
	TEXT = 700,
};

/* JavaScript has no strings over 512 MiB. */
#define MAX_BYTES (UINT64_C(400) << 20)

/* Which samples of each thread are one thread of the file. */
struct firefox_entry {
	uint32_t event;			/* SEAM_NONE: only waits */
	bool has_waits;
};

enum marker_kind { CALL, WAIT, LOGGED, LOST, N_MARKER_KINDS };

static const char *const marker_types[N_MARKER_KINDS] = {
	[CALL] = "call", [WAIT] = "wait", [LOGGED] = "event", [LOST] = "lost",
};

struct firefox_marker {
	uint64_t start_ns, end_ns;
	uint32_t name;			/* string of the file */
	enum marker_kind kind;
	uint32_t text;			/* string: arguments, data; 0: none */
	uint32_t stack;			/* WAIT: number */
	uint64_t value;			/* LOST: records */
};

/* A call that is open. */
struct firefox_call {
	uint64_t arguments[MAX_ARGUMENTS];
	unsigned int n_arguments;
};

struct firefox_writer {
	struct seam_parts parts;
	const struct seam_profile *profile;
	struct seam_firefox_tables tables;
	struct seam_json json;
	struct firefox_entry entries[SEAM_PARTS_EVENTS];
	size_t n_entries;
	struct seam_tallies *tallies;	/* by entry: of measured events */
	uint32_t *reuses;		/* by process: of its pid, before it */
	uint64_t min_ns;		/* of a call or wait with a marker */
	uint64_t n_short;		/* without */
	size_t n_markers;
	SEAM_ARRAY(struct firefox_marker) markers;	/* of a thread */
	SEAM_ARRAY(struct firefox_call) open;
};

/* -- values --------------------------------------------------------------- */

/* Milliseconds since the begin of the recording. */
static void put_ms(struct firefox_writer *w, const char *key, uint64_t time_ns)
{
	uint64_t start = w->profile->start_ns;

	seam_json_fixed(&w->json, key, time_ns > start ? time_ns - start : 0,
			MS_DECIMALS);
}

static void put_null(struct firefox_writer *w, const char *key)
{
	seam_json_string(&w->json, key, NULL);
}

static void put_end_ms(struct firefox_writer *w, const char *key,
		       uint64_t time_ns)
{
	if (time_ns == UINT64_MAX)
		put_null(w, key);
	else
		put_ms(w, key, time_ns);
}

static void put_empty(struct firefox_writer *w, const char *key, char bracket)
{
	seam_json_open(&w->json, key, bracket);
	seam_json_close(&w->json);
}

static bool is_wait(const struct firefox_writer *w, size_t sample)
{
	return w->profile->events.items[w->profile->samples.event[sample]]
	       .is_wait;
}

/* -- rows of a thread ----------------------------------------------------- */

/* The rows of an entry in a thread: samples, or sums of a measured event. */
struct firefox_rows {
	struct firefox_entry entry;
	const uint32_t *at, *end;	/* samples */
	const struct seam_tally *tally, *last_tally;
	uint32_t wait;			/* its end is next; SEAM_NONE */
};

struct firefox_row {
	uint64_t time_ns, weight;
	uint32_t stack, event;
	bool is_wait;
};

static struct firefox_rows rows_of(const struct firefox_writer *w,
				   uint32_t thread, size_t entry)
{
	const struct seam_thread_rows *all =
		&w->parts.timelines.tables[SEAM_TIMELINE_SAMPLES];
	const struct seam_tallies *sums = &w->tallies[entry];
	size_t first = SEAM_ARRAY_SEARCH(i, sums->n,
					 sums->items[i].group < thread);
	size_t last = SEAM_ARRAY_SEARCH(i, sums->n,
					sums->items[i].group <= thread);

	return (struct firefox_rows) {
		.entry = w->entries[entry], .wait = SEAM_NONE,
		.at = all->items + all->first[thread],
		.end = all->items + all->first[thread + 1],
		.tally = sums->n ? sums->items + first : NULL,
		.last_tally = sums->n ? sums->items + last : NULL,
	};
}

static uint32_t next_sample(const struct firefox_writer *w,
			    struct firefox_rows *rows)
{
	while (rows->at < rows->end) {
		uint32_t i = *rows->at++;

		if ((w->profile->samples.event[i] == rows->entry.event ||
		     (rows->entry.has_waits && is_wait(w, i))) &&
		    seam_selected_has(w->parts.selected, i))
			return i;
	}
	return SEAM_NONE;
}

/* The end of a wait, but not after the thread's next row; a sum has none. */
static uint64_t wait_end(const struct firefox_writer *w,
			 const struct firefox_rows *rows, uint32_t sample)
{
	const struct seam_samples *samples = &w->profile->samples;
	struct firefox_rows rest = *rows;
	uint32_t next = next_sample(w, &rest);
	uint64_t end;

	if (!seam_parts_is_interval(&w->parts, sample))
		return samples->time_ns[sample];
	if (__builtin_add_overflow(samples->time_ns[sample],
				   seam_samples_weight(samples, sample), &end))
		end = UINT64_MAX;
	return next != SEAM_NONE && samples->time_ns[next] < end ?
	       samples->time_ns[next] : end;
}

/* False at the end. */
static bool next_row(const struct firefox_writer *w, struct firefox_rows *rows,
		     struct firefox_row *row)
{
	const struct seam_samples *samples = &w->profile->samples;
	uint32_t i = rows->wait;

	if (rows->tally) {
		if (rows->tally == rows->last_tally)
			return false;
		*row = (struct firefox_row) {
			w->profile->start_ns, rows->tally->weight,
			rows->tally->stack, rows->entry.event, false,
		};
		rows->tally++;
		return true;
	}
	if (i != SEAM_NONE) {
		row->time_ns = wait_end(w, rows, i);
		row->weight = 0;
		rows->wait = SEAM_NONE;
		return true;
	}
	i = next_sample(w, rows);
	if (i == SEAM_NONE)
		return false;
	*row = (struct firefox_row) {
		samples->time_ns[i], seam_samples_weight(samples, i),
		seam_selected_stack(w->parts.selected, i), samples->event[i],
		is_wait(w, i),
	};
	rows->wait = row->is_wait ? i : SEAM_NONE;
	return true;
}

enum firefox_column { STACK, TIME, WEIGHT, CPU_DELTA };

static void put_column(struct firefox_writer *w, const char *name,
		       struct firefox_rows rows, enum firefox_column column,
		       bool is_ns)
{
	struct firefox_row row;

	seam_json_open(&w->json, name, '[');
	while (next_row(w, &rows, &row)) {
		if (column == STACK)
			seam_json_u64(&w->json, NULL, seam_firefox_stack(
					&w->tables, row.stack, row.event));
		else if (column == TIME)
			put_ms(w, NULL, row.time_ns);
		else if (column == WEIGHT && is_ns)
			seam_json_fixed(&w->json, NULL, row.weight,
					MS_DECIMALS);
		else
			seam_json_u64(&w->json, NULL,
				      column == CPU_DELTA && row.is_wait ? 0 :
				      row.weight);
	}
	seam_json_close(&w->json);
}

static void put_samples(struct firefox_writer *w, uint32_t thread, size_t entry)
{
	struct firefox_rows rows = rows_of(w, thread, entry), counted = rows;
	const struct seam_profile_event *event =
		w->entries[entry].event == SEAM_NONE ? NULL :
		&w->profile->events.items[w->entries[entry].event];
	bool is_ns = !event || event->unit == SEAM_UNIT_NS;
	struct firefox_row row;
	uint64_t n = 0;

	while (next_row(w, &counted, &row))
		n++;
	seam_json_open(&w->json, "samples", '{');
	seam_json_u64(&w->json, "length", n);
	put_column(w, "stack", rows, STACK, is_ns);
	put_column(w, "time", rows, TIME, is_ns);
	put_column(w, "weight", rows, WEIGHT, is_ns);
	seam_json_string(&w->json, "weightType", is_ns ? "tracing-ms" :
			 "samples");
	/* where the samples are a clock's: how busy the thread was */
	if (is_ns && event && !event->is_measured)
		put_column(w, "threadCPUDelta", rows, CPU_DELTA, is_ns);
	seam_json_close(&w->json);
}

/* -- markers -------------------------------------------------------------- */

static void add_marker(struct firefox_writer *w, struct firefox_marker marker)
{
	bool is_long = marker.kind == LOGGED || marker.kind == LOST ||
		       marker.end_ns - marker.start_ns >= w->min_ns;

	if (!is_long || w->n_markers >= MAX_MARKERS) {
		w->n_short++;
		return;
	}
	w->n_markers++;
	if (!SEAM_ARRAY_ADD(&w->markers, marker))
		w->tables.is_failed = true;
}

/* The arguments of the call that ends, as text; 0: none, or too short. */
static uint32_t end_call(struct firefox_writer *w)
{
	char text[MAX_ARGUMENTS * 22 + 1] = "";
	const struct firefox_call *call;
	size_t used = 0;

	if (!w->open.n)
		return 0;
	call = &w->open.items[--w->open.n];
	for (unsigned int i = 0; i < call->n_arguments; i++)
		used += (size_t)snprintf(text + used, sizeof(text) - used,
					 "%s%" PRIu64, i ? ", " : "",
					 call->arguments[i]);
	return used ? seam_firefox_string(&w->tables, text) : 0;
}

static void add_call(struct firefox_writer *w, const struct seam_item *item)
{
	bool is_long = item->time_ns - item->begin_ns >= w->min_ns &&
		       w->n_markers < MAX_MARKERS;

	if (!is_long) {
		w->open.n -= w->open.n > 0;
		w->n_short++;
		return;
	}
	add_marker(w, (struct firefox_marker) {
		.kind = CALL, .start_ns = item->begin_ns,
		.end_ns = item->time_ns, .text = end_call(w),
		.name = seam_firefox_string(&w->tables, seam_parts_function(
						&w->parts, item->function)),
	});
}

/* Why a thread waited, and who ended that, as a string of the file. */
static uint32_t reason_of(struct firefox_writer *w, size_t i)
{
	const struct seam_profile *p = w->profile;
	uint32_t waker = seam_samples_waker(&p->samples, i);
	char text[TEXT];

	snprintf(text, sizeof(text), "%.300s%s%.300s", seam_profile_text(p,
			seam_samples_wait(&p->samples, i)),
		 waker ? ", ended by " : "", seam_profile_text(p, waker));
	return seam_firefox_string(&w->tables, text);
}

static void add_wait(struct firefox_writer *w, size_t i)
{
	const struct seam_profile *p = w->profile;
	uint16_t event = p->samples.event[i];
	uint64_t start = p->samples.time_ns[i], end;

	if (__builtin_add_overflow(start, seam_samples_weight(&p->samples, i),
				   &end))
		end = UINT64_MAX;
	add_marker(w, (struct firefox_marker) {
		.kind = WAIT, .start_ns = start, .end_ns = end,
		.name = seam_firefox_string(&w->tables, seam_profile_text(
				p, p->events.items[event].name)),
		.text = end - start >= w->min_ns ? reason_of(w, i) : 0,
		.stack = seam_firefox_stack(&w->tables, seam_selected_stack(
				w->parts.selected, i), event),
	});
}

static void add_instant(struct firefox_writer *w, const struct seam_item *item)
{
	char name[SEAM_INSTANT_NAME], data[SEAM_INSTANT_DATA];
	bool is_loss = item->kind == SEAM_ITEM_LOSS;

	if (w->n_markers >= MAX_MARKERS) {
		w->n_short++;
		return;
	}
	add_marker(w, (struct firefox_marker) {
		.kind = is_loss ? LOST : LOGGED, .start_ns = item->time_ns,
		.end_ns = item->time_ns, .value = is_loss ? item->value : 0,
		.name = seam_firefox_string(&w->tables,
					    seam_instant_name(item, name)),
		.text = is_loss ? 0 : seam_firefox_string(&w->tables,
				seam_instant_data(item->data, data)),
	});
}

static int add_item(struct firefox_writer *w, const struct seam_item *item)
{
	struct firefox_call *call;

	switch (item->kind) {
	case SEAM_ITEM_BEGIN:
		return SEAM_ARRAY_ADD(&w->open, (struct firefox_call) {
			.n_arguments = 0 }) ? 0 : -ENOMEM;
	case SEAM_ITEM_ARGUMENT:
		call = w->open.n ? &w->open.items[w->open.n - 1] : NULL;
		if (call && call->n_arguments < MAX_ARGUMENTS)
			call->arguments[call->n_arguments++] = item->value;
		break;
	case SEAM_ITEM_END:
		add_call(w, item);
		break;
	case SEAM_ITEM_CUSTOM:
	case SEAM_ITEM_TYPED:
	case SEAM_ITEM_LOSS:
		add_instant(w, item);
		break;
	case SEAM_ITEM_SAMPLE:
		if (seam_parts_is_interval(&w->parts, item->sample))
			add_wait(w, item->sample);
		break;
	}
	return 0;
}

static int find_markers(struct firefox_writer *w, uint32_t thread)
{
	struct seam_timeline timeline;
	struct seam_item item;
	int r, added = 0;

	w->markers.n = w->open.n = 0;
	seam_timeline_open(&timeline, &w->parts.timelines, w->parts.selected,
			   thread);
	while (!added && (r = seam_timeline_next(&timeline, &item)) > 0)
		added = add_item(w, &item);
	seam_timeline_close(&timeline);
	return added ? added : r;
}

static void put_marker_data(struct firefox_writer *w,
			    const struct firefox_marker *marker)
{
	struct seam_json *j = &w->json;

	seam_json_open(j, NULL, '{');
	seam_json_string(j, "type", marker_types[marker->kind]);
	if (marker->text)
		seam_json_u64(j, "text", marker->text);
	if (marker->kind == LOST)
		seam_json_u64(j, "records", marker->value);
	if (marker->kind == WAIT) {
		seam_json_open(j, "cause", '{');
		seam_json_u64(j, "stack", marker->stack);
		seam_json_close(j);
	}
	seam_json_close(j);
}

static void put_markers(struct firefox_writer *w)
{
	const struct firefox_marker *m = w->markers.items;
	struct seam_json *j = &w->json;
	size_t n = w->markers.n;

	seam_json_open(j, "markers", '{');
	seam_json_u64(j, "length", n);
	seam_json_open(j, "data", '[');
	for (size_t i = 0; i < n; i++)
		put_marker_data(w, &m[i]);
	seam_json_close(j);
	seam_json_open(j, "name", '[');
	for (size_t i = 0; i < n; i++)
		seam_json_u64(j, NULL, m[i].name);
	seam_json_close(j);
	seam_json_open(j, "startTime", '[');
	for (size_t i = 0; i < n; i++)
		put_ms(w, NULL, m[i].start_ns);
	seam_json_close(j);
	seam_json_open(j, "endTime", '[');
	for (size_t i = 0; i < n; i++)
		if (m[i].kind == CALL || m[i].kind == WAIT)
			put_ms(w, NULL, m[i].end_ns);
		else
			put_null(w, NULL);
	seam_json_close(j);
	seam_json_open(j, "phase", '[');
	for (size_t i = 0; i < n; i++)
		seam_json_u64(j, NULL, m[i].kind == CALL || m[i].kind == WAIT ?
			      INTERVAL : INSTANT);
	seam_json_close(j);
	seam_json_open(j, "category", '[');
	for (size_t i = 0; i < n; i++)
		seam_json_u64(j, NULL, m[i].kind == WAIT ? SEAM_FIREFOX_IDLE :
			      m[i].kind == CALL ? SEAM_FIREFOX_LAYER +
						  SEAM_LAYER_NATIVE :
			      SEAM_FIREFOX_OTHER);
	seam_json_close(j);
	seam_json_close(j);
}

/* -- threads -------------------------------------------------------------- */

static void put_pid(struct firefox_writer *w, uint32_t process)
{
	int32_t pid = w->profile->processes.items[process].pid;
	char text[32];

	if (w->reuses[process])
		snprintf(text, sizeof(text), "%" PRId32 ".%" PRIu32, pid,
			 w->reuses[process]);
	else
		snprintf(text, sizeof(text), "%" PRId32, pid);
	seam_json_string(&w->json, "pid", text);
}

/* Name and ids; those of an event's own thread end with its name. */
static void put_names(struct firefox_writer *w, uint32_t id, size_t entry)
{
	const struct seam_profile *p = w->profile;
	const struct seam_thread *thread = &p->threads.items[id];
	const char *name = seam_profile_text(p, thread->name);
	uint32_t event = w->entries[entry].event;
	const char *of = event == SEAM_NONE ? "waits" :
			 seam_profile_text(p, p->events.items[event].name);
	char text[TEXT];

	if (entry == 0) {
		seam_json_string(&w->json, "name", name);
		seam_json_i64(&w->json, "tid", thread->tid);
		return;
	}
	snprintf(text, sizeof(text), "%.300s: %.300s", name, of);
	seam_json_string(&w->json, "name", text);
	snprintf(text, sizeof(text), "%" PRId32 ": %.300s", thread->tid, of);
	seam_json_string(&w->json, "tid", text);
}

static void put_life(struct firefox_writer *w, const struct seam_thread *thread,
		     const struct seam_process *process)
{
	put_ms(w, "processStartupTime", process->start_ns);
	put_end_ms(w, "processShutdownTime", process->end_ns);
	put_ms(w, "registerTime", thread->start_ns);
	put_end_ms(w, "unregisterTime", thread->end_ns);
}

static int put_thread(struct firefox_writer *w, uint32_t id, size_t entry)
{
	const struct seam_profile *p = w->profile;
	const struct seam_thread *thread = &p->threads.items[id];
	const struct seam_process *process =
		&p->processes.items[thread->process];
	int r = entry == 0 ? find_markers(w, id) : 0;

	if (entry != 0)
		w->markers.n = 0;
	seam_json_open(&w->json, NULL, '{');
	put_names(w, id, entry);
	put_pid(w, thread->process);
	seam_json_string(&w->json, "processType", "default");
	seam_json_string(&w->json, "processName",
			 seam_profile_text(p, process->name));
	seam_json_bool(&w->json, "isMainThread",
		       entry == 0 && thread->tid == process->pid);
	seam_json_bool(&w->json, "showMarkersInTimeline", w->markers.n > 0);
	put_life(w, thread, process);
	put_empty(w, "pausedRanges", '[');
	put_samples(w, id, entry);
	put_markers(w);
	seam_json_close(&w->json);
	return r;
}

/* An entry but the first is left out where it has no samples. */
static bool has_rows(const struct firefox_writer *w, uint32_t thread,
		     size_t entry)
{
	struct firefox_rows rows = rows_of(w, thread, entry);
	struct firefox_row row;

	return next_row(w, &rows, &row);
}

/* The viewer opens no profile without a thread. */
static void put_no_thread(struct firefox_writer *w)
{
	struct seam_json *j = &w->json;

	w->markers.n = 0;
	seam_json_open(j, NULL, '{');
	seam_json_string(j, "name", "no samples");
	seam_json_u64(j, "tid", 0);
	seam_json_string(j, "pid", "0");
	seam_json_string(j, "processType", "default");
	seam_json_bool(j, "isMainThread", true);
	seam_json_u64(j, "processStartupTime", 0);
	put_null(w, "processShutdownTime");
	seam_json_u64(j, "registerTime", 0);
	put_null(w, "unregisterTime");
	put_empty(w, "pausedRanges", '[');
	seam_json_open(j, "samples", '{');
	seam_json_u64(j, "length", 0);
	put_empty(w, "stack", '[');
	put_empty(w, "time", '[');
	put_empty(w, "weight", '[');
	seam_json_string(j, "weightType", "samples");
	seam_json_close(j);
	put_markers(w);
	seam_json_close(j);
}

static int put_threads(struct firefox_writer *w)
{
	int r = 0;

	seam_json_open(&w->json, "threads", '[');
	if (w->n_entries == 0)
		put_no_thread(w);
	for (uint32_t i = 0; i < w->profile->threads.n && !r; i++)
		for (size_t e = 0; e < w->n_entries && !r; e++)
			if (w->parts.threads[i] &&
			    (e == 0 || has_rows(w, i, e)))
				r = put_thread(w, i, e);
	seam_json_close(&w->json);
	return r;
}

/* -- about the profile ---------------------------------------------------- */

static void put_category(struct firefox_writer *w, const char *name,
			 const char *color)
{
	struct seam_json *j = &w->json;
	bool is_idle = strcmp(name, "Idle") == 0;

	seam_json_open(j, NULL, '{');
	seam_json_string(j, "name", name);
	seam_json_string(j, "color", color);
	seam_json_open(j, "subcategories", '[');
	seam_json_string(j, NULL, "Other");
	for (size_t i = 0; is_idle && i < w->parts.n_events; i++)
		if (seam_parts_event(&w->parts, i)->is_wait)
			seam_json_string(j, NULL, seam_profile_text(w->profile,
				seam_parts_event(&w->parts, i)->name));
	seam_json_close(j);
	seam_json_close(j);
}

static void put_categories(struct firefox_writer *w)
{
	/* in the order of the enum */
	static const char *const layers[SEAM_N_LAYERS][2] = {
		[SEAM_LAYER_KERNEL] = { "Kernel", "orange" },
		[SEAM_LAYER_NATIVE] = { "Native", "blue" },
		[SEAM_LAYER_JIT] = { "JIT", "green" },
		[SEAM_LAYER_GUEST] = { "Guest", "purple" },
	};

	seam_json_open(&w->json, "categories", '[');
	put_category(w, "Other", "grey");
	for (size_t i = 0; i < SEAM_N_LAYERS; i++)
		put_category(w, layers[i][0], layers[i][1]);
	put_category(w, "Idle", "transparent");
	seam_json_close(&w->json);
}

static void put_schema(struct firefox_writer *w, enum marker_kind kind)
{
	static const struct {
		const char *key, *label, *format;
	} fields[N_MARKER_KINDS] = {
		[CALL] = { "text", "Arguments", "unique-string" },
		[WAIT] = { "text", "Reason", "unique-string" },
		[LOGGED] = { "text", "Data", "unique-string" },
		[LOST] = { "records", "Records", "integer" },
	};
	struct seam_json *j = &w->json;

	seam_json_open(j, NULL, '{');
	seam_json_string(j, "name", marker_types[kind]);
	seam_json_string(j, "tooltipLabel", "{marker.name}");
	seam_json_string(j, "tableLabel", kind == LOST ?
			 "{marker.data.records}" : "{marker.data.text}");
	seam_json_string(j, "chartLabel", "{marker.name}");
	seam_json_open(j, "display", '[');
	seam_json_string(j, NULL, "marker-chart");
	seam_json_string(j, NULL, "marker-table");
	seam_json_string(j, NULL, "timeline-overview");
	seam_json_close(j);
	seam_json_open(j, "fields", '[');
	seam_json_open(j, NULL, '{');
	seam_json_string(j, "key", fields[kind].key);
	seam_json_string(j, "label", fields[kind].label);
	seam_json_string(j, "format", fields[kind].format);
	seam_json_close(j);
	seam_json_close(j);
	seam_json_bool(j, "isStackBased", kind == CALL);
	seam_json_close(j);
}

static void put_extra(struct firefox_writer *w, const char *label,
		      const char *value)
{
	seam_json_open(&w->json, NULL, '{');
	seam_json_string(&w->json, "label", label);
	seam_json_string(&w->json, "format", "string");
	seam_json_string(&w->json, "value", value);
	seam_json_close(&w->json);
}

/* What is shown about the profile: its main event, and what was lost. */
static void put_extras(struct firefox_writer *w)
{
	const struct seam_profile *p = w->profile;
	char text[SEAM_LOSS_TEXT];

	seam_json_open(&w->json, "extra", '[');
	seam_json_open(&w->json, NULL, '{');
	seam_json_string(&w->json, "label", "Recording");
	seam_json_open(&w->json, "entries", '[');
	if (w->n_entries)
		put_extra(w, "Event", w->entries[0].event == SEAM_NONE ?
			  "waits" : seam_profile_text(p, p->events.items[
					w->entries[0].event].name));
	for (size_t i = 0; i < p->losses.n; i++)
		put_extra(w, "Lost", seam_profile_loss_text(
				p, &p->losses.items[i], text));
	seam_json_close(&w->json);
	seam_json_close(&w->json);
	seam_json_close(&w->json);
}

static void put_units(struct firefox_writer *w)
{
	seam_json_open(&w->json, "sampleUnits", '{');
	seam_json_string(&w->json, "time", "ms");
	seam_json_string(&w->json, "eventDelay", "ms");
	seam_json_string(&w->json, "threadCPUDelta", "ns");
	seam_json_close(&w->json);
}

static void put_meta(struct firefox_writer *w)
{
	const struct seam_profile *p = w->profile;
	const char *command = seam_profile_text(p, p->command);
	struct seam_json *j = &w->json;

	seam_json_open(j, "meta", '{');
	seam_json_u64(j, "version", GECKO_VERSION);
	seam_json_u64(j, "preprocessedProfileVersion", VERSION);
	seam_json_fixed(j, "interval", !p->samples.weight &&
			p->samples.same_weight ? p->samples.same_weight :
			SEAM_NS_PER_MS, MS_DECIMALS);
	seam_json_fixed(j, "startTime", p->utc_ns ?
			p->start_ns + (uint64_t)p->utc_ns : 0, MS_DECIMALS);
	if (!p->has_other_clock)
		seam_json_u64(j,
			"startTimeAsClockMonotonicNanosecondsSinceBoot",
			p->start_ns);
	seam_json_u64(j, "processType", 0);
	seam_json_string(j, "product", *command ? command : "recording");
	seam_json_string(j, "importedFrom", "Seam");
	seam_json_string(j, "platform", "Linux");
	seam_json_u64(j, "stackwalk", 1);
	seam_json_bool(j, "symbolicated", true);
	seam_json_bool(j, "symbolicationNotSupported", true);
	seam_json_bool(j, "usesOnlyOneStackType", true);
	seam_json_bool(j, "sourceCodeIsNotOnSearchfox", true);
	put_units(w);
	put_categories(w);
	seam_json_open(j, "markerSchema", '[');
	for (enum marker_kind i = 0; i < N_MARKER_KINDS; i++)
		put_schema(w, i);
	seam_json_close(j);
	put_extras(w);
	seam_json_close(j);
}

/* -- the file ------------------------------------------------------------- */

static void make_entries(struct firefox_writer *w)
{
	bool has_waits = false, is_clock;

	for (size_t i = 0; i < w->parts.n_events; i++) {
		const struct seam_profile_event *event =
			seam_parts_event(&w->parts, i);

		has_waits |= event->is_wait;
		if (!event->is_wait)
			w->entries[w->n_entries++].event = w->parts.events[i];
	}
	is_clock = w->n_entries &&
		   seam_parts_event(&w->parts, 0)->unit == SEAM_UNIT_NS &&
		   !seam_parts_event(&w->parts, 0)->is_measured;
	if (has_waits && is_clock)
		w->entries[0].has_waits = true;
	else if (has_waits)
		w->entries[w->n_entries++] = (struct firefox_entry) {
			SEAM_NONE, true };
}

/* The sums of measured events, whose samples have no place in time. */
static int make_tallies(struct firefox_writer *w)
{
	int r = 0;

	w->tallies = calloc(SEAM_PARTS_EVENTS, sizeof(*w->tallies));
	if (!w->tallies)
		return -ENOMEM;
	for (size_t i = 0; i < w->n_entries && !r; i++) {
		uint32_t event = w->entries[i].event;

		if (event != SEAM_NONE &&
		    w->profile->events.items[event].is_measured)
			r = seam_tallies_make(&w->tallies[i],
					      w->parts.selected, event,
					      SEAM_GROUP_THREAD);
	}
	return r;
}

/* How often the pid of each process was used before. */
static int count_reuses(struct firefox_writer *w)
{
	const struct seam_profile *p = w->profile;
	struct seam_pair_map pids = { 0 };
	int r = 0;

	w->reuses = calloc(p->processes.n + 1, sizeof(*w->reuses));
	if (!w->reuses)
		return -ENOMEM;
	for (size_t i = 0; i < p->processes.n && !r; i++) {
		uint32_t pid = (uint32_t)p->processes.items[i].pid;
		const uint32_t *known = seam_pair_map_find(&pids, pid, 0);

		w->reuses[i] = known ? *known + 1 : 0;
		r = seam_pair_map_put(&pids, pid, 0, w->reuses[i]);
	}
	seam_pair_map_fini(&pids);
	return r;
}

/* The shortest call or wait that still has a marker. */
static int find_minimum(struct firefox_writer *w)
{
	struct seam_durations durations = { .functions = NULL };
	int r = seam_parts_durations(&w->parts, &durations);
	uint64_t n = durations.n[64];
	unsigned int i = 64;

	while (i > 0 && n + durations.n[i - 1] <= MAX_MARKERS)
		n += durations.n[--i];
	w->min_ns = i == 0 ? 0 : i == 64 ? UINT64_MAX : UINT64_C(1) << i;
	return r;
}

static int check_size(const struct firefox_writer *w, struct seam_err *err)
{
	uint64_t n = w->parts.n_samples * ROW_BYTES +
		     w->tables.n_stacks * (uint64_t)NODE_BYTES +
		     w->tables.n_frames * (uint64_t)FRAME_BYTES;

	if (n <= MAX_BYTES)
		return 0;
	return seam_err_set(err, -EFBIG, "cannot convert: %" PRIu64 " samples "
			    "are more than 400 MiB of JSON, which no browser "
			    "opens; choose a part with --time, --thread or "
			    "--event", w->parts.n_samples);
}

static int write_all(struct firefox_writer *w, struct seam_err *err)
{
	int r = seam_firefox_tables_init(&w->tables, &w->parts);

	make_entries(w);
	if (!r)
		r = make_tallies(w);
	if (!r)
		r = count_reuses(w);
	if (!r)
		r = find_minimum(w);
	if (!r)
		r = check_size(w, err);
	if (r)
		return r;
	seam_firefox_string(&w->tables, "");	/* 0 */
	seam_json_open(&w->json, NULL, '{');
	put_meta(w);
	r = put_threads(w);
	if (!r)
		r = seam_firefox_tables_put(&w->tables, &w->json);
	seam_json_close(&w->json);
	return r;
}

static void say_left_out(const struct firefox_writer *w,
			 const struct seam_export *export)
{
	char shorter[64] = "";

	if (!export->say || !w->n_short)
		return;
	if (w->min_ns && w->min_ns != UINT64_MAX)
		snprintf(shorter, sizeof(shorter), ", shorter than %" PRIu64
			 " us", (w->min_ns + 999) / 1000);
	export->say("left out: markers of %" PRIu64 " calls, waits and events"
		    "%s; a browser shows %d", w->n_short, shorter, MAX_MARKERS);
}

int seam_write_firefox(const struct seam_export *export, struct seam_err *err)
{
	struct firefox_writer w = {
		.profile = export->selected->profile,
		.json = seam_json_make(export->out, false),
	};
	int r = seam_parts_init(&w.parts, export->selected, err);

	if (!r) {
		r = write_all(&w, err);
		if (r == -ENOMEM)
			seam_err_no_memory(err);
	}
	if (!r)
		say_left_out(&w, export);
	for (size_t i = 0; w.tallies && i < SEAM_PARTS_EVENTS; i++)
		free(w.tallies[i].items);
	free(w.tallies);
	seam_firefox_tables_fini(&w.tables);
	seam_parts_fini(&w.parts);
	free(w.reuses);
	free(w.markers.items);
	free(w.open.items);
	return r;
}
