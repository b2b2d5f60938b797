/* SPDX-License-Identifier: MIT */
/* test_record_merge.c - records of several rings in the order of time */
#include "unit.h"

#include <linux/perf_event.h>

#include "record/drain.c"

/* A record: header, its number, its time; 24 bytes. */
enum { TIME_POS = 16, FROM_END = 8, RING = 16384, RECORD = 24 };

static struct seam_record_merge merge;
static uint64_t rings[5][RING / 8];
static size_t bytes[5];

static int set_up(void **state)
{
	merge = (struct seam_record_merge) {
		.sample_time_pos = TIME_POS, .time_from_end = FROM_END,
	};
	memset(bytes, 0, sizeof(bytes));
	return 0;
}

static int tear_down(void **state)
{
	merge_fini(&merge);
	return 0;
}

static void put(int ring, uint32_t type, uint64_t number, uint64_t time)
{
	const struct seam_ring_header header = { .type = type, .size = RECORD };
	uint64_t *at = &rings[ring][bytes[ring] / 8];

	memcpy(at, &header, sizeof(header));
	at[1] = number;
	at[2] = time;
	bytes[ring] += RECORD;
}

/* Ring @ring as if its bytes wrapped after @first of them. */
static struct seam_ring_span span_of(int ring, size_t first)
{
	const uint8_t *at = (const uint8_t *)rings[ring];

	return (struct seam_ring_span) {
		.part = { at, at + first },
		.size = { first, bytes[ring] - first },
		.end = bytes[ring],
	};
}

static void begin(int n, uint64_t until)
{
	merge.until = until;
	for (int i = n; i-- > 0; ) {
		struct seam_ring_span span = span_of(i, bytes[i] / 16 * 8);

		assert_true(merge_add(&merge, &span, (uint32_t)i));
	}
}

/* The number of the next record; -1: there is none. */
static int next(void)
{
	struct seam_ring_header header;
	struct seam_merge_ring *ring;
	uint64_t number;
	size_t pos;

	ring = merge_next(&merge, &pos, &header);
	if (!ring)
		return -1;
	assert_int_equal(header.size, RECORD);
	memcpy(&number, seam_ring_bytes(&ring->span, pos + 8, 8, &number), 8);
	return (int)number;
}

UNIT_TEST(an_exec_comes_before_later_samples_of_other_cpus)
{
	put(0, PERF_RECORD_COMM, 2, 200);
	put(1, PERF_RECORD_SAMPLE, 1, 100);
	put(1, PERF_RECORD_SAMPLE, 4, 400);
	put(2, PERF_RECORD_SAMPLE, 3, 300);
	begin(3, UINT64_MAX);
	for (int i = 1; i <= 4; i++)
		assert_int_equal(next(), i);
	assert_int_equal(next(), -1);
}

UNIT_TEST(records_of_one_ring_stay_in_their_order)
{
	put(0, PERF_RECORD_SAMPLE, 1, 100);
	put(0, PERF_RECORD_SAMPLE, 2, 90);
	put(1, PERF_RECORD_SAMPLE, 3, 110);
	put(0, PERF_RECORD_SAMPLE, 4, 120);
	begin(2, UINT64_MAX);
	for (int i = 1; i <= 4; i++)
		assert_int_equal(next(), i);
}

UNIT_TEST(records_after_the_time_of_the_merge_stay_in_their_rings)
{
	put(0, PERF_RECORD_SAMPLE, 1, 100);
	put(0, PERF_RECORD_SAMPLE, 2, 201);
	put(0, PERF_RECORD_SAMPLE, 9, 150);
	put(1, PERF_RECORD_COMM, 9, 300);
	begin(3, 200);
	assert_int_equal(next(), 1);
	assert_int_equal(next(), -1);
	for (size_t i = 0; i < merge.rings.n; i++) {
		const struct seam_merge_ring *ring = &merge.rings.items[i];

		assert_int_equal(ring->is_cut, ring->id < 2);
		assert_int_equal(ring->pos, ring->id == 0 ? RECORD : 0);
	}
}

UNIT_TEST(a_side_band_record_is_first_at_an_equal_time)
{
	/* rings of the side-band have the lower ids and are added last */
	put(0, PERF_RECORD_COMM, 1, 100);
	put(1, PERF_RECORD_SAMPLE, 2, 100);
	begin(2, UINT64_MAX);
	assert_int_equal(next(), 1);
	assert_int_equal(next(), 2);
}

UNIT_TEST(a_damaged_record_ends_its_ring_only)
{
	const struct seam_ring_header bad = { .type = 9, .size = 4 };

	put(0, PERF_RECORD_SAMPLE, 1, 100);
	put(0, PERF_RECORD_SAMPLE, 9, 200);
	memcpy(&rings[0][RECORD / 8], &bad, sizeof(bad));
	put(1, PERF_RECORD_SAMPLE, 2, 300);
	begin(2, UINT64_MAX);
	assert_int_equal(next(), 1);
	assert_int_equal(next(), 2);
	assert_int_equal(next(), -1);
	assert_false(merge.rings.items[1].is_cut);
	assert_int_equal(merge.rings.items[1].pos, RECORD);
}

UNIT_TEST(random_records_come_sorted_and_all_of_them)
{
	uint64_t last = 0, times[5] = { 0 };
	uint64_t time_of[5 * (RING / RECORD)];
	int n = 0, number;

	srand(3);
	for (int i = 0; i < 2000; i++) {
		int ring = rand() % 5;

		if (bytes[ring] + RECORD > RING)
			continue;
		times[ring] += (uint64_t)(rand() % 50);
		time_of[n] = times[ring];
		put(ring, rand() % 2 ? PERF_RECORD_SAMPLE : PERF_RECORD_COMM,
		    (uint64_t)n++, times[ring]);
	}
	begin(5, UINT64_MAX);
	for (int i = 0; i < n; i++) {
		number = next();
		assert_in_range(number, 0, n - 1);
		assert_true(time_of[number] >= last);
		last = time_of[number];
	}
	assert_int_equal(next(), -1);
}

UNIT_MAIN(NULL, NULL, set_up, tear_down)
