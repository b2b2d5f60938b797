/* SPDX-License-Identifier: MIT */
/* kept_counts.c - causes and sums; see kept_counts.h */
#include "record/bundle/kept_counts.h"

#include <errno.h>

static enum seam_kept_cause cause_of(int code)
{
	switch (-code) {
	case 0:
	case ENOENT:
	case ESRCH: return SEAM_KEPT_GONE;
	case EAGAIN: return SEAM_KEPT_LEASED;
	case EBUSY:
	case ETIMEDOUT: return SEAM_KEPT_TIMED_OUT;
	case EFBIG: return SEAM_KEPT_TOO_LARGE;
	case EMFILE:
	case ENFILE:
	case ENOMEM: return SEAM_KEPT_TOO_MANY;
	default: return SEAM_KEPT_REFUSED;
	}
}

void seam_kept_counts_explain(struct seam_kept_counts *counts,
			      enum seam_kept_cause cause,
			      const struct seam_err *why)
{
	if (!why || !why->n_causes || counts->why.n_causes)
		return;
	counts->why = *why;
	counts->why_cause = cause;
}

void seam_kept_counts_leave_out(struct seam_kept_counts *counts, int code,
				const struct seam_err *why)
{
	counts->n_left_out[cause_of(code)]++;
	seam_kept_counts_explain(counts, cause_of(code), why);
}

void seam_kept_counts_add(struct seam_kept_counts *counts,
			  const struct seam_kept_counts *other)
{
	counts->n_copied += other->n_copied;
	counts->n_bytes += other->n_bytes;
	for (size_t i = 0; i < SEAM_KEPT_N_CAUSES; i++)
		counts->n_left_out[i] += other->n_left_out[i];
	seam_kept_counts_explain(counts, other->why_cause, &other->why);
}

void seam_kept_counts_timed_out(void *counts, uint64_t tag)
{
	(void)tag;
	seam_kept_counts_leave_out(counts, -ETIMEDOUT, NULL);
}
