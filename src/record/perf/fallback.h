/* SPDX-License-Identifier: MIT */
/*
 * fallback.h - do without what the kernel refuses, step by step
 *
 * Where a recording is useful without the refused feature, it goes on, and the
 * feature is noted as left out: samples of the kernel for a user without the
 * privilege, features newer than the kernel.
 */
#ifndef SEAM_FALLBACK_H
#define SEAM_FALLBACK_H

#include "record/events/event.h"

/* Features that a recording can do without; bits of left_out. */
enum seam_left_out {
	SEAM_LEFT_OUT_KERNEL = 1 << 0,		/* samples of the kernel */
	SEAM_LEFT_OUT_BUILD_IDS = 1 << 1,	/* of files, in MMAP2 */
	SEAM_LEFT_OUT_LOST_COUNTS = 1 << 2,	/* PERF_FORMAT_LOST */
	SEAM_LEFT_OUT_KSYMBOLS = 1 << 3,	/* names of BPF programs */
	SEAM_LEFT_OUT_RING_SPACE = 1 << 4,	/* rings are smaller */
	SEAM_LEFT_OUT_STACK_COPIES = 1 << 5,	/* of user stacks */
};

/* The name of each bit in the manifest; NULL after the last. */
const char *seam_left_out_name(int bit_index);

/*
 * The kernel refused @event, one of the @n @events, with errno @code.  True
 * when a feature was removed, which is noted in *@left_out: try again.  Each
 * step is taken at most once, so this ends.
 */
bool seam_fallback(struct seam_event *events, size_t n,
		   struct seam_event *event, int code, unsigned int *left_out);

/*
 * Set the message: why opening @event for thread @tid, or for all (-1), failed
 * with @code, and what to do about it.  Returns @code.
 */
int seam_fallback_refusal(int code, const struct seam_event *event, int tid,
			  struct seam_err *err);

#endif /* SEAM_FALLBACK_H */
