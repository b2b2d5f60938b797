/* SPDX-License-Identifier: MIT */
/* test_containers.c - arrays, arenas, indexes and string tables */
#include "base/strings.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/hash.h"

static void an_array_keeps_what_was_pushed(void **state)
{
	SEAM_ARRAY(uint64_t) a = { 0 };

	(void)state;
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

static void an_array_refuses_a_size_that_overflows(void **state)
{
	size_t cap = 0;

	(void)state;
	assert_null(seam_array_reserve(NULL, &cap, SIZE_MAX, 1));
	assert_null(seam_array_reserve(NULL, &cap, SIZE_MAX / 4, 16));
	assert_int_equal(cap, 0);
}

static void an_arena_gives_zeroed_aligned_memory(void **state)
{
	static const uint8_t zero[5000];
	struct seam_arena arena = { 0 };

	(void)state;
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

static void an_index_finds_every_id_it_was_given(void **state)
{
	struct seam_index index = { 0 };

	(void)state;
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
static void an_index_survives_equal_hashes(void **state)
{
	struct seam_index index = { 0 };
	struct seam_index_probe probe;
	uint32_t seen = 0;

	(void)state;
	for (uint32_t id = 0; id < 500; id++)
		assert_int_equal(seam_index_add(&index, 42, id), 0);
	probe = seam_index_probe(&index, 42);
	while (seam_index_next(&index, &probe) != SEAM_NONE)
		seen++;
	assert_int_equal(seen, 500);
	seam_index_fini(&index);
}

static int by_value(const void *a, const void *b)
{
	const uint64_t *x = a, *y = b;

	return *x < *y ? -1 : *x > *y;
}

static void assert_distinct(uint64_t *hashes, size_t n)
{
	qsort(hashes, n, sizeof(*hashes), by_value);
	for (size_t i = 1; i < n; i++)
		assert_true(hashes[i] != hashes[i - 1]);
}

/*
 * The constants can be read in the source: with them, one operand of each
 * multiplication could be made 0, whatever the other is.
 */
static void what_is_made_to_collide_does_not(void **state)
{
	enum { N = 1000 };
	const uint64_t k0 = UINT64_C(0x243f6a8885a308d3);
	const uint64_t k1 = UINT64_C(0x13198a2e03707345);
	static const size_t sizes[] = { 16, 40, 200 };
	uint64_t hashes[N], words[25] = { 0 };

	(void)state;
	for (size_t s = 0; s < SEAM_ARRAY_SIZE(sizes); s++) {
		uint64_t hash = sizes[s] * k1;

		for (uint64_t i = 0; i < N; i++) {
			words[0] = hash ^ k0;
			words[1] = i;
			hashes[i] = seam_hash_bytes(words, sizes[s], 0);
		}
		assert_distinct(hashes, N);
	}
	for (uint64_t i = 0; i < N; i++)
		hashes[i] = seam_hash_add(seam_hash_u64(i),
					  seam_hash_fold(i ^ k0, k1) ^ k0);
	assert_distinct(hashes, N);
}

/* Kept in files and seen in pictures. */
static void a_stable_hash_is_the_same_in_every_process(void **state)
{
	uint64_t words[25];

	(void)state;
	for (uint64_t i = 0; i < SEAM_ARRAY_SIZE(words); i++)
		words[i] = i * UINT64_C(0x0123456789abcdef);
	assert_true(seam_hash_stable("seam", 4, 0) ==
		    UINT64_C(0xee70fa2d330fe8d0));
	assert_true(seam_hash_stable(words, sizeof(words), 7) ==
		    UINT64_C(0x9fe6d02b03d31ef0));
}

static void a_string_has_one_id(void **state)
{
	struct seam_strings strings = { 0 };
	char name[32];

	(void)state;
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

static void a_string_ends_at_its_size_or_its_first_nul(void **state)
{
	struct seam_strings strings = { 0 };
	uint32_t abc = seam_strings_add(&strings, "abcdef", 3);

	(void)state;
	assert_int_equal(seam_strings_add(&strings, "abc\0x", 5), abc);
	assert_int_not_equal(seam_strings_put(&strings, "ab"), abc);
	assert_int_equal(seam_strings_put(&strings, NULL), 0);
	seam_strings_fini(&strings);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_array_keeps_what_was_pushed),
		cmocka_unit_test(an_array_refuses_a_size_that_overflows),
		cmocka_unit_test(an_arena_gives_zeroed_aligned_memory),
		cmocka_unit_test(an_index_finds_every_id_it_was_given),
		cmocka_unit_test(an_index_survives_equal_hashes),
		cmocka_unit_test(what_is_made_to_collide_does_not),
		cmocka_unit_test(a_stable_hash_is_the_same_in_every_process),
		cmocka_unit_test(a_string_has_one_id),
		cmocka_unit_test(a_string_ends_at_its_size_or_its_first_nul),
	};

	return cmocka_run_group_tests_name("containers", tests, NULL, NULL);
}
