/* SPDX-License-Identifier: MIT */
/*
 * waits.h - when threads had no CPU
 *
 * Each wait of a recording, short ones too: for what divides the time of calls.
 * Views of samples have waits as samples (struct seam_profile_event, is_wait).
 */
#pragma once

#include "base/array.h"

/* A time in which a thread had no CPU. */
struct seam_wait {
	uint64_t from_ns, to_ns;
	uint64_t ran_ns;	/* when it got the CPU that it lost; 0: before */
	uint32_t thread;
	uint16_t cpu;		/* that it lost */
	bool is_preempted;	/* it could run; else it was blocked */
	/* it began before the recording, or lasted until that ended */
	bool is_open;
};

/* Zeroed is valid and empty; free(items.items) ends it. */
struct seam_waits {
	SEAM_ARRAY(struct seam_wait) items;
};

/* How long a thread had no CPU. */
struct seam_off_time {
	uint64_t blocked_ns;
	uint64_t preempted_ns;
};

/* Sort by thread, then time: the order that a cursor needs. */
void seam_waits_sort(struct seam_waits *waits);

/* Goes through the waits of one thread; @waits outlives it. */
struct seam_wait_cursor {
	const struct seam_wait *next, *end;
	struct seam_off_time sum;	/* of those before next */
};

struct seam_wait_cursor seam_waits_of(const struct seam_waits *waits,
				      uint32_t thread);

/*
 * How long the thread had no CPU before @ns, which never falls from call to
 * call.  Cost: a comparison, and one for each wait that has ended since.
 */
static inline struct seam_off_time
seam_waits_until(struct seam_wait_cursor *c, uint64_t ns)
{
	struct seam_off_time sum;

	for (; c->next < c->end && c->next->to_ns <= ns; c->next++)
		*(c->next->is_preempted ? &c->sum.preempted_ns :
		  &c->sum.blocked_ns) += c->next->to_ns - c->next->from_ns;
	sum = c->sum;
	if (c->next < c->end && c->next->from_ns < ns)
		*(c->next->is_preempted ? &sum.preempted_ns :
		  &sum.blocked_ns) += ns - c->next->from_ns;
	return sum;
}

static inline void seam_off_time_add(struct seam_off_time *sum,
				     struct seam_off_time more)
{
	sum->blocked_ns += more.blocked_ns;
	sum->preempted_ns += more.preempted_ns;
}

static inline struct seam_off_time
seam_off_time_less(struct seam_off_time a, struct seam_off_time b)
{
	return (struct seam_off_time) {
		a.blocked_ns - b.blocked_ns, a.preempted_ns - b.preempted_ns,
	};
}
