/* SPDX-License-Identifier: MIT */
/*
 * report.h - a profile as tables or call trees, for people or as JSON
 *
 * The events of a recording count different things and are shown one after
 * another, each with its own percentages.  Every form includes losses and
 * notes.
 *
 * The JSON forms are versioned: members may be added under the same schema;
 * none is removed or changes its meaning.
 */
#pragma once

#include "model/profile/tree.h"
#include "report/rows.h"
#include "report/view.h"

struct seam_report {
	const struct seam_profile *profile;
	const struct seam_selected *selected;
	const char *path;	/* of the recording, as the user named it */
	const char *const *more;	/* paths of XRay logs read with it */
	size_t n_more;
	uint32_t by;		/* keys; see rows.h */
	enum seam_sort sort;
	uint64_t top;		/* rows shown; 0: all */
	const char *filter;	/* NULL: all */
	bool details;		/* after the notes, in text */
	double min_percent;	/* of the event; a tree omits smaller nodes */
};

/* Rows, as aligned text.  This and the other three return 0 or -ENOMEM. */
int seam_report_text(const struct seam_report *report,
		     const struct seam_view *view);

/*
 * "seam.report/1": rows over all events, and when there are several, rows
 * for each in "events".  self and total are numbers of samples; rows are in
 * descending order of what they are sorted by.
 */
int seam_report_json(const struct seam_report *report, FILE *out);

/*
 * The call tree, top-down.  By comm, thread, process or CPU, each of these is a
 * root; else all stacks are merged.
 */
int seam_report_tree_text(const struct seam_report *report,
			  const struct seam_view *view);

/*
 * "seam.tree/1": for each event nested nodes, {"symbol", ..., "children":
 * [...]}.  At SEAM_REPORT_DEPTH, a limit of JSON readers, a node with callees
 * has "cut": true instead of children; its total includes them.  "hidden"
 * counts the nodes that were left out, "stackless" the samples without a
 * stack.
 */
int seam_report_tree_json(const struct seam_report *report, FILE *out);

/*
 * How user stacks were unwound: the share of complete ones, of those that other
 * samples completed, and the reasons of the others by file; of waits, where
 * their stacks are from, and what each thread did.  As text, and as
 * "seam.stats/2".  0 or -ENOMEM.
 */
int seam_report_stats_text(const struct seam_report *report,
			   const struct seam_view *view);
int seam_report_stats_json(const struct seam_report *report, FILE *out);

enum { SEAM_REPORT_DEPTH = 240 };
