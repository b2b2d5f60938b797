/* SPDX-License-Identifier: MIT */
/*
 * record.c - 'seam record': record, print a summary, exit status; and 'seam
 * snapshot'
 */
#include "base/text.h"
#include "cli/command.h"
#include "cli/commands/record_args.h"
#include "record/record.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
	/* As a shell reports them; Source: POSIX.1-2017, 2.8.2. */
	EXIT_CANNOT_START = 126,
	EXIT_NOT_FOUND = 127,
	EXIT_SIGNAL = 128,
};

static void say(void *context, bool verbose, const char *text)
{
	(void)context;
	if (!verbose || seam_command_verbose())
		seam_command_say("%s", text);
}

static const char *plural(uint64_t n)
{
	return n == 1 ? "" : "s";
}

static void print_size(char *buf, size_t cap, uint64_t bytes)
{
	if (bytes < 1 << 20)
		snprintf(buf, cap, "%.1f KiB", (double)bytes / 1024);
	else
		snprintf(buf, cap, "%.1f MiB", (double)bytes / (1 << 20));
}

/* By cause, and by event if there are several. */
static void report_losses(const struct seam_record_result *r)
{
	uint64_t lost = 0;
	char why[300];

	for (size_t i = 0; i < SEAM_N_COUNTS; i++)
		if (seam_count_rows[i].amount == SEAM_COUNT_IS_RECORDS)
			lost += r->counts.n[i];
	if (!lost)
		return;
	seam_counts_list(&r->counts, "lost", why, sizeof(why));
	seam_command_say("lost %" PRIu64 " record%s (%.2f %%): %s", lost,
		plural(lost),
		100.0 * (double)lost / (double)(lost + r->n_samples), why);
	for (size_t i = 0; r->n_events > 1 && i < r->n_events; i++) {
		const struct seam_record_event *event = &r->events[i];

		if (event->n_lost)
			seam_command_say("  %s: lost %" PRIu64 " (%.2f %%)",
				event->name, event->n_lost,
				100.0 * (double)event->n_lost /
				(double)(event->n_lost + event->n_samples));
	}
}

/* Why many stacks are incomplete. */
static void report_stacks(const struct seam_record_result *r)
{
	const struct seam_stack_counts *stacks = &r->stacks;
	struct seam_stack_counts all = *stacks;
	char text[600];

	/* those of an agent are of this recording too */
	all.n_ended[SEAM_STACK_COMPLETE] +=
		r->counts.n[SEAM_COUNT_GUEST_SAMPLES] -
		r->counts.n[SEAM_COUNT_GUEST_INCOMPLETE];
	if (seam_stack_counts_advise(&all, text, sizeof(text)))
		seam_command_say("%s", text);
	if (!seam_command_verbose() || !seam_stack_counts_total(stacks))
		return;
	seam_command_say("%.2f %% of %" PRIu64 " user stacks are complete",
			 seam_stack_counts_percent(stacks),
			 seam_stack_counts_total(stacks));
}

/* Samples of agents: how many have Lua stacks, and what is missing. */
static void report_guest(const struct seam_counts *counts)
{
	const uint64_t *n = counts->n;
	char why[300];

	if (!n[SEAM_COUNT_GUEST_SAMPLES] && !n[SEAM_COUNT_GUEST_BAD])
		return;
	seam_counts_list(counts, "guest", why, sizeof(why));
	seam_command_say("%" PRIu64 " sample%s with Lua stacks, of %" PRIu64
			 " by libseam-agent%s%s",
			 n[SEAM_COUNT_GUEST_WITH_GUEST],
			 plural(n[SEAM_COUNT_GUEST_WITH_GUEST]),
			 n[SEAM_COUNT_GUEST_SAMPLES],
			 why[0] ? "; skipped: " : "", why);
	if (!seam_command_verbose())
		return;
	seam_command_say("%" PRIu64 " ticks of CPU time were due, %" PRIu64
			 " are in samples; %" PRIu64 " were merged; %" PRIu64
			 " samples of the recorder are superseded",
			 n[SEAM_COUNT_GUEST_DUE], n[SEAM_COUNT_GUEST_TICKS],
			 n[SEAM_COUNT_GUEST_MERGED],
			 n[SEAM_COUNT_GUEST_SUPERSEDED]);
}

/* Of --trace; @place is the operand for the next command, "" or " NAME". */
static void report_calls(const struct seam_record_result *r, const char *place)
{
	uint64_t n_records = r->counts.n[SEAM_COUNT_CALLS_RECORDS];
	uint64_t n_functions = r->counts.n[SEAM_COUNT_CALLS_FUNCTIONS];
	uint64_t n_threads = r->counts.n[SEAM_COUNT_CALLS_THREADS];
	uint64_t n_frozen = r->counts.n[SEAM_COUNT_CALLS_FROZEN];
	char size[32];

	print_size(size, sizeof(size), r->calls_bytes);
	if (n_records)
		seam_command_say("%" PRIu64 " record%s of calls of %" PRIu64
				 " function%s, %" PRIu64 " thread%s, %s in "
				 "xray; next: seam calls%s", n_records,
				 plural(n_records), n_functions,
				 plural(n_functions), n_threads,
				 plural(n_threads), size, place);
	if (n_records && seam_command_verbose())
		seam_command_say("the time stamp counter runs at %.6f MHz",
				 (double)r->tsc_hz / 1e6);
	if (n_frozen)
		seam_command_say("%" PRIu64 " record%s of calls left out while "
				 "a trigger's were copied%s", n_frozen,
				 plural(n_frozen), n_records ? "" :
				 ": none came after the last snapshot");
}

/* Where the recording was moved to, as a relative path if below here. */
static const char *shown_place(const struct seam_record_result *r)
{
	char here[PATH_MAX];
	size_t n;

	if (!getcwd(here, sizeof(here)))
		return r->place;
	n = strlen(here);
	return strncmp(r->place, here, n) == 0 && r->place[n] == '/' ?
	       r->place + n + 1 : r->place;
}

static void summarize(const char *output, bool has_command,
		      const struct seam_record_result *r)
{
	const char *place = r->was_moved ? shown_place(r) : output;
	char size[32], operand[PATH_MAX + 2] = "", line[SEAM_COUNT_LINE];

	print_size(size, sizeof(size), r->bundle_bytes);
	if (strcmp(place, "recording.seam") != 0)
		snprintf(operand, sizeof(operand), " %s", place);
	if (!r->was_removed)
		seam_command_say("%" PRIu64 " sample%s in %.2f s, %s in "
			"'%s'%s%s", r->n_samples, plural(r->n_samples),
			(double)r->duration_ns / 1e9, size, place,
			r->n_samples ? "; next: seam report" : "",
			r->n_samples ? operand : "");
	if (r->was_moved)
		seam_command_say("the folder was moved there during the "
				 "recording");
	if (r->limit)
		seam_command_say("%s ended the recording%s", r->limit,
				 has_command ? "; COMMAND continues" : "");
	print_size(size, sizeof(size), r->counts.n[SEAM_COUNT_AUX_BYTES]);
	if (r->aux_event)	/* perf decodes it */
		seam_command_say("%s of '%s'; next: perf script --itrace=i1us "
				 "-i %s/data", size, r->aux_event, output);
	report_losses(r);
	report_stacks(r);
	report_guest(&r->counts);
	if (r->has_calls)
		report_calls(r, operand);
	for (size_t i = 0; i < SEAM_N_COUNTS; i++)
		if (seam_counts_describe(&r->counts, i, line))
			seam_command_say("%s", line);
}

/*
 * The status of the command if there is one; see command.h.  If a signal ended
 * the recording before the command, as if the signal had ended the command.
 */
static int exit_status(const struct seam_record_options *what,
		       const struct seam_record_result *r)
{
	bool lossy = seam_counts_any_lost(&r->counts) || r->cut_short ||
		     r->skipped || r->has_no_calls;
	int status = SEAM_EXIT_DONE;

	if (what->command && !r->command_ended && !r->stopped_command)
		status = EXIT_SIGNAL + r->signal;
	else if (r->command_ended && !r->stopped_command)
		status = WIFSIGNALED(r->wait_status) ?
			 EXIT_SIGNAL + WTERMSIG(r->wait_status) :
			 WEXITSTATUS(r->wait_status);
	return status == SEAM_EXIT_DONE && lossy ? SEAM_EXIT_LOSSY : status;
}

/*
 * The exit status.  The recording has the command line, to which "seam" is
 * added.
 */
static int record_and_report(struct seam_record_options *what, int argc,
			     char **argv, struct seam_record_result *result)
{
	size_t n = (size_t)argc;
	const char **words = calloc(n + 1, sizeof(*words));
	struct seam_err err = { 0 };
	int r;

	if (words) {
		words[0] = "seam";
		memcpy(words + 1, argv, n * sizeof(*words));
		what->words = words;
		what->n_words = n + 1;
		r = seam_record(what, result, &err);
		free(words);
	} else {
		r = seam_err_no_memory(&err);
	}
	if (result->start_error) {
		seam_command_failed(&err);
		return result->start_error == -ENOENT ? EXIT_NOT_FOUND :
		       EXIT_CANNOT_START;
	}
	if (r < 0) {
		seam_err_add(&err, r, result->cut_short ?
			     "the recording in '%s' was cut short" :
			     "cannot record into '%s'", what->output);
		seam_command_failed(&err);
		if (!result->cut_short)
			return SEAM_EXIT_FAILED;
	}
	summarize(what->output, what->command != NULL, result);
	return exit_status(what, result);
}

int seam_record_run(const struct seam_command *self, int argc, char **argv)
{
	struct seam_record_args args = {
		.record = { .output = "recording.seam", .note = say },
	};
	struct seam_record_result result = { 0 };
	int first, status = seam_command_parse(self, argc, argv, &args, &first);

	if (status)
		return status;
	status = seam_record_args_check(&args, argv + first);
	if (!status)
		status = record_and_report(&args.record, argc, argv, &result);
	seam_record_result_fini(&result);
	free(args.record.pids.items);
	free(args.record.tids.items);
	free(args.record.cpus.items);
	return status;
}

/* ---- 'seam snapshot': request a snapshot from a recorder ---- */

static int run_snapshot(const struct seam_command *self, int argc, char **argv)
{
	char path[PATH_MAX + 16];
	struct seam_err err = { 0 };
	int first, status = seam_command_parse(self, argc, argv, NULL, &first);

	if (status)
		return status;
	if (argc - first > 1)
		return seam_command_misused(self, "one recorder at a time");
	if (seam_snapshot_request(first < argc ? argv[first] : "recording.seam",
				  path, sizeof(path), &err) < 0)
		return seam_command_failed(&err);
	seam_text_put(stdout, path, SEAM_TEXT_TERMINAL);
	putchar('\n');
	return SEAM_EXIT_DONE;
}

const struct seam_command seam_snapshot_command = {
	.name = "snapshot",
	.summary = "request a snapshot from a flight recorder",
	.synopsis = "[PID|NAME.seam]",
	.description =
		"Requests a snapshot from 'seam record' with --overwrite, -S "
		"or --flight-recorder. The recorder is selected by its process "
		"id, by that of a process that it has started, or by its "
		"recording (recording.seam). Waits until the snapshot is "
		"complete and prints its name. The recording continues.",
	.examples =
		"seam snapshot\tof recording.seam in this folder\n"
		"seam report \"$(seam snapshot app.seam)\"\tthe newest "
		"samples\n",
	.run = run_snapshot,
};
