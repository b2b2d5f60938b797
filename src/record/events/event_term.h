/* SPDX-License-Identifier: MIT */
/*
 * event_term.h - what any event takes between slashes: event/period=1000/
 *
 *	period=N	a sample each N occurrences
 *	freq=HZ		samples a second
 *	name=TEXT	what reports call the event
 *	call-graph=fp	record call chains; "no": none
 *	max-stack=N	frames of a call chain, at most
 *	no-inherit	only the threads that are watched, not their children
 *
 * A term overrides what the command line says of all events.
 * Source: perf-record(1) of Linux 6.1, "-e".
 */
#ifndef SEAM_EVENT_TERM_H
#define SEAM_EVENT_TERM_H

#include "record/events/event.h"

/* Whether @term is one of the above. */
bool seam_event_term_is(const char *term);

/*
 * Apply one such term; @value NULL: it has none.  -EINVAL for a value that
 * does not fit, -ENOTSUP for one of perf's that is not supported.
 */
int seam_event_term_set(struct seam_event *event, const char *term,
			const char *value, struct seam_err *err);

/*
 * Apply the list @terms ("period=1,name=x"), which is cut into pieces, to
 * @n events.  -EINVAL also for terms that contradict each other.
 */
int seam_event_terms_set(struct seam_event *events, size_t n, char *terms,
			 struct seam_err *err);

/* -EINVAL when the terms of @event contradict each other. */
int seam_event_terms_check(const struct seam_event *event,
			   struct seam_err *err);

#endif /* SEAM_EVENT_TERM_H */
