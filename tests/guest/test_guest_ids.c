/* SPDX-License-Identifier: MIT */
/* test_guest_ids.c - the table of functions' ids, where it is full */

#include "unit.h"

/* for first_slot(): keys of one slot cannot be found from outside */
#include "traced/guest/guest_ids.c"

static const struct seam_guest_symbol text = { .n_name = 1, .name = "f" };

/* Another key whose first slot is @slot. */
static struct seam_guest_key next_key_of_slot(uint32_t slot)
{
	static struct seam_guest_key key = { .adapter = 1 };

	do
		key.address++;
	while (first_slot(&key) != slot);
	return key;
}

static long mapped_pages(void)
{
	FILE *statm = fopen("/proc/self/statm", "r");
	long n = 0;

	assert_non_null(statm);
	assert_int_equal(fscanf(statm, "%ld", &n), 1);
	fclose(statm);
	return n;
}

UNIT_TEST(a_program_with_few_functions_has_few_pages_for_them)
{
	const struct seam_guest_key key = { .address = 4096, .adapter = 1 };
	long before = mapped_pages();

	assert_int_equal(seam_guest_ids_init(), 0);
	assert_int_not_equal(add_id(&key, &text), 0);
	assert_in_range(mapped_pages() - before, 1, 2048);
}

/* A second name, found by another thread, would change what was announced. */
UNIT_TEST(a_function_is_named_once)
{
	const struct seam_guest_key key = { .address = 1, .adapter = 9 };
	struct seam_guest_symbol named = { .line = 1 };
	struct seam_guest_symbol symbol;
	uint32_t id = add_id(&key, &named);

	assert_true(is_nameless_id(id));
	named.n_name = 3;
	memcpy(named.name, "one", 3);
	rename_id(id, &named);
	memcpy(named.name, "two", 3);
	rename_id(id, &named);
	assert_false(is_nameless_id(id));
	assert_int_equal(seam_guest_describe(id, &symbol), 0);
	assert_memory_equal(symbol.name, "one", 3);
}

UNIT_TEST(a_function_without_a_slot_uses_no_id)
{
	uint32_t n = seam_guest_n_symbols();
	struct seam_guest_key key;

	for (int i = 0; i < MAX_STEPS; i++) {
		key = next_key_of_slot(1000);
		assert_int_not_equal(add_id(&key, &text), 0);
		assert_int_not_equal(find_id(&key), 0);
	}
	assert_int_equal(seam_guest_n_symbols(), n + MAX_STEPS);
	key = next_key_of_slot(1000);
	for (int i = 0; i < 10; i++) {
		assert_int_equal(find_id(&key), 0);
		assert_int_equal(add_id(&key, &text), 0);
	}
	assert_int_equal(seam_guest_n_symbols(), n + MAX_STEPS);
}

UNIT_TEST(each_id_has_its_own_symbol_up_to_the_last)
{
	struct seam_guest_key key = { .adapter = 2, .check = { 1 } };
	static struct seam_guest_symbol symbol;
	uint32_t id, n = 0;

	for (uint64_t i = 0; seam_guest_n_symbols() < SEAM_GUEST_MAX_SYMBOLS;
	     i++) {
		key.address = i << 12;
		id = add_id(&key, &text);
		if (!id)
			continue;
		n++;
		assert_int_equal(find_id(&key), id);
		assert_int_equal(seam_guest_describe(id, &symbol), 0);
		assert_int_equal(symbol.id, id);
		assert_int_equal(symbol.address, i << 12);
	}
	assert_true(n > SEAM_GUEST_MAX_SYMBOLS / 2);
	key.address = 1;
	assert_int_equal(add_id(&key, &text), 0);
	assert_int_equal(seam_guest_describe(SEAM_GUEST_MAX_SYMBOLS + 1,
					     &symbol), -ENOENT);
}

UNIT_MAIN(NULL, NULL, NULL, NULL)
