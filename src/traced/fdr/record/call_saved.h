/* SPDX-License-Identifier: MIT */
/*
 * call_saved.h - a call of libc from code that owns no vector register
 */
#ifndef SEAM_FDR_CALL_SAVED_H
#define SEAM_FDR_CALL_SAVED_H

#include <stdint.h>

/*
 * Call @f(@argument) with all vector and x87 registers saved: it may call libc.
 * Returns what @f does.  From any context.  Cost: 0.1 us, and 0.7 to 2.5 KiB of
 * stack, because what is in use is saved: when a signal handler begins, which
 * may be on a small stack of its own, that is nothing.
 */
uint64_t seam_fdr_call_saved(uint64_t (*f)(void *), void *argument);

/* Find out how, before the first trampoline runs. */
void seam_fdr_call_saved_init(void);

#endif /* SEAM_FDR_CALL_SAVED_H */
