/* SPDX-License-Identifier: MIT */
/*
 * marked.h - intervals that a program marks by pairs of events
 *
 * An event whose data begins with the word "begin" begins an interval, one with
 * "end" ends it.  A typed event has the interval's name as the name of its
 * type; of a custom event it is the next word:
 *
 *	custom	"begin checkout order 42" ... "end checkout"
 *	typed	type "gc": "begin full" ... "end"
 *
 * An end belongs to the last begin of its name on the same thread that has no
 * end yet.  Intervals of different names may overlap in any way, and need not
 * nest with calls.
 *
 * Where records were lost or a block is damaged, no begin before that place is
 * joined with an end after it: which begin that end had is not known.
 */
#pragma once

#include "model/profile/timeline.h"
#include "model/xray/account.h"
#include "model/xray/call_waits.h"

enum { SEAM_MARKED_MAX_OPEN = 64 };	/* of a thread; the oldest is dropped */

/* Begins without an end, and ends without a begin. */
struct seam_marked_unpaired {
	uint64_t n_begins, n_ends;
};

/*
 * Pass the intervals of stream @stream of @trace to @found as they end, with
 * the part of @waits in them, and add what has no partner to @unpaired, which
 * may be NULL.  0, -ENOMEM, or what @found returned.  Cost: the reading of the
 * stream.
 */
int seam_marked_read(const struct seam_trace *trace, uint32_t stream,
		     struct seam_wait_cursor waits, seam_marked_fn *found,
		     void *context, struct seam_marked_unpaired *unpaired);

/* Zeroed is valid and empty. */
struct seam_marked_sums {
	/*
	 * Only rows and octaves, for seam_account_quantile(); a row's function
	 * is a string of names, its total the sum of all its intervals.
	 */
	struct seam_account account;
	struct seam_strings names;
	struct seam_index rows;		/* by name */
	struct seam_time_range range;
	struct seam_marked_unpaired unpaired;
};

/*
 * Add up the intervals of @trace that begin in its range, by name.  @waits: of
 * the threads; NULL: not known.  0 or -ENOMEM.
 */
int seam_marked_sums_build(struct seam_marked_sums *sums,
			   const struct seam_trace *trace,
			   const struct seam_thread_waits *waits);
void seam_marked_sums_fini(struct seam_marked_sums *sums);
