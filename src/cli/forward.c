/* SPDX-License-Identifier: MIT */
/* forward.c - handlers that send signals on; see forward.h */
#include "cli/forward.h"

#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/base.h"

static const int forwarded[] = { SIGINT, SIGTERM, SIGHUP, SIGQUIT };
enum { N_FORWARDED = SEAM_ARRAY_SIZE(forwarded) };

static struct sigaction before[N_FORWARDED];
static bool is_taken;
static volatile pid_t running;
static volatile sig_atomic_t received;

static void forward(int number, siginfo_t *info, void *context)
{
	int code = errno;

	(void)context;
	received = number;
	/* the terminal has sent its signals to the process too */
	if (running > 0 && info->si_code != SI_KERNEL)
		kill(running, number);
	errno = code;
}

void seam_forward_begin(void)
{
	struct sigaction action = {
		.sa_sigaction = forward, .sa_flags = SA_SIGINFO | SA_RESTART,
	};

	received = 0;
	is_taken = true;
	for (size_t i = 0; i < N_FORWARDED; i++) {
		sigaction(forwarded[i], NULL, &before[i]);
		if (before[i].sa_handler != SIG_IGN)
			sigaction(forwarded[i], &action, NULL);
	}
}

void seam_forward_end(void)
{
	for (size_t i = 0; i < N_FORWARDED && is_taken; i++)
		sigaction(forwarded[i], &before[i], NULL);
	is_taken = false;
}

/* Blocked, so that no signal comes while the child's id is not known. */
pid_t seam_forward_fork(void)
{
	sigset_t set, old;

	sigemptyset(&set);
	for (size_t i = 0; i < N_FORWARDED; i++)
		sigaddset(&set, forwarded[i]);
	sigprocmask(SIG_BLOCK, &set, &old);
	errno = EINTR;
	running = received ? -1 : fork();
	if (running == 0)
		seam_forward_end();
	sigprocmask(SIG_SETMASK, &old, NULL);
	return running;
}

int seam_forward_wait(int *status)
{
	int r;

	do
		r = waitpid(running, status, 0) < 0 ? -errno : 0;
	while (r == -EINTR);
	running = 0;
	return r;
}

int seam_forward_signal(void)
{
	return received;
}
