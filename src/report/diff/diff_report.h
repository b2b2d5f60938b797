/* SPDX-License-Identifier: MIT */
/* diff_report.h - a comparison for people, as JSON, and as a picture */
#pragma once

#include "report/diff/diff_gates.h"
#include "report/view.h"

struct seam_diff_report {
	const struct seam_diff *diff;
	const char *unit;	/* of work: "run", "second", "request" */
	const char *event;	/* its name */
	uint64_t top;		/* rows shown; 0: all */
	bool all;		/* rows within noise as well */
	bool tree;
	const struct seam_diff_gate *gates;
	const struct seam_diff_decision *decisions;	/* of these */
	size_t n_gates;
	int status;		/* of the command, for JSON */
};

/* A table, or a call tree of the changes.  0 or -ENOMEM. */
int seam_diff_text(const struct seam_diff_report *report,
		   const struct seam_view *view);

/* The tree of the changes and of their callers; seam_diff_cut_fini() is due. */
struct seam_diff_cut {
	struct seam_tree tree;			/* callees by size in B */
	struct seam_diff_change *changes;	/* by node: of its total */
	size_t n_hidden;			/* nodes left out */
};
int seam_diff_cut_init(struct seam_diff_cut *cut,
		       const struct seam_diff_report *report);
void seam_diff_cut_fini(struct seam_diff_cut *cut);

/* "seam.diff/1" (doc/formats/diff-json.md).  0 or -ENOMEM. */
int seam_diff_json(const struct seam_diff_report *report, FILE *out);

/*
 * A flame graph: the width of a frame is B, its colour the change of its total;
 * grey where that is noise.  0, -ENOMEM or -EFBIG.
 */
int seam_diff_picture(const struct seam_diff_report *report, const char *title,
		      double min_percent, bool inverted, FILE *out);

/* "+5.1%", "x 12" from tenfold on, "new", "gone"; "few" samples. */
const char *seam_diff_format_change(char buf[SEAM_NUMBER],
				    const struct seam_diff_change *change);

/* "+3.9% to +6.3%"; "" without an estimate. */
enum { SEAM_DIFF_INTERVAL = 2 * SEAM_NUMBER + 8 };
const char *seam_diff_format_interval(char buf[SEAM_DIFF_INTERVAL],
				      const struct seam_diff_test *test);

/* A value for a unit of work: "41.2 ms", "3.21 ns", "-" for 0. */
const char *seam_diff_format_value(char buf[SEAM_NUMBER], double value,
				   enum seam_unit unit);
