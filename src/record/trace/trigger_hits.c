/* SPDX-License-Identifier: MIT */
/* trigger_hits.c - wait, take, resume; see trigger_hits.h */
#include "record/trace/trigger_hits.h"

#include <stdlib.h>

#include "base/clock.h"

static bool is_over(const struct seam_trigger_hits *hits)
{
	return hits->n_snapshots >= hits->max_snapshots ||
	       hits->n_failed >= hits->max_snapshots;
}

/* The first waiting hit of process @pid; NULL: none. */
static const struct seam_trigger_hit *
waiting_of(const struct seam_trigger_hits *hits, uint32_t pid)
{
	for (size_t i = 0; i < hits->waiting.n; i++)
		if (hits->waiting.items[i].pid == pid)
			return &hits->waiting.items[i];
	return NULL;
}

static struct seam_trigger_resumed *resumed_of(struct seam_trigger_hits *hits,
					       uint32_t pid)
{
	for (size_t i = 0; i < hits->resumed.n; i++)
		if (hits->resumed.items[i].pid == pid)
			return &hits->resumed.items[i];
	return NULL;
}

/* The last number of process @pid that is taken; 0: none. */
static uint32_t last_number(const struct seam_trigger_hits *hits, uint32_t pid)
{
	uint32_t number = 0;

	for (size_t i = 0; i < hits->taken.n; i++)
		if (hits->taken.items[i].pid == pid &&
		    hits->taken.items[i].met.number > number)
			number = hits->taken.items[i].met.number;
	return number;
}

/* Into the snapshot that is being made, which is of that process too. */
static bool take_too(struct seam_trigger_hits *hits,
		     const struct seam_trigger_hit *hit)
{
	return last_number(hits, hit->pid) &&
	       hits->taken.n < SEAM_TRIGGER_MAX_HITS &&
	       SEAM_ARRAY_ADD(&hits->taken, *hit);
}

static bool add(struct seam_trigger_hits *hits,
		const struct seam_trigger_hit *hit)
{
	const struct seam_trigger_resumed *last = resumed_of(hits, hit->pid);

	if (is_over(hits))
		return false;
	if (!last || hit->met.tsc > last->tsc)
		return hits->waiting.n < SEAM_TRIGGER_MAX_HITS &&
		       SEAM_ARRAY_ADD(&hits->waiting, *hit);
	/* from before its process was resumed, and sent later */
	if (!take_too(hits, hit))
		return false;
	hits->resume(hits->context, hit->pid, hit->met.number);
	return true;
}

void seam_trigger_hits_add(struct seam_trigger_hits *hits, uint32_t pid,
			   const struct seam_xray_trigger *trigger)
{
	const struct seam_trigger_hit hit = {
		*trigger, pid, seam_clock_ns() + hits->after_ns,
	};

	if (trigger->trigger >= hits->n_triggers)
		return;
	hits->counts[trigger->trigger].n_hits++;
	if (add(hits, &hit))
		return;
	/* there is no snapshot for this: its program must not wait for one */
	hits->n_beyond++;
	if (is_over(hits))
		hits->resume(hits->context, pid, SEAM_TRIGGER_NO_MORE);
	else if (!waiting_of(hits, pid))
		hits->resume(hits->context, pid, trigger->number);
}

void seam_trigger_hits_functions(struct seam_trigger_hits *hits,
				 uint32_t trigger, uint32_t n)
{
	struct seam_trigger_counts *counts;

	if (trigger >= hits->n_triggers)
		return;
	counts = &hits->counts[trigger];
	counts->n_functions += n;
	if (!counts->since_ns)
		counts->since_ns = seam_clock_ns();
}

uint64_t seam_trigger_hits_due_ns(const struct seam_trigger_hits *hits)
{
	uint64_t due_ns = UINT64_MAX;

	for (size_t i = 0; i < hits->waiting.n; i++)
		if (hits->waiting.items[i].due_ns < due_ns)
			due_ns = hits->waiting.items[i].due_ns;
	return due_ns;
}

size_t seam_trigger_hits_take(struct seam_trigger_hits *hits, uint64_t now_ns)
{
	size_t n_left = 0, n = hits->waiting.n;

	hits->taken.n = 0;
	if (!SEAM_ARRAY_RESERVE(&hits->taken, n))
		return 0;
	/* of a process the first that came is due first */
	for (size_t i = 0; i < n; i++) {
		const struct seam_trigger_hit hit = hits->waiting.items[i];

		if (hit.due_ns <= now_ns || last_number(hits, hit.pid))
			hits->taken.items[hits->taken.n++] = hit;
		else
			hits->waiting.items[n_left++] = hit;
	}
	hits->waiting.n = n_left;
	return hits->taken.n;
}

static void resume_all(const struct seam_trigger_hits *hits)
{
	for (size_t i = 0; i < hits->taken.n; i++) {
		uint32_t pid = hits->taken.items[i].pid;

		hits->resume(hits->context, pid, last_number(hits, pid));
	}
}

void seam_trigger_hits_resume(struct seam_trigger_hits *hits, uint64_t tsc)
{
	resume_all(hits);
	for (size_t i = 0; i < hits->taken.n; i++) {
		uint32_t pid = hits->taken.items[i].pid;
		struct seam_trigger_resumed *last = resumed_of(hits, pid);

		if (!last)
			last = SEAM_ARRAY_PUSH(&hits->resumed);
		if (last)
			*last = (struct seam_trigger_resumed) { pid, tsc };
	}
}

void seam_trigger_hits_join(struct seam_trigger_hits *hits)
{
	size_t n = hits->waiting.n, n_left = 0;

	for (size_t i = 0; i < n; i++) {
		const struct seam_trigger_hit *hit = &hits->waiting.items[i];

		if (!take_too(hits, hit))
			hits->waiting.items[n_left++] = *hit;
	}
	hits->waiting.n = n_left;
}

void seam_trigger_hits_done(struct seam_trigger_hits *hits, bool has_snapshot)
{
	hits->n_snapshots += has_snapshot;
	hits->n_failed = has_snapshot ? 0 : hits->n_failed + 1;
	resume_all(hits);
	/* no snapshot will be made: neither for what waits, nor ever */
	for (size_t i = 0; is_over(hits) && i < hits->taken.n; i++)
		hits->resume(hits->context, hits->taken.items[i].pid,
			     SEAM_TRIGGER_NO_MORE);
	for (size_t i = 0; is_over(hits) && i < hits->waiting.n; i++)
		hits->resume(hits->context, hits->waiting.items[i].pid,
			     SEAM_TRIGGER_NO_MORE);
	if (is_over(hits)) {
		hits->n_beyond += hits->waiting.n;
		hits->waiting.n = 0;
	}
	hits->taken.n = 0;
}

int seam_trigger_hits_unknown(struct seam_trigger_hits *hits, uint64_t now_ns,
			      bool at_end)
{
	for (size_t i = 0; i < hits->n_triggers; i++) {
		struct seam_trigger_counts *c = &hits->counts[i];

		if (c->was_reported || c->n_functions || !c->since_ns ||
		    (!at_end && now_ns - c->since_ns < SEAM_NS_PER_S))
			continue;
		c->was_reported = true;
		return (int)i;
	}
	return -1;
}

void seam_trigger_hits_fini(struct seam_trigger_hits *hits)
{
	free(hits->waiting.items);
	free(hits->taken.items);
	free(hits->resumed.items);
	*hits = (struct seam_trigger_hits) { 0 };
}
