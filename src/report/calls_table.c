/* SPDX-License-Identifier: MIT */
/* calls_table.c - table, histograms, graph and JSON; see calls_table.h */
#include "report/calls_table.h"

#include <errno.h>
#include <fnmatch.h>
#include <inttypes.h>
#include <stdlib.h>

#include "base/file.h"
#include "base/json.h"
#include "base/text.h"

enum { BAR_COLUMNS = 40 };

/* In --sort, in the table's head and, with "_ns", in JSON. */
static const char *const names[SEAM_N_CALLS_SORTS] = {
	[SEAM_CALLS_BY_COUNT] = "count", [SEAM_CALLS_BY_MIN] = "min",
	[SEAM_CALLS_BY_P50] = "p50", [SEAM_CALLS_BY_P90] = "p90",
	[SEAM_CALLS_BY_P99] = "p99", [SEAM_CALLS_BY_MAX] = "max",
	[SEAM_CALLS_BY_SUM] = "sum", [SEAM_CALLS_BY_TOTAL] = "total",
	[SEAM_CALLS_BY_SELF] = "self", [SEAM_CALLS_BY_NAME] = "name",
	[SEAM_CALLS_BY_ID] = "id",
};

/* A row of the account, and its figures. */
struct call_line {
	const struct seam_account_row *row;
	const char *name;
	const char *module;	/* path of its binary; "": not known */
	bool has_times;		/* else only its entries are recorded */
	uint64_t values[SEAM_CALLS_BY_SELF + 1];
};

struct lines {
	struct call_line *items;
	size_t n;
	bool has_modules;	/* of more than one binary */
	char (*numbers)[SEAM_CALL_NAME];/* numbers as names */
};

int seam_calls_sort_find(const char *name, enum seam_calls_sort *sort)
{
	for (int i = 0; i < SEAM_N_CALLS_SORTS; i++) {
		if (strcmp(name, names[i]) == 0) {
			*sort = (enum seam_calls_sort)i;
			return 0;
		}
	}
	return -EINVAL;
}

static bool matches(const char *filter, const char *name)
{
	if (!filter)
		return true;
	if (strpbrk(filter, "*?["))
		return fnmatch(filter, name, 0) == 0;
	return strstr(name, filter) != NULL;
}

bool seam_calls_selects(const struct seam_calls_report *report,
			uint32_t function)
{
	char buf[SEAM_CALL_NAME];

	return matches(report->filter,
		       seam_call_name(report->names, function, buf));
}

static int by_key(const void *a, const void *b, void *sort)
{
	enum seam_calls_sort key = *(enum seam_calls_sort *)sort;
	const struct call_line *x = a, *y = b;
	int r = key == SEAM_CALLS_BY_NAME ? strcmp(x->name, y->name) :
		key == SEAM_CALLS_BY_ID ? 0 :
		SEAM_COMPARE(y->values[key], x->values[key]);

	if (!r && !x->has_times && !y->has_times && key < SEAM_CALLS_BY_NAME)
		r = SEAM_COMPARE(y->row->count, x->row->count);
	if (key == SEAM_CALLS_BY_NAME && !r)
		r = SEAM_COMPARE(y->values[SEAM_CALLS_BY_TOTAL],
				 x->values[SEAM_CALLS_BY_TOTAL]);
	return r ? r : SEAM_COMPARE(x->row->function, y->row->function);
}

static const char *module_of(const struct seam_calls_report *report,
			     uint32_t function)
{
	const struct seam_xray_mapped *f = seam_xray_map_find(report->names,
							      function);

	return seam_strings_get(&report->names->strings, f ? f->image : 0);
}

static bool has_times(const struct seam_calls_report *report,
		      uint32_t function)
{
	return !seam_xray_has_entries_only(seam_xray_map_find(report->names,
							      function));
}

static void free_lines(struct lines *lines)
{
	free(lines->items);
	free(lines->numbers);
}

static int select_lines(struct lines *lines,
			const struct seam_calls_report *report)
{
	const struct seam_account *account = report->account;
	enum seam_calls_sort sort = report->sort;
	size_t cap = account->rows.n + 1;

	*lines = (struct lines) { 0 };
	lines->items = malloc(cap * sizeof(*lines->items));
	lines->numbers = malloc(cap * sizeof(*lines->numbers));
	if (!lines->items || !lines->numbers) {
		free_lines(lines);
		return -ENOMEM;
	}
	for (size_t i = 0; i < account->rows.n; i++) {
		const struct seam_account_row *row = &account->rows.items[i];
		struct call_line *line = &lines->items[lines->n];

		line->name = seam_call_name(report->names, row->function,
					    lines->numbers[lines->n]);
		if (row->count == 0 || !matches(report->filter, line->name))
			continue;
		*line = (struct call_line) { row, line->name,
			module_of(report, row->function),
			has_times(report, row->function), {
			row->count, row->min_ns,
			seam_account_quantile(account, row, 0.50),
			seam_account_quantile(account, row, 0.90),
			seam_account_quantile(account, row, 0.99),
			row->max_ns, row->sum_ns, row->total_ns, row->self_ns,
		} };
		lines->n++;
		lines->has_modules |= strcmp(lines->items[0].module,
					     line->module) != 0;
	}
	qsort_r(lines->items, lines->n, sizeof(*lines->items), by_key, &sort);
	if (report->limit && lines->n > report->limit)
		lines->n = report->limit;
	return 0;
}

/* Whether the table has a column for it: "sum" where it is the order. */
static bool has_column(const struct seam_calls_report *report, int value)
{
	return value != SEAM_CALLS_BY_SUM || report->sort == SEAM_CALLS_BY_SUM;
}

static void put_line(const struct seam_calls_report *report,
		     const struct seam_view *view,
		     const struct call_line *line, bool has_modules)
{
	char buf[SEAM_NUMBER];

	fprintf(view->out, "%11s", seam_format_count(buf, line->row->count));
	for (int i = SEAM_CALLS_BY_MIN; i <= SEAM_CALLS_BY_SELF; i++)
		if (has_column(report, i))
			fprintf(view->out, " %9s", !line->has_times ? "-" :
				seam_format_weight(buf, line->values[i],
						seam_calls_unit(report)));
	fputs("  ", view->out);
	seam_view_text(view, SEAM_STYLE_PLAIN, line->name);
	if (has_modules && line->module[0]) {
		fputs("  in ", view->out);
		seam_view_text(view, SEAM_STYLE_DIM,
			       seam_file_name(line->module));
	}
	fputc('\n', view->out);
}

static uint64_t octave_count(const struct seam_account *account,
			     const struct seam_account_row *row, size_t octave)
{
	uint64_t n = 0;

	for (size_t i = 0; row->octave[octave] && i < SEAM_HISTOGRAM_STEPS; i++)
		n += account->octaves.items[row->octave[octave]].n[i];
	return n;
}

static void put_bar(const struct seam_calls_report *report,
		    const struct seam_view *view,
		    const struct seam_account_row *row, size_t octave,
		    uint64_t most)
{
	uint64_t n = octave_count(report->account, row, octave);
	unsigned int bucket = (unsigned int)octave * SEAM_HISTOGRAM_STEPS;
	char from[SEAM_NUMBER], to[SEAM_NUMBER], count[SEAM_NUMBER];

	fprintf(view->out, "%9s - %9s %11s ",
		seam_format_weight(from, seam_histogram_least(bucket),
				   seam_calls_unit(report)),
		seam_format_weight(to, seam_histogram_least(
					bucket + SEAM_HISTOGRAM_STEPS),
				   seam_calls_unit(report)),
		seam_format_count(count, n));
	seam_view_bar(view, n, most, BAR_COLUMNS);
	fputc('\n', view->out);
}

/* A bar for each power of two, from the shortest to the longest call. */
static void put_histogram(const struct seam_calls_report *report,
			  const struct seam_view *view,
			  const struct call_line *line)
{
	size_t first = SEAM_HISTOGRAM_OCTAVES, last = 0;
	uint64_t most = 1;

	for (size_t o = 0; o < SEAM_HISTOGRAM_OCTAVES; o++) {
		uint64_t n = octave_count(report->account, line->row, o);

		first = n && o < first ? o : first;
		last = n ? o : last;
		most = n > most ? n : most;
	}
	fputc('\n', view->out);
	seam_view_text(view, SEAM_STYLE_BOLD, line->name);
	fputc('\n', view->out);
	for (size_t o = first; o <= last; o++)
		put_bar(report, view, line->row, o, most);
}

static void put_repairs(const struct seam_view *view,
			const struct seam_account *account)
{
	const struct seam_xray_problems *problems = &account->problems;
	char n[SEAM_NUMBER];

	seam_view_style(view, SEAM_STYLE_WARN);
	for (enum seam_repair i = 0; i < SEAM_N_REPAIRS; i++)
		if (account->repairs[i])
			fprintf(view->out, "%s: %s %s\n", seam_repair_what(i),
				seam_format_count(n, account->repairs[i]),
				seam_repair_text(i, account->repairs[i]));
	for (size_t i = 0; i < problems->n_kept; i++)
		fprintf(view->out, "lost: %s bytes at %#" PRIx64 ": %s\n",
			seam_format_count(n, problems->items[i].lost_bytes),
			problems->items[i].offset, problems->items[i].text);
	if (problems->n > problems->n_kept)
		fprintf(view->out, "lost: %s bytes in all, in %" PRIu64
			" places\n",
			seam_format_count(n, problems->lost_bytes),
			problems->n);
	seam_view_style(view, SEAM_STYLE_PLAIN);
}

int seam_calls_table(const struct seam_calls_report *report,
		     const struct seam_view *view)
{
	struct lines lines;

	if (select_lines(&lines, report))
		return -ENOMEM;
	if (report->account->in_ticks)
		fputs("times are ticks: the log has no clock frequency\n",
		      view->out);
	seam_view_style(view, SEAM_STYLE_BOLD);
	fprintf(view->out, "%11s", "calls");
	for (int i = SEAM_CALLS_BY_MIN; i <= SEAM_CALLS_BY_SELF; i++)
		if (has_column(report, i))
			fprintf(view->out, " %9s", names[i]);
	fputs("  function\n", view->out);
	seam_view_style(view, SEAM_STYLE_PLAIN);
	for (size_t i = 0; i < lines.n; i++)
		put_line(report, view, &lines.items[i], lines.has_modules);
	for (size_t i = 0; report->histograms && i < lines.n; i++)
		if (lines.items[i].has_times)
			put_histogram(report, view, &lines.items[i]);
	put_repairs(view, report->account);
	free_lines(&lines);
	return 0;
}

static void json_functions(struct seam_json *j, const struct lines *lines,
			   const struct seam_xray_map *map)
{
	seam_json_open(j, "functions", '[');
	for (size_t i = 0; i < lines->n; i++) {
		const struct call_line *line = &lines->items[i];

		seam_json_open(j, NULL, '{');
		seam_json_u64(j, "id", seam_call_id(map, line->row->function));
		seam_json_string(j, "name", line->name);
		if (line->module[0])
			seam_json_string(j, "module", line->module);
		seam_json_u64(j, "count", line->row->count);
		for (int k = SEAM_CALLS_BY_MIN; k <= SEAM_CALLS_BY_SELF; k++) {
			char member[16];

			snprintf(member, sizeof(member), "%s_ns", names[k]);
			if (line->has_times)
				seam_json_u64(j, member, line->values[k]);
			else
				seam_json_string(j, member, NULL);
		}
		seam_json_close(j);
	}
	seam_json_close(j);
}

static void json_lost(struct seam_json *j, const struct seam_account *account)
{
	const struct seam_xray_problems *problems = &account->problems;

	seam_json_open(j, "lost", '{');
	seam_json_u64(j, "blocks", problems->n);
	seam_json_u64(j, "bytes", problems->lost_bytes);
	seam_json_open(j, "problems", '[');
	for (size_t i = 0; i < problems->n_kept; i++) {
		seam_json_open(j, NULL, '{');
		seam_json_u64(j, "offset", problems->items[i].offset);
		seam_json_u64(j, "bytes", problems->items[i].lost_bytes);
		seam_json_string(j, "text", problems->items[i].text);
		seam_json_close(j);
	}
	seam_json_close(j);
	seam_json_close(j);
}

int seam_calls_json(const struct seam_calls_report *report, FILE *out)
{
	struct seam_json j = seam_json_make(out, true);
	struct lines lines;

	if (select_lines(&lines, report))
		return -ENOMEM;
	seam_json_open(&j, NULL, '{');
	seam_json_string(&j, "schema", "seam.calls/1");
	seam_json_string(&j, "unit",
			 report->account->in_ticks ? "ticks" : "ns");
	json_functions(&j, &lines, report->names);
	seam_json_double(&j, "quantile_error", SEAM_QUANTILE_ERROR);
	seam_json_open(&j, "repairs", '{');
	for (int i = 0; i < SEAM_N_REPAIRS; i++)
		seam_json_u64(&j, seam_repair_name((enum seam_repair)i),
			      report->account->repairs[i]);
	seam_json_close(&j);
	json_lost(&j, report->account);
	seam_json_close(&j);
	free_lines(&lines);
	return 0;
}

static void put_vertex(FILE *out, const struct seam_calls_report *report,
		       const struct seam_account_row *row)
{
	char name[SEAM_CALL_NAME], self[SEAM_NUMBER], total[SEAM_NUMBER];
	enum seam_unit unit = seam_calls_unit(report);

	fprintf(out, "F%" PRIu32 " [label=\"{", row->function);
	seam_text_put(out, seam_call_name(report->names, row->function, name),
		      SEAM_TEXT_DOT);
	if (!has_times(report, row->function)) {
		fprintf(out, "|%" PRIu64 " calls}\"];\n", row->count);
		return;
	}
	fprintf(out, "|%" PRIu64 " calls|total %s|self %s}\"];\n", row->count,
		seam_format_weight(total, row->total_ns, unit),
		seam_format_weight(self, row->self_ns, unit));
}

void seam_calls_graph(const struct seam_calls_report *report, FILE *out)
{
	const struct seam_account *account = report->account;
	char total[SEAM_NUMBER];

	fputs("digraph calls {\nnode [shape=record];\n", out);
	for (size_t i = 0; i < account->rows.n; i++)
		if (account->rows.items[i].count &&
		    seam_calls_selects(report, account->rows.items[i].function))
			put_vertex(out, report, &account->rows.items[i]);
	/* no function has the id 0; the name is that of llvm-xray's graph */
	fputs("F0 [label=\"thread\", shape=oval];\n", out);
	for (size_t i = 0; i < account->edges.n; i++) {
		const struct seam_account_edge *edge = &account->edges.items[i];
		bool is_root = edge->caller == SEAM_NONE;

		if (!seam_calls_selects(report, edge->callee) ||
		    (!is_root && !seam_calls_selects(report, edge->caller)))
			continue;
		/* 0: calls within calls of the same function, or no times */
		fprintf(out, "F%" PRIu32 " -> F%" PRIu32 " [label=\"%" PRIu64
			" x%s%s\"];\n", is_root ? 0 : edge->caller,
			edge->callee, edge->count,
			edge->total_ns ? ", " : "",
			!edge->total_ns ? "" :
			seam_format_weight(total, edge->total_ns,
					   seam_calls_unit(report)));
	}
	fputs("}\n", out);
}
