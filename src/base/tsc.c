/* SPDX-License-Identifier: MIT */
/* tsc.c - see tsc.h */
#include "base/tsc.h"

#include "base/clock.h"

enum {
	N_TRIES = 16,
	/* CPUID leaf 0x80000007, EDX: the invariant counter */
	INVARIANT = 1 << 8,
};

#ifdef __x86_64__
#include <cpuid.h>
#include <x86intrin.h>

uint32_t seam_tsc_flags(void)
{
	unsigned int a, b, c, d;

	if (!__get_cpuid(0x80000007, &a, &b, &c, &d) || !(d & INVARIANT))
		return 0;
	return SEAM_TSC_CONSTANT | SEAM_TSC_NONSTOP;
}

uint64_t seam_tsc_now(void)
{
	unsigned int cpu;

	/* the loads before it are done */
	return __rdtscp(&cpu);
}
#else
uint32_t seam_tsc_flags(void)
{
	return 0;
}

uint64_t seam_tsc_now(void)
{
	return seam_clock_ns();
}
#endif

/* The narrowest of some: an interrupt in between makes one wide. */
struct seam_tsc_tie seam_tsc_tie_now(void)
{
	uint64_t narrowest = UINT64_MAX;
	struct seam_tsc_tie tie = { 0 };

	for (int i = 0; i < N_TRIES; i++) {
		uint64_t before = seam_tsc_now(), ns = seam_clock_ns();
		uint64_t width = seam_tsc_now() - before;

		if (width >= narrowest)
			continue;
		narrowest = width;
		tie = (struct seam_tsc_tie) { before + width / 2, ns };
	}
	return tie;
}

/* 128 bits: ticks of seconds by 10^9 are more than 64. */
uint64_t seam_tsc_hz(const struct seam_tsc_tie *a, const struct seam_tsc_tie *b)
{
	unsigned __int128 ticks = b->tsc - a->tsc;

	return b->ns <= a->ns ? 0 :
	       (uint64_t)(ticks * SEAM_NS_PER_S / (b->ns - a->ns));
}
