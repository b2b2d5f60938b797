/* SPDX-License-Identifier: MIT */
#include "unit.h"

#include "fleet/window.h"

#define S UINT64_C(1000000000)
#define NOON ((int64_t)(20000 * 86400 * S + 43200 * S))

UNIT_TEST(windows_end_at_multiples_of_their_length_in_utc)
{
	struct seam_window w = seam_window_begin(10 * S, 3 * S, NOON);

	assert_int_equal(w.due_ns, 10 * S);
	for (uint64_t i = 1; i < 100; i++) {
		uint64_t now_ns = w.due_ns + i * 1000000;

		assert_false(seam_window_is_due(&w, w.due_ns - 1));
		assert_true(seam_window_is_due(&w, w.due_ns));
		w = seam_window_begin(10 * S, now_ns, NOON);
		/* without a gap, and late looks do not add up */
		assert_int_equal(w.from_ns, now_ns);
		assert_int_equal(w.due_ns, 10 * S * (i + 1));
	}
}

UNIT_TEST(no_window_is_shorter_than_half_of_its_length)
{
	for (uint64_t at = 0; at < 20; at++) {
		struct seam_window w = seam_window_begin(10 * S, at * S, NOON);

		assert_true(w.due_ns - at * S >= 5 * S);
		assert_true(w.due_ns - at * S < 15 * S);
		assert_int_equal(seam_window_utc(&w, w.due_ns) % (10 * S), 0);
	}
}

UNIT_TEST(a_stepped_clock_leaves_windows_whole_and_in_order)
{
	const int64_t steps[] = {
		3600 * (int64_t)S, -3600 * (int64_t)S, 7 * (int64_t)S,
		-123456789, 86400 * (int64_t)S,
	};
	struct seam_window w = seam_window_begin(10 * S, 1000 * S, NOON);
	int64_t offset = NOON;
	uint64_t sum_ns = 0;

	for (size_t i = 0; i < 50; i++) {
		struct seam_window old = w;
		uint64_t from_ns = seam_window_utc(&old, old.from_ns);

		/* the clock is stepped while the window goes on: it is not */
		offset += i % 3 ? 0 : steps[i / 3 % 5];
		assert_int_equal(seam_window_utc(&old, old.due_ns) - from_ns,
				 old.due_ns - old.from_ns);
		w = seam_window_begin(10 * S, old.due_ns, offset);
		assert_int_equal(w.from_ns, old.due_ns);
		assert_int_equal(seam_window_utc(&w, w.from_ns),
				 (int64_t)w.from_ns + offset);
		assert_true(w.due_ns - w.from_ns >= 5 * S);
		assert_true(w.due_ns - w.from_ns < 15 * S);
		sum_ns += old.due_ns - old.from_ns;
	}
	/* each moment is in one window */
	assert_int_equal(sum_ns, w.from_ns - 1000 * S);
}

UNIT_TEST(a_clock_before_1970_is_1970)
{
	struct seam_window w = seam_window_begin(10 * S, 100 * S,
						 -(int64_t)(500 * S));

	assert_int_equal(seam_window_utc(&w, w.due_ns), 0);
}

UNIT_MAIN(NULL, NULL, NULL, NULL)
