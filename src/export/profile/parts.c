/* SPDX-License-Identifier: MIT */
/* parts.c - events and threads with samples, and calls; see parts.h */
#include "export/profile/parts.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include "base/text.h"

/* -- events and threads --------------------------------------------------- */

uint32_t *seam_parts_depths(const struct seam_selected *selected)
{
	uint32_t *depths = calloc(selected->n_stacks + 1, sizeof(*depths));

	/* parents have smaller ids */
	for (size_t i = 1; depths && i < selected->n_stacks; i++)
		depths[i] = depths[selected->stacks[i].parent] + 1;
	return depths;
}

static void count_samples(struct seam_parts *parts, bool *events,
			  const uint32_t *depths)
{
	const struct seam_samples *samples = &parts->profile->samples;

	for (size_t i = 0; i < samples->n; i++) {
		uint32_t stack;

		if (!seam_selected_has(parts->selected, i))
			continue;
		events[samples->event[i]] = true;
		parts->threads[samples->thread[i]] = true;
		if (parts->profile->events.items[samples->event[i]].is_measured)
			continue;
		stack = seam_selected_stack(parts->selected, i);
		parts->n_samples++;
		parts->n_frames += depths[stack];
		parts->n_without_stack += stack == 0;
	}
}

/* Samples before calls, and both before waits, which dwarf them. */
static int rank(const struct seam_profile_event *event)
{
	return event->is_wait ? 2 : event->is_measured ? 1 : 0;
}

static int list_events(struct seam_parts *parts, const bool *events,
		       struct seam_err *err)
{
	const struct seam_profile_event *all = parts->profile->events.items;

	for (int of = 0; of <= 2; of++)
		for (uint32_t i = 0; i < parts->profile->events.n; i++) {
			if (!events[i] || rank(&all[i]) != of)
				continue;
			if (parts->n_events == SEAM_PARTS_EVENTS)
				return seam_err_set(err, -E2BIG, "cannot "
					"convert: samples of more than %d "
					"events; choose one with --event",
					SEAM_PARTS_EVENTS);
			parts->events[parts->n_events++] = i;
		}
	return 0;
}

int seam_parts_init(struct seam_parts *parts,
		    const struct seam_selected *selected, struct seam_err *err)
{
	const struct seam_profile *profile = selected->profile;
	bool *events = calloc(profile->events.n + 1, sizeof(*events));
	uint32_t *depths = seam_parts_depths(selected);
	int r;

	*parts = (struct seam_parts) {
		.selected = selected, .profile = profile,
		.threads = calloc(profile->threads.n + 1, sizeof(bool)),
	};
	r = events && depths && parts->threads ? 0 : -ENOMEM;
	if (!r) {
		count_samples(parts, events, depths);
		r = list_events(parts, events, err);
	}
	free(events);
	free(depths);
	if (!r)
		r = seam_timelines_init(&parts->timelines, profile);
	if (r == -EOVERFLOW)
		return seam_err_set(err, r, "cannot convert: 2^32 samples or "
				    "more");
	return r == -ENOMEM ? seam_err_no_memory(err) : r;
}

bool seam_parts_is_interval(const struct seam_parts *parts, size_t i)
{
	const struct seam_profile *p = parts->profile;

	return p->events.items[p->samples.event[i]].is_wait &&
	       seam_samples_count(&p->samples, i) == 1;
}

size_t seam_parts_n_threads(const struct seam_parts *parts)
{
	size_t n = 0;

	for (size_t i = 0; i < parts->profile->threads.n; i++)
		n += parts->threads[i];
	return n;
}

void seam_parts_fini(struct seam_parts *parts)
{
	free(parts->threads);
	seam_timelines_fini(&parts->timelines);
}

/* -- calls and marks ------------------------------------------------------ */

static int add_durations(const struct seam_parts *parts, uint32_t thread,
			 struct seam_durations *durations)
{
	const struct seam_profile *p = parts->profile;
	struct seam_timeline timeline;
	struct seam_item item;
	int r;

	seam_timeline_open(&timeline, &parts->timelines, parts->selected,
			   thread);
	while ((r = seam_timeline_next(&timeline, &item)) > 0) {
		uint64_t ns = 0;

		if (item.kind == SEAM_ITEM_END)
			ns = item.time_ns - item.begin_ns;
		else if (item.kind == SEAM_ITEM_SAMPLE &&
			 seam_parts_is_interval(parts, item.sample))
			ns = seam_samples_weight(&p->samples, item.sample);
		else if (item.kind == SEAM_ITEM_SAMPLE ||
			 item.kind == SEAM_ITEM_BEGIN ||
			 item.kind == SEAM_ITEM_ARGUMENT)
			continue;
		durations->n_calls += item.kind == SEAM_ITEM_END;
		if (durations->functions && item.kind == SEAM_ITEM_END &&
		    item.function != SEAM_NONE)
			durations->functions[item.function] = true;
		durations->n[item.kind == SEAM_ITEM_END ||
			     item.kind == SEAM_ITEM_SAMPLE ?
			     seam_duration_class(ns) : 64]++;
	}
	seam_timeline_close(&timeline);
	return r;
}

int seam_parts_durations(const struct seam_parts *parts,
			 struct seam_durations *durations)
{
	int r = 0;

	for (uint32_t i = 0; i < parts->profile->threads.n && !r; i++)
		r = add_durations(parts, i, durations);
	return r;
}

int seam_open_calls_take(struct seam_open_calls *open,
			 const struct seam_item *item)
{
	if (item->kind == SEAM_ITEM_BEGIN)
		return SEAM_ARRAY_ADD(open, item->function) ? 1 : -ENOMEM;
	if (!open->n || open->items[open->n - 1] != item->function)
		return 0;
	open->n--;
	return 1;
}

const char *seam_instant_name(const struct seam_item *item,
			      char text[SEAM_INSTANT_NAME])
{
	if (item->kind == SEAM_ITEM_TYPED)
		snprintf(text, SEAM_INSTANT_NAME, "typed event %" PRIu32,
			 item->type);
	else
		snprintf(text, SEAM_INSTANT_NAME, "%s",
			 item->kind == SEAM_ITEM_LOSS ? "records lost" :
			 "custom event");
	return text;
}

const char *seam_instant_data(struct seam_bytes data,
			      char text[SEAM_INSTANT_DATA])
{
	size_t most = SEAM_INSTANT_DATA - 1;
	size_t n = data.size < most ? data.size : most;

	if (seam_text_are_printable(data)) {
		snprintf(text, SEAM_INSTANT_DATA, "%.*s", (int)n,
			 (const char *)data.data);
		return text;
	}
	return seam_text_hex(text, data.data, n < most / 2 ? n : most / 2);
}

const char *seam_parts_function(const struct seam_parts *parts,
				uint32_t function)
{
	const struct seam_profile *p = parts->profile;

	return function == SEAM_NONE ? "unknown" :
	       seam_profile_text(p, p->functions.items[function].name);
}
