/* SPDX-License-Identifier: MIT */
/*
 * event_term.h - terms of any event, between slashes: event/period=1000/
 *
 *	period=N	a sample every N occurrences
 *	freq=HZ		samples per second
 *	name=TEXT	the event's name in reports
 *	call-graph=HOW	auto, fp or dwarf; "no": no call chains
 *	max-stack=N	maximum number of frames in a call chain
 *	no-inherit	only the threads that are named, not their children
 *
 * A term overrides, for its event, the option that is for all events.
 * Source: perf-record(1) of Linux 6.1, "-e".
 */
#ifndef SEAM_EVENT_TERM_H
#define SEAM_EVENT_TERM_H

#include "record/events/event.h"

/* Whether @term is the name of one of them. */
bool seam_event_term_is(const char *term);

/*
 * Apply one such term; @value NULL: it has none.  -EINVAL: an invalid value.
 */
int seam_event_term_set(struct seam_event *event, const char *term,
			const char *value, struct seam_err *err);

/*
 * Apply the list @terms ("period=1,name=x"), which is overwritten, to @n
 * events.  -EINVAL also for terms that contradict each other.
 */
int seam_event_terms_set(struct seam_event *events, size_t n, char *terms,
			 struct seam_err *err);

/* -EINVAL when the terms of @event contradict each other. */
int seam_event_terms_check(const struct seam_event *event,
			   struct seam_err *err);

#endif /* SEAM_EVENT_TERM_H */
