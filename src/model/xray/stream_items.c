/* SPDX-License-Identifier: MIT */
/* stream_items.c - a sink that fills one batch; see stream_items.h */
#include "model/xray/stream_items.h"

#include <errno.h>
#include <stdlib.h>

static struct seam_item *push(struct seam_stream_items *items,
			      enum seam_item_kind kind, uint64_t time_ns)
{
	/* a call whose entry is missing begins at the log's start */
	if (time_ns < items->last_ns)
		time_ns = items->last_ns;
	items->last_ns = time_ns;
	if (SEAM_ARRAY_ADD(&items->items, (struct seam_item) {
		.time_ns = time_ns, .kind = kind, .function = SEAM_NONE }))
		return &items->items.items[items->items.n - 1];
	items->calls.error = -ENOMEM;
	return NULL;
}

static void begin_call(void *context, struct seam_calls *calls)
{
	const struct seam_call *call = &calls->calls[calls->n - 1];
	struct seam_item *item = push(context, SEAM_ITEM_BEGIN,
				      call->begin_ns);

	if (item)
		item->function = call->function;
}

static void end_call(void *context, struct seam_calls *calls,
		     const struct seam_call *call, uint64_t end_ns)
{
	struct seam_item *item = push(context, SEAM_ITEM_END, end_ns);

	(void)calls;
	if (!item)
		return;
	item->function = call->function;
	item->begin_ns = call->begin_ns;
}

static void take_event(void *context, struct seam_calls *calls,
		       const struct seam_xray_batch *batch,
		       const struct seam_xray_event *event)
{
	const struct seam_xray_payload *payload;
	struct seam_stream_items *items = context;
	struct seam_item *item;

	if (event->kind == SEAM_XRAY_ARGUMENT) {
		item = push(context, SEAM_ITEM_ARGUMENT,
			    calls->calls[calls->n - 1].begin_ns);
		if (item)
			item->value = event->tsc;
		return;
	}
	payload = &batch->payloads[event->function];
	if (seam_calls_is_gap(batch, event)) {
		item = push(items, SEAM_ITEM_LOSS, items->last_ns);
		if (item)
			item->value = seam_xray_n_lost(payload);
		return;
	}
	item = push(context, event->kind == SEAM_XRAY_TYPED ? SEAM_ITEM_TYPED :
		    SEAM_ITEM_CUSTOM, event->tsc);
	if (!item)
		return;
	item->type = payload->type;
	item->data = payload->data;
}

static const struct seam_calls_sink sink = {
	.begin = begin_call, .end = end_call, .event = take_event,
};

int seam_stream_items_open(struct seam_stream_items *items,
			   const struct seam_trace *trace, size_t stream)
{
	*items = (struct seam_stream_items) { 0 };
	return seam_stream_open(&items->stream, &items->calls, trace, stream,
				&sink, items);
}

bool seam_stream_items_fill(struct seam_stream_items *items)
{
	const struct seam_xray_problems *problems =
		&items->stream.reader.problems;

	items->at = items->items.n = 0;
	while (!items->is_over && !items->calls.error &&
	       items->items.n == 0) {
		items->is_over = !seam_stream_next(&items->stream, &sink,
						   items);
		if (problems->n > items->n_problems)
			push(items, SEAM_ITEM_LOSS, items->calls.last_ns);
		items->n_problems = problems->n;
	}
	return items->items.n > 0 && !items->calls.error;
}

void seam_stream_items_close(struct seam_stream_items *items)
{
	seam_stream_close(&items->stream);
	seam_calls_fini(&items->calls);
	free(items->items.items);
	*items = (struct seam_stream_items) { 0 };
}
