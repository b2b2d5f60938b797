/* SPDX-License-Identifier: MIT */
/* slow_calls.c - a second pass over threads; see slow_calls.h */
#include "model/xray/slow_calls.h"

#include <errno.h>
#include <stdlib.h>

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
};

static bool is_outside(const struct seam_slow_call *slow)
{
	return slow->node == SEAM_NONE;
}

/*
 * Make tail_of as long as the tree, and set it for the current node: to what
 * is so of all its calls.
 */
static int set_tail_of(struct seam_slow_call *slow, uint32_t tail_of)
{
	uint32_t *of_node;

	while (slow->tail_of.n < slow->tree.nodes.n)
		if (!SEAM_ARRAY_ADD(&slow->tail_of, SEAM_NONE))
			return -ENOMEM;
	of_node = &slow->tail_of.items[slow->node];
	if (slow->tree.nodes.items[slow->node].count == 0)
		*of_node = tail_of;
	else if (*of_node != tail_of)
		*of_node = SEAM_NONE;
	return 0;
}

/* Go into the node of @function, or count it as hidden. */
static int enter(struct slow_pass *pass, struct seam_slow_call *slow,
		 uint32_t function)
{
	size_t n = slow->tree.nodes.n;
	uint32_t node;

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
	slow->node = node;
	return node == 0 || set_tail_of(slow, pass->tail_of) ? -ENOMEM : 0;
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
	free(slow->events.items);
	*slow = again;
}

/* Its call has ended: it is the slow one only if it ended at its time. */
static void settle(struct slow_pass *pass, struct seam_slow_call *slow,
		   uint64_t end_ns)
{
	slow->node = SEAM_NONE;
	slow->found = end_ns == slow->call.end_ns;
	if (slow->found)
		return;
	pass->slow->n_left += slow->tree.nodes.n - 2;
	forget(slow);
}

static void end_call(void *context, struct seam_calls *calls,
		     const struct seam_call *call, uint64_t end_ns)
{
	struct slow_pass *pass = context;
	uint64_t ns = end_ns - call->begin_ns;
	bool no_end = is_repaired(&pass->n_ends,
				  calls->repairs[SEAM_REPAIR_UNFINISHED] +
				  calls->repairs[SEAM_REPAIR_CUT]);

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
		slow->node = node->parent;
		if (slow->node == 0) {
			slow->no_end = no_end;
			settle(pass, slow, end_ns);
		}
		if (slow->found && calls->by_tail)
			pass->left = slow;
	}
}

static void keep_event(struct seam_calls *calls, struct seam_slow_call *slow,
		       const struct seam_xray_batch *batch,
		       const struct seam_xray_event *event)
{
	struct seam_slow_event kept = {
		.node = slow->node, .kind = event->kind,
		.order = (uint32_t)slow->events.n,
		.nth_call = slow->tree.nodes.items[slow->node].count,
	};

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

static void take_event(void *context, struct seam_calls *calls,
		       const struct seam_xray_batch *batch,
		       const struct seam_xray_event *event)
{
	struct slow_pass *pass = context;

	for (size_t i = 0; i < pass->slow->n; i++) {
		struct seam_slow_call *slow = &pass->slow->items[i];

		if (!is_outside(slow))
			keep_event(calls, slow, batch, event);
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

/* The pass for the first call of a stream finds all others of it. */
static bool is_first_of_stream(const struct seam_slow_calls *slow, size_t i)
{
	for (size_t k = 0; k < i; k++)
		if (slow->items[k].call.stream == slow->items[i].call.stream)
			return false;
	return true;
}

static const struct seam_event_names *
names_of(const struct seam_trace *trace, uint32_t stream)
{
	return &trace->logs.items[trace->streams.items[stream].log].event_names;
}

static int run(struct seam_slow_calls *slow, const struct seam_trace *trace,
	       uint32_t stream)
{
	struct slow_pass pass = {
		.slow = slow, .stream = stream, .tail_of = SEAM_NONE,
	};
	struct seam_xray_problems problems = { 0 };
	struct seam_calls calls = { 0 };
	int err = seam_stream_calls(&calls, trace, stream, &sink, &pass,
				    &problems);

	seam_calls_fini(&calls);
	for (size_t i = 0; i < slow->n; i++)
		slow->items[i].node = SEAM_NONE;
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
		slow->items[i].call = account->slowest.items[i];
		slow->items[i].event_names = names_of(trace,
					slow->items[i].call.stream);
		slow->items[i].node = slow->items[i].tail_callee = SEAM_NONE;
	}
	for (size_t i = 0; !r && i < slow->n; i++)
		if (is_first_of_stream(slow, i))
			r = run(slow, trace, slow->items[i].call.stream);
	for (size_t i = 0; i < slow->n; i++)
		SEAM_ARRAY_SORT(&slow->items[i].events, by_node);
	if (r) {
		seam_slow_calls_fini(slow);
		return seam_calls_failed(r, err);
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
