/* SPDX-License-Identifier: MIT */
/*
 * main.c - pick a command and run it
 *
 * Standard output or standard error may be a pipe that its reader closes early,
 * a file on a full disk, or closed from the start.  All of that is handled
 * here, so that a command just prints.  If the reader of standard output exits
 * early, SIGPIPE ends the command, as it ends git and perf (141 in a shell).
 * Output that cannot be written makes the exit status 1.  Failed writes to
 * standard error change nothing.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <locale.h>
#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include "base/file.h"
#include "base/guard.h"
#include "base/memory_limit.h"
#include "cli/command.h"
#include "cli/commands/help.h"
#include "cli/pager.h"
#include "record/record.h"
#include "wire/xray/trace_service.h"

const struct seam_command *const seam_commands[] = {
	&seam_record_command,
	&seam_snapshot_command,
	&seam_stat_command,
	&seam_top_command,
	&seam_agent_command,
	&seam_report_command,
	&seam_view_command,
	&seam_calls_command,
	&seam_annotate_command,
	&seam_flamegraph_command,
	&seam_diff_command,
	&seam_convert_command,
	&seam_pack_command,
	&seam_push_command,
	&seam_fleet_command,
	&seam_dump_command,
	&seam_inject_command,
	&seam_doctor_command,
	&seam_help_command,
};
const size_t seam_n_commands = SEAM_ARRAY_SIZE(seam_commands);

const struct seam_command *const seam_programs[] = {
	&seam_parse_sysprof_program,
};
const size_t seam_n_programs = SEAM_ARRAY_SIZE(seam_programs);

/* Whether the reader of a pipe (a pager, head) has closed it. */
static bool has_left(int fd)
{
	struct pollfd p = { .fd = fd };

	return poll(&p, 1, 0) > 0 && p.revents & POLLERR;
}

static void end_by_closed_pipe(void)
{
	sigset_t set;

	signal(SIGPIPE, SIG_DFL);
	sigemptyset(&set);
	sigaddset(&set, SIGPIPE);
	raise(SIGPIPE);
	sigprocmask(SIG_UNBLOCK, &set, NULL);
	_exit(128 + SIGPIPE);	/* not reached */
}

/* Exit if standard output lost its reader, but not for standard error. */
static void on_closed_pipe(int signal)
{
	int code = errno;

	(void)signal;
	if (has_left(STDOUT_FILENO) && seam_pager_runs())
		_exit(seam_pager_left());
	if (has_left(STDOUT_FILENO))
		end_by_closed_pipe();
	errno = code;
}

static void carry_on(int signal)
{
	(void)signal;
}

/*
 * A command that runs a program must outlive a closed pipe.  It gets a handler
 * and not SIG_IGN, which the program would inherit; for the same reason a
 * signal that the caller ignores stays ignored.
 */
static void handle_closed_pipes(bool takes_command)
{
	struct sigaction action = {
		.sa_handler = takes_command ? carry_on : on_closed_pipe,
		.sa_flags = SA_RESTART,
	};
	struct sigaction old;

	if (sigaction(SIGPIPE, NULL, &old) == 0 &&
	    (old.sa_handler != SIG_IGN || !takes_command))
		sigaction(SIGPIPE, &action, NULL);
}

/*
 * If 0, 1 or 2 is closed, the next open() would return it, and messages would
 * be written to that file.  Reading 0 and writing 1 fail as before; a program
 * that is started has them closed.
 */
static void open_closed_files(void)
{
	static const int modes[] = { O_WRONLY, O_RDONLY, O_WRONLY };

	for (int fd = 0; fd < 3; fd++)
		if (fcntl(fd, F_GETFD) < 0)
			open("/dev/null", modes[fd] | O_CLOEXEC);
}

/* Report problems of the whole process.  Returns the new @status. */
static int report_problems(int status)
{
	unsigned int n_cut = seam_guard_tripped();

	if (n_cut)
		fprintf(stderr, "seam: %u file%s shrank or had a read error "
			"while in use: the rest was read as zeros\n",
			n_cut, n_cut == 1 ? "" : "s");
	if (seam_memory_ran_out())
		fprintf(stderr, "seam: out of memory: the limit is %" PRIu64
			" MiB (--max-memory)%s\n", seam_memory_limited() >> 20,
			status == SEAM_EXIT_DONE ?
			"; the output is incomplete" : "");
	return status == SEAM_EXIT_DONE && (n_cut || seam_memory_ran_out()) ?
	       SEAM_EXIT_LOSSY : status;
}

/* Flush standard output.  Returns @status, or 1 when that fails. */
static int finish(int status)
{
	bool failed;
	int failed_code;

	errno = 0;
	failed = fflush(stdout) != 0 || ferror(stdout);
	if (failed && (errno == EPIPE || has_left(STDOUT_FILENO))) {
		if (seam_pager_runs())
			return seam_pager_left();
		end_by_closed_pipe();
	}
	failed_code = errno;
	seam_pager_finish();
	errno = failed_code;
	if (!failed)
		return status;
	fprintf(stderr, "seam: cannot write standard output: %s\n",
		errno ? strerror(errno) : "write error");
	return SEAM_EXIT_FAILED;
}

static int run_command(const struct seam_command *command, int argc,
		       char **argv)
{
	int status = command->run(command, argc, argv);

	if (status != SEAM_EXIT_HELP)
		return status;
	seam_pager_start(SEAM_EXIT_DONE);
	seam_help_print(stdout, command);
	return SEAM_EXIT_DONE;
}

static int run(int argc, char **argv)
{
	const struct seam_command *program = argc < 1 ? NULL :
					     seam_command_find_program(argv[0]);
	const struct seam_command *command = argc < 2 ? NULL :
					     seam_command_find(argv[1]);

	if (argc >= 2 &&
	    strcmp(seam_file_name(argv[0]), SEAM_TRACE_RECORDER) == 0)
		return seam_program_recorder_run(SEAM_TRACE_RECORDER_FD,
						 argv[1], argv[2]) ?
		       SEAM_EXIT_FAILED : SEAM_EXIT_DONE;
	if (program) {
		handle_closed_pipes(false);
		return run_command(program, argc, argv);
	}
	handle_closed_pipes(command && command->takes_command);
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
	if (!command)
		return seam_command_unknown(argv[1]);
	return run_command(command, argc - 1, argv + 1);
}

int main(int argc, char **argv)
{
	open_closed_files();
	setlocale(LC_CTYPE, "");
	seam_guard_install();
	return finish(report_problems(run(argc, argv)));
}
