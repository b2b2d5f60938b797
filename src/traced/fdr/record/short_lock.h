/* SPDX-License-Identifier: MIT */
/*
 * short_lock.h - a lock that is held for one write, with all signals blocked
 *
 * Not a mutex of libc: it is taken in trampolines, and in a forked child it is
 * simply set to 0.  A thread that waits sleeps soon, because one of a real-time
 * priority would keep the holder from its CPU.
 */
#ifndef SEAM_FDR_SHORT_LOCK_H
#define SEAM_FDR_SHORT_LOCK_H

#include <sched.h>
#include <stdatomic.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum {
	SEAM_FDR_SHORT_LOCK_YIELDS = 100,
	SEAM_FDR_SHORT_LOCK_PAUSE_NS = 20 * 1000,
};

static inline void seam_fdr_short_lock(_Atomic uint32_t *lock)
{
	const struct timespec pause = { 0, SEAM_FDR_SHORT_LOCK_PAUSE_NS };
	uint32_t zero = 0;

	/* acquire: pairs with the release in seam_fdr_short_unlock() */
	for (int i = 0; !atomic_compare_exchange_weak_explicit(lock, &zero, 1,
			memory_order_acquire, memory_order_relaxed); i++) {
		zero = 0;
		/* nanosleep() is where a thread may be cancelled */
		if (i < SEAM_FDR_SHORT_LOCK_YIELDS)
			sched_yield();
		else
			syscall(SYS_nanosleep, &pause, NULL);
	}
}

static inline void seam_fdr_short_unlock(_Atomic uint32_t *lock)
{
	atomic_store_explicit(lock, 0, memory_order_release);
}

#endif /* SEAM_FDR_SHORT_LOCK_H */
