/* SPDX-License-Identifier: MIT */
/* test_follow.c - births and deaths, in whatever order the rings give them */
#include "record/perf/new_threads.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* FORK and EXIT are of one form.  Source: linux/perf_event.h. */
struct task {
	struct seam_ring_header header;
	uint32_t pid, ppid, tid, ptid;
	uint64_t time_ns;
};

enum { BORN = PERF_RECORD_FORK, DIED = PERF_RECORD_EXIT };

static void see(struct seam_new_threads *follow, uint32_t type, uint32_t tid,
		uint64_t time_ns)
{
	struct task task = {
		.header = { .type = type, .size = sizeof(task) },
		.pid = 1, .ppid = 1, .tid = tid, .ptid = 1,
		.time_ns = time_ns,
	};

	seam_new_threads_see(follow, &task.header);
}

/* No thread of these numbers is there to be opened. */
enum { NOBODY = 0x7ffffff0, NOBODY_ELSE };

static struct seam_new_threads act(const struct task *news, size_t n)
{
	struct seam_sources sources = { .per_thread = true };
	struct seam_event dummy;
	struct seam_new_threads follow = { .sources = &sources };

	seam_sources_sideband(&dummy);
	sources.events = &dummy;
	sources.n_events = 1;
	for (size_t i = 0; i < n; i++)
		see(&follow, news[i].header.type, news[i].tid,
		    news[i].time_ns);
	assert_int_equal(seam_new_threads_act(&follow, NULL), 0);
	assert_int_equal(follow.news.n, 0);
	seam_sources_fini(&sources);
	return follow;
}

#define NEWS(what, who, when) { { .type = (what) }, .tid = (who),	\
				.time_ns = (when) }

static void a_life_is_known_though_its_end_is_read_first(void **state)
{
	static const struct task news[] = {
		NEWS(DIED, NOBODY, 300), NEWS(BORN, NOBODY, 100),
	};
	struct seam_new_threads follow = act(news, 2);

	(void)state;
	assert_int_equal(follow.n_unseen, 1);
	assert_int_equal(follow.late_ns, 200);
	assert_int_equal(follow.longest_ns, 200);
	seam_new_threads_fini(&follow);
}

static void the_end_of_who_had_the_number_before_is_not_taken(void **state)
{
	static const struct task news[] = {
		NEWS(BORN, NOBODY, 500), NEWS(DIED, NOBODY, 900),
		NEWS(DIED, NOBODY, 400), NEWS(BORN, NOBODY_ELSE, 450),
		NEWS(DIED, NOBODY_ELSE, 460),
	};
	struct seam_new_threads follow = act(news, 5);

	(void)state;
	assert_int_equal(follow.n_unseen, 2);
	assert_int_equal(follow.late_ns, 400 + 10);
	assert_int_equal(follow.longest_ns, 400);
	seam_new_threads_fini(&follow);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_life_is_known_though_its_end_is_read_first),
		cmocka_unit_test(
			the_end_of_who_had_the_number_before_is_not_taken),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
