/* SPDX-License-Identifier: MIT */
#include "unit.h"

#include "fleet/window.h"

#define S UINT64_C(1000000000)
#define DAY (86400 * S)
#define NOON ((int64_t)(20000 * DAY + 43200 * S))

/* One window of @w that ends @late_ns after it is due. */
static struct seam_window_utc next(struct seam_window *w, uint64_t late_ns,
				   int64_t offset_ns)
{
	assert_false(seam_window_is_due(w, w->due_ns - 1));
	assert_true(seam_window_is_due(w, w->due_ns));
	return seam_window_cut(w, w->due_ns + late_ns, offset_ns);
}

UNIT_TEST(windows_end_at_multiples_of_their_length_in_utc)
{
	struct seam_window_utc utc;
	struct seam_window w;

	seam_window_begin(&w, 10 * S, 3 * S, NOON);
	utc = next(&w, 5000000, NOON);
	assert_int_equal(utc.from_ns, NOON + 3 * S);
	assert_int_equal(utc.to_ns, NOON + 10 * S + 5000000);
	for (uint64_t i = 1; i < 100; i++) {
		uint64_t from_ns = utc.to_ns;

		utc = next(&w, i * 1000000, NOON);
		/* without a gap, and late looks do not add up */
		assert_int_equal(utc.from_ns, from_ns);
		assert_int_equal(utc.to_ns, (uint64_t)NOON + 10 * S * (i + 1) +
				 i * 1000000);
	}
}

UNIT_TEST(no_window_is_shorter_than_half_of_its_length)
{
	for (uint64_t at = 0; at < 20; at++) {
		struct seam_window w;

		seam_window_begin(&w, 10 * S, at * S, NOON);
		assert_true(w.due_ns - at * S >= 5 * S);
		assert_true(w.due_ns - at * S < 15 * S);
		assert_int_equal((w.due_ns + (uint64_t)NOON) % (10 * S), 0);
	}
}

UNIT_TEST(a_stepped_clock_leaves_windows_whole_and_in_order)
{
	const int64_t steps[] = {
		3600 * (int64_t)S, -3600 * (int64_t)S, 7 * (int64_t)S,
		-123456789, 86400 * (int64_t)S,
	};
	struct seam_window w;
	int64_t offset = NOON;
	uint64_t sum_ns = 0, begin_ns = 1000 * S;

	seam_window_begin(&w, 10 * S, begin_ns, offset);
	for (size_t i = 0; i < 50; i++) {
		uint64_t from_ns = w.from_ns, end_ns = w.due_ns;
		struct seam_window_utc utc;

		/* the clock is stepped while the window goes on */
		offset += i % 3 ? 0 : steps[i / 3 % 5];
		utc = next(&w, 0, offset);
		assert_int_equal(w.from_ns, end_ns);
		assert_int_equal(utc.from_ns, (int64_t)from_ns + offset);
		assert_int_equal(utc.to_ns - utc.from_ns, end_ns - from_ns);
		assert_true(end_ns - from_ns >= 5 * S);
		assert_true(end_ns - from_ns < 15 * S);
		sum_ns += utc.to_ns - utc.from_ns;
	}
	/* each moment is in one window */
	assert_int_equal(sum_ns, w.from_ns - begin_ns);
}

UNIT_TEST(a_window_is_of_the_day_in_which_it_begins)
{
	int64_t before = (int64_t)(20001 * DAY - 5 * S);
	struct seam_window_utc utc;
	struct seam_window w;

	seam_window_begin(&w, 10 * S, 0, before);
	utc = seam_window_cut(&w, 6 * S, before);
	assert_int_equal(utc.from_ns / DAY, 20000);
	assert_int_equal(utc.to_ns, 20001 * DAY);
	utc = next(&w, 0, before);
	assert_int_equal(utc.from_ns / DAY, 20001);
}

UNIT_TEST(a_clock_before_1970_is_1970)
{
	struct seam_window w;
	struct seam_window_utc utc;

	seam_window_begin(&w, 10 * S, 100 * S, -(int64_t)(500 * S));
	utc = next(&w, 0, -(int64_t)(500 * S));
	assert_int_equal(utc.from_ns, 0);
}

UNIT_MAIN(NULL, NULL, NULL, NULL)
