/* SPDX-License-Identifier: MIT */
/*
 * source_own.h - areas in the program's own memory, where no recorder is
 *
 * A full trace: an area has two chunks.  The thread that has filled both
 * writes them to the process' log itself, and goes on; there is no other
 * thread.  What cannot be written, as on a full disk, is lost and counted.
 *
 * A flight recorder: an area overwrites itself, and is written on request
 * (own_chunks.h); areas of threads that have ended stay until another thread
 * needs one.
 *
 * In a forked child everything here reads as in a process that has not
 * recorded: its slots are wiped, its areas are not mapped, and it begins a log
 * of its own.
 */
#ifndef SEAM_FDR_SOURCE_OWN_H
#define SEAM_FDR_SOURCE_OWN_H

#include "traced/fdr/record/source.h"
#include "wire/xray/xray_chunk.h"
#include "wire/xray/xray_log_file.h"

enum {
	SEAM_FDR_OWN_AREAS = 1024,	/* threads at a time, at most */
	SEAM_FDR_OWN_AREA_BYTES = 2 * SEAM_XRAY_CHUNK_BYTES,
	SEAM_FDR_OWN_FLIGHT_BYTES = 1 << 20,
	/* of all areas; beyond it threads record nothing, which is counted */
	SEAM_FDR_OWN_BYTES = 256 << 20,
};

/*
 * Set up, before the first sled is patched; again only while nothing is
 * patched, and with the same @is_flight.  Returns 0; -EINVAL; -ENOMEM, also
 * before Linux 4.14.
 *
 * @log returns the log of the calling process; NULL: nothing can be written
 * now.  It is called before each chunk that is written there, by one thread at
 * a time, with signals blocked, and uses no heap.
 */
int seam_fdr_own_begin(bool is_flight, struct seam_xray_log *(*log)(void));

extern const struct seam_fdr_source seam_fdr_source_own;

#endif /* SEAM_FDR_SOURCE_OWN_H */
