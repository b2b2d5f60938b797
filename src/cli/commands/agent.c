/* SPDX-License-Identifier: MIT */
/*
 * agent.c - 'seam agent': a host's samples, all the time, into a store
 *
 * Three processes.  This one waits for the others and for signals.  The
 * profiler (cli/agent_profiler.h) has the rights to sample, and writes batches
 * to the spool.  The sender (fleet/sender.h) has the credentials of the store,
 * and empties the spool; another one is started if it is killed.
 */
#include "cli/agent_profiler.h"
#include "cli/command.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "fleet/otlp.h"

enum {
	RESTART_S = 1,
	/* To send what is left at the end. */
	LAST_SENDING_S = 10,
};

struct agent {
	const struct seam_command *self;
	int argc;
	char **argv;
	struct seam_agent_options options;
	struct seam_agent_status *shared;	/* by all three */
	int wakeups[2];
	pid_t root, profiler, sender;	/* 0: there is none */
	uint64_t restart_ns;		/* of the sender */
	sigset_t signals, old;
	int status;			/* of the profiler */
};

/* ---- the processes ---- */

/* The password is the sender's alone. */
static void forget_credentials(void)
{
	static const char *const names[] = {
		"SEAM_FLEET_USER", "SEAM_FLEET_PASSWORD", SEAM_OTLP_HEADERS,
	};

	for (size_t i = 0; i < SEAM_ARRAY_SIZE(names); i++) {
		char *value = getenv(names[i]);

		if (value)
			explicit_bzero(value, strlen(value));
		unsetenv(names[i]);
	}
}

static int reload(void *context, struct seam_agent_options *options)
{
	const struct agent *a = context;

	return seam_agent_options_read(options, a->self, a->argc, a->argv);
}

/* Does not return. */
static void profile(struct agent *a)
{
	const struct seam_agent_profiler_options options = {
		.options = &a->options, .reload = reload, .context = a,
		.status = a->shared, .wakeups = a->wakeups[1],
		.root = a->root, .mask = &a->old,
	};

	prctl(PR_SET_PDEATHSIG, SIGTERM);
	forget_credentials();
	close(a->wakeups[0]);
	fcntl(a->wakeups[1], F_SETFL, O_NONBLOCK);
	exit(seam_agent_profiler_run(&options));
}

/* Does not return. */
static void send_batches(struct agent *a)
{
	const struct seam_sender sender = {
		.place = a->options.place, .spool = a->options.folder,
		.wakeups = a->wakeups[0], .counts = &a->shared->sender,
		.mask = &a->old,
	};
	struct seam_err err = { 0 };

	close(a->wakeups[1]);
	seam_sender_drop_rights();
	signal(SIGINT, SIG_IGN);
	signal(SIGHUP, SIG_IGN);
	signal(SIGPIPE, SIG_IGN);
	if (seam_sender_run(&sender, &err) < 0)
		exit(seam_command_failed(&err));
	exit(0);
}

/* 0 or -errno. */
static int start(struct agent *a, pid_t *pid, void (*work)(struct agent *a))
{
	pid_t child = fork();

	if (child < 0)
		return -errno;
	if (child == 0)
		work(a);
	*pid = child;
	return 0;
}

/* ---- what happens ---- */

static void reap(struct agent *a)
{
	int status;
	pid_t pid;

	while ((pid = waitpid(-1, &status, WNOHANG)) > 0) {
		if (pid == a->profiler) {
			a->profiler = 0;
			a->status = WIFEXITED(status) ? WEXITSTATUS(status) :
				    SEAM_EXIT_FAILED;
			if (WIFSIGNALED(status))
				seam_command_say("the profiler was killed by "
						 "signal %d", WTERMSIG(status));
		} else if (pid == a->sender) {
			a->sender = 0;
			a->restart_ns = seam_clock_ns() +
					RESTART_S * SEAM_NS_PER_S;
		}
	}
}

/* The store may be another one; the profiler reads the rest itself. */
static void read_again(struct agent *a)
{
	struct seam_agent_options next;

	if (reload(a, &next)) {
		seam_command_say("the options are as before");
		seam_agent_options_fini(&next);
		return;
	}
	/* what is sampled stays, and points into the old words */
	next.record = a->options.record;
	a->options = next;
	if (a->profiler)
		kill(a->profiler, SIGHUP);
	if (a->sender)
		kill(a->sender, SIGTERM);
}

/* Wait for signals until @until_ns; UINT64_MAX: the next one. */
static int next_signal(const struct agent *a, uint64_t until_ns)
{
	uint64_t now_ns = seam_clock_ns();
	uint64_t left_ns = until_ns > now_ns ? until_ns - now_ns : 0;
	struct timespec timeout = {
		(time_t)(left_ns / SEAM_NS_PER_S),
		(long)(left_ns % SEAM_NS_PER_S),
	};

	return until_ns == UINT64_MAX ? sigwaitinfo(&a->signals, NULL) :
	       sigtimedwait(&a->signals, NULL, &timeout);
}

/* Until the profiler has ended. */
static void supervise(struct agent *a)
{
	while (a->profiler) {
		bool is_missing = !a->sender;
		int signal;

		if (is_missing && seam_clock_ns() >= a->restart_ns &&
		    start(a, &a->sender, send_batches) < 0)
			a->restart_ns = seam_clock_ns() +
					RESTART_S * SEAM_NS_PER_S;
		signal = next_signal(a, a->sender ? UINT64_MAX :
				     a->restart_ns);
		if (signal == SIGCHLD)
			reap(a);
		else if (signal == SIGHUP)
			read_again(a);
		else if (signal > 0)
			kill(a->profiler, SIGTERM);
	}
}

/* The sender ends by itself once nothing is left, or a try has failed. */
static void send_rest(struct agent *a)
{
	uint64_t end_ns = seam_clock_ns() + LAST_SENDING_S * SEAM_NS_PER_S;
	int folder;

	if (!a->sender)
		start(a, &a->sender, send_batches);
	close(a->wakeups[1]);
	while (a->sender && seam_clock_ns() < end_ns)
		if (next_signal(a, end_ns) == SIGCHLD)
			reap(a);
	/* what it was sending stays in the spool */
	if (a->sender) {
		kill(a->sender, SIGKILL);
		waitpid(a->sender, NULL, 0);
	}
	/* with what it has sent since the last window */
	folder = a->shared->pid ? seam_spool_folder(a->options.folder, NULL) :
				  -1;
	if (folder >= 0)
		seam_agent_status_write(folder, a->shared, &a->options, NULL);
	seam_file_close_fd(folder);
}

/* ---- the command ---- */

static int prepare(struct agent *a)
{
	a->root = getpid();
	a->shared = mmap(NULL, sizeof(*a->shared), PROT_READ | PROT_WRITE,
			 MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (a->shared == MAP_FAILED || pipe2(a->wakeups, O_CLOEXEC) < 0)
		return -errno;
	sigemptyset(&a->signals);
	sigaddset(&a->signals, SIGCHLD);
	sigaddset(&a->signals, SIGHUP);
	sigaddset(&a->signals, SIGTERM);
	sigaddset(&a->signals, SIGINT);
	sigprocmask(SIG_BLOCK, &a->signals, &a->old);
	return start(a, &a->sender, send_batches) ?:
	       start(a, &a->profiler, profile);
}

static int run_agent(const struct seam_command *self, int argc, char **argv)
{
	struct agent a = { .self = self, .argc = argc, .argv = argv };
	struct seam_err err = { 0 };
	int status = seam_agent_options_read(&a.options, self, argc, argv);
	int r;

	if (status)
		goto out;
	if (a.options.status) {
		status = seam_agent_status_print(a.options.folder,
						 a.options.json);
		goto out;
	}
	r = prepare(&a);
	if (r < 0) {
		seam_err_set(&err, r, "cannot start the agent: %s",
			     strerror(-r));
		status = seam_command_failed(&err);
		goto out;
	}
	supervise(&a);
	send_rest(&a);
	status = a.status;
out:
	seam_agent_options_fini(&a.options);
	return status;
}

const struct seam_command seam_agent_command = {
	.name = "agent",
	.summary = "profile a host or a service all the time",
	.synopsis = "[options] [--] [COMMAND [ARG...]]",
	.description =
		"Samples the system (-a), processes or COMMAND at a low rate "
		"for as long as they run, adds the samples of ten seconds up "
		"by stack, and sends them to a store: a folder, or ClickHouse. "
		"'seam fleet' shows what is there.\n\n"
		"Batches wait in a spool until the store has them, also over "
		"restarts; each is stored once. Where the spool is full the "
		"oldest are dropped, and the number of their samples is sent "
		"as lost.\n\n"
		"Stacks are complete, as those of 'seam top', whose names of "
		"JIT code it has too. Programs are not changed. Seam's own "
		"processes are left out.\n\n"
		"SIGHUP reads the options again, SIGTERM sends the rest and "
		"ends with 0; without a signal the exit status is that of "
		"COMMAND. A stepped clock counts from the next window on.",
	.limits =
		"In memory, for a second: 65536 distinct callchains, 1,048,576 "
		"nodes of stacks, 262,144 threads; samples beyond are counted "
		"as a function [other]. One file of names may exceed "
		"--max-memory for a moment. --max-cpu does not change "
		"--off-cpu-min. The rate of children that were forked before "
		"--max-cpu lowers it stays as it was, except with -a.",
	.examples =
		"seam agent -a --service shop --to /var/lib/profiles\t"
		"the machine, into a folder\n"
		"seam agent -p 4711 --service db --label version=15 --to "
		"https://ch:8443\ta process, into ClickHouse\n"
		"seam agent --status\tdoes it send?\n",
	.options = seam_agent_option_table,
	.n_options = SEAM_AGENT_N_OPTIONS,
	.takes_command = true,
	.run = run_agent,
};
