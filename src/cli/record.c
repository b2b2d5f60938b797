/* SPDX-License-Identifier: MIT */
/* record.c - 'seam record': options in, one recording, exit status out */
#include "cli/command.h"
#include "record/record.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
	/* As a shell reports them; Source: POSIX.1-2017, 2.8.2. */
	EXIT_CANNOT_START = 126,
	EXIT_NOT_FOUND = 127,
	EXIT_SIGNAL = 128,
};

struct options {
	struct seam_option_list events;
	const char *frequency;
	uint64_t period;
	bool callchains;
	const char *call_graph;
	const char *ring;
	const char *output;
	uint64_t pid;
	bool quiet;
	bool verbose;
};

#define OPTION(member, kind, letter, name, value, help, ...) \
	SEAM_OPTION(struct options, member, SEAM_OPTION_##kind, letter, name, \
		    value, help, __VA_ARGS__)

static const struct seam_option options[] = {
	OPTION(events, STRINGS, 'e', "event", "EVENT",
	       "what to sample: a name of perf's, or several with commas",
	       .detail = "Modifiers follow a colon: u (user code only), k "
	       "(kernel only), p to ppp (precise). rNNN is a raw event of "
	       "the CPU. Without this option: cycles where the machine has "
	       "them, else cpu-clock. 'seam doctor' lists the events."),
	OPTION(frequency, STRING, 'F', "freq", "HZ",
	       "samples a second of the event; 'max' is the most allowed",
	       .detail = "The default is 4000. The most allowed is "
	       "kernel.perf_event_max_sample_rate."),
	OPTION(period, U64, 'c', "count", "PERIOD",
	       "a sample each PERIOD events, in place of a frequency"),
	OPTION(callchains, FLAG, 'g', NULL, NULL,
	       "record call chains, as --call-graph=fp"),
	OPTION(call_graph, STRING, 0, "call-graph", "HOW",
	       "how to record call chains", .choices = "fp|none"),
	OPTION(ring, STRING, 'm', "mmap-pages", "PAGES",
	       "size of each CPU's ring: pages, or bytes such as 512K or 1M"),
	OPTION(output, STRING, 'o', "output", "NAME",
	       "the recording's folder (recording.seam)",
	       .detail = "A recording of that name is moved to NAME.old."),
	OPTION(pid, U64, 'p', "pid", "PID",
	       "record a process that runs, with all that it starts"),
	OPTION(quiet, FLAG, 'q', "quiet", NULL, "say nothing but errors"),
	OPTION(verbose, FLAG, 'v', "verbose", NULL, "say more"),
};

static void say(void *context, bool verbose, const char *text)
{
	const struct options *o = context;

	if (!o->quiet && (!verbose || o->verbose))
		seam_command_say("%s", text);
}

static int usage(const char *text, const char *value)
{
	seam_command_say("%s: '%s'", text, value);
	return -EINVAL;
}

static int parse_frequency(const char *text, uint64_t *hz)
{
	char *end;

	*hz = SEAM_RECORD_FREQUENCY_HZ;
	if (!text)
		return 0;
	if (strcmp(text, "max") == 0) {
		*hz = UINT64_MAX;
		return 0;
	}
	errno = 0;
	*hz = strtoull(text, &end, 10);
	if (errno || *end || text[0] < '0' || text[0] > '9' || *hz == 0)
		return usage("-F takes a number of samples a second, or 'max'",
			     text);
	return 0;
}

/* A number of pages, or of bytes with a unit; a power of two in the end. */
static int parse_ring(const struct options *o, size_t *bytes)
{
	static const char units[] = "BKMG";
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	const char *unit;
	char *end;
	uint64_t n, rounded;

	*bytes = SEAM_RECORD_RING_BYTES;
	if (!o->ring)
		return 0;
	errno = 0;
	n = strtoull(o->ring, &end, 10);
	unit = *end ? strchr(units, *end & ~0x20) : NULL;
	if (errno || o->ring[0] < '0' || o->ring[0] > '9' || n == 0 ||
	    (*end && (!unit || end[1])) || n > UINT64_C(1) << 30)
		return usage("-m takes a number of pages or a size such as "
			     "512K", o->ring);
	n = unit ? n << 10 * (unit - units) : n * page;
	for (rounded = page; rounded < n; rounded *= 2)
		;
	if (rounded != n && !o->quiet)
		seam_command_say("rings have a power of two of pages: taking "
				 "%" PRIu64 " KiB", rounded / 1024);
	*bytes = rounded;
	return 0;
}

static int interpret(const struct options *o, char **command,
		     struct seam_record_options *out)
{
	*out = (struct seam_record_options) {
		.events = o->events.items,
		.n_events = o->events.n,
		.period = o->period,
		.callchains = o->call_graph ?
			      strcmp(o->call_graph, "fp") == 0 :
			      o->callchains,
		.output = o->output,
		.pid = (int)o->pid,
		.command = *command ? command : NULL,
	};
	if (o->pid > INT32_MAX)
		return usage("-p takes the id of a process", "too large");
	if (!out->command == !o->pid) {
		seam_command_say("record either a COMMAND or a process with "
				 "-p PID");
		return -EINVAL;
	}
	if (o->frequency && o->period) {
		seam_command_say("-F and -c exclude each other");
		return -EINVAL;
	}
	if (parse_frequency(o->frequency, &out->frequency_hz) < 0)
		return -EINVAL;
	return parse_ring(o, &out->ring_bytes);
}

static void print_size(char *buf, size_t cap, uint64_t bytes)
{
	if (bytes < 1 << 20)
		snprintf(buf, cap, "%.1f KiB", (double)bytes / 1024);
	else
		snprintf(buf, cap, "%.1f MiB", (double)bytes / (1 << 20));
}

static void summarize(const struct options *o,
		      const struct seam_record_result *r)
{
	uint64_t lost = r->n_lost + r->n_unwritten;
	char size[32];

	if (o->quiet)
		return;
	print_size(size, sizeof(size), r->file_bytes);
	seam_command_say("%" PRIu64 " samples in %.2f s, %s in '%s'; next: "
			 "seam report%s%s", r->n_samples,
			 (double)r->duration_ns / 1e9, size, o->output,
			 strcmp(o->output, "recording.seam") ? " " : "",
			 strcmp(o->output, "recording.seam") ? o->output : "");
	if (lost)
		seam_command_say("lost %" PRIu64 " records (%.2f %%): %" PRIu64
			" because rings were full (larger ones: -m), %" PRIu64
			" because of failed writes", lost,
			100.0 * (double)lost / (double)(lost + r->n_samples),
			r->n_lost, r->n_unwritten);
	if (r->n_throttled)
		seam_command_say("the kernel held sampling back %" PRIu64
				 " times (kernel.perf_cpu_time_max_percent)",
				 r->n_throttled);
}

/*
 * The command's own status where there is one; see command.h and DESIGN.
 * Where somebody did not want to wait for it, the signal stands for it.
 */
static int exit_status(const struct seam_record_options *what,
		       const struct seam_record_result *r)
{
	bool lossy = r->n_lost || r->n_unwritten || r->cut_short;
	int status = SEAM_EXIT_DONE;

	if (what->command && !r->command_ended)
		status = EXIT_SIGNAL + r->signal;
	else if (r->command_ended)
		status = WIFSIGNALED(r->wait_status) ?
			 EXIT_SIGNAL + WTERMSIG(r->wait_status) :
			 WEXITSTATUS(r->wait_status);
	return status == SEAM_EXIT_DONE && lossy ? SEAM_EXIT_LOSSY : status;
}

/* The recording remembers the command line, of which argv lacks our name. */
static int record_words(struct seam_record_options *what, int argc,
			char **argv, struct seam_record_result *result,
			struct seam_err *err)
{
	size_t n = (size_t)argc;
	const char **words = calloc(n + 1, sizeof(*words));
	int r;

	if (!words)
		return seam_err_set(err, -ENOMEM, "out of memory");
	words[0] = "seam";
	for (size_t i = 0; i < n; i++)
		words[i + 1] = argv[i];
	what->words = words;
	what->n_words = n + 1;
	r = seam_record(what, result, err);
	free(words);
	return r;
}

static int run(const struct seam_command *self, int argc, char **argv)
{
	struct options o = { .output = "recording.seam" };
	struct seam_record_options what;
	struct seam_record_result result = { 0 };
	struct seam_err err = { 0 };
	int first, r;

	r = seam_command_parse(self, argc, argv, &o, &first);
	if (r != 0)
		return r < 0 ? SEAM_EXIT_USAGE : SEAM_EXIT_DONE;
	if (interpret(&o, argv + first, &what) < 0)
		return SEAM_EXIT_USAGE;
	what.note = say;
	what.context = &o;
	r = record_words(&what, argc, argv, &result, &err);
	if (result.start_error) {
		seam_command_failed(&err);
		return result.start_error == -ENOENT ? EXIT_NOT_FOUND :
		       EXIT_CANNOT_START;
	}
	if (r < 0) {
		seam_err_add(&err, r, result.cut_short ?
			     "the recording in '%s' was cut short" :
			     "cannot record into '%s'", o.output);
		seam_command_failed(&err);
		if (!result.cut_short)
			return SEAM_EXIT_FAILED;
	}
	summarize(&o, &result);
	return exit_status(&what, &result);
}

const struct seam_command seam_record_command = {
	.name = "record",
	.summary = "record a program",
	.synopsis = "[options] [--] COMMAND [ARG...]",
	.description =
		"Runs COMMAND and takes samples of it and of all that it "
		"starts, into a folder of standard files: 'data' in it is "
		"a perf.data file.\n\n"
		"The exit status is COMMAND's own; 3 where COMMAND returned "
		"0 and data was lost; 126 or 127 where it could not be "
		"started. An interrupt from the terminal is COMMAND's; the "
		"recording ends with it, and a second one does not wait.",
	.examples =
		"seam record -- make\trecord a build\n"
		"seam record -g -F 10000 -- ./server\twith call chains, "
		"10000 samples a second\n"
		"seam record -p 4711\ta process that runs, until Ctrl-C\n",
	.options = options,
	.n_options = SEAM_ARRAY_SIZE(options),
	.takes_command = true,
	.run = run,
};
