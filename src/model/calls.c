/* SPDX-License-Identifier: MIT */
/* calls.c - growth and the repairs; the hot path is in calls.h */
#include "model/calls.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>

enum { FIRST_BITS = 8 };

static const struct {
	const char *name, *text;
} repairs[SEAM_N_REPAIRS] = {
	[SEAM_REPAIR_EXIT] = { "missing_exit",
		"calls without an exit (exception, longjmp)" },
	[SEAM_REPAIR_ENTRY] = { "missing_entry",
		"calls that began before the log" },
	[SEAM_REPAIR_STRAY] = { "stray_exit",
		"exits behind a tail exit of the same call" },
	[SEAM_REPAIR_UNFINISHED] = { "unfinished",
		"calls that were open at the end" },
	[SEAM_REPAIR_DEPTH] = { "too_deep", "calls too deep to be kept" },
	[SEAM_REPAIR_CLOCK] = { "clock", "steps back of a thread's clock" },
	[SEAM_REPAIR_EXTENTS] = { "extents", "blocks of a wrong length" },
};

const char *seam_repair_name(enum seam_repair repair)
{
	return repairs[repair].name;
}

const char *seam_repair_text(enum seam_repair repair)
{
	return repairs[repair].text;
}

/* A table of twice the size, or the first one. */
static int grow_table(struct seam_call_functions *f)
{
	unsigned int bits = f->table ? f->bits + 1 : FIRST_BITS;
	size_t size = (size_t)1 << bits;
	uint32_t *table = malloc(size * sizeof(*table));

	if (!table)
		return -ENOMEM;
	memset(table, 0xff, size * sizeof(*table));
	for (uint32_t slot = 0; slot < f->n; slot++) {
		uint32_t at;

		if (f->ids[slot] < SEAM_CALLS_DIRECT)
			continue;
		at = (f->ids[slot] * UINT32_C(0x9e3779b1)) >>
			      (32 - bits);

		while (table[at] != SEAM_NONE)
			at = (at + 1) & (uint32_t)(size - 1);
		table[at] = slot;
	}
	free(f->table);
	f->table = table;
	f->bits = bits;
	return 0;
}

static int grow_columns(struct seam_calls *calls)
{
	struct seam_call_functions *f = &calls->functions;
	void *p = seam_array_reserve(f->ids, &f->cap, f->n + 1,
				     sizeof(*f->ids));

	if (p)
		f->ids = p;
	if (p && f->cap > calls->active_cap) {
		p = realloc(calls->active, f->cap * sizeof(*calls->active));
		if (p) {
			calls->active = p;
			memset(calls->active + calls->active_cap, 0,
			       (f->cap - calls->active_cap) *
			       sizeof(*calls->active));
			calls->active_cap = f->cap;
		}
	}
	return p ? 0 : -ENOMEM;
}

/* So that @id, which is small, is below n_direct. */
static int grow_direct(struct seam_call_functions *f, uint32_t id)
{
	uint32_t n = f->n_direct ? f->n_direct : 256;
	uint32_t *moved;

	while (n <= id)
		n *= 2;
	moved = realloc(f->direct, n * sizeof(*moved));
	if (!moved)
		return -ENOMEM;
	memset(moved + f->n_direct, 0xff, (n - f->n_direct) * sizeof(*moved));
	f->direct = moved;
	f->n_direct = n;
	return 0;
}

uint32_t seam_calls_add_function(struct seam_calls *calls, uint32_t id)
{
	struct seam_call_functions *f = &calls->functions;
	bool is_small = id < SEAM_CALLS_DIRECT;
	uint32_t at, mask;

	if (f->n >= SEAM_CALLS_MAX_FUNCTIONS || grow_columns(calls) ||
	    (is_small && id >= f->n_direct && grow_direct(f, id)) ||
	    (!is_small && (!f->table ||
			   2 * (f->n + 1) > (size_t)1 << f->bits) &&
	     grow_table(f))) {
		calls->error = -ENOMEM;
		return SEAM_NONE;
	}
	if (is_small) {
		if (f->direct[id] == SEAM_NONE) {
			f->ids[f->n] = id;
			f->direct[id] = (uint32_t)f->n++;
		}
		return f->direct[id];
	}
	mask = (UINT32_C(1) << f->bits) - 1;
	at = (id * UINT32_C(0x9e3779b1)) >> (32 - f->bits);
	while (f->table[at] != SEAM_NONE)
		at = (at + 1) & mask;
	f->table[at] = (uint32_t)f->n;
	f->ids[f->n] = id;
	return (uint32_t)f->n++;
}

bool seam_calls_grow(struct seam_calls *calls)
{
	void *p;

	if (calls->n >= SEAM_CALLS_MAX_DEPTH) {
		calls->too_deep++;
		calls->repairs[SEAM_REPAIR_DEPTH]++;
		return false;
	}
	p = seam_array_reserve(calls->calls, &calls->cap, calls->n + 1,
			       sizeof(*calls->calls));
	if (!p) {
		calls->error = -ENOMEM;
		return false;
	}
	calls->calls = p;
	return true;
}

void seam_calls_begin(struct seam_calls *calls)
{
	while (calls->n > 1)
		calls->active[calls->calls[--calls->n].slot]--;
	calls->n = 0;
	calls->start_ns = calls->last_ns = 0;
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
	free(calls->functions.ids);
	free(calls->functions.table);
	free(calls->functions.direct);
	free(calls->active);
	free(calls->unseen.items);
	*calls = (struct seam_calls) { 0 };
}

void seam_calls_preset(struct seam_calls *calls, uint32_t function,
		       uint64_t ns, const struct seam_calls_sink *sink,
		       void *context)
{
	seam_calls_enter(calls, function, ns, sink, context);
	calls->repairs[SEAM_REPAIR_ENTRY]++;
}

void seam_calls_end(struct seam_calls *calls,
		    const struct seam_calls_sink *sink, void *context)
{
	while (calls->n > 1) {
		calls->repairs[SEAM_REPAIR_UNFINISHED]++;
		seam_calls_leave(calls, calls->last_ns, sink, context);
	}
}

/*
 * The exit of a call that began before the log: so did all that is open now
 * end, and what this thread did so far was done for that call.
 */
static void end_unseen(struct seam_calls *calls, uint32_t function,
		       uint64_t ns, const struct seam_calls_sink *sink,
		       void *context)
{
	struct seam_call *root = &calls->calls[0];
	uint32_t *unseen = SEAM_ARRAY_PUSH(&calls->unseen);
	uint64_t child_ns;

	if (!unseen) {
		calls->error = -ENOMEM;
		return;
	}
	*unseen = function;
	while (calls->n > 1) {
		calls->repairs[SEAM_REPAIR_EXIT]++;
		seam_calls_leave(calls, ns, sink, context);
	}
	child_ns = root->child_ns;
	seam_calls_enter(calls, function, calls->start_ns, sink, context);
	if (calls->n != 2)
		return;
	calls->repairs[SEAM_REPAIR_ENTRY]++;
	calls->calls[0].child_ns = 0;
	calls->calls[1].child_ns = child_ns;
	seam_calls_leave(calls, ns, sink, context);
}

/* Whether a call of @function is open, or only its tail call is. */
static bool made_a_tail_call(const struct seam_calls *calls, uint32_t function)
{
	size_t depth = 0;

	/* a few levels: the callee of a tail call is close to its end */
	for (size_t i = calls->n; i-- > 0 && depth < 16; depth++)
		if (calls->calls[i].tail == function + 1)
			return true;
	return false;
}

static void leave(struct seam_calls *calls, const struct seam_xray_event *event,
		  const struct seam_calls_sink *sink, void *context)
{
	calls->by_tail = event->kind == SEAM_XRAY_TAIL_EXIT;
	seam_calls_leave(calls, event->tsc, sink, context);
	calls->by_tail = false;
	if (event->kind == SEAM_XRAY_TAIL_EXIT)
		calls->calls[calls->n - 1].tail = event->function + 1;
}

void seam_calls_repair(struct seam_calls *calls,
		       const struct seam_xray_event *event,
		       const struct seam_calls_sink *sink, void *context)
{
	uint32_t function = event->function, slot;

	if (calls->too_deep) {
		calls->too_deep--;
		return;
	}
	if (calls->n > 1 && calls->calls[calls->n - 1].function == function) {
		leave(calls, event, sink, context);	/* a tail exit */
		return;
	}
	slot = seam_calls_slot(calls, function);
	if (slot == SEAM_NONE)
		return;
	if (calls->active[slot] == 0) {
		bool is_stray = made_a_tail_call(calls, function);

		calls->repairs[SEAM_REPAIR_STRAY] += is_stray;
		if (sink->outer)
			sink->outer(context, calls, event, is_stray);
		else if (!is_stray)
			end_unseen(calls, function, event->tsc, sink, context);
		return;
	}
	while (calls->calls[calls->n - 1].function != function) {
		calls->repairs[SEAM_REPAIR_EXIT]++;
		seam_calls_leave(calls, event->tsc, sink, context);
	}
	leave(calls, event, sink, context);
}
