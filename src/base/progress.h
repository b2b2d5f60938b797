/* SPDX-License-Identifier: MIT */
/*
 * progress.h - the progress of a slow job, on a terminal
 *
 * Nothing is shown unless standard error is a terminal, the job has run for
 * 0.3 s and --quiet was not given.  A line is drawn at most ten times a second
 * and wiped at the end, so that no output mixes with it.
 *
 * Threads: any may call seam_progress_step(); it costs an atomic add
 * and, rarely, a write.
 */
#pragma once

#include "base/base.h"

#include <stdatomic.h>

struct seam_progress {
	const char *verb;		/* "reading", "resolving" */
	uint64_t total;			/* 0 when it is not known */
	_Atomic uint64_t done;
	_Atomic uint64_t next_draw_ns;	/* CLOCK_MONOTONIC; UINT64_MAX: never */
	_Atomic bool drawn;
};

/* Turn progress off (--quiet) for the whole process; before any thread. */
void seam_progress_silence(void);

/* @verb must outlive the job. */
void seam_progress_begin(struct seam_progress *p, const char *verb,
			 uint64_t total);
void seam_progress_step(struct seam_progress *p, uint64_t amount);
void seam_progress_end(struct seam_progress *p);
