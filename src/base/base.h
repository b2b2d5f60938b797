/* SPDX-License-Identifier: MIT */
/*
 * base.h - macros and types for every file, and the forbidden library calls
 *
 * The forbidden calls write without a bound, or keep hidden state.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>	/* both must be seen before their calls are poisoned */
#include <string.h>

/* Whether AddressSanitizer is in the program, which changes what it may map. */
#if defined(__SANITIZE_ADDRESS__)
#define SEAM_IS_SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define SEAM_IS_SANITIZED 1
#endif
#endif
#ifndef SEAM_IS_SANITIZED
#define SEAM_IS_SANITIZED 0
#endif

#define SEAM_ARRAY_SIZE(a) (sizeof(a) / sizeof((a)[0]))

/* -1, 0 or 1, as qsort() and bsearch() take it; chains are joined by ?:. */
#define SEAM_COMPARE(a, b) (((a) > (b)) - ((a) < (b)))

/* The id for "none"; ids are indices and never reach it. */
#define SEAM_NONE UINT32_MAX

/* A run of bytes, borrowed. */
struct seam_bytes {
	const uint8_t *data;
	size_t size;
};

/* A number at @from, of any alignment, in this machine's order. */
static inline uint32_t seam_u32_at(const void *from)
{
	uint32_t v;

	memcpy(&v, from, sizeof(v));
	return v;
}

static inline uint64_t seam_u64_at(const void *from)
{
	uint64_t v;

	memcpy(&v, from, sizeof(v));
	return v;
}

#ifdef __GNUC__
#undef sprintf	/* a macro of glibc's where clang compiles */
#pragma GCC poison strcpy strcat sprintf vsprintf strtok gets
#endif
