/* SPDX-License-Identifier: MIT */
/*
 * commit.h - the last step of each record that a trampoline does not write
 *
 * A restartable sequence (fdr_thread.h has the reason).  Where rseq is refused
 * nothing restarts, and the caller blocks signals.
 */
#ifndef SEAM_FDR_COMMIT_H
#define SEAM_FDR_COMMIT_H

#include "traced/fdr/record/fdr_thread.h"

/*
 * At the cursor, store @n_words of @words, then @bytes of @payload; and set
 * the cursor to @end, with the state {@tsc, @state_cpu}.  All is within one
 * chunk.  From the cursor to @end are an odd number of words, except from the
 * start of a chunk, and where the state stays as it is.
 */
struct seam_fdr_put {
	struct seam_fdr_state *state;	/* of the area */
	uint64_t cursor, end;
	const uint64_t *words;
	uint64_t n_words;
	const void *payload;
	uint64_t bytes;			/* of the payload */
	uint64_t padding;		/* zeroes after it */
	uint64_t tsc;
	uint32_t cpu;			/* where the caller runs */
	uint32_t state_cpu;
	/* where @end goes back: not 0: the area is copied; NULL: never */
	const _Atomic uint32_t *held;
};

/*
 * False: the thread was interrupted or has moved since the caller looked at
 * the cursor and the CPU, or the area is held.  Nothing has changed but memory
 * after the cursor, and the caller builds its record again.
 */
bool seam_fdr_commit(const struct seam_fdr_put *put);

#endif /* SEAM_FDR_COMMIT_H */
