/* SPDX-License-Identifier: MIT */
/*
 * selection.h - a part of a profile
 *
 * One object that every report and export takes, so that a time range or a
 * layer has one meaning.  struct seam_selection has the user's words; struct
 * seam_selected is the same resolved for one profile: names looked up once,
 * and for each stack the stack without the frames that are not selected.  It
 * applies to samples, and in a timeline to calls and marks too.
 */
#pragma once

#include "model/profile/profile.h"

enum { SEAM_ALL_LAYERS = (1 << SEAM_N_LAYERS) - 1 };

struct seam_selection {
	uint64_t from_ns;	/* first time that counts */
	uint64_t to_ns;		/* first time that no longer counts */
	const char *thread;	/* tid in digits, or a name; NULL: all */
	/* The name of an event, or several with commas; NULL: all. */
	const char *event;
	bool by_latency;	/* weights are shared by the threads that ran */
	unsigned int layers;	/* bit 1 << layer; other frames are left out */
	bool no_inline;		/* leave inlined frames out */
	/*
	 * Only samples with this function, by its exact name, on their
	 * stack.  callers_of: the stack is inverted, from the innermost call
	 * of the function outward; callees_of: it begins at the outermost
	 * call.  At most one of them; or NULL.
	 */
	const char *callers_of;
	const char *callees_of;
	/*
	 * Samples with a function on their stack whose name or module
	 * contains this, in upper or lower case; or NULL.
	 */
	const char *search;
};

/* All of it. */
void seam_selection_init(struct seam_selection *selection);

/* "A,B" as seam_time_range_parse() takes it, in the profile's time. */
int seam_selection_time(struct seam_selection *selection,
			const struct seam_profile *profile, const char *text,
			struct seam_err *err);

/* "kernel,jit": one or more layer names.  -EINVAL as above. */
int seam_selection_layers(struct seam_selection *selection, const char *text,
			  struct seam_err *err);

/* Borrows the profile; seam_selected_fini() frees the rest. */
struct seam_selected {
	const struct seam_profile *profile;
	uint64_t from_ns, to_ns;
	bool *threads;		/* by thread: it counts; NULL: all do */
	uint32_t comm;		/* string: samples of that name count as well */
	/* The one that counts; SEAM_NONE: all do, or those of events. */
	uint32_t event;
	bool *events;		/* by event: it counts; or NULL */
	bool by_latency;	/* see seam_selected_weight() */
	uint32_t callers_of;	/* string; or SEAM_NONE */
	uint32_t callees_of;	/* string; or SEAM_NONE */
	unsigned int layers;	/* bit 1 << layer */
	const char *search;	/* borrowed; NULL: everything matches */
	bool *found;		/* by function: it matches search; or NULL */
	bool *found_stacks;	/* by stack: it has such a function; or NULL */
	/* The samples' stacks: the profile's, or own. */
	const struct seam_stack *stacks;
	size_t n_stacks;
	uint32_t *map;		/* from the profile's stacks; NULL: the same */
	bool skips_empty;	/* a sample with no frame left does not count */
	SEAM_ARRAY(struct seam_stack) own;
};

/*
 * Resolve @selection for @profile, whose stacks have parents with smaller ids
 * than their own.  0, -ENOMEM, or -EINVAL when the thread or event is
 * not in the profile; @selected needs no fini then.
 *
 * Cost: O(stacks) when frames are left out, else nearly nothing.
 */
int seam_selected_init(struct seam_selected *selected,
		       const struct seam_profile *profile,
		       const struct seam_selection *selection,
		       struct seam_err *err);
void seam_selected_fini(struct seam_selected *selected);

/*
 * The event whose samples are selected: that of the selection, or the only
 * one that has any.  SEAM_NONE when they are of several, whose weights have
 * different units and must not be added up.
 */
uint32_t seam_selected_event(const struct seam_selected *selected);

/*
 * The unit of the weights of what is selected: of one event, or of several that
 * the user named and that have one unit.  SEAM_NONE: there is none.
 */
uint32_t seam_selected_unit(const struct seam_selected *selected);

/* "sample", or "call" where all that is selected are calls. */
const char *seam_selected_noun(const struct seam_selected *selected);

/* How much of the recording's time is selected. */
uint64_t seam_selected_duration_ns(const struct seam_selected *selected);

/* The stack of sample @i as it is selected. */
static inline uint32_t seam_selected_stack(const struct seam_selected *s,
					   size_t i)
{
	uint32_t stack = s->profile->samples.stack[i];

	return s->map ? s->map[stack] : stack;
}

/* Whether samples of @event count. */
static inline bool seam_selected_has_event(const struct seam_selected *s,
					   uint32_t event)
{
	return s->events ? s->events[event] :
	       s->event == SEAM_NONE || s->event == event;
}

/*
 * The weight of sample @i.  By latency it is divided by the number of threads
 * that ran then: what would end sooner if the sample's code were faster.
 */
static inline uint64_t seam_selected_weight(const struct seam_selected *s,
					    size_t i)
{
	const struct seam_samples *samples = &s->profile->samples;
	uint64_t weight = seam_samples_weight(samples, i);
	uint16_t n = s->by_latency ? seam_samples_running(samples, i) : 0;

	return n > 1 ? (weight + n / 2) / n : weight;
}

/* Whether sample @i counts. */
static inline bool seam_selected_has(const struct seam_selected *s, size_t i)
{
	const struct seam_samples *samples = &s->profile->samples;

	if (samples->time_ns[i] < s->from_ns || samples->time_ns[i] >= s->to_ns)
		return false;
	if (!seam_selected_has_event(s, samples->event[i]))
		return false;
	if (s->threads && !s->threads[samples->thread[i]] &&
	    seam_samples_comm(s->profile, i) != s->comm)
		return false;
	if (s->found_stacks && !s->found_stacks[samples->stack[i]])
		return false;
	return !s->skips_empty || seam_selected_stack(s, i) != 0;
}

/* Where a call or a mark is in the recording. */
struct seam_instant {
	uint64_t time_ns;	/* of a call: when it began */
	uint32_t thread;
	uint32_t event;		/* SEAM_NONE: of none, which any selects */
	bool is_inside;		/* callers_of or callees_of is open there */
};

/* Whether a call of @function is one of callers_of's or callees_of's. */
bool seam_selected_is_entry(const struct seam_selected *selected,
			    uint32_t function);

/*
 * Whether a call of @function (SEAM_NONE: of none in the profile) counts: it
 * begins in the time, its function is of the layers and matches the search, and
 * where callers_of or callees_of is set, it is a call of that function or below
 * one, as the leaf of a sample would be.
 */
bool seam_selected_has_call(const struct seam_selected *selected,
			    const struct seam_instant *at, uint32_t function);

/*
 * Whether a custom or typed event counts: it lies in the time, native code is
 * of the layers, and its @data contains the search, where there is one.
 */
bool seam_selected_has_mark(const struct seam_selected *selected,
			    const struct seam_instant *at,
			    struct seam_bytes data);

/* Whether a loss counts: in the time, whatever layer or name is selected. */
bool seam_selected_has_loss(const struct seam_selected *selected,
			    const struct seam_instant *at);
