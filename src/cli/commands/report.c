/* SPDX-License-Identifier: MIT */
/* report.c - 'seam report': tables and call trees */
#include "report/report.h"

#include <unistd.h>

#include "cli/browse.h"
#include "cli/pager.h"
#include "cli/reading.h"

enum { TOP_ON_TERMINAL = 40 };	/* rows */

struct report_options {
	struct seam_reading reading;
	bool tree;
	bool stats;
	bool json;
	bool tui;
	const char *by;
	const char *sort;
	uint64_t top;
	const char *filter;
	double min_percent;
	bool stdio;
	bool children;
	bool no_children;
};

#define OPTION(...) SEAM_OPTION(struct report_options, __VA_ARGS__)

static const struct seam_option options[] = {
	OPTION(tree, FLAG, 't', "tree", NULL, "show the call tree, from the "
	       "root down"),
	OPTION(reading.callers_of, STRING, 0, "callers", "SYMBOL",
	       "a tree of the callers of SYMBOL",
	       .detail = "SYMBOL is a name as in the report. Percentages are "
	       "shares of the samples with SYMBOL on their stack. For a "
	       "recursive function the tree starts at the innermost call."),
	OPTION(reading.callees_of, STRING, 0, "callees", "SYMBOL",
	       "a tree of the callees of SYMBOL",
	       .detail = "Likewise; for a recursive function it starts at the "
	       "outermost call."),
	OPTION(by, SET, 0, "by", "WHAT", "keys that define a row (symbol)",
	       .choices = "symbol|module|address|line|comm|thread|process|cpu|"
	       "vmstate|wait|waker|parallelism|cgroup|host|service",
	       .detail = "With several keys, such as comm,symbol, a row has "
	       "the samples that agree in all of them. comm is the thread's "
	       "name at the sample: threads of one name are merged. address is "
	       "that of the code: in its file, or of JIT code in memory, where "
	       "code without names is otherwise one row, [jit]. line is a "
	       "line of source; a function without lines is one row. vmstate "
	       "is what a VM did at the sample: INTERP, LFUNC, FFUNC, CFUNC, "
	       "GC, EXIT, RECORD, OPT, ASM or TRACE, none where there is no "
	       "VM. wait is why a thread waited, of a recording with "
	       "--off-cpu: the kernel function that called the scheduler. "
	       "waker is the thread that ended the wait (--wakers). "
	       "parallelism is how many of the recorded threads ran at the "
	       "sample. cgroup is the thread's cgroup at the sample, of a "
	       "recording with --cgroups. host and service are those of "
	       "profiles of a fleet. With --tree, there is a tree for "
	       "each comm, thread, process, cpu, vmstate, wait, waker, "
	       "parallelism, cgroup, host or service."),
	OPTION(reading.latency, FLAG, 0, "latency", NULL,
	       "weigh each sample by one over the number of threads that ran",
	       .detail = "Of a recording with --off-cpu. What a program does "
	       "while its other threads wait makes it slow to finish, although "
	       "it may cost little CPU time; what many threads do at once "
	       "costs as many times more CPU time than it takes. Waits are "
	       "left out."),
	OPTION(sort, SET, 's', "sort", "COLUMN", "largest first (self)",
	       .choices = "self|total|comm|pid|tid|dso|sym|symbol|srcline|cpu",
	       .detail = "Sort keys of perf, such as comm,dso,sym, define a "
	       "row, as --by comm,module,symbol does."),
	OPTION(top, U64, 'n', "top", "N", "show the first N rows, 0 for all",
	       .detail = "The default is 40 on a terminal and all rows "
	       "elsewhere. The share of the other rows is shown."),
	OPTION(filter, STRING, 0, "filter", "TEXT",
	       "rows with TEXT in their symbol or module",
	       .detail = "Case is ignored. Percentages are still those of the "
	       "whole event. In a tree, matching functions are shown with all "
	       "their callers and callees."),
	OPTION(min_percent, PERCENT, 0, "min-percent", "PERCENT",
	       "smallest node of a tree (0.5)"),
	OPTION(stats, FLAG, 0, "stats", NULL, "show how many user stacks are "
	       "complete",
	       .detail = "Of stacks that were copied and unwound (seam record "
	       "--call-graph): how many reach the entry of the program or of "
	       "the thread, why the others ended, and in which files."),
	OPTION(json, FLAG, 0, "json", NULL, "print JSON",
	       .detail = "The schema is seam.report/1, with --tree "
	       "seam.tree/1, with --stats seam.stats/2. Self and total are "
	       "numbers of samples; members may be added under the same "
	       "schema, and none is removed. All rows are printed unless "
	       "--top or --filter is given."),
	OPTION(tui, FLAG, 0, "tui", NULL,
	       "browse the recording on the terminal, by keyboard",
	       .detail = "A table of functions, modules, threads or processes; "
	       "callers, callees and the code of a function; zoom into a "
	       "thread, a module, a part of the time. 'h' lists the keys."),
	SEAM_INPUT_OPTION(struct report_options, reading),
	SEAM_READING_OPTIONS(struct report_options, reading),
	{ .kind = SEAM_OPTION_HEADING, .help = "Compatible with perf report" },
	OPTION(stdio, FLAG, 0, "stdio", NULL, "no effect; as in perf"),
	OPTION(children, FLAG, 0, "children", NULL, "as --sort total"),
	OPTION(no_children, FLAG, 0, "no-children", NULL, "as --sort self"),
};

static int print(const struct seam_report *report,
		 const struct report_options *o, int status)
{
	struct seam_view view = seam_view_make(stdout,
					seam_command_colors(STDOUT_FILENO));

	seam_pager_start(status);
	if (o->stats)
		return o->json ? seam_report_stats_json(report, stdout) :
		       seam_report_stats_text(report, &view);
	if (o->json)
		return o->tree ? seam_report_tree_json(report, stdout) :
		       seam_report_json(report, stdout);
	return o->tree ? seam_report_tree_text(report, &view) :
	       seam_report_text(report, &view);
}

/* The keys that a tree can have as roots. */
static bool makes_trees(uint32_t by)
{
	return by == SEAM_BY_SYMBOL || by == SEAM_BY_COMM ||
	       by == SEAM_BY_THREAD || by == SEAM_BY_PROCESS ||
	       by == SEAM_BY_CPU || by == SEAM_BY_VMSTATE ||
	       by == SEAM_BY_WAIT || by == SEAM_BY_WAKER ||
	       by == SEAM_BY_PARALLELISM || by == SEAM_BY_CGROUP ||
	       by == SEAM_BY_HOST || by == SEAM_BY_SERVICE;
}

/*
 * The order in "total,comm,dso,sym", and perf's keys in it as keys of --by.
 * False: too many.
 */
static bool keys_of_perf(const char *text, enum seam_sort *sort, char by[64])
{
	static const struct { const char *perf, *name; } keys[] = {
		{ "comm", "comm" }, { "pid", "process" }, { "tid", "thread" },
		{ "dso", "module" }, { "sym", "symbol" },
		{ "symbol", "symbol" }, { "srcline", "line" },
		{ "cpu", "cpu" }, { "self", NULL }, { "total", NULL },
	};
	size_t used = 0;

	for (by[0] = '\0'; *text; text += *text == ',') {
		size_t n = strcspn(text, ","), i = 0;

		while (i + 1 < SEAM_ARRAY_SIZE(keys) &&
		       (strlen(keys[i].perf) != n ||
			memcmp(keys[i].perf, text, n) != 0))
			i++;
		if (used > 40)
			return false;
		text += n;
		if (keys[i].name)
			used += (size_t)snprintf(by + used, 64 - used, "%s%s",
						 used ? "," : "", keys[i].name);
		else
			*sort = keys[i].perf[0] == 't' ? SEAM_SORT_TOTAL :
				SEAM_SORT_SELF;
	}
	return true;
}

/* Check --sort, --by and their forms in perf.  0 or SEAM_EXIT_USAGE. */
static int interpret_sort(const struct seam_command *self,
			  const struct report_options *o,
			  struct seam_report *what)
{
	char by[64];

	what->sort = o->children ? SEAM_SORT_TOTAL : SEAM_SORT_SELF;
	if (o->children && o->no_children)
		return seam_command_misused(self, "--children and "
			"--no-children cannot be combined");
	if (seam_by_parse(o->by ? o->by : "symbol", &what->by) < 0)
		return seam_command_misused(self, "--by takes up to four "
			"keys, each once, not '%s'", o->by);
	if (!o->sort)
		return 0;
	if (!keys_of_perf(o->sort, &what->sort, by) ||
	    (by[0] && !o->by && seam_by_parse(by, &what->by) < 0))
		return seam_command_misused(self, "--sort takes up to four "
			"keys, each once, not '%s'", o->sort);
	if (by[0] && o->by)
		return seam_command_misused(self, "--by %s and --sort %s both "
			"define the rows: use --by alone", o->by, o->sort);
	return 0;
}

static int interpret(const struct seam_command *self,
		     const struct report_options *o, struct seam_report *what)
{
	char names[SEAM_BY_NAMES];
	int status = interpret_sort(self, o, what);

	if (status)
		return status;
	if (o->tree && o->stats)
		return seam_command_misused(self, "--tree and --stats cannot "
					    "be combined");
	if (o->tree && !makes_trees(what->by))
		return seam_command_misused(self, "there is no --tree by %s",
					    seam_by_names(what->by, names));
	if (o->reading.callers_of && o->reading.callees_of)
		return seam_command_misused(self, "--callers and --callees "
					    "cannot be combined");
	return 0;
}

static int report(const struct seam_command *self, struct report_options *o,
		  int argc, char **argv, int first)
{
	struct seam_report what = {
		.filter = o->filter,
		.details = seam_command_verbose(),
		.min_percent = o->min_percent,
	};
	struct seam_err err = { 0 };
	struct seam_opened opened;
	int status;

	if (interpret(self, o, &what))
		return SEAM_EXIT_USAGE;
	o->reading.lines = seam_by_has(what.by, SEAM_BY_LINE);
	status = seam_reading_open(&opened, self, &o->reading, argc, argv,
				   first);
	if (status == SEAM_EXIT_DONE) {
		what.profile = &opened.profile;
		what.selected = &opened.selected;
		what.path = seam_command_named(opened.path);
		what.more = opened.more;
		what.n_more = opened.n_more;
		what.top = o->top != UINT64_MAX ? o->top :
			   !o->json && isatty(STDOUT_FILENO) ?
			   TOP_ON_TERMINAL : 0;
		status = seam_reading_status(&opened);
		if (o->tui) {
			if (seam_browse(&opened, &o->reading, &err))
				status = seam_command_failed(&err);
		} else if (print(&what, o, status)) {
			seam_err_no_memory(&err);
			status = seam_command_failed(&err);
		}
	}
	seam_reading_close(&opened);
	return status;
}

static int run(const struct seam_command *self, int argc, char **argv)
{
	struct report_options o = {
		.min_percent = 0.5,
		.top = UINT64_MAX,
	};
	int first, status = seam_command_parse(self, argc, argv, &o, &first);

	if (status)
		return status;
	o.tree |= o.reading.callers_of || o.reading.callees_of;
	return report(self, &o, argc, argv, first);
}

const struct seam_command seam_report_command = {
	.name = "report",
	.summary = "show where the time went",
	.synopsis = "[options] [FILE...]",
	.description =
		"Shows a recording as a table or as a call tree. FILE is a "
		"recording of seam, a perf.data file of any origin, a stream "
		"of LuaJIT's sysprof, or an XRay log, which has every call "
		"with its time; several XRay "
		"logs of one program (its processes, its sessions) are one "
		"recording. Without FILE, it is "
		"recording.seam in the current folder; - is standard "
		"input.\n\n"
		"Self counts samples in a function itself, total samples in "
		"it and in its callees; a recursive function counts once "
		"per stack. Percentages are shares of the event's weight: "
		"time for a clock, occurrences for others. Events are shown "
		"one after another.\n\n"
		"Every form shows losses. If data was lost, the exit status "
		"is 3.",
	.examples =
		"seam report\tthe last recording, by function\n"
		"seam report --tree --time 1,2\tcalls from 1 s to 2 s\n"
		"seam report --by thread\twhich threads were busy\n"
		"seam report --by wait --event off-cpu\twhat threads waited "
		"for\n"
		"seam report --by comm,symbol\tthe functions of each program\n"
		"seam report --stats\thow many stacks are complete\n"
		"seam report --by vmstate sysprof.bin\twhat a LuaJIT did\n"
		"seam report --callers malloc\tcallers of malloc\n"
		"seam report --layer native,jit --filter alloc\t"
		"allocation, without the kernel below it\n"
		"seam report --json | jq -r '.rows[].symbol'\t"
		"for scripts\n",
	.options = options,
	.n_options = SEAM_ARRAY_SIZE(options),
	.reads = true,
	.run = run,
};
