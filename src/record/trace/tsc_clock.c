/* SPDX-License-Identifier: MIT */
/* tsc_clock.c - read both clocks at once, again and again; see tsc_clock.h */
#include "record/trace/tsc_clock.h"

#include <time.h>

#include "base/array.h"
#include "base/clock.h"

#define FIRST_INTERVAL_NS (10 * SEAM_NS_PER_MS)
#define LEAST_SPAN_NS (50 * SEAM_NS_PER_MS)

static void add(struct seam_tsc_clock *clock, struct seam_tsc_tie tie)
{
	const struct seam_tsc_tie *next = &clock->ties[clock->n];

	/* both go on; a counter that was set back is none to measure by */
	if (clock->n && (tie.ns <= next[-1].ns || tie.tsc <= next[-1].tsc))
		return;
	/* every second tie goes, so they stay spread over the recording */
	if (clock->n == SEAM_TSC_MAX_TIES) {
		clock->n /= 2;
		clock->interval_ns *= 2;
		for (size_t i = 0; i < clock->n; i++)
			clock->ties[i] = clock->ties[2 * i];
	}
	clock->ties[clock->n++] = tie;
}

void seam_tsc_clock_begin(struct seam_tsc_clock *clock)
{
	clock->n = 0;
	clock->interval_ns = FIRST_INTERVAL_NS;
	add(clock, seam_tsc_tie_now());
}

void seam_tsc_clock_step(struct seam_tsc_clock *clock)
{
	if (clock->n && seam_clock_ns() - clock->ties[clock->n - 1].ns >=
			clock->interval_ns)
		add(clock, seam_tsc_tie_now());
}

void seam_tsc_clock_end(struct seam_tsc_clock *clock)
{
	uint64_t span = clock->n ? seam_clock_ns() - clock->ties[0].ns :
			LEAST_SPAN_NS;

	if (span < LEAST_SPAN_NS)
		nanosleep(&(struct timespec) {
			.tv_nsec = (long)(LEAST_SPAN_NS - span) }, NULL);
	if (clock->n)
		add(clock, seam_tsc_tie_now());
}

uint64_t seam_tsc_clock_hz(const struct seam_tsc_clock *clock)
{
	return clock->n < 2 ? 0 :
	       seam_tsc_hz(&clock->ties[0], &clock->ties[clock->n - 1]);
}

uint64_t seam_tsc_clock_ns(const struct seam_tsc_clock *clock, uint64_t tsc)
{
	const struct seam_tsc_tie *a, *b;
	size_t i;
	__int128 ticks;

	if (clock->n < 2)
		return 0;
	i = SEAM_ARRAY_SEARCH(k, clock->n, clock->ties[k].tsc <= tsc);
	i = i == 0 ? 1 : i == clock->n ? i - 1 : i;
	a = &clock->ties[i - 1];
	b = &clock->ties[i];
	ticks = (__int128)tsc - a->tsc;
	return (uint64_t)((__int128)a->ns + ticks * (__int128)(b->ns - a->ns) /
			  (__int128)(b->tsc - a->tsc));
}
