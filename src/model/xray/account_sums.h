/* SPDX-License-Identifier: MIT */
/*
 * account_sums.h - the sums of one worker, and how those of parts are joined
 *
 * Private to account.c, account_sums.c and account_merge.c.  A worker adds the
 * calls of its streams to one struct seam_sums.  A part of a divided stream
 * has one of its own: where it begins, the calls that are open are not known,
 * so its sums rest on assumptions.  seam_sums_join() checks them against the
 * part before it and corrects what depends on the open calls.
 */
#ifndef SEAM_ACCOUNT_SUMS_H
#define SEAM_ACCOUNT_SUMS_H

#include "base/index.h"
#include "model/xray/account.h"
#include "model/xray/stream_calls.h"

/* In a part that is not a stream's first: the exit of a call open before it. */
struct seam_outer_exit {
	uint64_t ns;
	uint64_t child_ns;	/* in calls that it made in this part */
	uint64_t total_ns;	/* sum_ns[1] of its function at that time */
	uint32_t function;
};

/*
 * The sums of a function, as few as possible: a call changes two of them and
 * a bucket.  The number of calls is the sum of the buckets.
 */
struct seam_sums_row {
	uint64_t sum_ns[2];		/* of recursive, of outermost calls */
	uint64_t child_ns;
	uint64_t min_ns, max_ns;
	uint32_t function;		/* XRay id */
	/* as in struct seam_account_row */
	uint32_t octave[SEAM_HISTOGRAM_OCTAVES];
};

struct seam_sums {
	struct seam_sums *next;		/* owned by account.c */
	struct seam_calls calls;
	SEAM_ARRAY(struct seam_sums_row) rows;
	uint32_t *row_of;		/* by slot; 0: none yet */
	size_t n_slots;			/* that row_of has room for */
	SEAM_ARRAY(struct seam_octave) octaves;
	SEAM_ARRAY(struct seam_account_edge) edges;
	uint64_t n_in_runs;
	struct seam_index edge_index;
	SEAM_ARRAY(struct seam_account_call) slowest;	/* heap, least first */
	const struct seam_account_options *options;
	uint32_t stream;
	struct seam_time_range range;
	struct seam_xray_problems problems;
	/* of a part that is not its stream's first */
	SEAM_ARRAY(struct seam_outer_exit) exits;	/* innermost first */
	SEAM_ARRAY(uint32_t) closed;	/* functions assumed not to be open
					 * before it */
	uint64_t first_ns;		/* of its events; UINT64_MAX: none */
	struct seam_xray_batch batch;
};

/* Count the calls of @stream.  An error is in sums->calls.error. */
void seam_sums_count(struct seam_sums *sums,
		     const struct seam_trace *trace, uint32_t stream);

/* Blocks of a stream. */
struct seam_part {
	uint32_t stream;
	size_t first, n;
};

/*
 * Count the calls of @part, which is its stream's first, or (@goes_on) the one
 * after those that @sums has counted.  Calls stay open at the end.
 */
void seam_sums_count_part(struct seam_sums *sums,
			  const struct seam_trace *trace,
			  const struct seam_part *part, bool goes_on);

/*
 * Count the calls of @part, not its stream's first, without the calls that are
 * open where it begins.  calls.error is -EAGAIN where that is not possible.
 */
void seam_sums_count_inner(struct seam_sums *sums,
			   const struct seam_trace *trace,
			   const struct seam_part *part);

/*
 * Add to @sums @next, of the part after it: calls that are open in @sums go on
 * in @next and are counted where they end, and the totals of @next are
 * corrected where they depend on calls open before.  False, and nothing has
 * changed, where an assumption of @next does not hold: the part must be
 * counted again by seam_sums_count_part().  Cost: O(calls open in either).
 */
bool seam_sums_join(struct seam_sums *sums, struct seam_sums *next);

/* End the calls that are still open. */
void seam_sums_end(struct seam_sums *sums);

void seam_sums_free(struct seam_sums *sums);

/* Longer calls first; equal ones in the order of the program; for qsort(). */
int seam_account_by_length(const void *a, const void *b);

/* Add up the list of @sums, sort and cut.  0 or -ENOMEM. */
int seam_account_merge(struct seam_account *account,
		       const struct seam_sums *sums, size_t n_slowest);

#endif /* SEAM_ACCOUNT_SUMS_H */
