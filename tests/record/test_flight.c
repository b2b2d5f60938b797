/* SPDX-License-Identifier: MIT */
/* test_flight.c - triggers, their snapshots, and calls of ended threads */
#include "record/tracing.c"
#include "unit.h"

/* ---- expressions ---- */

static const char *const valid[] = {
	"handle_request>10ms", "f>1ns", "f>500us", "f>2s", "f>0ms",
	"operator>>10ms", "std::vector<int, a<int> >::push_back>10ms",
	"handle_*>10ms", "calls:abort_txn", "calls:ns::f(int, char)",
	"calls::f>1ms", "signal::f>3us",
};

static const char *const invalid[] = {
	"", "f", "f>", ">10ms", "f>10", "f>10 ms", "f>-1ms", "f>10m", "f>ms",
	"f>99999999999999999999s", "f>18446744073709551615s", "f>=10ms",
	"calls:", "signal:", "signal:SEGV", "signal:9", "f<10ms",
};

UNIT_TEST(accepts_the_expressions_of_the_help)
{
	struct seam_trigger trigger;

	for (size_t i = 0; i < SEAM_ARRAY_SIZE(valid); i++) {
		const char *cause = seam_trigger_parse(valid[i], &trigger);

		if (cause)
			fail_msg("'%s': %s", valid[i], cause);
	}
}

UNIT_TEST(refuses_all_others_with_a_cause)
{
	struct seam_trigger trigger;

	for (size_t i = 0; i < SEAM_ARRAY_SIZE(invalid); i++)
		if (!seam_trigger_parse(invalid[i], &trigger))
			fail_msg("'%s' is taken", invalid[i]);
}

/* ---- hits ---- */

static struct trigger_hits hits;

/* The last resume() of each process. */
static struct {
	uint32_t number[8];
	unsigned int n;
} resumed;

static void count_resume(void *context, uint32_t pid, uint32_t number)
{
	(void)context;
	resumed.number[pid] = number;
	resumed.n++;
}

static int set_up(void **state)
{
	memset(&resumed, 0, sizeof(resumed));
	hits = (struct trigger_hits) {
		.n_triggers = 3, .max_snapshots = 10, .resume = count_resume,
	};
	return 0;
}

static int tear_down(void **state)
{
	hits_fini(&hits);
	return 0;
}

static void hit(uint32_t pid, uint32_t number)
{
	hits_add(&hits, pid, &(struct seam_xray_trigger) {
		.number = number, .tid = pid, .tsc = number });
}

UNIT_TEST(one_snapshot_is_for_all_hits_of_a_process)
{
	uint64_t due_ns, min_ns = seam_clock_ns() + SEAM_NS_PER_S;

	hits.after_ns = SEAM_NS_PER_S;
	assert_int_equal(hits_due_ns(&hits), UINT64_MAX);
	hit(1, 1);
	due_ns = hits_due_ns(&hits);
	assert_in_range(due_ns, min_ns, seam_clock_ns() + SEAM_NS_PER_S);
	hit(2, 1);
	hit(1, 2);
	hits.waiting.items[1].due_ns = hits.waiting.items[2].due_ns =
		due_ns + 1000;
	assert_int_equal(hits_due_ns(&hits), due_ns);
	assert_int_equal(hits_take(&hits, due_ns - 1), 0);
	assert_int_equal(hits_take(&hits, due_ns), 2);
	assert_int_equal(hits.taken.items[0].met.number, 1);
	assert_int_equal(hits.taken.items[1].met.number, 2);
	assert_int_equal(hits.waiting.n, 1);
	assert_int_equal(resumed.n, 0);
	/* one more while the snapshot is made: it gets its own */
	hit(1, 3);
	hits_resume(&hits, 0);
	assert_int_equal(resumed.number[1], 2);
	hits_done(&hits, true);
	assert_int_equal(resumed.number[1], 2);
	assert_int_equal(resumed.number[2], 0);
	assert_int_equal(hits.n_snapshots, 1);
	assert_int_equal(hits_take(&hits, UINT64_MAX), 2);
	hits_done(&hits, false);
	assert_int_equal(resumed.number[1], 3);
	assert_int_equal(resumed.number[2], 1);
	assert_int_equal(hits.n_snapshots, 1);
}

UNIT_TEST(what_is_met_until_the_copy_is_in_the_same_snapshot)
{
	hit(1, 1);
	assert_int_equal(hits_take(&hits, UINT64_MAX), 1);
	hit(1, 2);
	hit(2, 1);
	hits_join(&hits);
	assert_int_equal(hits.taken.n, 2);
	assert_int_equal(hits.waiting.n, 1);
	hits_resume(&hits, 100);
	assert_int_equal(resumed.number[1], 2);
	assert_int_equal(resumed.number[2], 0);
	/* met before the program was resumed, and sent later */
	hit(1, 3);
	assert_int_equal(hits.taken.n, 3);
	assert_int_equal(hits.waiting.n, 1);
	assert_int_equal(resumed.number[1], 3);
	/* and once more: what came after the first time is there no more */
	hits_take(&hits, UINT64_MAX);
	hit(1, 150);
	hits_take(&hits, UINT64_MAX);
	hits_resume(&hits, 200);
	hits_done(&hits, true);
	hit(1, 200);
	assert_int_equal(hits.waiting.n, 0);
	hit(1, 201);
	assert_int_equal(hits.waiting.n, 1);
}

/* Each is in the ring of its own thread. */
UNIT_TEST(hits_are_met_in_any_order)
{
	hit(1, 2);
	hit(1, 1);
	assert_int_equal(hits_take(&hits, UINT64_MAX), 2);
	hits_done(&hits, true);
	assert_int_equal(resumed.number[1], 2);
}

UNIT_TEST(after_the_last_snapshot_no_program_waits)
{
	hits.max_snapshots = 1;
	hit(1, 1);
	assert_int_equal(hits_take(&hits, UINT64_MAX), 1);
	hit(2, 1);
	hits_done(&hits, true);
	assert_int_equal(resumed.number[1], NO_MORE);
	assert_int_equal(resumed.number[2], NO_MORE);
	hit(3, 1);
	assert_int_equal(resumed.number[3], NO_MORE);
	assert_int_equal(hits.n_beyond, 2);
	assert_int_equal(hits_take(&hits, UINT64_MAX), 0);
}

UNIT_TEST(a_full_disk_is_not_tried_for_ever)
{
	hits.max_snapshots = 3;
	for (uint32_t i = 1; i <= 6; i++) {
		hit(1, i);
		assert_int_equal(hits_take(&hits, UINT64_MAX), i < 6);
		/* the second one succeeds */
		hits_done(&hits, i == 2);
	}
	assert_int_equal(resumed.number[1], NO_MORE);
	assert_int_equal(hits.n_snapshots, 1);
	assert_int_equal(hits.n_beyond, 1);
}

UNIT_TEST(a_flood_of_hits_is_bounded_and_counted)
{
	enum { N = 3 * MAX_HITS };
	const struct seam_xray_trigger unknown = { .trigger = 3 };

	hits_add(&hits, 1, &unknown);
	for (uint32_t i = 1; i <= N; i++)
		hit(1, i);
	assert_int_equal(hits.n_beyond, N - MAX_HITS);
	assert_int_equal(resumed.n, 0);
	/* of another process: nothing else would resume it */
	hit(2, 7);
	assert_int_equal(resumed.number[2], 7);
	assert_int_equal(hits_take(&hits, UINT64_MAX), MAX_HITS);
	hit(1, N + 1);
	hits_join(&hits);
	assert_int_equal(hits.taken.n, MAX_HITS);
	assert_int_equal(hits.waiting.n, 1);
	hits_done(&hits, true);
	assert_int_equal(resumed.number[1], MAX_HITS);
}

UNIT_TEST(names_a_trigger_without_functions_once)
{
	struct trigger_hits before;
	uint64_t now_ns;

	assert_int_equal(hits_unknown(&hits, UINT64_MAX, true), -1);
	hits_add_functions(&hits, 0, 0);
	hits_add_functions(&hits, 1, 0);
	hits_add_functions(&hits, 1, 5);
	before = hits;
	hits_add_functions(&hits, (uint32_t)hits.n_triggers, 5);
	assert_memory_equal(&hits, &before, sizeof(hits));
	now_ns = seam_clock_ns();
	assert_int_equal(hits_unknown(&hits, now_ns, false), -1);
	assert_int_equal(hits_unknown(&hits, now_ns + SEAM_NS_PER_S, false), 0);
	assert_int_equal(hits_unknown(&hits, now_ns, true), -1);
	/* since its first program, and at the end at once */
	hits_add_functions(&hits, 2, 0);
	hits.counts[2].since_ns = 1;
	hits_add_functions(&hits, 2, 0);
	assert_int_equal(hits.counts[2].since_ns, 1);
	assert_int_equal(hits_unknown(&hits, 2, false), -1);
	assert_int_equal(hits_unknown(&hits, 2, true), 2);
}

/* ---- threads that have ended ---- */

static void add(struct ended_threads *ended, uint32_t pid,
		const uint8_t *bytes, size_t size)
{
	const struct ended_thread thread = {
		.pid = pid, .tid = pid + 1, .size = size,
	};

	ended_add(ended, &thread, bytes);
}

UNIT_TEST(keeps_the_threads_that_ended_last)
{
	enum { N = 1000, SIZE = 100, ROOM = 10 };
	struct ended_threads ended = {
		.max_bytes = ROOM * (SIZE + sizeof(struct ended_thread)),
	};
	uint8_t bytes[SIZE];
	uint32_t n = 0;

	for (uint32_t i = 0; i < N; i++) {
		memset(bytes, (int)i, sizeof(bytes));
		add(&ended, i, bytes, sizeof(bytes));
		assert_true(ended.n_bytes <= ended.max_bytes);
	}
	assert_int_equal(ended.n_dropped, N - ROOM);
	for (const struct ended_thread *t = ended.first; t; t = t->next) {
		assert_int_equal(t->pid, N - ROOM + n++);
		assert_int_equal(t->tid, t->pid + 1);
		assert_int_equal(t->size, SIZE);
		for (size_t k = 0; k < SIZE; k++)
			assert_int_equal(t->bytes[k], (uint8_t)t->pid);
	}
	assert_int_equal(n, ROOM);
	ended_fini(&ended);
}

UNIT_TEST(a_thread_beyond_the_limit_is_dropped)
{
	struct ended_threads ended = { .max_bytes = 100 };
	static const uint8_t bytes[200];

	add(&ended, 1, bytes, 10);
	assert_non_null(ended.first);
	add(&ended, 1, bytes, sizeof(bytes));
	assert_null(ended.first);
	assert_int_equal(ended.n_dropped, 2);
	add(&ended, 1, bytes, 0);
	assert_null(ended.first);
	assert_int_equal(ended.n_dropped, 2);
	ended_fini(&ended);
}

UNIT_MAIN(NULL, NULL, set_up, tear_down)
