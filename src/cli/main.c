/* SPDX-License-Identifier: MIT */
/*
 * main.c - pick a command and run it
 *
 * Standard output may be a pipe whose reader leaves early, or a file on a
 * full disk.  The first is no error, the second always is; both are settled
 * here, so that a command just prints.
 */
#include <errno.h>
#include <locale.h>
#include <signal.h>
#include <unistd.h>

#include "cli/command.h"
#include "cli/help.h"
#include "cli/pager.h"

const struct seam_command *const seam_commands[] = {
	&seam_record_command,
	&seam_snapshot_command,
	&seam_report_command,
	&seam_calls_command,
	&seam_annotate_command,
	&seam_flamegraph_command,
	&seam_convert_command,
	&seam_dump_command,
	&seam_inject_command,
	&seam_doctor_command,
	&seam_help_command,
};
const size_t seam_n_commands = SEAM_ARRAY_SIZE(seam_commands);

/* The reader of our output (a pager, head) has seen enough. */
static void leave_quietly(int signal)
{
	(void)signal;
	_exit(seam_pager_left());
}

static void carry_on(int signal)
{
	(void)signal;
}

/*
 * A handler and not SIG_IGN, because the program that 'record' starts would
 * inherit that; and what our caller ignores stays ignored for the same
 * reason.  A command that runs a program must outlive a closed pipe.
 */
static void settle_closed_pipes(const struct seam_command *command)
{
	struct sigaction action = {
		.sa_handler = command->takes_command ? carry_on : leave_quietly,
		.sa_flags = SA_RESTART,
	};
	struct sigaction old;

	if (sigaction(SIGPIPE, NULL, &old) == 0 && old.sa_handler == SIG_DFL)
		sigaction(SIGPIPE, &action, NULL);
}

/* What was printed has to arrive: @status, or 1 when it did not. */
static int finish(int status)
{
	bool failed;

	errno = 0;
	failed = fflush(stdout) != 0 || ferror(stdout);
	failed &= errno != EPIPE;
	seam_pager_finish();
	if (!failed)
		return status;
	fprintf(stderr, "seam: cannot write standard output: %s\n",
		errno ? strerror(errno) : "write error");
	return SEAM_EXIT_FAILED;
}

static int run(int argc, char **argv)
{
	const struct seam_command *command;

	if (argc < 2) {
		seam_help_overview(stderr);
		return SEAM_EXIT_USAGE;
	}
	if (strcmp(argv[1], "--version") == 0) {
		printf("seam " SEAM_VERSION "\n");
		return SEAM_EXIT_DONE;
	}
	if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0) {
		seam_help_overview(stdout);
		return SEAM_EXIT_DONE;
	}
	command = seam_command_find(argv[1]);
	if (!command)
		return seam_command_unknown(argv[1]);
	settle_closed_pipes(command);
	return command->run(command, argc - 1, argv + 1);
}

int main(int argc, char **argv)
{
	setlocale(LC_CTYPE, "");
	return finish(run(argc, argv));
}
