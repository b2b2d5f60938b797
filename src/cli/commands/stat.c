/* SPDX-License-Identifier: MIT */
/*
 * stat.c - 'seam stat': count what a program uses, once or several times
 *
 * Each run is a process of its own: what a recorder does to itself (signals,
 * limits, scheduling) is not inherited by the next run's command, and what the
 * kernel adds up of children is of one run.
 */
#include "base/json.h"
#include "base/text.h"
#include "cli/forward.h"
#include "cli/recorded.h"
#include "record/counters/counters.h"
#include "record/proc/procfs.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>

enum {
	MAX_RUNS = 1000,
	MAX_ROWS = 20,		/* of processes; JSON has all */
};

/* Where a time is printed in seconds, and not in ms. */
#define SECONDS_NS 1e10

struct stat_args {
	uint64_t n_runs;
	struct seam_target_args targets;
	const char *by;
	const char *output;	/* NULL: standard error */
	bool json;
};

static const struct seam_option options[] = {
	SEAM_OPTION(struct stat_args, n_runs, U64, 'r', "repeat", "N",
		    "run COMMAND N times: the median, and from where to where",
		    .least = 1),
	SEAM_PID_OPTION(struct stat_args, targets),
	SEAM_OPTION(struct stat_args, by, STRING, 0, "by", "WHAT",
		    "also a row for each process", .choices = "process"),
	SEAM_OPTION(struct stat_args, json, FLAG, 0, "json", NULL,
		    "print JSON",
		    .detail = "An object of schema seam.stat/1. What is not "
		    "known is null. Times are in ns, sizes in bytes. "
		    "\"part\" is there where a value is of less than all: "
		    "of the wake delay the part of the CPU time whose threads "
		    "could be read, of a hardware counter the part of the "
		    "time that it counted, for which it is already scaled."),
	SEAM_OPTION(struct stat_args, output, STRING, 'o', "output", "FILE",
		    "write to FILE, not to standard error"),
};

/* What a run sends to its parent; its processes follow. */
struct run_message {
	int r;
	struct seam_err err;
	struct seam_counts_of_run counts;
};

/* All runs, and the sum of them. */
struct runs {
	SEAM_ARRAY(struct seam_counts_of_run) items;
	int status;		/* exit status */
};

/* ---- one run, in a process of its own ---- */

static void say(void *context, bool verbose, const char *text)
{
	(void)context;
	(void)verbose;
	/* of rings and rates, which matter to nobody who counts */
	if (seam_command_verbose())
		seam_command_say("%s", text);
}

static bool write_all(int fd, const void *data, size_t size)
{
	const char *at = data;
	ssize_t n;

	for (; size; at += n, size -= (size_t)n) {
		do
			n = write(fd, at, size);
		while (n < 0 && errno == EINTR);
		if (n <= 0)
			return false;
	}
	return true;
}

/* False: the run has ended before it has sent all. */
static bool read_all(int fd, void *data, size_t size)
{
	char *at = data;
	ssize_t n;

	for (; size; at += n, size -= (size_t)n) {
		do
			n = read(fd, at, size);
		while (n < 0 && errno == EINTR);
		if (n <= 0)
			return false;
	}
	return true;
}

/* Does not return. */
static void run_and_send(const struct seam_record_options *what, int fd)
{
	struct run_message message = { 0 };

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	message.r = seam_counters_run(what, &message.counts, &message.err);
	if (!write_all(fd, &message, sizeof(message)) ||
	    !write_all(fd, message.counts.processes,
		       message.counts.n_processes *
		       sizeof(*message.counts.processes)))
		_exit(SEAM_EXIT_FAILED);
	_exit(SEAM_EXIT_DONE);
}

/* 0, and a run more; or -errno. */
static int run_once(struct runs *runs, const struct seam_record_options *what,
		    struct seam_err *err)
{
	struct run_message message = { 0 };
	struct seam_counts_of_run *counts = &message.counts;
	bool is_whole;
	int fds[2];
	pid_t pid;

	if (pipe2(fds, O_CLOEXEC) < 0)
		return seam_err_errno(err, "cannot make a pipe");
	pid = seam_forward_fork();
	if (pid == 0) {
		close(fds[0]);
		run_and_send(what, fds[1]);
	}
	close(fds[1]);
	if (pid < 0) {
		close(fds[0]);
		return seam_err_errno(err, "cannot fork");
	}
	is_whole = read_all(fds[0], &message, sizeof(message));
	counts->processes = NULL;
	if (is_whole && counts->n_processes)
		counts->processes = calloc(counts->n_processes,
					   sizeof(*counts->processes));
	if (counts->processes &&
	    !read_all(fds[0], counts->processes, counts->n_processes *
		      sizeof(*counts->processes)))
		counts->n_processes = 0;
	close(fds[0]);
	seam_forward_wait(NULL);
	if (is_whole && message.r < 0) {
		*err = message.err;
		runs->status = counts->command.start_error ?
			seam_recorded_status(what, &counts->command, false) :
			SEAM_EXIT_FAILED;
		return message.r;
	}
	if (!is_whole)
		return seam_err_set(err, -EPIPE, "the process of a run was "
				    "killed");
	return SEAM_ARRAY_ADD(&runs->items, *counts) ? 0 :
	       seam_err_no_memory(err);
}

/* ---- the sum of all runs ---- */

struct range {
	bool is_known;		/* in each run */
	double median, min, max;
	double part;		/* the smallest */
};

static int by_value(const void *a, const void *b)
{
	const double *x = a, *y = b;

	return *x < *y ? -1 : *x > *y;
}

static struct range range_of(const struct runs *runs, size_t counter)
{
	struct range range = { .is_known = runs->items.n > 0, .part = 1 };
	double values[MAX_RUNS];
	size_t n = runs->items.n;

	for (size_t i = 0; i < n; i++) {
		const struct seam_counter_value *value =
			&runs->items.items[i].values[counter];

		range.is_known &= value->is_known;
		values[i] = value->value;
		if (value->part < range.part)
			range.part = value->part;
	}
	if (!range.is_known)
		return (struct range) { 0 };
	qsort(values, n, sizeof(*values), by_value);
	range.min = values[0];
	range.max = values[n - 1];
	range.median = (values[(n - 1) / 2] + values[n / 2]) / 2;
	return range;
}

static bool any_hardware(const struct runs *runs)
{
	for (size_t i = 0; i < SEAM_N_COUNTERS; i++)
		if (seam_counter_rows[i].is_hardware &&
		    range_of(runs, i).is_known)
			return true;
	return false;
}

/* ---- text ---- */

/* @v with commas, and @n_digits after the point. */
static const char *number(char buf[48], double v, int n_digits)
{
	char plain[40];
	size_t n_whole, n = 0;

	snprintf(plain, sizeof(plain), "%.*f", n_digits, v);
	n_whole = strcspn(plain, ".");
	for (size_t i = 0; plain[i] && n < 46; i++) {
		if (i && i < n_whole && (n_whole - i) % 3 == 0 &&
		    plain[i - 1] != '-')
			buf[n++] = ',';
		buf[n++] = plain[i];
	}
	buf[n] = '\0';
	return buf;
}

/* How values of a row are printed: divided, digits, unit. */
struct value_scale {
	double by;
	int n_digits;
	const char *unit;
};

static struct value_scale scale_of(enum seam_counter_unit unit, double value)
{
	if (unit == SEAM_COUNTER_NS)
		return value < SECONDS_NS ? (struct value_scale) { 1e6, 3, "ms" } :
		       (struct value_scale) { 1e9, 3, "s" };
	if (unit == SEAM_COUNTER_BYTES)
		return (struct value_scale) { 1 << 20, 1, "MiB" };
	return (struct value_scale) { 1, unit == SEAM_COUNTER_RATIO ? 3 : 0, "" };
}

/* What a reader must know of a value, "" for most. */
static const char *remark(char buf[80], const struct runs *runs, size_t i,
			  const struct range *range)
{
	const struct seam_counts_of_run *first = runs->items.items;

	buf[0] = '\0';
	if (!range->is_known)
		return buf;
	if (i == SEAM_COUNTER_WAKE_DELAY && range->part < 0.995)
		snprintf(buf, 80, "of threads with %.0f %% of the CPU time",
			 100 * range->part);
	else if (i == SEAM_COUNTER_MAX_RSS && first->is_max_rss_ours)
		snprintf(buf, 80, "at most: what seam had before the exec");
	else if (seam_counter_rows[i].is_hardware && range->part < 0.995)
		snprintf(buf, 80, "scaled: counted %.0f %% of the time",
			 100 * range->part);
	else if (seam_counter_rows[i].is_hardware && first->is_user_only)
		snprintf(buf, 80, "user code only");
	return buf;
}

static void print_row(FILE *out, const struct runs *runs, size_t i)
{
	const struct seam_counter_row *row = &seam_counter_rows[i];
	struct range range = range_of(runs, i);
	struct value_scale scale = scale_of(row->unit, range.median);
	char value[48] = "-", low[48], high[48], text[80];

	if (range.is_known)
		number(value, range.median / scale.by, scale.n_digits);
	fprintf(out, "  %-20s %16s", row->label, value);
	remark(text, runs, i, &range);
	if (range.is_known && (*scale.unit || runs->items.n > 1 || *text))
		fprintf(out, " %-3s", scale.unit);
	if (range.is_known && runs->items.n > 1)
		fprintf(out, "  %s .. %s",
			number(low, range.min / scale.by, scale.n_digits),
			number(high, range.max / scale.by, scale.n_digits));
	fprintf(out, "%s%s\n", *text ? "  " : "", text);
}

static int by_cpu_time(const void *a, const void *b)
{
	const struct seam_timed_process *x = a, *y = b;

	return x->sums.on_ns > y->sums.on_ns ? -1 :
	       x->sums.on_ns < y->sums.on_ns;
}

static void print_processes(FILE *out, const struct seam_counts_of_run *run)
{
	size_t n = run->n_processes < MAX_ROWS ? run->n_processes : MAX_ROWS;
	char text[48], name[4 * SEAM_TASK_NAME];

	fprintf(out, "\n  %8s %13s %13s %13s %10s %10s  NAME\n", "PID",
		"ON CPU, ms", "BLOCKED, ms", "PREEMPTED, ms", "SWITCHES",
		"PREEMPTED");
	for (size_t i = 0; i < n; i++) {
		const struct seam_timed_process *p = &run->processes[i];
		const struct seam_task_sums *sums = &p->sums;

		fprintf(out, "  %8d %13s", p->pid,
			number(text, (double)sums->on_ns / 1e6, 3));
		fprintf(out, " %13s",
			number(text, (double)sums->blocked_ns / 1e6, 3));
		fprintf(out, " %13s",
			number(text, (double)sums->preempted_ns / 1e6, 3));
		fprintf(out, " %10" PRIu64 " %10" PRIu64 "  %s\n",
			sums->n_blocked, sums->n_preempted,
			seam_text_copy(name, sizeof(name), p->name,
				       SEAM_TEXT_TERMINAL));
	}
	if (n < run->n_processes)
		fprintf(out, "  %zu more processes; --json has all\n",
			run->n_processes - n);
}

/* "'make -j2'", or "processes 1,2". */
static void print_title(FILE *out, const struct stat_args *args,
			const struct seam_record_options *what)
{
	if (args->targets.pids) {
		fprintf(out, "process ");
		seam_text_put(out, args->targets.pids, SEAM_TEXT_TERMINAL);
	}
	for (char **word = what->command; !args->targets.pids && *word; word++) {
		fprintf(out, "%s", word == what->command ? "'" : " ");
		seam_text_put(out, *word, SEAM_TEXT_TERMINAL);
	}
	if (!args->targets.pids)
		fprintf(out, "'");
}

static void print_text(FILE *out, const struct stat_args *args,
		       const struct seam_record_options *what,
		       const struct runs *runs)
{
	bool has_hardware = any_hardware(runs);
	uint64_t n_lost = 0;

	fprintf(out, "\n");
	print_title(out, args, what);
	if (runs->items.n > 1)
		fprintf(out, ", %zu runs: median, smallest .. largest",
			runs->items.n);
	fprintf(out, "\n\n");
	for (size_t i = 0; i < SEAM_N_COUNTERS; i++)
		if (has_hardware || !seam_counter_rows[i].is_hardware)
			print_row(out, runs, i);
	if (!has_hardware)
		fprintf(out, "  %-20s %16s  this machine has none\n",
			"hardware counters", "-");
	for (size_t i = 0; i < runs->items.n; i++)
		n_lost += runs->items.items[i].n_lost;
	if (n_lost)
		fprintf(out, "\n  %" PRIu64 " records of switches were lost: "
			"the machine is too busy to count them\n", n_lost);
	if (args->by)
		print_processes(out, runs->items.items);
	fprintf(out, "\n");
}

/* ---- JSON ---- */

static void json_value(struct seam_json *j, const char *key,
		       enum seam_counter_unit unit, double value)
{
	if (unit == SEAM_COUNTER_RATIO)
		seam_json_double(j, key, value);
	else
		seam_json_i64(j, key, (int64_t)value);
}

static void json_counters(struct seam_json *j, const struct runs *runs)
{
	for (size_t i = 0; i < SEAM_N_COUNTERS; i++) {
		const struct seam_counter_row *row = &seam_counter_rows[i];
		struct range range = range_of(runs, i);

		if (!range.is_known) {
			seam_json_string(j, row->key, NULL);
			continue;
		}
		seam_json_open(j, row->key, '{');
		json_value(j, "median", row->unit, range.median);
		json_value(j, "min", row->unit, range.min);
		json_value(j, "max", row->unit, range.max);
		if (range.part < 1)
			seam_json_double(j, "part", range.part);
		seam_json_close(j);
	}
}

static void json_processes(struct seam_json *j,
			   const struct seam_counts_of_run *run)
{
	seam_json_open(j, "processes", '[');
	for (size_t i = 0; i < run->n_processes; i++) {
		const struct seam_timed_process *p = &run->processes[i];

		seam_json_open(j, NULL, '{');
		seam_json_i64(j, "pid", p->pid);
		seam_json_string(j, "name", p->name);
		seam_json_u64(j, "on_cpu_ns", p->sums.on_ns);
		seam_json_u64(j, "blocked_ns", p->sums.blocked_ns);
		seam_json_u64(j, "preempted_ns", p->sums.preempted_ns);
		seam_json_u64(j, "blocked_switches", p->sums.n_blocked);
		seam_json_u64(j, "preempted_switches", p->sums.n_preempted);
		seam_json_u64(j, "migrations", p->sums.n_migrations);
		seam_json_close(j);
	}
	seam_json_close(j);
}

static void print_json(FILE *out, const struct stat_args *args,
		       const struct seam_record_options *what,
		       const struct runs *runs)
{
	struct seam_json j = seam_json_make(out, true);
	const struct seam_counts_of_run *first = runs->items.items;
	uint64_t n_lost = 0;

	for (size_t i = 0; i < runs->items.n; i++)
		n_lost += runs->items.items[i].n_lost;
	seam_json_open(&j, NULL, '{');
	seam_json_string(&j, "schema", "seam.stat/1");
	seam_json_open(&j, "command", '[');
	for (char **word = what->command; word && *word; word++)
		seam_json_string(&j, NULL, *word);
	seam_json_close(&j);
	seam_json_u64(&j, "runs", runs->items.n);
	seam_json_i64(&j, "exit_status", runs->status);
	seam_json_u64(&j, "lost_records", n_lost);
	seam_json_bool(&j, "hardware_is_user_only", first->is_user_only);
	seam_json_bool(&j, "max_rss_is_upper_limit", first->is_max_rss_ours);
	seam_json_open(&j, "counters", '{');
	json_counters(&j, runs);
	seam_json_close(&j);
	if (args->by)
		json_processes(&j, first);
	seam_json_close(&j);
}

/* ---- the command ---- */

static int print(const struct stat_args *args,
		 const struct seam_record_options *what, struct runs *runs,
		 struct seam_err *err)
{
	struct seam_counts_of_run *run = runs->items.items;
	FILE *out = args->output ? fopen(args->output, "we") : stderr;

	if (!out)
		return seam_err_errno(err, "cannot write '%s'", args->output);
	if (args->by)
		seam_array_sort(run->processes, run->n_processes,
				sizeof(*run->processes), by_cpu_time);
	(args->json ? print_json : print_text)(out, args, what, runs);
	if (args->output && fclose(out) != 0)
		return seam_err_errno(err, "cannot write '%s'", args->output);
	return 0;
}

static int check_args(const struct stat_args *args,
		      struct seam_record_options *what, char **command)
{
	what->command = *command ? command : NULL;
	if (!what->command && !args->targets.pids)
		return seam_command_misused(&seam_stat_command, "nothing to "
			"count: give a COMMAND or processes (-p)");
	if (args->n_runs > 1 && (args->targets.pids || args->by))
		return seam_command_misused(&seam_stat_command, "-r cannot be "
			"combined with %s", args->targets.pids ? "-p" : "--by");
	if (args->n_runs > MAX_RUNS)
		return seam_command_misused(&seam_stat_command, "-r takes at "
			"most %d", MAX_RUNS);
	return seam_targets_read(&seam_stat_command, &args->targets, what);
}

static int run_stat(const struct seam_command *self, int argc, char **argv)
{
	struct stat_args args = { .n_runs = 1 };
	struct seam_record_options what = { .note = say };
	struct runs runs = { 0 };
	struct seam_err err = { 0 };
	int first, r = 0;
	int status = seam_command_parse(self, argc, argv, &args, &first);

	if (!status)
		status = check_args(&args, &what, argv + first);
	if (status) {
		seam_targets_fini(&what);
		return status;
	}
	seam_forward_begin();
	for (uint64_t i = 0; r == 0 && i < args.n_runs; i++) {
		const struct seam_counts_of_run *run;

		r = run_once(&runs, &what, &err);
		if (r < 0)
			break;
		run = &runs.items.items[runs.items.n - 1];
		if (!runs.status)
			runs.status = seam_recorded_status(&what,
					&run->command, run->n_lost);
		if (run->command.signal || seam_forward_signal())
			break;
	}
	seam_forward_end();
	if (r == 0)
		r = print(&args, &what, &runs, &err);
	for (size_t i = 0; i < runs.items.n; i++)
		free(runs.items.items[i].processes);
	free(runs.items.items);
	seam_targets_fini(&what);
	if (r == 0)
		return runs.status;
	seam_command_failed(&err);
	return runs.status ? runs.status : SEAM_EXIT_FAILED;
}

const struct seam_command seam_stat_command = {
	.name = "stat",
	.summary = "count what a program uses",
	.synopsis = "[options] [--] [COMMAND [ARG...]]",
	.description =
		"Runs COMMAND and counts, of it and all that it starts: CPU "
		"time, context switches, how long its threads were blocked "
		"and preempted, page faults and memory. Nothing is sampled "
		"and no file is written. Hardware counters are printed "
		"where the machine has them. A value that is not known is "
		"'-', never 0.\n\n"
		"Switches and the times of waits are exact and need no "
		"privilege. A thread is blocked from a switch that it "
		"wanted, and preempted while it could run and another thread "
		"did. task-clock is the CPU time by the scheduler's clock, as "
		"CLOCK_PROCESS_CPUTIME_ID has it: of COMMAND, from its exec on, "
		"and of the processes that were waited for; with -p of those "
		"that live at the end. Of other processes it is the time "
		"between their switches, which lacks some microseconds of "
		"each switch. The wake delay is the time from a wakeup to the switch "
		"to the thread; of threads that ended before their file in "
		"/proc was read, every 200 ms, it is not known, and the part "
		"of the CPU time that it is of is printed. Faults, user and "
		"system time and max RSS are of COMMAND and of the processes "
		"that were waited for; max RSS is that of the largest.\n\n"
		"The exit status is that of COMMAND, with -r that of the "
		"first run that was not 0; 126 or 127 if it could not be "
		"started; 3 if it was 0 and records of switches were lost, "
		"which makes their counts unknown.",
	.examples =
		"seam stat -- make -j2\twhat a build uses\n"
		"seam stat -r 5 -- ./bench\tthe same for five runs, with the "
		"range\n"
		"seam stat --by process -- make\ta row for each process\n"
		"seam stat -p 4711 -- sleep 10\ta running process, for 10 "
		"seconds\n"
		"seam stat --json -o x.json -- ./bench\tfor scripts\n",
	.options = options,
	.n_options = SEAM_ARRAY_SIZE(options),
	.takes_command = true,
	.run = run_stat,
};
