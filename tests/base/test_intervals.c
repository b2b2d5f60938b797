/* SPDX-License-Identifier: MIT */
/* test_intervals.c - sorting, and who owns an address among many ranges */
#include "base/intervals.h"

#include "base/radix_sort.h"
#include "unit.h"

static uint32_t seed = 1;

static uint32_t random_below(uint32_t n)
{
	seed = seed * 1664525u + 1013904223u;
	return (seed >> 8) % n;
}

/* What intervals.h promises, by looking at every range. */
static uint32_t slow_find(const struct seam_interval *ranges, size_t n,
			  uint64_t addr)
{
	const struct seam_interval *best = NULL;

	for (size_t i = 0; i < n; i++)
		if (ranges[i].start <= addr && addr < ranges[i].end &&
		    (!best || ranges[i].start >= best->start))
			best = &ranges[i];
	return best ? best->id : SEAM_NONE;
}

UNIT_TEST(the_last_to_start_wins_everywhere)
{
	struct seam_interval ranges[40];

	for (int round = 0; round < 300; round++) {
		struct seam_intervals intervals = { 0 };
		size_t n = random_below(40);

		for (size_t i = 0; i < n; i++) {
			ranges[i].start = random_below(100);
			ranges[i].end = ranges[i].start + random_below(60);
			ranges[i].id = (uint32_t)i;
			assert_int_equal(seam_intervals_add(&intervals,
				ranges[i].start, ranges[i].end, (uint32_t)i),
				0);
		}
		assert_int_equal(seam_intervals_cut(&intervals), 0);
		assert_true(intervals.pieces.n <= 2 * n);
		for (uint64_t addr = 0; addr < 170; addr++)
			assert_int_equal(seam_intervals_find(&intervals, addr),
					 slow_find(ranges, n, addr));
		seam_intervals_fini(&intervals);
	}
}

UNIT_TEST(ranges_reach_to_both_ends_of_the_addresses)
{
	struct seam_intervals intervals = { 0 };

	seam_intervals_add(&intervals, UINT64_MAX - 1, UINT64_MAX, 2);
	seam_intervals_add(&intervals, 0, 1, 1);
	seam_intervals_add(&intervals, 5, 5, 3);
	seam_intervals_add(&intervals, 9, 4, 4);
	assert_int_equal(seam_intervals_cut(&intervals), 0);
	assert_int_equal(seam_intervals_find(&intervals, 0), 1);
	assert_int_equal(seam_intervals_find(&intervals, 1), SEAM_NONE);
	assert_int_equal(seam_intervals_find(&intervals, 5), SEAM_NONE);
	assert_int_equal(seam_intervals_find(&intervals, UINT64_MAX - 1), 2);
	assert_int_equal(seam_intervals_find(&intervals, UINT64_MAX),
			 SEAM_NONE);
	seam_intervals_fini(&intervals);
}

UNIT_TEST(an_empty_set_holds_nothing)
{
	struct seam_intervals intervals = { 0 };

	assert_int_equal(seam_intervals_find(&intervals, 7), SEAM_NONE);
	assert_int_equal(seam_intervals_cut(&intervals), 0);
	assert_int_equal(seam_intervals_find(&intervals, 7), SEAM_NONE);
	seam_intervals_fini(&intervals);
}

UNIT_TEST(sorting_orders_keys_and_keeps_equal_ones_in_place)
{
	enum { N = 5000 };
	struct seam_radix_item *items = malloc(N * sizeof(*items));

	for (uint32_t i = 0; i < N; i++)
		items[i] = (struct seam_radix_item) {
			(uint64_t)random_below(70) << (8 * random_below(8)), i,
		};
	assert_int_equal(seam_radix_sort(items, N), 0);
	for (size_t i = 1; i < N; i++) {
		assert_true(items[i - 1].key <= items[i].key);
		if (items[i - 1].key == items[i].key)
			assert_true(items[i - 1].id < items[i].id);
	}
	assert_int_equal(seam_radix_sort(items, 0), 0);
	assert_int_equal(seam_radix_sort(items, 1), 0);
	free(items);
}

UNIT_TEST(sorting_an_array_moves_whole_elements)
{
	struct element {
		uint32_t place;
		uint64_t key;
		char text[12];
	};
	SEAM_ARRAY(struct element) a = { 0 };

	assert_int_equal(SEAM_RADIX_SORT(&a, key), 0);
	for (uint32_t i = 0; i < 3000; i++) {
		struct element e = { .place = i, .key = random_below(900) };

		snprintf(e.text, sizeof(e.text), "%u", (unsigned int)e.key);
		assert_true(SEAM_ARRAY_ADD(&a, e));
	}
	assert_int_equal(SEAM_RADIX_SORT(&a, key), 0);
	for (size_t i = 0; i < a.n; i++) {
		assert_int_equal(strtoul(a.items[i].text, NULL, 10),
				 a.items[i].key);
		if (i && a.items[i - 1].key == a.items[i].key)
			assert_true(a.items[i - 1].place < a.items[i].place);
		else if (i)
			assert_true(a.items[i - 1].key < a.items[i].key);
	}
	free(a.items);
}

UNIT_MAIN(NULL, NULL, NULL, NULL)
