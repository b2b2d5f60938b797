/* SPDX-License-Identifier: MIT */
/*
 * account_sums.h - what one worker counts, and how ledgers add up
 *
 * Private to account.c, account_sums.c and account_merge.c.
 */
#ifndef SEAM_ACCOUNT_SUMS_H
#define SEAM_ACCOUNT_SUMS_H

#include "base/index.h"
#include "model/xray/account.h"
#include "model/xray/stream_calls.h"

/* In a part from a thread's middle: the end of a call that was open before. */
struct seam_outer_exit {
	uint64_t ns;
	uint64_t child_ns;	/* in calls that it made in this part */
	uint64_t total_ns;	/* its function's sum_ns[1] at that time */
	uint32_t function;
};

/*
 * What is added up for a function, as little as will do: a call touches two
 * sums and a bucket.  The number of calls is in the buckets.
 */
struct seam_account_sums_row {
	uint64_t sum_ns[2];		/* of recursive, of outermost calls */
	uint64_t child_ns;
	uint64_t min_ns, max_ns;
	uint32_t function;		/* XRay id */
	/* as in struct seam_account_row */
	uint32_t octave[SEAM_HISTOGRAM_OCTAVES];
};

struct seam_account_sums {
	struct seam_account_sums *next;	/* owned by account.c */
	struct seam_calls calls;
	SEAM_ARRAY(struct seam_account_sums_row) rows;
	uint32_t *row_of;		/* by slot: row + 1; 0: none yet */
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
	/* of a part from a thread's middle */
	SEAM_ARRAY(struct seam_outer_exit) exits;	/* innermost first */
	SEAM_ARRAY(uint32_t) closed;	/* functions that must not be open */
					/* before, or it was counted wrong */
	uint64_t first_ns;		/* of its events; UINT64_MAX: none */
	struct seam_xray_batch batch;
};

/* Count the calls of @stream.  Failure is in ledger->calls.error. */
void seam_account_sums_count(struct seam_account_sums *ledger,
		       const struct seam_trace *trace, uint32_t stream);

/* Blocks of a stream. */
struct seam_part {
	uint32_t stream;
	size_t first, n;
};

/*
 * Count the calls of @part, which is its stream's first, or (@goes_on) the
 * one behind what @ledger has counted so far.  Calls stay open at the end.
 */
void seam_account_sums_count_part(struct seam_account_sums *ledger,
			    const struct seam_trace *trace,
			    const struct seam_part *part, bool goes_on);

/*
 * Count the calls of @part without knowing what is open where it begins.
 * Where that cannot be, calls.error is -EAGAIN.
 */
void seam_account_sums_count_inner(struct seam_account_sums *ledger,
			     const struct seam_trace *trace,
			     const struct seam_part *part);

/*
 * Put @next, of the part behind @ledger's, to it: the calls that are open in
 * @ledger go on in @next and are counted where they end, and what @next has
 * counted is put right where it had to know of them.  False, and nothing has
 * changed, when it cannot be: the part must be counted again by
 * seam_account_sums_count_part().  Cost: O(calls open in either).
 */
bool seam_account_sums_join(struct seam_account_sums *ledger, struct seam_account_sums *next);

/* End the calls that are still open. */
void seam_account_sums_end(struct seam_account_sums *ledger);

void seam_account_sums_free(struct seam_account_sums *ledger);

/* Longer calls first; equal ones in the order of the program; for qsort(). */
int seam_account_by_length(const void *a, const void *b);

/* Add up the list of @ledgers, sort and cut.  0 or -ENOMEM. */
int seam_account_merge(struct seam_account *account,
		       const struct seam_account_sums *ledgers, size_t n_slowest);

#endif /* SEAM_ACCOUNT_SUMS_H */
