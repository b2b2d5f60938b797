/* SPDX-License-Identifier: MIT */
/*
 * diff_text.c - a comparison as text
 *
 * Only what is more than noise has a line.  The order is that of what a reader
 * needs: both sides and their sum, the functions that changed, what is not
 * shown and why, gates, warnings.
 */
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

#include "base/text.h"
#include "report/diff/diff_report.h"
#include "report/tree_rails.h"

enum {
	FIGURES = 63,		/* columns before the layer */
	LAYER = 8,
	NAME = 56,		/* of a symbol, not on a terminal */
	LEAST_NAME = 16,
	MODULE = 20,
	TREE_FIGURES = 29,
};

const char *seam_diff_format_value(char buf[SEAM_NUMBER], double value,
				   enum seam_unit unit)
{
	if (value <= 0)
		snprintf(buf, SEAM_NUMBER, "-");
	else if (value < 100)
		snprintf(buf, SEAM_NUMBER, "%.3g%s", value,
			 unit == SEAM_UNIT_NS ? " ns" : "");
	else
		seam_format_weight(buf, value < 1e19 ? (uint64_t)(value + 0.5) :
				   UINT64_MAX, unit);
	return buf;
}

/* A ratio as a change: "+5.1%", "x 12"; @buf has @cap bytes. */
static int put_ratio(char *buf, size_t cap, double ratio)
{
	double percent = 100 * (ratio - 1);

	if (!isfinite(ratio))
		return snprintf(buf, cap, "no limit");
	if (ratio >= 10)
		return snprintf(buf, cap, "x %.3g", ratio);
	return snprintf(buf, cap, "%+.*f%%", fabs(percent) < 9.95 ? 1 : 0,
			percent);
}

const char *seam_diff_format_change(char buf[SEAM_NUMBER],
				    const struct seam_diff_change *change)
{
	bool on_a = change->samples[SEAM_DIFF_A] > 0;
	bool on_b = change->samples[SEAM_DIFF_B] > 0;

	if (change->verdict == SEAM_DIFF_FEW)
		snprintf(buf, SEAM_NUMBER, "few");
	else if (on_a && on_b)
		put_ratio(buf, SEAM_NUMBER, change->test.ratio);
	else
		snprintf(buf, SEAM_NUMBER, "%s", on_b ? "new" : on_a ? "gone" :
			 "-");
	return buf;
}

const char *seam_diff_format_interval(char buf[SEAM_DIFF_INTERVAL],
				      const struct seam_diff_test *test)
{
	size_t used;

	buf[0] = '\0';
	if (test->freedom <= 0)
		return buf;
	used = (size_t)put_ratio(buf, SEAM_NUMBER, test->low);
	used += (size_t)snprintf(buf + used, 8, " to ");
	put_ratio(buf + used, SEAM_NUMBER, test->high);
	return buf;
}

/* -- both sides --------------------------------------------------------- */

/* What ran; else the name of the first recording. */
static const char *side_name(const struct seam_diff *diff,
			     enum seam_diff_side side)
{
	const char *command = seam_profile_text(&diff->profile,
						diff->command[side]);

	for (size_t i = 0; !*command && i < diff->runs.n; i++)
		if (diff->runs.items[i].side == side)
			command = diff->runs.items[i].path;
	return command;
}

static void put_side(const struct seam_diff_report *report,
		     const struct seam_view *view, enum seam_diff_side side)
{
	const struct seam_diff *diff = report->diff;
	const struct seam_diff_change *all = &diff->all;
	char n[SEAM_NUMBER], value[SEAM_NUMBER], interval[SEAM_DIFF_INTERVAL];
	char change[SEAM_NUMBER];
	double lost = seam_diff_lost(diff, side);

	seam_view_print(view, SEAM_STYLE_BOLD, "%c", side ? 'B' : 'A');
	fprintf(view->out, "  %s of ", seam_format_amount(n,
					diff->n_runs[side], "run"));
	seam_text_put(view->out, side_name(diff, side), SEAM_TEXT_TERMINAL);
	fprintf(view->out, ": %s a %s", seam_diff_format_value(value,
			all->mean[side], diff->unit), report->unit);
	if (side == SEAM_DIFF_B) {
		fprintf(view->out, ", %s", seam_diff_format_change(change,
								   all));
		if (*seam_diff_format_interval(interval, &all->test))
			fprintf(view->out, " (%s)", interval);
		if (all->verdict == SEAM_DIFF_NOISE)
			fputs(", which is noise", view->out);
	}
	if (lost > 0)
		seam_view_print(view, SEAM_STYLE_WARN, "; up to %.2f%% of a "
				"run's records lost", 100 * lost);
	fputc('\n', view->out);
}

static void put_head(const struct seam_diff_report *report,
		     const struct seam_view *view)
{
	put_side(report, view, SEAM_DIFF_A);
	put_side(report, view, SEAM_DIFF_B);
	fputc('\n', view->out);
	seam_view_text(view, SEAM_STYLE_BOLD, report->event);
	fprintf(view->out, ", %s a %s", report->diff->unit == SEAM_UNIT_NS ?
		"time" : "events", report->unit);
	if (!seam_diff_has_estimate(report->diff))
		seam_view_print(view, SEAM_STYLE_WARN, "; no noise estimate, "
				"which needs %d runs of each side: changes may "
				"be chance", SEAM_DIFF_LEAST_RUNS);
	fputc('\n', view->out);
}

/* -- the table ---------------------------------------------------------- */

struct diff_table {
	const struct seam_diff_report *report;
	const struct seam_view *view;
	size_t n;		/* rows shown */
	const char **names;	/* by row, as they are shown */
	size_t name_width;
	struct seam_arena arena;
};

static const struct seam_function *function_of(const struct seam_diff *diff,
					       uint32_t function)
{
	return &diff->profile.functions.items[function];
}

/* Rows are sorted so that those to show come first. */
static size_t n_shown(const struct seam_diff_report *report)
{
	const struct seam_diff *diff = report->diff;
	size_t n = report->all ? diff->rows.n : 0;

	while (n < diff->rows.n) {
		const struct seam_diff_change *change =
			seam_diff_main(diff, &diff->rows.items[n]);

		if (!seam_diff_is_change(change) &&
		    change->verdict != SEAM_DIFF_UNKNOWN)
			break;
		n++;
	}
	return report->top && report->top < n ? report->top : n;
}

static int fit_names(struct diff_table *t)
{
	const struct seam_diff *diff = t->report->diff;
	size_t room = NAME;

	if (t->view->width) {
		size_t used = FIGURES + LAYER + 2 + MODULE;

		room = t->view->width > used + LEAST_NAME ?
		       t->view->width - used : LEAST_NAME;
	}
	t->names = seam_arena_alloc(&t->arena, (t->n + 1) * sizeof(*t->names));
	for (size_t i = 0; i < t->n && t->names; i++) {
		t->names[i] = seam_elide_escape(&t->arena,
			seam_profile_text(&diff->profile, function_of(diff,
				diff->rows.items[i].function)->name));
		if (!t->names[i])
			return -ENOMEM;
	}
	if (!t->names || (t->view->width &&
			  seam_elide_all(&t->arena, t->names, t->n, room,
					 t->view->unicode)))
		return -ENOMEM;
	t->name_width = strlen("SYMBOL");
	for (size_t i = 0; i < t->n; i++) {
		size_t columns = seam_elide_columns(t->names[i]);

		if (columns > t->name_width)
			t->name_width = columns < room ? columns : room;
	}
	return 0;
}

static void put_row(const struct diff_table *t, size_t i)
{
	const struct seam_diff *diff = t->report->diff;
	const struct seam_diff_row *row = &diff->rows.items[i];
	const struct seam_diff_change *c = seam_diff_main(diff, row);
	const struct seam_diff_change *other = c == &row->self ? &row->total :
					       &row->self;
	const struct seam_function *f = function_of(diff, row->function);
	char a[SEAM_NUMBER], b[SEAM_NUMBER], change[SEAM_NUMBER];
	char rest[SEAM_NUMBER], interval[SEAM_DIFF_INTERVAL];
	size_t columns = seam_elide_columns(t->names[i]);

	fprintf(t->view->out, "%8s  %8s  ",
		seam_diff_format_value(a, c->mean[SEAM_DIFF_A], diff->unit),
		seam_diff_format_value(b, c->mean[SEAM_DIFF_B], diff->unit));
	seam_view_print(t->view, !seam_diff_is_change(c) ? SEAM_STYLE_PLAIN :
			SEAM_STYLE_BOLD, "%8s",
			seam_diff_format_change(change, c));
	fprintf(t->view->out, "  %20s  ", c->verdict != SEAM_DIFF_FEW &&
		c->samples[SEAM_DIFF_A] > 0 && c->samples[SEAM_DIFF_B] > 0 ?
		seam_diff_format_interval(interval, &c->test) : "");
	fprintf(t->view->out, "%8s  ", seam_diff_format_change(rest, other));
	seam_view_print(t->view, SEAM_STYLE_LAYER + f->layer, "%-8s",
			seam_layer_names[f->layer]);
	fputs(t->names[i], t->view->out);
	fprintf(t->view->out, "%*s  ", columns < t->name_width ?
		(int)(t->name_width - columns) : 0, "");
	seam_view_text(t->view, SEAM_STYLE_DIM,
		       seam_profile_path(&diff->profile, f->module));
	fputc('\n', t->view->out);
}

static const struct seam_diff_row *row_of(const struct seam_diff *diff,
					  uint32_t function)
{
	for (size_t i = 0; i < diff->rows.n; i++)
		if (diff->rows.items[i].function == function)
			return &diff->rows.items[i];
	return NULL;
}

/* The caller with the largest total of @function on @side; SEAM_NONE. */
static uint32_t main_caller(const struct seam_diff *diff, uint32_t function,
			    enum seam_diff_side side)
{
	uint32_t best = SEAM_NONE;
	double most = 0;

	for (size_t i = 1; i < diff->tree.n; i++) {
		const struct seam_node *node = &diff->tree.items[i];
		double sum = 0;

		if (node->key >> 1 != function || !node->parent)
			continue;
		for (size_t r = 0; r < diff->runs.n; r++)
			if (diff->runs.items[r].side == side)
				sum += diff->runs.items[r].node_total.items[i]
				       .weight;
		if (sum <= most)
			continue;
		most = sum;
		best = diff->tree.items[node->parent].key >> 1;
	}
	return best;
}

/* For a function that is new or gone, whether its caller's total has changed. */
static void put_hint(const struct diff_table *t, const struct seam_diff_row *row)
{
	const struct seam_diff *diff = t->report->diff;
	enum seam_diff_verdict verdict = seam_diff_main(diff, row)->verdict;
	const struct seam_diff_row *caller;
	uint32_t function;

	if (verdict != SEAM_DIFF_NEW && verdict != SEAM_DIFF_GONE)
		return;
	function = main_caller(diff, row->function,
			       verdict == SEAM_DIFF_NEW ? SEAM_DIFF_B :
			       SEAM_DIFF_A);
	caller = function == SEAM_NONE ? NULL : row_of(diff, function);
	if (!caller || caller->total.verdict != SEAM_DIFF_NOISE)
		return;
	seam_view_style(t->view, SEAM_STYLE_DIM);
	fprintf(t->view->out, "%*sthe total of its caller, ", FIGURES, "");
	seam_text_put(t->view->out, seam_profile_text(&diff->profile,
			function_of(diff, function)->name), SEAM_TEXT_TERMINAL);
	fputs(", is as before: inlined otherwise, or replaced\n", t->view->out);
	seam_view_style(t->view, SEAM_STYLE_PLAIN);
}

/* How many rows are not shown, by reason. */
static void put_rest(const struct seam_diff_report *report,
		     const struct seam_view *view, size_t shown)
{
	const struct seam_diff *diff = report->diff;
	size_t n_noise = diff->n_verdicts[SEAM_DIFF_NOISE];
	size_t n_few = diff->n_verdicts[SEAM_DIFF_FEW];
	size_t n_more = diff->rows.n - n_noise - n_few - shown;
	char n[SEAM_NUMBER];

	if (shown == diff->rows.n)
		return;
	seam_view_style(view, SEAM_STYLE_DIM);
	if (report->all) {
		fprintf(view->out, "%s; --top 0 shows all\n",
			seam_format_amount(n, diff->rows.n - shown,
					   "more function"));
	} else {
		if (n_more)
			fprintf(view->out, "%s; --top 0 shows all\n",
				seam_format_amount(n, n_more,
						   "more function"));
		if (seam_diff_has_estimate(diff))
			fprintf(view->out, "%s within noise; ",
				seam_format_amount(n, n_noise, "function"));
		fprintf(view->out, "%s with fewer than %d samples a run; "
			"--all shows them\n", seam_format_count(n, n_few),
			SEAM_DIFF_LEAST_SAMPLES);
	}
	seam_view_style(view, SEAM_STYLE_PLAIN);
}

static int put_table(const struct seam_diff_report *report,
		     const struct seam_view *view)
{
	struct diff_table t = {
		.report = report, .view = view, .n = n_shown(report),
	};
	bool is_total = report->diff->sort == SEAM_SORT_TOTAL;
	int rc = fit_names(&t);

	if (!rc && t.n)
		seam_view_print(view, SEAM_STYLE_DIM,
				"%8s  %8s  %8s  %20s  %8s  LAYER   %-*s  "
				"MODULE\n", is_total ? "TOTAL A" : "SELF A",
				is_total ? "TOTAL B" : "SELF B", "CHANGE",
				seam_diff_has_estimate(report->diff) ?
				"95% INTERVAL" : "", is_total ? "SELF" :
				"TOTAL", (int)t.name_width, "SYMBOL");
	else if (!rc)
		fputs(seam_diff_has_estimate(report->diff) ?
		      "No function has changed by more than noise.\n" :
		      "No function has enough samples.\n", view->out);
	for (size_t i = 0; i < t.n && !rc; i++) {
		put_row(&t, i);
		put_hint(&t, &report->diff->rows.items[i]);
	}
	if (!rc)
		put_rest(report, view, t.n);
	seam_arena_fini(&t.arena);
	return rc;
}

/* -- the tree ----------------------------------------------------------- */

/* B's size first; what is gone by the old size. */
static int by_size(const struct seam_node *a, const struct seam_node *b,
		   void *context)
{
	const struct seam_diff *diff = context;

	return SEAM_COMPARE(b->weight, a->weight) ?:
	       strcmp(seam_profile_text(&diff->profile,
				function_of(diff, a->key >> 1)->name),
		      seam_profile_text(&diff->profile,
				function_of(diff, b->key >> 1)->name));
}

/*
 * The tree of the changes and of their callers.  Without an estimate, of what
 * has enough samples.
 */
static int cut_tree(struct seam_tree *tree,
		    const struct seam_diff_change *changes, bool all,
		    size_t *n_hidden)
{
	bool *shown = calloc(tree->n, sizeof(*shown));

	if (!shown)
		return -ENOMEM;
	for (size_t i = tree->n; i-- > 1;) {
		shown[i] |= (all && changes[i].verdict != SEAM_DIFF_FEW) ||
			    seam_diff_is_change(&changes[i]) ||
			    changes[i].verdict == SEAM_DIFF_UNKNOWN;
		shown[tree->items[i].parent] |= shown[i];
		*n_hidden += !shown[i] &&
			     (changes[i].samples[0] > 0 ||
			      changes[i].samples[1] > 0);
	}
	seam_tree_keep(tree, shown);
	free(shown);
	return 0;
}

static int put_node(const struct seam_diff *diff, const struct seam_view *view,
		    struct seam_tree_rails *rails, const struct seam_tree *tree,
		    uint32_t id, const struct seam_diff_change *change)
{
	const struct seam_function *f = function_of(diff,
						tree->items[id].key >> 1);
	char a[SEAM_NUMBER], b[SEAM_NUMBER], text[SEAM_NUMBER];
	size_t used;

	fprintf(view->out, "%8s  %8s  ",
		seam_diff_format_value(a, change->mean[SEAM_DIFF_A],
				       diff->unit),
		seam_diff_format_value(b, change->mean[SEAM_DIFF_B],
				       diff->unit));
	seam_view_print(view, !seam_diff_is_change(change) ? SEAM_STYLE_DIM :
			SEAM_STYLE_BOLD, "%8s", change->verdict ==
			SEAM_DIFF_NOISE ? "noise" :
			seam_diff_format_change(text, change));
	fputs("  ", view->out);
	used = seam_tree_rails_put(rails, view, tree, id);
	if (!used)
		return -ENOMEM;
	seam_view_style(view, SEAM_STYLE_LAYER + f->layer);
	used += TREE_FIGURES;
	seam_view_cell(view, seam_profile_text(&diff->profile, f->name),
		       view->width > used + LEAST_NAME ? view->width - used :
		       LEAST_NAME);
	seam_view_style(view, SEAM_STYLE_PLAIN);
	fputc('\n', view->out);
	return 0;
}

int seam_diff_cut_init(struct seam_diff_cut *cut,
		       const struct seam_diff_report *report)
{
	const struct seam_diff *diff = report->diff;
	int rc;

	*cut = (struct seam_diff_cut) { .changes = seam_diff_nodes(diff) };
	rc = cut->changes && SEAM_ARRAY_EXTEND(&cut->tree, diff->tree.items,
					       diff->tree.n) ? 0 : -ENOMEM;
	if (!rc)
		rc = cut_tree(&cut->tree, cut->changes, report->all,
			      &cut->n_hidden);
	return rc ? rc : seam_tree_sort(&cut->tree, by_size,
					(void *)(uintptr_t)diff);
}

void seam_diff_cut_fini(struct seam_diff_cut *cut)
{
	free(cut->tree.items);
	free(cut->changes);
}

static int put_tree(const struct seam_diff_report *report,
		    const struct seam_view *view)
{
	struct seam_tree_rails rails = { 0 };
	struct seam_diff_cut cut;
	char n[SEAM_NUMBER];
	int rc = seam_diff_cut_init(&cut, report);

	if (!rc)
		seam_view_print(view, SEAM_STYLE_DIM, "%8s  %8s  %8s  CALLS\n",
				"TOTAL A", "TOTAL B", "CHANGE");
	for (uint32_t i = rc ? SEAM_NONE : seam_tree_next(&cut.tree, 0, true);
	     i != SEAM_NONE && !rc; i = seam_tree_next(&cut.tree, i, true))
		rc = put_node(report->diff, view, &rails, &cut.tree, i,
			      &cut.changes[i]);
	if (!rc && cut.n_hidden)
		seam_view_print(view, SEAM_STYLE_DIM, "%s without a change "
				"that is more than noise%s\n",
				seam_format_amount(n, cut.n_hidden, "node"),
				report->all ? "" : "; --all shows them");
	seam_tree_rails_fini(&rails);
	seam_diff_cut_fini(&cut);
	return rc;
}

/* -- gates and warnings ------------------------------------------------- */

static void put_decision(const struct seam_diff_gate *gate,
			 const struct seam_diff_decision *d,
			 const struct seam_view *view, enum seam_unit unit)
{
	char value[SEAM_NUMBER], low[SEAM_NUMBER], high[SEAM_NUMBER];
	bool is_change = gate->is_relative && !gate->is_new;

	seam_view_print(view, d->outcome == SEAM_DIFF_HOLDS ? SEAM_STYLE_BOLD :
			SEAM_STYLE_WARN, "%s", seam_diff_outcomes[d->outcome]);
	fputs(": ", view->out);
	seam_text_put(view->out, gate->text, SEAM_TEXT_TERMINAL);
	if (d->n_functions || gate->is_new) {
		if (is_change)
			put_ratio(value, sizeof(value), 1 + d->value);
		else if (gate->is_relative)
			snprintf(value, sizeof(value), "%.2f%%",
				 100 * d->value);
		else
			seam_diff_format_value(value, d->value, unit);
		fprintf(view->out, "; it is %s", value);
	}
	if (d->n_functions && d->change.test.freedom > 0) {
		if (is_change) {
			put_ratio(low, sizeof(low), 1 + d->low);
			put_ratio(high, sizeof(high), 1 + d->high);
		} else if (gate->is_relative) {
			snprintf(low, sizeof(low), "%.2f%%", 100 * d->low);
			snprintf(high, sizeof(high), "%.2f%%", 100 * d->high);
		} else {
			seam_diff_format_value(low, d->low, unit);
			seam_diff_format_value(high, d->high, unit);
		}
		fprintf(view->out, " (%s to %s)", low, high);
	}
	fprintf(view->out, "%s%s\n", d->why[0] ? ": " : "", d->why);
}

int seam_diff_text(const struct seam_diff_report *report,
		   const struct seam_view *view)
{
	const struct seam_profile *p = &report->diff->profile;
	int rc;

	put_head(report, view);
	rc = report->tree ? put_tree(report, view) : put_table(report, view);
	if (report->n_gates)
		fputc('\n', view->out);
	for (size_t i = 0; i < report->n_gates; i++)
		put_decision(&report->gates[i], &report->decisions[i], view,
			     report->diff->unit);
	if (p->notes.n)
		fputc('\n', view->out);
	for (size_t i = 0; i < p->notes.n; i++) {
		fputs("note: ", view->out);
		seam_text_put(view->out, seam_profile_text(p,
				p->notes.items[i]), SEAM_TEXT_TERMINAL);
		fputc('\n', view->out);
	}
	return rc;
}
