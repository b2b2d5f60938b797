/* SPDX-License-Identifier: MIT */
/* tsc_tie.c - see tsc_tie.h */
#include "target/fdr/own/tsc_tie.h"

#include <cpuid.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "target/fdr/record/system.h"
#include "wire/xray/xray_chunk.h"

enum {
	TRIES = 8,
	WAIT_NS = 2 * 1000 * 1000,
	INVARIANT_TSC = 1 << 8,
	CONSTANT_AND_NONSTOP = 3,
};

void seam_fdr_tie_now(struct seam_fdr_tie *tie)
{
	uint64_t best = UINT64_MAX;

	for (int i = 0; i < TRIES; i++) {
		uint64_t before = seam_fdr_tsc(), ns = seam_clock_ns();
		uint64_t ticks = seam_fdr_tsc() - before;

		/* the narrowest: nothing came in between */
		if (ticks >= best)
			continue;
		best = ticks;
		*tie = (struct seam_fdr_tie) { before + ticks / 2, ns };
	}
}

uint64_t seam_fdr_tie_age(const struct seam_fdr_tie *tie)
{
	return seam_clock_ns() - tie->ns;
}

void seam_fdr_tie_wait(const struct seam_fdr_tie *start)
{
	uint64_t age;

	while ((age = seam_fdr_tie_age(start)) < WAIT_NS) {
		struct timespec left = { 0, (long)(WAIT_NS - age) };

		syscall(SYS_nanosleep, &left, NULL);
	}
}

/* Source: AMD64 APM volume 3, "Fn8000_0007"; Intel SDM volume 3, 18.17.1. */
static bool is_invariant(void)
{
	uint32_t eax, ebx, ecx, edx;

	return __get_cpuid(0x80000007, &eax, &ebx, &ecx, &edx) &&
	       edx & INVARIANT_TSC;
}

void seam_fdr_tie_header(const struct seam_fdr_tie *start,
			 struct seam_xray_header *header)
{
	struct seam_fdr_tie now = { 0 };
	unsigned __int128 ticks;

	seam_fdr_tie_now(&now);
	ticks = (unsigned __int128)(now.tsc - start->tsc) * SEAM_NS_PER_S;
	*header = (struct seam_xray_header) {
		.version = SEAM_XRAY_FDR_VERSION, .log_type = SEAM_XRAY_FDR,
		.flags = is_invariant() ? CONSTANT_AND_NONSTOP : 0,
		.cycle_frequency = now.ns > start->ns ?
				   (uint64_t)(ticks / (now.ns - start->ns)) : 0,
		.buffer_size = SEAM_XRAY_CHUNK_BYTES,
	};
}
