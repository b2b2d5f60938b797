/* SPDX-License-Identifier: MIT */
/*
 * source_own.h - areas in the program's own memory, where no recorder is
 *
 * A full trace: an area has two chunks.  The thread that has filled both
 * writes them to the process' log itself, and goes on; there is no other
 * thread.  What cannot be written, as on a full disk, is lost and counted.
 *
 * A flight recorder: an area overwrites itself, and is written when somebody
 * asks for it (seam_fdr_own_write()); areas of threads that have ended stay
 * until another thread needs one.
 *
 * In a forked child everything here reads as in a process that has not
 * recorded: its slots are wiped, its areas are not mapped, and it begins a log
 * of its own.
 */
#ifndef SEAM_FDR_SOURCE_OWN_H
#define SEAM_FDR_SOURCE_OWN_H

#include "target/fdr/record/source.h"
#include "wire/xray/xray_chunk.h"
#include "wire/xray/xray_log_file.h"

enum {
	SEAM_FDR_OWN_AREAS = 1024,	/* threads at a time, at most */
	SEAM_FDR_OWN_AREA_BYTES = 2 * SEAM_XRAY_CHUNK_BYTES,
	SEAM_FDR_OWN_FLIGHT_BYTES = 1 << 20,
	/* of all areas; beyond it threads record nothing, which is counted */
	SEAM_FDR_OWN_BYTES = 256 << 20,
};

struct seam_fdr_own_settings {
	uint64_t area_bytes;	/* a power of two; 0: as above */
	bool is_flight;
	/*
	 * The log of the calling process; NULL: nothing can be written now.
	 * Called before each chunk that is written there, by one thread at a
	 * time, with signals blocked; uses no heap.
	 */
	struct seam_xray_log *(*log)(void);
};

/* Counts that only grow. */
struct seam_fdr_own_counts {
	uint64_t n_records;	/* written; function records and events */
	uint64_t n_lost;	/* records: no area, or not written */
	uint64_t n_bad_bytes;	/* in chunks; a defect, or stray stores */
	int error;		/* -errno of the last write that failed */
};

/*
 * Set up, before the first sled is patched; again only while nothing is
 * patched, and of the same sizes.  Returns 0; -EINVAL; -ENOMEM; -ENOSYS before
 * Linux 4.14.
 */
int seam_fdr_own_begin(const struct seam_fdr_own_settings *settings);

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

extern const struct seam_fdr_source seam_fdr_source_own;

#endif /* SEAM_FDR_SOURCE_OWN_H */
