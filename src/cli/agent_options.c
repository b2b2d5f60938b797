/* SPDX-License-Identifier: MIT */
/* agent_options.c - a file becomes words of a command line; see the header */
#include "cli/agent_options.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/text.h"
#include "cli/fleet_query.h"
#include "fleet/batch_build.h"

enum {
	DEFAULT_HZ = 19,
	MAX_HZ = 1000,
	MAX_FILE = 64 << 10,
	MAX_WORDS = 256,	/* of the file */
	MAX_NAME = 200,		/* bytes of a service, a host, a label */
	DEFAULT_SPOOL = 256 << 20,
	DEFAULT_MEMORY = 50 << 20,
};

#define STATE_FOLDER "/var/lib/seam-agent"

#define OPTION(...) SEAM_OPTION(struct seam_agent_options, __VA_ARGS__)

const struct seam_option seam_agent_option_table[] = {
	{ .help = "What to sample", .kind = SEAM_OPTION_HEADING },
	SEAM_TARGET_OPTIONS(struct seam_agent_options, targets, record),
	OPTION(events, STRINGS, 'e', "event", "EVENT",
	       "an event, as of 'seam record' (cpu-clock)"),
	OPTION(frequency, STRING, 'F', "freq", "HZ",
	       "samples per second, on each CPU (19)"),
	OPTION(off_cpu_min, STRING, 0, "off-cpu-min", "TIME",
	       "also waits of at least TIME, such as 1ms, with their stacks",
	       .detail = "Each switch of a thread is recorded then, which "
	       "costs CPU time where threads switch often."),
	{ .help = "Where it goes", .kind = SEAM_OPTION_HEADING },
	OPTION(service, STRING, 0, "service", "NAME",
	       "the service that the rows are of"),
	OPTION(labels, STRINGS, 'l', "label", "KEY=VALUE",
	       "a label of all rows, such as version=1.2",
	       .detail = "Up to 16."),
	OPTION(host, STRING, 0, "host", "NAME",
	       "the host that the rows are of (the name of this machine)"),
	OPTION(place.where, STRING, 0, "to", "WHERE",
	       "the store: a folder, or the URL of a ClickHouse"),
	SEAM_FLEET_LOGIN_OPTIONS(struct seam_agent_options, place),
	SEAM_OTLP_OPTION(struct seam_agent_options, place.otlp),
	OPTION(window, STRING, 0, "window", "TIME",
	       "the time between two batches (10s)",
	       .detail = "A multiple of 10s; or 1s, 2s or 5s. Rows are of ten "
	       "seconds in either case."),
	OPTION(spool, STRING, 0, "spool", "DIR",
	       "where batches wait until they are sent",
	       .detail = "/var/lib/seam-agent/spool for root and for the "
	       "system's service; else $XDG_STATE_HOME/seam/spool."),
	OPTION(spool_max, SIZE, 0, "spool-max", "SIZE",
	       "drop the oldest batches above this size (256M)",
	       .detail = "The next batch has the number of samples that were "
	       "dropped."),
	{ .help = "What it may take", .kind = SEAM_OPTION_HEADING },
	OPTION(max_cpu, PERCENT, 0, "max-cpu", "PERCENT",
	       "of one CPU, for all of its processes (1); 0: no limit",
	       .detail = "Above it the frequency is halved, down to 1 Hz; then "
	       "windows are left out, and counted as lost."),
	OPTION(max_memory, SIZE, 0, "max-memory", "SIZE",
	       "forget names above this size (50M)",
	       .detail = "Names and stacks are then looked up again as they "
	       "occur. Counted is what is resident and no file's, of all of "
	       "its processes."),
	{ .help = "How it runs", .kind = SEAM_OPTION_HEADING },
	OPTION(config, STRING, 0, "config", "FILE",
	       "read options from FILE; again on SIGHUP",
	       .detail = "Lines 'key = value' with the names of these options, "
	       "'yes' for one without a value; '#' begins a comment. The "
	       "command line has precedence. On SIGHUP service, host, labels, "
	       "to, credentials, ca-file, freq, max-cpu and max-memory take "
	       "effect; the others need a restart."),
	OPTION(status, FLAG, 0, "status", NULL,
	       "print the state of the agent that uses the spool, and end"),
	OPTION(json, FLAG, 0, "json", NULL, "with --status: print JSON"),
};

/* ---- the file ---- */

/* One line as the word of an option: 0, -EINVAL, or -ENOMEM. */
static int add_word(struct seam_agent_options *o, size_t *n, char *key,
		    char *value)
{
	const struct seam_option *option = NULL;

	for (size_t i = 0; i < SEAM_AGENT_N_OPTIONS; i++)
		if (seam_agent_option_table[i].name &&
		    strcmp(seam_agent_option_table[i].name, key) == 0)
			option = &seam_agent_option_table[i];
	/* a file that names a file, or asks for the state */
	if (!option || *n == MAX_WORDS || strcmp(key, "config") == 0 ||
	    strcmp(key, "status") == 0 || strcmp(key, "json") == 0)
		return -EINVAL;
	if (option->kind != SEAM_OPTION_FLAG)
		return asprintf(&o->words[(*n)++], "--%s=%s", key, value) < 0 ?
		       -ENOMEM : 0;
	if (strcmp(value, "yes") != 0)
		return strcmp(value, "no") == 0 ? 0 : -EINVAL;
	return asprintf(&o->words[(*n)++], "--%s", key) < 0 ? -ENOMEM : 0;
}

/* @text without blanks at both ends. */
static char *trim(char *text)
{
	char *end = text + strlen(text);

	while (end > text && (end[-1] == ' ' || end[-1] == '\t' ||
			      end[-1] == '\r'))
		*--end = 0;
	return text + strspn(text, " \t");
}

static int refuse_line(const struct seam_command *self, const char *path,
		       unsigned int number, const char *why)
{
	return seam_command_misused(self, "%s:%u: %s", path, number, why);
}

/* The lines of .text as words from @*n on.  0 or the exit status. */
static int read_lines(struct seam_agent_options *o,
		      const struct seam_command *self, size_t *n)
{
	char *line = o->text, *rest;
	int r;

	for (unsigned int number = 1; line; line = rest, number++) {
		char *value;

		rest = strchr(line, '\n');
		if (rest)
			*rest++ = 0;
		line = trim(line);
		if (!*line || *line == '#')
			continue;
		value = strchr(line, '=');
		if (!value)
			return refuse_line(self, o->config, number,
					   "not a line 'key = value'");
		*value++ = 0;
		r = add_word(o, n, trim(line), trim(value));
		if (r == -EINVAL)
			return refuse_line(self, o->config, number,
					   "no option of 'seam agent' that can "
					   "be in a file, or not yes or no");
		if (r < 0)
			return seam_command_failed(&(struct seam_err) {
				.code = r, .n_causes = 1,
				.cause = { "out of memory" } });
	}
	return 0;
}

/* .text: the file, with a NUL.  0 or the exit status. */
static int read_file(struct seam_agent_options *o)
{
	struct seam_file file = { 0 };
	struct seam_err err = { 0 };
	int fd = seam_file_open_fd(AT_FDCWD, o->config, 0, &err);
	int r = fd < 0 ? fd : seam_file_read_fd(&file, fd, MAX_FILE, &err);

	seam_file_close_fd(fd);
	if (r == 0) {
		o->text = strndup((const char *)file.bytes.data,
				  file.bytes.size);
		r = o->text ? 0 : seam_err_no_memory(&err);
	}
	seam_file_close(&file);
	if (r == 0)
		return 0;
	seam_err_add(&err, r, "cannot read --config '%s'", o->config);
	return seam_command_failed(&err);
}

/* ---- checks ---- */

static bool is_name(const char *text)
{
	size_t n = strlen(text);

	return n > 0 && n <= MAX_NAME && !strpbrk(text, "\r\n\t");
}

/* Why the labels are not valid; NULL: they are. */
static const char *check_labels(const struct seam_option_list *labels)
{
	if (labels->n > SEAM_BATCH_MAX_LABELS)
		return "at most 16 labels";
	for (size_t i = 0; i < labels->n; i++) {
		const char *value = strchr(labels->items[i], '=');

		if (!value || value == labels->items[i] ||
		    !is_name(labels->items[i]))
			return "a label is KEY=VALUE, of at most 200 bytes";
	}
	return NULL;
}

/* Why the options are not valid; NULL: they are. */
static const char *check(const struct seam_agent_options *o)
{
	const char *at = o->place.where ? strstr(o->place.where, "://") : NULL;

	if (!o->service)
		return "--service NAME is needed: what queries select by";
	if (!o->place.where && !o->place.otlp)
		return "--to is needed: a folder, or the URL of a ClickHouse; "
		       "or --otlp";
	if (!is_name(o->service) || !is_name(o->host))
		return "a service and a host have a name of at most 200 bytes";
	if (at && memchr(at + 3, '@', strcspn(at + 3, "/")))
		return "no user and no password in the URL, which others can "
		       "see: give --credentials FILE";
	return check_labels(&o->labels);
}

/* Rows are of ten seconds: batches have some of them, or a part of one. */
static bool is_window(uint64_t ns)
{
	return ns >= SEAM_NS_PER_S && ns <= 3600 * SEAM_NS_PER_S &&
	       ns % SEAM_NS_PER_S == 0 &&
	       (ns % SEAM_FLEET_WINDOW_NS == 0 ||
		SEAM_FLEET_WINDOW_NS % ns == 0);
}

/* "19", "10s", "1ms" to numbers.  NULL, or why not. */
static const char *read_numbers(struct seam_agent_options *o)
{
	const char *hz = o->frequency;
	uint64_t *number = &o->record.frequency_hz;

	*number = DEFAULT_HZ;
	if (hz && (!(hz = seam_text_number(hz, hz + strlen(hz), 10, number)) ||
		   *hz || !*number || *number > MAX_HZ))
		return "-F takes 1 to 1000 samples per second";
	o->window_ns = SEAM_FLEET_WINDOW_NS;
	if (o->window && (!seam_text_ns(o->window, &o->window_ns) ||
			  !is_window(o->window_ns)))
		return "--window takes a multiple of 10s up to 3600s, or 1s, 2s "
		       "or 5s";
	if (o->off_cpu_min && !seam_text_ns(o->off_cpu_min, &o->off_cpu_ns))
		return "--off-cpu-min takes a time such as 1ms";
	return NULL;
}

/* ---- the spool ---- */

static void find_folder(struct seam_agent_options *o)
{
	const char *state = getenv("STATE_DIRECTORY"), *home = getenv("HOME");
	const char *xdg = getenv("XDG_STATE_HOME");

	if (o->spool)
		snprintf(o->folder, sizeof(o->folder), "%s", o->spool);
	else if (state && *state == '/')
		snprintf(o->folder, sizeof(o->folder), "%s/spool", state);
	else if (geteuid() == 0 || (!xdg && !home))
		snprintf(o->folder, sizeof(o->folder), STATE_FOLDER "/spool");
	else if (xdg && *xdg == '/')
		snprintf(o->folder, sizeof(o->folder), "%s/seam/spool", xdg);
	else
		snprintf(o->folder, sizeof(o->folder),
			 "%s/.local/state/seam/spool", home);
}

/* ---- all of it ---- */

/* The file's words go before those of the command line. */
static int read_both(struct seam_agent_options *o,
		     const struct seam_command *self, int argc, char **argv,
		     int *first)
{
	struct seam_agent_options again = {
		.config = o->config, .spool_max = DEFAULT_SPOOL,
		.max_memory = DEFAULT_MEMORY, .max_cpu = 1,
	};
	size_t n = 1;
	int r;

	again.words = calloc(MAX_WORDS + (size_t)argc + 2,
			     sizeof(*again.words));
	if (!again.words)
		return SEAM_EXIT_FAILED;
	*o = again;
	r = read_file(o);
	if (r == 0)
		r = read_lines(o, self, &n);
	if (r)
		return r;
	o->words[0] = strdup(argv[0]);
	for (int i = 1; i < argc; i++)
		o->words[n++] = strdup(argv[i]);
	/* before the parser, which has no room for a COMMAND of NULLs */
	for (size_t i = 0; i < n; i++)
		if (!o->words[i])
			return SEAM_EXIT_FAILED;
	return seam_command_parse(self, (int)n, o->words, o, first);
}

int seam_agent_options_read(struct seam_agent_options *o,
			    const struct seam_command *self, int argc,
			    char **argv)
{
	const char *problem;
	char **command = argv;
	int first, r;

	*o = (struct seam_agent_options) {
		.spool_max = DEFAULT_SPOOL, .max_memory = DEFAULT_MEMORY,
		.max_cpu = 1,
	};
	r = seam_command_parse(self, argc, argv, o, &first);
	if (r == 0 && o->config) {
		r = read_both(o, self, argc, argv, &first);
		command = o->words;
	}
	if (r)
		return r;
	find_folder(o);
	if (o->status)
		return 0;
	gethostname(o->host_name, sizeof(o->host_name) - 1);
	if (!o->host)
		o->host = o->host_name;
	problem = check(o) ?: read_numbers(o);
	if (problem)
		return seam_command_misused(self, "%s", problem);
	o->record.command = command[first] ? command + first : NULL;
	if (!o->events.n)
		o->events.items[o->events.n++] = "cpu-clock";
	o->record.events = o->events.items;
	o->record.n_events = o->events.n;
	/* half of a fleet's time would be that of the kernel's idle loop */
	o->record.no_idle = true;
	o->record.off_cpu = (struct seam_off_cpu_options) {
		.is_used = o->off_cpu_min != NULL, .min_ns = o->off_cpu_ns,
	};
	return seam_targets_read(self, &o->targets, &o->record);
}

void seam_agent_options_fini(struct seam_agent_options *o)
{
	seam_targets_fini(&o->record);
	for (size_t i = 0; o->words && o->words[i]; i++)
		free(o->words[i]);
	free(o->words);
	free(o->text);
	*o = (struct seam_agent_options) { .status = false };
}
