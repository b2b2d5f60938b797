/* SPDX-License-Identifier: MIT */
/*
 * system.h - system calls as instructions
 *
 * libc's functions may use vector registers, and set errno; functions that
 * trampolines call may do neither.
 */
#pragma once

#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>

/*
 * The program is about to restrict its system calls: a system call that only we
 * make may kill the program.  Nothing is recorded then, so no signals need to
 * be blocked.
 */
extern _Atomic bool seam_fdr_is_quiet;

static inline bool seam_fdr_may_call_system(void)
{
	/* relaxed: calls in progress may finish */
	return !atomic_load_explicit(&seam_fdr_is_quiet, memory_order_relaxed);
}

#if defined(__x86_64__)

/* Returns the result or -errno. */
static inline long seam_fdr_syscall6(long number, long a, long b, long c,
				     long d, long e, long f)
{
	long result;
	register long r10 __asm__("r10") = d;
	register long r8 __asm__("r8") = e;
	register long r9 __asm__("r9") = f;

	__asm__ volatile("syscall"
			 : "=a" (result)
			 : "a" (number), "D" (a), "S" (b), "d" (c), "r" (r10),
			   "r" (r8), "r" (r9)
			 : "rcx", "r11", "memory");
	return result;
}

static inline long seam_fdr_syscall4(long number, long a, long b, long c,
				     long d)
{
	return seam_fdr_syscall6(number, a, b, c, d, 0, 0);
}

/* CLOCK_MONOTONIC; zeroes where a filter refuses it. */
static inline void seam_fdr_clock(struct timespec *time)
{
	*time = (struct timespec) { 0, 0 };
	seam_fdr_syscall4(SYS_clock_gettime, CLOCK_MONOTONIC, (long)time, 0, 0);
}

static inline uint64_t seam_fdr_tsc(void)
{
	uint32_t low, high;

	__asm__ volatile("rdtsc" : "=a" (low), "=d" (high));
	return (uint64_t)high << 32 | low;
}

/* Linux puts the CPU into the low 12 bits of TSC_AUX, the node above. */
static inline uint32_t seam_fdr_tsc_cpu(void)
{
	uint32_t low, high, aux;

	__asm__ volatile("rdtscp" : "=a" (low), "=d" (high), "=c" (aux));
	return aux & 0xfff;
}

/* For seam_fdr_unblock(): nothing was done.  No mask has SIGKILL. */
#define SEAM_FDR_NOT_BLOCKED (UINT64_C(1) << (SIGKILL - 1))

/* Block @signals.  Returns what was blocked, for seam_fdr_unblock(). */
static inline uint64_t seam_fdr_block_some(uint64_t signals)
{
	uint64_t before = 0;

	if (!seam_fdr_may_call_system())
		return SEAM_FDR_NOT_BLOCKED;
	seam_fdr_syscall4(SYS_rt_sigprocmask, SIG_BLOCK, (long)&signals,
			  (long)&before, sizeof(signals));
	return before;
}

static inline uint64_t seam_fdr_block(void)
{
	return seam_fdr_block_some(UINT64_MAX);
}

/*
 * For longer: not faults, which come at once or kill, nor libc's own two, of
 * pthread_cancel() and setuid().
 */
static inline uint64_t seam_fdr_block_handlers(void)
{
	static const int others[] = {
		SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGTRAP, SIGSYS, 32, 33,
	};
	uint64_t signals = UINT64_MAX;

	for (unsigned int i = 0; i < sizeof(others) / sizeof(others[0]); i++)
		signals &= ~(UINT64_C(1) << (others[i] - 1));
	return seam_fdr_block_some(signals);
}

static inline void seam_fdr_unblock(uint64_t before)
{
	if (before & SEAM_FDR_NOT_BLOCKED)
		return;
	seam_fdr_syscall4(SYS_rt_sigprocmask, SIG_SETMASK,
			  (long)&before, 0, sizeof(before));
}

#endif

/*
 * ---- zeroed memory, which takes room as its pages are used ----
 *
 * Any thread, in trampolines and handlers too; errno is kept.
 */

static inline void seam_fdr_unmap(void *p, size_t bytes)
{
	seam_fdr_syscall4(SYS_munmap, (long)p, (long)bytes, 0, 0);
}

/* Page-aligned; NULL: no memory. */
static inline void *seam_fdr_map(size_t bytes)
{
	long p = seam_fdr_syscall6(SYS_mmap, 0, (long)bytes,
				   PROT_READ | PROT_WRITE,
				   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE,
				   -1, 0);

	/* an address, or -errno */
	return p < 0 ? NULL : (void *)p;
}

/*
 * Memory that a forked child finds zeroed.  NULL: none, or before Linux 4.14.
 */
static inline void *seam_fdr_map_per_process(size_t bytes)
{
	void *p = seam_fdr_map(bytes);

	if (p && seam_fdr_syscall4(SYS_madvise, (long)p, (long)bytes,
				   MADV_WIPEONFORK, 0)) {
		seam_fdr_unmap(p, bytes);
		p = NULL;
	}
	return p;
}

/*
 * The memory at *@place, which @map makes for the first caller of all threads.
 * NULL: no memory.
 */
static inline void *seam_fdr_map_once(void *_Atomic *place, size_t bytes,
				      void *(*map)(size_t bytes))
{
	/* acquire: pairs with the release below, of another thread */
	void *found = atomic_load_explicit(place, memory_order_acquire);
	void *mapped = found ? NULL : map(bytes);

	if (!mapped || atomic_compare_exchange_strong_explicit(
				place, &found, mapped, memory_order_acq_rel,
				memory_order_acquire))
		return found ?: mapped;
	seam_fdr_unmap(mapped, bytes);
	return found;
}
