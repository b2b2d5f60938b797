/* SPDX-License-Identifier: MIT */
/*
 * filter.h - the calls of a thread that are open, by where their frames are
 *
 * A call is known by the address of its return address, from its entry to its
 * exit.  Exceptions and longjmp() leave frames without an exit, so calls are
 * not counted up and down: frames at or below the frame of a new call are gone.
 * (Frames of a handler are further below: a frame that was left counts there,
 * until the function that caught the exception calls another.)
 *
 * A thread's own; signal handlers may call these functions at any time, and
 * leave the filter as it was, as they return before the interrupted call goes
 * on.  Programs that switch stacks by themselves, and handlers on an alternate
 * stack above the thread's, may get the depth of another stack's calls.
 */
#ifndef SEAM_FDR_FILTER_H
#define SEAM_FDR_FILTER_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

enum {
	SEAM_FDR_MAX_DEPTH = 256,
	SEAM_FDR_MAX_TIMED = 64,	/* more: the oldest is not timed */
};

/* All zeroes: no call is open. */
struct seam_fdr_filter {
	/* recorded calls, outermost first: addresses of return addresses */
	_Atomic uint32_t n_open;
	_Atomic uint32_t n_timed;
	_Atomic uint64_t open[SEAM_FDR_MAX_DEPTH];
	/* calls whose length is of interest, in no order */
	struct seam_fdr_timed {
		uint64_t frame, tsc;
		uint32_t function;
	} timed[SEAM_FDR_MAX_TIMED];
};

/*
 * A call begins at @frame.  Whether fewer than @max_depth recorded calls, at
 * most SEAM_FDR_MAX_DEPTH, are open; then the call is added.  With @is_inlined
 * the caller may have an equal frame.
 */
bool seam_fdr_depth_enter(struct seam_fdr_filter *filter, uint64_t frame,
			  bool is_inlined, uint32_t max_depth);

/* The call at @frame ends.  Whether the call is recorded. */
bool seam_fdr_depth_leave(struct seam_fdr_filter *filter, uint64_t frame);

/* A call of @function begins at @frame and @tsc, and is to be timed. */
void seam_fdr_timed_enter(struct seam_fdr_filter *filter, uint64_t frame,
			  uint32_t function, uint64_t tsc);

/* The call ends.  When it began; 0: not known. */
uint64_t seam_fdr_timed_leave(struct seam_fdr_filter *filter, uint64_t frame,
			      uint32_t function);

#endif /* SEAM_FDR_FILTER_H */
