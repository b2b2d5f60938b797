/* SPDX-License-Identifier: MIT */
/* test_task_history.c - which process had the memory of rings, and until when */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

#include "record/services/task_history.h"

/* Process 10 got rings at time 100. */
enum { HOLDER = 10, SINCE = 100 };

static struct seam_task_history history;
static struct seam_ring_holder holder;

static int set_up(void **state)
{
	(void)state;
	holder = (struct seam_ring_holder) { HOLDER, SINCE, 0 };
	return seam_task_history_init(&history, NULL);
}

static int tear_down(void **state)
{
	(void)state;
	seam_task_history_fini(&history);
	return 0;
}

static void expect(uint32_t tid, uint32_t pid, uint64_t until_ns)
{
	uint64_t until;

	assert_int_equal(seam_task_history_find(&history, &holder, tid, &until),
			 pid);
	if (pid)
		assert_int_equal(until, until_ns);
}

static void the_holder_has_its_rings_until_its_exec(void **state)
{
	(void)state;
	expect(HOLDER, HOLDER, 0);
	expect(11, 0, 0);
	holder.until_ns = 200;
	expect(HOLDER, HOLDER, 200);
}

static void a_child_has_them_if_it_was_forked_in_that_time(void **state)
{
	(void)state;
	holder.until_ns = 200;
	seam_task_history_fork(&history, 20, HOLDER, 100);
	seam_task_history_fork(&history, 21, HOLDER, 101);
	seam_task_history_fork(&history, 22, HOLDER, 200);
	seam_task_history_fork(&history, 23, HOLDER, 201);
	seam_task_history_fork(&history, 24, 99, 150);
	expect(20, 0, 0);
	expect(21, 21, 0);
	expect(22, 22, 0);
	expect(23, 0, 0);
	expect(24, 0, 0);
	/* and its children, of before its exec only */
	seam_task_history_fork(&history, 30, 21, 300);
	seam_task_history_exec(&history, 21, 310);
	seam_task_history_fork(&history, 31, 21, 320);
	expect(30, 30, 0);
	expect(21, 21, 309);
	expect(31, 0, 0);
}

static void an_exec_that_is_seen_before_the_fork_counts(void **state)
{
	(void)state;
	seam_task_history_exec(&history, 20, 160);
	expect(20, 0, 0);
	seam_task_history_fork(&history, 20, HOLDER, 150);
	expect(20, 20, 159);
	/* the same of a pid that was another process's before */
	seam_task_history_fork(&history, 21, 99, 50);
	seam_task_history_exec(&history, 21, 60);
	seam_task_history_exec(&history, 21, 180);
	seam_task_history_fork(&history, 21, HOLDER, 170);
	expect(21, 21, 179);
	/* but not one from before the fork */
	seam_task_history_exec(&history, 22, 110);
	seam_task_history_fork(&history, 22, HOLDER, 120);
	expect(22, 22, 0);
}

static void a_thread_is_of_the_process_that_had_it_last(void **state)
{
	(void)state;
	seam_task_history_thread(&history, 40, HOLDER, 90);
	expect(40, 0, 0);		/* ended before there were rings */
	seam_task_history_thread(&history, 40, HOLDER, 110);
	expect(40, HOLDER, 0);
	seam_task_history_thread(&history, 40, 99, 120);
	expect(40, HOLDER, 0);		/* the stranger has no rings */
	/* a thread that is seen before its process */
	seam_task_history_thread(&history, 41, 20, 140);
	expect(41, 0, 0);
	seam_task_history_fork(&history, 20, HOLDER, 130);
	expect(41, 20, 0);
	seam_task_history_exec(&history, 20, 150);
	expect(41, 20, 149);
	/* a process that got the id of a thread */
	seam_task_history_fork(&history, 40, HOLDER, 200);
	expect(40, 40, 0);
}

static void the_oldest_are_forgotten_and_circles_end(void **state)
{
	(void)state;
	seam_task_history_fork(&history, 20, HOLDER, 150);
	for (uint32_t i = 0; i < 70000; i++) {
		seam_task_history_fork(&history, 1000 + i, 1000 + i + 1, 200);
		seam_task_history_thread(&history, 1000 + i, 99, 200);
	}
	expect(20, 0, 0);
	expect(70999, 0, 0);
	seam_task_history_fork(&history, 50, 51, 200);
	seam_task_history_fork(&history, 51, 50, 200);
	expect(50, 0, 0);
	assert_false(seam_task_history_descends(&history, 50, HOLDER));
	/* numbers that are no pids */
	seam_task_history_fork(&history, UINT32_MAX, HOLDER, 200);
	seam_task_history_exec(&history, UINT32_MAX, 200);
	expect(UINT32_MAX, 0, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(
			the_holder_has_its_rings_until_its_exec, set_up,
			tear_down),
		cmocka_unit_test_setup_teardown(
			a_child_has_them_if_it_was_forked_in_that_time, set_up,
			tear_down),
		cmocka_unit_test_setup_teardown(
			an_exec_that_is_seen_before_the_fork_counts, set_up,
			tear_down),
		cmocka_unit_test_setup_teardown(
			a_thread_is_of_the_process_that_had_it_last, set_up,
			tear_down),
		cmocka_unit_test_setup_teardown(
			the_oldest_are_forgotten_and_circles_end, set_up,
			tear_down),
	};

	return cmocka_run_group_tests_name("task_history", tests, NULL, NULL);
}
