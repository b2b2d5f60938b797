/* SPDX-License-Identifier: MIT */
/*
 * table_text.c - rows as aligned text
 *
 * The figures come first because they are what is read down; names come
 * last because they vary.  A bar stands beside them where there is room.
 */
#include <stdlib.h>

#include "report/report.h"
#include "report/summary.h"

enum {
	FIGURES = 31,		/* columns of self, total, samples and gaps */
	BAR = 10,
	LAYER = 8,
	MODULE_MOST = 28,	/* columns of a module's name */
	SYMBOL_MOST = 72,	/* where nothing is cut: beyond, no padding */
	ROOMY = 100,		/* width from which a bar is drawn */
};

struct layout {
	const struct seam_view *view;
	const struct seam_rows *table;
	bool by_weight;
	bool is_measured;	/* its numbers are calls */
	size_t bar;		/* columns; 0: none */
	uint64_t longest;	/* what a whole bar stands for */
	size_t name;
	size_t module;		/* 0: the rows have none */
};

static const char *base_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash && slash[1] ? slash + 1 : path;
}

static size_t larger(size_t a, size_t b)
{
	return a > b ? a : b;
}

static bool is_by_code(const struct seam_rows *table)
{
	return table->by == SEAM_BY_SYMBOL || table->by == SEAM_BY_MODULE;
}

/* Names share what the figures leave; modules get a third if it is tight. */
static void fit(struct layout *l)
{
	size_t room = l->view->width - FIGURES - l->bar;
	size_t third;

	if (!l->module) {
		l->name = room;
		return;
	}
	room -= LAYER + 2;
	if (l->name + l->module <= room)
		return;
	third = larger(room / 3, 6);
	if (l->module > third)
		l->module = l->name + third < room ? room - l->name : third;
	l->name = room - l->module;
}

static uint64_t self_of(const struct layout *l, const struct seam_row *row)
{
	return l->by_weight ? row->self_weight : row->self_samples;
}

static struct layout lay_out(const struct seam_rows *table, size_t n,
			     const struct seam_view *view, bool by_weight)
{
	struct layout l = {
		.view = view, .table = table, .by_weight = by_weight,
		.name = 6,
	};
	size_t most = view->width ? view->width : SYMBOL_MOST;

	if (view->unicode && view->width >= ROOMY)
		l.bar = BAR + 2;
	if (table->by == SEAM_BY_SYMBOL)
		l.module = 6;
	for (size_t i = 0; i < n; i++) {
		const struct seam_row *row = &table->items[i];

		if (self_of(&l, row) > l.longest)
			l.longest = self_of(&l, row);
		l.name = larger(l.name, seam_view_columns(
				seam_row_name(table, row), most));
		if (l.module)
			l.module = larger(l.module, seam_view_columns(
				base_name(seam_row_module(table, row)),
				MODULE_MOST));
	}
	if (view->width)
		fit(&l);
	return l;
}

static void put_head(const struct layout *l)
{
	FILE *out = l->view->out;

	seam_view_style(l->view, SEAM_STYLE_DIM);
	if (is_by_code(l->table))
		fprintf(out, "%8s  %8s", "SELF", "TOTAL");
	else
		fprintf(out, "%8s  %8s", "SHARE",
			l->table->by == SEAM_BY_THREAD ? "TID" : "PID");
	fprintf(out, "  %9s  %*s", l->is_measured ? "CALLS" : "SAMPLES",
		(int)l->bar, "");
	if (l->table->by == SEAM_BY_SYMBOL)
		fprintf(out, "%-8s%-*s  MODULE", "LAYER", (int)l->name,
			"SYMBOL");
	else
		fputs(l->table->by == SEAM_BY_MODULE ? "MODULE" :
		      l->table->by == SEAM_BY_THREAD ? "THREAD" : "PROCESS",
		      out);
	seam_view_style(l->view, SEAM_STYLE_PLAIN);
	fputc('\n', out);
}

static int32_t number_of(const struct layout *l, const struct seam_row *row)
{
	const struct seam_profile *profile = l->table->profile;

	return l->table->by == SEAM_BY_THREAD ?
	       profile->threads.items[row->id].tid :
	       profile->processes.items[row->id].pid;
}

static void put_figures(const struct layout *l, const struct seam_row *row)
{
	const struct seam_rows *t = l->table;
	uint64_t whole = l->by_weight ? t->weight : t->samples;
	uint64_t self = self_of(l, row);
	uint64_t total = l->by_weight ? row->weight : row->samples;
	bool code = is_by_code(t);
	char a[SEAM_NUMBER], b[SEAM_NUMBER], c[SEAM_NUMBER];

	if (code)
		seam_format_percent(b, total, whole);
	else
		snprintf(b, sizeof(b), "%d", number_of(l, row));
	fprintf(l->view->out, "%8s  %8s  %9s  ",
		seam_format_percent(a, self, whole), b,
		seam_format_count(c, row->self_samples));
	if (!l->bar)
		return;
	seam_view_style(l->view, row->id == SEAM_NONE ? SEAM_STYLE_DIM :
			SEAM_STYLE_LAYER +
			(t->by == SEAM_BY_SYMBOL ? seam_row_layer(t, row) :
			 SEAM_LAYER_NATIVE));
	seam_view_bar(l->view, self, l->longest, BAR);
	seam_view_style(l->view, SEAM_STYLE_PLAIN);
	fputs("  ", l->view->out);
}

static void put_row(const struct layout *l, const struct seam_row *row)
{
	enum seam_layer layer = seam_row_layer(l->table, row);

	put_figures(l, row);
	if (l->module) {
		seam_view_style(l->view, SEAM_STYLE_LAYER + layer);
		fprintf(l->view->out, "%-8s", layer == SEAM_N_LAYERS ? "-" :
			seam_layer_name(layer));
		seam_view_style(l->view, SEAM_STYLE_PLAIN);
	}
	seam_view_cell(l->view, seam_row_name(l->table, row), l->name,
		       l->module != 0);
	if (l->module) {
		fputs("  ", l->view->out);
		seam_view_style(l->view, SEAM_STYLE_DIM);
		seam_view_cell(l->view,
			       base_name(seam_row_module(l->table, row)),
			       l->module, false);
		seam_view_style(l->view, SEAM_STYLE_PLAIN);
	}
	fputc('\n', l->view->out);
}

/* What --top hides, with its share, so that the sum is always there. */
static void put_rest(const struct layout *l, size_t n)
{
	const struct seam_rows *t = l->table;
	char a[SEAM_NUMBER], b[SEAM_NUMBER];
	uint64_t rest = 0;

	if (n == t->n)
		return;
	for (size_t i = n; i < t->n; i++)
		rest += self_of(l, &t->items[i]);
	seam_view_style(l->view, SEAM_STYLE_DIM);
	fprintf(l->view->out, "%8s  in %s more row%s; --top 0 shows all\n",
		seam_format_percent(a, rest, l->by_weight ? t->weight :
				    t->samples),
		seam_format_count(b, t->n - n), t->n - n == 1 ? "" : "s");
	seam_view_style(l->view, SEAM_STYLE_PLAIN);
}

static int put_event(const struct seam_report *report,
		     const struct seam_view *view, uint32_t event)
{
	struct seam_rows table = { 0 };
	struct layout l;
	bool by_weight;
	size_t n;
	int rc = seam_rows_make(&table, report->selected, event, report->by);

	if (rc || table.samples + table.weight == 0)
		goto out;
	by_weight = table.weight != 0;
	seam_rows_sort(&table, report->sort, by_weight);
	if (report->filter)
		seam_rows_filter(&table, report->filter);
	n = report->top && report->top < table.n ? report->top : table.n;
	l = lay_out(&table, n, view, by_weight);
	l.is_measured = report->profile->events.items[event].is_measured;
	seam_summary_event(report, view, event, table.samples, table.weight);
	if (table.n)
		put_head(&l);
	else
		seam_summary_unmatched(report, view);
	for (size_t i = 0; i < n; i++)
		put_row(&l, &table.items[i]);
	put_rest(&l, n);
	rc = 1;
out:
	free(table.items);
	return rc;
}

int seam_report_text(const struct seam_report *report,
		     const struct seam_view *view)
{
	return seam_summary_frame(report, view, put_event);
}
