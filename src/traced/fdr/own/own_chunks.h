/* SPDX-License-Identifier: MIT */
/*
 * own_chunks.h - what threads have recorded, to the program's own logs
 *
 * Not in handlers.  Any thread may call; others record meanwhile.
 */
#ifndef SEAM_FDR_OWN_CHUNKS_H
#define SEAM_FDR_OWN_CHUNKS_H

#include "wire/xray/xray_log_file.h"

/* Counts that only grow. */
struct seam_fdr_own_counts {
	uint64_t n_records;	/* written; function records and events */
	uint64_t n_lost;	/* records: no area, or not written */
	uint64_t n_paused;	/* records: left out after a trigger */
	uint64_t n_bad_bytes;	/* in chunks; a defect, or stray stores */
	/* -errno of the first write that failed, since seam_fdr_own_discard() */
	int error;
};

/* Forget what has been recorded so far, as at the start of another log. */
void seam_fdr_own_discard(void);

/*
 * Write to @log, NULL: that of the process, what all threads have recorded.  A
 * full trace: once, and what is recorded from now on will be in a chunk of its
 * own; a flight recorder: as often as wanted.  Threads may record meanwhile.
 * Returns 0 or the first -errno.
 *
 * @counts are set to what was written; NULL: the process' own have it too.
 */
int seam_fdr_own_write(struct seam_xray_log *log,
			 struct seam_fdr_own_counts *counts);

/* The process' own, of logs that threads have written themselves too. */
void seam_fdr_own_count(struct seam_fdr_own_counts *counts);

/* Call @work while no thread uses the log of the process. */
void seam_fdr_own_with_log(void (*work)(void *context), void *context);

/* Whether the function is in what was written. */
bool seam_fdr_own_has_seen(uint32_t function);

/* Whether anything was recorded since seam_fdr_own_discard(), or a fork. */
bool seam_fdr_own_has_records(void);

#endif /* SEAM_FDR_OWN_CHUNKS_H */
