/* SPDX-License-Identifier: MIT */
/*
 * tsc_tie.h - a moment on the time stamp counter and on CLOCK_MONOTONIC
 *
 * Two of them give the counter's frequency.  A tie is right to some 30 ns, so a
 * frequency over 20 ms to 3 ppm.
 */
#ifndef SEAM_FDR_TSC_TIE_H
#define SEAM_FDR_TSC_TIE_H

#include "wire/xray/xray.h"

struct seam_fdr_tie {
	uint64_t tsc, ns;
};

void seam_fdr_tie_now(struct seam_fdr_tie *tie);

/* ns since then. */
uint64_t seam_fdr_tie_age(const struct seam_fdr_tie *tie);

/* Return when the frequency since @start is right to 50 ppm: within 2 ms. */
void seam_fdr_tie_wait(const struct seam_fdr_tie *start);

/*
 * The header of a log: with the frequency from @start to now, and the flags
 * of this machine's counter.
 */
void seam_fdr_tie_header(const struct seam_fdr_tie *start,
			 struct seam_xray_header *header);

#endif /* SEAM_FDR_TSC_TIE_H */
