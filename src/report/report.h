/* SPDX-License-Identifier: MIT */
/*
 * report.h - a profile as tables or call trees, for people or as JSON
 *
 * The events of a recording count different things and are shown one after
 * another, each with its own percentages.  What was lost, and what a reader
 * should know, is part of every form.
 *
 * The JSON forms are versioned: members may be added under the same schema,
 * none is taken away or changes its meaning.
 */
#ifndef SEAM_REPORT_H
#define SEAM_REPORT_H

#include "model/profile/tree.h"
#include "report/rows.h"
#include "report/view.h"

struct seam_report {
	const struct seam_profile *profile;
	const struct seam_selected *selected;
	const char *path;	/* of the recording, as the user named it */
	const char *const *more;	/* and of logs read with it */
	size_t n_more;
	uint32_t by;		/* keys; see rows.h */
	enum seam_sort sort;
	uint64_t top;		/* rows shown; 0: all */
	const char *filter;	/* NULL: all */
	bool details;		/* beside the notes, in text */
	double min_percent;	/* of the event; smaller nodes of a tree */
				/* are left out */
};

/* Rows, as aligned text.  0 or -ENOMEM, as the other three. */
int seam_report_text(const struct seam_report *report,
		     const struct seam_view *view);

/*
 * "seam.report/1": rows over all events, and when there are several, rows
 * for each in "events".  self and total are numbers of samples; rows are in
 * descending order of what they are sorted by.
 */
int seam_report_json(const struct seam_report *report, FILE *out);

/*
 * The call tree, top-down.  By comm, thread, process or CPU, each is a root;
 * else all are merged.
 */
int seam_report_tree_text(const struct seam_report *report,
			  const struct seam_view *view);

/*
 * "seam.tree/1": for each event nested nodes, {"symbol", ..., "children":
 * [...]}.  A node as deep as JSON readers go (SEAM_REPORT_DEPTH) that had
 * callees has "cut": true instead of children; its total has them still.
 * "hidden" counts the nodes that were left out, "stackless" the samples that
 * no node has.
 */
int seam_report_tree_json(const struct seam_report *report, FILE *out);

enum { SEAM_REPORT_DEPTH = 240 };

#endif /* SEAM_REPORT_H */
