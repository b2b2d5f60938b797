/* SPDX-License-Identifier: MIT */
/*
 * test_points.h - what happens between two steps of a producer or consumer
 *
 * For programs that compile src/ring with SEAM_RING_TEST_POINTS: at each
 * point the thread may be held up for a random while, may run a writer as a
 * signal handler would, or may be killed at the n-th.
 */
#ifndef TEST_POINTS_H
#define TEST_POINTS_H

#include <sched.h>
#include <signal.h>
#include <stdint.h>

#include "ring/layout.h"

static _Thread_local uint64_t point_random;	/* 0: no delays */
static _Thread_local uint64_t points_to_live;	/* 0: for ever */
static _Thread_local void (*on_point)(void);	/* a nested writer */

static uint64_t next_random(uint64_t *x)
{
	/* xorshift64; Marsaglia 2003 */
	*x ^= *x << 13;
	*x ^= *x >> 7;
	*x ^= *x << 17;
	return *x;
}

void seam_ring_test_point(void)
{
	uint64_t r;

	if (points_to_live && --points_to_live == 0)
		raise(SIGKILL);
	if (on_point)
		on_point();
	if (!point_random)
		return;
	r = next_random(&point_random);
	if (r % 4096 == 0)
		sched_yield();
	else if (r % 16 == 0)
		for (volatile uint64_t i = r >> 32 & 255; i > 0; i--)
			;
}

#endif /* TEST_POINTS_H */
