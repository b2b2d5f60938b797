/* SPDX-License-Identifier: MIT */
/*
 * diff_gates.h - limits for changes, for scripts
 *
 *	NAME[:self|:total] < LIMIT
 *
 * NAME is a function, a GLOB of functions (fnmatch(3)), "all", or "new": all
 * functions that A has no sample of.  LIMIT is +5% (of the change), 1% (of
 * "new": its share of B), or a time of B such as 2ms.
 */
#pragma once

#include "report/diff/diff.h"

enum { SEAM_DIFF_GATE_NAME = 1024, SEAM_DIFF_GATE_WHY = 200 };

#define SEAM_DIFF_MOST_LOST 0.01	/* of a run; more decides nothing */

struct seam_diff_gate {
	const char *text;		/* as it was given; borrowed */
	char name[SEAM_DIFF_GATE_NAME];
	bool is_all, is_new;
	bool is_total;
	bool is_relative;		/* limit is a share, 0.05 */
	double limit;			/* or ns, or events, of B */
};

enum seam_diff_outcome {
	SEAM_DIFF_HOLDS,
	SEAM_DIFF_FAILS,
	SEAM_DIFF_UNDECIDED,
};

extern const char *const seam_diff_outcomes[];

struct seam_diff_decision {
	enum seam_diff_outcome outcome;
	size_t n_functions;		/* that match */
	struct seam_diff_change change;	/* of their sum */
	/* what is limited: a change, or a value of B; with its interval */
	double value, low, high;
	char why[SEAM_DIFF_GATE_WHY];	/* UNDECIDED: the reason */
};

/* -EINVAL with a reason: @text is no gate. */
int seam_diff_gate_parse(struct seam_diff_gate *gate, const char *text,
			 struct seam_err *err);

/*
 * After seam_diff_finish().  Fails if the value is over the limit and, for a
 * change, the whole interval is an increase, for a value or a limit below 0,
 * the whole interval is over the limit; holds if the whole interval is under
 * the limit; else it is undecided.  0 or -ENOMEM.
 */
int seam_diff_gate_decide(const struct seam_diff_gate *gate,
			  const struct seam_diff *diff,
			  struct seam_diff_decision *decision);
