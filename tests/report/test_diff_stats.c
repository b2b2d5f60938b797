/* SPDX-License-Identifier: MIT */
/* test_diff_stats.c - Student's distribution beside GSL's, and known answers */
#include "report/diff/diff_stats.h"

#include <gsl/gsl_cdf.h>
#include <math.h>

#include "../unit.h"

static const double freedoms[] = {
	0.5, 1, 2, 2.0001, 3, 4.7, 7, 14, 30, 99.5, 1000, 1e5,
};

static void assert_near(double got, double wanted, double tolerance)
{
	if (fabs(got - wanted) > tolerance * fabs(wanted) + 1e-300)
		fail_msg("got %.17g, wanted %.17g", got, wanted);
}

UNIT_TEST(probabilities_are_those_of_gsl)
{
	for (size_t i = 0; i < sizeof(freedoms) / sizeof(*freedoms); i++)
		for (double t = 1e-6; t < 1e4; t *= 1.7) {
			double wanted = 2 * gsl_cdf_tdist_Q(t, freedoms[i]);

			/* what is smaller decides nothing */
			if (wanted > 1e-20)
				assert_near(seam_diff_student(t, freedoms[i]),
					    wanted, 1e-9);
		}
	assert_near(seam_diff_student(-2, 5), seam_diff_student(2, 5), 0);
	assert_near(seam_diff_student(0, 5), 1, 0);
}

UNIT_TEST(quantiles_are_those_of_gsl)
{
	static const double levels[] = { 1e-9, 0.001, 0.05, 0.3, 0.9 };

	for (size_t i = 0; i < sizeof(freedoms) / sizeof(*freedoms); i++)
		for (size_t k = 0; k < sizeof(levels) / sizeof(*levels); k++)
			assert_near(seam_diff_student_t(levels[k], freedoms[i]),
				    gsl_cdf_tdist_Qinv(levels[k] / 2,
						       freedoms[i]), 1e-7);
}

/* Two sides whose means differ by log(1.05); variances of 3 % and 9 %. */
UNIT_TEST(welch_has_the_freedom_of_the_noisier_side)
{
	const struct seam_diff_side_stats a = { 8, log(100), 0.0009, 0 };
	const struct seam_diff_side_stats b = { 5, log(105), 0.0081, 0 };
	struct seam_diff_test test = seam_diff_compare(&a, &b);
	double of_a = 0.0009 / 8, of_b = 0.0081 / 5, both = of_a + of_b;
	double half;

	seam_diff_find_interval(&test);
	assert_near(test.ratio, 1.05, 1e-12);
	assert_near(test.freedom, both * both / (of_a * of_a / 7 +
						 of_b * of_b / 4), 1e-12);
	assert_near(test.p, 2 * gsl_cdf_tdist_Q(log(1.05) / sqrt(both),
						test.freedom), 1e-10);
	half = sqrt(both) * gsl_cdf_tdist_Qinv(0.025, test.freedom);
	assert_near(test.low, 1.05 * exp(-half), 1e-9);
	assert_near(test.high, 1.05 * exp(half), 1e-9);
}

UNIT_TEST(two_runs_give_no_verdict)
{
	const struct seam_diff_side_stats few = { 2, 1, 0.01, 0 };
	const struct seam_diff_side_stats many = { 9, 2, 0.01, 0 };
	struct seam_diff_test test = seam_diff_compare(&few, &many);

	seam_diff_find_interval(&test);
	assert_true(test.p == 1);
	assert_true(test.low == 0 && isinf(test.high));
}

UNIT_TEST(exact_values_differ_or_are_equal)
{
	const struct seam_diff_side_stats a = { 3, 1, 0, 0 };
	const struct seam_diff_side_stats b = { 3, 2, 0, 0 };

	assert_true(seam_diff_compare(&a, &a).p == 1);
	assert_true(seam_diff_compare(&a, &b).p == 0);
}

/* Equal counts of every run hide what rounding to whole samples does. */
UNIT_TEST(runs_without_variance_have_that_of_rounding)
{
	const struct seam_diff_side_stats a = {
		3, log(10), 0, 1.0 / 12 / 100,
	};
	const struct seam_diff_side_stats b = {
		3, log(11), 0, 1.0 / 12 / 121,
	};

	assert_true(seam_diff_compare(&a, &b).p > 0.005);
}

/* Source of the example: Benjamini and Hochberg (1995), 4.2. */
UNIT_TEST(adjusted_values_are_those_of_the_paper)
{
	double p[] = {
		0.0278, 0.0001, 0.4262, 0.0004, 0.0019, 0.0095, 0.0201, 1,
		0.0298, 0.0344, 0.0459, 0.3240, 0.5719, 0.6528, 0.7590,
	};
	size_t order[15], n_rejected = 0;

	seam_diff_adjust(p, order, 15);
	for (size_t i = 0; i < 15; i++)
		n_rejected += p[i] <= 0.05;
	assert_int_equal(n_rejected, 4);
	assert_true(p[1] <= 0.05 && p[3] <= 0.05 && p[4] <= 0.05 &&
		    p[5] <= 0.05);
	assert_near(p[5], 0.0095 * 15 / 4, 1e-12);
	assert_true(p[7] == 1);
	seam_diff_adjust(p, order, 0);
}

UNIT_MAIN(NULL, NULL, NULL, NULL)
