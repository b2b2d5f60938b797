/* SPDX-License-Identifier: MIT */
/* calls.c - 'seam calls': exact counts and times of function calls */
#include "report/calls_table.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/text.h"
#include "cli/command.h"
#include "cli/pager.h"
#include "cli/reading.h"
#include "model/fleet/load_batch.h"
#include "model/input.h"
#include "model/load.h"
#include "model/xray/call_waits.h"

enum {
	DEFAULT_STACKS = 5,
	MAX_STACKS = 4096,
};

struct calls_options {
	struct seam_reading reading;	/* map, symfs, time */
	const char *sort;
	const char *filter;
	uint64_t top;
	bool histogram;
	bool json;
	bool graph;
	const char *stacks;
	double min_percent;
};

#define OPTION(...) SEAM_OPTION(struct calls_options, __VA_ARGS__)

static const struct seam_option options[] = {
	OPTION(reading.map, STRING, 'm', "map", "FILE",
	       "the instrumented program, or its map as YAML",
	       .detail = "Functions in a log are numbers; the program's "
	       "section xray_instr_map, or the output of 'llvm-xray extract', "
	       "has their addresses. A map that contradicts the log is used, "
	       "with a message. The default is the map beside each log, "
	       "PID.yaml of PID.xray, as a recording has it."),
	SEAM_SYMFS_OPTION(struct calls_options, reading),
	SEAM_DEBUGINFOD_OPTION(struct calls_options, reading),
	OPTION(sort, STRING, 's', "sort", "COLUMN", "order of the rows (total)",
	       .choices = SEAM_CALLS_SORTS,
	       .detail = "Names and ids ascend, all else descends. The total "
	       "of a function is the time during which at least one call of "
	       "the function was open in a thread; sum, which is shown with "
	       "--sort sum, adds up all calls, also recursive ones within "
	       "others. Of a recording with --off-cpu, blocked and preempted "
	       "are the parts of self in which the thread had no CPU: it "
	       "waited for something, or only for a CPU."),
	OPTION(filter, STRING, 0, "filter", "TEXT",
	       "functions with TEXT in their name",
	       .detail = "TEXT with *, ? or [ is a pattern for the whole "
	       "name."),
	OPTION(reading.time, STRING, 0, "time", "A,B",
	       "calls that begin in this time of the logs",
	       .detail = "Times since the first record: in seconds (1.5,2), "
	       "with a unit (300ms,1s) or in percent (10%,20%). Either may "
	       "be omitted. With @ they are on the log's clock, as --stacks "
	       "prints them (@57.25,@57.3). A call counts with all its time, "
	       "also after B."),
	OPTION(top, U64, 'n', "top", "N", "show the first N rows, 0 for all"),
	OPTION(histogram, FLAG, 0, "histogram", NULL,
	       "show a histogram of each function's times"),
	OPTION(stacks, STRING, 0, "stacks", "[N]",
	       "trees of the N slowest single calls (5)",
	       .detail = "Each with the options that select it, for a flame "
	       "graph of it. With logged arguments, and with custom and typed "
	       "events: the time since the begin of the slow call, and the "
	       "first bytes of the data. The callee of a tail call is a "
	       "sibling of its caller, with the caller's name; where the callee "
	       "is not recorded, a call that follows within a microsecond may "
	       "have it."),
	OPTION(min_percent, PERCENT, 0, "min-percent", "PERCENT",
	       "--stacks omits calls smaller than this (0.1)",
	       .detail = "Of the slow call. Calls with an event in them are "
	       "shown, however small."),
	OPTION(graph, FLAG, 0, "graph", NULL,
	       "print the call graph, for Graphviz"),
	OPTION(json, FLAG, 0, "json", NULL, "print JSON",
	       .detail = "The schema is seam.calls/1."),
};

struct calls_job {
	const struct calls_options *options;
	struct seam_trace trace;
	struct seam_xray_map names;
	struct seam_account account;
	struct seam_slow_calls slow;
	struct seam_marked_sums marked;
	struct seam_calls_report report;
	/* of the recording's threads, where it has them */
	struct seam_profile threads;
	struct seam_waits waits;
	struct seam_thread_waits thread_waits;
	bool has_lost;		/* by the counts of the recorder */
};

static bool is_wanted(void *context, uint32_t function)
{
	const struct seam_calls_report *report = context;

	/* how slow those are is not known */
	return !seam_xray_has_entries_only(seam_xray_map_find(report->names,
							      function)) &&
	       seam_calls_selects(report, function);
}

static int load(struct calls_job *job, size_t n_slowest, struct seam_err *err)
{
	struct seam_account_options what = {
		.edges = job->options->graph, .n_slowest = n_slowest,
		.wanted = job->options->filter || job->trace.entries_only ?
			is_wanted : NULL,
		.context = &job->report,
	};
	int r = seam_account_build(&job->account, &job->trace, &what, err);

	if (!r && job->threads.thread_times.n &&
	    seam_account_add_waits(&job->account, &job->trace,
				   &job->thread_waits))
		r = seam_err_no_memory(err);
	if (!r && job->account.n_logged) {
		r = seam_marked_sums_build(&job->marked, &job->trace,
					   job->account.waits);
		job->report.marked = &job->marked;
		if (r)
			return seam_err_no_memory(err);
	}
	if (!r && n_slowest)
		r = seam_slow_calls_find(&job->slow, &job->trace,
					 &job->account, SEAM_CALL_PATHS_MAX,
					 err);
	return r;
}

/*
 * The waits of the threads of a bundle whose clock is that of its calls.  The
 * calls do without waits that cannot be read.
 */
static int load_waits(struct calls_job *job, const char *path)
{
	struct seam_err unused = { 0 };
	int r = seam_profile_init(&job->threads);

	if (!r && seam_trace_is_tied(&job->trace))
		r = seam_load_waits(&job->threads, path, &job->waits, &unused);
	seam_reading_say_notes(&job->threads);
	job->thread_waits = (struct seam_thread_waits) {
		&job->threads, &job->waits,
	};
	return r == -ENOMEM ? r : 0;
}

static bool has_calls(const struct calls_job *job)
{
	for (size_t i = 0; i < job->account.rows.n; i++)
		if (job->account.rows.items[i].count &&
		    seam_calls_selects(&job->report,
				       job->account.rows.items[i].function))
			return true;
	return false;
}

static int print(const struct calls_job *job, struct seam_err *err)
{
	bool color = seam_command_colors(STDOUT_FILENO);
	struct seam_view view = seam_view_make(stdout, color);
	const struct calls_options *o = job->options;
	int r = 0;

	seam_pager_start(job->account.in_ticks || job->account.problems.n ||
			 job->has_lost ? SEAM_EXIT_LOSSY : SEAM_EXIT_DONE);
	if (!has_calls(job) && !job->marked.account.rows.n)
		seam_command_say("no calls%s%s%s%s", o->filter ?
				 " of a function that matches '" : "",
				 o->filter ? o->filter : "",
				 o->filter ? "'" : "", o->reading.time ?
				 " begin in this time" : "");
	if (o->graph)
		seam_calls_graph(&job->report, stdout);
	else if (o->stacks && !job->slow.n && has_calls(job))
		seam_command_say("no call has a length: of these functions "
				 "only entries are recorded");
	else if (o->stacks)
		seam_calls_stacks(&job->report, &job->slow, &job->trace, &view);
	else if (o->json)
		r = seam_calls_json(&job->report, stdout);
	else
		r = seam_calls_table(&job->report, &view);
	return r ? seam_err_no_memory(err) : 0;
}

/* On stderr, as not every view has them.  Returns the exit status. */
static int say_problems(const struct calls_job *job)
{
	char doubt[256];
	int status;

	if (job->options->reading.map &&
	    seam_call_names_doubt(&job->names, &job->trace, doubt,
				  sizeof(doubt)))
		seam_command_say("'%s' does not fit this log: %s",
				 job->options->reading.map, doubt);
	status = seam_reading_say_problems(&job->trace, &job->account.problems);
	return job->has_lost ? SEAM_EXIT_LOSSY : status;
}

/* Why a snapshot was made. */
static void say_triggers(const char *const *paths, size_t n_paths)
{
	char text[SEAM_INPUT_TRIGGER];

	for (size_t i = 0; i < n_paths; i++) {
		struct seam_input input;
		struct seam_err unused = { 0 };

		if (seam_input_open(&input, paths[i], &unused) == 0)
			for (size_t k = 0; seam_input_trigger(&input, k, text);
			     k++)
				seam_command_say("%s", text);
		seam_input_close(&input);
	}
}

/* Histograms of a fleet, which have no single calls. */
static int calls_of_batch(struct calls_job *job, const char *path)
{
	const struct calls_options *o = job->options;
	struct seam_profile *p = &job->threads;
	struct seam_err err = { 0 };
	int r;

	if (o->stacks || o->graph || o->reading.time || o->reading.map) {
		seam_err_set(&err, -EINVAL, "cannot read '%s': profiles of a "
			     "fleet have no single calls for --stacks, "
			     "--graph, --time and --map",
			     seam_command_named(path));
		return seam_command_failed(&err);
	}
	r = seam_profile_init(p) ? seam_err_no_memory(&err) :
	    seam_load_batch_calls(&job->account, &job->names, p, path, &err);
	job->has_lost = p->losses.n;
	if (!r)
		r = print(job, &err);
	if (r)
		return seam_command_failed(&err);
	seam_reading_say_lost(p);
	return job->has_lost ? SEAM_EXIT_LOSSY : SEAM_EXIT_DONE;
}

static int calls_of_logs(struct calls_job *job, const char *const *paths,
			 size_t n_paths, size_t n_slowest)
{
	struct seam_err err = { 0 };
	int r, status = seam_reading_open_logs(&job->trace, &job->names,
					       &job->options->reading, paths,
					       n_paths);

	if (status)
		return status;
	job->has_lost = seam_reading_say_lost_calls(paths, n_paths);
	r = n_paths == 1 ? load_waits(job, paths[0]) : 0;
	if (r)
		seam_err_no_memory(&err);
	if (!r)
		r = load(job, n_slowest, &err);
	if (!r)
		r = print(job, &err);
	if (!r)
		say_triggers(paths, n_paths);
	return r ? seam_command_failed(&err) : say_problems(job);
}

static int calls(const struct calls_options *o, enum seam_calls_sort sort,
		 const char *const *paths, size_t n_paths, size_t n_slowest)
{
	struct calls_job job = {
		.options = o,
		.report = { .sort = sort, .filter = o->filter,
			    .limit = (size_t)o->top,
			    .histograms = o->histogram,
			    .min_percent = o->min_percent },
	};
	int status;

	job.report.account = &job.account;
	job.report.names = &job.names;
	status = n_paths == 1 && seam_load_batch_is(paths[0]) ?
		 calls_of_batch(&job, paths[0]) :
		 calls_of_logs(&job, paths, n_paths, n_slowest);
	seam_slow_calls_fini(&job.slow);
	seam_account_fini(&job.account);
	seam_marked_sums_fini(&job.marked);
	free(job.waits.items.items);
	seam_profile_fini(&job.threads);
	seam_trace_close(&job.trace);
	seam_xray_map_fini(&job.names);
	return status;
}

/* The number of single calls to show; 0 for another view. */
static int parse_stacks(const struct seam_command *self, const char *text,
			size_t *n)
{
	const char *end;
	uint64_t value;

	*n = text ? DEFAULT_STACKS : 0;
	if (!text || !*text)
		return 0;
	end = seam_text_number(text, text + strlen(text), 10, &value);
	if (!end || *end || value == 0 || value > MAX_STACKS)
		return seam_command_misused(self, "option '--stacks' takes a "
			"number from 1 to %d, not '%s'", MAX_STACKS, text);
	*n = (size_t)value;
	return 0;
}

static int run(const struct seam_command *self, int argc, char **argv)
{
	struct calls_options o = { .sort = "total", .min_percent = 0.1 };
	enum seam_calls_sort sort = SEAM_CALLS_BY_TOTAL;
	const char *by_default = SEAM_LOAD_DEFAULT;
	size_t n_slowest, n_paths;
	int first;
	int status = seam_command_parse(self, argc, argv, &o, &first);

	if (status)
		return status;
	n_paths = (size_t)(argc - first);
	if (o.graph + o.json + (o.stacks != NULL) > 1)
		return seam_command_misused(self, "choose one of --graph, "
					    "--json and --stacks");
	status = parse_stacks(self, o.stacks, &n_slowest);
	if (status)
		return status;
	seam_calls_sort_find(o.sort, &sort);
	return calls(&o, sort, n_paths ? (const char *const *)argv + first :
		     &by_default, n_paths ? n_paths : 1, n_slowest);
}

const struct seam_command seam_calls_command = {
	.name = "calls",
	.summary = "count and time every recorded call",
	.synopsis = "[options] [FILE...]",
	.description =
		"Reads XRay logs (flight data recorder of versions 1 to 5, "
		"basic mode of versions 1 to 3) and shows for each function "
		"how often it was called and how long its calls took. "
		"Several logs are put on one time line. FILE may be a "
		"recording with calls ('seam record --trace'), and is "
		"recording.seam by default.\n\n"
		"Intervals that the program marked by pairs of custom or "
		"typed events are a table of their own: data \"begin NAME "
		"...\" and \"end NAME\", or \"begin\" and \"end\" of one "
		"type, on one thread. Blocked and preempted are parts of all "
		"their time. What has no partner is left out and counted.\n\n"
		"Counts, sums, minima and maxima are exact. Percentiles are "
		"those of the nearest rank (p99 of two calls is the slower "
		"one), from a histogram with buckets as wide as a sixteenth "
		"of their value. Calls with a missing entry or exit are "
		"repaired, and each repair is counted; where a thread lost "
		"records, its open calls end. Self is the time without "
		"instrumented callees. Where functions are of several "
		"programs and libraries, theirs is shown.\n\n"
		"The exit status is 3 if a part of a log could not be read, "
		"or if it has no clock frequency.",
	.examples =
		"seam record --trace -- ./app; seam calls\tevery call of ./app\n"
		"seam calls --map ./app app.xray\tall functions by total time\n"
		"seam calls --sort p99 --filter 'net_*' --histogram app.xray\t"
		"how slow the slowest are\n"
		"seam calls --map ./app --stacks=3 --filter handle app.xray\t"
		"call trees of the 3 slowest requests\n"
		"seam calls --map ./app --graph app.xray | dot -Tsvg\t"
		"the call graph\n",
	.options = options,
	.n_options = SEAM_ARRAY_SIZE(options),
	.reads = true,
	.run = run,
};
