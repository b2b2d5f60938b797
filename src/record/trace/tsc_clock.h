/* SPDX-License-Identifier: MIT */
/*
 * tsc_clock.h - what ticks of the time stamp counter mean in a recording
 *
 * Records of calls have ticks of the counter.  Ties (base/tsc.h), read during
 * the whole recording, give its frequency, and a reader the time of each tick.
 * A tie is wrong by less than 100 ns, so over 50 ms the frequency is right to
 * 4 ppm; shorter recordings wait for that at their end.
 */
#ifndef SEAM_TSC_CLOCK_H
#define SEAM_TSC_CLOCK_H

#include "base/tsc.h"

enum {
	SEAM_TSC_MAX_TIES = 256,
};

/* Zeroed is valid: without a tie. */
struct seam_tsc_clock {
	struct seam_tsc_tie ties[SEAM_TSC_MAX_TIES];	/* ascending */
	size_t n;
	uint64_t interval_ns;	/* between two of them */
};

/* The first tie. */
void seam_tsc_clock_begin(struct seam_tsc_clock *clock);

/* Another one, if the last is old enough.  Often called; cheap then. */
void seam_tsc_clock_step(struct seam_tsc_clock *clock);

/* The last one.  Waits where the first is less than 50 ms old. */
void seam_tsc_clock_end(struct seam_tsc_clock *clock);

/* Ticks a second, by the first and the last tie; 0: less than 2 of them. */
uint64_t seam_tsc_clock_hz(const struct seam_tsc_clock *clock);

/* CLOCK_MONOTONIC at @tsc, by the nearest two ties; 0: less than 2 of them. */
uint64_t seam_tsc_clock_ns(const struct seam_tsc_clock *clock, uint64_t tsc);

#endif /* SEAM_TSC_CLOCK_H */
