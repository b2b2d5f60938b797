/* SPDX-License-Identifier: MIT */
/*
 * kept_counts.h - counts of files copied into a bundle, or left out by cause
 *
 * One set of counts is of the mapped files in elf/, another of the dumps and
 * maps in jit/.  A message names each cause (finish_bundle.c), and the
 * manifest has the sums of both sets.
 */
#ifndef SEAM_KEPT_COUNTS_H
#define SEAM_KEPT_COUNTS_H

#include "base/base.h"
#include "base/err.h"

enum seam_kept_cause {
	SEAM_KEPT_GONE,		/* before it could be opened */
	SEAM_KEPT_REFUSED,	/* its user may not read it, or not trusted */
	SEAM_KEPT_LEASED,	/* under another process's write lease */
	SEAM_KEPT_TIMED_OUT,	/* not read in time */
	SEAM_KEPT_TOO_LARGE,	/* beyond a limit of bytes */
	SEAM_KEPT_TOO_MANY,	/* beyond a limit of files, processes, memory */
	SEAM_KEPT_NOT_WRITTEN,
	SEAM_KEPT_INTERRUPTED,	/* by a signal, while the recording ended */
	SEAM_KEPT_N_CAUSES,
};

struct seam_kept_counts {
	uint64_t n_copied;
	uint64_t n_bytes;
	uint64_t n_left_out[SEAM_KEPT_N_CAUSES];
	struct seam_err why;	/* the first message ... */
	enum seam_kept_cause why_cause;	/* ... and its cause */
};

/*
 * Count a file that was left out: @code is 0 (it was never opened) or the
 * -errno of opening or checking it.  @why may be NULL or empty.
 */
void seam_kept_counts_leave_out(struct seam_kept_counts *counts, int code,
				const struct seam_err *why);

/* Store @why for @cause, unless it is empty or not the first. */
void seam_kept_counts_explain(struct seam_kept_counts *counts,
			      enum seam_kept_cause cause,
			      const struct seam_err *why);

void seam_kept_counts_add(struct seam_kept_counts *counts,
			  const struct seam_kept_counts *other);

/* given_up() of a helper's job whose context is a struct seam_kept_counts. */
void seam_kept_counts_timed_out(void *counts, uint64_t tag);

#endif /* SEAM_KEPT_COUNTS_H */
