/* SPDX-License-Identifier: MIT */
/*
 * system.h - system calls as instructions
 *
 * libc's functions may use vector registers, and set errno; what trampolines
 * call may do neither.
 */
#ifndef SEAM_FDR_SYSTEM_H
#define SEAM_FDR_SYSTEM_H

#include <stdint.h>
#include <sys/syscall.h>

#if defined(__x86_64__)

/* Returns the result or -errno. */
static inline long seam_fdr_syscall4(long number, long a, long b, long c,
				     long d)
{
	long result;
	register long r10 __asm__("r10") = d;

	__asm__ volatile("syscall"
			 : "=a" (result)
			 : "a" (number), "D" (a), "S" (b), "d" (c), "r" (r10)
			 : "rcx", "r11", "memory");
	return result;
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

/* Block all signals.  Returns what was blocked, for seam_fdr_unblock(). */
static inline uint64_t seam_fdr_block(void)
{
	uint64_t all = UINT64_MAX, before = 0;

	seam_fdr_syscall4(SYS_rt_sigprocmask, 0 /* SIG_BLOCK */, (long)&all,
			  (long)&before, sizeof(all));
	return before;
}

static inline void seam_fdr_unblock(uint64_t before)
{
	seam_fdr_syscall4(SYS_rt_sigprocmask, 2 /* SIG_SETMASK */,
			  (long)&before, 0, sizeof(before));
}

#endif

#endif /* SEAM_FDR_SYSTEM_H */
