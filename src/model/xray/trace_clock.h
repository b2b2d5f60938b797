/* SPDX-License-Identifier: MIT */
/*
 * trace_clock.h - ticks to nanoseconds, by the ties of a recording
 *
 * CLOCK_MONOTONIC is corrected by NTP while it runs, by up to 500 ppm, so one
 * frequency puts calls of a long recording beside the samples of another time:
 * in the middle of an hour in which the correction changed by 100 ppm, 90 ms
 * from their own.  The manifest of a bundle has ties, read all along.  Between
 * those that are enough for all others, time is linear.
 */
#ifndef SEAM_TRACE_CLOCK_H
#define SEAM_TRACE_CLOCK_H

#include "base/array.h"
#include "base/tsc.h"

/*
 * From a counter's ticks to nanoseconds, exactly.
 *
 * ns = origin_ns + floor((tsc - origin_tsc) * 10^9 / frequency), which never
 * falls when tsc rises.  Most conversions are one 64 x 64 -> 128 bit
 * multiplication by a rounded-up reciprocal.  Hours from the origin, where the
 * rounding could change the result, it is a division, so that the result is the
 * exact floor everywhere.
 */

/* Times beyond this are cut to it: 146 years. */
#define SEAM_TICKS_MAX_NS (UINT64_C(1) << 62)

struct seam_ticks {
	uint64_t origin_tsc;
	uint64_t origin_ns;
	uint64_t frequency_hz;		/* 0: a tick is shown as 1 ns */
	uint64_t multiplier;
	uint64_t exact_below;		/* ticks that the multiplier serves */
	uint32_t numerator;		/* 10^9 / frequency, reduced */
	uint64_t denominator;
	unsigned int shift;
};

/* Both origins 0.  @frequency_hz 0 makes ticks pass as nanoseconds. */
void seam_ticks_init(struct seam_ticks *ticks, uint64_t frequency_hz);

/* The exact floor for any number of ticks; cost: a division of 128 bits. */
uint64_t seam_ticks_divide(const struct seam_ticks *ticks, uint64_t n_ticks);

/* Whether the shift is 64, which is so for counters above 1 GHz. */
static inline bool seam_ticks_is_wide(const struct seam_ticks *ticks)
{
	return ticks->shift == 64;
}

/* The length of @n_ticks < exact_below; @is_wide: the shift is known as 64. */
static inline __attribute__((always_inline)) uint64_t
seam_ticks_scale(const struct seam_ticks *ticks, uint64_t n_ticks, bool is_wide)
{
	__extension__ unsigned __int128 wide = n_ticks;

	wide *= ticks->multiplier;
	return (uint64_t)(wide >> (is_wide ? 64 : ticks->shift));
}

/* Ticks as a length of time. */
static inline uint64_t seam_ticks_length(const struct seam_ticks *ticks,
					 uint64_t n_ticks)
{
	if (__builtin_expect(n_ticks >= ticks->exact_below, 0))
		return seam_ticks_divide(ticks, n_ticks);
	return seam_ticks_scale(ticks, n_ticks, false);
}

/* The time of counter value @tsc; the origin's for values before it. */
static inline uint64_t seam_ticks_time(const struct seam_ticks *ticks,
				       uint64_t tsc)
{
	uint64_t n_ticks = tsc > ticks->origin_tsc ?
			   tsc - ticks->origin_tsc : 0;

	return ticks->origin_ns + seam_ticks_length(ticks, n_ticks);
}

enum { SEAM_TRACE_CLOCK_NS = 10000 };	/* how far a tie may be from it */

struct seam_trace_clock {
	/* the frequency of the logs, and one tie for all times */
	struct seam_ticks ticks;
	/* by the recording's ties, ascending; empty: it has none */
	SEAM_ARRAY(struct seam_ticks) pieces;
	bool is_tied;			/* its ns are CLOCK_MONOTONIC */
};

/*
 * Have @clock go by @n ascending ties, from @first_tsc on.  It stays as it is
 * if there are less than 2, or their frequency is another one.  0 or -ENOMEM.
 */
int seam_trace_clock_tie(struct seam_trace_clock *clock,
			 const struct seam_tsc_tie *ties, size_t n,
			 uint64_t first_tsc);

/* How @clock goes at @tsc, and *@n_ticks from that origin on. */
const struct seam_ticks *
seam_trace_clock_at(const struct seam_trace_clock *clock, uint64_t tsc,
		    uint64_t *n_ticks);

static inline uint64_t
seam_trace_clock_time(const struct seam_trace_clock *clock, uint64_t tsc)
{
	uint64_t n_ticks;

	return seam_ticks_time(seam_trace_clock_at(clock, tsc, &n_ticks), tsc);
}

/* All its times become later by @ns, modulo 2^64. */
void seam_trace_clock_move(struct seam_trace_clock *clock, uint64_t ns);

#endif /* SEAM_TRACE_CLOCK_H */
