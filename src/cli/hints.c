/* SPDX-License-Identifier: MIT */
/* hints.c - edit distance over short words, and perf's; see hints.h */
#include "cli/hints.h"

#include <stdlib.h>

enum { MAX_WORD = 32 };

static size_t least(size_t a, size_t b)
{
	return a < b ? a : b;
}

/*
 * Edits from @a to @b, a swap of neighbours being one: the table of the
 * classic algorithm, row by row, where a swap looks two rows back.
 */
static size_t distance(const char *a, size_t n_a, const char *b, size_t n_b)
{
	size_t row[MAX_WORD + 1][MAX_WORD + 1];

	for (size_t j = 0; j <= n_b; j++)
		row[0][j] = j;
	for (size_t i = 1; i <= n_a; i++) {
		row[i][0] = i;
		for (size_t j = 1; j <= n_b; j++) {
			size_t cost = a[i - 1] != b[j - 1];

			row[i][j] = least(row[i - 1][j - 1] + cost,
					  least(row[i - 1][j],
						row[i][j - 1]) + 1);
			if (i > 1 && j > 1 && a[i - 1] == b[j - 2] &&
			    a[i - 2] == b[j - 1])
				row[i][j] = least(row[i][j],
						  row[i - 2][j - 2] + 1);
		}
	}
	return row[n_a][n_b];
}

void seam_closest_word_try(struct seam_closest_word *best, const char *word,
			   const char *name)
{
	size_t n_word = strlen(word), n_name = strlen(name);
	size_t edits;

	if (n_word >= MAX_WORD || n_name >= MAX_WORD)
		return;
	edits = distance(word, n_word, name, n_name);
	if (edits > (n_word < 3 ? 1 : n_word / 3))
		return;
	if (!best->name || edits < best->distance)
		*best = (struct seam_closest_word) { name, edits };
}

/* ---- functions ---- */

/* How similar @name is to @word: more is better, 0 is not. */
static int likeness(const char *word, const char *name)
{
	struct seam_closest_word nearest = { 0 };

	if (word[0] && word[1] && strcasestr(name, word))
		return strstr(name, "@plt") ? 1 : 2;
	seam_closest_word_try(&nearest, word, name);
	return nearest.name != NULL;
}

static const char *name_of(const struct seam_profile *profile, size_t i)
{
	return seam_profile_text(profile, profile->functions.items[i].name);
}

const char *seam_closest_function(const struct seam_profile *profile,
				  const char *word)
{
	const struct seam_samples *s = &profile->samples;
	uint64_t *n = calloc(profile->functions.n + 1, sizeof(*n));
	const char *best = NULL;
	uint64_t most = 0;
	int best_likeness = 0;

	for (size_t i = 0; n && i < s->n; i++)
		if (s->stack[i])
			n[profile->frames.items[profile->stacks.items[
				s->stack[i]].frame].function]++;
	for (size_t i = 0; n && i < profile->functions.n; i++) {
		const char *name = name_of(profile, i);
		int like = profile->functions.items[i].is_named ?
			   likeness(word, name) : 0;

		if (!like || like < best_likeness ||
		    (best && like == best_likeness && n[i] <= most))
			continue;
		best = name;
		best_likeness = like;
		most = n[i];
	}
	free(n);
	return best;
}

/* ---- perf ---- */

bool seam_word_is_among(const char *words, const char *word, size_t size)
{
	for (const char *c = words; *c; c += *c == '|') {
		size_t n = strcspn(c, "|");

		if (n == size && memcmp(c, word, n) == 0)
			return true;
		c += n;
	}
	return false;
}

/* Source: perf(1) of Linux 6.1. */
static const struct {
	const char *command;
	const char *options;	/* of one meaning: "-a|--all"; NULL: none */
	const char *instead;
} equivalents[] = {
	{ "script", NULL, "'seam dump' shows each record, 'seam convert' makes "
	  "folded stacks" },
	{ "list", NULL, "'seam doctor' lists the events" },
	{ "evlist", NULL, "'seam dump' shows the events of a recording" },
	{ "archive", NULL, "nothing is needed: the folder that 'seam record' "
	  "makes is whole; copy it" },
	{ "buildid-list", NULL, "'seam dump' shows build ids" },
	{ "probe", NULL,
	  "'seam record -e uprobe:FILE:SYMBOL' records a probe" },
	{ "trace", NULL,
	  "'seam record -e raw_syscalls:*' records system calls" },
	{ "mem", NULL, "'seam record -d' records addresses of data" },
	{ "sched", NULL, "'seam record -e sched:*' records the scheduler" },
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
	{ "report", "--gtk", "use --tui, or seam flamegraph" },
	{ "record", "-b|-j|--branch-any",
	  "branch stacks are not recorded: use 'perf record'" },
	{ "record", "-R|--raw-samples",
	  "leave it out: samples of tracepoints hold all" },
	{ "record", "-T|--timestamp",
	  "leave it out: each sample has its time" },
	{ "record", "--all-cgroups", "use --cgroups" },
	{ "record", "-P", "leave it out: each sample has its period" },
	{ "record", "-s", "leave it out: counts are for each event" },
	{ "record", "-k|--clockid",
	  "leave it out: times are CLOCK_MONOTONIC's" },
	{ "record", "--all-user", "use a modifier: -e cycles:u" },
	{ "record", "--all-kernel", "use a modifier: -e cycles:k" },
	{ "record", "--switch-output", "use --overwrite --snapshot-every" },
	{ "annotate", "-l", "leave it out: source lines are shown" },
	{ "annotate", "-s|--symbol", "name the SYMBOL without an option" },
};

const char *seam_perf_equivalent(const char *command, const char *option)
{
	for (size_t i = 0; i < SEAM_ARRAY_SIZE(equivalents); i++) {
		const char *options = equivalents[i].options;

		if (strcmp(equivalents[i].command, command) == 0 &&
		    (option && options ?
		     seam_word_is_among(options, option, strlen(option)) :
		     !option && !options))
			return equivalents[i].instead;
	}
	return NULL;
}
