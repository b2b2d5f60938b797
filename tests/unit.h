/* SPDX-License-Identifier: MIT */
/* unit.h - what a unit test includes: cmocka, and what cmocka.h needs */
#ifndef UNIT_H
#define UNIT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/*
 * UNIT_TEST(name) in place of "static void name(void **state)" defines a test
 * that registers itself.  UNIT_TESTS(), at the end of the file, is main(): it
 * runs the tests in the order of the file, each between @before and @after,
 * which may be NULL.
 */
#define UNIT_TEST(name)							\
	static void name(void **state);					\
	/* the order of the file, whatever the compiler's is */		\
	__attribute__((constructor(1000 + __COUNTER__)))		\
	static void register_##name(void)				\
	{								\
		unit.tests[unit.n++] = (struct CMUnitTest)		\
			cmocka_unit_test(name);				\
	}								\
	static void name(void **state)

#define UNIT_TESTS(before, after)					\
	int main(void)							\
	{								\
		return unit_run(NULL, NULL, before, after);		\
	}

__attribute__((unused))
static struct {
	struct CMUnitTest tests[64];
	size_t n;
} unit;

/* With functions for the whole group, too; the exit status. */
__attribute__((unused))
static int unit_run(CMFixtureFunction first, CMFixtureFunction last,
		    CMFixtureFunction before, CMFixtureFunction after)
{
	for (size_t i = 0; i < unit.n; i++) {
		unit.tests[i].setup_func = before;
		unit.tests[i].teardown_func = after;
	}
	return _cmocka_run_group_tests("tests", unit.tests, unit.n, first,
				       last);
}

#endif /* UNIT_H */
