/* SPDX-License-Identifier: MIT */
/* switch_stacks.c - budgets of rings; see switch_stacks.h */
#include "record/perf/switch_stacks.h"

#include <sys/ioctl.h>

#include "base/clock.h"

/* As much as a ring may save, and what it is enabled again with. */
#define MOST_NS ((int64_t)SEAM_NS_PER_S / 5)
#define AGAIN_NS ((int64_t)SEAM_NS_PER_S / 20)

enum { SMALL_BYTES = 512 };	/* of a sample with a call chain alone */

/* For a thread that inherited the event, too. */
static void set_enabled(const struct seam_sources *s, uint32_t ring,
			bool is_enabled)
{
	for (size_t i = 0; i < s->list.n; i++) {
		const struct seam_source *source = &s->list.items[i];

		if (source->ring == ring && source->fd >= 0 &&
		    s->events[source->event].is_switch_stack)
			ioctl(source->fd, is_enabled ? PERF_EVENT_IOC_ENABLE :
			      PERF_EVENT_IOC_DISABLE, 0);
	}
}

/*
 * The kernel writes from high positions to low ones, and reserves the whole size
 * of a copy.
 */
static void count_overwritten(const struct seam_sources *s,
			      struct seam_source_ring *ring)
{
	uint64_t head = seam_ring_head(&ring->ring), bytes = 0, n;

	for (size_t e = 0; e < s->n_events; e++)
		if (s->events[e].is_switch_stack)
			bytes = s->events[e].attr.sample_stack_user;
	bytes = bytes ? bytes : SMALL_BYTES;
	n = (ring->budget.head - head) / bytes;
	ring->budget.left_ns -= (int64_t)n * SEAM_SWITCH_STACK_NS;
	ring->budget.head -= n * bytes;
}

void seam_switch_stacks_check(struct seam_switch_stacks *stacks,
			      struct seam_sources *sources, uint64_t now_ns)
{
	int64_t more_ns = !stacks->checked_ns ||
			  now_ns - stacks->checked_ns > SEAM_NS_PER_S ?
			  MOST_NS : (int64_t)(now_ns - stacks->checked_ns);

	stacks->checked_ns = now_ns;
	for (size_t i = 0; i < sources->live.n; i++) {
		uint32_t ring = sources->live.items[i];
		struct seam_stack_budget *b = &sources->rings.items[ring]
						.budget;

		if (sources->rings.items[ring].use == SEAM_RING_OF_STACKS &&
		    sources->rings.items[ring].is_backward)
			count_overwritten(sources, &sources->rings.items[ring]);
		b->left_ns += more_ns;
		if (b->left_ns > MOST_NS)
			b->left_ns = MOST_NS;
		if (b->left_ns < 0 && !b->is_spent) {
			b->is_spent = true;
			stacks->n_spent++;
			set_enabled(sources, ring, false);
		} else if (b->is_spent && b->left_ns >= AGAIN_NS) {
			b->is_spent = false;
			set_enabled(sources, ring, true);
		}
	}
}
