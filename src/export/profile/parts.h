/* SPDX-License-Identifier: MIT */
/*
 * parts.h - what of a profile an export of a whole profile has to write
 *
 * One pass over the samples finds the events and threads that are selected;
 * the rest reads the profile.
 */
#pragma once

#include "export/exporter.h"
#include "model/profile/timeline.h"

/* More events are no recording, and each of them is a pass over the samples. */
enum { SEAM_PARTS_EVENTS = 64 };

struct seam_parts {
	const struct seam_selected *selected;
	const struct seam_profile *profile;
	/* that have selected samples; [0]: what the file shows first */
	uint32_t events[SEAM_PARTS_EVENTS];
	size_t n_events;
	bool *threads;		/* by thread: it has samples or calls */
	uint64_t n_samples;	/* rows, without those of measured events */
	uint64_t n_frames;	/* of the stacks of these rows */
	uint64_t n_without_stack;
	struct seam_timelines timelines;
};

/*
 * 0 or -errno: -ENOMEM, -E2BIG for too many events, -EOVERFLOW for too many
 * samples.  The selection must outlive @parts; seam_parts_fini() is due in any
 * case.
 */
int seam_parts_init(struct seam_parts *parts,
		    const struct seam_selected *selected, struct seam_err *err);
void seam_parts_fini(struct seam_parts *parts);

static inline const struct seam_profile_event *
seam_parts_event(const struct seam_parts *parts, size_t i)
{
	return &parts->profile->events.items[parts->events[i]];
}

/* Whether sample @i is one wait: not the sum of short ones, or no wait. */
bool seam_parts_is_interval(const struct seam_parts *parts, size_t i);

/* How many threads have samples or calls. */
size_t seam_parts_n_threads(const struct seam_parts *parts);

/* The frames of each stack of the selection; NULL: no memory.  For free(). */
uint32_t *seam_parts_depths(const struct seam_selected *selected);

/*
 * The calls and waits that are selected, by the binary logarithm of their
 * nanoseconds; [64]: those of the program's own events and losses.
 */
struct seam_durations {
	uint64_t n[65];
	uint64_t n_calls;
	bool *functions;	/* by function: it was called; or NULL */
};

/*
 * @durations: zeroed but for functions, which are borrowed.  0 or -errno.
 * Reads all logs: about 40 ns a record.
 */
int seam_parts_durations(const struct seam_parts *parts,
			 struct seam_durations *durations);

/* The index into struct seam_durations. */
static inline unsigned int seam_duration_class(uint64_t ns)
{
	return ns ? 63 - (unsigned int)__builtin_clzll(ns) : 0;
}

/*
 * The calls of a thread that are open, for formats in which an end belongs to
 * the call that began last.  Zeroed is valid; free(items) ends it.
 */
struct seam_open_calls {
	uint32_t *items;	/* functions */
	size_t n, cap;
};

/* 1: @item begins or ends a call.  0: an end without its begin.  -ENOMEM. */
int seam_open_calls_take(struct seam_open_calls *open,
			 const struct seam_item *item);

/* What a custom or typed event or a loss is called.  Returns @text. */
enum { SEAM_INSTANT_NAME = 32 };
const char *seam_instant_name(const struct seam_item *item,
			      char text[SEAM_INSTANT_NAME]);

/* The bytes of such an event as text, cut: JSON, text or hexadecimal. */
enum { SEAM_INSTANT_DATA = 512 };
const char *seam_instant_data(struct seam_bytes data,
			      char text[SEAM_INSTANT_DATA]);

/* The name of @function of the profile; SEAM_NONE: "unknown". */
const char *seam_parts_function(const struct seam_parts *parts,
				uint32_t function);
