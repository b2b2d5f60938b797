/* SPDX-License-Identifier: MIT */
/* selection.c - parse a selection, resolve it for a profile */
#include "model/profile/selection.h"

#include <errno.h>
#include <stdlib.h>
#include <strings.h>

#include "base/hash.h"
#include "base/text.h"
#include "model/profile/time_range.h"

void seam_selection_init(struct seam_selection *selection)
{
	*selection = (struct seam_selection) {
		.to_ns = UINT64_MAX, .layers = SEAM_ALL_LAYERS,
	};
}

int seam_selection_time(struct seam_selection *selection,
			const struct seam_profile *profile, const char *text,
			struct seam_err *err)
{
	struct seam_time_range range;
	int rc = seam_time_range_parse(&range, text, profile->start_ns,
				       profile->end_ns, err);

	if (!rc) {
		selection->from_ns = range.from_ns;
		selection->to_ns = range.to_ns;
	}
	return rc;
}

int seam_selection_layers(struct seam_selection *selection, const char *text,
			  struct seam_err *err)
{
	unsigned int layers = 0;
	const char *name = text;
	char shown[64];

	for (;;) {
		size_t n = strcspn(name, ",");
		unsigned int i = 0;

		while (i < SEAM_N_LAYERS &&
		       (strncmp(seam_layer_names[i], name, n) != 0 ||
			seam_layer_names[i][n]))
			i++;
		if (i == SEAM_N_LAYERS)
			return seam_err_set(err, -EINVAL, "cannot select the "
				"layers '%s': they are kernel, native, jit "
				"and guest",
				seam_text_copy(shown, sizeof(shown), text,
					       SEAM_TEXT_TERMINAL));
		layers |= 1u << i;
		if (!name[n])
			break;
		name += n + 1;
	}
	selection->layers = layers;
	return 0;
}

/* @code: what is called @word is not in the recording. */
static int not_found(int code, const char *what, const char *word,
		     const char *known, struct seam_err *err)
{
	char shown[200];

	return seam_err_set(err, code, "cannot select the %s '%s': the "
			    "recording has %s", what,
			    seam_text_copy(shown, sizeof(shown), word,
					   SEAM_TEXT_TERMINAL), known);
}

/* The event of the first @n bytes of @name; SEAM_NONE: there is none. */
static uint32_t event_of_name(const struct seam_profile *profile,
			      const char *name, size_t n)
{
	for (uint32_t i = 0; i < profile->events.n; i++) {
		const char *text = seam_profile_text(profile,
				profile->events.items[i].name);

		if (strncmp(text, name, n) == 0 && !text[n])
			return i;
	}
	return SEAM_NONE;
}

/* "cpu-clock,off-cpu": all of them, or none. */
static int find_events(struct seam_selected *s, const char *names)
{
	uint32_t event;

	s->events = calloc(s->profile->events.n + 1, sizeof(*s->events));
	if (!s->events)
		return -ENOMEM;
	for (const char *at = names;; at++) {
		size_t n = strcspn(at, ",");

		event = event_of_name(s->profile, at, n);
		if (event == SEAM_NONE)
			return -EINVAL;
		s->events[event] = true;
		at += n;
		if (!*at)
			return 0;
	}
}

static int find_event(struct seam_selected *s, const char *name,
		      struct seam_err *err)
{
	const struct seam_profile *profile = s->profile;
	char known[200] = "", shown[100];
	int r = 0;

	/* names of PMUs have commas */
	s->event = event_of_name(profile, name, strlen(name));
	if (s->event != SEAM_NONE)
		return 0;
	r = find_events(s, name);
	if (r == 0)
		return 0;
	if (r == -ENOMEM)
		return seam_err_no_memory(err);
	for (uint32_t i = 0; i < profile->events.n; i++) {
		const char *text = seam_profile_text(profile,
				profile->events.items[i].name);
		size_t used = strlen(known);

		/* without samples: for the side-band, for waits */
		if (strncmp(text, "dummy:", strlen("dummy:")) == 0 ||
		    (strncmp(text, "seam:", strlen("seam:")) == 0 &&
		     !profile->events.items[i].n_samples))
			continue;
		seam_text_copy(shown, sizeof(shown), text, SEAM_TEXT_TERMINAL);
		snprintf(known + used, sizeof(known) - used, "%s%s",
			 used ? ", " : "", shown);
	}
	return not_found(-EINVAL, "event", name, *known ? known : "none", err);
}

/*
 * By tid, by last name, and by the name at the sample: an earlier name of a
 * thread selects the samples that it has under that name.
 */
static int find_thread(struct seam_selected *s, const char *word,
		       struct seam_err *err)
{
	const struct seam_profile *profile = s->profile;
	bool found = false;

	s->threads = calloc(profile->threads.n + 1, sizeof(*s->threads));
	if (!s->threads)
		return seam_err_no_memory(err);
	s->comm = seam_strings_find(&profile->strings, word);
	for (size_t i = 0; i < profile->threads.n; i++) {
		const struct seam_thread *thread = &profile->threads.items[i];
		char tid[16];

		snprintf(tid, sizeof(tid), "%d", thread->tid);
		s->threads[i] = strcmp(word, tid) == 0 ||
				(s->comm != SEAM_NONE &&
				 thread->name == s->comm);
		found |= s->threads[i];
	}
	for (size_t i = 0; i < profile->samples.n && !found; i++)
		found = s->comm != SEAM_NONE &&
			seam_samples_comm(profile, i) == s->comm;
	return found ? 0 : not_found(-EINVAL, "thread", word,
				     "none of that name or number", err);
}

/* The string of function @word; -ENOENT: there is none of that name. */
static int find_function(const struct seam_profile *profile, const char *word,
			 uint32_t *name, struct seam_err *err)
{
	*name = seam_strings_find(&profile->strings, word);
	for (size_t i = 0; *name != SEAM_NONE && i < profile->functions.n; i++)
		if (profile->functions.items[i].name == *name)
			return 0;
	*name = SEAM_NONE;
	return not_found(-ENOENT, "function", word, "none of that name", err);
}

/* As seam_profile_stack(), in the selection's own stacks. */
static uint32_t own_stack(struct seam_selected *s, struct seam_index *index,
			  uint32_t parent, uint32_t frame)
{
	const struct seam_stack *stacks = s->own.items;

	return SEAM_INDEX_INTERN(index,
		seam_hash_u64((uint64_t)parent << 32 | frame), &s->own, i,
		stacks[i].parent == parent && stacks[i].frame == frame,
		(struct seam_stack) { parent, frame });
}

static bool has_frame(const struct seam_profile *profile, uint32_t frame_id,
		      const struct seam_selection *selection)
{
	const struct seam_frame *frame = &profile->frames.items[frame_id];
	uint8_t layer = profile->functions.items[frame->function].layer;

	return (selection->layers >> layer & 1) &&
	       !(selection->no_inline && frame->is_inlined);
}

static bool is_function(const struct seam_profile *profile, uint32_t frame,
			uint32_t name)
{
	return seam_profile_function_of(profile, frame)->name == name;
}

/* The selected part of stack @i, whose parent has been mapped; 0: none. */
static uint32_t map_stack(struct seam_selected *s, struct seam_index *index,
			  const struct seam_selection *selection, size_t i)
{
	const struct seam_stack *stacks = s->profile->stacks.items;
	const struct seam_stack *stack = &stacks[i];
	uint32_t parent = s->map[stack->parent], own = 0;

	if (!has_frame(s->profile, stack->frame, selection))
		return parent;
	if (s->callers_of != SEAM_NONE) {
		if (!is_function(s->profile, stack->frame, s->callers_of))
			return parent;
		/* inverted, from the function outward */
		for (; i && own != SEAM_NONE; i = stacks[i].parent)
			if (has_frame(s->profile, stacks[i].frame, selection))
				own = own_stack(s, index, own, stacks[i].frame);
		return own;
	}
	if (s->callees_of != SEAM_NONE && !parent &&
	    !is_function(s->profile, stack->frame, s->callees_of))
		return 0;
	return own_stack(s, index, parent, stack->frame);
}

/* Parents come before their children, so one pass in order is enough. */
static int map_stacks(struct seam_selected *s, struct seam_index *index,
		      const struct seam_selection *selection)
{
	const struct seam_profile *profile = s->profile;

	s->skips_empty = selection->layers != SEAM_ALL_LAYERS ||
			 s->callers_of != SEAM_NONE ||
			 s->callees_of != SEAM_NONE;
	s->map = calloc(profile->stacks.n, sizeof(*s->map));
	if (!s->map || !SEAM_ARRAY_ADD(&s->own, profile->stacks.items[0]))
		return -ENOMEM;
	for (size_t i = 1; i < profile->stacks.n; i++) {
		s->map[i] = map_stack(s, index, selection, i);
		if (s->map[i] == SEAM_NONE)
			return -ENOMEM;
	}
	s->stacks = s->own.items;
	s->n_stacks = s->own.n;
	return 0;
}

/* Find functions, and stacks with one of them. */
static int search(struct seam_selected *s, struct seam_err *err)
{
	const struct seam_profile *profile = s->profile;
	const struct seam_stack *stacks = profile->stacks.items;

	s->found = calloc(profile->functions.n + 1, sizeof(*s->found));
	s->found_stacks = calloc(profile->stacks.n, sizeof(*s->found_stacks));
	if (!s->found || !s->found_stacks)
		return seam_err_no_memory(err);
	for (size_t i = 0; i < profile->functions.n; i++) {
		const struct seam_function *f = &profile->functions.items[i];

		s->found[i] = strcasestr(seam_profile_text(profile, f->name),
					 s->search) ||
			      strcasestr(seam_profile_path(profile, f->module),
					 s->search);
	}
	for (size_t i = 1; i < profile->stacks.n; i++)
		s->found_stacks[i] = s->found_stacks[stacks[i].parent] ||
			s->found[profile->frames.items[stacks[i].frame]
				 .function];
	return 0;
}

/* Only samples of running threads can be weighed by how many ran. */
static int check_latency(struct seam_selected *s, struct seam_err *err)
{
	const struct seam_profile *p = s->profile;
	bool *events;

	if (!p->samples.running)
		return seam_err_set(err, -EINVAL, "cannot weigh samples by "
			"latency: the recording does not tell which threads "
			"ran ('seam record --off-cpu')");
	if (s->event != SEAM_NONE || s->events)
		return 0;
	events = calloc(p->events.n + 1, sizeof(*events));
	for (size_t i = 0; events && i < p->events.n; i++)
		events[i] = p->events.items[i].n_samples &&
			    !p->events.items[i].is_wait;
	s->events = events;
	return events ? 0 : seam_err_no_memory(err);
}

int seam_selected_init(struct seam_selected *selected,
		       const struct seam_profile *profile,
		       const struct seam_selection *selection,
		       struct seam_err *err)
{
	struct seam_index index = { 0 };
	int rc = 0;

	*selected = (struct seam_selected) {
		.profile = profile,
		.from_ns = selection->from_ns, .to_ns = selection->to_ns,
		.comm = SEAM_NONE, .event = SEAM_NONE,
		.callers_of = SEAM_NONE, .callees_of = SEAM_NONE,
		.layers = selection->layers, .search = selection->search,
		.by_latency = selection->by_latency,
		.stacks = profile->stacks.items, .n_stacks = profile->stacks.n,
	};
	if (selection->event)
		rc = find_event(selected, selection->event, err);
	if (!rc && selection->thread)
		rc = find_thread(selected, selection->thread, err);
	if (!rc && selection->callers_of)
		rc = find_function(profile, selection->callers_of,
				   &selected->callers_of, err);
	if (!rc && selection->callees_of)
		rc = find_function(profile, selection->callees_of,
				   &selected->callees_of, err);
	if (!rc && (selection->no_inline || selection->callers_of ||
		    selection->callees_of ||
		    selection->layers != SEAM_ALL_LAYERS) &&
	    map_stacks(selected, &index, selection))
		rc = seam_err_no_memory(err);
	seam_index_fini(&index);
	if (!rc && selection->by_latency)
		rc = check_latency(selected, err);
	if (!rc && selection->search)
		rc = search(selected, err);
	if (rc)
		seam_selected_fini(selected);
	return rc;
}

void seam_selected_fini(struct seam_selected *selected)
{
	free(selected->threads);
	free(selected->events);
	free(selected->map);
	free(selected->found);
	free(selected->found_stacks);
	free(selected->own.items);
	*selected = (struct seam_selected) { 0 };
}

bool seam_selected_is_entry(const struct seam_selected *selected,
			    uint32_t function)
{
	uint32_t name = function == SEAM_NONE ? SEAM_NONE :
			selected->profile->functions.items[function].name;

	return name != SEAM_NONE &&
	       (name == selected->callers_of || name == selected->callees_of);
}

bool seam_selected_has_loss(const struct seam_selected *selected,
			    const struct seam_instant *at)
{
	return at->time_ns >= selected->from_ns &&
	       at->time_ns < selected->to_ns &&
	       (!selected->threads || selected->threads[at->thread]) &&
	       (at->event == SEAM_NONE ||
		seam_selected_has_event(selected, at->event));
}

/* The same for a call or an event of code of @layer. */
static bool has_code(const struct seam_selected *s,
		     const struct seam_instant *at, enum seam_layer layer)
{
	return seam_selected_has_loss(s, at) && (s->layers >> layer & 1) &&
	       (at->is_inside ||
		(s->callers_of == SEAM_NONE && s->callees_of == SEAM_NONE));
}

bool seam_selected_has_call(const struct seam_selected *selected,
			    const struct seam_instant *at, uint32_t function)
{
	const struct seam_function *functions =
		selected->profile->functions.items;

	if (function == SEAM_NONE)
		return !selected->found &&
		       has_code(selected, at, SEAM_LAYER_NATIVE);
	return (!selected->found || selected->found[function]) &&
	       has_code(selected, at,
			(enum seam_layer)functions[function].layer);
}

bool seam_selected_has_mark(const struct seam_selected *selected,
			    const struct seam_instant *at,
			    struct seam_bytes data)
{
	size_t n = selected->search ? strlen(selected->search) : 0, i = 0;

	/* as strcasestr(), in bytes that may have zeroes among them */
	while (n && i + n <= data.size &&
	       strncasecmp((const char *)data.data + i, selected->search, n) != 0)
		i++;
	return has_code(selected, at, SEAM_LAYER_NATIVE) && i + n <= data.size;
}

const char *seam_selected_noun(const struct seam_selected *selected)
{
	const struct seam_profile *profile = selected->profile;
	uint32_t event = seam_selected_event(selected);

	if (event == SEAM_NONE)
		return seam_profile_noun(profile);
	return seam_event_noun(&profile->events.items[event]);
}

uint64_t seam_selected_duration_ns(const struct seam_selected *selected)
{
	const struct seam_time_range range = {
		selected->from_ns, selected->to_ns,
	};

	return seam_time_range_clip(&range, selected->profile->start_ns,
				    selected->profile->end_ns);
}

uint32_t seam_selected_event(const struct seam_selected *selected)
{
	const struct seam_profile *profile = selected->profile;
	uint32_t only = SEAM_NONE;

	if (selected->event != SEAM_NONE)
		return selected->event;
	for (uint32_t i = 0; i < profile->events.n; i++) {
		const struct seam_profile_event *e = &profile->events.items[i];

		/* a part of a log may have time, but no call's beginning */
		if ((e->n_samples == 0 && !e->is_measured) ||
		    !seam_selected_has_event(selected, i))
			continue;
		if (only != SEAM_NONE)
			return SEAM_NONE;
		only = i;
	}
	return only;
}

uint32_t seam_selected_unit(const struct seam_selected *selected)
{
	const struct seam_profile *profile = selected->profile;
	uint32_t event = seam_selected_event(selected), unit = SEAM_NONE;

	if (event != SEAM_NONE)
		return profile->events.items[event].unit;
	for (uint32_t i = 0; selected->events && i < profile->events.n; i++) {
		if (!selected->events[i])
			continue;
		if (unit != SEAM_NONE && unit != profile->events.items[i].unit)
			return SEAM_NONE;
		unit = profile->events.items[i].unit;
	}
	return unit;
}
