/* SPDX-License-Identifier: MIT */
/* calls_table.c - table, histograms and JSON; see calls_table.h */
#include "report/calls_table.h"

#include <errno.h>
#include <fnmatch.h>
#include <inttypes.h>
#include <stdlib.h>

#include "base/json.h"
#include "base/text.h"

enum { BAR_COLUMNS = 40 };

/* A row of the account, and its values in the table. */
struct call_line {
	const struct seam_account_row *row;
	const char *name;
	uint64_t key;			/* to sort by, unless by name */
	uint64_t p50, p90, p99;
};

struct lines {
	struct call_line *items;
	size_t n;
	char (*numbers)[SEAM_CALL_NAME];/* numbers as names */
};

int seam_calls_sort_find(const char *name, enum seam_calls_sort *sort)
{
	static const char *const names[SEAM_N_CALLS_SORTS] = {
		[SEAM_CALLS_BY_SUM] = "sum", [SEAM_CALLS_BY_SELF] = "self",
		[SEAM_CALLS_BY_TOTAL] = "total",
		[SEAM_CALLS_BY_COUNT] = "count", [SEAM_CALLS_BY_MIN] = "min",
		[SEAM_CALLS_BY_P50] = "p50", [SEAM_CALLS_BY_P90] = "p90",
		[SEAM_CALLS_BY_P99] = "p99", [SEAM_CALLS_BY_MAX] = "max",
		[SEAM_CALLS_BY_NAME] = "name", [SEAM_CALLS_BY_ID] = "id",
	};

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

static uint64_t key_of(const struct call_line *line, enum seam_calls_sort sort)
{
	switch (sort) {
	case SEAM_CALLS_BY_SELF: return line->row->self_ns;
	case SEAM_CALLS_BY_TOTAL: return line->row->total_ns;
	case SEAM_CALLS_BY_COUNT: return line->row->count;
	case SEAM_CALLS_BY_MIN: return line->row->min_ns;
	case SEAM_CALLS_BY_P50: return line->p50;
	case SEAM_CALLS_BY_P90: return line->p90;
	case SEAM_CALLS_BY_P99: return line->p99;
	case SEAM_CALLS_BY_MAX: return line->row->max_ns;
	case SEAM_CALLS_BY_ID: return UINT64_MAX - line->row->function;
	default: return line->row->sum_ns;
	}
}

static int by_key(const void *a, const void *b)
{
	const struct call_line *x = a, *y = b;

	if (x->key != y->key)
		return x->key < y->key ? 1 : -1;
	return x->row->function < y->row->function ? -1 :
	       x->row->function > y->row->function;
}

static int by_name(const void *a, const void *b)
{
	const struct call_line *x = a, *y = b;
	int r = strcmp(x->name, y->name);

	return r ? r : by_key(a, b);
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
	size_t cap = account->rows.n + 1;

	lines->n = 0;
	lines->items = malloc(cap * sizeof(*lines->items));
	lines->numbers = malloc(cap * sizeof(*lines->numbers));
	if (!lines->items || !lines->numbers) {
		free_lines(lines);
		return -ENOMEM;
	}
	for (size_t i = 0; i < account->rows.n; i++) {
		const struct seam_account_row *row = &account->rows.items[i];
		struct call_line *line = &lines->items[lines->n];

		line->row = row;
		line->name = seam_call_name(report->names, row->function,
					    lines->numbers[lines->n]);
		if (row->count == 0 || !matches(report->filter, line->name))
			continue;
		line->p50 = seam_account_quantile(account, row, 0.50);
		line->p90 = seam_account_quantile(account, row, 0.90);
		line->p99 = seam_account_quantile(account, row, 0.99);
		line->key = key_of(line, report->sort);
		lines->n++;
	}
	qsort(lines->items, lines->n, sizeof(*lines->items),
	      report->sort == SEAM_CALLS_BY_NAME ? by_name : by_key);
	if (report->limit && lines->n > report->limit)
		lines->n = report->limit;
	return 0;
}

static enum seam_unit unit_of(const struct seam_account *account)
{
	return account->in_ticks ? SEAM_UNIT_COUNT : SEAM_UNIT_NS;
}

static void put_time(const struct seam_view *view,
		     const struct seam_account *account, uint64_t ns)
{
	char buf[SEAM_NUMBER];

	fprintf(view->out, " %9s",
		seam_format_weight(buf, ns, unit_of(account)));
}

static void put_line(const struct seam_view *view,
		     const struct seam_account *account,
		     const struct call_line *line)
{
	const struct seam_account_row *row = line->row;
	char buf[SEAM_NUMBER];

	fprintf(view->out, "%11s", seam_format_count(buf, row->count));
	put_time(view, account, row->min_ns);
	put_time(view, account, line->p50);
	put_time(view, account, line->p90);
	put_time(view, account, line->p99);
	put_time(view, account, row->max_ns);
	put_time(view, account, row->sum_ns);
	put_time(view, account, row->self_ns);
	fputs("  ", view->out);
	seam_text_put(view->out, line->name, SEAM_TEXT_TERMINAL);
	fputc('\n', view->out);
}

static uint64_t octave_count(const struct seam_account *account,
			     const struct seam_account_row *row, size_t octave)
{
	uint64_t n = 0;

	for (size_t i = 0; row->octave[octave] && i < SEAM_HISTOGRAM_STEPS; i++)
		n += account->octaves.items[row->octave[octave] - 1].n[i];
	return n;
}

static void put_bar(const struct seam_view *view,
		    const struct seam_account *account,
		    const struct seam_account_row *row, size_t octave,
		    uint64_t most)
{
	uint64_t n = octave_count(account, row, octave);
	unsigned int bucket = (unsigned int)octave * SEAM_HISTOGRAM_STEPS;
	char from[SEAM_NUMBER], to[SEAM_NUMBER], count[SEAM_NUMBER];

	fprintf(view->out, "%9s - %9s %11s ",
		seam_format_weight(from, seam_histogram_least(bucket),
				   unit_of(account)),
		seam_format_weight(to, seam_histogram_least(
					bucket + SEAM_HISTOGRAM_STEPS),
				   unit_of(account)),
		seam_format_count(count, n));
	if (view->unicode)
		seam_view_bar(view, n, most, BAR_COLUMNS);
	else
		for (uint64_t i = 0; i < n * BAR_COLUMNS / most; i++)
			fputc('#', view->out);
	fputc('\n', view->out);
}

/* A bar for each power of two, from the shortest to the longest call. */
static void put_histogram(const struct seam_view *view,
			  const struct seam_account *account,
			  const struct call_line *line)
{
	size_t first = SEAM_HISTOGRAM_OCTAVES, last = 0;
	uint64_t most = 1;

	for (size_t o = 0; o < SEAM_HISTOGRAM_OCTAVES; o++) {
		uint64_t n = octave_count(account, line->row, o);

		first = n && o < first ? o : first;
		last = n ? o : last;
		most = n > most ? n : most;
	}
	fputc('\n', view->out);
	seam_view_style(view, SEAM_STYLE_BOLD);
	seam_text_put(view->out, line->name, SEAM_TEXT_TERMINAL);
	seam_view_style(view, SEAM_STYLE_PLAIN);
	fputc('\n', view->out);
	for (size_t o = first; o <= last; o++)
		put_bar(view, account, line->row, o, most);
}

static void put_repairs(const struct seam_view *view,
			const struct seam_account *account)
{
	const struct seam_xray_problems *problems = &account->problems;
	char n[SEAM_NUMBER];

	seam_view_style(view, SEAM_STYLE_WARN);
	for (int i = 0; i < SEAM_N_REPAIRS; i++)
		if (account->repairs[i])
			fprintf(view->out, "repaired: %s %s\n",
				seam_format_count(n, account->repairs[i]),
				seam_repair_text((enum seam_repair)i));
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
	static const char *const heads[] = {
		"min", "p50", "p90", "p99", "max", "sum", "self",
	};
	struct lines lines;

	if (select_lines(&lines, report))
		return -ENOMEM;
	if (report->account->in_ticks)
		fputs("times are ticks: the log has no clock frequency\n",
		      view->out);
	seam_view_style(view, SEAM_STYLE_BOLD);
	fprintf(view->out, "%11s", "calls");
	for (size_t i = 0; i < SEAM_ARRAY_SIZE(heads); i++)
		fprintf(view->out, " %9s", heads[i]);
	fputs("  function\n", view->out);
	seam_view_style(view, SEAM_STYLE_PLAIN);
	for (size_t i = 0; i < lines.n; i++)
		put_line(view, report->account, &lines.items[i]);
	for (size_t i = 0; report->histograms && i < lines.n; i++)
		put_histogram(view, report->account, &lines.items[i]);
	put_repairs(view, report->account);
	free_lines(&lines);
	return 0;
}

static void json_functions(struct seam_json *j, const struct lines *lines)
{
	seam_json_open(j, "functions", '[');
	for (size_t i = 0; i < lines->n; i++) {
		const struct call_line *line = &lines->items[i];
		const struct seam_account_row *row = line->row;

		seam_json_open(j, NULL, '{');
		seam_json_u64(j, "id", row->function);
		seam_json_string(j, "name", line->name);
		seam_json_u64(j, "count", row->count);
		seam_json_u64(j, "min_ns", row->min_ns);
		seam_json_u64(j, "p50_ns", line->p50);
		seam_json_u64(j, "p90_ns", line->p90);
		seam_json_u64(j, "p99_ns", line->p99);
		seam_json_u64(j, "max_ns", row->max_ns);
		seam_json_u64(j, "sum_ns", row->sum_ns);
		seam_json_u64(j, "total_ns", row->total_ns);
		seam_json_u64(j, "self_ns", row->self_ns);
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
	json_functions(&j, &lines);
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
