/* SPDX-License-Identifier: MIT */
/*
 * child.h - fork a process, and exec the command in it later
 *
 * The process exists before the command runs in it, so that events can be
 * opened for its pid first.  It calls exec() when it reads a byte from a
 * socket, and exits if that is closed.  It has the signal mask, the signal
 * actions and the limits that the recorder was started with.
 */
#ifndef SEAM_CHILD_H
#define SEAM_CHILD_H

#include "base/err.h"

#include <signal.h>
#include <stdbool.h>
#include <sys/types.h>

struct seam_child {
	pid_t pid;		/* 0: none */
	bool started;
	int socket;		/* to exec(): a byte; back, if it fails: errno */
};

/*
 * Fork, before there are threads.  @argv must outlive the call to
 * seam_child_start(); @mask is the signal mask for the command;
 * @set_environment is called in the new process, which exec() follows.
 */
int seam_child_prepare(struct seam_child *child, char **argv,
		       const sigset_t *mask,
		       void (*set_environment)(void *context), void *context,
		       struct seam_err *err);

/* Start the command.  Returns 0 when it runs, or the -errno of exec(). */
int seam_child_start(struct seam_child *child, const char *name,
		     struct seam_err *err);

/* Close the socket, and reap the process if it has ended or never started. */
void seam_child_close(struct seam_child *child);

#endif /* SEAM_CHILD_H */
