/* SPDX-License-Identifier: MIT */
/* switches.c - one state a thread, one pass over all records; see switches.h */
#include "model/perf/switches.h"

#include <errno.h>
#include <stdlib.h>

#include "base/radix_sort.h"

enum run_state {
	NOT_KNOWN,	/* no record yet */
	RUNNING,
	BLOCKED,
	PREEMPTED,
	ENDED,
};

struct thread_run {
	uint64_t since_ns;	/* begin of the state */
	uint64_t ran_ns;	/* the last "in"; 0: none */
	uint16_t cpu;		/* of the "out" */
	uint8_t state;		/* enum run_state */
	bool is_broken;		/* a record that ends the state is missing */
	bool is_cut;		/* its begin is that of the recording */
};

struct lost_span {
	uint64_t from_ns, to_ns;
};

struct switch_replay {
	struct seam_profile *profile;
	struct seam_waits *waits;
	struct thread_run *runs;	/* by thread */
	SEAM_ARRAY(struct lost_span) lost;	/* disjoint, ascending */
	uint64_t begin_ns, end_ns;
	uint32_t n_running;
	int error;
};

/* -- lost records ------------------------------------------------------- */

static int earlier_span(const void *a, const void *b)
{
	const struct lost_span *x = a, *y = b;

	return SEAM_COMPARE(x->from_ns, y->from_ns);
}

/* The spans of all rings, overlapping ones joined. */
static void join_spans(struct switch_replay *r)
{
	size_t kept = 0;

	SEAM_ARRAY_SORT(&r->lost, earlier_span);
	for (size_t i = 0; i < r->lost.n; i++) {
		struct lost_span *last = kept ? &r->lost.items[kept - 1] : NULL;
		const struct lost_span *span = &r->lost.items[i];

		if (!last || span->from_ns > last->to_ns)
			r->lost.items[kept++] = *span;
		else if (span->to_ns > last->to_ns)
			last->to_ns = span->to_ns;
	}
	r->lost.n = kept;
}

/* From the last record of a ring to the next that found room. */
static int find_lost(struct switch_replay *r,
		     const struct seam_switches *switches)
{
	uint64_t *last = calloc(UINT16_MAX + 1, sizeof(*last));

	if (!last)
		return -ENOMEM;
	for (size_t i = 0; i < switches->items.n; i++) {
		const struct seam_switch *s = &switches->items.items[i];

		if (s->kind == SEAM_SWITCH_LOST &&
		    !SEAM_ARRAY_ADD(&r->lost, (struct lost_span) {
				last[s->cpu] ? last[s->cpu] : r->begin_ns,
				s->time_ns }))
			r->error = -ENOMEM;
		if (s->kind < SEAM_SWITCH_EXIT || s->kind == SEAM_SWITCH_LOST)
			last[s->cpu] = s->time_ns;
	}
	free(last);
	join_spans(r);
	return r->error;
}

static bool has_lost(const struct switch_replay *r, uint64_t from_ns,
		     uint64_t to_ns)
{
	size_t i = SEAM_ARRAY_SEARCH(k, r->lost.n,
				     r->lost.items[k].to_ns <= from_ns);

	return i < r->lost.n && r->lost.items[i].from_ns < to_ns;
}

/* -- one thread --------------------------------------------------------- */

/* The state of thread @t ends at @to_ns: count its time, or add the wait. */
static void close_state(struct switch_replay *r, uint32_t t, uint64_t to_ns,
			bool is_open)
{
	struct seam_thread_time *time = &r->profile->thread_times.items[t];
	struct thread_run *run = &r->runs[t];
	uint64_t ns = to_ns > run->since_ns ? to_ns - run->since_ns : 0;
	bool is_known = !run->is_broken && !has_lost(r, run->since_ns, to_ns);

	*(!is_known ? &time->unknown_ns :
	  run->state == RUNNING ? &time->running_ns :
	  run->state == BLOCKED ? &time->blocked_ns :
	  &time->preempted_ns) += ns;
	if (!is_known || run->state == RUNNING)
		return;
	if (!SEAM_ARRAY_ADD(&r->waits->items, (struct seam_wait) {
			.from_ns = run->since_ns,
			.to_ns = run->since_ns + ns, .ran_ns = run->ran_ns,
			.thread = t, .cpu = run->cpu,
			.is_preempted = run->state == PREEMPTED,
			.is_open = is_open || run->is_cut }))
		r->error = -ENOMEM;
}

static void enter(struct switch_replay *r, uint32_t t,
		  const struct seam_switch *s, enum run_state state)
{
	struct thread_run *run = &r->runs[t];

	r->n_running += state == RUNNING;
	r->n_running -= run->state == RUNNING;
	run->state = (uint8_t)state;
	run->since_ns = s->time_ns;
	run->cpu = s->cpu;
	run->is_broken = run->is_cut = false;
	if (state == RUNNING)
		run->ran_ns = s->time_ns;
}

/* A thread that was blocked before the recording began. */
static void see_blocked(struct switch_replay *r, const struct seam_switch *s)
{
	struct thread_run *run = &r->runs[s->thread];

	if (run->state != NOT_KNOWN)
		return;
	run->state = BLOCKED;
	run->cpu = UINT16_MAX;
	run->is_cut = true;
}

static void see(struct switch_replay *r, const struct seam_switch *s)
{
	uint32_t t = s->thread;
	struct thread_run *run = &r->runs[t];
	bool is_off = run->state == BLOCKED || run->state == PREEMPTED;
	bool is_out = s->kind == SEAM_SWITCH_OUT ||
		      s->kind == SEAM_SWITCH_OUT_RUNNABLE;

	if (run->state == ENDED)
		return;
	if (s->kind == SEAM_SWITCH_SEEN) {
		see_blocked(r, s);
		return;
	}
	/* an "in" is missing: wait for the next one */
	if (is_off && is_out) {
		run->is_broken = true;
		return;
	}
	/* an "out" is missing */
	if (run->state == RUNNING && s->kind == SEAM_SWITCH_IN)
		run->is_broken = true;
	if (run->state != NOT_KNOWN)
		close_state(r, t, s->time_ns, false);
	enter(r, t, s, s->kind == SEAM_SWITCH_IN ? RUNNING :
	      s->kind == SEAM_SWITCH_OUT ? BLOCKED :
	      s->kind == SEAM_SWITCH_OUT_RUNNABLE ? PREEMPTED : ENDED);
}

/* -- all ---------------------------------------------------------------- */

static int add_exits(struct seam_switches *switches,
		     const struct seam_profile *profile)
{
	for (uint32_t i = 0; i < profile->threads.n; i++) {
		uint64_t end_ns = profile->threads.items[i].end_ns;

		if (end_ns != UINT64_MAX &&
		    !SEAM_ARRAY_ADD(&switches->items, (struct seam_switch) {
				.time_ns = end_ns, .thread = i,
				.kind = SEAM_SWITCH_EXIT }))
			return -ENOMEM;
	}
	return 0;
}

/* Threads that ran already, as their first record shows. */
static void begin_running(struct switch_replay *r,
			  const struct seam_switches *s)
{
	const struct seam_thread *threads = r->profile->threads.items;

	for (size_t i = s->items.n; i-- > 0;) {
		const struct seam_switch *first = &s->items.items[i];

		if (first->kind != SEAM_SWITCH_LOST)
			r->runs[first->thread].state =
				first->kind == SEAM_SWITCH_OUT ||
				first->kind == SEAM_SWITCH_OUT_RUNNABLE ?
				RUNNING : NOT_KNOWN;
	}
	for (size_t i = 0; i < r->profile->threads.n; i++) {
		r->runs[i].since_ns = threads[i].start_ns > r->begin_ns ?
				      threads[i].start_ns : r->begin_ns;
		r->n_running += r->runs[i].state == RUNNING;
	}
}

static void replay(struct switch_replay *r, struct seam_switches *switches)
{
	for (size_t i = 0; i < switches->items.n && !r->error; i++) {
		struct seam_switch *s = &switches->items.items[i];

		if (s->kind != SEAM_SWITCH_LOST)
			see(r, s);
		s->n_running = r->n_running < UINT16_MAX ?
			       (uint16_t)r->n_running : UINT16_MAX;
	}
	for (uint32_t t = 0; t < r->profile->threads.n && !r->error; t++)
		if (r->runs[t].state != NOT_KNOWN && r->runs[t].state != ENDED)
			close_state(r, t, r->end_ns, true);
}

int seam_switches_replay(struct seam_switches *switches,
			 struct seam_profile *profile, uint64_t begin_ns,
			 uint64_t end_ns, struct seam_waits *waits)
{
	struct switch_replay r = {
		.profile = profile, .waits = waits, .begin_ns = begin_ns,
		.end_ns = end_ns,
		.runs = calloc(profile->threads.n + 1, sizeof(*r.runs)),
	};
	size_t n = profile->threads.n;

	r.error = r.runs && SEAM_ARRAY_RESERVE(&profile->thread_times, n) ?
		  add_exits(switches, profile) : -ENOMEM;
	if (!r.error)
		r.error = SEAM_RADIX_SORT(&switches->items, time_ns);
	if (!r.error) {
		profile->thread_times.n = n;
		memset(profile->thread_times.items, 0,
		       n * sizeof(*profile->thread_times.items));
		r.error = find_lost(&r, switches);
	}
	if (!r.error) {
		begin_running(&r, switches);
		replay(&r, switches);
	}
	free(r.runs);
	free(r.lost.items);
	return r.error;
}

uint16_t seam_switches_running(const struct seam_switches *switches,
			       uint64_t time_ns)
{
	const struct seam_switch *items = switches->items.items;
	size_t i = SEAM_ARRAY_SEARCH(k, switches->items.n,
				     items[k].time_ns <= time_ns);

	return i ? items[i - 1].n_running : 0;
}
