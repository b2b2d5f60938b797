/* SPDX-License-Identifier: MIT */
/*
 * saved.h - functions that need vector registers saved in trampolines
 *
 * The program's vector registers hold arguments and results when a trampoline
 * runs, and C functions outside of the trampolines' archive may change these
 * registers: libc's functions, functions that a program or a preloaded library
 * has in place of libc's, and ours that call libc's.  So the archive has only
 * the addresses of the functions below, for seam_fdr_call_saved();
 * tools/check-traced checks that.  errno is kept.
 */
#pragma once

#include <stdint.h>

#include "traced/fdr/record/fdr_thread.h"

/* Get a state and an area for the caller; whether it has both. */
uint64_t seam_fdr_begin_thread(void *unused);

/* Of a struct seam_fdr_area: wake the recorder. */
uint64_t seam_fdr_wake(void *area);

/*
 * Send a trigger's announcement with the area that the caller has; whether it
 * was sent.
 */
uint64_t seam_fdr_send_trigger(void *trigger);

/* ---- a call of libc from code that owns no vector register ---- */

/*
 * Call @f(@argument) with all vector and x87 registers saved: it may call
 * libc.  Returns the result of @f.  From any context.  Cost: 0.1 us, and 0.7 to
 * 2.5 KiB of stack for the registers in use: none when a signal handler begins,
 * which may have a small stack of its own.
 */
uint64_t seam_fdr_call_saved(uint64_t (*f)(void *), void *argument);

/* Find out how, before the first trampoline runs. */
void seam_fdr_call_saved_init(void);
