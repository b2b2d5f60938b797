/* SPDX-License-Identifier: MIT */
/*
 * stray_exits.c - find stray exits by looking ahead
 *
 * An exit of a function without an open call either ends a call that began
 * before the log, and then all open calls have ended too, or it is stray: an
 * exit of an open call follows.  One pass over the rest of the thread, or up to
 * where records were lost, decides that for all of them from the first on.  The
 * pass ends no call at such an exit: a call with an exit of its own later was
 * open all the time, and a call without one changes no result.
 *
 * A log may have such places by the million, so what a pass needs is kept for
 * the next one: its array by function is a megabyte.
 *
 * The exit of a call under the top one ends the calls above, as an exception
 * does; but it is stray where the top call's own exit comes next.  Only a few
 * records are read to decide that.
 */
#include "model/xray/calls.h"

#include <errno.h>
#include <stdlib.h>

#include "model/xray/trace.h"

enum { NEARBY = 64 };			/* events */

/* An exit without an open call, not known to be stray so far. */
struct unmatched_exit {
	struct seam_odd_exit exit;
	size_t n;			/* calls->n when it came */
};

struct seam_calls_follower {
	struct seam_calls calls;	/* that would be open */
	SEAM_ARRAY(struct unmatched_exit) unmatched;	/* by rising n */
	struct seam_trace_reader reader;
	struct seam_xray_batch batch;
	bool is_over;			/* records were lost */
};

static const struct seam_calls_sink no_sink = { 0 };

static void follow_exit(struct seam_calls_follower *f,
			const struct seam_xray_event *event)
{
	struct seam_calls *calls = &f->calls;
	uint32_t slot, left;

	if (calls->too_deep) {
		calls->too_deep--;
		return;
	}
	slot = seam_calls_slot(calls, event->function);
	if (slot == SEAM_NONE)
		return;
	if (calls->active.items[slot] == 0) {
		if (!SEAM_ARRAY_ADD(&f->unmatched, (struct unmatched_exit) {
			{ event->tsc, event->function }, calls->n }))
			calls->error = -ENOMEM;
		return;
	}
	do {
		left = calls->calls[calls->n - 1].function;
		seam_calls_leave(calls, event->tsc, &no_sink, NULL);
	} while (left != event->function);
	/* these are stray: the call was open, and now its own exit came */
	while (f->unmatched.n &&
	       f->unmatched.items[f->unmatched.n - 1].n > calls->n)
		f->unmatched.n--;
}

static void follow(struct seam_calls_follower *f,
		   const struct seam_xray_batch *batch, size_t from)
{
	for (size_t i = from; i < batch->n && !f->calls.error; i++) {
		const struct seam_xray_event *event = &batch->events[i];

		f->is_over = seam_calls_is_gap(batch, event);
		if (f->is_over)
			return;
		if (event->kind == SEAM_XRAY_ENTRY ||
		    event->kind == SEAM_XRAY_ENTRY_ARGS)
			seam_calls_enter(&f->calls, event->function, event->tsc,
					 &no_sink, NULL);
		else if (event->kind <= SEAM_XRAY_TAIL_EXIT)
			follow_exit(f, event);
	}
}

static void follow_rest(struct seam_calls_follower *f,
			const struct seam_calls *calls,
			const struct seam_xray_event *event)
{
	size_t n_shadow;

	f->unmatched.n = 0;
	f->is_over = false;
	seam_calls_begin(&f->calls);
	if (!f->calls.n)
		return;
	for (size_t i = 1; i < calls->n; i++)
		seam_calls_enter(&f->calls, calls->calls[i].function, 0,
				 &no_sink, NULL);
	f->calls.too_deep = calls->too_deep;
	follow(f, calls->batch, (size_t)(event - calls->batch->events));
	f->reader = *calls->reader;
	f->reader.end_block = f->reader.stream->n_blocks;
	while (!f->calls.error && !f->is_over &&
	       seam_trace_next(&f->reader, &f->batch, &n_shadow))
		follow(f, &f->batch, 0);
}

static int set_not_stray(struct seam_calls *calls,
			 const struct seam_calls_follower *f)
{
	size_t n = f->unmatched.n;

	calls->not_stray.n = 0;
	if (!SEAM_ARRAY_RESERVE(&calls->not_stray, n))
		return -ENOMEM;
	for (size_t i = 0; i < n; i++)
		calls->not_stray.items[i] = f->unmatched.items[i].exit;
	calls->not_stray.n = n;
	SEAM_ARRAY_SORT(&calls->not_stray, seam_odd_exit_compare);
	return 0;
}

int seam_calls_find_strays(struct seam_calls *calls,
			   const struct seam_xray_event *event)
{
	struct seam_calls_follower *f = calls->follower;

	if (!f)
		f = calls->follower = calloc(1, sizeof(*f));
	if (!f)
		return -ENOMEM;
	follow_rest(f, calls, event);
	return f->calls.error ? f->calls.error : set_not_stray(calls, f);
}

void seam_calls_free_follower(struct seam_calls *calls)
{
	struct seam_calls_follower *f = calls->follower;

	if (!f)
		return;
	seam_calls_fini(&f->calls);
	free(f->unmatched.items);
	free(f);
	calls->follower = NULL;
}

/* Calls entered after an exit, up to the exit of none of them. */
struct lookahead {
	uint32_t open[NEARBY];
	size_t n, n_seen;
};

/* Whether to stop at @event; *@function is set if it is that exit. */
static bool is_last(struct lookahead *l, const struct seam_xray_event *event,
		    uint32_t *function)
{
	if (event->kind == SEAM_XRAY_ENTRY ||
	    event->kind == SEAM_XRAY_ENTRY_ARGS) {
		l->open[l->n++] = event->function;
	} else if (event->kind <= SEAM_XRAY_TAIL_EXIT) {
		if (l->n == 0)
			*function = event->function;
		if (l->n == 0 || l->open[--l->n] != event->function)
			return true;
	}
	return ++l->n_seen == NEARBY;
}

uint32_t seam_calls_next_exit(struct seam_calls *calls,
			      const struct seam_xray_event *event)
{
	const struct seam_xray_batch *batch = calls->batch;
	struct seam_calls_follower *f = NULL;
	struct lookahead l = { .n = 0 };
	uint32_t function = SEAM_NONE;
	size_t i = (size_t)(event - batch->events) + 1, n_shadow;

	for (;; i = 0) {
		for (; i < batch->n; i++)
			if (seam_calls_is_gap(batch, &batch->events[i]) ||
			    is_last(&l, &batch->events[i], &function))
				goto out;
		if (!f) {
			f = calloc(1, sizeof(*f));
			if (!f)
				break;
			f->reader = *calls->reader;
			f->reader.end_block = f->reader.stream->n_blocks;
			batch = &f->batch;
		}
		if (!seam_trace_next(&f->reader, &f->batch, &n_shadow))
			break;
	}
out:
	free(f);
	return function;
}
