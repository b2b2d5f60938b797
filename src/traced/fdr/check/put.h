/* SPDX-License-Identifier: MIT */
/*
 * put.h - what most checked calls need, as one restartable sequence
 *
 * The plain trampolines' sequence, with arguments, or with a decision at the
 * end of a call.  Where anything is not as in most calls, both do nothing, and
 * the caller goes through fdr_record.h.
 */
#ifndef SEAM_FDR_PUT_H
#define SEAM_FDR_PUT_H

#include "traced/fdr/record/fdr_thread.h"

/* Calls that are shorter are taken back; set before a sled is patched. */
extern uint64_t seam_fdr_min_ticks;

/* Record @word with @n_arguments.  Returns its time; 0: nothing was done. */
uint64_t seam_fdr_put_call(uint32_t word, const uint64_t *arguments,
			   uint64_t n_arguments);

/* A TSC has no such value. */
enum { SEAM_FDR_TAKEN_BACK = 1 };

/*
 * Record the exit @word; or where the last record is the entry of the same
 * function, with @n_arguments, and younger than seam_fdr_min_ticks, take that
 * back.  Returns the exit's time, or SEAM_FDR_TAKEN_BACK; 0: nothing was done.
 */
uint64_t seam_fdr_put_end(uint32_t word, uint32_t n_arguments);

/* put.S has it */
_Static_assert(SEAM_FDR_TAKEN_BACK == 1, "");

#endif /* SEAM_FDR_PUT_H */
