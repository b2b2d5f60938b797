/* SPDX-License-Identifier: MIT */
/*
 * local.h - steps that a signal handler on the same thread cannot divide
 *
 * The producer's own words have one writing thread, with signal handlers
 * that may come between any two of its instructions.  One instruction is
 * indivisible against those, so the bus lock that other threads would need
 * is left out on x86: a record costs 12 ns and not 21 (bench/ring.c).  Other
 * threads may read the words at any time.  Elsewhere, and under
 * ThreadSanitizer, these are C11's relaxed operations.  They order nothing.
 */
#pragma once

#include "base/base.h"

#include <stdatomic.h>

#if defined(__x86_64__) && !defined(__SANITIZE_THREAD__)

static inline void seam_local_add(_Atomic uint64_t *word, uint64_t n)
{
	__asm__("addq %1, %0" : "+m" (*word) : "er" (n) : "cc");
}

/* Replace *@word by @new if it is @old; whether it was. */
static inline bool seam_local_replace(_Atomic uint64_t *word, uint64_t old,
				      uint64_t new)
{
	bool done;

	__asm__("cmpxchgq %3, %0"
		: "+m" (*word), "=@ccz" (done), "+a" (old)
		: "r" (new));
	return done;
}

#else

static inline void seam_local_add(_Atomic uint64_t *word, uint64_t n)
{
	/* relaxed: see above */
	atomic_fetch_add_explicit(word, n, memory_order_relaxed);
}

static inline bool seam_local_replace(_Atomic uint64_t *word, uint64_t old,
				      uint64_t new)
{
	/* relaxed: see above */
	return atomic_compare_exchange_strong_explicit(word, &old, new,
						       memory_order_relaxed,
						       memory_order_relaxed);
}

#endif

/* relaxed: see above */
static inline uint64_t seam_local_load(const _Atomic uint64_t *word)
{
	return atomic_load_explicit(word, memory_order_relaxed);
}

static inline void seam_local_store(_Atomic uint64_t *word, uint64_t value)
{
	atomic_store_explicit(word, value, memory_order_relaxed);
}

/* Neither compiler nor handler sees later steps before earlier ones. */
static inline void seam_local_fence(void)
{
	atomic_signal_fence(memory_order_seq_cst);
}
