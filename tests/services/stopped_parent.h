/* SPDX-License-Identifier: MIT */
/*
 * stopped_parent.h - the recorder that has started this program, stopped
 *
 * A child continues it: on request, when this process has ended, however, or
 * after 10 s.
 */
#ifndef STOPPED_PARENT_H
#define STOPPED_PARENT_H

#include <stdbool.h>
#include <sys/types.h>

struct stopped_parent {
	pid_t child;
	int pipe;		/* its end continues the parent */
};

/* Returns when all threads of the parent have stopped.  False: they run. */
bool stop_parent(struct stopped_parent *stopped);
void continue_parent(struct stopped_parent *stopped);

#endif /* STOPPED_PARENT_H */
