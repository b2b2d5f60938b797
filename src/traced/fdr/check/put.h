/* SPDX-License-Identifier: MIT */
/*
 * put.h - what most checked calls need, as one restartable sequence
 *
 * The plain trampolines' sequence, with arguments, or with a decision at the
 * end of a call.  At the start of a chunk, on another CPU, and where the ticks
 * since the last record have more than 32 bits, both functions do nothing, and
 * the caller records by fdr_record.h.
 */
#ifndef SEAM_FDR_PUT_H
#define SEAM_FDR_PUT_H

#include <stdbool.h>
#include <stdint.h>

#include "traced/fdr/record/fdr_thread.h"

/* Calls that are shorter are taken back; set before a sled is patched. */
extern uint64_t seam_fdr_min_ticks;

/* Record @word with @n_arguments.  Returns the time; 0: nothing was done. */
uint64_t seam_fdr_put_call(uint32_t word, const uint64_t *arguments,
			   uint64_t n_arguments);

/* No TSC is 1. */
enum { SEAM_FDR_TAKEN_BACK = 1 };

/*
 * Record the exit @word; or where the last record is the entry of the call,
 * with @n_arguments, and younger than seam_fdr_min_ticks, take the entry back.
 * Returns the exit's time, or SEAM_FDR_TAKEN_BACK; 0: nothing was done.
 */
uint64_t seam_fdr_put_end(uint32_t word, uint32_t n_arguments);

_Static_assert(SEAM_FDR_TAKEN_BACK == 1, "put.S returns 1");

/*
 * ---- the end of a short call: neither its entry nor its exit stays ----
 *
 * The thread's last record is the entry, or all records since the entry are of
 * calls that ended in tail calls: these records go with the entry.
 *
 *	E(f)				f ends
 *	E(f) E(g) T(g)			f ends: g called an untraced function
 *	E(g) T(g) E(f)			f ends, to which g went on
 *
 * Taking back is a new cursor, before these records, with a higher count in its
 * upper bits, for a recorder that copies the area (ring/layout.h).  A call that
 * metadata or the start of a chunk divides stays in the log.
 */

/*
 * A call of @function ends: take the call back if it began less than @max_ticks
 * ago.  False: all stays as it is.  From any context.
 */
bool seam_fdr_take_back(uint32_t function, uint64_t max_ticks);

#endif /* SEAM_FDR_PUT_H */
