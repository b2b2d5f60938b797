/* SPDX-License-Identifier: MIT */
/*
 * child.h - fork a process, and exec the command in it later
 *
 * The process exists before the command runs in it, so that events can be
 * opened for its pid first.  It calls exec() when it reads a byte from a pipe,
 * and exits if the pipe is closed.  It has the signal mask, the signal actions
 * and the limits that the recorder was started with.
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
	int go;			/* pipe: a byte makes it call exec() */
	int failure;		/* pipe: the errno of exec(), if it fails */
};

/*
 * Fork.  @argv must outlive the call to seam_child_start(); @mask is the
 * signal mask for the command.
 */
int seam_child_prepare(struct seam_child *child, char **argv,
		       const sigset_t *mask, struct seam_err *err);

/* Start the command.  Returns 0 when it runs, or the -errno of exec(). */
int seam_child_start(struct seam_child *child, const char *name,
		     struct seam_err *err);

/* Close the pipes, and reap the process if it has ended or never started. */
void seam_child_close(struct seam_child *child);

#endif /* SEAM_CHILD_H */
