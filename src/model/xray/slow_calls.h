/* SPDX-License-Identifier: MIT */
/*
 * slow_calls.h - single calls with everything they called
 *
 * An account lists the slowest calls; a second pass over their threads collects
 * what happened inside each: a tree of stacks, the arguments of its calls, and
 * the events that the program wrote, at their place in it.
 *
 * A tail call ends its caller, so that its callee is the caller's sibling in
 * the tree; the function that made the tail call is stored with it.
 */
#pragma once

#include "model/xray/account.h"
#include "model/xray/stream_calls.h"

enum { SEAM_SLOW_EVENTS = 1000 };	/* kept of one slow call */

/* An argument, or a custom or typed event. */
struct seam_slow_event {
	uint32_t node;			/* of the tree: the call it was in */
	uint8_t kind;			/* enum seam_xray_kind */
	uint16_t type;			/* of a typed event */
	uint64_t nth_call;		/* of the node, from 0 on */
	uint32_t order;			/* of all of the slow call */
	uint64_t offset_ns;		/* since the slow call began */
	uint64_t value;			/* of an argument */
	struct seam_bytes data;		/* of an event; borrowed from the log */
};

struct seam_slow_call {
	struct seam_account_call call;
	struct seam_call_paths tree;	/* node 1 is the call itself */
	SEAM_ARRAY(uint32_t) tail_of;	/* by node: the function of which
					 * each call is a tail call; or NONE */
	bool no_begin, no_end;		/* these are not in the log */
	uint32_t tail_callee;		/* the call's own; SEAM_NONE: none */
	/* by node: of its self time, the thread had no CPU; or empty */
	SEAM_ARRAY(struct seam_off_time) self_off;
	SEAM_ARRAY(struct seam_slow_event) events;	/* by node and time */
	uint64_t n_events;		/* with those over the limit */
	const struct seam_event_names *event_names;	/* of its log */
	bool found;
	bool is_done;			/* its stream has been read */
	uint32_t node;			/* the pass is in; SEAM_NONE: outside */
	uint32_t n_hidden;		/* open below it, not in the tree */
};

/* Zeroed is valid and empty. */
struct seam_slow_calls {
	struct seam_slow_call *items;	/* longest first */
	size_t n;
	size_t n_left;			/* nodes that the trees may still get */
};

/*
 * The trees have at most @max_nodes in all, beside the calls themselves: calls
 * that would exceed that are counted as left out, and their time is in no self
 * time.  0 or -ENOMEM; @trace must outlive @slow, which borrows the data of its
 * events.  Cost: a pass over each thread that has one of the calls.
 */
int seam_slow_calls_find(struct seam_slow_calls *slow,
			 const struct seam_trace *trace,
			 const struct seam_account *account,
			 size_t max_nodes, struct seam_err *err);
void seam_slow_calls_fini(struct seam_slow_calls *slow);
