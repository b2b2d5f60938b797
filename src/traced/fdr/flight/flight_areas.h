/* SPDX-License-Identifier: MIT */
/*
 * flight_areas.h - the newest calls of each thread, in the program's memory
 *
 * The source of areas of a program that keeps a flight recorder and has no
 * recorder (doc/design/standalone.md).  An area overwrites itself; that of a
 * thread that has ended stays until another thread needs one.
 *
 * In a forked child everything here reads as in a process that has not
 * recorded: its slots are wiped, and its areas are not mapped.
 *
 * Not in handlers.  Threads: one at a time; others record meanwhile.
 */
#ifndef SEAM_FDR_FLIGHT_AREAS_H
#define SEAM_FDR_FLIGHT_AREAS_H

#include "traced/fdr/record/source.h"
#include "wire/xray/xray_chunk.h"

enum {
	SEAM_FDR_FLIGHT_AREA_BYTES = 1 << 20,
	/* threads at a time; others record nothing, which is counted */
	SEAM_FDR_FLIGHT_AREAS = 256,
};

/*
 * Before the first sled is patched, once.  0; -ENOMEM, also before Linux 4.14.
 */
int seam_fdr_flight_areas_init(void);

extern const struct seam_fdr_source seam_fdr_source_flight;

/* Forget what has been recorded so far; no sled is patched. */
void seam_fdr_flight_areas_discard(void);

/*
 * Call @put for each chunk (wire/xray/xray_chunk.h) that is in the areas, those
 * of a thread in their order, until it is not 0: with a private copy.  What it
 * returned at last; or -ENOMEM.
 */
int seam_fdr_flight_areas_each(int (*put)(void *context, const uint8_t *chunk,
					  size_t size),
			       void *context);

/* Records that had no area so far, and that were left out after a trigger. */
uint64_t seam_fdr_flight_lost(void);
uint64_t seam_fdr_flight_paused(void);

/* Whether a thread has recorded since the last discard, or a fork. */
bool seam_fdr_flight_has_records(void);

/*
 * One thread at a time copies: false where another one
 * stays for 10 s.  In a forked child none is.
 */
bool seam_fdr_flight_lock(void);
void seam_fdr_flight_unlock(void);

#endif /* SEAM_FDR_FLIGHT_AREAS_H */
