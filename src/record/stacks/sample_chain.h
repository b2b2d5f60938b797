/* SPDX-License-Identifier: MIT */
/*
 * sample_chain.h - a sample with another callchain
 *
 * The record of a sample, without its registers and its copy of the stack,
 * the user part of its callchain replaced by the frames of a walk, with RAW
 * data about the walk.  All else is as the kernel wrote it.
 *
 * Threads: nothing is shared.
 */
#ifndef SEAM_SAMPLE_CHAIN_H
#define SEAM_SAMPLE_CHAIN_H

#include "unwind/walk/walk.h"
#include "wire/perf/perf_sample.h"

struct seam_sample_chain {
	const void *record;		/* a SAMPLE with its header */
	const struct seam_perf_sample *sample;	/* as it was read */
	/* The new user part; NULL: the chain stays as it is. */
	const struct seam_unwind_stack *stack;
	size_t n_before;	/* words of the chain before the user part */
	/* RAW data with its size before it; empty: the sample's own, if any. */
	struct seam_bytes raw;
};

/* The size of the new record; outer frames beyond 64 KiB are left out. */
size_t seam_sample_chain_bytes(const struct seam_sample_chain *chain);

/* Write the new record, of that size, to @to. */
void seam_sample_chain_write(const struct seam_sample_chain *chain,
			     uint8_t *to);

#endif /* SEAM_SAMPLE_CHAIN_H */
