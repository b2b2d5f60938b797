/* SPDX-License-Identifier: MIT */
/*
 * unit.h - cmocka, the system's headers, and tests that list themselves
 *
 *	UNIT_TEST(a_name_is_a_promise)
 *	{
 *		assert_true(...);
 *	}
 *
 *	UNIT_MAIN(NULL, NULL, set_up, tear_down)
 *
 * All tests of a program run, in the order of the file.
 */
#ifndef UNIT_H
#define UNIT_H

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

enum { UNIT_MAX_TESTS = 128 };

__attribute__((unused))
static struct {
	struct CMUnitTest tests[UNIT_MAX_TESTS];
	size_t n;
} unit;

static inline void unit_skipped(void **state)
{
	(void)state;
}

/* Before main(), in the order of the file, whatever the compiler's is. */
#define UNIT_LIST(function, can, why, set_up, tear_down)		\
	static void function(void **state);				\
	__attribute__((constructor(1000 + __COUNTER__)))		\
	static void unit_list_##function(void)				\
	{								\
		unit.tests[unit.n++] = (can) ? (struct CMUnitTest) {	\
			#function, function, set_up, tear_down, NULL	\
		} : (struct CMUnitTest) {				\
			#function " # SKIP " why, unit_skipped, NULL,	\
			NULL, NULL					\
		};							\
	}								\
	static void function(void **state)

#define UNIT_TEST(name) UNIT_LIST(name, true, "", NULL, NULL)

/* With functions of its own that run before and after the test, or NULL. */
#define UNIT_TEST_WITH(name, set_up, tear_down)				\
	UNIT_LIST(name, true, "", set_up, tear_down)

/* Where @can is false, the test does nothing, and its name has @why. */
#define UNIT_TEST_IF(name, can, why) UNIT_LIST(name, can, why, NULL, NULL)

/*
 * Run all tests of the program: @first and @last around all of them, @before
 * and @after around each that has no functions of its own; NULL: nothing.
 * What main() returns.
 */
static inline int unit_run(CMFixtureFunction first, CMFixtureFunction last,
			   CMFixtureFunction before, CMFixtureFunction after)
{
	for (size_t i = 0; i < unit.n; i++) {
		struct CMUnitTest *t = &unit.tests[i];

		if (t->setup_func || t->teardown_func ||
		    t->test_func == unit_skipped)
			continue;
		t->setup_func = before;
		t->teardown_func = after;
	}
	return _cmocka_run_group_tests("tests", unit.tests, unit.n, first,
				       last);
}

#define UNIT_MAIN(first, last, before, after)				\
	int main(void)							\
	{								\
		return unit_run(first, last, before, after);		\
	}

#endif /* UNIT_H */
