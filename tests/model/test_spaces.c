/* SPDX-License-Identifier: MIT */
/* test_spaces.c - address spaces against a slow replay of every byte */
#include "model/spaces.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

#define ADDRS 48
#define TIMES 40
#define NOTHING UINT32_MAX

static uint64_t random_state = 7;

static uint32_t pick(uint32_t n)
{
	random_state ^= random_state << 13;
	random_state ^= random_state >> 7;
	random_state ^= random_state << 17;
	return (uint32_t)(random_state % n);
}

/* truth[space][time][addr]: the mapping there and how far into it. */
struct truth {
	uint32_t mapping[2][TIMES + 1][ADDRS];
	uint64_t pos[2][TIMES + 1][ADDRS];
};

static void change_at_random(struct seam_spaces *spaces, struct truth *truth,
			     uint32_t space, uint32_t time)
{
	uint32_t begin = pick(ADDRS), end = begin + pick(ADDRS - begin);
	uint32_t mapping = time * 10 + space, what = pick(10);

	if (what == 0) {
		seam_spaces_clear(spaces, space, time);
		for (size_t a = 0; a < ADDRS; a++)
			truth->mapping[space][time][a] = NOTHING;
		return;
	}
	if (what == 1)
		assert_int_equal(seam_spaces_unmap(spaces, space, time, begin,
						   end), 0);
	else
		assert_int_equal(seam_spaces_map(spaces, space, time, begin,
						 end, mapping), 0);
	for (uint32_t a = begin; a < end; a++) {
		truth->mapping[space][time][a] = what == 1 ? NOTHING : mapping;
		truth->pos[space][time][a] = a - begin;
	}
}

static void check(const struct seam_spaces *spaces, const struct truth *truth,
		  uint32_t space, uint32_t time, uint32_t addr)
{
	uint64_t from, to;
	const struct seam_area *area = seam_spaces_find(spaces, space, addr,
							time, &from, &to);
	uint32_t expect = truth->mapping[space][time][addr];

	assert_true(from <= time && time < to);
	if (expect == NOTHING) {
		assert_null(area);
	} else {
		assert_non_null(area);
		assert_int_equal(area->mapping, expect);
		assert_int_equal(addr - area->begin + area->begin_pos,
				 truth->pos[space][time][addr]);
	}
	/* The answer holds for the whole span that came with it. */
	for (uint64_t t = from; t < to && t <= TIMES; t++)
		assert_int_equal(truth->mapping[space][t][addr], expect);
}

/* Space 1 is forked from space 0 in the middle. */
static void finds_what_a_slow_replay_finds(void **state)
{
	static struct truth truth;

	(void)state;
	for (int round = 0; round < 300; round++) {
		struct seam_spaces spaces = { 0 };
		uint32_t fork = 1 + pick(TIMES - 1);

		seam_spaces_add(&spaces);
		seam_spaces_add(&spaces);
		memset(truth.mapping, 0xff, sizeof(truth.mapping));
		for (uint32_t t = 1; t <= TIMES; t++) {
			for (size_t s = 0; s < 2; s++) {
				memcpy(truth.mapping[s][t],
				       truth.mapping[s][t - 1],
				       sizeof(truth.mapping[s][t]));
				memcpy(truth.pos[s][t], truth.pos[s][t - 1],
				       sizeof(truth.pos[s][t]));
			}
			change_at_random(&spaces, &truth, 0, t);
			if (t == fork) {
				assert_int_equal(seam_spaces_copy(&spaces, 1,
								  0, t), 0);
				memcpy(truth.mapping[1][t],
				       truth.mapping[0][t],
				       sizeof(truth.mapping[1][t]));
				memcpy(truth.pos[1][t], truth.pos[0][t],
				       sizeof(truth.pos[1][t]));
			} else if (t > fork) {
				change_at_random(&spaces, &truth, 1, t);
			}
		}
		assert_int_equal(seam_spaces_seal(&spaces), 0);
		for (uint32_t s = 0; s < 2; s++)
			for (uint32_t t = 0; t <= TIMES; t++)
				for (uint32_t a = 0; a < ADDRS; a++)
					check(&spaces, &truth, s, t, a);
		seam_spaces_fini(&spaces);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(finds_what_a_slow_replay_finds),
	};

	return cmocka_run_group_tests_name("spaces", tests, NULL, NULL);
}
