/* SPDX-License-Identifier: MIT */
/* calls.c - table, histograms and JSON of an account; see calls.h */
#include "report/calls.h"

#include <errno.h>
#include <fnmatch.h>
#include <inttypes.h>
#include <stdlib.h>

#include "base/json.h"
#include "base/text.h"
#include "report/duration.h"

/* A row of the account with what the table shows of it. */
struct line {
	const struct seam_account_row *row;
	const char *name;
	uint64_t key;			/* to sort by, unless by name */
	uint64_t p50, p90, p99;
};

struct lines {
	struct line *items;
	size_t n;
	char (*numbers)[SEAM_CALL_NAME];/* names of functions without one */
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

bool seam_calls_selects(const struct seam_calls_view *view, uint32_t function)
{
	char buf[SEAM_CALL_NAME];

	return matches(view->filter,
		       seam_call_name(view->names, function, buf));
}

static uint64_t key_of(const struct line *line, enum seam_calls_sort sort)
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
	const struct line *x = a, *y = b;

	if (x->key != y->key)
		return x->key < y->key ? 1 : -1;
	return x->row->function < y->row->function ? -1 :
	       x->row->function > y->row->function;
}

static int by_name(const void *a, const void *b)
{
	const struct line *x = a, *y = b;
	int r = strcmp(x->name, y->name);

	return r ? r : by_key(a, b);
}

static void free_lines(struct lines *lines)
{
	free(lines->items);
	free(lines->numbers);
}

static int select_lines(struct lines *lines, const struct seam_calls_view *view)
{
	const struct seam_account *account = view->account;
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
		struct line *line = &lines->items[lines->n];

		line->row = row;
		line->name = seam_call_name(view->names, row->function,
					    lines->numbers[lines->n]);
		if (row->count == 0 || !matches(view->filter, line->name))
			continue;
		line->p50 = seam_account_quantile(account, row, 0.50);
		line->p90 = seam_account_quantile(account, row, 0.90);
		line->p99 = seam_account_quantile(account, row, 0.99);
		line->key = key_of(line, view->sort);
		lines->n++;
	}
	qsort(lines->items, lines->n, sizeof(*lines->items),
	      view->sort == SEAM_CALLS_BY_NAME ? by_name : by_key);
	if (view->limit && lines->n > view->limit)
		lines->n = view->limit;
	return 0;
}

static void put_time(FILE *out, const struct seam_account *account,
		     uint64_t ns)
{
	char buf[SEAM_DURATION];

	fprintf(out, " %9s", seam_duration(buf, ns, account->in_ticks));
}

static void put_line(FILE *out, const struct seam_account *account,
		     const struct line *line)
{
	const struct seam_account_row *row = line->row;

	fprintf(out, "%10" PRIu64, row->count);
	put_time(out, account, row->min_ns);
	put_time(out, account, line->p50);
	put_time(out, account, line->p90);
	put_time(out, account, line->p99);
	put_time(out, account, row->max_ns);
	put_time(out, account, row->sum_ns);
	put_time(out, account, row->self_ns);
	fputs("  ", out);
	seam_text_put(out, line->name, SEAM_TEXT_TERMINAL);
	fputc('\n', out);
}

static uint64_t octave_count(const struct seam_account *account,
			     const struct seam_account_row *row, size_t octave)
{
	uint64_t n = 0;

	for (size_t i = 0; row->octave[octave] && i < SEAM_HISTOGRAM_STEPS; i++)
		n += account->octaves.items[row->octave[octave] - 1].n[i];
	return n;
}

/* A bar a power of two, from the shortest call's to the longest's. */
static void put_histogram(FILE *out, const struct seam_account *account,
			  const struct line *line)
{
	enum { WIDTH = 50 };
	size_t first = SEAM_HISTOGRAM_OCTAVES, last = 0;
	char from[SEAM_DURATION], to[SEAM_DURATION];
	uint64_t most = 1;

	for (size_t o = 0; o < SEAM_HISTOGRAM_OCTAVES; o++) {
		uint64_t n = octave_count(account, line->row, o);

		first = n && o < first ? o : first;
		last = n ? o : last;
		most = n > most ? n : most;
	}
	fputc('\n', out);
	seam_text_put(out, line->name, SEAM_TEXT_TERMINAL);
	fputc('\n', out);
	for (size_t o = first; o <= last; o++) {
		uint64_t n = octave_count(account, line->row, o);
		unsigned int bucket = (unsigned int)o * SEAM_HISTOGRAM_STEPS;
		int width = (int)((double)n * WIDTH / (double)most + 0.5);

		fprintf(out, "%9s - %9s |",
			seam_duration(from, seam_histogram_least(bucket),
				      account->in_ticks),
			seam_duration(to, seam_histogram_least(
					bucket + SEAM_HISTOGRAM_STEPS),
				      account->in_ticks));
		for (int i = 0; i < WIDTH; i++)
			fputs(i < width || (i == 0 && n) ? "#" : " ", out);
		fprintf(out, "| %" PRIu64 "\n", n);
	}
}

int seam_calls_table(FILE *out, const struct seam_calls_view *view)
{
	static const char *const heads[] = {
		"min", "p50", "p90", "p99", "max", "sum", "self",
	};
	struct lines lines;

	if (select_lines(&lines, view))
		return -ENOMEM;
	if (view->account->in_ticks)
		fputs("times are ticks: the log does not say how many make a "
		      "second\n", out);
	fprintf(out, "%10s", "calls");
	for (size_t i = 0; i < SEAM_ARRAY_SIZE(heads); i++)
		fprintf(out, " %9s", heads[i]);
	fputs("  function\n", out);
	for (size_t i = 0; i < lines.n; i++)
		put_line(out, view->account, &lines.items[i]);
	for (size_t i = 0; view->histograms && i < lines.n; i++)
		put_histogram(out, view->account, &lines.items[i]);
	free_lines(&lines);
	return 0;
}

void seam_calls_repairs(FILE *out, const struct seam_account *account)
{
	const struct seam_xray_problems *problems = &account->problems;

	for (int i = 0; i < SEAM_N_REPAIRS; i++)
		if (account->repairs[i])
			fprintf(out, "repaired: %" PRIu64 " %s\n",
				account->repairs[i],
				seam_repair_text((enum seam_repair)i));
	for (size_t i = 0; i < problems->n_kept; i++) {
		const struct seam_xray_problem *p = &problems->items[i];

		fprintf(out, "lost: %" PRIu64 " bytes at %#" PRIx64 ": %s\n",
			p->lost_bytes, p->offset, p->text);
	}
	if (problems->n > problems->n_kept)
		fprintf(out, "lost: %" PRIu64 " more; %" PRIu64
			" bytes in all\n", problems->n - problems->n_kept,
			problems->lost_bytes);
}

static void json_functions(struct seam_json *j, const struct lines *lines)
{
	seam_json_open(j, "functions", '[');
	for (size_t i = 0; i < lines->n; i++) {
		const struct line *line = &lines->items[i];
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

int seam_calls_json(FILE *out, const struct seam_calls_view *view)
{
	struct seam_json j = seam_json_make(out, true);
	struct lines lines;

	if (select_lines(&lines, view))
		return -ENOMEM;
	seam_json_open(&j, NULL, '{');
	seam_json_string(&j, "schema", "seam.calls/1");
	seam_json_string(&j, "unit", view->account->in_ticks ? "ticks" : "ns");
	json_functions(&j, &lines);
	seam_json_double(&j, "quantile_error", SEAM_QUANTILE_ERROR);
	seam_json_open(&j, "repairs", '{');
	for (int i = 0; i < SEAM_N_REPAIRS; i++)
		seam_json_u64(&j, seam_repair_name((enum seam_repair)i),
			      view->account->repairs[i]);
	seam_json_close(&j);
	json_lost(&j, view->account);
	seam_json_close(&j);
	free_lines(&lines);
	return 0;
}
