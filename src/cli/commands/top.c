/* SPDX-License-Identifier: MIT */
/*
 * top.c - 'seam top': where the time goes, second by second
 *
 * The recorder is another process (record/stream.h); this one makes a profile
 * of what it sends (model/live/live.h) and shows that: on a screen
 * (screen/browser.h), as text, or as a line of JSON for each interval.
 */
#include "base/clock.h"
#include "base/json.h"
#include "base/text.h"
#include "cli/live_stream.h"
#include "cli/recorded.h"
#include "report/rows.h"
#include "report/view.h"
#include "screen/browser.h"
#include "wire/perf/wait_events.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

enum {
	DEFAULT_ROWS = 20,
	MIN_SAMPLES = 30,	/* of fewer, a share means nothing */
	MAX_NOTES = 16,
};

struct top_args {
	struct seam_record_options record;
	struct seam_option_list events;
	struct seam_target_args targets;
	const char *frequency, *call_graph;
	const char *once;	/* "" where it has no value */
	const char *interval;
	const char *by;
	uint64_t n_rows;
	bool json, has_inlines, off_cpu;
};

#define OPTION(...) SEAM_OPTION(struct top_args, __VA_ARGS__)

static const struct seam_option options[] = {
	{ .help = "What to sample", .kind = SEAM_OPTION_HEADING },
	SEAM_TARGET_OPTIONS(struct top_args, targets, record),
	OPTION(events, STRINGS, 'e', "event", "EVENT",
	       "an event, as of 'seam record'"),
	OPTION(frequency, STRING, 'F', "freq", "HZ",
	       "samples per second (1000)"),
	OPTION(record.period, U64, 'c', "count", "PERIOD",
	       "a sample every PERIOD events, instead of a frequency",
	       .least = 1),
	OPTION(call_graph, STRING, 0, "call-graph", "HOW",
	       "how call chains are recorded (auto)",
	       .choices = "auto|fp|none",
	       .detail = "As of 'seam record'. With none, totals are selfs."),
	OPTION(off_cpu, FLAG, 0, "off-cpu", NULL,
	       "also how long threads are blocked, and with which stack",
	       .detail = "A column of milliseconds in the interval, of all "
	       "threads together, also of waits that have not ended; of "
	       "threads, also the time on a CPU, by their switches. Stacks "
	       "are those of 'seam record --off-cpu'. On the screen, 'e' "
	       "shows the waits themselves."),
	{ .help = "What to show", .kind = SEAM_OPTION_HEADING },
	OPTION(by, STRING, 0, "by", "WHAT", "a row for each of these (symbol)",
	       .choices = "symbol|module|thread|process|comm|cpu"),
	OPTION(n_rows, U64, 0, "top", "N",
	       "rows of text and JSON; 0 for all (20)"),
	OPTION(interval, STRING, 'i', "interval", "TIME",
	       "the time between two tables, such as 500ms (1s)"),
	OPTION(once, STRING, 0, "once", "[SECONDS]",
	       "print one table of SECONDS (1), and end",
	       .detail = "Seconds, or a time with a unit."),
	OPTION(json, FLAG, 0, "json", NULL, "print a line of JSON each interval",
	       .detail = "Objects of schema seam.top/1: \"samples\" are those of "
	       "the interval, \"rows\" have the numbers of samples. No sample "
	       "is in two objects, so they can be added up. \"lost\" are samples "
	       "that the kernel had no room for, or seam no time, in the "
	       "interval; \"seam_cpus\" are the CPUs that seam used, the part "
	       "without its recorder is \"view_cpus\". With "
	       "--off-cpu rows have \"off_ns\", of threads also \"on_ns\" "
	       "and \"preempted_ns\"."),
	OPTION(has_inlines, FLAG, 0, "inline", NULL,
	       "show inlined functions, which takes time for large programs"),
};

/* Of one interval. */
struct interval {
	uint64_t ns;			/* its length */
	uint64_t n_samples, weight;	/* of the first event */
	uint64_t n_lost;
	double own_cpus;		/* CPUs that seam uses */
	double view_cpus;		/* of these, names and display */
};

struct live_top {
	const struct top_args *args;
	const char *title;
	struct seam_live_stream from;
	struct seam_browser *browser;	/* NULL: no screen, or closed */
	bool has_screen;
	uint32_t by;
	uint64_t interval_ns;
	uint64_t last_ns, last_cpu_ns, last_view_ns;
	struct seam_stream_tick last;
	struct interval now, all;
	uint64_t n_ticks;
	SEAM_ARRAY(char *) notes;	/* to be printed at the end */
	bool is_asked;			/* to end */
	struct seam_stream_end end;
	bool has_end;
};

static volatile sig_atomic_t must_end;

static void end_soon(int signal)
{
	(void)signal;
	must_end = 1;
}

/* ---- one table ---- */

/* The rows of an interval; and, with --off-cpu, those of waits. */
struct top_table {
	struct seam_selected selected;
	struct seam_rows rows, off;
	bool has_off;
};

/* The selection of everything; 0 or -ENOMEM. */
static int make_table(const struct live_top *t, struct top_table *table)
{
	const struct seam_profile *p = seam_live_profile(t->from.live);
	struct seam_selection selection;
	int r;

	*table = (struct top_table) { 0 };
	seam_selection_init(&selection);
	r = seam_selected_init(&table->selected, p, &selection, NULL);
	if (r)
		return r;
	r = seam_rows_make(&table->rows, &table->selected, 0, t->by);
	if (r == 0)
		seam_rows_sort(&table->rows, SEAM_SORT_SELF, true);
	table->has_off = r == 0 && seam_rows_make_off(&table->off,
						&table->selected, 0, t->by);
	return r;
}

static void free_table(struct top_table *table)
{
	seam_rows_fini(&table->off);
	seam_rows_fini(&table->rows);
	if (table->selected.profile)
		seam_selected_fini(&table->selected);
}

/* How long threads were blocked in what the row is of. */
static uint64_t off_ns(const struct top_table *table,
		       const struct seam_row *row)
{
	const struct seam_row *off = table->has_off ?
		seam_rows_same(&table->off, &table->rows, row) : NULL;

	return off ? off->weight : 0;
}

/* The times of a row by thread; NULL: it is none, or they are not known. */
static const struct seam_thread_time *time_of(const struct top_table *table,
					      const struct seam_row *row)
{
	const struct seam_profile *p = table->rows.profile;
	uint32_t id = table->rows.by != SEAM_BY_THREAD ? SEAM_NONE :
		      seam_row_id(&table->rows, row, SEAM_BY_THREAD);

	return id < p->thread_times.n ? &p->thread_times.items[id] : NULL;
}

static bool is_of_time(const struct live_top *t)
{
	const struct seam_profile *p = seam_live_profile(t->from.live);

	return p->events.n && p->events.items[0].unit == SEAM_UNIT_NS;
}

/* "2.00 s: 1,998 samples, 1.99 of 2 CPUs; lost 0; seam 1.2 % of a CPU". */
static void describe(const struct live_top *t, const struct interval *of,
		     char *text, size_t cap)
{
	double seconds = (double)of->ns / 1e9;
	char n[SEAM_NUMBER], lost[SEAM_NUMBER], cpus[64] = "";

	if (is_of_time(t) && of->n_samples)
		snprintf(cpus, sizeof(cpus), ", %.2f of %ld CPUs",
			 (double)of->weight / (double)(of->ns ? of->ns : 1),
			 sysconf(_SC_NPROCESSORS_ONLN));
	else if (is_of_time(t))
		snprintf(cpus, sizeof(cpus), ", idle: 0 of %ld CPUs",
			 sysconf(_SC_NPROCESSORS_ONLN));
	snprintf(text, cap, "%.2f s: %s%s; lost %s; seam %.1f %% of a CPU",
		 seconds, seam_format_amount(n, of->n_samples, "sample"), cpus,
		 seam_format_count(lost, of->n_lost), 100 * of->own_cpus);
}

static void print_row(const struct live_top *t, const struct top_table *table,
		      const struct seam_row *row)
{
	const struct seam_rows *rows = &table->rows;
	const struct seam_thread_time *time = time_of(table, row);
	enum seam_by key = seam_by_key(t->by, 0);
	uint64_t whole = rows->weight ? rows->weight : 1;
	char text[SEAM_ROW_TEXT];

	/* a share of few samples means nothing: show their number */
	if (rows->samples < MIN_SAMPLES)
		printf("%7" PRIu64 " %7" PRIu64 "  ", row->self_samples,
		       row->samples);
	else
		printf("%6.2f%% %6.2f%%  ",
		       100 * (double)row->self_weight / (double)whole,
		       100 * (double)row->weight / (double)whole);
	if (time)
		printf("%9.1f ", (double)time->running_ns / 1e6);
	if (table->has_off)
		printf("%9.1f  ", (double)off_ns(table, row) / 1e6);
	if (key == SEAM_BY_THREAD || key == SEAM_BY_PROCESS)
		printf("%7" PRId32 "  ",
		       seam_group_number(rows->profile, seam_by_group(key),
					 seam_row_id(rows, row, key)));
	seam_text_put(stdout, seam_row_text(rows, row, key, text),
		      SEAM_TEXT_TERMINAL);
	if (*seam_row_module(rows, row)) {
		printf("  ");
		seam_text_put(stdout, seam_row_module(rows, row),
			      SEAM_TEXT_TERMINAL);
	}
	printf("\n");
}

static void print_table(const struct live_top *t, const struct interval *of)
{
	size_t n = t->args->n_rows ? t->args->n_rows : SIZE_MAX;
	struct top_table table;
	char text[256];

	describe(t, of, text, sizeof(text));
	printf("%s\n", text);
	if (make_table(t, &table) == 0 && table.rows.n)
		printf("%7s %7s  %s%s%s\n", "SELF", "TOTAL",
		       table.has_off && t->by == SEAM_BY_THREAD ?
		       "  ON, ms " : "", table.has_off ? "  OFF, ms  " : "",
		       t->args->by ? t->args->by : "symbol");
	for (size_t i = 0; i < table.rows.n && i < n; i++)
		if (table.rows.items[i].samples ||
		    off_ns(&table, &table.rows.items[i]))
			print_row(t, &table, &table.rows.items[i]);
	free_table(&table);
	printf("\n");
	fflush(stdout);
}

static void json_times(struct seam_json *j, const struct top_table *table,
		       const struct seam_row *row)
{
	const struct seam_thread_time *time = time_of(table, row);

	if (table->has_off)
		seam_json_u64(j, "off_ns", off_ns(table, row));
	if (!time)
		return;
	seam_json_u64(j, "on_ns", time->running_ns);
	seam_json_u64(j, "preempted_ns", time->preempted_ns);
}

static void json_rows(const struct live_top *t, struct seam_json *j)
{
	enum seam_by key = seam_by_key(t->by, 0);
	size_t n = t->args->n_rows ? t->args->n_rows : SIZE_MAX;
	char text[SEAM_ROW_TEXT];
	struct top_table table;
	const struct seam_rows *rows = &table.rows;

	seam_json_open(j, "rows", '[');
	(void)make_table(t, &table);
	for (size_t i = 0; i < rows->n && i < n; i++) {
		const struct seam_row *row = &rows->items[i];

		seam_json_open(j, NULL, '{');
		seam_json_string(j, t->args->by ? t->args->by : "symbol",
				 seam_row_text(rows, row, key, text));
		if (key == SEAM_BY_SYMBOL)
			seam_json_string(j, "module",
					 seam_row_module(rows, row));
		if (key == SEAM_BY_THREAD || key == SEAM_BY_PROCESS)
			seam_json_i64(j, "id", seam_group_number(rows->profile,
				seam_by_group(key),
				seam_row_id(rows, row, key)));
		seam_json_u64(j, "self", row->self_samples);
		seam_json_u64(j, "total", row->samples);
		seam_json_u64(j, "self_weight", row->self_weight);
		seam_json_u64(j, "total_weight", row->weight);
		json_times(j, &table, row);
		seam_json_close(j);
	}
	seam_json_close(j);
	free_table(&table);
}

static void print_json(const struct live_top *t, const struct interval *of)
{
	const struct seam_profile *p = seam_live_profile(t->from.live);
	struct seam_json j = seam_json_make(stdout, false);

	seam_json_open(&j, NULL, '{');
	seam_json_string(&j, "schema", "seam.top/1");
	seam_json_u64(&j, "time_ns", t->last.ns);
	seam_json_u64(&j, "interval_ns", of->ns);
	seam_json_string(&j, "event", p->events.n ?
			 seam_profile_text(p, p->events.items[0].name) : NULL);
	seam_json_u64(&j, "samples", of->n_samples);
	seam_json_u64(&j, "weight", of->weight);
	seam_json_u64(&j, "lost", of->n_lost);
	seam_json_u64(&j, "other_samples", seam_live_n_other(t->from.live));
	seam_json_double(&j, "seam_cpus", of->own_cpus);
	seam_json_double(&j, "view_cpus", of->view_cpus);
	json_rows(t, &j);
	seam_json_close(&j);
	fflush(stdout);
}

/* ---- messages of the recorder ---- */

/* Samples and weight of the first event, in the last interval. */
static void count_samples(struct live_top *t)
{
	const struct seam_samples *s = &seam_live_profile(t->from.live)->samples;

	seam_live_select(t->from.live, false);
	t->now.n_samples = t->now.weight = 0;
	for (size_t i = 0; i < s->n; i++) {
		if (s->event[i] != 0)
			continue;
		t->now.n_samples += seam_samples_count(s, i);
		t->now.weight += seam_samples_weight(s, i);
	}
}

/* What a process that has ended had used is missing in @now_ns. */
static uint64_t grown_ns(uint64_t now_ns, uint64_t last_ns)
{
	return now_ns > last_ns ? now_ns - last_ns : 0;
}

static void measure(struct live_top *t, const struct seam_stream_tick *tick)
{
	uint64_t cpu_ns = seam_own_cpu_ns(getpid());
	uint64_t view_ns = cpu_ns - seam_own_cpu_ns(t->from.stream.pid);
	uint64_t n_lost = tick->n_lost + tick->n_dropped +
			  seam_live_n_damaged(t->from.live);

	count_samples(t);
	t->now.ns = tick->ns - t->last_ns;
	t->now.n_lost = n_lost - t->all.n_lost;
	t->now.own_cpus = t->now.ns ? (double)grown_ns(cpu_ns, t->last_cpu_ns) /
				      (double)t->now.ns : 0;
	t->now.view_cpus = t->now.ns ? (double)grown_ns(view_ns, t->last_view_ns) /
				       (double)t->now.ns : 0;
	t->all.own_cpus = (t->all.own_cpus * (double)t->all.ns +
			   (double)grown_ns(cpu_ns, t->last_cpu_ns)) /
			  (double)(t->all.ns + t->now.ns + 1);
	t->all.ns += t->now.ns;
	t->all.n_samples += t->now.n_samples;
	t->all.weight += t->now.weight;
	t->all.n_lost = n_lost;
	t->last_ns = tick->ns;
	t->last_cpu_ns = cpu_ns;
	t->last_view_ns = view_ns;
	t->last = *tick;
}

/* Show the interval, or all of them, on the screen. */
static void show(struct live_top *t)
{
	bool all = seam_browser_shows_all(t->browser);
	char text[256];

	seam_live_select(t->from.live, all);
	describe(t, all ? &t->all : &t->now, text, sizeof(text));
	seam_browser_show(t->browser, seam_live_profile(t->from.live), text,
			  (all ? t->all.n_lost : t->now.n_lost) > 0);
}

static int take_tick(struct live_top *t, const struct seam_stream_tick *tick)
{
	int r = seam_live_step(t->from.live, tick->ns);

	if (r < 0)
		return r;
	t->n_ticks++;
	measure(t, tick);
	if (t->browser && !seam_browser_is_paused(t->browser))
		show(t);
	else if (!t->has_screen && t->args->json)
		print_json(t, &t->now);
	else if (!t->has_screen)
		print_table(t, &t->now);
	if (t->args->once)
		t->is_asked = true;
	return 0;
}

/* A message for the user; beside a screen, once that is closed. */
static void take_note(struct live_top *t, const char *text, int size)
{
	char *note;

	if (!t->browser)
		seam_command_say("%.*s", size, text);
	else if (t->notes.n < MAX_NOTES &&
		 asprintf(&note, "%.*s", size, text) >= 0 &&
		 !SEAM_ARRAY_ADD(&t->notes, note))
		free(note);
}

static int take_message(struct live_top *t,
			const struct seam_stream_header *header,
			struct seam_bytes body)
{
	struct seam_stream_tick tick;

	switch (header->kind) {
	case SEAM_STREAM_TICK:
		memcpy(&tick, body.data, sizeof(tick));
		return t->is_asked && t->args->once ? 0 : take_tick(t, &tick);
	case SEAM_STREAM_NOTE:
		take_note(t, (const char *)body.data, (int)body.size);
		return 0;
	case SEAM_STREAM_END:
		memcpy(&t->end, body.data, sizeof(t->end));
		t->has_end = true;
		return 0;
	}
	return t->is_asked && t->args->once ? 0 :
	       seam_live_stream_take(&t->from, header, body);
}

/* ---- the loop ---- */

/* The recorder ends its command first, as on any signal. */
static void ask_to_end(struct live_top *t)
{
	if (t->browser) {
		seam_browser_close(t->browser);
		t->browser = NULL;
	}
	kill(t->from.stream.pid, SIGTERM);
}

static int run(struct live_top *t)
{
	struct seam_stream_header header;
	struct seam_bytes body;
	bool was_asked = false, goes_on = true;
	int r = 0;

	while (r == 0 && goes_on && !t->has_end) {
		struct pollfd fds[] = {
			{ t->from.stream.fd, POLLIN, 0 },
			{ t->browser ? STDIN_FILENO : -1, POLLIN, 0 },
		};

		if (poll(fds, 2, -1) < 0 && errno != EINTR)
			return -errno;
		if (t->browser && (fds[1].revents & (POLLHUP | POLLERR) ||
				   !seam_browser_keys(t->browser)))
			t->is_asked = true;
		else if (t->browser && seam_browser_wants(t->browser))
			show(t);
		if (fds[0].revents)
			goes_on = seam_stream_read(&t->from.stream);
		while (r == 0 && seam_stream_next(&t->from.stream, &header, &body))
			r = take_message(t, &header, body);
		t->is_asked |= must_end != 0;
		if (t->is_asked && !was_asked)
			ask_to_end(t);
		was_asked = t->is_asked;
	}
	return r;
}

/* ---- the command ---- */

static bool parse_time(const char *text, uint64_t *ns)
{
	char *end;
	double seconds = strtod(text, &end);

	if (end > text && !*end && seconds >= 0.01 && seconds <= 86400) {
		*ns = (uint64_t)(seconds * 1e9);
		return true;
	}
	return seam_text_ns(text, ns) && *ns >= 10 * SEAM_NS_PER_MS;
}

static int check_args(struct top_args *a, struct live_top *t, char **command)
{
	struct seam_record_options *o = &a->record;
	const char *hz = a->frequency, *time = a->once && *a->once ? a->once :
						a->interval;

	o->command = *command ? command : NULL;
	o->events = a->events.items;
	o->n_events = a->events.n;
	o->frequency_hz = o->period ? 0 : SEAM_STACK_PLAN_HZ;
	if (hz && (!(hz = seam_text_number(hz, hz + strlen(hz), 10,
					   &o->frequency_hz)) ||
		   *hz || !o->frequency_hz || o->period))
		return seam_command_misused(&seam_top_command, "-F takes a "
			"number of samples per second, and excludes -c: '%s'",
			a->frequency);
	o->call_graph = !a->call_graph || *a->call_graph == 'a' ?
			SEAM_CALL_GRAPH_DEFAULT : *a->call_graph == 'f' ?
			SEAM_CALL_GRAPH_FP : SEAM_CALL_GRAPH_NONE;
	o->off_cpu = (struct seam_off_cpu_options) {
		.is_used = a->off_cpu, .min_ns = SEAM_WAIT_MIN_NS,
	};
	t->interval_ns = SEAM_NS_PER_S;
	if (time && !parse_time(time, &t->interval_ns))
		return seam_command_misused(&seam_top_command, "not a time of "
			"10ms or more: '%s'", time);
	if (a->once && a->interval)
		return seam_command_misused(&seam_top_command, "--once cannot "
			"be combined with -i");
	seam_by_parse(a->by ? a->by : "symbol", &t->by);
	return seam_targets_read(&seam_top_command, &a->targets, o);
}

static void make_title(const struct top_args *a, char *text, size_t cap)
{
	const struct seam_target_args *t = &a->targets;
	size_t n = (size_t)snprintf(text, cap, "seam top%s%s%s%s%s%s%s",
				    t->pids ? " -p " : t->user ? " -u " : "",
				    t->pids ? t->pids : t->user ? t->user : "",
				    a->record.system_wide ? " -a" : "",
				    t->cgroup ? " -G " : "",
				    t->cgroup ? t->cgroup : "",
				    t->cpus ? " -C " : "",
				    t->cpus ? t->cpus : "");

	for (char **word = a->record.command; word && *word && n < cap; word++)
		n += (size_t)snprintf(text + n, cap - n, " %s", *word);
}

/* As that of 'seam record'; 0 where the user has ended it. */
static int exit_status(const struct live_top *t)
{
	struct seam_command_end end = t->end.command;

	if (!end.start_error && t->end.r < 0)
		return SEAM_EXIT_FAILED;
	end.was_stopped |= t->is_asked;
	/* what was lost after the only table is not missing in it */
	return seam_recorded_status(&t->args->record, &end, t->all.n_lost ||
				    (t->end.is_lossy && !t->args->once));
}

/* 0 or -errno: the screen, if there is to be one. */
static int open_screen(struct live_top *t, const char *title,
		       struct seam_err *err)
{
	if (t->args->json || t->args->once || !isatty(STDOUT_FILENO) ||
	    !isatty(STDIN_FILENO))
		return 0;
	t->has_screen = true;
	t->browser = seam_browser_open(title, true, err);
	return t->browser ? 0 : -EIO;
}

static int start(struct live_top *t, const struct top_args *args,
		 struct seam_err *err)
{
	const struct seam_symbols_options symbols = {
		.no_lines = !args->has_inlines,
	};
	char title[512];
	int r = seam_live_stream_open(&t->from, &symbols, err);

	if (r < 0)
		return r;
	make_title(args, title, sizeof(title));
	r = open_screen(t, title, err);
	if (r == 0)
		r = seam_live_stream_start(&t->from, &args->record,
				&(struct seam_stream_ticks) {
					.interval_ns = t->interval_ns },
				t->browser != NULL, getpid(), err);
	if (r < 0)
		return r;
	t->last_ns = seam_clock_ns();
	t->last_cpu_ns = seam_own_cpu_ns(getpid());
	t->last_view_ns = t->last_cpu_ns - seam_own_cpu_ns(t->from.stream.pid);
	return 0;
}

static void report_end(struct live_top *t)
{
	char text[256];

	for (size_t i = 0; i < t->notes.n; i++)
		seam_command_say("%s", t->notes.items[i]);
	if (!t->args->once && !t->args->json && t->n_ticks) {
		describe(t, &t->all, text, sizeof(text));
		seam_command_say("%s", text);
	}
	if (seam_live_n_other(t->from.live))
		seam_command_say("%" PRIu64 " samples are in [other]: too many "
				 "distinct stacks", seam_live_n_other(t->from.live));
}

static int run_top(const struct seam_command *self, int argc, char **argv)
{
	struct top_args args = { .n_rows = DEFAULT_ROWS };
	struct live_top t = { .args = &args, .from.stream.fd = -1 };
	struct sigaction action = { .sa_handler = end_soon };
	struct seam_err err = { 0 };
	int first, r, status;

	status = seam_command_parse(self, argc, argv, &args, &first);
	if (!status)
		status = check_args(&args, &t, argv + first);
	if (status)
		goto out;
	r = start(&t, &args, &err);
	sigaction(SIGTERM, &action, NULL);
	sigaction(SIGINT, &action, NULL);
	sigaction(SIGHUP, &action, NULL);
	if (r == 0)
		r = run(&t);
	if (t.browser)
		seam_browser_close(t.browser);
	if (r < 0 && !err.n_causes)
		seam_err_set(&err, r, "cannot show samples: %s", strerror(-r));
	if (r == 0 && !t.has_end)
		r = seam_err_set(&err, -EPIPE, "the recorder was killed");
	if (r == 0 && t.end.r < 0) {
		err = t.end.err;
		r = t.end.r;
	}
	status = r < 0 && !t.end.r ? SEAM_EXIT_FAILED : exit_status(&t);
	if (r < 0)
		seam_command_failed(&err);
	else
		report_end(&t);
out:
	seam_live_stream_close(&t.from);
	for (size_t i = 0; i < t.notes.n; i++)
		free(t.notes.items[i]);
	free(t.notes.items);
	seam_targets_fini(&args.record);
	return status;
}

const struct seam_command seam_top_command = {
	.name = "top",
	.summary = "show where the time goes, live",
	.synopsis = "[options] [--] [COMMAND [ARG...]]",
	.description =
		"Samples COMMAND, processes or the system as 'seam record' "
		"does, and shows the functions with the most samples of each "
		"second; nothing is written. On a terminal it is a screen with "
		"keys; 'h' lists them. Elsewhere, a table a second is printed. "
		"Seam's own processes are not shown.\n\n"
		"Of a COMMAND that runs under the screen nothing is seen: what "
		"it prints on the terminal is discarded, and it cannot read "
		"from it.\n\n"
		"Names are looked up once for each place, by symbol tables; "
		"--inline adds inlined functions. Code of JITs has the names "
		"that its runtime has written by then to a perf map or a "
		"jitdump, of processes of the user who runs seam (or sudo). "
		"Lua functions are not known: record them.\n\n"
		"It ends with COMMAND or the last of the processes, with 'q', "
		"or Ctrl-C; a COMMAND is terminated then. The exit status is "
		"that of COMMAND, 0 if the user ended it, 3 if samples were "
		"lost.",
	.limits =
		"In memory: 65536 distinct callchains an interval, 1,048,576 "
		"nodes of stacks, 262,144 threads. Samples beyond are counted "
		"as a function [other]. 32 MiB of records that were not shown "
		"yet; further samples are counted as lost.",
	.examples =
		"seam top -- make -j4\ta build, and what it starts\n"
		"seam top -p 4711\ta running process\n"
		"seam top -a\tthe machine\n"
		"seam top --off-cpu -p 4711\talso how long its threads wait\n"
		"seam top -a --once=5\tone table of 5 seconds, as text\n"
		"seam top -p 4711 --json\ta line of JSON a second\n",
	.options = options,
	.n_options = SEAM_ARRAY_SIZE(options),
	.takes_command = true,
	.run = run_top,
};
