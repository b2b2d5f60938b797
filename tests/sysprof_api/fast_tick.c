/* SPDX-License-Identifier: MIT */
/* fast_tick.c - ten ticks for one: 10 kHz at the shortest interval */
#include "traced/sampler/tick.h"

int __real_seam_tick_start(struct seam_tick *tick, int32_t tid, int signal,
			   uint64_t period_ns);
int __wrap_seam_tick_start(struct seam_tick *tick, int32_t tid, int signal,
			   uint64_t period_ns);

int __wrap_seam_tick_start(struct seam_tick *tick, int32_t tid, int signal,
			   uint64_t period_ns)
{
	return __real_seam_tick_start(tick, tid, signal, period_ns / 10);
}
