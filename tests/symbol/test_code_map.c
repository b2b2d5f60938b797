/* SPDX-License-Identifier: MIT */
/* test_code_map.c - the map answers as a replay of all that happened does */
#include "symbol/jit/code_map.h"

#include "unit.h"

/* More bounds of ranges than a word has bits. */
enum { N_BYTES = 300, N_RANGES = 200, N_EVENTS = 300 };

struct event {
	uint32_t range;
	uint64_t time;
	bool is_removed;
};

static uint32_t next_random(uint32_t *state)
{
	*state = *state * 1664525 + 1013904223;
	return *state >> 8;
}

/* The slow way: an owner for each byte, SEAM_NONE: none. */
static void replay(uint32_t *owner, const struct seam_code_range *ranges,
		   const struct event *event)
{
	const struct seam_code_range *r = &ranges[event->range];

	for (uint64_t a = r->start_addr; a < r->end_addr; a++) {
		if (!event->is_removed)
			owner[a] = event->range;
		else if (owner[a] == event->range)
			owner[a] = SEAM_NONE;	/* for good */
	}
}

/* A range that has lost its first byte is not found. */
static uint32_t owner_of(const uint32_t *owner,
			 const struct seam_code_range *ranges, uint64_t addr)
{
	if (addr >= N_BYTES || owner[addr] == SEAM_NONE ||
	    owner[ranges[owner[addr]].start_addr] != owner[addr])
		return SEAM_NONE;
	return owner[addr];
}

static void check_all(const struct seam_code_map *map,
		      const struct seam_code_range *ranges,
		      const struct event *events, uint64_t end)
{
	uint32_t owner[N_BYTES];
	size_t i = 0;

	memset(owner, 0xff, sizeof(owner));
	for (uint64_t t = 0; t <= end; t++) {
		while (i < N_EVENTS && events[i].time <= t)
			replay(owner, ranges, &events[i++]);
		for (uint64_t a = 0; a < N_BYTES + 2; a++)
			assert_int_equal(seam_code_map_find(map, a, t),
					 owner_of(owner, ranges, a));
	}
}

UNIT_TEST(random_programs_agree_with_a_replay)
{
	for (uint32_t seed = 1; seed <= 60; seed++) {
		struct seam_code_range ranges[N_RANGES];
		struct event events[N_EVENTS];
		struct seam_code_map map;
		uint32_t random = seed;
		uint64_t time = 0;

		for (size_t i = 0; i < N_RANGES; i++) {
			ranges[i].start_addr = next_random(&random) % N_BYTES;
			ranges[i].end_addr = ranges[i].start_addr +
				next_random(&random) % (1 + seed % 30);
			if (ranges[i].end_addr > N_BYTES)
				ranges[i].end_addr = N_BYTES;
		}
		assert_int_equal(seam_code_map_init(&map, ranges, N_RANGES), 0);
		for (size_t i = 0; i < N_EVENTS; i++) {
			time += next_random(&random) % 3;
			events[i] = (struct event) {
				.range = next_random(&random) % N_RANGES,
				.time = time,
				.is_removed = next_random(&random) % 4 == 0,
			};
			assert_int_equal((events[i].is_removed ?
					  seam_code_map_remove :
					  seam_code_map_place)(
					&map, events[i].range, time), 0);
		}
		assert_int_equal(seam_code_map_seal(&map), 0);
		check_all(&map, ranges, events, time + 1);
		seam_code_map_fini(&map);
	}
}

UNIT_TEST(a_map_of_nothing_finds_nothing)
{
	struct seam_code_range empty = { 5, 5 };
	struct seam_code_map map;

	assert_int_equal(seam_code_map_init(&map, NULL, 0), 0);
	assert_int_equal(seam_code_map_seal(&map), 0);
	assert_int_equal(seam_code_map_find(&map, 5, 5), SEAM_NONE);
	seam_code_map_fini(&map);
	assert_int_equal(seam_code_map_init(&map, &empty, 1), 0);
	assert_int_equal(seam_code_map_place(&map, 0, 1), 0);
	assert_int_equal(seam_code_map_seal(&map), 0);
	assert_int_equal(seam_code_map_find(&map, 5, 5), SEAM_NONE);
	seam_code_map_fini(&map);
}

UNIT_TEST(what_comes_next_at_an_address_is_found)
{
	static const struct seam_code_range ranges[] = {
		{ 10, 20 }, { 14, 16 }, { 10, 12 }, { 30, 40 },
	};
	struct seam_code_map map;

	assert_int_equal(seam_code_map_init(&map, ranges, 4), 0);
	assert_int_equal(seam_code_map_place(&map, 0, 5), 0);
	assert_int_equal(seam_code_map_place(&map, 1, 8), 0);
	assert_int_equal(seam_code_map_place(&map, 2, 9), 0);
	assert_int_equal(seam_code_map_seal(&map), 0);
	assert_int_equal(seam_code_map_next(&map, 15, 0), 0);
	assert_int_equal(seam_code_map_next(&map, 15, 5), 1);
	assert_int_equal(seam_code_map_next(&map, 15, 8), SEAM_NONE);
	/* What the range in its middle left of the first is seen anew. */
	assert_int_equal(seam_code_map_next(&map, 11, 7), 0);
	assert_int_equal(seam_code_map_next(&map, 11, 8), 2);
	assert_int_equal(seam_code_map_next(&map, 9, 0), SEAM_NONE);
	assert_int_equal(seam_code_map_next(&map, 20, 0), SEAM_NONE);
	assert_int_equal(seam_code_map_next(&map, 35, 0), SEAM_NONE);
	seam_code_map_fini(&map);
}

UNIT_TEST(what_is_below_a_range_is_listed_from_the_right)
{
	static const struct seam_code_range ranges[] = {
		{ 0, 10 }, { 12, 20 }, { 30, 40 }, { 5, 30 }, { 10, 12 },
	};
	uint32_t at = SEAM_NONE;
	struct seam_code_map map;

	assert_int_equal(seam_code_map_init(&map, ranges, 5), 0);
	for (uint32_t i = 0; i < 3; i++)
		assert_int_equal(seam_code_map_place(&map, i, 1), 0);
	assert_int_equal(seam_code_map_below(&map, 3, &at), 1);
	assert_int_equal(seam_code_map_below(&map, 3, &at), 0);
	assert_int_equal(seam_code_map_below(&map, 3, &at), SEAM_NONE);
	at = SEAM_NONE;
	assert_int_equal(seam_code_map_below(&map, 4, &at), SEAM_NONE);
	seam_code_map_fini(&map);
}

UNIT_TEST(the_ends_of_the_address_space_are_addresses)
{
	struct seam_code_range all = { 0, UINT64_MAX };
	struct seam_code_map map;

	assert_int_equal(seam_code_map_init(&map, &all, 1), 0);
	assert_int_equal(seam_code_map_place(&map, 0, 0), 0);
	assert_int_equal(seam_code_map_seal(&map), 0);
	assert_int_equal(seam_code_map_find(&map, 0, 0), 0);
	assert_int_equal(seam_code_map_find(&map, UINT64_MAX - 1, ~UINT64_C(1)),
			 0);
	assert_int_equal(seam_code_map_find(&map, UINT64_MAX, 1), SEAM_NONE);
	seam_code_map_fini(&map);
}

/* One address used again and again must not make looking it up slow. */
UNIT_TEST(an_address_used_often_keeps_all_its_times)
{
	enum { N = 20000 };
	struct seam_code_range *ranges = calloc(N, sizeof(*ranges));
	struct seam_code_map map;

	for (uint32_t i = 0; i < N; i++)
		ranges[i] = (struct seam_code_range) { 64, 128 + i % 7 };
	assert_int_equal(seam_code_map_init(&map, ranges, N), 0);
	for (uint32_t i = 0; i < N; i++)
		assert_int_equal(seam_code_map_place(&map, i, 10 * i), 0);
	assert_int_equal(seam_code_map_seal(&map), 0);
	for (uint32_t i = 0; i < N; i++)
		assert_int_equal(seam_code_map_find(&map, 100, 10 * i + 9), i);
	seam_code_map_fini(&map);
	free(ranges);
}

UNIT_MAIN("code_map", NULL, NULL)
