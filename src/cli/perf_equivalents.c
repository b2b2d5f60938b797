/* SPDX-License-Identifier: MIT */
/* perf_equivalents.c - tables of hints; see perf_equivalents.h */
#include "cli/perf_equivalents.h"

#include "cli/command.h"

/* Source: perf(1) of Linux 6.1. */
static const struct {
	const char *name;
	const char *instead;
} commands[] = {
	{ "script", "'seam dump' shows each record, 'seam convert' makes "
	  "folded stacks" },
	{ "list", "'seam doctor' lists the events" },
	{ "evlist", "'seam dump' shows the events of a recording" },
	{ "top", "'seam record -a --duration 10' and 'seam report' do it in "
	  "two steps" },
	{ "stat", "Seam samples and does not count: use 'perf stat'" },
	{ "archive", "nothing is needed: the folder that 'seam record' makes "
	  "is whole; copy it" },
	{ "buildid-list", "'seam dump' shows build ids" },
	{ "diff", "'seam report --json' of each can be compared" },
	{ "probe", "'seam record -e uprobe:FILE:SYMBOL' records a probe" },
	{ "trace", "'seam record -e raw_syscalls:*' records system calls" },
	{ "mem", "'seam record -d' records addresses of data" },
	{ "sched", "'seam record -e sched:*' records the scheduler" },
};

static const struct {
	const char *command;
	const char *options;		/* of one meaning: "-a|--all" */
	const char *instead;
} options[] = {
	{ "report", "-n", "-n takes the number of rows; the number of samples "
	  "is always shown" },
	{ "report", "-F|--fields", "columns are fixed; --by chooses what a row "
	  "is" },
	{ "report", "-g|--call-graph", "use --tree" },
	{ "report", "-G", "use --tree, or --callers SYMBOL" },
	{ "report", "--inverted|--caller", "use --callers SYMBOL" },
	{ "report", "--percent-limit", "use --min-percent" },
	{ "report", "-S|--symbols|--symbol-filter|-d|--dsos",
	  "use --filter TEXT" },
	{ "report", "-c|--comms", "use --thread NAME" },
	{ "report", "--tid", "use --thread TID" },
	{ "report", "--pid", "use --by process, or --thread TID" },
	{ "report", "-T", "use --by thread" },
	{ "report", "-k|--vmlinux", "use --symfs" },
	{ "report", "--header", "'seam dump' shows the header" },
	{ "report", "--tui|--gtk", "use --tree, or seam flamegraph" },
	{ "record", "-b|-j|--branch-any",
	  "branch stacks are not recorded: use 'perf record'" },
	{ "record", "-R|--raw-samples",
	  "leave it out: samples of tracepoints hold all" },
	{ "record", "-T|--timestamp",
	  "leave it out: each sample has its time" },
	{ "record", "-P", "leave it out: each sample has its period" },
	{ "record", "-s", "leave it out: counts are for each event" },
	{ "record", "-k|--clockid",
	  "leave it out: times are CLOCK_MONOTONIC's" },
	{ "record", "-u|--uid", "use -p with the processes of the user" },
	{ "record", "--all-user", "use a modifier: -e cycles:u" },
	{ "record", "--all-kernel", "use a modifier: -e cycles:k" },
	{ "record", "--switch-output", "use --overwrite --snapshot-every" },
	{ "record", "--off-cpu", "use -e sched:sched_switch -g" },
	{ "annotate", "-l", "leave it out: source lines are shown" },
	{ "annotate", "-s|--symbol", "name the SYMBOL without an option" },
};

const char *seam_perf_equivalent_command(const char *name)
{
	for (size_t i = 0; i < SEAM_ARRAY_SIZE(commands); i++)
		if (strcmp(commands[i].name, name) == 0)
			return commands[i].instead;
	return NULL;
}

const char *seam_perf_equivalent_option(const char *command,
					const char *option)
{
	for (size_t i = 0; i < SEAM_ARRAY_SIZE(options); i++)
		if (strcmp(options[i].command, command) == 0 &&
		    seam_command_is_choice(options[i].options, option,
					   strlen(option)))
			return options[i].instead;
	return NULL;
}
