/* SPDX-License-Identifier: MIT */
/*
 * fleet.c - 'seam fleet': reports of many hosts and times
 *
 * The options of this command select; all others are those of the command that
 * shows the answer, which is run with them.
 */
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "cli/commands/help.h"
#include "cli/fleet_query.h"

enum { MAX_WORDS = 512, TOP_INTERVAL = 10 /* seconds: a window */ };

struct fleet_options {
	struct seam_fleet_options of;
	/* 'fleet diff': what differs in the second query */
	const char *with_service, *with_host, *with_since;
	struct seam_option_list with_labels;
	bool once;
	uint64_t interval;
};

#define OPTION(...) SEAM_OPTION(struct fleet_options, __VA_ARGS__)

static const struct seam_option options[] = {
	SEAM_FLEET_OPTIONS(struct fleet_options, of),
	{ .kind = SEAM_OPTION_HEADING, .help = "Of diff: the profiles that "
	  "the others are compared with" },
	OPTION(with_since, STRING, 0, "with-since", "TIME",
	       "of this time"),
	OPTION(with_service, STRING, 0, "with-service", "GLOB",
	       "of these services"),
	OPTION(with_host, STRING, 0, "with-host", "GLOB", "of these hosts"),
	OPTION(with_labels, STRINGS, 0, "with-label", "K=V",
	       "with this label"),
	{ .kind = SEAM_OPTION_HEADING, .help = "Of top" },
	OPTION(once, FLAG, 0, "once", NULL, "print once"),
	OPTION(interval, U64, 0, "interval", "SECONDS",
	       "time between two tables (10)", .least = 1),
};

/* -- words -------------------------------------------------------------- */

/* The words of one command, for its parser. */
struct words {
	char *items[MAX_WORDS + 3];
	int n;
};

static void add_word(struct words *words, const char *word)
{
	words->items[words->n++] = (char *)(uintptr_t)word;
	words->items[words->n] = NULL;
}

/* The option of this command that @word is; NULL: of the other one. */
static const struct seam_option *find(const char *word)
{
	size_t size;

	if (strncmp(word, "--", 2) != 0)
		return NULL;
	size = strcspn(word + 2, "=");
	for (size_t i = 0; i < SEAM_ARRAY_SIZE(options); i++)
		if (options[i].name && strlen(options[i].name) == size &&
		    memcmp(options[i].name, word + 2, size) == 0)
			return &options[i];
	return NULL;
}

/* Options of this command to @own, all other words to @rest. */
static void divide(int argc, char **argv, struct words *own,
		   struct words *rest)
{
	for (int i = 1; i < argc; i++) {
		const struct seam_option *option = find(argv[i]);

		add_word(option ? own : rest, argv[i]);
		if (option && option->value && !strchr(argv[i], '=') &&
		    i + 1 < argc)
			add_word(own, argv[++i]);
	}
}

/* The value of option --@name in @words; NULL: it is not given. */
static const char *value_of(const struct words *words, const char *name)
{
	size_t n = strlen(name);

	for (int i = 1; i < words->n; i++) {
		const char *word = words->items[i];

		if (strncmp(word, "--", 2) != 0 ||
		    strncmp(word + 2, name, n) != 0)
			continue;
		if (word[2 + n] == '=')
			return word + 2 + n + 1;
		if (!word[2 + n])
			return i + 1 < words->n ? words->items[i + 1] : "";
	}
	return NULL;
}

/* -- queries ------------------------------------------------------------ */

struct fleet_verb {
	const char *name;
	const struct seam_command *command;
	unsigned int keep;	/* whatever its options are */
	bool with_calls;
};

static const struct fleet_verb verbs[] = {
	{ "report", &seam_report_command, 0, false },
	{ "flamegraph", &seam_flamegraph_command, SEAM_FLEET_KEEP_THREAD,
	  false },
	{ "diff", &seam_diff_command, 0, false },
	{ "top", &seam_report_command, 0, false },
	{ "calls", &seam_calls_command, 0, true },
	{ "convert", &seam_convert_command, ~0u, false },
};

/* What the answer has to keep apart for the options of the other command. */
static unsigned int keep_for(const struct fleet_verb *verb,
			     const struct words *words)
{
	static const struct { const char *key; unsigned int keep; } keys[] = {
		{ "comm", SEAM_FLEET_KEEP_THREAD },
		{ "thread", SEAM_FLEET_KEEP_THREAD | SEAM_FLEET_KEEP_PROCESS |
			    SEAM_FLEET_KEEP_HOST },
		{ "process", SEAM_FLEET_KEEP_PROCESS | SEAM_FLEET_KEEP_HOST },
		{ "host", SEAM_FLEET_KEEP_HOST },
		{ "service", SEAM_FLEET_KEEP_SERVICE },
	};
	const char *by = value_of(words, "by");
	unsigned int keep = verb->keep;

	for (size_t i = 0; by && i < SEAM_ARRAY_SIZE(keys); i++)
		if (strstr(by, keys[i].key))
			keep |= keys[i].keep;
	if (value_of(words, "thread"))
		keep |= SEAM_FLEET_KEEP_THREAD;
	if (value_of(words, "time"))
		keep |= SEAM_FLEET_KEEP_WINDOW;
	if (value_of(words, "tui"))
		keep = ~0u;
	return keep;
}

/* Ask, and add the path of the answer to the words of the other command. */
static int add_answer(const struct seam_command *self,
		      const struct fleet_verb *verb,
		      const struct seam_fleet_options *o, struct words *words)
{
	const char *path;
	int status = seam_fleet_query_open(self, o, keep_for(verb, words),
					   verb->with_calls, &path);

	if (!status)
		add_word(words, path);
	return status;
}

/* The second query of a diff. */
static struct seam_fleet_options with(const struct fleet_options *o)
{
	struct seam_fleet_options of = o->of;

	of.service = o->with_service ? o->with_service : of.service;
	of.host = o->with_host ? o->with_host : of.host;
	of.since = o->with_since ? o->with_since : of.since;
	if (o->with_labels.n)
		of.labels = o->with_labels;
	return of;
}

/* Print and wait, until a signal ends the program; or once. */
static int top(const struct seam_command *self, const struct fleet_verb *verb,
	       struct fleet_options *o, struct words *words)
{
	bool is_terminal = isatty(STDOUT_FILENO);
	int n, status;

	if (!o->of.since)
		o->of.since = "1m";
	add_word(words, "--no-pager");
	for (n = words->n;; words->n = n) {
		struct timespec wait = { .tv_sec = (time_t)o->interval };

		status = add_answer(self, verb, &o->of, words);
		if (status)
			return status;
		if (is_terminal && !o->once)
			fputs("\033[H\033[2J", stdout);
		status = verb->command->run(verb->command, words->n,
					    words->items);
		fflush(stdout);
		seam_fleet_query_close(words->items[n]);
		if (o->once || (status && status != SEAM_EXIT_LOSSY))
			return status;
		nanosleep(&wait, NULL);
	}
}

static const struct fleet_verb *find_verb(const char *name)
{
	for (size_t i = 0; name && i < SEAM_ARRAY_SIZE(verbs); i++)
		if (strcmp(verbs[i].name, name) == 0)
			return &verbs[i];
	return NULL;
}

static int show(const struct seam_command *self, const struct fleet_verb *verb,
		struct fleet_options *o, struct words *words)
{
	bool is_diff = verb->command == &seam_diff_command;
	struct seam_fleet_options second = with(o);
	int status;

	if (!is_diff && (o->with_since || o->with_service || o->with_host ||
			 o->with_labels.n))
		return seam_command_misused(self, "--with-... are options of "
					    "'seam fleet diff'");
	if (is_diff && !o->with_since && !o->with_service && !o->with_host &&
	    !o->with_labels.n)
		return seam_command_misused(self, "diff compares with "
			"--with-since, --with-service, --with-host or "
			"--with-label: one is needed");
	if (strcmp(verb->name, "top") == 0)
		return top(self, verb, o, words);
	status = add_answer(self, verb, &o->of, words);
	if (!status && is_diff)
		status = add_answer(self, verb, &second, words);
	return status ? status : verb->command->run(verb->command, words->n,
						    words->items);
}

/* It has options of its own alone. */
static int init(int argc, char **argv)
{
	const struct seam_command *command = &seam_fleet_init_command;
	int status = command->run(command, argc, argv);

	if (status != SEAM_EXIT_HELP)
		return status;
	seam_help_print(stdout, command);
	return SEAM_EXIT_DONE;
}

static int run(const struct seam_command *self, int argc, char **argv)
{
	struct fleet_options o = { .interval = TOP_INTERVAL };
	const struct fleet_verb *verb = argc > 1 ? find_verb(argv[1]) : NULL;
	struct words own = { 0 }, rest = { 0 };
	int first, status;

	if (argc > MAX_WORDS)
		return seam_command_misused(self, "too many words");
	add_word(&own, "fleet");
	if (argc > 1 && strcmp(argv[1], "init") == 0)
		return init(argc - 1, argv + 1);
	if (!verb) {
		status = seam_command_parse(self, argc, argv, &o, &first);
		return status ? status :
		       seam_command_misused(self, "report, flamegraph, diff, "
					    "top, calls, convert or init is "
					    "needed%s%s%s",
					    first < argc ? ", not '" : "",
					    first < argc ? argv[first] : "",
					    first < argc ? "'" : "");
	}
	add_word(&rest, verb->name);
	divide(argc - 1, argv + 1, &own, &rest);
	status = seam_command_parse(self, own.n, own.items, &o, &first);
	return status ? status : show(self, verb, &o, &rest);
}

const struct seam_command seam_fleet_command = {
	.name = "fleet",
	.summary = "report on the profiles of many hosts and times",
	.synopsis = "report|flamegraph|diff|top|calls|convert|init [options]",
	.description =
		"Adds up what agents ('seam agent') and 'seam push' have put "
		"into a store, and shows it as 'seam report', 'seam "
		"flamegraph', 'seam diff' or 'seam calls' show a recording, "
		"and 'seam convert' writes it: with all of their options, and "
		"the same JSON. top prints the "
		"newest minute again and again. 'seam view --from' shows a "
		"page. init makes the tables of a server, with options of its "
		"own (seam fleet init --help).\n\n"
		"diff compares two queries: the one of --from, --service, "
		"--host, --label and --since, and the same with what "
		"--with-... replace.\n\n"
		"The exit status is 3 if a part of the store did not answer, "
		"or where the hosts lost data; the message says which.",
	.examples =
		"seam fleet report --from /srv/profiles --service 'web*' "
		"--since 1h\tthe last hour of some services\n"
		"seam fleet report --from /srv/profiles --by host,symbol\t"
		"which host spends it\n"
		"seam fleet diff --from /srv/profiles --since 2d..1d "
		"--with-since 1d\tyesterday and today\n"
		"seam fleet diff --from /srv/profiles --label version=1 "
		"--with-label version=2\ttwo versions\n"
		"seam fleet flamegraph --from /srv/profiles -o web.svg "
		"--service web\ta picture of all hosts\n",
	.options = options,
	.n_options = SEAM_ARRAY_SIZE(options),
	.run = run,
};
