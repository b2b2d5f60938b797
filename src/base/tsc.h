/* SPDX-License-Identifier: MIT */
/*
 * tsc.h - the processor's time stamp counter beside CLOCK_MONOTONIC
 *
 * Both clocks, read at once (a "tie"), are right to some 30 ns, so two ties
 * give the counter's frequency: to 3 ppm over 20 ms.  CLOCK_MONOTONIC is
 * corrected by NTP while it runs, so a frequency is that of its recording.
 *
 * Where there is no such counter, CLOCK_MONOTONIC is read for it.
 *
 * Source: Intel SDM volume 3, 18.17 "Time-Stamp Counter"; AMD64 APM volume 3,
 * "Fn8000_0007".
 */
#pragma once

#include "base/base.h"

/* The flags of an XRay log's header. */
enum {
	SEAM_TSC_CONSTANT = 1,	/* it ticks at one rate */
	SEAM_TSC_NONSTOP = 2,	/* also while a CPU sleeps */
};

struct seam_tsc_tie {
	uint64_t tsc, ns;
};

/* Whether this machine has the counter. */
static inline bool seam_tsc_is_there(void)
{
#ifdef __x86_64__
	return true;
#else
	return false;
#endif
}

/* SEAM_TSC_CONSTANT and SEAM_TSC_NONSTOP, as CPUID says. */
uint32_t seam_tsc_flags(void);

/* The counter. */
uint64_t seam_tsc_now(void);

/* Cost: 1 us. */
struct seam_tsc_tie seam_tsc_tie_now(void);

/* Ticks a second from @a to @b; 0: @b is not later. */
uint64_t seam_tsc_hz(const struct seam_tsc_tie *a,
		     const struct seam_tsc_tie *b);
