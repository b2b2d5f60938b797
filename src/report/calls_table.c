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
#include "model/profile/tree.h"

enum { BAR_COLUMNS = 40 };

/* In --sort, in the table's head and, with "_ns", in JSON. */
static const char *const names[SEAM_N_CALLS_SORTS] = {
	[SEAM_CALLS_BY_COUNT] = "count", [SEAM_CALLS_BY_MIN] = "min",
	[SEAM_CALLS_BY_P50] = "p50", [SEAM_CALLS_BY_P90] = "p90",
	[SEAM_CALLS_BY_P99] = "p99", [SEAM_CALLS_BY_MAX] = "max",
	[SEAM_CALLS_BY_SUM] = "sum", [SEAM_CALLS_BY_TOTAL] = "total",
	[SEAM_CALLS_BY_SELF] = "self",
	[SEAM_CALLS_BY_BLOCKED] = "blocked",
	[SEAM_CALLS_BY_PREEMPTED] = "preempted",
	[SEAM_CALLS_BY_NAME] = "name",
	[SEAM_CALLS_BY_ID] = "id",
};

/* A row of the account, and its figures. */
struct call_line {
	const struct seam_account_row *row;
	const struct seam_xray_mapped *mapped;	/* NULL: in no map */
	bool has_times;		/* else only its entries are recorded */
	uint64_t values[SEAM_CALLS_BY_PREEMPTED + 1];
};

struct lines {
	struct call_line *items;
	size_t n;
	bool has_modules;	/* of more than one binary */
};

static enum seam_unit unit_of(const struct seam_calls_report *report)
{
	return report->account->in_ticks ? SEAM_UNIT_COUNT : SEAM_UNIT_NS;
}

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

static bool selects_name(const struct seam_calls_report *report,
			 const char *name)
{
	return !report->filter ||
	       (strpbrk(report->filter, "*?[") ?
		fnmatch(report->filter, name, 0) == 0 :
		strstr(name, report->filter) != NULL);
}

bool seam_calls_selects(const struct seam_calls_report *report,
			uint32_t function)
{
	char buf[SEAM_CALL_NAME];

	return selects_name(report, seam_call_name(report->names, function,
						   buf));
}

static int by_name(const struct seam_calls_report *report,
		   const struct call_line *x, const struct call_line *y)
{
	char a[SEAM_CALL_NAME], b[SEAM_CALL_NAME];

	return strcmp(seam_call_name(report->names, x->row->function, a),
		      seam_call_name(report->names, y->row->function, b)) ?:
	       SEAM_COMPARE(y->row->total_ns, x->row->total_ns);
}

static int by_key(const void *a, const void *b, void *context)
{
	const struct seam_calls_report *report = context;
	const struct call_line *x = a, *y = b;
	int r = 0;

	if (report->sort == SEAM_CALLS_BY_NAME)
		r = by_name(report, x, y);
	else if (report->sort < SEAM_CALLS_BY_NAME)
		r = SEAM_COMPARE(y->values[report->sort],
				 x->values[report->sort]) ?:
		    (x->has_times || y->has_times ? 0 :
		     SEAM_COMPARE(y->row->count, x->row->count));
	return r ?: SEAM_COMPARE(x->row->function, y->row->function);
}

/* The path of the function's binary; "": not known. */
static const char *module_of(const struct seam_calls_report *report,
			     const struct call_line *line)
{
	return seam_strings_get(&report->names->strings,
				line->mapped ? line->mapped->image : 0);
}

static bool has_times(const struct seam_calls_report *report,
		      uint32_t function)
{
	return !seam_xray_has_entries_only(seam_xray_map_find(report->names,
							      function));
}

static struct call_line line_of(const struct seam_account *account,
				const struct seam_account_row *row)
{
	return (struct call_line) {
		.row = row, .has_times = true, .values = {
		row->count, row->min_ns,
		seam_account_quantile(account, row, 0.50),
		seam_account_quantile(account, row, 0.90),
		seam_account_quantile(account, row, 0.99),
		row->max_ns, row->sum_ns, row->total_ns, row->self_ns,
		row->self_off.blocked_ns, row->self_off.preempted_ns,
	} };
}

static int select_lines(struct lines *lines,
			const struct seam_calls_report *report)
{
	const struct seam_account *account = report->account;

	*lines = (struct lines) {
		.items = malloc((account->rows.n + 1) * sizeof(*lines->items)),
	};
	if (!lines->items)
		return -ENOMEM;
	for (size_t i = 0; i < account->rows.n; i++) {
		const struct seam_account_row *row = &account->rows.items[i];
		const struct seam_xray_mapped *f =
			seam_xray_map_find(report->names, row->function);
		struct call_line *line = &lines->items[lines->n];

		if (row->count == 0 ||
		    !seam_calls_selects(report, row->function))
			continue;
		*line = line_of(account, row);
		line->mapped = f;
		line->has_times = !seam_xray_has_entries_only(f);
		lines->n++;
		lines->has_modules |= strcmp(module_of(report, lines->items),
					     module_of(report, line)) != 0;
	}
	qsort_r(lines->items, lines->n, sizeof(*lines->items), by_key,
		(void *)(uintptr_t)report);
	if (report->limit && lines->n > report->limit)
		lines->n = report->limit;
	return 0;
}

/*
 * Whether the table has a column for it: "sum" where it is the order, waits
 * where they were recorded.
 */
static bool has_column(const struct seam_calls_report *report, int value)
{
	return value == SEAM_CALLS_BY_SUM ? report->sort == SEAM_CALLS_BY_SUM :
	       value < SEAM_CALLS_BY_BLOCKED || report->account->waits;
}

static void put_line(const struct seam_calls_report *report,
		     const struct seam_view *view,
		     const struct call_line *line, bool has_modules)
{
	const char *module = module_of(report, line);
	char buf[SEAM_NUMBER], name[SEAM_CALL_NAME];

	fprintf(view->out, "%11s", seam_format_count(buf, line->row->count));
	for (int i = SEAM_CALLS_BY_MIN; i <= SEAM_CALLS_BY_PREEMPTED; i++)
		if (has_column(report, i))
			fprintf(view->out, " %9s", !line->has_times ||
				(i >= SEAM_CALLS_BY_BLOCKED &&
				 !line->values[i]) ? "-" :
				seam_format_weight(buf, line->values[i],
						unit_of(report)));
	fputs("  ", view->out);
	seam_view_text(view, SEAM_STYLE_PLAIN,
		       seam_call_name(report->names, line->row->function,
				      name));
	if (has_modules && module[0]) {
		fputs("  in ", view->out);
		seam_view_text(view, SEAM_STYLE_DIM, seam_file_name(module));
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

/* A bar for each power of two, from the shortest to the longest call. */
static void put_histogram(const struct seam_calls_report *report,
			  const struct seam_view *view,
			  const struct seam_account_row *row)
{
	char from[SEAM_NUMBER], to[SEAM_NUMBER], name[SEAM_CALL_NAME];
	size_t first = SEAM_HISTOGRAM_OCTAVES, last = 0;
	enum seam_unit unit = unit_of(report);
	uint64_t n[SEAM_HISTOGRAM_OCTAVES], most = 1;

	for (size_t o = 0; o < SEAM_HISTOGRAM_OCTAVES; o++) {
		n[o] = octave_count(report->account, row, o);
		first = n[o] && o < first ? o : first;
		last = n[o] ? o : last;
		most = n[o] > most ? n[o] : most;
	}
	fputc('\n', view->out);
	seam_view_text(view, SEAM_STYLE_BOLD,
		       seam_call_name(report->names, row->function, name));
	fputc('\n', view->out);
	for (size_t o = first; o <= last; o++) {
		unsigned int bucket = (unsigned int)o * SEAM_HISTOGRAM_STEPS;

		fprintf(view->out, "%9s - %9s", seam_format_weight(from,
				seam_histogram_least(bucket), unit),
			seam_format_weight(to, seam_histogram_least(
				bucket + SEAM_HISTOGRAM_STEPS), unit));
		fprintf(view->out, " %11s ", seam_format_count(from, n[o]));
		seam_view_bar(view, n[o], most, BAR_COLUMNS);
		fputc('\n', view->out);
	}
}

/* -- marked intervals --------------------------------------------------- */

static const char *mark_name(const struct seam_calls_report *report,
			     const struct call_line *line)
{
	return seam_strings_get(&report->marked->names, line->row->function);
}

static int by_mark_key(const void *a, const void *b, void *context)
{
	const struct seam_calls_report *report = context;
	enum seam_calls_sort sort = report->sort == SEAM_CALLS_BY_SELF ?
				    SEAM_CALLS_BY_SUM : report->sort;
	const struct call_line *x = a, *y = b;
	int r = sort >= SEAM_CALLS_BY_NAME ? 0 :
		SEAM_COMPARE(y->values[sort], x->values[sort]);

	return r ?: strcmp(mark_name(report, x), mark_name(report, y));
}

/* The marked intervals that pass the filter; waits are of all their time. */
static int select_marks(struct lines *lines,
			const struct seam_calls_report *report)
{
	const struct seam_account *account = &report->marked->account;

	*lines = (struct lines) {
		.items = malloc((account->rows.n + 1) * sizeof(*lines->items)),
	};
	if (!lines->items)
		return -ENOMEM;
	for (size_t i = 0; i < account->rows.n; i++) {
		struct call_line line = line_of(account,
						&account->rows.items[i]);

		line.values[SEAM_CALLS_BY_BLOCKED] = line.row->off.blocked_ns;
		line.values[SEAM_CALLS_BY_PREEMPTED] =
			line.row->off.preempted_ns;
		if (selects_name(report, mark_name(report, &line)))
			lines->items[lines->n++] = line;
	}
	qsort_r(lines->items, lines->n, sizeof(*lines->items), by_mark_key,
		(void *)(uintptr_t)report);
	if (report->limit && lines->n > report->limit)
		lines->n = report->limit;
	return 0;
}

static void put_mark(const struct seam_calls_report *report,
		     const struct seam_view *view,
		     const struct call_line *line)
{
	char buf[SEAM_NUMBER];

	fprintf(view->out, "%11s", seam_format_count(buf, line->row->count));
	for (int i = SEAM_CALLS_BY_MIN; i <= SEAM_CALLS_BY_PREEMPTED; i++)
		if (has_column(report, i))
			fprintf(view->out, " %9s", i == SEAM_CALLS_BY_SELF ?
				"-" : seam_format_weight(buf, line->values[i],
							 unit_of(report)));
	fputs("  ", view->out);
	seam_view_text(view, SEAM_STYLE_PLAIN, mark_name(report, line));
	fputc('\n', view->out);
}

static void put_columns(const struct seam_calls_report *report,
			const struct seam_view *view, const char *noun,
			const char *name)
{
	seam_view_style(view, SEAM_STYLE_BOLD);
	fprintf(view->out, "%11s", noun);
	for (int i = SEAM_CALLS_BY_MIN; i <= SEAM_CALLS_BY_PREEMPTED; i++)
		if (has_column(report, i))
			fprintf(view->out, " %9s", names[i]);
	fprintf(view->out, "  %s\n", name);
	seam_view_style(view, SEAM_STYLE_PLAIN);
}

static int put_marks(const struct seam_calls_report *report,
		     const struct seam_view *view)
{
	const struct seam_marked_unpaired *unpaired =
		&report->marked->unpaired;
	struct lines lines;

	if (select_marks(&lines, report))
		return -ENOMEM;
	if (lines.n)
		put_columns(report, view, "intervals",
			    "marked by the program");
	for (size_t i = 0; i < lines.n; i++)
		put_mark(report, view, &lines.items[i]);
	free(lines.items);
	seam_view_style(view, SEAM_STYLE_WARN);
	if (unpaired->n_begins)
		fprintf(view->out, "left out: %" PRIu64 " marked begin%s "
			"without an end\n", unpaired->n_begins,
			unpaired->n_begins == 1 ? "" : "s");
	if (unpaired->n_ends)
		fprintf(view->out, "left out: %" PRIu64 " marked end%s "
			"without a begin\n", unpaired->n_ends,
			unpaired->n_ends == 1 ? "" : "s");
	seam_view_style(view, SEAM_STYLE_PLAIN);
	return 0;
}

static void put_repairs(const struct seam_view *view,
			const struct seam_account *account)
{
	const struct seam_xray_problems *problems = &account->problems;
	char n[SEAM_NUMBER];

	seam_view_style(view, SEAM_STYLE_WARN);
	for (enum seam_repair i = 0; i < SEAM_N_REPAIRS; i++)
		if (account->repairs[i])
			fprintf(view->out, "%s: %s %s\n", seam_repairs[i].what,
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
	put_columns(report, view, "calls", "function");
	for (size_t i = 0; i < lines.n; i++)
		put_line(report, view, &lines.items[i], lines.has_modules);
	for (size_t i = 0; report->histograms && i < lines.n; i++)
		if (lines.items[i].has_times)
			put_histogram(report, view, lines.items[i].row);
	free(lines.items);
	if (report->marked && put_marks(report, view))
		return -ENOMEM;
	put_repairs(view, report->account);
	return 0;
}

/* Of total and self, the thread was blocked, or could run without a CPU. */
static void json_waits(struct seam_json *j, const struct seam_account_row *row)
{
	seam_json_u64(j, "blocked_ns", row->off.blocked_ns);
	seam_json_u64(j, "preempted_ns", row->off.preempted_ns);
	seam_json_u64(j, "self_blocked_ns", row->self_off.blocked_ns);
	seam_json_u64(j, "self_preempted_ns", row->self_off.preempted_ns);
}

static void json_functions(struct seam_json *j, const struct lines *lines,
			   const struct seam_calls_report *report)
{
	seam_json_open(j, "functions", '[');
	for (size_t i = 0; i < lines->n; i++) {
		const struct call_line *line = &lines->items[i];
		const char *module = module_of(report, line);
		uint32_t function = line->row->function;
		char name[SEAM_CALL_NAME];

		seam_json_open(j, NULL, '{');
		seam_json_u64(j, "id", seam_call_id(report->names, function));
		seam_json_string(j, "name", seam_call_name(report->names,
							   function, name));
		if (module[0])
			seam_json_string(j, "module", module);
		seam_json_u64(j, "count", line->row->count);
		for (int k = SEAM_CALLS_BY_MIN; k <= SEAM_CALLS_BY_PREEMPTED; k++) {
			char member[16];

			snprintf(member, sizeof(member), "%s_ns", names[k]);
			if (k == SEAM_CALLS_BY_BLOCKED)
				break;
			if (line->has_times)
				seam_json_u64(j, member, line->values[k]);
			else
				seam_json_string(j, member, NULL);
		}
		if (report->account->waits && line->has_times)
			json_waits(j, line->row);
		seam_json_close(j);
	}
	seam_json_close(j);
}

static int json_marks(struct seam_json *j,
		      const struct seam_calls_report *report)
{
	const struct seam_marked_sums *marked = report->marked;
	struct lines lines;

	if (select_marks(&lines, report))
		return -ENOMEM;
	seam_json_open(j, "intervals", '[');
	for (size_t i = 0; i < lines.n; i++) {
		const struct call_line *line = &lines.items[i];
		char member[16];

		seam_json_open(j, NULL, '{');
		seam_json_string(j, "name", mark_name(report, line));
		seam_json_u64(j, "count", line->row->count);
		for (int k = SEAM_CALLS_BY_MIN; k <= SEAM_CALLS_BY_SUM; k++) {
			snprintf(member, sizeof(member), "%s_ns", names[k]);
			seam_json_u64(j, member, line->values[k]);
		}
		if (report->account->waits) {
			seam_json_u64(j, "blocked_ns",
				      line->row->off.blocked_ns);
			seam_json_u64(j, "preempted_ns",
				      line->row->off.preempted_ns);
		}
		seam_json_close(j);
	}
	seam_json_close(j);
	seam_json_open(j, "unpaired", '{');
	seam_json_u64(j, "begins", marked->unpaired.n_begins);
	seam_json_u64(j, "ends", marked->unpaired.n_ends);
	seam_json_close(j);
	free(lines.items);
	return 0;
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
	int r = 0;

	if (select_lines(&lines, report))
		return -ENOMEM;
	seam_json_open(&j, NULL, '{');
	seam_json_string(&j, "schema", "seam.calls/1");
	seam_json_string(&j, "unit",
			 report->account->in_ticks ? "ticks" : "ns");
	json_functions(&j, &lines, report);
	if (report->marked)
		r = json_marks(&j, report);
	seam_json_double(&j, "quantile_error", SEAM_QUANTILE_ERROR);
	seam_json_open(&j, "repairs", '{');
	for (int i = 0; i < SEAM_N_REPAIRS; i++)
		seam_json_u64(&j, seam_repairs[i].name,
			      report->account->repairs[i]);
	seam_json_close(&j);
	json_lost(&j, report->account);
	seam_json_close(&j);
	free(lines.items);
	return r;
}

static void put_vertex(FILE *out, const struct seam_calls_report *report,
		       const struct seam_account_row *row)
{
	char name[SEAM_CALL_NAME], self[SEAM_NUMBER], total[SEAM_NUMBER];
	enum seam_unit unit = unit_of(report);

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
					   unit_of(report)));
	}
	fputs("}\n", out);
}

/* -- stacks ------------------------------------------------------------- */

enum {
	MARGIN = 30,			/* columns before a function's name */
	MAX_INDENT = 40,		/* levels; deeper: same column */
	SHOWN_EVENTS = 16,		/* of a node */
	SHOWN_CALLS = 4,		/* of a node, with their arguments */
	SHOWN_BYTES = 32,		/* of an event */
	SHOWN_JSON = 400,		/* the same, of JSON */
};

static int indent(int depth)
{
	return 2 * (depth < MAX_INDENT ? depth : MAX_INDENT);
}

static void put_name(FILE *out, const struct seam_calls_report *report,
		     uint32_t function)
{
	char buf[SEAM_CALL_NAME];

	seam_text_put(out, seam_call_name(report->names, function, buf),
		      SEAM_TEXT_TERMINAL);
}

static int longest_first(const struct seam_node *a, const struct seam_node *b,
			 void *context)
{
	(void)context;
	return SEAM_COMPARE(b->weight, a->weight) ?: SEAM_COMPARE(a, b);
}

/* The events of one node: [*from, result) of @call's. */
static size_t events_of(const struct seam_slow_call *call, uint32_t node,
			size_t *from)
{
	const struct seam_slow_event *events = call->events.items;

	*from = SEAM_ARRAY_SEARCH(i, call->events.n, events[i].node < node);
	return SEAM_ARRAY_SEARCH(i, call->events.n, events[i].node <= node);
}

/* A register: a number, or what is an address to all appearance. */
static void put_value(FILE *out, uint64_t value)
{
	int64_t number = (int64_t)value;

	if (number >= INT32_MIN && number <= UINT32_MAX)
		fprintf(out, "%" PRId64, number);
	else
		fprintf(out, "%#" PRIx64, value);
}

/* "(1, 2)" for a call; "(1), (5), (1), (7), ..." for several. */
static void put_arguments(FILE *out, const struct seam_slow_call *call,
			  size_t from, size_t to)
{
	const struct seam_slow_event *before = NULL;
	unsigned int n_calls = 0;

	for (size_t i = from; i < to; i++) {
		const struct seam_slow_event *e = &call->events.items[i];
		bool is_next = !before || before->nth_call != e->nth_call;

		if (e->kind != SEAM_XRAY_ARGUMENT)
			continue;
		if (is_next && n_calls++ == SHOWN_CALLS) {
			fputs("), ...", out);
			return;
		}
		fputs(!before ? "(" : is_next ? "), (" : ", ", out);
		put_value(out, e->value);
		before = e;
	}
	if (before)
		fputc(')', out);
}

/*
 * JSON as it is, if it is short and of printable characters; else the first
 * bytes, as text if printable, else in hexadecimal.
 */
static void put_data(FILE *out, struct seam_bytes data)
{
	struct seam_bytes shown = data;

	if (data.size <= SHOWN_JSON && seam_json_check(data) &&
	    seam_text_are_printable(data)) {
		fprintf(out, " %.*s", (int)data.size, (const char *)data.data);
		return;
	}
	if (shown.size > SHOWN_BYTES)
		shown.size = SHOWN_BYTES;
	if (shown.size && seam_text_are_printable(shown)) {
		fputs(" \"", out);
		for (size_t i = 0; i < shown.size; i++)
			fprintf(out, strchr("\"\\", shown.data[i]) ? "\\%c" :
				"%c", shown.data[i]);
		fputc('"', out);
	} else {
		for (size_t i = 0; i < shown.size; i++)
			fprintf(out, " %02x", shown.data[i]);
	}
	if (data.size > shown.size)
		fprintf(out, " ... %zu bytes", data.size);
}

static void put_event_name(FILE *out, const struct seam_slow_call *call,
			   const struct seam_slow_event *event)
{
	const char *name = event->kind == SEAM_XRAY_TYPED ?
		seam_event_name_find(call->event_names, event->type) : NULL;

	if (name)
		seam_text_put(out, name, SEAM_TEXT_TERMINAL);
	else if (event->kind == SEAM_XRAY_TYPED)
		fprintf(out, "typed event %u", event->type);
	else
		fputs("custom event", out);
	fputc(':', out);
}

static void put_events(FILE *out, const struct seam_calls_report *report,
		       const struct seam_slow_call *call, size_t from,
		       size_t to, int depth)
{
	size_t n = 0, n_hidden = 0;
	char offset[SEAM_NUMBER];

	for (size_t i = from; i < to; i++) {
		const struct seam_slow_event *e = &call->events.items[i];

		if (e->kind == SEAM_XRAY_ARGUMENT)
			continue;
		if (n++ >= SHOWN_EVENTS) {
			n_hidden++;
			continue;
		}
		fprintf(out, "%*s+%s ", MARGIN + indent(depth + 1), "",
			seam_format_weight(offset, e->offset_ns,
					   unit_of(report)));
		put_event_name(out, call, e);
		put_data(out, e->data);
		fputc('\n', out);
	}
	if (n_hidden)
		fprintf(out, "%*s... %zu more\n", MARGIN + indent(depth + 1),
			"", n_hidden);
}

/* Two columns: of the self time, blocked and preempted. */
static void put_waits(FILE *out, const struct seam_off_time *off)
{
	char blocked[SEAM_NUMBER], preempted[SEAM_NUMBER];

	fprintf(out, "%9s %9s ", !off->blocked_ns ? "-" :
		seam_format_weight(blocked, off->blocked_ns, SEAM_UNIT_NS),
		!off->preempted_ns ? "-" :
		seam_format_weight(preempted, off->preempted_ns, SEAM_UNIT_NS));
}

static void put_node(FILE *out, const struct seam_calls_report *report,
		     const struct seam_slow_call *call, uint32_t id, int depth)
{
	const struct seam_call_path *node = &call->tree.nodes.items[id];
	uint32_t tail_of = id < call->tail_of.n ? call->tail_of.items[id] :
			   SEAM_NONE;
	char total[SEAM_NUMBER], self[SEAM_NUMBER];
	bool is_timed = has_times(report, node->function);
	enum seam_unit unit = unit_of(report);
	size_t from, to = events_of(call, id, &from);

	fprintf(out, "%9s %9s ", !is_timed ? "-" :
		seam_format_weight(total, node->total_ns, unit),
		!is_timed ? "-" :
		seam_format_weight(self, node->self_ns, unit));
	if (report->account->waits)
		put_waits(out, &call->self_off.items[id]);
	fprintf(out, "%8" PRIu64 "  %*s", node->count, indent(depth), "");
	put_name(out, report, node->function);
	put_arguments(out, call, from, to);
	if (tail_of != SEAM_NONE) {
		fputs("  tail call of ", out);
		put_name(out, report, tail_of);
	}
	fputc('\n', out);
	put_events(out, report, call, from, to, depth);
}

/*
 * Mark the nodes that are large enough, or have an event in them.  Parents come
 * first in the tree's array.  Returns how many are not marked.
 */
static size_t mark_shown(bool *shown, const struct seam_calls_report *report,
			 const struct seam_slow_call *call)
{
	const struct seam_call_path *nodes = call->tree.nodes.items;
	size_t n = call->tree.nodes.n, n_hidden = 0;
	double least = n > 1 ? report->min_percent / 100 *
			       (double)nodes[1].total_ns : 0;

	for (size_t i = 0; i < call->events.n; i++)
		if (call->events.items[i].kind != SEAM_XRAY_ARGUMENT)
			shown[call->events.items[i].node] = true;
	for (size_t i = n; i-- > 1;) {
		shown[i] = shown[i] || (double)nodes[i].total_ns >= least;
		if (shown[i])
			shown[nodes[i].parent] = true;
		n_hidden += !shown[i];
	}
	return n_hidden;
}

static void put_tree(FILE *out, const struct seam_calls_report *report,
		     const struct seam_slow_call *call)
{
	const struct seam_call_paths *paths = &call->tree;
	bool *shown = calloc(paths->nodes.n + 1, sizeof(*shown));
	struct seam_tree tree = { 0 };	/* with the ids of the paths */
	bool is_made = shown && paths->nodes.n;
	size_t n_hidden = 0;
	char n[SEAM_NUMBER];

	for (size_t i = 0; is_made && i < paths->nodes.n; i++) {
		const struct seam_call_path *path = &paths->nodes.items[i];
		uint32_t id = seam_tree_add(&tree, path->parent, 0, false);

		is_made = id != SEAM_NONE;
		if (is_made)
			tree.items[id].weight = path->total_ns;
	}
	is_made = is_made && !seam_tree_sort(&tree, longest_first, NULL);
	if (is_made)
		n_hidden = mark_shown(shown, report, call);
	for (uint32_t i = is_made ? seam_tree_next(&tree, 0, true) : SEAM_NONE;
	     i != SEAM_NONE; i = seam_tree_next(&tree, i, shown[i]))
		if (shown[i])
			put_node(out, report, call, i,
				 (int)tree.items[i].depth - 1);
	if (n_hidden)
		fprintf(out, "%s not shown; --min-percent 0 shows all\n",
			seam_format_amount(n, n_hidden, "smaller node"));
	free(tree.items);
	free(shown);
}

/* A final tail call, and what is beyond the limits. */
static void put_rest(FILE *out, const struct seam_calls_report *report,
		     const struct seam_slow_call *call)
{
	if (call->tail_callee != SEAM_NONE) {
		fputs("it ended in a tail call of ", out);
		put_name(out, report, call->tail_callee);
		fputc('\n', out);
	}
	if (call->tree.n_left_out)
		fprintf(out, "%" PRIu64 " more calls, of too many different "
			"stacks\n", call->tree.n_left_out);
	if (call->n_events > call->events.n)
		fprintf(out, "%" PRIu64 " more arguments and events\n",
			call->n_events - call->events.n);
}

/* The options that select the call in reports and flame graphs. */
static void put_selection(FILE *out, const struct seam_slow_call *call,
			  int32_t tid)
{
	uint64_t from = call->call.begin_ns, to = call->call.end_ns;

	fprintf(out, "--event=xray --thread=%" PRId32 " --time=@%" PRIu64
		".%09" PRIu64 ",@%" PRIu64 ".%09" PRIu64 "\n", tid,
		from / 1000000000, from % 1000000000, to / 1000000000,
		to % 1000000000);
}

/* "1.5 ms at 7.000000000 s in thread 8 of process 7" */
static void put_head(FILE *out, const struct seam_calls_report *report,
		     const struct seam_slow_call *call,
		     const struct seam_trace_stream *stream)
{
	uint64_t from = call->call.begin_ns;
	char length[SEAM_NUMBER];

	fprintf(out, "%s%s at %" PRIu64 ".%09" PRIu64 " s in thread %" PRId32
		" of process %" PRId32,
		seam_format_weight(length, call->call.end_ns - from,
				   unit_of(report)),
		call->no_begin || call->no_end ? " or more" : "",
		from / 1000000000, from % 1000000000, stream->tid,
		stream->pid);
	if (call->no_begin || call->no_end)
		fprintf(out, ": %s not in the log",
			!call->no_end ? "its beginning is" :
			!call->no_begin ? "its end is" :
			"its beginning and end are");
	fputc('\n', out);
}

void seam_calls_stacks(const struct seam_calls_report *report,
		       const struct seam_slow_calls *slow,
		       const struct seam_trace *trace,
		       const struct seam_view *view)
{
	for (size_t i = 0; i < slow->n; i++) {
		const struct seam_slow_call *call = &slow->items[i];
		const struct seam_trace_stream *stream =
			&trace->streams.items[call->call.stream];

		seam_view_style(view, SEAM_STYLE_BOLD);
		fputs(i ? "\n" : "", view->out);
		put_head(view->out, report, call, stream);
		seam_view_style(view, SEAM_STYLE_PLAIN);
		put_selection(view->out, call, stream->tid);
		fprintf(view->out, "%9s %9s %s%8s  function\n", "total",
			"self", report->account->waits ?
			"  blocked preempted " : "", "calls");
		put_tree(view->out, report, call);
		put_rest(view->out, report, call);
	}
}
