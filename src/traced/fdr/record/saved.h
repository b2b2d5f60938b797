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

#include "traced/fdr/record/call_saved.h"
#include "traced/fdr/record/fdr_thread.h"

/* Have a state and an area for the caller; whether it has them. */
uint64_t seam_fdr_begin_thread(void *unused);

/* Of a struct seam_fdr_area: the source's make_room(); wake the recorder. */
uint64_t seam_fdr_make_room(void *area);
uint64_t seam_fdr_wake(void *area);

/*
 * Send a struct seam_xray_trigger with the area that the caller has; whether it
 * was sent.
 */
uint64_t seam_fdr_send_trigger(void *trigger);

#endif /* SEAM_FDR_SAVED_H */
