/* SPDX-License-Identifier: MIT */
/*
 * call_saved.c - see saved.h
 *
 * Source: Intel SDM, volume 1, chapter 13, for XSAVE and its components, and
 * volume 2, CPUID, leaf 0xd.
 */
#include "traced/fdr/record/saved.h"

#include <cpuid.h>
#include <stdbool.h>
#include <stddef.h>

enum {
	/*
	 * x87, SSE, AVX, AVX-512, which libc's functions may change.  The
	 * registers of AMX are 8 KiB, and no C function uses AMX unasked.
	 */
	COMPONENTS = 0xe7,
	LEGACY = 3,		/* x87, and SSE with MXCSR */
	FIRST = 2,		/* after these */
	N_COMPONENTS = 8,

	FXSAVE_BYTES = 512,
	HEADER_BYTES = 64,
	ALIGNMENT = 64,

	OSXSAVE = 1 << 27,	/* leaf 1, ecx */
	XSAVE_LEAF = 0xd,
	XSAVEC = 1 << 1,	/* leaf 0xd, 1, eax */
	XGETBV_IN_USE = 1 << 2,	/* likewise */
	IN_USE = 1,		/* the register that xgetbv reads then */
};

static uint32_t mask;		/* of the components; 0: there is only fxsave */
static bool is_compact;		/* components in use, without gaps */
static size_t component_bytes[N_COMPONENTS];	/* if so */
static size_t all_bytes = FXSAVE_BYTES;		/* if not */

void seam_fdr_call_saved_init(void)
{
	const uint32_t compact = XSAVEC | XGETBV_IN_USE;
	uint32_t a, b, c, d, enabled, high;
	size_t end = FXSAVE_BYTES + HEADER_BYTES;

	if (!__get_cpuid(1, &a, &b, &c, &d) || !(c & OSXSAVE))
		return;
	__asm__("xgetbv" : "=a" (enabled), "=d" (high) : "c" (0));
	enabled &= COMPONENTS;
	for (uint32_t i = FIRST; i < N_COMPONENTS; i++) {
		if (!(enabled >> i & 1))
			continue;
		/* a: size, b: position if not compact */
		__cpuid_count(XSAVE_LEAF, i, a, b, c, d);
		component_bytes[i] = (a + ALIGNMENT - 1) & -(size_t)ALIGNMENT;
		if (b + (size_t)a > end)
			end = b + (size_t)a;
	}
	all_bytes = end;
	__cpuid_count(XSAVE_LEAF, 1, a, b, c, d);
	is_compact = (a & compact) == compact;
	mask = enabled;
}

static uint32_t components_in_use(void)
{
	uint32_t low, high;

	if (!is_compact)
		return mask;
	__asm__ volatile("xgetbv" : "=a" (low), "=d" (high) : "c" (IN_USE));
	return (low & mask) | LEGACY;
}

static size_t bytes_of(uint32_t components)
{
	size_t bytes = FXSAVE_BYTES + HEADER_BYTES;

	if (!is_compact)
		return all_bytes;
	for (components >>= FIRST; components; components &= components - 1)
		bytes += component_bytes[FIRST + __builtin_ctz(components)];
	return bytes;
}

/* @area: aligned.  The instruction writes only a part of the header. */
static void save(void *area, uint32_t components)
{
	uint64_t *header = (void *)((uint8_t *)area + FXSAVE_BYTES);

	if (!mask) {
		__asm__ volatile("fxsave64 (%0)" :: "r" (area) : "memory");
		return;
	}
	for (size_t i = 0; i < HEADER_BYTES / sizeof(*header); i++)
		header[i] = 0;
	if (is_compact)
		__asm__ volatile("xsavec64 (%0)" :: "r" (area),
				 "a" (components), "d" (0) : "memory");
	else
		__asm__ volatile("xsave64 (%0)" :: "r" (area),
				 "a" (components), "d" (0) : "memory");
}

/* All components: what was not in use gets its initial state. */
static void restore(void *area)
{
	if (!mask)
		__asm__ volatile("fxrstor64 (%0)" :: "r" (area) : "memory");
	else
		__asm__ volatile("xrstor64 (%0)" :: "r" (area),
				 "a" (mask), "d" (0) : "memory");
}

uint64_t seam_fdr_call_saved(uint64_t (*f)(void *), void *argument)
{
	uint32_t components = components_in_use();
	void *area = __builtin_alloca_with_align(bytes_of(components),
						 8 * ALIGNMENT);
	uint64_t result;

	save(area, components);
	result = f(argument);
	restore(area);
	return result;
}
