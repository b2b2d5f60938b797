/* SPDX-License-Identifier: MIT */
/*
 * account_sums.h - the sums of one worker, and how those of parts are joined
 *
 * Private to account.c and account_sums.c.  A worker adds the calls of its
 * streams to one struct seam_sums.  A part of a divided stream
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
	SEAM_ARRAY(uint32_t) row_of;	/* by slot; 0: none yet */
	/*
	 * Its octaves, edges, problems, and slowest calls, with up to as many
	 * that are faster; in any order.
	 */
	struct seam_account account;
	struct seam_index edge_index;
	struct seam_account_call least;	/* faster calls are not the slowest */
	const struct seam_account_options *options;
	uint32_t stream;
	struct seam_time_range range;
	/* of a part that is not its stream's first */
	SEAM_ARRAY(struct seam_outer_exit) exits;	/* innermost first */
	SEAM_ARRAY(uint32_t) closed;	/* functions assumed not to be open
					 * before it */
	uint64_t first_ns;		/* of its events; UINT64_MAX: none */
	struct seam_xray_batch batch;
};

/* Zeroed sums; NULL: no memory.  @options outlive them. */
struct seam_sums *seam_sums_new(const struct seam_account_options *options);

/* Blocks of a stream. */
struct seam_part {
	uint32_t stream;
	size_t first, n;
};

enum seam_part_place {
	SEAM_PART_FIRST,	/* its stream's first */
	SEAM_PART_NEXT,		/* after the part that the sums counted last */
	SEAM_PART_INNER,	/* the calls open before it are not known */
};

/*
 * Count the calls of @part.  Calls stay open at its end.  An error is in
 * calls.error: -EAGAIN where an inner part cannot be counted by itself.
 */
void seam_sums_count(struct seam_sums *sums, const struct seam_trace *trace,
		     const struct seam_part *part,
		     enum seam_part_place place);

/*
 * Add to @sums @next, of the part after it: calls that are open in @sums go on
 * in @next and are counted where they end, and the totals of @next are
 * corrected where they depend on calls open before.  False, and nothing has
 * changed, where an assumption of @next does not hold: the part must be
 * counted again, as @sums' next.  Cost: O(calls open in either).
 */
bool seam_sums_join(struct seam_sums *sums, struct seam_sums *next);

/* End the calls that are still open. */
void seam_sums_end(struct seam_sums *sums);

void seam_sums_free(struct seam_sums *sums);

/* Add @from, whose calls have ended, to @sums.  0 or calls.error. */
int seam_sums_add(struct seam_sums *sums, const struct seam_sums *from);

/* Put the slowest calls in order, the longest first, and cut the others. */
void seam_sums_cut_slowest(struct seam_sums *sums);

#endif /* SEAM_ACCOUNT_SUMS_H */
