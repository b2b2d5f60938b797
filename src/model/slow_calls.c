/* SPDX-License-Identifier: MIT */
/* slow_calls.c - follow the program into chosen calls; see slow_calls.h */
#include "model/slow_calls.h"

#include <errno.h>
#include <stdlib.h>

struct pass {
	struct seam_slow_calls *slow;
	uint32_t stream;
};

static bool is_outside(const struct seam_slow_call *slow)
{
	return slow->node == SEAM_NONE;
}

static void begin_call(void *context, struct seam_calls *calls)
{
	struct pass *pass = context;
	const struct seam_call *call = &calls->calls[calls->n - 1];

	for (size_t i = 0; i < pass->slow->n; i++) {
		struct seam_slow_call *slow = &pass->slow->items[i];

		if (slow->found || slow->call.stream != pass->stream)
			continue;
		if (is_outside(slow) &&
		    (call->function != slow->call.function ||
		     call->begin_ns != slow->call.begin_ns))
			continue;
		slow->node = seam_call_paths_child(&slow->tree,
						  is_outside(slow) ? 0 :
						  slow->node, call->function);
		if (slow->node == SEAM_NONE)
			calls->error = -ENOMEM;
	}
}

/* The call itself has ended: was it the one? */
static void settle(struct seam_slow_call *slow, uint64_t end_ns)
{
	slow->node = SEAM_NONE;
	slow->found = end_ns == slow->call.end_ns;
	if (!slow->found)
		seam_call_paths_fini(&slow->tree);
}

static void end_call(void *context, struct seam_calls *calls,
		     const struct seam_call *call, uint64_t end_ns)
{
	struct pass *pass = context;
	uint64_t ns = end_ns - call->begin_ns;

	(void)calls;
	for (size_t i = 0; i < pass->slow->n; i++) {
		struct seam_slow_call *slow = &pass->slow->items[i];
		struct seam_call_path *node;

		if (is_outside(slow))
			continue;
		node = &slow->tree.nodes.items[slow->node];
		node->count++;
		node->total_ns += ns;
		node->self_ns += ns - call->child_ns;
		slow->node = node->parent;
		if (slow->node == 0)
			settle(slow, end_ns);
	}
}

static const struct seam_calls_sink sink = {
	.begin = begin_call, .end = end_call,
};

/* The first call of each thread pays for all others of it. */
static bool is_first_of_stream(const struct seam_slow_calls *slow, size_t i)
{
	for (size_t k = 0; k < i; k++)
		if (slow->items[k].call.stream == slow->items[i].call.stream)
			return false;
	return true;
}

static int run(struct seam_slow_calls *slow, const struct seam_trace *trace,
	       uint32_t stream)
{
	struct pass pass = { .slow = slow, .stream = stream };
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
			 struct seam_err *err)
{
	int r = 0;

	*slow = (struct seam_slow_calls) {
		.items = calloc(account->slowest.n + 1, sizeof(*slow->items)),
		.n = account->slowest.n,
	};
	if (!slow->items) {
		slow->n = 0;
		return seam_err_set(err, -ENOMEM, "out of memory");
	}
	for (size_t i = 0; i < slow->n; i++) {
		slow->items[i].call = account->slowest.items[i];
		slow->items[i].node = SEAM_NONE;
	}
	for (size_t i = 0; !r && i < slow->n; i++)
		if (is_first_of_stream(slow, i))
			r = run(slow, trace, slow->items[i].call.stream);
	if (r) {
		seam_slow_calls_fini(slow);
		return seam_err_set(err, r, "out of memory");
	}
	return 0;
}

void seam_slow_calls_fini(struct seam_slow_calls *slow)
{
	for (size_t i = 0; slow->items && i < slow->n; i++)
		seam_call_paths_fini(&slow->items[i].tree);
	free(slow->items);
	*slow = (struct seam_slow_calls) { 0 };
}
