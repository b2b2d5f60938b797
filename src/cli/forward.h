/* SPDX-License-Identifier: MIT */
/*
 * forward.h - signals for a command that waits for a process of its own
 *
 * Between begin and end, SIGINT, SIGTERM, SIGHUP and SIGQUIT no longer kill:
 * they are remembered, and sent on to the process of seam_forward_fork() while
 * it runs; those of the terminal's keys are not, as it has them already.  A
 * signal that was ignored stays ignored.  One process at a time, in one thread.
 */
#pragma once

#include <sys/types.h>

void seam_forward_begin(void);

/*
 * fork(), whose child has the signals as before seam_forward_begin().  -1 with
 * EINTR after a signal: nothing more is to be started.
 */
pid_t seam_forward_fork(void);

/* waitpid() for that process: 0 or -errno. */
int seam_forward_wait(int *status);

/* The last signal, or 0. */
int seam_forward_signal(void);

/* As before seam_forward_begin(); without one, nothing. */
void seam_forward_end(void);
