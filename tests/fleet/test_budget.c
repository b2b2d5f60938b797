/* SPDX-License-Identifier: MIT */
#include "unit.h"

#include "fleet/budget.h"

#define S UINT64_C(1000000000)

/* Windows of 10 s, each for @ms_a_hz of CPU time, until @n or a change. */
static int windows(struct seam_budget *b, int n, uint64_t ms_a_hz)
{
	for (int i = 1; i <= n; i++)
		if (seam_budget_add(b, ms_a_hz * b->hz * 1000000 /
				    (b->skips + 1), 10 * S))
			return i;
	return 0;
}

UNIT_TEST(one_expensive_window_changes_nothing)
{
	struct seam_budget b = { .max_cpus = 0.01, .full_hz = 19, .hz = 19 };

	assert_false(seam_budget_add(&b, 180000000, 10 * S));
	for (int i = 0; i < 20; i++)
		assert_false(seam_budget_add(&b, 10000000, 10 * S));
	assert_int_equal(b.hz, 19);
}

UNIT_TEST(above_the_budget_the_rate_is_halved_then_windows_are_left_out)
{
	struct seam_budget b = { .max_cpus = 0.01, .full_hz = 19, .hz = 19 };
	const uint64_t rates[] = { 9, 4, 2, 1, 1, 1, 1, 1 };
	const unsigned int skips[] = { 0, 0, 0, 0, 1, 3, 7, 15 };

	for (size_t i = 0; i < 8; i++) {
		assert_int_equal(windows(&b, 100, 100000),
				 2 * (i > 4 ? skips[i - 1] + 1 : 1));
		assert_int_equal(b.hz, rates[i]);
		assert_int_equal(b.skips, skips[i]);
	}
	/* there is no less than that */
	assert_int_equal(windows(&b, 200, 100000), 0);
}

UNIT_TEST(one_of_so_many_windows_is_taken)
{
	struct seam_budget b = { .max_cpus = 0.01, .skips = 3 };
	int n = 0;

	for (uint64_t i = 0; i < 100; i++)
		n += seam_budget_takes(&b, i);
	assert_int_equal(n, 25);
}

UNIT_TEST(far_below_the_budget_the_rate_returns)
{
	struct seam_budget b = { .max_cpus = 0.01, .full_hz = 19, .hz = 1,
				 .skips = 1 };

	assert_int_equal(windows(&b, 100, 0), 12);
	assert_int_equal(b.skips, 0);
	while (b.hz < 19)
		assert_int_equal(windows(&b, 100, 0), 6);
	assert_int_equal(b.hz, 19);
	assert_int_equal(windows(&b, 100, 0), 0);
}

UNIT_TEST(within_the_budget_it_does_not_swing)
{
	struct seam_budget b = { .max_cpus = 0.01, .full_hz = 19, .hz = 19 };
	int n = 0;

	/* 1.5 % at the full rate: half of it is 0.75 % */
	for (int i = 0; i < 1000; i++)
		n += seam_budget_add(&b, b.hz * 150000000 / 19, 10 * S);
	assert_int_equal(n, 1);
	assert_int_equal(b.hz, 9);
}

UNIT_TEST(without_a_budget_nothing_changes)
{
	struct seam_budget b = { .full_hz = 19, .hz = 19 };

	assert_int_equal(windows(&b, 100, 100000), 0);
}

UNIT_MAIN(NULL, NULL, NULL, NULL)
