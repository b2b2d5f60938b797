/* SPDX-License-Identifier: MIT */
/*
 * agent_profiler.h - samples into batches, window by window, into the spool
 *
 * The process of 'seam agent' that samples.  It has the rights to, and knows
 * nothing of the store: batches are files of the spool.
 */
#pragma once

#include "cli/agent_status.h"

#include <signal.h>

struct seam_agent_profiler_options {
	struct seam_agent_options *options;	/* of the start */
	/* Reads them again on SIGHUP: 0, or not 0 after a message. */
	int (*reload)(void *context, struct seam_agent_options *options);
	void *context;
	struct seam_agent_status *status;	/* shared */
	int wakeups;			/* a byte for each new file */
	pid_t root;			/* of Seam's processes */
	const sigset_t *mask;		/* of signals, before any was blocked */
};

/*
 * Sample until SIGTERM, SIGINT or the end of what is sampled; the last window
 * is in the spool then.  SIGHUP reads the options again.  These signals are
 * blocked when it is called.  Returns the exit status, as that of 'seam
 * record'; 0 after a signal.
 */
int seam_agent_profiler_run(const struct seam_agent_profiler_options *options);
