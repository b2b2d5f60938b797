/* SPDX-License-Identifier: MIT */
/*
 * diff_stats.h - is the difference of two sets of runs more than chance?
 *
 * Welch's test on logarithms: runs of a program differ by factors, and the two
 * sides need not vary alike.  The result is a ratio with an interval.
 *
 * Own code in place of GSL's: GSL is under the GPL, and a program linked with
 * it would be too.  tests/report/test_diff_stats.c compares both.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

enum { SEAM_DIFF_LEAST_RUNS = 3 };	/* of a side, for a verdict */
#define SEAM_DIFF_LEVEL 0.05		/* of wrong verdicts */

/* Of the logarithms of a side's runs. */
struct seam_diff_side_stats {
	size_t n;
	double mean, variance;
	/*
	 * The least variance of one run's logarithm: that of rounding to whole
	 * samples, where runs happen to have the same number.  0: exact values.
	 */
	double least_variance;
};

/* The standard error of a side's mean; 0 without runs. */
double seam_diff_mean_error(const struct seam_diff_side_stats *side);

/* B in relation to A. */
struct seam_diff_test {
	double ratio;		/* of the geometric means */
	/*
	 * With SEAM_DIFF_LEAST_RUNS on each side, else p is 1 and the interval
	 * has no ends (0 and infinity).
	 */
	double p;
	double low, high;	/* 95 % interval of the ratio */
	double error, freedom;	/* standard error of log(ratio), degrees */
};

/* Everything but the interval.  Cost: about 1 us. */
struct seam_diff_test seam_diff_compare(const struct seam_diff_side_stats *a,
					const struct seam_diff_side_stats *b);

/* The interval as well.  Cost: about 20 us. */
void seam_diff_find_interval(struct seam_diff_test *test);

/*
 * Replace the @n values of @p by those of Benjamini and Hochberg: rejecting all
 * up to q makes at most a share q of the rejections wrong, on average.
 * @order is scratch memory for @n numbers.
 * Source: Benjamini, Hochberg, J. R. Statist. Soc. B 57 (1995), 289-300.
 */
void seam_diff_adjust(double *p, size_t *order, size_t n);

/*
 * Student's t distribution: the probability that |t| is at least @t, and the @t
 * of which it is @p.  @freedom > 0, 0 < @p < 1.
 */
double seam_diff_student(double t, double freedom);
double seam_diff_student_t(double p, double freedom);
