/* SPDX-License-Identifier: MIT */
/* call_saved.c - what seam_fdr_call_saved() saves, see trampolines.h */
#include "target/fdr/record/trampolines.h"

#include <cpuid.h>

/*
 * x87, SSE, AVX, AVX-512: what libc's functions may change.  The registers of
 * AMX are 8 KiB, and no C function touches them unasked.
 * Source: Intel SDM, volume 1, chapter 13.
 */
enum {
	COMPONENTS = 0xe7,
	FXSAVE_BYTES = 512,
	HEADER_BYTES = 64,
	ALIGNMENT = 64,
	OSXSAVE = 1 << 27,	/* CPUID 1, ecx */
};

uint64_t seam_fdr_saved_bytes = FXSAVE_BYTES;
uint32_t seam_fdr_saved_mask;		/* 0: fxsave */

void seam_fdr_call_saved_init(void)
{
	uint32_t a, b, c, d, enabled, high;
	uint64_t bytes = FXSAVE_BYTES + HEADER_BYTES;

	if (!__get_cpuid(1, &a, &b, &c, &d) || !(c & OSXSAVE))
		return;
	__asm__("xgetbv" : "=a" (enabled), "=d" (high) : "c" (0));
	enabled &= COMPONENTS;
	for (unsigned int i = 2; i < 8; i++) {
		if (!(enabled >> i & 1))
			continue;
		__cpuid_count(0xd, i, a, b, c, d);
		/* a: its size, b: where it is */
		if (b + (uint64_t)a > bytes)
			bytes = b + (uint64_t)a;
	}
	seam_fdr_saved_bytes = bytes + ALIGNMENT;
	seam_fdr_saved_mask = enabled;
}
