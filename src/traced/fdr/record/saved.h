/* SPDX-License-Identifier: MIT */
/*
 * saved.h - what trampolines do only with vector registers saved
 *
 * The program's vector registers hold arguments and results when a trampoline
 * runs, and C functions outside of the trampolines' own archive may change
 * them: libc's, those that a program or a preloaded library has in their place,
 * and ours that call such.  So that archive calls none of them.  It takes the
 * address of one of these, for seam_fdr_call_saved(); tools/check-traced checks
 * it.  errno is kept.
 */
#ifndef SEAM_FDR_SAVED_H
#define SEAM_FDR_SAVED_H

#include <stdint.h>

#include "traced/fdr/record/fdr_thread.h"

/* Have a state and an area for the caller; whether it has them. */
uint64_t seam_fdr_begin_thread(void *unused);

/* Of a struct seam_fdr_area: wake the recorder. */
uint64_t seam_fdr_wake(void *area);

/*
 * Send a struct seam_xray_trigger with the area that the caller has; whether it
 * was sent.
 */
uint64_t seam_fdr_send_trigger(void *trigger);

/* ---- a call of libc from code that owns no vector register ---- */

/*
 * Call @f(@argument) with all vector and x87 registers saved: it may call libc.
 * Returns what @f does.  From any context.  Cost: 0.1 us, and 0.7 to 2.5 KiB of
 * stack, because what is in use is saved: when a signal handler begins, which
 * may be on a small stack of its own, that is nothing.
 */
uint64_t seam_fdr_call_saved(uint64_t (*f)(void *), void *argument);

/* Find out how, before the first trampoline runs. */
void seam_fdr_call_saved_init(void);

#endif /* SEAM_FDR_SAVED_H */
