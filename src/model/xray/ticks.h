/* SPDX-License-Identifier: MIT */
/*
 * ticks.h - from a counter's ticks to nanoseconds, exactly
 *
 * ns = origin_ns + floor((tsc - origin_tsc) * 10^9 / frequency), which never
 * falls when tsc rises.  Most conversions are one 64 x 64 -> 128 bit
 * multiplication by a rounded-up reciprocal.  Hours from the origin, where the
 * rounding could change the result, it is a division, so that the result is the
 * exact floor everywhere.
 */
#pragma once

#include "base/base.h"

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
