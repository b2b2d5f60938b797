/* SPDX-License-Identifier: MIT */
/* test_symtab.c - sizes, labels, aliases, and names for people */
#include "symbol/elf/symtab.h"

#include "base/demangle.h"
#include "unit.h"

struct fixture {
	struct seam_symtab table;
	struct seam_arena arena;
};

static int start(void **state)
{
	*state = calloc(1, sizeof(struct fixture));
	return !*state;
}

static int stop(void **state)
{
	struct fixture *f = *state;

	seam_symtab_fini(&f->table);
	seam_arena_fini(&f->arena);
	free(f);
	return 0;
}

static void add(struct fixture *f, const char *name, uint64_t addr,
		uint64_t size, uint32_t flags)
{
	const struct seam_symbol symbol = {
		.start = addr, .end = addr + size, .limit = 0x1000,
		.name = name, .flags = flags,
	};

	assert_int_equal(seam_symtab_add(&f->table, &symbol), 0);
}

static const char *name_at(struct fixture *f, uint64_t addr)
{
	const char *name = seam_symtab_name(&f->table, addr, &f->arena);

	return name ? name : "none";
}

#define TEST(name) UNIT_TEST_WITH(name, start, stop)

TEST(a_symbol_owns_its_bytes_and_no_more)
{
	struct fixture *f = *state;

	add(f, "b", 0x200, 0x20, 0);
	add(f, "a", 0x100, 0x10, 0);
	seam_symtab_sort(&f->table);
	assert_string_equal(name_at(f, 0xff), "none");
	assert_string_equal(name_at(f, 0x100), "a");
	assert_string_equal(name_at(f, 0x10f), "a");
	assert_string_equal(name_at(f, 0x110), "none");
	assert_string_equal(name_at(f, 0x21f), "b");
	assert_string_equal(name_at(f, 0x220), "none");
}

TEST(without_a_size_it_ends_at_the_next_or_at_its_limit)
{
	struct fixture *f = *state;

	add(f, "a", 0x100, 0, 0);
	add(f, "data", 0x180, 0, SEAM_SYMBOL_FENCE);
	add(f, "last", 0x200, 0, 0);
	seam_symtab_sort(&f->table);
	assert_string_equal(name_at(f, 0x17f), "a");
	assert_string_equal(name_at(f, 0x180), "none");
	assert_string_equal(name_at(f, 0xfff), "last");
	assert_string_equal(name_at(f, 0x1000), "none");
}

TEST(a_label_inside_a_function_is_no_function)
{
	struct fixture *f = *state;

	add(f, "memcpy", 0x100, 0x100, SEAM_SYMBOL_GLOBAL);
	add(f, "loop", 0x140, 0, SEAM_SYMBOL_LABEL);
	add(f, "after", 0x200, 0, SEAM_SYMBOL_LABEL);
	add(f, "part", 0x180, 8, 0);
	seam_symtab_sort(&f->table);
	assert_string_equal(name_at(f, 0x150), "memcpy");
	assert_string_equal(name_at(f, 0x180), "part");
	assert_string_equal(name_at(f, 0x188), "memcpy");
	assert_string_equal(name_at(f, 0x210), "after");
}

TEST(the_best_alias_is_shown)
{
	struct fixture *f = *state;

	/* A size, then a type, then not weak, then global. */
	add(f, "unsized", 0x100, 0, SEAM_SYMBOL_GLOBAL);
	add(f, "local", 0x100, 8, 0);
	add(f, "weak and longer", 0x100, 8, SEAM_SYMBOL_WEAK);
	add(f, "label", 0x100, 8, SEAM_SYMBOL_LABEL | SEAM_SYMBOL_GLOBAL);
	/* Fewer underscores, then the longer one. */
	add(f, "__read", 0x200, 8, SEAM_SYMBOL_GLOBAL);
	add(f, "read", 0x200, 8, SEAM_SYMBOL_GLOBAL);
	add(f, "read64", 0x200, 8, SEAM_SYMBOL_GLOBAL);
	/* Of the demangled names: "longer" has none, "b::c" is shorter. */
	add(f, "_ZN1b1cEv", 0x300, 8, SEAM_SYMBOL_GLOBAL);
	add(f, "longer", 0x300, 8, SEAM_SYMBOL_GLOBAL);
	seam_symtab_sort(&f->table);
	assert_string_equal(name_at(f, 0x100), "local");
	assert_string_equal(name_at(f, 0x200), "read64");
	assert_string_equal(name_at(f, 0x300), "longer");
}

TEST(sorting_again_takes_in_what_was_added)
{
	struct fixture *f = *state;

	add(f, "b", 0x200, 8, 0);
	seam_symtab_sort(&f->table);
	add(f, "a", 0x100, 8, 0);
	seam_symtab_sort(&f->table);
	assert_string_equal(name_at(f, 0x100), "a");
	assert_string_equal(name_at(f, 0x200), "b");
}

TEST(names_are_those_that_people_wrote)
{
	struct fixture *f = *state;
	static const char *const pairs[][2] = {
		{ "main", "main" },
		{ "_ZN2ns3BoxIlE3getEi", "ns::Box<long>::get" },
		{ "_ZN1VclEi", "V::operator()" },
		{ "_ZL4anonv.constprop.0", "anon" },
		{ "_ZNSolsEi@plt", "std::ostream::operator<<@plt" },
		{ "_ZN4core3ptr4drop17h0123456789abcdefE",
		  "core::ptr::drop" },
		{ "_RNvCs1234_7mycrate3foo", "mycrate::foo" },
		{ "_D3std5stdio7writelnFZv", "std.stdio.writeln()" },
		{ "_Z", "_Z" },
		{ "_Zzzz", "_Zzzz" },
		{ "_R", "_R" },
		{ "_D", "_D" },
		{ "_Dmain", "D main" },
		{ "", "" },
	};

	for (size_t i = 0; i < SEAM_ARRAY_SIZE(pairs); i++)
		assert_string_equal(seam_demangle(&f->arena, pairs[i][0]),
				    pairs[i][1]);
}

/* f<a<int, int>, a<that, that>, ...>: each argument is twice the last. */
TEST(a_name_that_prints_gigabytes_stays_as_it_is)
{
	static const char places[] = "123456789ABCDEFGHIJKLMNOPQRSTUVW";
	struct fixture *f = *state;
	char bomb[512] = "_Z1fI1aIiiE";
	size_t n = strlen(bomb);

	for (size_t i = 0; i < sizeof(places) - 1; i++)
		n += (size_t)snprintf(bomb + n, sizeof(bomb) - n,
				      "S0_IS%c_S%c_E", places[i], places[i]);
	snprintf(bomb + n, sizeof(bomb) - n, "Evv");
	assert_string_equal(seam_demangle(&f->arena, bomb), bomb);
}

UNIT_MAIN("symtab", NULL, NULL)
