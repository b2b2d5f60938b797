/* SPDX-License-Identifier: MIT */
/* test_ticks.c - the promises of ticks.h about ticks */
#include "model/xray/ticks.h"
#include "unit.h"

static const uint64_t frequencies[] = {
	1, 3, 1000, 999999999, 1000000000, 1000000001, 2596118000, 2400000000,
	3999999999, UINT64_C(10000000019), UINT64_MAX,
};

static uint64_t next_random(uint64_t *state)
{
	*state ^= *state << 13;
	*state ^= *state >> 7;
	*state ^= *state << 17;
	return *state;
}

UNIT_TEST(is_the_exact_floor_everywhere)
{
	uint64_t random = 88172645463325252u;

	for (size_t f = 0; f < SEAM_ARRAY_SIZE(frequencies); f++) {
		struct seam_ticks ticks;

		seam_ticks_init(&ticks, frequencies[f]);
		for (unsigned int i = 0; i < 20000; i++) {
			uint64_t n = next_random(&random) >> (i % 64);

			assert_int_equal(seam_ticks_length(&ticks, n),
					 seam_ticks_divide(&ticks, n));
		}
		for (uint64_t n = ticks.exact_below - 50;
		     n != ticks.exact_below + 50; n++)
			assert_int_equal(seam_ticks_length(&ticks, n),
					 seam_ticks_divide(&ticks, n));
	}
}

/* For counters above 1 GHz there is a shorter way. */
UNIT_TEST(is_the_same_by_the_short_way)
{
	uint64_t random = 88172645463325252u;
	unsigned int n_wide = 0;

	for (size_t f = 0; f < SEAM_ARRAY_SIZE(frequencies); f++) {
		struct seam_ticks ticks;

		seam_ticks_init(&ticks, frequencies[f]);
		if (!seam_ticks_is_wide(&ticks))
			continue;
		n_wide++;
		for (unsigned int i = 0; i < 20000; i++) {
			uint64_t n = next_random(&random) %
				     ticks.exact_below >> (i % 64);

			assert_int_equal(seam_ticks_scale(&ticks, n, true),
					 seam_ticks_divide(&ticks, n));
		}
	}
	assert_int_equal(n_wide, 6);
}

UNIT_TEST(divides_right)
{
	struct seam_ticks ticks;

	seam_ticks_init(&ticks, 2596118000);
	assert_int_equal(seam_ticks_length(&ticks, 2596118000), 1000000000);
	assert_int_equal(seam_ticks_length(&ticks, 2596117999), 999999999);
	assert_int_equal(seam_ticks_length(&ticks, 3), 1);
	assert_int_equal(seam_ticks_length(&ticks, 2), 0);
	seam_ticks_init(&ticks, 1);
	assert_int_equal(seam_ticks_length(&ticks, UINT64_MAX),
			 SEAM_TICKS_MAX_NS);
}

UNIT_TEST(never_falls)
{
	for (size_t f = 0; f < SEAM_ARRAY_SIZE(frequencies); f++) {
		struct seam_ticks ticks;
		uint64_t last = 0;

		seam_ticks_init(&ticks, frequencies[f]);
		for (uint64_t n = 0; n < 50000; n++) {
			uint64_t ns = seam_ticks_length(&ticks, n * 7);

			assert_true(ns >= last);
			last = ns;
		}
	}
}

UNIT_TEST(takes_a_gigahertz_and_no_frequency_as_nanoseconds)
{
	struct seam_ticks ticks;

	seam_ticks_init(&ticks, 1000000000);
	assert_int_equal(seam_ticks_length(&ticks, UINT64_C(1) << 61),
			 UINT64_C(1) << 61);
	seam_ticks_init(&ticks, 0);
	assert_int_equal(seam_ticks_length(&ticks, 12345), 12345);
}

UNIT_MAIN(NULL, NULL, NULL, NULL)
