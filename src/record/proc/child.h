/* SPDX-License-Identifier: MIT */
/*
 * child.h - a command that waits to be started
 *
 * The process is there, with its pid, before the command runs in it, so that
 * events can be opened for it first.  It starts on a word from us, and never
 * if we die without giving it.  It gets the signal mask, the signal actions
 * and the limits that we were started with.
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
	int go;			/* our end of the pipe it waits at */
	int failure;		/* what exec() failed with comes here */
};

/*
 * Fork.  @argv must outlive the call to seam_child_start(); @mask is the
 * signal mask for the command.
 */
int seam_child_prepare(struct seam_child *child, char **argv,
		       const sigset_t *mask, struct seam_err *err);

/*
 * Let it run.  Returns when the command runs, or with the -errno that its
 * exec() failed with; the process has ended then.
 */
int seam_child_start(struct seam_child *child, const char *name,
		     struct seam_err *err);

/* End one that was never started.  Valid after seam_child_start() too. */
void seam_child_close(struct seam_child *child);

#endif /* SEAM_CHILD_H */
