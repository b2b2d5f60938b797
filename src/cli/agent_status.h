/* SPDX-License-Identifier: MIT */
/*
 * agent_status.h - the state of an agent, as a file of its spool
 *
 * The file, status.json, is replaced as a whole after each window; its schema
 * is seam.agent/1.  'seam agent --status' reads it, and counts what waits.
 */
#pragma once

#include "cli/agent_options.h"
#include "fleet/sender.h"

/*
 * Since the start of the agent, where nothing else is said.  In memory that its
 * processes share: .sender is the sender's, the rest the profiler's.
 */
struct seam_agent_status {
	struct seam_sender_counts sender;
	pid_t pid;			/* that signals go to */
	uint64_t since_ns, now_ns;	/* UTC */
	uint64_t n_windows, n_skipped;	/* for the budget */
	uint64_t hz;			/* now */
	uint64_t n_samples, n_rows, n_batches;
	uint64_t n_lost;		/* samples */
	uint64_t n_dropped;		/* of batches that were dropped */
	/* memory was above its limit: tables, then also stacks were dropped */
	uint64_t n_forgotten, n_renewed;
	double cpus;			/* of one, in the last window */
	uint64_t memory_bytes, max_memory_bytes;
	char error[SEAM_ERR_TEXT];	/* of the agent itself; "": none */
};

/* Replace the file in @folder.  0 or -errno. */
int seam_agent_status_write(int folder, struct seam_agent_status *status,
			    const struct seam_agent_options *options,
			    struct seam_err *err);

/* Print it, as text or JSON.  The exit status: 1 where no agent runs. */
int seam_agent_status_print(const char *folder, bool json);
