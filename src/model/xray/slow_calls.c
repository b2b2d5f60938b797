/* SPDX-License-Identifier: MIT */
/* slow_calls.c - a second pass over threads; see slow_calls.h */
#include "model/xray/slow_calls.h"

#include <errno.h>
#include <stdlib.h>

#include "model/xray/call_waits.h"

/*
 * Longer after a tail exit, a call is another one: what the tail call went on
 * to is not in the log (not instrumented, not selected, taken back as short).
 */
enum { TAIL_CALL_NS = 1000 };

struct slow_pass {
	struct seam_slow_calls *slow;
	uint32_t stream;
	/* the function of which the last event was a tail exit; SEAM_NONE */
	uint32_t tail_of;
	uint64_t tail_ns;		/* when */
	struct seam_slow_call *left;	/* a slow call that ended by it */
	uint64_t n_begins, n_ends;	/* repaired so far */
	const struct seam_thread_waits *waits;	/* or NULL */
	struct seam_open_waits open;
};

static bool is_outside(const struct seam_slow_call *slow)
{
	return slow->node == SEAM_NONE;
}

/* Go into the node of @function, or count it as hidden. */
static int enter(struct slow_pass *pass, struct seam_slow_call *slow,
		 uint32_t function)
{
	size_t n = slow->tree.nodes.n;
	uint32_t node, *tail_of;

	/* a slow call itself is always in its tree */
	slow->tree.max = is_outside(slow) ? 1 : n - 1 + pass->slow->n_left;
	node = slow->n_hidden ? SEAM_NONE :
	       seam_call_paths_child(&slow->tree, is_outside(slow) ? 0 :
				     slow->node, function);
	if (node == SEAM_NONE) {
		slow->n_hidden++;
		slow->tree.n_left_out++;
		return 0;
	}
	if (!is_outside(slow))
		pass->slow->n_left -= slow->tree.nodes.n - n;
	if (node == 0)
		return -ENOMEM;
	slow->node = node;
	while (slow->tail_of.n < slow->tree.nodes.n)
		if (!SEAM_ARRAY_ADD(&slow->tail_of, SEAM_NONE))
			return -ENOMEM;
	while (slow->self_off.n < slow->tree.nodes.n)
		if (!SEAM_ARRAY_ADD(&slow->self_off,
				    (struct seam_off_time) { 0 }))
			return -ENOMEM;
	/* what is so of all calls of the node */
	tail_of = &slow->tail_of.items[node];
	if (slow->tree.nodes.items[node].count == 0)
		*tail_of = pass->tail_of;
	else if (*tail_of != pass->tail_of)
		*tail_of = SEAM_NONE;
	return 0;
}

/* Whether @n repairs are more than *@so_far, which they become. */
static bool is_repaired(uint64_t *so_far, uint64_t n)
{
	bool is_one = n != *so_far;

	*so_far = n;
	return is_one;
}

static void begin_call(void *context, struct seam_calls *calls)
{
	struct slow_pass *pass = context;
	const struct seam_call *call = &calls->calls[calls->n - 1];
	bool no_begin = is_repaired(&pass->n_begins,
				    calls->repairs[SEAM_REPAIR_ENTRY]);

	if (pass->waits && !seam_open_waits_enter(&pass->open, calls))
		calls->error = -ENOMEM;
	if (call->begin_ns - pass->tail_ns > TAIL_CALL_NS)
		pass->tail_of = SEAM_NONE;
	else if (pass->left)
		pass->left->tail_callee = call->function;
	pass->left = NULL;
	for (size_t i = 0; i < pass->slow->n; i++) {
		struct seam_slow_call *slow = &pass->slow->items[i];

		if (slow->found || slow->call.stream != pass->stream)
			continue;
		if (is_outside(slow) &&
		    (call->function != slow->call.function ||
		     call->begin_ns != slow->call.begin_ns))
			continue;
		if (is_outside(slow))
			slow->no_begin = no_begin;
		if (enter(pass, slow, call->function))
			calls->error = -ENOMEM;
	}
	pass->tail_of = SEAM_NONE;
}

static void forget(struct seam_slow_call *slow)
{
	struct seam_slow_call again = {
		.call = slow->call, .event_names = slow->event_names,
		.node = SEAM_NONE, .tail_callee = SEAM_NONE,
	};

	seam_call_paths_fini(&slow->tree);
	free(slow->tail_of.items);
	free(slow->self_off.items);
	free(slow->events.items);
	*slow = again;
}

static void end_call(void *context, struct seam_calls *calls,
		     const struct seam_call *call, uint64_t end_ns)
{
	struct slow_pass *pass = context;
	struct seam_off_time self_off = { 0 };
	uint64_t ns = end_ns - call->begin_ns;
	bool no_end = is_repaired(&pass->n_ends,
				  calls->repairs[SEAM_REPAIR_UNFINISHED] +
				  calls->repairs[SEAM_REPAIR_CUT]);

	if (pass->waits)
		seam_open_waits_leave(&pass->open, calls, end_ns, &self_off);
	pass->tail_of = calls->by_tail ? call->function : SEAM_NONE;
	pass->tail_ns = end_ns;
	pass->left = NULL;
	for (size_t i = 0; i < pass->slow->n; i++) {
		struct seam_slow_call *slow = &pass->slow->items[i];
		struct seam_call_path *node;

		if (is_outside(slow))
			continue;
		if (slow->n_hidden) {
			slow->n_hidden--;
			continue;
		}
		node = &slow->tree.nodes.items[slow->node];
		node->count++;
		node->total_ns += ns;
		node->self_ns += ns - call->child_ns;
		seam_off_time_add(&slow->self_off.items[slow->node], self_off);
		slow->node = node->parent;
		if (slow->node == 0) {
			slow->node = SEAM_NONE;
			slow->no_end = no_end;
			slow->found = end_ns == slow->call.end_ns;
			/* it only began when the slow one did */
			if (!slow->found) {
				pass->slow->n_left += slow->tree.nodes.n - 2;
				forget(slow);
			}
		}
		if (slow->found && calls->by_tail)
			pass->left = slow;
	}
}

static void take_event(void *context, struct seam_calls *calls,
		       const struct seam_xray_batch *batch,
		       const struct seam_xray_event *event)
{
	struct slow_pass *pass = context;

	for (size_t i = 0; i < pass->slow->n; i++) {
		struct seam_slow_call *slow = &pass->slow->items[i];
		struct seam_slow_event kept = {
			.node = slow->node, .kind = event->kind,
			.order = (uint32_t)slow->events.n,
		};

		if (is_outside(slow))
			continue;
		kept.nth_call = slow->tree.nodes.items[slow->node].count;
		if (event->kind == SEAM_XRAY_ARGUMENT) {
			kept.value = event->tsc;
		} else {
			kept.offset_ns = event->tsc - slow->call.begin_ns;
			kept.type = batch->payloads[event->function].type;
			kept.data = batch->payloads[event->function].data;
		}
		if (slow->n_events++ < SEAM_SLOW_EVENTS &&
		    !SEAM_ARRAY_ADD(&slow->events, kept))
			calls->error = -ENOMEM;
	}
}

static const struct seam_calls_sink sink = {
	.begin = begin_call, .end = end_call, .event = take_event,
};

static int by_node(const void *a, const void *b)
{
	const struct seam_slow_event *x = a, *y = b;

	return SEAM_COMPARE(x->node, y->node) ?:
	       SEAM_COMPARE(x->order, y->order);
}

static int run(struct seam_slow_calls *slow, const struct seam_trace *trace,
	       const struct seam_thread_waits *waits, uint32_t stream)
{
	struct slow_pass pass = {
		.slow = slow, .stream = stream, .tail_of = SEAM_NONE,
		.waits = waits,
	};
	struct seam_xray_problems problems = { 0 };
	struct seam_calls calls = { 0 };
	int err;

	if (waits)
		seam_open_waits_begin(&pass.open, waits, trace, stream);
	err = seam_stream_calls(&calls, trace, stream, &sink, &pass, &problems);
	seam_calls_fini(&calls);
	seam_open_waits_fini(&pass.open);
	for (size_t i = 0; i < slow->n; i++) {
		slow->items[i].node = SEAM_NONE;
		slow->items[i].is_done |= slow->items[i].call.stream == stream;
	}
	return err;
}

int seam_slow_calls_find(struct seam_slow_calls *slow,
			 const struct seam_trace *trace,
			 const struct seam_account *account,
			 size_t max_nodes, struct seam_err *err)
{
	int r = 0;

	*slow = (struct seam_slow_calls) {
		.items = calloc(account->slowest.n + 1, sizeof(*slow->items)),
		.n = account->slowest.n, .n_left = max_nodes,
	};
	if (!slow->items) {
		slow->n = 0;
		return seam_err_no_memory(err);
	}
	for (size_t i = 0; i < slow->n; i++) {
		const struct seam_account_call *call =
			&account->slowest.items[i];
		uint32_t log = trace->streams.items[call->stream].log;

		slow->items[i] = (struct seam_slow_call) {
			.call = *call, .node = SEAM_NONE,
			.tail_callee = SEAM_NONE,
			.event_names = &trace->logs.items[log].event_names,
		};
	}
	for (size_t i = 0; !r && i < slow->n; i++)
		if (!slow->items[i].is_done)
			r = run(slow, trace, account->waits,
				slow->items[i].call.stream);
	for (size_t i = 0; i < slow->n; i++)
		SEAM_ARRAY_SORT(&slow->items[i].events, by_node);
	if (r) {
		seam_slow_calls_fini(slow);
		return seam_err_no_memory(err);
	}
	return 0;
}

void seam_slow_calls_fini(struct seam_slow_calls *slow)
{
	for (size_t i = 0; slow->items && i < slow->n; i++)
		forget(&slow->items[i]);
	free(slow->items);
	*slow = (struct seam_slow_calls) { 0 };
}
