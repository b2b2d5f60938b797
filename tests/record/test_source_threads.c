/* SPDX-License-Identifier: MIT */
/* test_source_threads.c - threads that end leave nothing to go round over */
#include "record/perf/sources.h"

#include "base/hash.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

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

static void rings_of_the_dead_are_not_gone_round_over(void **state)
{
	struct seam_event event = { 0 };
	struct seam_sources s = { .events = &event, .n_events = 1 };

	(void)state;
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

static void a_number_that_is_used_again_is_the_newest(void **state)
{
	struct seam_event event = { 0 };
	struct seam_sources s = { .events = &event, .n_events = 1 };

	(void)state;
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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(rings_of_the_dead_are_not_gone_round_over),
		cmocka_unit_test(a_number_that_is_used_again_is_the_newest),
	};

	return cmocka_run_group_tests_name("source_threads", tests, NULL,
					   NULL);
}
