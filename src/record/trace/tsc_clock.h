/* SPDX-License-Identifier: MIT */
/*
 * tsc_clock.h - the processor's time stamp counter beside CLOCK_MONOTONIC
 *
 * Records of calls have ticks of the counter.  Pairs of both clocks ("ties"),
 * read during the whole recording, give its frequency, and a reader the time of
 * each tick.  A tie is wrong by less than 100 ns, so over 50 ms the frequency
 * is right to 4 ppm; shorter recordings wait for that at their end.
 *
 * CLOCK_MONOTONIC itself is corrected by NTP while it runs, so a frequency is
 * of its recording.
 *
 * Source: Intel SDM 3, 18.17 "Time-Stamp Counter"; the flags are those of an
 * XRay header.
 */
#ifndef SEAM_TSC_CLOCK_H
#define SEAM_TSC_CLOCK_H

#include "base/base.h"

enum {
	SEAM_TSC_MAX_TIES = 256,
	SEAM_TSC_CONSTANT = 1,	/* it ticks at one rate */
	SEAM_TSC_NONSTOP = 2,	/* also while a CPU sleeps */
};

struct seam_tsc_tie {
	uint64_t tsc, ns;
};

/* Zeroed is valid: without a tie. */
struct seam_tsc_clock {
	struct seam_tsc_tie ties[SEAM_TSC_MAX_TIES];	/* ascending */
	size_t n;
	uint64_t interval_ns;	/* between two of them */
};

/* Whether this machine has the counter. */
bool seam_tsc_is_there(void);

/* SEAM_TSC_CONSTANT and SEAM_TSC_NONSTOP, as CPUID says. */
uint32_t seam_tsc_flags(void);

/* The counter. */
uint64_t seam_tsc_now(void);

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
