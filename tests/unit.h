/* SPDX-License-Identifier: MIT */
/*
 * unit.h - cmocka, what cmocka.h needs, and tests that list themselves
 *
 *	UNIT_TEST(a_name_is_a_promise)
 *	{
 *		assert_true(...);
 *	}
 *
 *	UNIT_MAIN("name", NULL, NULL)
 *
 * All tests of a program run, in the order of their lines.
 */
#ifndef UNIT_H
#define UNIT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

struct unit_test {
	struct CMUnitTest test;
	bool (*can)(void);	/* NULL: it can always run */
	const char *why;	/* it cannot */
	int line;
};

/* The linker's, around a pointer to each test of the program. */
extern const struct unit_test *const __start_unit_tests[];
extern const struct unit_test *const __stop_unit_tests[];

#define UNIT_LIST(name, set_up, tear_down, can, why)			\
	static void name(void **state);					\
	static const struct unit_test unit_##name = {			\
		{ #name, name, set_up, tear_down, NULL }, can, why,	\
		__LINE__						\
	};								\
	__attribute__((used, section("unit_tests")))			\
	static const struct unit_test *const unit_entry_##name =	\
		&unit_##name;						\
	static void name(void **state)

#define UNIT_TEST(name) UNIT_LIST(name, NULL, NULL, NULL, NULL)

/* With functions that run before and after the test; NULL: none. */
#define UNIT_TEST_WITH(name, set_up, tear_down)				\
	UNIT_LIST(name, set_up, tear_down, NULL, NULL)

/* Where @expression is false, the test does nothing, and its name has @why. */
#define UNIT_TEST_IF(name, expression, why)				\
	static bool unit_can_##name(void)				\
	{								\
		return expression;					\
	}								\
	UNIT_LIST(name, NULL, NULL, unit_can_##name, why)

static inline void unit_skipped(void **state)
{
}

static inline int unit_by_line(const void *a, const void *b)
{
	const struct unit_test *const *x = a, *const *y = b;

	return ((*x)->line > (*y)->line) - ((*x)->line < (*y)->line);
}

/* Run all tests of the program; what main() returns. */
static inline int unit_run(const char *group, CMFixtureFunction set_up,
			   CMFixtureFunction tear_down)
{
	size_t n = (size_t)(__stop_unit_tests - __start_unit_tests);
	const struct unit_test *sorted[n];
	struct CMUnitTest tests[n];
	char names[n][160];

	memcpy(sorted, __start_unit_tests, sizeof(sorted));
	qsort(sorted, n, sizeof(sorted[0]), unit_by_line);
	for (size_t i = 0; i < n; i++) {
		tests[i] = sorted[i]->test;
		if (!sorted[i]->can || sorted[i]->can())
			continue;
		snprintf(names[i], sizeof(names[i]), "%s # SKIP %s",
			 tests[i].name, sorted[i]->why);
		tests[i] = (struct CMUnitTest) {
			.name = names[i], .test_func = unit_skipped,
		};
	}
	return _cmocka_run_group_tests(group, tests, n, set_up, tear_down);
}

#define UNIT_MAIN(group, set_up, tear_down)				\
	int main(void)							\
	{								\
		return unit_run(group, set_up, tear_down);		\
	}

#endif /* UNIT_H */
