/* SPDX-License-Identifier: MIT */
/* diff.c - 'seam diff': recordings before and after a change */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <unistd.h>

#include "cli/alternate.h"
#include "cli/forward.h"
#include "cli/output_file.h"
#include "cli/pager.h"
#include "cli/reading.h"
#include "report/diff/diff_report.h"

enum {
	TOP_ON_TERMINAL = 40,	/* rows */
	MAX_UNIT = 64,
};

struct diff_options {
	struct seam_reading reading;
	uint64_t to;		/* operands of A; UINT64_MAX: not given */
	uint64_t runs;		/* 0: not given */
	const char *keep;
	struct seam_option_list record;
	const char *per;
	struct seam_option_list gates;
	const char *undecided;
	bool tree, json, all;
	const char *sort;
	uint64_t top;
	const char *output, *title;
	bool inverted;
	double min_percent;
};

#define OPTION(...) SEAM_OPTION(struct diff_options, __VA_ARGS__)
#define HEADING(text) { .help = (text), .kind = SEAM_OPTION_HEADING }

static const struct seam_option options[] = {
	OPTION(to, DIVIDER, 0, "to", NULL, "the recordings of B follow",
	       .detail = "Those before it are of A. Two recordings need no "
	       "--to."),
	OPTION(per, STRING, 0, "per", "UNIT", "unit of work: run, second, or "
	       "UNIT=N (run)",
	       .suggestions = "run|second",
	       .detail = "Values are for one unit. run is right where every "
	       "run does the same work, second for servers under constant "
	       "load. request=50000 says that each run handled 50000 "
	       "requests; request=50000,48000,... has a number for each "
	       "recording, in their order."),
	OPTION(tree, FLAG, 't', "tree", NULL, "show the changes in the call "
	       "tree"),
	OPTION(sort, STRING, 's', "sort", "COLUMN", "what is tested, and "
	       "sorted by (self)",
	       .choices = "self|total",
	       .detail = "self finds the functions that changed; total also "
	       "their callers, and is steadier where inlining changed."),
	OPTION(all, FLAG, 0, "all", NULL, "show what is within noise as well"),
	OPTION(top, U64, 'n', "top", "N", "show the first N rows, 0 for all",
	       .detail = "The default is 40 on a terminal and all rows "
	       "elsewhere."),
	OPTION(json, FLAG, 0, "json", NULL, "print JSON",
	       .detail = "The schema is seam.diff/1; all functions are in it, "
	       "with --tree the tree of the changes as well."),
	HEADING("Picture"),
	OPTION(output, STRING, 'o', "output", "FILE",
	       "draw a flame graph as well; - in place of the table",
	       .detail = "The width of a frame is its total in B, the colour "
	       "its change: blue less, orange more, deeper from 5 % and from "
	       "20 %, and grey where it may be noise. Functions that only A "
	       "has are listed below it."),
	OPTION(title, STRING, 0, "title", "TEXT", "title of the picture"),
	OPTION(inverted, FLAG, 0, "inverted", NULL, "put the root at the top"),
	OPTION(min_percent, PERCENT, 0, "min-percent", "PERCENT",
	       "do not draw narrower frames (0.01)"),
	HEADING("Gates"),
	OPTION(gates, STRINGS, 'g', "gate", "SPEC",
	       "a limit: 'SYMBOL:self < +5%', 'all:total < +3%'",
	       .detail = "SYMBOL may be a GLOB, whose functions are added up; "
	       "all is everything, new what A has no sample of, as a share "
	       "of B: 'new < 1%'. A limit with % is for the change, one with a "
	       "time, 'SYMBOL:total < 2ms', for B. A gate for a change fails "
	       "if the change is over the limit and its 95 % interval is an "
	       "increase; it holds if the interval ends below the limit; else "
	       "it is undecided, as it is with fewer than 3 runs of a side, or "
	       "with more than 1 % of a run lost. Limits are for named "
	       "functions: 23 gates at 5 % would fail by chance."),
	OPTION(undecided, STRING, 0, "undecided", "WHAT",
	       "whether undecided gates pass or fail (fail)",
	       .choices = "fail|pass"),
	HEADING("Recording"),
	OPTION(runs, U64, 'r', "runs", "N", "record -- A : B, each N times, "
	       "in turn",
	       .least = 1,
	       .detail = "Standard input and output of the commands are "
	       "/dev/null. Eight runs of each find a change of 5 % on a shared "
	       "machine; three are the least."),
	OPTION(keep, STRING, 0, "keep", "DIR", "record into the new folder DIR "
	       "and keep it"),
	OPTION(record, STRINGS, 0, "record", "OPTION", "an option for 'seam "
	       "record', such as --record=-F2000",
	       .detail = "May be given several times."),
	SEAM_READING_OPTIONS(struct diff_options, reading),
};

/* -- what the command line means ---------------------------------------- */

struct diff_plan {
	const struct seam_command *self;
	const struct diff_options *o;
	const char *const *paths;	/* A's, then B's */
	size_t n_paths, n_a;
	char unit[MAX_UNIT];
	double *n_units;		/* by path; 0: seconds */
	struct seam_diff_gate *gates;
	struct seam_diff_decision *decisions;
	struct seam_alternate alternate;
};

/* "request=50000" or "request=50000,48000" */
static bool parse_numbers(struct diff_plan *plan, const char *text)
{
	size_t n = 0;
	char *end;

	for (; n < plan->n_paths; n++) {
		plan->n_units[n] = strtod(text, &end);
		if (end == text || !isfinite(plan->n_units[n]) ||
		    plan->n_units[n] <= 0 || (*end && *end != ','))
			return false;
		text = end + 1;
		if (!*end)
			break;
	}
	if (n > 0)	/* a number for each recording */
		return n + 1 == plan->n_paths;
	for (n = 1; n < plan->n_paths; n++)
		plan->n_units[n] = plan->n_units[0];
	return true;
}

static int interpret_per(struct diff_plan *plan)
{
	const char *per = plan->o->per, *equals = strchr(per, '=');
	size_t size = equals ? (size_t)(equals - per) : strlen(per);

	plan->n_units = calloc(plan->n_paths + 1, sizeof(*plan->n_units));
	if (!plan->n_units)
		return seam_command_failed(&(struct seam_err) {
			.code = -ENOMEM, .n_causes = 1,
			.cause = { "out of memory" } });
	snprintf(plan->unit, sizeof(plan->unit), "%.*s", (int)size, per);
	for (size_t i = 0; !equals && i < plan->n_paths; i++)
		plan->n_units[i] = strcmp(per, "run") == 0;
	if (equals ? size && parse_numbers(plan, equals + 1) :
	    !strcmp(per, "run") || !strcmp(per, "second"))
		return 0;
	return seam_command_misused(plan->self, "--per takes run, second, "
		"UNIT=N or UNIT=N,N,... with a number for each of the %zu "
		"recordings, not '%s'", plan->n_paths, per);
}

static int interpret_gates(struct diff_plan *plan)
{
	const struct seam_option_list *list = &plan->o->gates;
	struct seam_err err = { 0 };

	plan->gates = calloc(list->n + 1, sizeof(*plan->gates));
	plan->decisions = calloc(list->n + 1, sizeof(*plan->decisions));
	if (!plan->gates || !plan->decisions) {
		seam_err_no_memory(&err);
		return seam_command_failed(&err);
	}
	for (size_t i = 0; i < list->n; i++)
		if (seam_diff_gate_parse(&plan->gates[i], list->items[i], &err))
			return seam_command_misused(plan->self, "%s",
						    err.cause[0]);
	return 0;
}

/* The two commands of --runs, at argv[first..] with ":" between them. */
static int interpret_commands(struct diff_plan *plan, int argc, char **argv,
			      int first)
{
	int colon = first;

	if (plan->o->to != UINT64_MAX)
		return seam_command_misused(plan->self, "--runs and --to "
					    "cannot be combined");
	while (colon < argc && strcmp(argv[colon], ":") != 0)
		colon++;
	if (colon == first || colon + 1 >= argc)
		return seam_command_misused(plan->self, "--runs needs two "
			"commands: -- ./old ARGS : ./new ARGS");
	argv[colon] = NULL;
	plan->alternate = (struct seam_alternate) {
		.commands = { argv + first, argv + colon + 1 },
		.n_runs = plan->o->runs, .keep = plan->o->keep,
		.options = plan->o->record.items,
		.n_options = plan->o->record.n,
	};
	plan->n_paths = 2 * plan->o->runs;
	plan->n_a = plan->o->runs;
	return 0;
}

/* Without recordings, the last one and the one that it replaced. */
static int interpret_paths(struct diff_plan *plan, int argc, char **argv,
			   int first)
{
	static const char *const last[] = {
		SEAM_LOAD_DEFAULT ".old", SEAM_LOAD_DEFAULT,
	};
	uint64_t to = plan->o->to;

	if (plan->o->keep || plan->o->record.n)
		return seam_command_misused(plan->self,
					    "--keep and --record need --runs");
	plan->paths = (const char *const *)argv + first;
	plan->n_paths = (size_t)(argc - first);
	if (!plan->n_paths && to == UINT64_MAX) {
		plan->paths = last;
		plan->n_paths = 2;
	}
	if (to == UINT64_MAX && plan->n_paths != 2)
		return seam_command_misused(plan->self, "which recordings are "
			"of B? write: A... --to B...");
	plan->n_a = to == UINT64_MAX ? 1 : (size_t)to;
	if (!plan->n_a || plan->n_a >= plan->n_paths)
		return seam_command_misused(plan->self, "no recording %s --to",
					    plan->n_a ? "after" : "before");
	return 0;
}

static int interpret(struct diff_plan *plan, int argc, char **argv, int first)
{
	const struct diff_options *o = plan->o;
	int status = o->runs ? interpret_commands(plan, argc, argv, first) :
		     interpret_paths(plan, argc, argv, first);

	if (status)
		return status;
	if (plan->n_paths > SEAM_DIFF_MAX_RUNS)
		return seam_command_misused(plan->self, "at most %d recordings",
					    SEAM_DIFF_MAX_RUNS);
	for (size_t i = 0; !o->runs && i < plan->n_paths; i++)
		if (strcmp(plan->paths[i], "-") == 0)
			return seam_command_misused(plan->self, "standard "
				"input cannot be a recording here");
	status = interpret_per(plan);
	return status ? status : interpret_gates(plan);
}

/* -- recordings --------------------------------------------------------- */

/* The event of the first recording, where this one has it. */
static uint32_t choose_event(struct seam_opened *opened, const char *name)
{
	const struct seam_profile *p = &opened->profile;

	for (uint32_t i = 0; name && i < p->events.n; i++)
		if (strcmp(seam_profile_text(p, p->events.items[i].name),
			   name) == 0)
			opened->selected.event = i;
	seam_reading_take_one_event(opened);
	return seam_selected_event(&opened->selected);
}

static const char *event_name(const struct seam_diff *diff)
{
	return diff->runs.n ? seam_profile_text(&diff->profile,
					diff->runs.items[0].event) : NULL;
}

static int add_opened(struct diff_plan *plan, struct seam_diff *diff,
		      struct seam_opened *opened, size_t i)
{
	const struct seam_diff_run run = {
		.side = i < plan->n_a ? SEAM_DIFF_A : SEAM_DIFF_B,
		.path = seam_command_named(plan->paths[i]),
		.n_units = plan->n_units[i],
	};
	struct seam_err err = { 0 };
	uint32_t event = opened->selected.events ? SEAM_NONE :
			 choose_event(opened, event_name(diff));
	int rc;

	if (opened->selected.events)
		rc = seam_err_set(&err, -EINVAL, "events are compared one at a "
				  "time: name one by --event");
	else if (event == SEAM_NONE)
		rc = seam_err_set(&err, -ENODATA, "it has no samples%s",
				  seam_profile_n_samples(&opened->profile) ?
				  " that are selected" : "");
	else
		rc = seam_diff_add(diff, &run, &opened->selected, event, &err);
	if (seam_command_verbose())
		seam_reading_say_notes(&opened->profile);
	if (!rc)
		return 0;
	seam_err_add(&err, rc, "cannot compare '%s'", run.path);
	return seam_command_failed(&err);
}

/* One profile at a time. */
static int add_all(struct diff_plan *plan, struct seam_diff *diff)
{
	struct seam_err err = { 0 };
	int status = 0;

	if (seam_diff_init(diff)) {
		seam_err_no_memory(&err);
		return seam_command_failed(&err);
	}
	diff->sort = plan->o->sort[0] == 't' ? SEAM_SORT_TOTAL :
		     SEAM_SORT_SELF;
	for (size_t i = 0; i < plan->n_paths && !status &&
	     !seam_forward_signal(); i++) {
		char *path[] = { (char *)(uintptr_t)plan->paths[i], NULL };
		struct seam_opened opened;

		status = seam_reading_open(&opened, plan->self,
					   &plan->o->reading, 1, path, 0);
		if (!status)
			status = add_opened(plan, diff, &opened, i);
		seam_reading_close(&opened);
	}
	if (!status && seam_diff_finish(diff)) {
		seam_err_no_memory(&err);
		status = seam_command_failed(&err);
	}
	return status;
}

/* -- results ------------------------------------------------------------ */

/* Decide all gates; the exit status. */
static int decide(struct diff_plan *plan, const struct seam_diff *diff)
{
	bool failed = false, undecided = false, lossy = false;
	struct seam_err err = { 0 };

	for (size_t i = 0; i < plan->o->gates.n; i++) {
		if (seam_diff_gate_decide(&plan->gates[i], diff,
					  &plan->decisions[i])) {
			seam_err_no_memory(&err);
			return seam_command_failed(&err);
		}
		failed |= plan->decisions[i].outcome == SEAM_DIFF_FAILS;
		undecided |= plan->decisions[i].outcome == SEAM_DIFF_UNDECIDED;
	}
	for (size_t i = 0; i < diff->runs.n; i++)
		lossy |= diff->runs.items[i].is_lossy;
	return failed ? SEAM_EXIT_GATE :
	       undecided && plan->o->undecided[0] == 'f' ?
	       SEAM_EXIT_UNDECIDED : lossy ? SEAM_EXIT_LOSSY : SEAM_EXIT_DONE;
}

struct drawn {
	const struct seam_diff_report *report;
	const struct diff_options *o;
	char title[512];
};

static int write_svg(const struct seam_export *export, struct seam_err *err)
{
	const struct drawn *drawn = export->picture;
	int r = seam_diff_picture(drawn->report, drawn->title,
				  drawn->o->min_percent, drawn->o->inverted,
				  export->out);

	return r ? seam_err_set(err, r, "cannot draw: %s", r == -EFBIG ?
				"the page would be larger than 50 MB; use a "
				"larger --min-percent" : strerror(-r)) : 0;
}

/* The writer is in src/report, which src/export may not include. */
static const struct seam_exporter svg = {
	.name = "svg", .write = write_svg,
};

static int draw(const struct diff_options *o,
		const struct seam_diff_report *report)
{
	const struct seam_diff *diff = report->diff;
	struct drawn drawn = { .report = report, .o = o };
	struct seam_export export = {
		.picture = &drawn, .selected = &diff->selected,
	};
	struct seam_err err = { 0 };

	snprintf(drawn.title, sizeof(drawn.title), "%.200s → %.200s",
		 seam_profile_text(&diff->profile, diff->command[SEAM_DIFF_A]),
		 seam_profile_text(&diff->profile, diff->command[SEAM_DIFF_B]));
	if (o->title)
		snprintf(drawn.title, sizeof(drawn.title), "%s", o->title);
	if (seam_export_file(o->output, &svg, &export, &err))
		return seam_command_failed(&err);
	if (strcmp(o->output, "-") != 0)
		seam_command_say("wrote '%s'; open it in a browser", o->output);
	return 0;
}

static int show(struct diff_plan *plan, const struct seam_diff *diff)
{
	const struct diff_options *o = plan->o;
	const struct seam_diff_report report = {
		.diff = diff, .unit = plan->unit, .event = event_name(diff),
		.all = o->all, .tree = o->tree, .gates = plan->gates,
		.top = o->top != UINT64_MAX ? o->top :
		       isatty(STDOUT_FILENO) ? TOP_ON_TERMINAL : 0,
		.decisions = plan->decisions, .n_gates = o->gates.n,
		.status = decide(plan, diff),
	};
	struct seam_view view = seam_view_make(stdout,
					seam_command_colors(STDOUT_FILENO));
	struct seam_err err = { 0 };

	if (report.status == SEAM_EXIT_FAILED ||
	    (o->output && draw(o, &report)))
		return SEAM_EXIT_FAILED;
	if (o->output && strcmp(o->output, "-") == 0)
		return report.status;
	if (!o->json)
		seam_pager_start(report.status);
	if (!(o->json ? seam_diff_json(&report, stdout) :
	      seam_diff_text(&report, &view)))
		return report.status;
	seam_err_no_memory(&err);
	return seam_command_failed(&err);
}

static int record(struct diff_plan *plan)
{
	struct seam_err err = { 0 };

	int r = seam_alternate_run(&plan->alternate, &err);

	if (r < 0)
		return r == -EINTR ? SEAM_EXIT_SIGNAL :
		       seam_command_failed(&err);
	plan->paths = (const char *const *)plan->alternate.paths;
	return 0;
}

static int run(const struct seam_command *self, int argc, char **argv)
{
	struct diff_options o = {
		.to = UINT64_MAX, .per = "run", .undecided = "fail",
		.sort = "self", .top = UINT64_MAX, .min_percent = -1,
	};
	struct diff_plan plan = { .self = self, .o = &o };
	struct seam_diff diff = { 0 };
	int first, status = seam_command_parse(self, argc, argv, &o, &first);
	int signal;

	if (status)
		return status;
	status = interpret(&plan, argc, argv, first);
	if (!status && o.runs)
		status = record(&plan);
	if (!status)
		status = add_all(&plan, &diff);
	signal = seam_alternate_end(&plan.alternate);
	if (signal) {
		seam_command_say("stopped by signal %d", signal);
		status = SEAM_EXIT_SIGNAL + signal;
	}
	if (!status)
		status = show(&plan, &diff);
	seam_diff_fini(&diff);
	seam_alternate_fini(&plan.alternate);
	free(plan.n_units);
	free(plan.gates);
	free(plan.decisions);
	return status;
}

const struct seam_command seam_diff_command = {
	.name = "diff",
	.summary = "compare recordings before and after a change",
	.synopsis = "[options] [A... [--to] B... | -r N -- COMMAND : COMMAND]",
	.description =
		"Shows by how much functions of B take more or less time "
		"than those of A, and leaves out what equal programs differ by. "
		"For that, each side needs several runs: three at least, eight "
		"to find 5 %. With --runs they are recorded, A and B in turn, "
		"because machines drift. With fewer runs the differences are "
		"shown without a verdict. Without recordings, "
		"recording.seam.old is compared with recording.seam.\n\n"
		"Values are times for a unit of work, not shares: a share also "
		"changes when other functions do. The change is the ratio of "
		"geometric means; its 95 % interval and the test are Welch's, on "
		"logarithms. Of all functions with at least 10 samples a run, "
		"those are shown that differ at a false discovery rate of 5 % "
		"(Benjamini and Hochberg).\n\n"
		"Functions match by layer, module and name. Versions of "
		"libraries, clone suffixes (.isra.0, .part.0, .cold), versions "
		"of symbols, numbers of lambdas, hashes of Rust, tiers of V8 "
		"and numbers of LuaJIT's traces are ignored. Code without names is "
		"compared only between equal builds.",
	.statuses =
		"4\tA gate failed.\n"
		"5\tNo gate failed, and one cannot be decided.\n"
		"128+N\tSignal N ended it.\n",
	.examples =
		"seam diff\tthe last recording and the one before it\n"
		"seam diff old-*.seam --to new-*.seam\tseveral runs of each\n"
		"seam diff --runs 8 -o diff.svg -- ./old : ./new\trecord, "
		"compare, draw\n"
		"seam diff --runs 8 --gate 'parse*:self < +5%' -- ./old : "
		"./new\tfor scripts: exit status 4 if parsing became slower\n"
		"seam diff --per request=50000 a*.seam --to b*.seam\ttime a "
		"request\n",
	.options = options,
	.n_options = SEAM_ARRAY_SIZE(options),
	.reads = true,
	.run = run,
};
