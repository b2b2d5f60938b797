/* SPDX-License-Identifier: MIT */
/*
 * speedscope.c - speedscope's own file format; see exporter.h
 *
 * A profile for each thread and event: its samples in the order of time, or its
 * calls as begins and ends.  Where that would be too large for a browser, the
 * samples of equal stacks are added up.
 *
 * A frame is a function with its layer, as in a folded file: speedscope shows
 * frames of one name as several, and a sample's line is not the function's.
 *
 * Source: github.com/jlfwong/speedscope 1.25, file-format-spec.ts
 */
#include "export/exporter.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include "base/json.h"
#include "export/profile/parts.h"
#include "model/profile/tree.h"

/* JavaScript has no strings over 512 MiB. */
#define MAX_BYTES (UINT64_C(400) << 20)

enum {
	MAX_SAMPLES = 1 << 20,		/* beyond, they are added up */
	FRAME_BYTES = 7,		/* a number and a comma, at most */
	CALL_BYTES = 90,		/* two events */
	PROFILE_NAME = 600,
};

struct speedscope_writer {
	struct seam_parts parts;
	const struct seam_profile *profile;
	const struct seam_stack *stacks;
	struct seam_json json;
	struct seam_durations durations;
	uint32_t *frame_of;		/* by tree key: its number, or none */
	SEAM_ARRAY(uint32_t) path;	/* leaf first */
	struct seam_open_calls open;
	bool is_added_up;		/* samples of equal stacks */
	bool are_calls_added_up;
	uint64_t n_unmatched;		/* ends of calls */
	uint64_t busiest;		/* the main event's largest weight */
	size_t n_profiles, active;
};

/* -- frames --------------------------------------------------------------- */

static uint32_t *of_frame(struct speedscope_writer *w, uint32_t frame)
{
	return &w->frame_of[seam_tree_key(&w->profile->frames.items[frame])];
}

/* Mark what has samples or was called: 0 in frame_of. */
static int mark_frames(struct speedscope_writer *w)
{
	const struct seam_selected *selected = w->parts.selected;
	bool *is_used = calloc(selected->n_stacks + 1, sizeof(*is_used));

	if (!is_used)
		return -ENOMEM;
	for (size_t i = 0; i < w->profile->samples.n; i++)
		if (seam_selected_has(selected, i))
			is_used[seam_selected_stack(selected, i)] = true;
	/* parents have smaller ids */
	for (size_t i = selected->n_stacks; i-- > 1;) {
		if (!is_used[i])
			continue;
		is_used[w->stacks[i].parent] = true;
		*of_frame(w, w->stacks[i].frame) = 0;
	}
	free(is_used);
	for (size_t i = 0; i < w->profile->functions.n; i++)
		if (w->durations.functions[i])
			w->frame_of[i << 1] = 0;
	return 0;
}

/* The source file of each function: that of its first frame. */
static uint32_t *find_files(const struct speedscope_writer *w)
{
	const struct seam_profile *p = w->profile;
	uint32_t *files = calloc(p->functions.n + 1, sizeof(*files));

	for (size_t i = p->frames.n; files && i-- > 0;)
		if (p->frames.items[i].file)
			files[p->frames.items[i].function] =
				p->frames.items[i].file;
	return files;
}

static int put_frame(struct speedscope_writer *w, const char *name,
		     const char *ending, const char *file)
{
	char *text;

	if (asprintf(&text, "%s%s", name, ending) < 0)
		return -ENOMEM;
	seam_json_open(&w->json, NULL, '{');
	seam_json_string(&w->json, "name", text);
	if (*file)
		seam_json_string(&w->json, "file", file);
	seam_json_close(&w->json);
	free(text);
	return 0;
}

/* All frames; a last one for calls of no function of the profile. */
static int put_frames(struct speedscope_writer *w)
{
	const struct seam_profile *p = w->profile;
	uint32_t *files = find_files(w), n = 0;
	int r = files ? mark_frames(w) : -ENOMEM;

	seam_json_open(&w->json, "shared", '{');
	seam_json_open(&w->json, "frames", '[');
	for (size_t i = 0; i < 2 * p->functions.n && !r; i++) {
		const struct seam_function *f = &p->functions.items[i >> 1];

		if (w->frame_of[i] == SEAM_NONE)
			continue;
		r = put_frame(w, seam_profile_text(p, f->name),
			      seam_folded_suffix((enum seam_layer)f->layer,
						 i & 1),
			      seam_profile_text(p, files[i >> 1]));
		w->frame_of[i] = n++;
	}
	if (!r)
		r = put_frame(w, "unknown", "", "");
	w->frame_of[2 * p->functions.n] = n;
	seam_json_close(&w->json);
	seam_json_close(&w->json);
	free(files);
	return r;
}

/* -- a profile ------------------------------------------------------------ */

static void begin_profile(struct speedscope_writer *w, const char *type,
			  uint32_t thread, uint32_t event)
{
	const struct seam_profile *p = w->profile;
	const struct seam_profile_event *e = &p->events.items[event];
	char name[PROFILE_NAME];

	snprintf(name, sizeof(name), "%.250s (%" PRId32 "): %.250s",
		 seam_profile_text(p, p->threads.items[thread].name),
		 p->threads.items[thread].tid, seam_profile_text(p, e->name));
	seam_json_open(&w->json, NULL, '{');
	seam_json_string(&w->json, "type", type);
	seam_json_string(&w->json, "name", name);
	seam_json_string(&w->json, "unit", e->unit == SEAM_UNIT_NS ?
			 "nanoseconds" : "none");
}

static void end_profile(struct speedscope_writer *w, uint64_t start,
			uint64_t end, bool is_main)
{
	seam_json_u64(&w->json, "startValue", start);
	seam_json_u64(&w->json, "endValue", end);
	seam_json_close(&w->json);
	if (is_main && end - start > w->busiest) {
		w->busiest = end - start;
		w->active = w->n_profiles;
	}
	w->n_profiles++;
}

static int put_stack(struct speedscope_writer *w, uint32_t stack)
{
	w->path.n = 0;
	for (uint32_t s = stack; s; s = w->stacks[s].parent)
		if (!SEAM_ARRAY_ADD(&w->path, w->stacks[s].frame))
			return -ENOMEM;
	seam_json_open(&w->json, NULL, '[');
	for (size_t i = w->path.n; i-- > 0;)
		seam_json_u64(&w->json, NULL, *of_frame(w, w->path.items[i]));
	seam_json_close(&w->json);
	return 0;
}

/* -- samples in the order of time ----------------------------------------- */

/* The selected rows of a thread and an event, one after another. */
struct thread_rows {
	const uint32_t *at, *end;
	uint32_t event;
};

static struct thread_rows rows_of(const struct speedscope_writer *w,
				  uint32_t thread, uint32_t event)
{
	const struct seam_thread_rows *all =
		&w->parts.timelines.tables[SEAM_TIMELINE_SAMPLES];

	return (struct thread_rows) {
		.at = all->items + all->first[thread],
		.end = all->items + all->first[thread + 1], .event = event,
	};
}

/* SEAM_NONE: there is no other. */
static uint32_t next_row(const struct speedscope_writer *w,
			 struct thread_rows *rows)
{
	while (rows->at < rows->end) {
		uint32_t i = *rows->at++;

		if (w->profile->samples.event[i] == rows->event &&
		    seam_selected_has(w->parts.selected, i))
			return i;
	}
	return SEAM_NONE;
}

static int put_sampled(struct speedscope_writer *w, uint32_t thread,
		       size_t event)
{
	uint32_t id = w->parts.events[event], i;
	struct thread_rows first = rows_of(w, thread, id), rows = first;
	uint64_t total = 0;
	int r = 0;

	if (next_row(w, &rows) == SEAM_NONE)
		return 0;
	begin_profile(w, "sampled", thread, id);
	seam_json_open(&w->json, "samples", '[');
	for (rows = first; !r && (i = next_row(w, &rows)) != SEAM_NONE;)
		r = put_stack(w, seam_selected_stack(w->parts.selected, i));
	seam_json_close(&w->json);
	seam_json_open(&w->json, "weights", '[');
	for (rows = first; (i = next_row(w, &rows)) != SEAM_NONE;) {
		uint64_t weight = seam_samples_weight(&w->profile->samples, i);

		seam_json_u64(&w->json, NULL, weight);
		total += weight;
	}
	seam_json_close(&w->json);
	end_profile(w, 0, total, event == 0);
	return r;
}

/* -- stacks added up ------------------------------------------------------ */

static int put_tallies(struct speedscope_writer *w,
		       const struct seam_tally *tallies, size_t n, size_t event)
{
	uint64_t total = 0;
	int r = 0;

	begin_profile(w, "sampled", tallies[0].group, w->parts.events[event]);
	seam_json_open(&w->json, "samples", '[');
	for (size_t i = 0; i < n && !r; i++)
		r = put_stack(w, tallies[i].stack);
	seam_json_close(&w->json);
	seam_json_open(&w->json, "weights", '[');
	for (size_t i = 0; i < n; i++) {
		seam_json_u64(&w->json, NULL, tallies[i].weight);
		total += tallies[i].weight;
	}
	seam_json_close(&w->json);
	end_profile(w, 0, total, event == 0);
	return r;
}

/* Whether the stacks of @tallies fit; they may be deep, and all distinct. */
static int check_size(const struct speedscope_writer *w,
		      const struct seam_tallies *tallies)
{
	uint32_t *depths = seam_parts_depths(w->parts.selected);
	uint64_t n = 0;

	for (size_t i = 0; depths && i < tallies->n; i++)
		n += depths[tallies->items[i].stack] + 2;
	free(depths);
	return !depths ? -ENOMEM : n * FRAME_BYTES > MAX_BYTES ? -EFBIG : 0;
}

static int put_added_up(struct speedscope_writer *w, size_t event)
{
	struct seam_tallies tallies;
	size_t first = 0;
	int r = seam_tallies_make(&tallies, w->parts.selected,
				  w->parts.events[event], SEAM_GROUP_THREAD);

	if (!r)
		r = check_size(w, &tallies);
	for (size_t i = 1; i <= tallies.n && !r; i++) {
		if (i < tallies.n &&
		    tallies.items[i].group == tallies.items[first].group)
			continue;
		r = put_tallies(w, &tallies.items[first], i - first, event);
		first = i;
	}
	free(tallies.items);
	return r;
}

/* -- calls ---------------------------------------------------------------- */

static void put_event(struct speedscope_writer *w, const char *type,
		      uint32_t function, uint64_t at)
{
	size_t key = function == SEAM_NONE ? 2 * w->profile->functions.n :
		     (size_t)function << 1;

	seam_json_open(&w->json, NULL, '{');
	seam_json_string(&w->json, "type", type);
	seam_json_u64(&w->json, "frame", w->frame_of[key]);
	seam_json_u64(&w->json, "at", at);
	seam_json_close(&w->json);
}

/* The calls of a thread; *@last_ns: the time before them, then of the last. */
static int put_calls(struct speedscope_writer *w, uint32_t thread,
		     uint64_t *last_ns)
{
	struct seam_timeline timeline;
	struct seam_item item;
	int r, taken = 1;

	seam_timeline_open(&timeline, &w->parts.timelines, w->parts.selected,
			   thread);
	while ((r = seam_timeline_next(&timeline, &item)) > 0 && taken >= 0 &&
	       !ferror(w->json.out)) {
		if (item.kind != SEAM_ITEM_BEGIN && item.kind != SEAM_ITEM_END)
			continue;
		if (item.time_ns > *last_ns)
			*last_ns = item.time_ns;
		taken = seam_open_calls_take(&w->open, &item);
		if (taken > 0)
			put_event(w, item.kind == SEAM_ITEM_BEGIN ? "O" : "C",
				  item.function, *last_ns);
		w->n_unmatched += taken == 0;
	}
	seam_timeline_close(&timeline);
	while (w->open.n)
		put_event(w, "C", w->open.items[--w->open.n], *last_ns);
	return taken < 0 ? taken : r < 0 ? r : 0;
}

static int put_evented(struct speedscope_writer *w, uint32_t thread,
		       size_t event)
{
	const struct seam_thread_rows *tracks =
		&w->parts.timelines.tables[SEAM_TIMELINE_TRACKS];
	uint64_t first_ns, last_ns;
	int r;

	if (tracks->first[thread] == tracks->first[thread + 1])
		return 0;
	first_ns = last_ns = w->profile->tracks.items[
		tracks->items[tracks->first[thread]]].start_ns;
	begin_profile(w, "evented", thread, w->parts.events[event]);
	seam_json_open(&w->json, "events", '[');
	r = put_calls(w, thread, &last_ns);
	seam_json_close(&w->json);
	end_profile(w, first_ns, last_ns, event == 0);
	return r;
}

/* -- the file ------------------------------------------------------------- */

static int put_event_profiles(struct speedscope_writer *w, size_t event)
{
	bool is_measured = seam_parts_event(&w->parts, event)->is_measured;
	int r = 0;

	if (is_measured ? w->are_calls_added_up : w->is_added_up)
		return put_added_up(w, event);
	for (uint32_t i = 0; i < w->profile->threads.n && !r; i++)
		if (w->parts.threads[i])
			r = is_measured ? put_evented(w, i, event) :
			    put_sampled(w, i, event);
	return r;
}

static void put_name(struct speedscope_writer *w)
{
	const char *command = seam_profile_text(w->profile,
						w->profile->command);
	uint64_t n_lost = seam_profile_n_lost(w->profile);
	char name[PROFILE_NAME], lost[64] = "";

	if (n_lost)
		snprintf(lost, sizeof(lost), ", %" PRIu64 " record%s lost",
			 n_lost, n_lost == 1 ? "" : "s");
	else if (w->profile->losses.n)
		snprintf(lost, sizeof(lost), ", with losses");
	snprintf(name, sizeof(name), "%.500s%s", *command ? command :
		 "recording", lost);
	seam_json_string(&w->json, "name", name);
}

static int write_all(struct speedscope_writer *w)
{
	struct seam_json *j = &w->json;
	int r;

	seam_json_open(j, NULL, '{');
	seam_json_string(j, "$schema",
		"https://www.speedscope.app/file-format-schema.json");
	seam_json_string(j, "exporter", "seam");
	put_name(w);
	r = put_frames(w);
	seam_json_open(j, "profiles", '[');
	for (size_t i = 0; i < w->parts.n_events && !r; i++)
		r = put_event_profiles(w, i);
	if (w->n_profiles == 0) {	/* none is an error there */
		seam_json_open(j, NULL, '{');
		seam_json_string(j, "type", "sampled");
		seam_json_string(j, "name", "no samples");
		seam_json_string(j, "unit", "none");
		seam_json_open(j, "samples", '[');
		seam_json_close(j);
		seam_json_open(j, "weights", '[');
		seam_json_close(j);
		end_profile(w, 0, 0, false);
	}
	seam_json_close(j);
	seam_json_u64(j, "activeProfileIndex", w->active);
	seam_json_close(j);
	return r;
}

static int prepare(struct speedscope_writer *w, FILE *out)
{
	size_t n = w->profile->functions.n;

	w->json = seam_json_make(out, false);
	w->frame_of = malloc((2 * n + 1) * sizeof(*w->frame_of));
	w->durations.functions = calloc(n + 1, sizeof(bool));
	if (!w->frame_of || !w->durations.functions)
		return -ENOMEM;
	memset(w->frame_of, 0xff, (2 * n + 1) * sizeof(*w->frame_of));
	w->is_added_up = w->parts.n_samples > MAX_SAMPLES ||
		(w->parts.n_frames + 2 * w->parts.n_samples) * FRAME_BYTES >
		MAX_BYTES;
	return w->profile->tracks.n ?
	       seam_parts_durations(&w->parts, &w->durations) : 0;
}

static void say_left_out(const struct speedscope_writer *w,
			 const struct seam_export *export)
{
	size_t n_threads = seam_parts_n_threads(&w->parts);
	char unmatched[64] = "";

	if (!export->say || !n_threads)
		return;
	if (w->n_unmatched)
		snprintf(unmatched, sizeof(unmatched), ", %" PRIu64 " ends of "
			 "calls without a begin", w->n_unmatched);
	export->say("left out: modules, source lines, times between samples%s, "
		    "life times of %zu thread%s%s%s%s",
		    w->profile->tracks.n ? ", arguments and marks" : "",
		    n_threads, n_threads == 1 ? "" : "s", unmatched,
		    w->is_added_up ? "; samples of equal stacks are added up" :
		    "", w->are_calls_added_up ?
		    "; calls of equal stacks are added up" : "");
}

int seam_write_speedscope(const struct seam_export *export,
			  struct seam_err *err)
{
	struct speedscope_writer w = {
		.profile = export->selected->profile,
		.stacks = export->selected->stacks,
	};
	int r = seam_parts_init(&w.parts, export->selected, err);

	if (!r) {
		r = prepare(&w, export->out);
		w.are_calls_added_up = w.durations.n_calls * CALL_BYTES >
				       MAX_BYTES;
		if (!r)
			r = write_all(&w);
		if (r == -EFBIG)
			seam_err_set(err, r, "cannot convert: the stacks are "
				     "more than 400 MiB of JSON, which no "
				     "browser opens; choose a part with "
				     "--time, --thread or --event");
		if (r == -ENOMEM)
			seam_err_no_memory(err);
	}
	if (!r)
		say_left_out(&w, export);
	seam_parts_fini(&w.parts);
	free(w.frame_of);
	free(w.durations.functions);
	free(w.path.items);
	free(w.open.items);
	return r;
}
