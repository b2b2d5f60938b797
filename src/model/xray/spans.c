/* SPDX-License-Identifier: MIT */
/* spans.c - a sink that keeps every call; see spans.h */
#include "model/xray/spans.h"

#include <errno.h>
#include <stdlib.h>

struct keeper {
	struct seam_spans *spans;
	uint32_t thread;
	const uint32_t *functions;
	size_t n_functions;
};

static bool grow_column(void *column, size_t size, size_t cap)
{
	void **items = column;
	void *moved = realloc(*items, cap * size);

	if (moved)
		*items = moved;
	return moved != NULL;
}

static int grow(struct seam_spans *s)
{
	size_t cap = s->cap ? 2 * s->cap : 1024;

	if (s->n < s->cap)
		return 0;
	if (!grow_column(&s->begin_ns, sizeof(*s->begin_ns), cap) ||
	    !grow_column(&s->end_ns, sizeof(*s->end_ns), cap) ||
	    !grow_column(&s->thread, sizeof(*s->thread), cap) ||
	    !grow_column(&s->function, sizeof(*s->function), cap) ||
	    !grow_column(&s->depth, sizeof(*s->depth), cap))
		return -ENOMEM;
	s->cap = cap;
	return 0;
}

static void begin_call(void *context, struct seam_calls *calls)
{
	struct seam_call *call = &calls->calls[calls->n - 1];
	struct keeper *k = context;
	struct seam_spans *s = k->spans;

	call->user = SEAM_NONE;
	if (s->n >= SEAM_NONE || grow(s)) {
		calls->error = -ENOMEM;
		return;
	}
	s->begin_ns[s->n] = s->end_ns[s->n] = call->begin_ns;
	s->thread[s->n] = k->thread;
	s->function[s->n] = call->function < k->n_functions ?
			    k->functions[call->function] : SEAM_NONE;
	s->depth[s->n] = (uint32_t)calls->n - 2;
	call->user = (uint32_t)s->n++;
}

static void end_call(void *context, struct seam_calls *calls,
		     const struct seam_call *call, uint64_t end_ns)
{
	struct keeper *k = context;

	(void)calls;
	if (call->user != SEAM_NONE)
		k->spans->end_ns[call->user] = end_ns;
}

static const struct seam_calls_sink sink = {
	.begin = begin_call, .end = end_call,
};

int seam_spans_add(struct seam_spans *spans, const struct seam_trace *trace,
		   size_t stream, uint32_t thread, const uint32_t *functions,
		   size_t n_functions, struct seam_calls *calls,
		   struct seam_xray_problems *problems)
{
	struct keeper keeper = {
		.spans = spans, .thread = thread, .functions = functions,
		.n_functions = n_functions,
	};

	return seam_stream_calls(calls, trace, stream, &sink, &keeper,
				 problems);
}
