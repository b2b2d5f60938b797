/* SPDX-License-Identifier: MIT */
/* table_json.c - rows as seam.report/1; the contract is in report.h */
#include <stdlib.h>

#include "report/report.h"
#include "report/summary.h"

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
			 seam_layer_name(seam_row_layer(table, row)));
	seam_json_string(j, "symbol", seam_row_text(table, row, key, buf));
	if (!seam_by_has(table->by, SEAM_BY_MODULE))
		seam_json_string(j, "module", seam_row_module(table, row));
}

static void put_identity(const struct seam_rows *table,
			 const struct seam_row *row, struct seam_json *j)
{
	for (size_t i = 0; seam_by_key(table->by, i); i++) {
		enum seam_by key = seam_by_key(table->by, i);

		if (key <= SEAM_BY_LINE)
			put_code(table, row, key, j);
		else
			seam_summary_task_json(table->profile, j,
				seam_by_group(key),
				seam_row_id(table, row, key),
				seam_by_has(table->by, SEAM_BY_PROCESS));
	}
}

/* Weights of several events count different things and have no sum. */
static void put_rows(const struct seam_report *report, struct seam_rows *table,
		     struct seam_json *j, bool with_weights)
{
	size_t n;

	seam_rows_sort(table, report->sort, false);
	if (report->filter)
		seam_rows_filter(table, report->filter);
	n = report->top && report->top < table->n ? report->top : table->n;
	seam_json_open(j, "rows", '[');
	for (size_t i = 0; i < n; i++) {
		const struct seam_row *row = &table->items[i];

		seam_json_open(j, NULL, '{');
		put_identity(table, row, j);
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

static bool is_shown(const struct seam_report *report, uint32_t event)
{
	const struct seam_selected *s = report->selected;
	const struct seam_profile_event *e =
		&report->profile->events.items[event];

	return s->event == SEAM_NONE ?
	       e->n_samples || e->n_lost || e->is_measured :
	       s->event == event;
}

static int put_event(const struct seam_report *report, struct seam_json *j,
		     uint32_t event, bool with_rows)
{
	struct seam_rows table = { 0 };
	int rc = seam_rows_make(&table, report->selected, event, report->by);

	if (rc)
		return rc;
	seam_json_open(j, NULL, '{');
	seam_summary_event_json(report, j, event, table.samples, table.weight);
	if (with_rows)
		put_rows(report, &table, j, true);
	seam_json_close(j);
	seam_rows_fini(&table);
	return 0;
}

static int put_events(const struct seam_report *report, struct seam_json *j,
		      bool several)
{
	int rc = 0;

	seam_json_open(j, "events", '[');
	for (uint32_t e = 0; e < report->profile->events.n && !rc; e++)
		if (is_shown(report, e))
			rc = put_event(report, j, e, several);
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
