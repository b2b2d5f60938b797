/* SPDX-License-Identifier: MIT */
/* clock.h - CLOCK_MONOTONIC, and a thread's CPU time, in nanoseconds */
#pragma once

#include <stdint.h>
#include <time.h>

#define SEAM_NS_PER_S UINT64_C(1000000000)
#define SEAM_NS_PER_MS UINT64_C(1000000)

static inline uint64_t seam_clock_of(struct timespec t)
{
	return (uint64_t)t.tv_sec * SEAM_NS_PER_S + (uint64_t)t.tv_nsec;
}

/* Of a clock that can be read. */
static inline uint64_t seam_clock_now(clockid_t clock)
{
	struct timespec t;

	clock_gettime(clock, &t);
	return seam_clock_of(t);
}

static inline uint64_t seam_clock_ns(void)
{
	return seam_clock_now(CLOCK_MONOTONIC);
}

/* CPU time of the calling thread; 0: it cannot be read. */
static inline uint64_t seam_clock_thread_ns(void)
{
	struct timespec t;

	return clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t) ? 0 :
	       seam_clock_of(t);
}
