/* SPDX-License-Identifier: MIT */
/* test_spaces.c - address spaces against a slow replay of every byte */
#include "model/perf/spaces.h"
#include "unit.h"

#define SPACES 6
#define ADDRS 48
#define TIMES 30
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
	uint32_t mapping[SPACES][TIMES + 1][ADDRS];
	uint64_t pos[SPACES][TIMES + 1][ADDRS];
	uint32_t next;			/* mapping */
};

static void change_at_random(struct seam_spaces *spaces, struct truth *truth,
			     uint32_t space, uint32_t time)
{
	uint32_t begin = pick(ADDRS), end = begin + pick(ADDRS - begin);
	uint32_t mapping = truth->next++, what = pick(10);

	if (what == 0) {
		assert_int_equal(seam_spaces_clear(spaces, space, time), 0);
		for (size_t a = 0; a < ADDRS; a++)
			truth->mapping[space][time][a] = NOTHING;
		return;
	}
	assert_int_equal(seam_spaces_map(spaces, space, time, begin, end,
					 what == 1 ? SEAM_NONE : mapping), 0);
	for (uint32_t a = begin; a < end; a++) {
		truth->mapping[space][time][a] = what == 1 ? NOTHING : mapping;
		truth->pos[space][time][a] = a - begin;
	}
}

static void check(const struct seam_spaces *spaces, const struct truth *truth,
		  uint32_t space, uint32_t time, uint32_t addr)
{
	uint64_t from, to;
	const struct seam_vma *vma = seam_spaces_find(spaces, space, addr,
							time, &from, &to);
	uint32_t expect = truth->mapping[space][time][addr];

	assert_true(from <= time && time < to);
	if (expect == NOTHING) {
		assert_null(vma);
	} else {
		assert_non_null(vma);
		assert_int_equal(vma->mapping, expect);
		assert_int_equal(addr - vma->begin,
				 truth->pos[space][time][addr]);
	}
	/* The answer holds for the whole span that came with it. */
	for (uint64_t t = from; t < to && t <= TIMES; t++)
		assert_int_equal(truth->mapping[space][t][addr], expect);
}

/* What is true of @to at @time is what is true of @from at @then. */
static void repeat(struct truth *truth, uint32_t to, uint32_t time,
		   uint32_t from, uint32_t then)
{
	memcpy(truth->mapping[to][time], truth->mapping[from][then],
	       sizeof(truth->mapping[to][time]));
	memcpy(truth->pos[to][time], truth->pos[from][then],
	       sizeof(truth->pos[to][time]));
}

/*
 * One time: up to three changes of each space, and forks between them, whose
 * parents go on changing at that same time.
 */
static void live(struct seam_spaces *spaces, struct truth *truth,
		 uint32_t time, uint32_t *n_living)
{
	for (uint32_t s = 0; s < SPACES; s++)
		repeat(truth, s, time, s, time - 1);
	for (uint32_t i = pick(3 * SPACES); i > 0; i--) {
		uint32_t space = pick(*n_living);

		change_at_random(spaces, truth, space, time);
		if (*n_living == SPACES || pick(12))
			continue;
		assert_int_equal(seam_spaces_copy(spaces, *n_living, space,
						  time), 0);
		repeat(truth, *n_living, time, space, time);
		++*n_living;
	}
}

/* Spaces are forked from others, which are forked from others. */
UNIT_TEST(finds_what_a_slow_replay_finds)
{
	static struct truth truth;

	for (int round = 0; round < 300; round++) {
		struct seam_spaces spaces = { 0 };
		uint32_t n_living = 1;

		memset(&truth, 0xff, sizeof(truth));
		truth.next = 0;
		for (uint32_t s = 0; s < SPACES; s++)
			seam_spaces_add(&spaces);
		for (uint32_t t = 1; t <= TIMES; t++)
			live(&spaces, &truth, t, &n_living);
		assert_int_equal(seam_spaces_seal(&spaces), 0);
		for (uint32_t s = 0; s < SPACES; s++)
			for (uint32_t t = 0; t <= TIMES; t++)
				for (uint32_t a = 0; a < ADDRS; a++)
					check(&spaces, &truth, s, t, a);
		seam_spaces_fini(&spaces);
	}
}

/* -- what it takes ------------------------------------------------------ */

static size_t n_bytes;	/* asked for since it was last 0 */

void *__real_malloc(size_t size);
void *__real_calloc(size_t n, size_t size);
void *__real_realloc(void *old, size_t size);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t n, size_t size);
void *__wrap_realloc(void *old, size_t size);

void *__wrap_malloc(size_t size)
{
	n_bytes += size;
	return __real_malloc(size);
}

void *__wrap_calloc(size_t n, size_t size)
{
	n_bytes += n * size;
	return __real_calloc(n, size);
}

void *__wrap_realloc(void *old, size_t size)
{
	n_bytes += size;
	return __real_realloc(old, size);
}

/* All of it, while it was built, took no more than @most bytes. */
static void seal_within(struct seam_spaces *spaces, size_t most)
{
	assert_int_equal(seam_spaces_seal(spaces), 0);
	assert_true(n_bytes <= most);
}

static void assert_at(const struct seam_spaces *spaces, uint32_t space,
		      uint64_t addr, uint64_t time_ns, uint32_t mapping)
{
	uint64_t from, to;
	const struct seam_vma *vma = seam_spaces_find(spaces, space, addr,
							time_ns, &from, &to);

	if (mapping == NOTHING)
		assert_null(vma);
	else
		assert_non_null(vma);
	if (vma)
		assert_int_equal(vma->mapping, mapping);
	assert_true(from <= time_ns && time_ns < to);
}

/* However many forks of however large a space: each is a fork. */
UNIT_TEST(a_fork_copies_nothing)
{
	enum { MAPS = 3000, FORKS = 3000 };
	struct seam_spaces spaces = { 0 };

	n_bytes = 0;
	seam_spaces_add(&spaces);
	for (uint32_t i = 0; i < MAPS; i++)
		assert_int_equal(seam_spaces_map(&spaces, 0, i, 16 * i,
						 16 * i + 8, i), 0);
	for (uint32_t i = 1; i <= FORKS; i++) {
		seam_spaces_add(&spaces);
		assert_int_equal(seam_spaces_copy(&spaces, i, 0, MAPS + i), 0);
	}
	seal_within(&spaces, 1000 * (MAPS + FORKS));
	assert_at(&spaces, FORKS, 16 * 7, 2 * MAPS, 7);
	assert_at(&spaces, FORKS, 16 * 7 + 8, 2 * MAPS, NOTHING);
	seam_spaces_fini(&spaces);
}

/* Each the child of the one before, with a mapping more. */
UNIT_TEST(a_chain_of_forks_is_as_deep_as_it_likes)
{
	enum { FORKS = 20000 };
	struct seam_spaces spaces = { 0 };

	n_bytes = 0;
	seam_spaces_add(&spaces);
	for (uint32_t i = 0; i < FORKS; i++) {
		assert_int_equal(seam_spaces_map(&spaces, i, 2 * i, 16 * i,
						 16 * i + 8, i), 0);
		assert_int_equal(seam_spaces_add(&spaces), i + 1);
		assert_int_equal(seam_spaces_copy(&spaces, i + 1, i, 2 * i + 1),
				 0);
	}
	seal_within(&spaces, 2000 * FORKS);
	for (uint32_t i = 0; i < FORKS; i++) {
		assert_at(&spaces, FORKS, 16 * i, 2 * FORKS, i);
		assert_at(&spaces, i, 16 * (i / 2), 2 * FORKS, i / 2);
		assert_at(&spaces, i, 16 * (i + 1), 2 * FORKS, NOTHING);
	}
	seam_spaces_fini(&spaces);
}

/*
 * Where a hundred thousand were, one after the other: what is asked of one
 * time has no look at the others.
 */
UNIT_TEST(the_dead_are_not_in_the_way)
{
	enum { MAPS = 100000 };
	struct seam_spaces spaces = { 0 };

	n_bytes = 0;
	seam_spaces_add(&spaces);
	for (uint32_t i = 0; i < MAPS; i++)
		assert_int_equal(seam_spaces_map(&spaces, 0, 10 * i,
						 1000 + i % 3, 2000, i), 0);
	seal_within(&spaces, (size_t)2000 * MAPS);
	for (uint32_t i = 0; i < MAPS; i++)
		assert_at(&spaces, 0, 1500, 10 * i + 5, i);
	/* At most a mark for each of the three nodes that it hangs on. */
	assert_true(spaces.marks.n <= 3 * (size_t)MAPS);
	seam_spaces_fini(&spaces);
}

/* Downwards, so that each comes before all others. */
UNIT_TEST(the_living_are_not_in_the_way)
{
	enum { MAPS = 100000 };
	struct seam_spaces spaces = { 0 };

	n_bytes = 0;
	seam_spaces_add(&spaces);
	for (uint32_t i = 0; i < MAPS; i++)
		assert_int_equal(seam_spaces_map(&spaces, 0, i,
						 16 * (MAPS - i),
						 16 * (MAPS - i) + 16, i), 0);
	seal_within(&spaces, (size_t)2000 * MAPS);
	for (uint32_t i = 0; i < MAPS; i++)
		assert_at(&spaces, 0, 16 * (MAPS - i) + 15, MAPS, i);
	seam_spaces_fini(&spaces);
}

UNIT_MAIN(NULL, NULL, NULL, NULL)
