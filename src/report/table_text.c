/* SPDX-License-Identifier: MIT */
/*
 * table_text.c - rows as aligned text
 *
 * Figures come first, in columns of fixed width; names, which vary, come last.
 * On a terminal a line fits the width: the bar shrinks first, then the names
 * share the rest.
 */
#include <errno.h>
#include <stdlib.h>

#include "report/report.h"
#include "report/summary.h"
#include "report/view.h"

enum {
	FIGURES = 31,		/* columns of self, total, samples and gaps */
	GAP = 2,
	BAR = 10,
	SMALLEST_BAR = 4,
	LAYER = 8,
	MAX_TEXT = 72,		/* not on a terminal: longer: not padded */
	MAX_MODULE = 28,
	MAX_COLUMNS = SEAM_MAX_KEYS + 1,
};

/* A column of names: of a key, or the modules of symbols. */
struct column {
	enum seam_by key;
	bool has_layer;		/* before it */
	const char *heading;
	const char **texts;	/* by row, escaped, as they are shown */
	size_t width;
	size_t part;		/* weight in sharing the width */
};

struct table_layout {
	const struct seam_view *view;
	const struct seam_rows *table;
	size_t n;		/* rows shown */
	bool by_weight;
	const char *counted;	/* heading of what rows count */
	enum seam_by number;	/* THREAD or PROCESS: has a TID or PID column */
	size_t bar;		/* columns; 0: none */
	uint64_t longest;	/* value of a full bar */
	struct column columns[MAX_COLUMNS];
	size_t n_columns;
	struct seam_arena arena;
};

/* Sort and filter the rows; returns how many of them are shown. */
static size_t arrange(const struct seam_report *report,
		      struct seam_rows *table, bool by_weight)
{
	seam_rows_sort(table, report->sort, by_weight);
	if (report->filter)
		seam_rows_filter(table, report->filter);
	return report->top && report->top < table->n ? report->top : table->n;
}

static size_t larger(size_t a, size_t b)
{
	return a > b ? a : b;
}

static uint64_t self_of(const struct table_layout *l,
			const struct seam_row *row)
{
	return l->by_weight ? row->self_weight : row->self_samples;
}

static void add_column(struct table_layout *l, enum seam_by key,
		       const char *heading)
{
	struct column *c = &l->columns[l->n_columns++];

	*c = (struct column) {
		.key = key, .heading = heading, .width = strlen(heading),
		.has_layer = key == SEAM_BY_SYMBOL,
		.part = key == SEAM_BY_SYMBOL || key == SEAM_BY_ADDRESS ||
			key == SEAM_BY_LINE ? 2 : 1,
	};
}

static void list_columns(struct table_layout *l)
{
	static const char *const headings[] = {
		[SEAM_BY_SYMBOL] = "SYMBOL", [SEAM_BY_MODULE] = "MODULE",
		[SEAM_BY_ADDRESS] = "ADDRESS",
		[SEAM_BY_LINE] = "LINE", [SEAM_BY_COMM] = "COMM",
		[SEAM_BY_THREAD] = "THREAD", [SEAM_BY_PROCESS] = "PROCESS",
		[SEAM_BY_CPU] = "CPU", [SEAM_BY_VMSTATE] = "VM STATE",
		[SEAM_BY_WAIT] = "WAIT", [SEAM_BY_PARALLELISM] = "THREADS",
		[SEAM_BY_WAKER] = "WAKER", [SEAM_BY_CGROUP] = "CGROUP",
		[SEAM_BY_HOST] = "HOST", [SEAM_BY_SERVICE] = "SERVICE",
	};
	uint32_t by = l->table->by;

	for (size_t i = 0; seam_by_key(by, i); i++)
		add_column(l, seam_by_key(by, i),
			   headings[seam_by_key(by, i)]);
	if ((seam_by_has(by, SEAM_BY_SYMBOL) ||
	     seam_by_has(by, SEAM_BY_ADDRESS)) &&
	    !seam_by_has(by, SEAM_BY_MODULE))
		add_column(l, SEAM_BY_MODULE, "MODULE");
	if (by == SEAM_BY_THREAD || by == SEAM_BY_PROCESS)
		l->number = (enum seam_by)by;
}

static int32_t number_of(const struct seam_rows *table,
			 const struct seam_row *row, enum seam_by key)
{
	return seam_group_number(table->profile, seam_by_group(key),
				 seam_row_id(table, row, key));
}

/* The text of @row in column @c, not escaped. */
static const char *text_of(const struct table_layout *l, const struct column *c,
			   const struct seam_row *row,
			   char buf[SEAM_ROW_TEXT])
{
	bool has_number = c->key == SEAM_BY_THREAD || c->key == SEAM_BY_PROCESS;
	const char *text;

	if (c->key == SEAM_BY_MODULE &&
	    !seam_by_has(l->table->by, SEAM_BY_MODULE))
		return seam_row_module(l->table, row);
	text = seam_row_text(l->table, row, c->key, buf);
	if (l->number || !has_number)
		return text;
	/* numbers distinguish threads of one name */
	snprintf(buf, SEAM_ROW_TEXT, "%.*s %d", SEAM_ROW_TEXT - 16, text,
		 number_of(l->table, row, c->key));
	return buf;
}

static int fill_column(struct table_layout *l, struct column *c)
{
	char buf[SEAM_ROW_TEXT];
	size_t most = !l->view->width ? MAX_TEXT : SIZE_MAX;
	int rc = 0;

	if (!l->view->width && c->key == SEAM_BY_MODULE && l->n_columns > 1)
		most = MAX_MODULE;
	c->texts = seam_arena_alloc(&l->arena, (l->n + 1) * sizeof(*c->texts));
	if (!c->texts)
		return -ENOMEM;
	for (size_t i = 0; i < l->n; i++) {
		c->texts[i] = seam_elide_escape(&l->arena,
				text_of(l, c, &l->table->items[i], buf));
		if (!c->texts[i])
			return -ENOMEM;
	}
	if (c->key == SEAM_BY_MODULE && l->n_columns > 1)
		rc = seam_elide_paths(&l->arena, c->texts, l->n);
	for (size_t i = 0; i < l->n; i++) {
		size_t columns = seam_elide_columns(c->texts[i]);

		c->width = larger(c->width, columns < most ? columns : most);
	}
	return rc;
}

/*
 * Columns that need less than their part of the room keep their width; the
 * others share the rest by their parts.
 */
static void share(struct table_layout *l, size_t room)
{
	bool fixed[MAX_COLUMNS] = { 0 };
	bool again = true;
	size_t parts = 0;

	for (size_t i = 0; i < l->n_columns; i++)
		parts += l->columns[i].part;
	while (again) {
		again = false;
		for (size_t i = 0; i < l->n_columns; i++) {
			struct column *c = &l->columns[i];

			if (fixed[i] || c->width * parts > room * c->part)
				continue;
			fixed[i] = again = true;
			room -= c->width;
			parts -= c->part;
		}
	}
	for (size_t i = 0; i < l->n_columns; i++)
		if (!fixed[i]) {
			size_t width = room * l->columns[i].part / parts;

			room -= width;
			parts -= l->columns[i].part;
			l->columns[i].width = width;
		}
}

/* Without the layers and gaps, all of the width is for names and the bar. */
static int fit(struct table_layout *l)
{
	size_t room = l->view->width - FIGURES - (l->n_columns - 1) * GAP;
	size_t names = 0;
	int rc = 0;

	for (size_t i = 0; i < l->n_columns; i++) {
		names += l->columns[i].width;
		room -= l->columns[i].has_layer ? (size_t)LAYER : 0;
	}
	if (names <= room) {
		l->bar = room - names;
		l->bar = !l->view->unicode ||
			 l->bar < SMALLEST_BAR + GAP ? 0 :
			 l->bar < BAR + GAP ? l->bar : BAR + GAP;
		return 0;
	}
	share(l, room);
	for (size_t i = 0; i < l->n_columns && !rc; i++)
		rc = seam_elide_all(&l->arena, l->columns[i].texts, l->n,
				    l->columns[i].width, l->view->unicode);
	return rc;
}

static int lay_out(struct table_layout *l)
{
	int rc = 0;

	list_columns(l);
	for (size_t i = 0; i < l->n; i++)
		l->longest = larger(l->longest,
				    self_of(l, &l->table->items[i]));
	for (size_t i = 0; i < l->n_columns && !rc; i++)
		rc = fill_column(l, &l->columns[i]);
	return rc || !l->view->width ? rc : fit(l);
}

static void pad(const struct table_layout *l, size_t from, size_t to)
{
	fprintf(l->view->out, "%*s", from < to ? (int)(to - from) : 0, "");
}

static void put_head(const struct table_layout *l)
{
	FILE *out = l->view->out;

	seam_view_style(l->view, SEAM_STYLE_DIM);
	if (seam_by_is_code(l->table->by))
		fprintf(out, "%8s  %8s", "SELF", "TOTAL");
	else
		fprintf(out, "%8s  %8s", "SHARE",
			l->number == SEAM_BY_THREAD ? "TID" :
			l->number == SEAM_BY_PROCESS ? "PID" : "");
	fprintf(out, "  %9s  %*s", l->counted,
		(int)l->bar, "");
	for (size_t i = 0; i < l->n_columns; i++) {
		const struct column *c = &l->columns[i];

		fprintf(out, "%s%s%s", i ? "  " : "", c->has_layer ?
			"LAYER   " : "", c->heading);
		if (i + 1 < l->n_columns)
			pad(l, strlen(c->heading), c->width);
	}
	seam_view_style(l->view, SEAM_STYLE_PLAIN);
	fputc('\n', out);
}

static void put_figures(const struct table_layout *l,
			const struct seam_row *row)
{
	const struct seam_rows *t = l->table;
	uint64_t whole = l->by_weight ? t->weight : t->samples;
	uint64_t self = self_of(l, row);
	uint64_t total = l->by_weight ? row->weight : row->samples;
	enum seam_layer layer = seam_row_layer(t, row);
	char a[SEAM_NUMBER], b[SEAM_NUMBER] = "", c[SEAM_NUMBER];

	if (seam_by_is_code(t->by))
		seam_format_percent(b, total, whole);
	else if (l->number)
		snprintf(b, sizeof(b), "%d", number_of(t, row, l->number));
	fprintf(l->view->out, "%8s  %8s  %9s  ",
		seam_format_percent(a, self, whole), b,
		seam_format_count(c, row->self_samples));
	if (!l->bar)
		return;
	/* a row without code where the others have some: no stack */
	seam_view_style(l->view, row->code == SEAM_NONE &&
			seam_by_is_code(t->by) ? SEAM_STYLE_DIM :
			SEAM_STYLE_LAYER +
			(layer == SEAM_N_LAYERS ? SEAM_LAYER_NATIVE : layer));
	seam_view_bar(l->view, self, l->longest, l->bar - GAP);
	seam_view_style(l->view, SEAM_STYLE_PLAIN);
	fputs("  ", l->view->out);
}

static void put_row(const struct table_layout *l, size_t i)
{
	const struct seam_row *row = &l->table->items[i];
	enum seam_layer layer = seam_row_layer(l->table, row);

	put_figures(l, row);
	for (size_t k = 0; k < l->n_columns; k++) {
		const struct column *c = &l->columns[k];
		bool is_dim = c->key == SEAM_BY_MODULE && l->n_columns > 1;

		if (k)
			fputs("  ", l->view->out);
		if (c->has_layer)
			seam_view_print(l->view, SEAM_STYLE_LAYER + layer,
					"%-8s", layer == SEAM_N_LAYERS ? "-" :
					seam_layer_names[layer]);
		if (is_dim)
			seam_view_style(l->view, SEAM_STYLE_DIM);
		fputs(c->texts[i], l->view->out);
		if (is_dim)
			seam_view_style(l->view, SEAM_STYLE_PLAIN);
		if (k + 1 < l->n_columns)
			pad(l, seam_elide_columns(c->texts[i]), c->width);
	}
	fputc('\n', l->view->out);
}

/* The rows, and of those that --top hides the number and the share. */
static void put_table(const struct seam_report *report,
		      const struct table_layout *l)
{
	const struct seam_rows *t = l->table;
	char a[SEAM_NUMBER], b[SEAM_NUMBER];
	uint64_t rest = 0;

	if (t->n)
		put_head(l);
	else
		seam_summary_unmatched(report, l->view);
	for (size_t i = 0; i < l->n; i++)
		put_row(l, i);
	if (l->n == t->n)
		return;
	for (size_t i = l->n; i < t->n; i++)
		rest += self_of(l, &t->items[i]);
	seam_view_print(l->view, SEAM_STYLE_DIM,
			"%8s  in %s; --top 0 shows all\n",
			seam_format_percent(a, rest, l->by_weight ? t->weight :
					    t->samples),
			seam_format_amount(b, t->n - l->n, "more row"));
}

static int put_event(const struct seam_report *report,
		     const struct seam_view *view, uint32_t event)
{
	const struct seam_profile_event *of =
		&report->profile->events.items[event];
	struct seam_rows table = { 0 };
	struct table_layout l = { .view = view, .table = &table };
	int rc = seam_rows_make(&table, report->selected, event, report->by);

	if (rc || (!table.samples && !table.weight))
		goto out;
	l.by_weight = table.weight != 0;
	l.counted = of->is_measured ? "CALLS" : of->is_wait ? "WAITS" :
		    "SAMPLES";
	l.n = arrange(report, &table, l.by_weight);
	rc = lay_out(&l);
	if (rc)
		goto out;
	seam_summary_event(report, view, event, table.samples, table.weight);
	put_table(report, &l);
	rc = 1;
out:
	seam_arena_fini(&l.arena);
	seam_rows_fini(&table);
	return rc;
}

int seam_report_text(const struct seam_report *report,
		     const struct seam_view *view)
{
	return seam_summary_frame(report, view, put_event);
}

/* -- JSON --------------------------------------------------------------- */

/* One of two keys puts the members that they have in common. */
static void put_code(const struct seam_rows *table, const struct seam_row *row,
		     enum seam_by key, struct seam_json *j)
{
	bool with_symbol = seam_by_has(table->by, SEAM_BY_SYMBOL);
	const struct seam_row_code *code = row->code == SEAM_NONE ? NULL :
					   &table->codes.items[row->code];
	char buf[SEAM_ROW_TEXT];

	if (key == SEAM_BY_LINE) {
		seam_json_string(j, "file", seam_profile_text(table->profile,
						code ? code->file : 0));
		seam_json_u64(j, "line", code ? code->line : 0);
		if (with_symbol || seam_by_has(table->by, SEAM_BY_ADDRESS) ||
		    (code && code->file))
			return;		/* else the row is a function */
		key = SEAM_BY_SYMBOL;
	}
	if (key == SEAM_BY_ADDRESS) {
		seam_json_u64(j, "address", code ? code->addr : 0);
		if (with_symbol)
			return;
		key = SEAM_BY_SYMBOL;
	}
	if (key == SEAM_BY_MODULE) {
		seam_json_string(j, "module",
				 seam_row_text(table, row, key, buf));
		return;
	}
	seam_json_string(j, "layer",
			 seam_layer_names[seam_row_layer(table, row)]);
	seam_json_string(j, "symbol", seam_row_text(table, row, key, buf));
	if (!seam_by_has(table->by, SEAM_BY_MODULE))
		seam_json_string(j, "module", seam_row_module(table, row));
}

/* Weights of several events count different things and have no sum. */
static void put_rows(const struct seam_report *report, struct seam_rows *table,
		     struct seam_json *j, bool with_weights)
{
	size_t n = arrange(report, table, false);
	enum seam_by key;

	seam_json_open(j, "rows", '[');
	for (size_t i = 0; i < n; i++) {
		const struct seam_row *row = &table->items[i];

		seam_json_open(j, NULL, '{');
		for (size_t k = 0; (key = seam_by_key(table->by, k)); k++)
			if (key <= SEAM_BY_LINE)
				put_code(table, row, key, j);
			else
				seam_summary_task_json(table->profile, j,
					seam_by_group(key),
					seam_row_id(table, row, key),
					seam_by_has(table->by,
						    SEAM_BY_PROCESS));
		seam_json_u64(j, "self", row->self_samples);
		seam_json_u64(j, "total", row->samples);
		if (with_weights) {
			seam_json_u64(j, "self_weight", row->self_weight);
			seam_json_u64(j, "total_weight", row->weight);
		}
		seam_json_close(j);
	}
	seam_json_close(j);
}

static int put_events(const struct seam_report *report, struct seam_json *j,
		      bool with_rows)
{
	const struct seam_selected *selected = report->selected;
	bool all = selected->event == SEAM_NONE && !selected->events;
	int rc = 0;

	seam_json_open(j, "events", '[');
	for (uint32_t i = 0; i < report->profile->events.n && !rc; i++) {
		const struct seam_profile_event *e =
			&report->profile->events.items[i];
		struct seam_rows table;

		if (all ? !e->n_samples && !e->n_lost && !e->is_measured :
		    !seam_selected_has_event(selected, i))
			continue;
		rc = seam_rows_make(&table, report->selected, i, report->by);
		if (rc)
			break;
		seam_json_open(j, NULL, '{');
		seam_summary_event_json(report, j, i, table.samples,
					table.weight);
		if (with_rows)
			put_rows(report, &table, j, true);
		seam_json_close(j);
		seam_rows_fini(&table);
	}
	seam_json_close(j);
	return rc;
}

int seam_report_json(const struct seam_report *report, FILE *out)
{
	struct seam_json j = seam_json_make(out, false);
	struct seam_rows all = { 0 };
	bool several = seam_selected_event(report->selected) == SEAM_NONE;
	int rc = seam_rows_make(&all, report->selected, SEAM_NONE, report->by);
	char names[SEAM_BY_NAMES];

	if (rc)
		return rc;
	seam_json_open(&j, NULL, '{');
	seam_json_string(&j, "schema", "seam.report/1");
	seam_summary_json(report, &j, all.samples);
	seam_json_string(&j, "by", seam_by_names(all.by, names));
	put_rows(report, &all, &j, !several);
	rc = put_events(report, &j, several);
	seam_json_close(&j);
	seam_rows_fini(&all);
	return rc;
}
