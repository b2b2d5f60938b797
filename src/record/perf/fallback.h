/* SPDX-License-Identifier: MIT */
/*
 * fallback.h - give up what the kernel refuses, step by step
 *
 * Where a recording makes sense without what was refused, it goes on without
 * it, and the step is noted: the kernel's own samples for a user without the
 * right to them, features newer than the kernel.
 */
#ifndef SEAM_FALLBACK_H
#define SEAM_FALLBACK_H

#include "record/events/event.h"

/* Things that a recording can do without; bits of left_out. */
enum seam_left_out {
	SEAM_LEFT_OUT_KERNEL = 1 << 0,		/* samples of the kernel */
	SEAM_LEFT_OUT_BUILD_IDS = 1 << 1,	/* of files, in MMAP2 */
	SEAM_LEFT_OUT_LOST_COUNTS = 1 << 2,	/* PERF_FORMAT_LOST */
	SEAM_LEFT_OUT_KSYMBOLS = 1 << 3,	/* names of BPF programs */
	SEAM_LEFT_OUT_RING_SPACE = 1 << 4,	/* rings are smaller */
};

/* What each bit is called in the manifest; NULL behind the last. */
const char *seam_left_out_name(int bit_index);

/*
 * The kernel refused @event, one of the @n @events, with errno @code.  True
 * when something was given up, which is put down in *@left_out: try again.
 * Ends: each step is taken at most once.
 */
bool seam_fallback(struct seam_event *events, size_t n,
		  struct seam_event *event, int code, unsigned int *left_out);

/*
 * Why opening @event of thread @tid, or of all of them (-1), gave @code, and
 * what to do about it.  Returns @code.
 */
int seam_fallback_refusal(int code, const struct seam_event *event, int tid,
			 struct seam_err *err);

#endif /* SEAM_FALLBACK_H */
