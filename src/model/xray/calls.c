/* SPDX-License-Identifier: MIT */
/* calls.c - growth and the repairs; the hot path is in calls.h */
#include "model/xray/calls.h"

#include <errno.h>
#include <stdlib.h>

#include "base/hash.h"

enum {
	FIRST_SLOTS = 1 << 8,
	NEARBY = 64,			/* events to look ahead */
};

const struct seam_repair_words seam_repairs[SEAM_N_REPAIRS] = {
	[SEAM_REPAIR_EXIT] = { "missing_exit", "repaired",
		"call without an exit (exception, longjmp)",
		"calls without an exit (exception, longjmp)" },
	[SEAM_REPAIR_ENTRY] = { "missing_entry", "repaired",
		"call that began before the log",
		"calls that began before the log" },
	[SEAM_REPAIR_STRAY] = { "stray_exit", "ignored",
		"exit of a function that was not open",
		"exits of functions that were not open" },
	[SEAM_REPAIR_UNFINISHED] = { "unfinished", "repaired",
		"call that was open at the end",
		"calls that were open at the end" },
	[SEAM_REPAIR_CUT] = { "cut_off", "repaired",
		"call that was open where records were lost",
		"calls that were open where records were lost" },
	[SEAM_REPAIR_GAPS] = { "gaps", "lost", "run of records",
		"runs of records" },
	[SEAM_REPAIR_LOST] = { "lost_records", "lost", "record of calls",
		"records of calls" },
	[SEAM_REPAIR_DEPTH] = { "too_deep", "lost",
		"call that was nested too deep",
		"calls that were nested too deep" },
	[SEAM_REPAIR_CLOCK] = { "clock", "repaired",
		"step back of a thread's clock",
		"steps back of a thread's clock" },
	[SEAM_REPAIR_EXTENTS] = { "extents", "repaired",
		"block of a wrong length", "blocks of a wrong length" },
};

/* Room for the data of slots below @need. */
static int grow_slots(struct seam_calls *calls, size_t need)
{
	size_t n = calls->active.n ? calls->active.n : FIRST_SLOTS;

	while (n < need)
		n *= 2;
	if (!SEAM_ARRAY_GROW(&calls->active, n))
		return -ENOMEM;
	calls->functions.n_small = n < SEAM_CALLS_SMALL ? (uint32_t)n :
				   SEAM_CALLS_SMALL;
	return 0;
}

uint32_t seam_calls_add_function(struct seam_calls *calls, uint32_t id)
{
	struct seam_call_functions *f = &calls->functions;
	uint64_t hash = seam_hash_u64(id);
	uint32_t at;

	if (id < SEAM_CALLS_SMALL) {
		if (!grow_slots(calls, (size_t)id + 1))
			return id;
		calls->error = -ENOMEM;
		return SEAM_NONE;
	}
	at = SEAM_INDEX_FIND(&f->index, hash, i, f->large.items[i] == id);
	if (at == SEAM_NONE &&
	    !grow_slots(calls, SEAM_CALLS_SMALL + f->large.n + 1))
		at = SEAM_INDEX_APPEND(&f->index, hash, &f->large, id);
	if (at == SEAM_NONE) {
		calls->error = -ENOMEM;
		return SEAM_NONE;
	}
	return SEAM_CALLS_SMALL + at;
}

bool seam_calls_reserve(struct seam_calls *calls, size_t n)
{
	size_t cap = calls->cap;
	void *p;

	if (n <= cap - calls->n)
		return true;
	if (n > SEAM_CALLS_MAX_DEPTH - calls->n)
		return false;
	p = seam_array_reserve(calls->calls, &calls->cap, calls->n + n,
			       sizeof(*calls->calls));
	if (!p) {
		calls->error = -ENOMEM;
		return false;
	}
	calls->calls = p;
	memset(calls->calls + cap, 0, (calls->cap - cap) *
	       sizeof(*calls->calls));
	return true;
}

bool seam_calls_grow(struct seam_calls *calls)
{
	if (calls->n < SEAM_CALLS_MAX_DEPTH)
		return seam_calls_reserve(calls, 1);
	calls->too_deep++;
	calls->repairs[SEAM_REPAIR_DEPTH]++;
	return false;
}

void seam_calls_begin(struct seam_calls *calls)
{
	while (calls->n > 1)
		calls->active.items[calls->calls[--calls->n].slot]--;
	calls->n = 0;
	calls->start_ns = calls->last_ns = calls->before_ns = 0;
	calls->too_deep = 0;
	calls->unseen.n = 0;
	if (calls->cap || seam_calls_grow(calls))
		calls->calls[calls->n++] = (struct seam_call) {
			.function = SEAM_NONE, .slot = SEAM_NONE,
		};
}

void seam_calls_fini(struct seam_calls *calls)
{
	free(calls->calls);
	free(calls->functions.large.items);
	seam_index_fini(&calls->functions.index);
	free(calls->active.items);
	free(calls->unseen.items);
	free(calls->later.items);
	free(calls->strays.items);
	*calls = (struct seam_calls) { 0 };
}

static void enter(struct seam_calls *calls, uint32_t function, uint64_t ns,
		  const struct seam_calls_sink *sink, void *context)
{
	seam_calls_enter_at(calls, calls->n, function, ns, sink, context);
}

/* End the top call at @ns. */
static void leave(struct seam_calls *calls, uint64_t ns,
		  const struct seam_calls_sink *sink, void *context)
{
	seam_calls_leave_at(calls, calls->n, ns, sink, context);
}

void seam_calls_preset(struct seam_calls *calls, uint32_t function,
		       uint64_t ns, const struct seam_calls_sink *sink,
		       void *context)
{
	calls->repairs[SEAM_REPAIR_ENTRY]++;
	enter(calls, function, ns, sink, context);
}

void seam_calls_end(struct seam_calls *calls,
		    const struct seam_calls_sink *sink, void *context)
{
	while (calls->n > 1) {
		calls->repairs[SEAM_REPAIR_UNFINISHED]++;
		leave(calls, calls->last_ns, sink, context);
	}
}

size_t seam_calls_take_entry(struct seam_calls *calls,
			     const struct seam_xray_batch *batch, size_t i,
			     size_t to, const struct seam_calls_sink *sink,
			     void *context)
{
	const struct seam_xray_event *event = &batch->events[i];
	uint64_t too_deep = calls->too_deep;
	size_t n = calls->n;

	enter(calls, event->function, event->tsc, sink, context);
	calls->too_deep = too_deep;	/* it has no exit to ignore */
	for (; i + 1 < to && batch->events[i + 1].kind == SEAM_XRAY_ARGUMENT;
	     i++)
		if (sink->event && calls->n > n)
			sink->event(context, calls, batch,
				    &batch->events[i + 1]);
	if (calls->n > n)
		leave(calls, event->tsc, sink, context);
	return i;
}

void seam_calls_open_later(struct seam_calls *calls,
			   const struct seam_calls_sink *sink, void *context)
{
	const uint32_t *functions = calls->later.items;
	size_t from = calls->next_later, to = from;

	while (to < calls->later.n && functions[to] != SEAM_NONE)
		to++;
	calls->next_later = to + (to < calls->later.n);
	while (to > from && !calls->error)
		seam_calls_preset(calls, functions[--to], calls->start_ns,
				  sink, context);
}

/* The time of the event before @event, of @batch. */
static uint64_t time_before(const struct seam_calls *calls,
			    const struct seam_xray_batch *batch,
			    const struct seam_xray_event *event)
{
	uint64_t ns = calls->before_ns;

	while (event-- > batch->events) {
		/* an argument has its value where others have their time */
		if (event->kind == SEAM_XRAY_ARGUMENT)
			continue;
		ns = event->tsc;
		break;
	}
	return ns > calls->start_ns ? ns : calls->start_ns;
}

void seam_calls_cut(struct seam_calls *calls,
		    const struct seam_xray_batch *batch,
		    const struct seam_xray_event *event,
		    const struct seam_calls_sink *sink, void *context)
{
	uint64_t ns = time_before(calls, batch, event);

	calls->repairs[SEAM_REPAIR_GAPS]++;
	seam_repairs_add(&calls->repairs[SEAM_REPAIR_LOST],
			 seam_xray_n_lost(&batch->payloads[event->function]));
	while (calls->n > 1) {
		calls->repairs[SEAM_REPAIR_CUT]++;
		leave(calls, ns, sink, context);
	}
	/* nothing of before the gap is of use to what follows */
	calls->calls[0].child_ns = 0;
	calls->calls[0].tail = 0;
	calls->start_ns = event->tsc;
	calls->too_deep = 0;
	if (calls->is_first_pass && !SEAM_ARRAY_ADD(&calls->unseen, SEAM_NONE))
		calls->error = -ENOMEM;
	if (sink->event)
		sink->event(context, calls, batch, event);
	seam_calls_open_later(calls, sink, context);
}

/*
 * The exit of a call that began before the log, or where records were lost:
 * all open calls have ended too, and everything since then was in that call.
 */
static void end_unseen(struct seam_calls *calls, uint32_t function,
		       uint64_t ns, const struct seam_calls_sink *sink,
		       void *context)
{
	struct seam_call *root = &calls->calls[0];
	uint64_t child_ns;

	if (!SEAM_ARRAY_ADD(&calls->unseen, function)) {
		calls->error = -ENOMEM;
		return;
	}
	while (calls->n > 1) {
		calls->repairs[SEAM_REPAIR_EXIT]++;
		leave(calls, ns, sink, context);
	}
	child_ns = root->child_ns;
	calls->repairs[SEAM_REPAIR_ENTRY]++;
	enter(calls, function, calls->start_ns, sink, context);
	if (calls->n != 2)
		return;
	calls->calls[0].child_ns = 0;
	calls->calls[1].child_ns = child_ns;
	leave(calls, ns, sink, context);
}

/* Whether an open call's last callee to tail-exit was of @function. */
static bool made_a_tail_call(const struct seam_calls *calls, uint32_t function)
{
	size_t depth = 0;

	/* a few levels: the callee of a tail call ends soon */
	for (size_t i = calls->n; i-- > 0 && depth < 16; depth++)
		if (calls->calls[i].tail == function + 1)
			return true;
	return false;
}

static void end_top(struct seam_calls *calls,
		    const struct seam_xray_event *event,
		    const struct seam_calls_sink *sink, void *context)
{
	calls->by_tail = event->kind == SEAM_XRAY_TAIL_EXIT;
	leave(calls, event->tsc, sink, context);
	calls->by_tail = false;
	if (event->kind == SEAM_XRAY_TAIL_EXIT)
		calls->calls[calls->n - 1].tail = event->function + 1;
}

/* What follows an exit. */
struct lookahead {
	struct seam_calls *calls;
	bool wants_open;	/* look for the exit of an open call only */
	size_t n_seen;
	size_t n;		/* calls entered since, and not left */
	uint32_t entered[NEARBY];
	uint32_t function;	/* of the exit that was found; SEAM_NONE */
};

/* The exit of @function: whether the search ends with it. */
static bool is_last(struct lookahead *l, uint32_t function)
{
	uint32_t slot;

	for (size_t i = l->n; i-- > 0;) {
		if (l->entered[i] == function) {
			l->n = i;
			return false;
		}
		/* an exception: any exit could follow */
		if (!l->wants_open)
			return true;
	}
	slot = seam_calls_slot(l->calls, function);
	if (l->wants_open && (slot == SEAM_NONE ||
			      l->calls->active.items[slot] == 0))
		return false;
	l->function = function;
	return true;
}

/* Look at events of @batch from @i on.  True: the search is over. */
static bool look_at(struct lookahead *l, const struct seam_xray_batch *batch,
		    size_t i)
{
	for (; i < batch->n && l->n_seen < NEARBY; i++, l->n_seen++) {
		const struct seam_xray_event *event = &batch->events[i];

		if (seam_calls_is_gap(batch, event))
			return true;
		if (event->kind == SEAM_XRAY_ENTRY ||
		    event->kind == SEAM_XRAY_ENTRY_ARGS)
			l->entered[l->n++] = event->function;
		else if (event->kind <= SEAM_XRAY_TAIL_EXIT &&
			 is_last(l, event->function))
			return true;
	}
	return l->n_seen == NEARBY;
}

/*
 * The function of the next exit, among NEARBY records, that ends no call begun
 * after @event; with @wants_open, of the next that ends a call that is open.
 * SEAM_NONE: there is none; *@is_over: the search ended before NEARBY records.
 * Cost: the decoding of these records.
 */
static uint32_t next_exit(struct seam_calls *calls,
			  const struct seam_xray_event *event, bool wants_open,
			  bool *is_over)
{
	struct lookahead l = {
		.calls = calls, .wants_open = wants_open, .function = SEAM_NONE,
	};
	size_t i = (size_t)(event - calls->batch->events) + 1, n_shadow;
	bool done = look_at(&l, calls->batch, i);
	struct {
		struct seam_trace_reader reader;
		struct seam_xray_batch batch;
	} *ahead = NULL;	/* reads on after the batch that is fed */

	if (!done) {
		ahead = malloc(sizeof(*ahead));
		if (ahead)
			ahead->reader = *calls->reader;
		else
			calls->error = -ENOMEM;
	}
	while (!done && ahead &&
	       seam_trace_next(&ahead->reader, &ahead->batch, &n_shadow))
		done = look_at(&l, &ahead->batch, 0);
	free(ahead);
	*is_over = l.n_seen < NEARBY;
	return l.function;
}

/*
 * Whether @event, of no open call, is stray.  Else all open calls have ended:
 * what ends many calls by mistake does more harm than what ends none, so it is
 * stray where the records nearby do not tell.
 */
static bool is_stray(struct seam_calls *calls,
		     const struct seam_xray_event *event)
{
	bool is_over;

	if (calls->n <= 1 || !calls->reader)
		return false;
	return next_exit(calls, event, true, &is_over) != SEAM_NONE ||
	       !is_over;
}

static void ignore_stray(struct seam_calls *calls,
			 const struct seam_xray_event *event)
{
	calls->repairs[SEAM_REPAIR_STRAY]++;
	if (calls->is_first_pass &&
	    !SEAM_ARRAY_ADD(&calls->strays, (struct seam_unmatched_exit) {
		event->tsc, event->function }))
		calls->error = -ENOMEM;
}

/*
 * Whether a first pass found @event to be stray.  In the second pass, calls
 * from before the log are open, perhaps one of the same function.
 */
static bool was_stray(struct seam_calls *calls,
		      const struct seam_xray_event *event)
{
	const struct seam_unmatched_exit *next;

	if (calls->is_first_pass || calls->next_stray >= calls->strays.n)
		return false;
	next = &calls->strays.items[calls->next_stray];
	if (next->ns != event->tsc || next->function != event->function)
		return false;
	calls->next_stray++;
	return true;
}

/*
 * Whether the exit @event, of a call under the top one, is stray: the top
 * call's own exit follows, and no call of its function is open under the one
 * that @event would end, to which that exit could belong.
 */
static bool is_early(struct seam_calls *calls,
		     const struct seam_xray_event *event)
{
	const struct seam_call *top = &calls->calls[calls->n - 1];
	size_t i = calls->n - 1, lowest = calls->n > 64 ? calls->n - 64 : 1;
	uint32_t above = 0;
	bool is_over;

	if (!calls->reader)
		return false;
	for (; i >= lowest && calls->calls[i].function != event->function; i--)
		above += calls->calls[i].function == top->function;
	return i >= lowest && above == calls->active.items[top->slot] &&
	       next_exit(calls, event, false, &is_over) == top->function;
}

void seam_calls_repair(struct seam_calls *calls,
		       const struct seam_xray_event *event,
		       const struct seam_calls_sink *sink, void *context)
{
	uint32_t function = event->function, slot;
	bool is_open;

	if (calls->too_deep) {
		calls->too_deep--;
		return;
	}
	if (calls->n > 1 && calls->calls[calls->n - 1].function == function) {
		end_top(calls, event, sink, context);	/* a tail exit */
		return;
	}
	if (was_stray(calls, event)) {
		ignore_stray(calls, event);
		return;
	}
	slot = seam_calls_slot(calls, function);
	if (slot == SEAM_NONE)
		return;
	is_open = calls->active.items[slot] > 0;
	if (is_open ? is_early(calls, event) :
	    made_a_tail_call(calls, function) || is_stray(calls, event)) {
		ignore_stray(calls, event);
		return;
	}
	if (!is_open) {
		end_unseen(calls, function, event->tsc, sink, context);
		return;
	}
	while (calls->calls[calls->n - 1].function != function) {
		calls->repairs[SEAM_REPAIR_EXIT]++;
		leave(calls, event->tsc, sink, context);
	}
	end_top(calls, event, sink, context);
}
