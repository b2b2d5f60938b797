/* SPDX-License-Identifier: MIT */
/* test_new_threads.c - forks and exits, in any order; sources of threads */
#include "record/perf/new_threads.h"

#include "base/hash.h"

#include <linux/perf_event.h>

#include "unit.h"

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

UNIT_TEST(a_life_is_known_though_its_exit_is_read_first)
{
	static const struct seam_perf_sideband tasks[] = {
		TASK(EXIT, MISSING, 300), TASK(FORK, MISSING, 100),
	};
	struct seam_counts losses = update(tasks, 2);

	assert_int_equal(losses.n[SEAM_COUNT_THREADS_UNSEEN], 1);
	assert_int_equal(losses.n[SEAM_COUNT_LATE_NS], 200);
	assert_int_equal(losses.n[SEAM_COUNT_LONGEST_LATE_NS], 200);
}

UNIT_TEST(the_exit_of_an_earlier_thread_with_that_id_is_not_used)
{
	static const struct seam_perf_sideband tasks[] = {
		TASK(FORK, MISSING, 500), TASK(EXIT, MISSING, 900),
		TASK(EXIT, MISSING, 400), TASK(FORK, MISSING_TOO, 450),
		TASK(EXIT, MISSING_TOO, 460),
	};
	struct seam_counts losses = update(tasks, 5);

	assert_int_equal(losses.n[SEAM_COUNT_THREADS_UNSEEN], 2);
	assert_int_equal(losses.n[SEAM_COUNT_LATE_NS], 400 + 10);
	assert_int_equal(losses.n[SEAM_COUNT_LONGEST_LATE_NS], 400);
}

/* ---- threads that end leave nothing to go round over ---- */

enum { N = 1000 };

/* As seam_sources_add_thread() leaves it; the event is /dev/null. */
static void add(struct seam_sources *s, int tid)
{
	uint32_t id = (uint32_t)s->threads.n;

	*SEAM_ARRAY_PUSH(&s->threads) = (struct seam_source_thread) {
		.tid = tid, .first_source = (uint32_t)s->list.n,
		.n_sources = 1, .first_ring = (uint32_t)s->rings.n,
		.n_rings = 1,
	};
	assert_int_equal(seam_index_add(&s->by_tid,
					seam_hash_u64((uint32_t)tid), id), 0);
	*SEAM_ARRAY_PUSH(&s->list) = (struct seam_source) {
		.fd = open("/dev/null", O_RDONLY | O_CLOEXEC), .tid = tid,
		.ring = (uint32_t)s->rings.n,
	};
	*SEAM_ARRAY_PUSH(&s->live) = (uint32_t)s->rings.n;
	*SEAM_ARRAY_PUSH(&s->rings) = (struct seam_source_ring) {
		.tid = tid, .use = SEAM_RING_OF_SAMPLES, .fd = -1,
	};
}

UNIT_TEST(rings_of_the_dead_are_not_gone_round_over)
{
	struct seam_event event = { 0 };
	struct seam_sources s = { .events = &event, .n_events = 1 };

	for (int i = 0; i < N; i++) {
		add(&s, 100 + i);
		if (i >= 8)
			seam_sources_end_thread(&s, 100 + i - 8);
		assert_true(s.live.n <= 8);
		assert_int_equal(s.live.items[s.live.n - 1], i);
	}
	assert_int_equal(s.rings.n, N);
	assert_null(seam_sources_thread(&s, 100));
	assert_int_equal(seam_sources_thread(&s, 100 + N - 1)->first_ring,
			 N - 1);
	seam_sources_fini(&s);
}

UNIT_TEST(a_number_that_is_used_again_is_the_newest)
{
	struct seam_event event = { 0 };
	struct seam_sources s = { .events = &event, .n_events = 1 };

	for (uint32_t i = 0; i < 50; i++) {
		add(&s, 7);
		assert_int_equal(seam_sources_thread(&s, 7)->first_ring, i);
		seam_sources_end_thread(&s, 7);
		assert_null(seam_sources_thread(&s, 7));
		assert_int_equal(s.list.items[i].fd, -1);
	}
	seam_sources_end_thread(&s, 7);
	seam_sources_fini(&s);
}

UNIT_MAIN(NULL, NULL, NULL, NULL)
