/* SPDX-License-Identifier: MIT */
/* signal_setup.c - install and remove the handler; see signal_setup.h */
#include "target/sysprof/signal_setup.h"

#include <errno.h>

static bool is_ours(const struct sigaction *action)
{
	return action->sa_flags & SA_SIGINFO &&
	       action->sa_sigaction == seam_sysprof_on_signal;
}

int seam_sysprof_signal_install(struct seam_sysprof_run *run)
{
	struct sigaction now, action = {
		.sa_sigaction = seam_sysprof_on_signal,
		.sa_flags = SA_SIGINFO | SA_RESTART | SA_ONSTACK,
	};

	if (sigaction(SEAM_SYSPROF_SIGNAL, NULL, &now) < 0)
		return -errno;
	if (is_ours(&now))
		return 0;
	/* the program's handler runs with the signals blocked that it named */
	action.sa_mask = now.sa_mask;
	run->before = now;
	return sigaction(SEAM_SYSPROF_SIGNAL, &action, NULL) < 0 ? -errno : 0;
}

void seam_sysprof_signal_remove(struct seam_sysprof_run *run)
{
	struct sigaction now;
	sigset_t blocked;

	if (pthread_sigmask(SIG_SETMASK, NULL, &blocked) ||
	    sigismember(&blocked, SEAM_SYSPROF_SIGNAL) ||
	    sigaction(SEAM_SYSPROF_SIGNAL, NULL, &now) < 0 || !is_ours(&now))
		return;
	sigaction(SEAM_SYSPROF_SIGNAL, &run->before, NULL);
}
