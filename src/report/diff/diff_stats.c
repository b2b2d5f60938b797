/* SPDX-License-Identifier: MIT */
/* diff_stats.c - Welch's test, and Student's distribution for it */
#include "report/diff/diff_stats.h"

#include <math.h>
#include <stdlib.h>

/*
 * The continued fraction of the incomplete beta function, evaluated from its
 * front (Lentz's method).  Converges for x < (a + 1) / (a + b + 2), in
 * O(sqrt(max(a, b))) steps.
 * Source: NIST Digital Library of Mathematical Functions, 8.17.22 and 3.10(iii).
 */
static double beta_fraction(double a, double b, double x)
{
	const double tiny = 1e-300;
	double c = 1, d = 1 - (a + b) * x / (a + 1), f;

	d = 1 / (fabs(d) < tiny ? tiny : d);
	f = d;
	for (int m = 1; m < 10000; m++) {
		double steps[2] = {
			m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m)),
			-(a + m) * (a + b + m) * x /
			((a + 2 * m) * (a + 2 * m + 1)),
		};
		double factor = 1;

		for (int i = 0; i < 2; i++) {
			d = 1 + steps[i] * d;
			c = 1 + steps[i] / c;
			d = 1 / (fabs(d) < tiny ? tiny : d);
			c = fabs(c) < tiny ? tiny : c;
			factor = c * d;
			f *= factor;
		}
		if (fabs(factor - 1) < 1e-15)
			break;
	}
	return f;
}

/* lgamma() sets a global; a and b are positive, so the sign is not needed. */
static double log_gamma(double x)
{
	int sign;

	return lgamma_r(x, &sign);
}

/* The regularized incomplete beta function of @x, and @y, 1 - @x. */
static double incomplete_beta(double a, double b, double x, double y)
{
	double front;

	if (x <= 0 || y <= 0)
		return y <= 0;
	front = exp(log_gamma(a + b) - log_gamma(a) - log_gamma(b) +
		    a * log(x) + b * log(y));
	if (x < (a + 1) / (a + b + 2))
		return front * beta_fraction(a, b, x) / a;
	return 1 - front * beta_fraction(b, a, y) / b;
}

double seam_diff_student(double t, double freedom)
{
	double both = freedom + t * t;

	return incomplete_beta(freedom / 2, 0.5, freedom / both, t * t / both);
}

double seam_diff_student_t(double p, double freedom)
{
	double low = 0, high = 1;

	while (seam_diff_student(high, freedom) > p && high < 1e150)
		high *= 2;
	while (high - low > 1e-10 * high) {
		double middle = low + (high - low) / 2;

		*(seam_diff_student(middle, freedom) > p ? &low : &high) =
			middle;
	}
	return low + (high - low) / 2;
}

/* Of the mean of a side. */
static double squared_error(const struct seam_diff_side_stats *side)
{
	return fmax(side->variance, side->least_variance) / (double)side->n;
}

double seam_diff_mean_error(const struct seam_diff_side_stats *side)
{
	return side->n ? sqrt(squared_error(side)) : 0;
}

struct seam_diff_test seam_diff_compare(const struct seam_diff_side_stats *a,
					const struct seam_diff_side_stats *b)
{
	double difference = b->mean - a->mean;
	struct seam_diff_test test = {
		.ratio = exp(difference), .p = 1, .high = INFINITY,
	};
	double of_a, of_b, both;

	if (a->n < SEAM_DIFF_LEAST_RUNS || b->n < SEAM_DIFF_LEAST_RUNS)
		return test;
	of_a = squared_error(a);
	of_b = squared_error(b);
	both = of_a + of_b;
	test.error = sqrt(both);
	/* Welch and Satterthwaite; the smaller side's where both are exact */
	test.freedom = both > 0 ? both * both /
		(of_a * of_a / (double)(a->n - 1) +
		 of_b * of_b / (double)(b->n - 1)) :
		(double)(a->n < b->n ? a->n : b->n) - 1;
	test.p = both > 0 ? seam_diff_student(difference / test.error,
					      test.freedom) : difference == 0;
	return test;
}

void seam_diff_find_interval(struct seam_diff_test *test)
{
	double half;

	if (test->freedom <= 0)
		return;
	half = test->error > 0 ? test->error *
	       seam_diff_student_t(SEAM_DIFF_LEVEL, test->freedom) : 0;
	test->low = test->ratio * exp(-half);
	test->high = test->ratio * exp(half);
}

static int by_value(const void *x, const void *y, void *context)
{
	const double *p = context;
	double a = p[*(const size_t *)x], b = p[*(const size_t *)y];

	return (a > b) - (a < b);
}

void seam_diff_adjust(double *p, size_t *order, size_t n)
{
	double least = 1;

	for (size_t i = 0; i < n; i++)
		order[i] = i;
	if (n)
		qsort_r(order, n, sizeof(*order), by_value, p);
	for (size_t i = n; i-- > 0;) {
		double q = p[order[i]] * (double)n / (double)(i + 1);

		least = q < least ? q : least;
		p[order[i]] = least;
	}
}
