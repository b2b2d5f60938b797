/* SPDX-License-Identifier: MIT */
/*
 * take_back.h - the end of a short call: neither its entry nor its exit stays
 *
 * The thread's last record is its entry, or all since then is calls that ended
 * in tail calls, which have nothing left in the log either: those go with it.
 *
 *	E(f)				f ends
 *	E(f) E(g) T(g)			f ends: g went on to what is not traced
 *	E(g) T(g) E(f)			f ends, to which g went on
 *
 * Taking back is a new cursor, before these records: with a higher count in its
 * upper bits, for a recorder that copies the area (ring/layout.h).  It goes
 * neither across metadata nor over the start of a chunk; a call so divided
 * stays in the log.
 */
#ifndef SEAM_FDR_TAKE_BACK_H
#define SEAM_FDR_TAKE_BACK_H

#include <stdbool.h>
#include <stdint.h>

/*
 * A call of @function ends: take it back if it began less than @max_ticks ago.
 * False: all stays as it is.  From any context.
 */
bool seam_fdr_take_back(uint32_t function, uint64_t max_ticks);

#endif /* SEAM_FDR_TAKE_BACK_H */
