/* SPDX-License-Identifier: MIT */
/* test_new_threads.c - forks and exits, read in any order */
#include "record/perf/new_threads.h"

#include <linux/perf_event.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { FORK = PERF_RECORD_FORK, EXIT = PERF_RECORD_EXIT };

/* No threads have these ids. */
enum { MISSING = 0x7ffffff0, MISSING_TOO };

static struct seam_counts update(const struct seam_perf_sideband *records,
				 size_t n)
{
	struct seam_data_file file = { .fd = -1 };
	struct seam_event dummy;
	struct seam_sources sources = {
		.per_thread = true, .events = &dummy, .n_events = 1,
	};
	struct seam_new_threads threads = {
		.sources = &sources, .file = &file,
	};

	seam_sources_sideband(&dummy);
	for (size_t i = 0; i < n; i++)
		seam_new_threads_read(&threads, &records[i]);
	assert_int_equal(seam_new_threads_update(&threads, NULL), 0);
	assert_int_equal(threads.changes.n, 0);
	seam_sources_fini(&sources);
	seam_new_threads_fini(&threads);
	return file.losses;
}

#define TASK(what, id, when)						\
	{ .type = (what),						\
	  .task = { .pid = 1, .ppid = 1, .tid = (id), .time = (when) } }

static void a_life_is_known_though_its_exit_is_read_first(void **state)
{
	static const struct seam_perf_sideband tasks[] = {
		TASK(EXIT, MISSING, 300), TASK(FORK, MISSING, 100),
	};
	struct seam_counts losses = update(tasks, 2);

	(void)state;
	assert_int_equal(losses.n[SEAM_COUNT_THREADS_UNSEEN], 1);
	assert_int_equal(losses.n[SEAM_COUNT_LATE_NS], 200);
	assert_int_equal(losses.n[SEAM_COUNT_LONGEST_LATE_NS], 200);
}

static void the_exit_of_an_earlier_thread_with_that_id_is_not_used(
	void **state)
{
	static const struct seam_perf_sideband tasks[] = {
		TASK(FORK, MISSING, 500), TASK(EXIT, MISSING, 900),
		TASK(EXIT, MISSING, 400), TASK(FORK, MISSING_TOO, 450),
		TASK(EXIT, MISSING_TOO, 460),
	};
	struct seam_counts losses = update(tasks, 5);

	(void)state;
	assert_int_equal(losses.n[SEAM_COUNT_THREADS_UNSEEN], 2);
	assert_int_equal(losses.n[SEAM_COUNT_LATE_NS], 400 + 10);
	assert_int_equal(losses.n[SEAM_COUNT_LONGEST_LATE_NS], 400);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_life_is_known_though_its_exit_is_read_first),
		cmocka_unit_test(
			the_exit_of_an_earlier_thread_with_that_id_is_not_used),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
