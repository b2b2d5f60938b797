/* SPDX-License-Identifier: MIT */
/*
 * slow_calls.h - single calls with everything they called
 *
 * An account names the slowest calls; a second pass over their threads
 * collects what happened inside of each, as a tree of stacks.
 */
#ifndef SEAM_SLOW_CALLS_H
#define SEAM_SLOW_CALLS_H

#include "model/account.h"
#include "model/call_paths.h"

struct seam_slow_call {
	struct seam_account_call call;
	struct seam_call_paths tree;	/* node 1 is the call itself */
	bool found;
	uint32_t node;			/* where the pass is; SEAM_NONE: out */
};

/* Zeroed is valid and empty. */
struct seam_slow_calls {
	struct seam_slow_call *items;	/* longest first */
	size_t n;
};

/* 0 or -ENOMEM.  Cost: a pass over each thread that has one of the calls. */
int seam_slow_calls_find(struct seam_slow_calls *slow,
			 const struct seam_trace *trace,
			 const struct seam_account *account,
			 struct seam_err *err);
void seam_slow_calls_fini(struct seam_slow_calls *slow);

#endif /* SEAM_SLOW_CALLS_H */
