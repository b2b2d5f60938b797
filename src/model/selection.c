/* SPDX-License-Identifier: MIT */
/* selection.c - words into a selection, a selection over a profile */
#include "model/selection.h"

#include <errno.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/hash.h"
#include "base/text.h"

void seam_selection_init(struct seam_selection *selection)
{
	*selection = (struct seam_selection) {
		.to_ns = UINT64_MAX, .layers = SEAM_ALL_LAYERS,
	};
}

/* A unit and what one of it is; the empty one is seconds. */
static bool unit_ns(const char *unit, size_t size, double *ns)
{
	static const struct {
		const char *name;
		double ns;
	} units[] = {
		{ "", 1e9 }, { "s", 1e9 }, { "ms", 1e6 }, { "us", 1e3 },
		{ "ns", 1 }, { "m", 60e9 },
	};

	for (size_t i = 0; i < SEAM_ARRAY_SIZE(units); i++) {
		if (strlen(units[i].name) == size &&
		    memcmp(units[i].name, unit, size) == 0) {
			*ns = units[i].ns;
			return true;
		}
	}
	return false;
}

/*
 * One end of a range: @size bytes at @text, as nanoseconds from the start of
 * a recording that takes @length_ns.
 */
static bool parse_time(const char *text, size_t size, uint64_t length_ns,
		       uint64_t *from_start_ns)
{
	size_t digits = strspn(text, "0123456789.");
	const char *unit = text + digits;
	double value, one;
	char *end;

	if (digits == 0 || digits > size)
		return false;
	value = strtod(text, &end);
	if (end != unit)
		return false;
	if (size - digits == 1 && *unit == '%')
		one = (double)length_ns / 100;
	else if (!unit_ns(unit, size - digits, &one))
		return false;
	value = value * one + 0.5;
	*from_start_ns = value < 9e18 ? (uint64_t)value : UINT64_MAX;
	return true;
}

static uint64_t add_up(uint64_t a, uint64_t b)
{
	return a > UINT64_MAX - b ? UINT64_MAX : a + b;
}

int seam_selection_time(struct seam_selection *selection,
			const struct seam_profile *profile, const char *text,
			struct seam_err *err)
{
	size_t comma = strcspn(text, ",");
	const char *end = text + comma + (text[comma] == ',');
	/* One more, so that 100% is behind the last sample. */
	uint64_t length = profile->end_ns - profile->start_ns + 1;
	uint64_t a = 0, b = UINT64_MAX;
	char shown[64];

	seam_text_copy(shown, sizeof(shown), text, SEAM_TEXT_TERMINAL);
	if (text[comma] != ',' ||
	    (comma && !parse_time(text, comma, length, &a)) ||
	    (*end && !parse_time(end, strlen(end), length, &b)))
		return seam_err_set(err, -EINVAL, "cannot select the time "
			"'%s': not of the form A,B in seconds (1.5,2), with "
			"units (300ms,1s) or in percent (10%%,20%%)", shown);
	if (a > b)
		return seam_err_set(err, -EINVAL, "cannot select the time "
			"'%s': it ends before it begins", shown);
	selection->from_ns = add_up(profile->start_ns, a);
	selection->to_ns = add_up(profile->start_ns, b);
	return 0;
}

static bool layer_bit(const char *name, size_t size, unsigned int *bit)
{
	for (unsigned int i = 0; i < SEAM_N_LAYERS; i++) {
		const char *layer = seam_layer_name((enum seam_layer)i);

		*bit = 1u << i;
		if (strlen(layer) == size && memcmp(layer, name, size) == 0)
			return true;
	}
	return false;
}

int seam_selection_layers(struct seam_selection *selection, const char *text,
			  struct seam_err *err)
{
	unsigned int layers = 0, bit;
	const char *name = text;
	char shown[64];

	for (;;) {
		size_t n = strcspn(name, ",");

		if (!layer_bit(name, n, &bit))
			return seam_err_set(err, -EINVAL, "cannot select the "
				"layers '%s': they are kernel, native, jit "
				"and guest",
				seam_text_copy(shown, sizeof(shown), text,
					       SEAM_TEXT_TERMINAL));
		layers |= bit;
		if (!name[n])
			break;
		name += n + 1;
	}
	selection->layers = layers;
	return 0;
}

static int find_event(struct seam_selected *s, const char *name,
		      struct seam_err *err)
{
	const struct seam_profile *profile = s->profile;
	char known[200] = "", shown[100];

	for (uint32_t i = 0; i < profile->events.n; i++) {
		const char *text = seam_profile_text(profile,
				profile->events.items[i].name);
		size_t used = strlen(known);

		if (strcmp(text, name) == 0) {
			s->event = i;
			return 0;
		}
		seam_text_copy(shown, sizeof(shown), text, SEAM_TEXT_TERMINAL);
		snprintf(known + used, sizeof(known) - used, "%s%s",
			 used ? ", " : "", shown);
	}
	return seam_err_set(err, -EINVAL, "cannot select the event '%s': "
			    "the recording has %s",
			    seam_text_copy(shown, sizeof(shown), name,
					   SEAM_TEXT_TERMINAL),
			    *known ? known : "none");
}

/* True when @word is @tid in digits. */
static bool is_tid(const char *word, int32_t tid)
{
	char digits[16];

	snprintf(digits, sizeof(digits), "%d", tid);
	return strcmp(word, digits) == 0;
}

/*
 * By tid, by last name, and by the name at the sample: a name that a thread
 * had before it took another finds what it did under it.
 */
static int find_thread(struct seam_selected *s, const char *word,
		       struct seam_err *err)
{
	const struct seam_profile *profile = s->profile;
	bool found = false;
	char shown[100];

	s->threads = calloc(profile->threads.n + 1, sizeof(*s->threads));
	if (!s->threads)
		return seam_err_set(err, -ENOMEM, "out of memory");
	s->comm = seam_strings_find(&profile->strings, word);
	for (size_t i = 0; i < profile->threads.n; i++) {
		const struct seam_thread *thread = &profile->threads.items[i];

		s->threads[i] = is_tid(word, thread->tid) ||
				(s->comm != SEAM_NONE &&
				 thread->name == s->comm);
		found |= s->threads[i];
	}
	for (size_t i = 0; i < profile->samples.n && !found; i++)
		found = s->comm != SEAM_NONE &&
			seam_samples_comm(profile, i) == s->comm;
	if (found)
		return 0;
	return seam_err_set(err, -EINVAL, "cannot select the thread '%s': "
			    "the recording has none of that name or number",
			    seam_text_copy(shown, sizeof(shown), word,
					   SEAM_TEXT_TERMINAL));
}

/* A node of the selection's own stacks, as seam_profile_stack() does it. */
static uint32_t own_stack(struct seam_selected *s, struct seam_index *index,
			  uint32_t parent, uint32_t frame)
{
	uint64_t hash = seam_hash_u64((uint64_t)parent << 32 | frame);
	struct seam_index_probe probe = seam_index_probe(index, hash);
	struct seam_stack *slot;
	uint32_t id;

	while ((id = seam_index_next(index, &probe)) != SEAM_NONE)
		if (s->own.items[id].parent == parent &&
		    s->own.items[id].frame == frame)
			return id;
	id = (uint32_t)s->own.n;
	slot = SEAM_ARRAY_PUSH(&s->own);
	if (!slot || seam_index_add(index, hash, id))
		return SEAM_NONE;
	*slot = (struct seam_stack) { .parent = parent, .frame = frame };
	return id;
}

static bool stays(const struct seam_profile *profile, uint32_t frame_id,
		  const struct seam_selection *selection)
{
	const struct seam_frame *frame = &profile->frames.items[frame_id];
	uint8_t layer = profile->functions.items[frame->function].layer;

	return (selection->layers >> layer & 1) &&
	       !(selection->no_inline && frame->is_inlined);
}

/* Parents come before their children, so one pass in order does it. */
static int map_stacks(struct seam_selected *s, struct seam_index *index,
		      const struct seam_selection *selection)
{
	const struct seam_profile *profile = s->profile;
	struct seam_stack *root = SEAM_ARRAY_PUSH(&s->own);

	s->map = calloc(profile->stacks.n, sizeof(*s->map));
	if (!s->map || !root)
		return -ENOMEM;
	*root = profile->stacks.items[0];
	for (size_t i = 1; i < profile->stacks.n; i++) {
		const struct seam_stack *stack = &profile->stacks.items[i];
		uint32_t parent = s->map[stack->parent];

		s->map[i] = stays(profile, stack->frame, selection) ?
			    own_stack(s, index, parent, stack->frame) : parent;
		if (s->map[i] == SEAM_NONE)
			return -ENOMEM;
	}
	s->stacks = s->own.items;
	s->n_stacks = s->own.n;
	return 0;
}

static int leave_frames_out(struct seam_selected *s,
			    const struct seam_selection *selection,
			    struct seam_err *err)
{
	struct seam_index index = { 0 };
	int rc = map_stacks(s, &index, selection);

	seam_index_fini(&index);
	s->skips_empty = selection->layers != SEAM_ALL_LAYERS;
	return rc ? seam_err_set(err, rc, "out of memory") : 0;
}

int seam_selected_init(struct seam_selected *selected,
		       const struct seam_profile *profile,
		       const struct seam_selection *selection,
		       struct seam_err *err)
{
	int rc = 0;

	*selected = (struct seam_selected) {
		.profile = profile,
		.from_ns = selection->from_ns, .to_ns = selection->to_ns,
		.comm = SEAM_NONE, .event = SEAM_NONE,
		.stacks = profile->stacks.items, .n_stacks = profile->stacks.n,
	};
	if (selection->event)
		rc = find_event(selected, selection->event, err);
	if (!rc && selection->thread)
		rc = find_thread(selected, selection->thread, err);
	if (!rc && (selection->no_inline ||
		    selection->layers != SEAM_ALL_LAYERS))
		rc = leave_frames_out(selected, selection, err);
	if (rc)
		seam_selected_fini(selected);
	return rc;
}

void seam_selected_fini(struct seam_selected *selected)
{
	free(selected->threads);
	free(selected->map);
	free(selected->own.items);
	*selected = (struct seam_selected) { 0 };
}

uint32_t seam_selected_event(const struct seam_selected *selected)
{
	const struct seam_profile *profile = selected->profile;
	uint32_t only = SEAM_NONE;

	if (selected->event != SEAM_NONE)
		return selected->event;
	for (uint32_t i = 0; i < profile->events.n; i++) {
		if (profile->events.items[i].n_samples == 0)
			continue;
		if (only != SEAM_NONE)
			return SEAM_NONE;
		only = i;
	}
	return only;
}
