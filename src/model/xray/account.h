/* SPDX-License-Identifier: MIT */
/*
 * account.h - how often each function was called and how long it took
 *
 * Streams over a trace on all cores and keeps no call: for each function a
 * few sums and a histogram.  Counts, sums, minima and maxima are exact.  A
 * call counts, whole, when it begins in the trace's range.
 *
 * Estimator: a quantile is the call of the nearest rank, ceil(fraction * n):
 * the p99 of two calls is the slower one.  The rank is exact, and so are the
 * durations of the first and the last rank, hence of all where there are three
 * calls or fewer.  The others come from a log-linear histogram, 16 buckets for
 * each power of two; the value given is the middle of its bucket, kept between
 * minimum and maximum, so it is off by at most 1/32 of the true one, and the
 * bucket's width is 1/16.
 */
#pragma once

#include "model/profile/waits.h"
#include "model/xray/calls.h"
#include "model/xray/trace.h"

#define SEAM_QUANTILE_ERROR 0.0625

enum {
	SEAM_HISTOGRAM_OCTAVES = 61,	/* 0..15, then one a power of two */
	SEAM_HISTOGRAM_STEPS = 16,	/* buckets of each */
};

/* Buckets of one octave of one function. */
struct seam_octave {
	uint64_t n[SEAM_HISTOGRAM_STEPS];
};

struct seam_account_row {
	uint32_t function;		/* XRay id */
	uint64_t count;
	uint64_t min_ns, max_ns;
	uint64_t sum_ns;		/* of all calls, recursive ones too */
	uint64_t total_ns;		/* of outermost calls: once each ns */
	uint64_t self_ns;		/* without what it called */
	/* sums so far: of recursive, of outermost calls; of what they called */
	uint64_t of_depth_ns[2];
	uint64_t child_ns;
	/* of total and of self, the thread had no CPU (call_waits.h) */
	struct seam_off_time off, self_off;
	/* in the account's octaves; 0: no call was so long */
	uint32_t octave[SEAM_HISTOGRAM_OCTAVES];
};

/*
 * Calls of one function by another; caller SEAM_NONE: a thread's root.  The
 * times of all edges to a function add up to its total.
 */
struct seam_account_edge {
	uint32_t caller, callee;	/* XRay ids */
	uint64_t count;
	uint64_t total_ns;		/* of outermost calls of callee */
};

/* A single call. */
struct seam_account_call {
	uint64_t begin_ns, end_ns;
	uint32_t function;
	uint32_t stream;
};

struct seam_account_options {
	bool edges;
	size_t n_slowest;		/* single calls to list; 0 to 4096 */
	/* Selects the functions of these; NULL: all. */
	bool (*wanted)(void *context, uint32_t function);
	void *context;
};

/* Zeroed is valid and empty. */
struct seam_account {
	SEAM_ARRAY(struct seam_account_row) rows;	/* by sum, descending */
	SEAM_ARRAY(struct seam_octave) octaves;
	SEAM_ARRAY(struct seam_account_edge) edges;	/* by total, descending */
	SEAM_ARRAY(struct seam_account_call) slowest;	/* longest first */
	uint64_t n_calls;
	uint64_t repairs[SEAM_N_REPAIRS];
	struct seam_xray_problems problems;
	bool in_ticks;			/* "ns" are ticks: no frequency */
	uint64_t n_in_runs;		/* calls that ended in runs */
	/* those of rows (call_waits.h); borrowed; NULL: not known */
	const struct seam_thread_waits *waits;
	uint64_t n_logged;		/* custom and typed events */
};

/* 0, or -ENOMEM.  Cost: about 4 ns a record. */
int seam_account_build(struct seam_account *account,
		       const struct seam_trace *trace,
		       const struct seam_account_options *options,
		       struct seam_err *err);
void seam_account_fini(struct seam_account *account);

/* Count @ns in the histogram of @row alone.  False: no memory. */
bool seam_account_count(struct seam_account *account,
			struct seam_account_row *row, uint64_t ns);

/*
 * The duration that at least @fraction of the calls did not exceed: that of
 * the call of rank ceil(@fraction * count), the shortest being of rank 1.
 */
uint64_t seam_account_quantile(const struct seam_account *account,
			       const struct seam_account_row *row,
			       double fraction);

/* The bucket of @ns, and the least duration in a bucket. */
static inline unsigned int seam_histogram_bucket(uint64_t ns)
{
	/* a shift to the right that leaves the top bit and 4 more */
	unsigned int shift = (unsigned int)__builtin_clzll(
				ns | SEAM_HISTOGRAM_STEPS) ^ 63;

	shift -= 4;
	return shift * SEAM_HISTOGRAM_STEPS + (unsigned int)(ns >> shift);
}

static inline uint64_t seam_histogram_least(unsigned int bucket)
{
	unsigned int octave = bucket / SEAM_HISTOGRAM_STEPS;
	uint64_t step = bucket % SEAM_HISTOGRAM_STEPS;

	return octave == 0 ? step :
	       (SEAM_HISTOGRAM_STEPS + step) << (octave - 1);
}
