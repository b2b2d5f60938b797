/* SPDX-License-Identifier: MIT */
/*
 * rseq.h - the thread's struct rseq, through which the kernel restarts it
 *
 * glibc since 2.35 registers a struct for each thread.  Else each thread
 * registers a struct of ours when it claims an area; and where the kernel or
 * another library refuses that, nothing restarts, and the slow path records
 * with signals blocked.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Of the struct rseq in use, from the thread pointer: for trampolines. */
extern ptrdiff_t seam_fdr_rseq_offset;

/* Before the first trampoline runs.  @own: do not use glibc's struct. */
void seam_fdr_rseq_init(bool own);

/*
 * Make sure that this thread is registered.  Signals are blocked.  False:
 * nothing restarts in this thread.
 */
bool seam_fdr_rseq_register(void);

/* Whether sequences of this thread are restarted. */
bool seam_fdr_rseq_is_active(void);

/*
 * The CPU that this thread is on, by its struct rseq; where nothing restarts, a
 * number that no CPU has.
 */
uint32_t seam_fdr_rseq_cpu(void);
