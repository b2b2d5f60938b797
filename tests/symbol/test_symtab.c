/* SPDX-License-Identifier: MIT */
/* test_symtab.c - sizes, labels, aliases, and names for people */
#include "symbol/elf/symtab.h"

#include "unit.h"

/* Of each test. */
static struct seam_symtab table;
static struct seam_arena arena;

static int stop(void **state)
{
	seam_symtab_fini(&table);
	seam_arena_fini(&arena);
	return 0;
}

static void add(const char *name, uint64_t addr, uint64_t size, uint32_t flags)
{
	const struct seam_symbol symbol = {
		.start = addr, .end = addr + size, .limit = 0x1000,
		.name = name, .flags = flags,
	};

	assert_int_equal(seam_symtab_add(&table, &symbol), 0);
}

static const char *name_at(uint64_t addr)
{
	const char *name = seam_symtab_name(&table, addr, &arena);

	return name ? name : "none";
}

#define TEST(name) UNIT_TEST_WITH(name, NULL, stop)

TEST(a_symbol_owns_its_bytes_and_no_more)
{
	add("b", 0x200, 0x20, 0);
	add("a", 0x100, 0x10, 0);
	seam_symtab_sort(&table);
	assert_string_equal(name_at(0xff), "none");
	assert_string_equal(name_at(0x100), "a");
	assert_string_equal(name_at(0x10f), "a");
	assert_string_equal(name_at(0x110), "none");
	assert_string_equal(name_at(0x21f), "b");
	assert_string_equal(name_at(0x220), "none");
}

TEST(without_a_size_it_ends_at_the_next_or_at_its_limit)
{
	add("a", 0x100, 0, 0);
	add("data", 0x180, 0, SEAM_SYMBOL_FENCE);
	add("last", 0x200, 0, 0);
	seam_symtab_sort(&table);
	assert_string_equal(name_at(0x17f), "a");
	assert_string_equal(name_at(0x180), "none");
	assert_string_equal(name_at(0xfff), "last");
	assert_string_equal(name_at(0x1000), "none");
}

TEST(a_label_inside_a_function_is_no_function)
{
	add("memcpy", 0x100, 0x100, SEAM_SYMBOL_GLOBAL);
	add("loop", 0x140, 0, SEAM_SYMBOL_LABEL);
	add("after", 0x200, 0, SEAM_SYMBOL_LABEL);
	add("part", 0x180, 8, 0);
	seam_symtab_sort(&table);
	assert_string_equal(name_at(0x150), "memcpy");
	assert_string_equal(name_at(0x180), "part");
	assert_string_equal(name_at(0x188), "memcpy");
	assert_string_equal(name_at(0x210), "after");
}

TEST(the_best_alias_is_shown)
{
	/* A size, then a type, then not weak, then global. */
	add("unsized", 0x100, 0, SEAM_SYMBOL_GLOBAL);
	add("local", 0x100, 8, 0);
	add("weak and longer", 0x100, 8, SEAM_SYMBOL_WEAK);
	add("label", 0x100, 8, SEAM_SYMBOL_LABEL | SEAM_SYMBOL_GLOBAL);
	/* Fewer underscores, then the longer one. */
	add("__read", 0x200, 8, SEAM_SYMBOL_GLOBAL);
	add("read", 0x200, 8, SEAM_SYMBOL_GLOBAL);
	add("read64", 0x200, 8, SEAM_SYMBOL_GLOBAL);
	/* Of the demangled names: "longer" has none, "b::c" is shorter. */
	add("_ZN1b1cEv", 0x300, 8, SEAM_SYMBOL_GLOBAL);
	add("longer", 0x300, 8, SEAM_SYMBOL_GLOBAL);
	seam_symtab_sort(&table);
	assert_string_equal(name_at(0x100), "local");
	assert_string_equal(name_at(0x200), "read64");
	assert_string_equal(name_at(0x300), "longer");
}

TEST(sorting_again_takes_in_what_was_added)
{
	add("b", 0x200, 8, 0);
	seam_symtab_sort(&table);
	add("a", 0x100, 8, 0);
	seam_symtab_sort(&table);
	assert_string_equal(name_at(0x100), "a");
	assert_string_equal(name_at(0x200), "b");
}

UNIT_MAIN(NULL, NULL, NULL, NULL)
