/* SPDX-License-Identifier: MIT */
/* live_waits.c - one state a thread, counted in steps; see live_waits.h */
#include "model/live/live_waits.h"

#include <errno.h>
#include <stdlib.h>

#include "base/array.h"

void seam_live_waits_fini(struct seam_live_waits *w)
{
	free(w->runs.items);
	free(w->times.items);
	free(w->waits.items);
	*w = (struct seam_live_waits) { 0 };
}

static struct seam_live_run *run_of(struct seam_live_waits *w, uint32_t thread)
{
	return SEAM_ARRAY_GROW(&w->runs, (size_t)thread + 1) &&
	       SEAM_ARRAY_GROW(&w->times, w->runs.n) ?
	       &w->runs.items[thread] : NULL;
}

/* Count the state of the thread up to @ns, when it goes on or ends. */
static int count(struct seam_live_waits *w, uint32_t thread, uint64_t ns,
		 bool is_end)
{
	struct seam_live_run *run = &w->runs.items[thread];
	struct seam_thread_time *time = &w->times.items[thread];
	uint64_t spent = ns > run->counted_ns ? ns - run->counted_ns : 0;

	if (run->state == SEAM_LIVE_UNKNOWN || !spent)
		return 0;
	/* a wait that goes on is counted once it is long enough */
	if (run->state != SEAM_LIVE_RUNNING && !is_end &&
	    ns - run->since_ns < w->min_ns)
		return 0;
	run->counted_ns = ns;
	*(run->state == SEAM_LIVE_RUNNING ? &time->running_ns :
	  run->state == SEAM_LIVE_BLOCKED ? &time->blocked_ns :
	  &time->preempted_ns) += spent;
	if (run->state == SEAM_LIVE_RUNNING || ns - run->since_ns < w->min_ns)
		return 0;
	return SEAM_ARRAY_ADD(&w->waits, (struct seam_live_wait) {
			.thread = thread, .to_ns = ns, .ns = spent,
			.is_preempted = run->state == SEAM_LIVE_PREEMPTED,
			.has_stack = run->stack_ns != 0, .stack = run->stack,
		}) ? 0 : -ENOMEM;
}

int seam_live_waits_stack(struct seam_live_waits *w, uint32_t thread,
			  uint64_t stack, uint64_t ns)
{
	struct seam_live_run *run = run_of(w, thread);

	if (!run)
		return -ENOMEM;
	run->stack = stack;
	run->stack_ns = ns;
	return 0;
}

int seam_live_waits_enter(struct seam_live_waits *w, uint32_t thread,
			  enum seam_live_state state, uint64_t ns)
{
	struct seam_live_run *run = run_of(w, thread);
	int r = run ? count(w, thread, ns, true) : -ENOMEM;

	if (r)
		return r;
	/* the stack of a wait comes after the switch before it */
	if (run->stack_ns < run->since_ns || state == SEAM_LIVE_RUNNING)
		run->stack_ns = 0;
	run->state = state;
	run->since_ns = ns;
	if (run->counted_ns < ns)
		run->counted_ns = ns;
	return 0;
}

int seam_live_waits_step(struct seam_live_waits *w, uint64_t ns)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < w->runs.n; i++)
		r = count(w, (uint32_t)i, ns, false);
	return r;
}

void seam_live_waits_next(struct seam_live_waits *w)
{
	w->waits.n = 0;
	if (w->times.n)
		memset(w->times.items, 0, w->times.n * sizeof(*w->times.items));
}
