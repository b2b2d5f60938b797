/* SPDX-License-Identifier: MIT */
/*
 * calls_table.h - an account of calls as table, histograms, trees, graph, JSON
 *
 * Members may be added to the JSON schema "seam.calls/1"; none is removed.
 * Functions of which only entries are recorded have no times: "-", and null.
 * Times are nanoseconds, or ticks for a log without a clock frequency.
 */
#pragma once

#include "model/xray/account.h"
#include "model/xray/call_names.h"
#include "model/xray/marked.h"
#include "model/xray/slow_calls.h"
#include "report/view.h"

/* What rows are sorted by; up to PREEMPTED, the figures of a function. */
enum seam_calls_sort {
	SEAM_CALLS_BY_COUNT,
	SEAM_CALLS_BY_MIN,
	SEAM_CALLS_BY_P50,
	SEAM_CALLS_BY_P90,
	SEAM_CALLS_BY_P99,
	SEAM_CALLS_BY_MAX,
	SEAM_CALLS_BY_SUM,
	SEAM_CALLS_BY_TOTAL,
	SEAM_CALLS_BY_SELF,
	SEAM_CALLS_BY_BLOCKED,		/* of self, and so is the next */
	SEAM_CALLS_BY_PREEMPTED,
	SEAM_CALLS_BY_NAME,
	SEAM_CALLS_BY_ID,
	SEAM_N_CALLS_SORTS,
};

/* For the option's choices. */
#define SEAM_CALLS_SORTS \
	"total|self|sum|count|min|p50|p90|p99|max|blocked|preempted|name|id"

struct seam_calls_report {
	const struct seam_account *account;
	const struct seam_xray_map *names;
	const struct seam_marked_sums *marked;	/* NULL: none */
	enum seam_calls_sort sort;	/* names and ids ascend */
	const char *filter;		/* a part of the name, or a pattern
					 * with * and ?; NULL: all */
	size_t limit;			/* rows; 0: all */
	bool histograms;		/* under the table */
	double min_percent;		/* of a slow call; its tree omits
					 * smaller nodes without events */
};

/* The sort called @name.  -EINVAL when there is none. */
int seam_calls_sort_find(const char *name, enum seam_calls_sort *sort);

/* Whether @function passes the filter. */
bool seam_calls_selects(const struct seam_calls_report *report,
			uint32_t function);

/* 0 or -ENOMEM. */
int seam_calls_table(const struct seam_calls_report *report,
		     const struct seam_view *view);
int seam_calls_json(const struct seam_calls_report *report, FILE *out);

/*
 * The slowest single calls as indented trees of their callees, with arguments
 * and events.
 */
void seam_calls_stacks(const struct seam_calls_report *report,
		       const struct seam_slow_calls *slow,
		       const struct seam_trace *trace,
		       const struct seam_view *view);

/* The call graph, for Graphviz.  Needs the account's edges. */
void seam_calls_graph(const struct seam_calls_report *report, FILE *out);
