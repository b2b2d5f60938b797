/* SPDX-License-Identifier: MIT */
/* diff_picture.c - changes as a flame graph; see flamegraph.h */
#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "base/text.h"
#include "report/diff/diff_report.h"
#include "report/flamegraph.h"

enum {
	MAX_FOOT = 21,		/* lines: functions that are gone */
	FOOT_TEXT = 300,
};

/* A change by this much has the next deeper colour. */
static const double levels[] = { 0.05, 0.20 };

struct drawn_diff {
	const struct seam_diff_report *report;
	struct seam_diff_change *nodes;
	char foot[MAX_FOOT][FOOT_TEXT];
	const char *lines[MAX_FOOT];
	size_t n_lines;
};

static struct seam_flamegraph_change change_of(const void *context,
					       uint32_t node)
{
	const struct drawn_diff *d = context;
	const struct seam_diff_change *c = &d->nodes[node];
	struct seam_flamegraph_change change = { 0 };
	double size = c->verdict == SEAM_DIFF_NEW ? INFINITY :
		      fabs(c->test.ratio - 1);
	char text[SEAM_NUMBER];

	if (!seam_diff_is_change(c))
		return change;
	change.sign = c->test.ratio > 1 ? 1 : -1;
	for (size_t i = 0; i < SEAM_ARRAY_SIZE(levels); i++)
		change.level += size >= levels[i];
	snprintf(change.mark, sizeof(change.mark), "%.15s",
		 seam_diff_format_change(text, c));
	return change;
}

/* Why the change has no colour; "" where it has one. */
static const char *why_grey(const struct seam_diff_change *c)
{
	return c->verdict == SEAM_DIFF_NOISE ? ": within noise" :
	       c->verdict == SEAM_DIFF_FEW ? ": too few samples" :
	       c->verdict == SEAM_DIFF_UNKNOWN ? ": no noise estimate" : "";
}

static void put_details(const void *context, uint32_t node, FILE *out)
{
	const struct drawn_diff *d = context;
	const struct seam_diff *diff = d->report->diff;
	struct seam_diff_change c = d->nodes[node];
	char a[SEAM_NUMBER], b[SEAM_NUMBER], change[SEAM_NUMBER];
	char interval[SEAM_DIFF_INTERVAL];

	fprintf(out, "total %s a ", seam_diff_format_value(b,
			c.mean[SEAM_DIFF_B], diff->unit));
	seam_text_put(out, d->report->unit, SEAM_TEXT_XML);
	fprintf(out, ", of A %s\n%s%s", seam_diff_format_value(a,
			c.mean[SEAM_DIFF_A], diff->unit),
		seam_diff_format_change(change, &c), why_grey(&c));
	if (!seam_diff_is_change(&c) || c.verdict == SEAM_DIFF_NEW)
		return;
	seam_diff_find_interval(&c.test);
	fprintf(out, " (%s, q = %.2g)",
		seam_diff_format_interval(interval, &c.test), c.q);
}

/* Functions that B has no width for. */
static void list_gone(struct drawn_diff *d)
{
	const struct seam_diff *diff = d->report->diff;
	size_t n_gone = 0;
	char value[SEAM_NUMBER];

	for (size_t i = 0; i < diff->rows.n; i++) {
		const struct seam_diff_row *row = &diff->rows.items[i];
		const struct seam_function *f =
			&diff->profile.functions.items[row->function];

		if (row->total.verdict != SEAM_DIFF_GONE ||
		    n_gone++ >= MAX_FOOT - 1)
			continue;
		snprintf(d->foot[d->n_lines++], FOOT_TEXT,
			 "gone: %.150s (%.60s), of A %s a %.30s",
			 seam_profile_text(&diff->profile, f->name),
			 seam_profile_path(&diff->profile, f->module),
			 seam_diff_format_value(value,
				row->total.mean[SEAM_DIFF_A], diff->unit),
			 d->report->unit);
	}
	if (n_gone > MAX_FOOT - 1)
		snprintf(d->foot[d->n_lines++], FOOT_TEXT,
			 "and %zu more functions are gone",
			 n_gone - (MAX_FOOT - 1));
	for (size_t i = 0; i < d->n_lines; i++)
		d->lines[i] = d->foot[i];
}

/* "width: B, 433 ms a run (8 runs); colour: change from A, 412 ms (8 runs)" */
static void put_subtitle(const struct seam_diff_report *report, char *text,
			 size_t cap)
{
	const struct seam_diff *diff = report->diff;
	char a[SEAM_NUMBER], b[SEAM_NUMBER], change[SEAM_NUMBER];

	snprintf(text, cap, "%.60s: width is B, %s a %.30s (%zu run%s); colour "
		 "is the change from A, %s (%zu run%s)%s%s%s", report->event,
		 seam_diff_format_value(b, diff->all.mean[SEAM_DIFF_B],
					diff->unit),
		 report->unit, diff->n_runs[SEAM_DIFF_B],
		 diff->n_runs[SEAM_DIFF_B] == 1 ? "" : "s",
		 seam_diff_format_value(a, diff->all.mean[SEAM_DIFF_A],
					diff->unit),
		 diff->n_runs[SEAM_DIFF_A],
		 diff->n_runs[SEAM_DIFF_A] == 1 ? "" : "s",
		 seam_diff_has_estimate(diff) ? "; in all " :
		 "; no noise estimate: ",
		 seam_diff_has_estimate(diff) ?
		 seam_diff_format_change(change, &diff->all) :
		 "fewer than 3 runs of a side",
		 diff->all.verdict == SEAM_DIFF_NOISE ? ", which is noise" :
		 "");
}

int seam_diff_picture(const struct seam_diff_report *report, const char *title,
		      double min_percent, bool inverted, FILE *out)
{
	const struct seam_diff *diff = report->diff;
	struct drawn_diff *d = calloc(1, sizeof(*d));
	char subtitle[400];
	int rc = -ENOMEM;

	if (!d)
		return -ENOMEM;
	d->report = report;
	d->nodes = seam_diff_nodes(diff);
	if (d->nodes) {
		const struct seam_flamegraph_changes changes = {
			.tree = &diff->tree, .unit = diff->unit,
			.change = change_of, .put_details = put_details,
			.subtitle = subtitle, .foot = d->lines,
			.n_foot = (list_gone(d), d->n_lines), .context = d,
		};
		const struct seam_flamegraph graph = {
			.selected = &diff->selected, .changes = &changes,
			.title = title, .inverted = inverted,
			.min_percent = min_percent,
		};

		put_subtitle(report, subtitle, sizeof(subtitle));
		rc = seam_flamegraph_write(&graph, out);
	}
	free(d->nodes);
	free(d);
	return rc;
}
