/* SPDX-License-Identifier: MIT */
/* test_demangle.c - the promises of demangle.h */
#include "base/demangle.h"

#include "unit.h"

/*
 * A name of Rust with @size bytes, of an identifier of @n.  libiberty's own
 * limit for C++ is lower.
 */
static char *name_of(size_t size, size_t n)
{
	static const char end[] = "17h0123456789abcdefE";
	char *name = malloc(size + 1);
	size_t used;

	assert_non_null(name);
	used = (size_t)snprintf(name, size + 1, "_ZN%zu", n);
	memset(name + used, 'a', n);
	memcpy(name + used + n, end, sizeof(end));
	assert_int_equal(strlen(name), size);
	return name;
}

UNIT_TEST(names_of_each_language_are_readable)
{
	static const char *const names[][2] = {
		{ "_ZN2ns1fEi", "ns::f" },
		{ "_ZN2ns1fEi@plt", "ns::f@plt" },
		{ "_ZN2ns3BoxIlE3getEi", "ns::Box<long>::get" },
		{ "_ZN1VclEi", "V::operator()" },
		{ "_ZL4anonv.constprop.0", "anon" },
		{ "_ZNSolsEi@plt", "std::ostream::operator<<@plt" },
		{ "_ZN4core3ptr4drop17h0123456789abcdefE",
		  "core::ptr::drop" },
		{ "_RNvC4test1f", "test::f" },
		{ "_RNvCs1234_7mycrate3foo", "mycrate::foo" },
		{ "_D4test1fFiZi", "test.f(int)" },
		{ "_D3std5stdio7writelnFZv", "std.stdio.writeln()" },
		{ "_Dmain", "D main" },
	}, *const as_they_are[] = {
		"main", "_start", "_Z", "_Zzzz", "_R", "_D", "_Dmain_", "", "_",
	};
	struct seam_arena arena = { 0 };

	for (size_t i = 0; i < SEAM_ARRAY_SIZE(names); i++)
		assert_string_equal(seam_demangle(&arena, names[i][0]),
				    names[i][1]);
	for (size_t i = 0; i < SEAM_ARRAY_SIZE(as_they_are); i++)
		assert_ptr_equal(seam_demangle(&arena, as_they_are[i]),
				 as_they_are[i]);
	assert_string_equal(seam_demangle_with_parameters(&arena,
							  "_ZN2ns1fEi"),
			    "ns::f(int)");
	seam_arena_fini(&arena);
}

UNIT_TEST(a_name_beyond_the_limit_stays_mangled)
{
	struct seam_arena arena = { 0 };

	for (size_t more = 0; more < 2; more++) {
		size_t size = SEAM_DEMANGLE_MAX + more, n = size - 28;
		char *name = name_of(size, n);
		const char *readable = seam_demangle(&arena, name);

		if (more)
			assert_ptr_equal(readable, name);
		else
			assert_int_equal(strspn(readable, "a"), n);
		free(name);
	}
	seam_arena_fini(&arena);
}

/* f<a<int, int>, a<that, that>, ...>: each argument is twice the last. */
UNIT_TEST(a_name_that_prints_gigabytes_stays_as_it_is)
{
	static const char places[] = "123456789ABCDEFGHIJKLMNOPQRSTUVW";
	struct seam_arena arena = { 0 };
	char bomb[512] = "_Z1fI1aIiiE";
	size_t n = strlen(bomb);

	for (size_t i = 0; i < sizeof(places) - 1; i++)
		n += (size_t)snprintf(bomb + n, sizeof(bomb) - n,
				      "S0_IS%c_S%c_E", places[i], places[i]);
	snprintf(bomb + n, sizeof(bomb) - n, "Evv");
	assert_ptr_equal(seam_demangle(&arena, bomb), bomb);
	seam_arena_fini(&arena);
}

UNIT_TEST(names_of_the_jvm_read_as_java)
{
	static const char *const names[][2] = {
		{ "LA;f()V", "A.f()" },
		{ "Ljava/util/Arrays;sort([I)V", "java.util.Arrays.sort(int[])" },
		{ "LA;<init>(JLjava/lang/String;[[Z[LB;)V",
		  "A.<init>(long, java.lang.String, boolean[][], B[])" },
	}, *const others[] = {
		"", "main", "A;f()V", "LA", "LA;", "LA;f", "LA;()V", "LA;f(",
		"LA;f(I", "LA;f(Q)V", "LA;f(LB)V", "LA;f([)V", "LA;f/g()V",
	};
	char buf[64];

	for (size_t i = 0; i < SEAM_ARRAY_SIZE(names); i++) {
		size_t n = strlen(names[i][1]);

		assert_true(seam_java_name(names[i][0], buf, n + 1));
		assert_string_equal(buf, names[i][1]);
		assert_false(seam_java_name(names[i][0], buf, n));
	}
	for (size_t i = 0; i < SEAM_ARRAY_SIZE(others); i++)
		assert_false(seam_java_name(others[i], buf, sizeof(buf)));
}

UNIT_MAIN(NULL, NULL, NULL, NULL)
