/* SPDX-License-Identifier: MIT */
/* handler.h - what runs in handlers, among itself */
#ifndef SEAM_AGENT_HANDLER_H
#define SEAM_AGENT_HANDLER_H

#include "traced/agent/agent.h"

/* The start of a record.  Source: perf_event_open(2), PERF_RECORD_SAMPLE. */
struct seam_agent_fixed {
	uint64_t id, ip;
	uint32_t pid, tid;
	uint64_t time_ns;
	uint32_t cpu, reserved;
	uint64_t period;
};

/* Count @n ticks without a sample of their own. */
void seam_agent_skip(struct seam_agent_thread *thread,
		     enum seam_agent_skip why, uint64_t n);

/* Write the names of functions that @thread's sample has for the first time. */
void seam_agent_announce(struct seam_agent_thread *thread);

#endif /* SEAM_AGENT_HANDLER_H */
