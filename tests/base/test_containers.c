/* SPDX-License-Identifier: MIT */
/* test_containers.c - arrays, arenas, indexes and string tables */
#include "base/strings.h"

#include "base/hash.h"
#include "unit.h"

UNIT_TEST(an_array_keeps_what_was_pushed)
{
	SEAM_ARRAY(uint64_t) a = { 0 };

	for (uint64_t i = 0; i < 1000; i++) {
		uint64_t *slot = SEAM_ARRAY_PUSH(&a);

		assert_non_null(slot);
		*slot = i * i;
	}
	assert_int_equal(a.n, 1000);
	for (uint64_t i = 0; i < 1000; i++)
		assert_int_equal(a.items[i], i * i);
	free(a.items);
}

static int by_value(const void *a, const void *b)
{
	const uint64_t *x = a, *y = b;

	return SEAM_COMPARE(*x % 7, *y % 7) ?: SEAM_COMPARE(*x, *y);
}

UNIT_TEST(a_sorted_array_is_searched)
{
	SEAM_ARRAY(uint64_t) a = { 0 };

	SEAM_ARRAY_SORT(&a, by_value);	/* no memory yet */
	assert_int_equal(SEAM_ARRAY_SEARCH(i, a.n, a.items[i] < 3), 0);
	for (uint64_t i = 0; i < 100; i++)
		assert_true(SEAM_ARRAY_ADD(&a, 99 - i));
	SEAM_ARRAY_SORT(&a, by_value);
	for (uint64_t rest = 0; rest < 8; rest++) {
		size_t at = SEAM_ARRAY_SEARCH(i, a.n, a.items[i] % 7 < rest);

		assert_true(at == a.n || a.items[at] == rest);
		assert_true(at == 0 || a.items[at - 1] % 7 == rest - 1);
	}
	free(a.items);
}

UNIT_TEST(an_element_is_appended_with_its_id_or_not_at_all)
{
	SEAM_ARRAY(uint64_t) a = { 0 };
	struct seam_index index = { 0 };

	for (uint32_t k = 0; k < 1000; k++) {
		uint64_t hash = seam_hash_u64(k / 10), value = k;

		assert_int_equal(SEAM_INDEX_FIND(&index, hash, i,
						 a.items[i] == k), SEAM_NONE);
		assert_int_equal(SEAM_INDEX_APPEND(&index, hash, &a, value), k);
		assert_int_equal(SEAM_INDEX_FIND(&index, hash, i,
						 a.items[i] == k), k);
	}
	a.n = SEAM_NONE;
	assert_int_equal(SEAM_INDEX_APPEND(&index, 1, &a, 1), SEAM_NONE);
	assert_int_equal(a.n, SEAM_NONE);
	free(a.items);
	seam_index_fini(&index);
}

UNIT_TEST(an_equal_element_has_one_id)
{
	SEAM_ARRAY(uint64_t) a = { 0 };
	struct seam_index index = { 0 };

	for (uint64_t k = 0; k < 1000; k++)
		assert_int_equal(SEAM_INDEX_INTERN(&index,
				seam_hash_u64(k % 100 / 10), &a, i,
				a.items[i] == k % 100, k % 100), k % 100);
	assert_int_equal(a.n, 100);
	seam_index_fini(&index);
	free(a.items);
}

UNIT_TEST(an_array_grows_by_zeroed_elements)
{
	SEAM_ARRAY(uint64_t) a = { 0 };

	assert_true(SEAM_ARRAY_GROW(&a, 0));
	for (size_t n = 1; n < 1000; n += n) {
		assert_true(SEAM_ARRAY_GROW(&a, n));
		assert_int_equal(a.n, n);
		for (size_t i = 0; i < n; i++)
			assert_int_equal(a.items[i], i < n / 2 ? i : 0);
		for (size_t i = 0; i < n; i++)
			a.items[i] = i;
	}
	assert_true(SEAM_ARRAY_GROW(&a, 3));	/* it never shrinks */
	assert_int_equal(a.n, 512);
	assert_false(SEAM_ARRAY_GROW(&a, SIZE_MAX / 4));
	assert_int_equal(a.n, 512);
	free(a.items);
}

UNIT_TEST(an_array_refuses_a_size_that_overflows)
{
	size_t cap = 0;

	assert_null(seam_array_reserve(NULL, &cap, SIZE_MAX, 1));
	assert_null(seam_array_reserve(NULL, &cap, SIZE_MAX / 4, 16));
	assert_int_equal(cap, 0);
}

UNIT_TEST(an_arena_gives_zeroed_aligned_memory)
{
	static const uint8_t zero[5000];
	struct seam_arena arena = { 0 };

	for (size_t size = 0; size < sizeof(zero); size += 37) {
		uint8_t *p = seam_arena_alloc(&arena, size);

		assert_non_null(p);
		assert_int_equal((uintptr_t)p % 16, 0);
		assert_memory_equal(p, zero, size);
		memset(p, 0xff, size);
	}
	assert_non_null(seam_arena_alloc(&arena, 1 << 20));
	assert_null(seam_arena_alloc(&arena, SIZE_MAX - 8));
	seam_arena_fini(&arena);
	seam_arena_fini(&arena);
}

/* A report may have an arena for each of 100,000 files. */
UNIT_TEST(an_arena_of_a_few_names_takes_a_few_kilobytes)
{
	struct seam_arena arena = { 0 };

	for (size_t used = 0; used < 1 << 20; used += 64) {
		assert_true(arena.total <= 2 * used + 1024);
		assert_non_null(seam_arena_alloc(&arena, 64));
	}
	seam_arena_fini(&arena);
}

UNIT_TEST(an_index_finds_every_id_it_was_given)
{
	struct seam_index index = { 0 };

	for (uint32_t id = 0; id < 100000; id++)
		assert_int_equal(seam_index_add(&index, seam_hash_u64(id), id),
				 0);
	for (uint32_t id = 0; id < 100000; id++) {
		struct seam_index_probe probe =
			seam_index_probe(&index, seam_hash_u64(id));
		uint32_t got;

		while ((got = seam_index_next(&index, &probe)) != SEAM_NONE &&
		       got != id)
			;
		assert_int_equal(got, id);
	}
	seam_index_fini(&index);
}

/* All on one slot: slower, never wrong. */
UNIT_TEST(an_index_survives_equal_hashes)
{
	struct seam_index index = { 0 };
	struct seam_index_probe probe;
	uint32_t seen = 0;

	for (uint32_t id = 0; id < 500; id++)
		assert_int_equal(seam_index_add(&index, 42, id), 0);
	probe = seam_index_probe(&index, 42);
	while (seam_index_next(&index, &probe) != SEAM_NONE)
		seen++;
	assert_int_equal(seen, 500);
	seam_index_fini(&index);
}

UNIT_TEST(a_string_has_one_id)
{
	struct seam_strings strings = { 0 };
	char name[32];

	assert_int_equal(seam_strings_put(&strings, ""), 0);
	for (int round = 0; round < 2; round++) {
		for (uint32_t i = 1; i < 5000; i++) {
			snprintf(name, sizeof(name), "function_%u", i);
			assert_int_equal(seam_strings_put(&strings, name), i);
		}
	}
	assert_string_equal(seam_strings_get(&strings, 77), "function_77");
	assert_int_equal(seam_strings_find(&strings, "function_77"), 77);
	assert_int_equal(seam_strings_find(&strings, "other"), SEAM_NONE);
	assert_string_equal(seam_strings_get(&strings, SEAM_NONE), "");
	seam_strings_fini(&strings);
}

UNIT_TEST(a_string_ends_at_its_size_or_its_first_nul)
{
	struct seam_strings strings = { 0 };
	uint32_t abc = seam_strings_add(&strings, "abcdef", 3);

	assert_int_equal(seam_strings_add(&strings, "abc\0x", 5), abc);
	assert_int_not_equal(seam_strings_put(&strings, "ab"), abc);
	assert_int_equal(seam_strings_put(&strings, NULL), 0);
	seam_strings_fini(&strings);
}

UNIT_MAIN(NULL, NULL, NULL, NULL)
