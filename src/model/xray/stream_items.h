/* SPDX-License-Identifier: MIT */
/*
 * stream_items.h - the calls and events of one thread of a trace, one by one
 *
 * An iterator over what stream_calls.h passes to a sink: entries, arguments,
 * exits and events as struct seam_item, whose functions are XRay ids.  It
 * holds the items of one batch of events.
 */
#ifndef SEAM_STREAM_ITEMS_H
#define SEAM_STREAM_ITEMS_H

#include "model/profile/timeline.h"
#include "model/xray/stream_calls.h"

/* Not to be moved or copied while it is open. */
struct seam_stream_items {
	struct seam_calls calls;	/* repairs; its error ends the items */
	struct seam_stream stream;	/* its reader has the problems */
	SEAM_ARRAY(struct seam_item) items;	/* of the last batch */
	size_t at;			/* the next of these */
	uint64_t last_ns;		/* no later item is earlier */
	uint64_t n_problems;		/* for which there is a LOSS item */
	bool is_over;			/* no batch follows */
};

/* 0 or -errno; to be closed in either case.  @trace outlives @items. */
int seam_stream_items_open(struct seam_stream_items *items,
			   const struct seam_trace *trace, size_t stream);
void seam_stream_items_close(struct seam_stream_items *items);

/* Read another batch.  False at the end, or with calls.error. */
bool seam_stream_items_fill(struct seam_stream_items *items);

/* The next item, valid until the call after it; NULL as above. */
static inline const struct seam_item *
seam_stream_items_next(struct seam_stream_items *items)
{
	return items->at < items->items.n || seam_stream_items_fill(items) ?
	       &items->items.items[items->at++] : NULL;
}

#endif /* SEAM_STREAM_ITEMS_H */
