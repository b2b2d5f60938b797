/* SPDX-License-Identifier: MIT */
/* test_stopped.c - an exec() that nothing followed, in any order of rings */
#include "record/perf/stopped.h"
#include "unit.h"

#include <linux/perf_event.h>

static void see(struct seam_stopped *s, uint32_t type, uint32_t pid,
		uint64_t ns)
{
	struct seam_perf_sideband r = {
		.type = type, .sample_id.time = ns,
	};
	int32_t id = (int32_t)pid;

	if (type == PERF_RECORD_COMM) {
		r.misc = PERF_RECORD_MISC_COMM_EXEC;
		r.comm = (struct seam_perf_comm) { id, id, "su" };
	} else if (type == PERF_RECORD_EXIT) {
		r.task = (struct seam_perf_task) {
			.pid = id, .ppid = 1, .tid = id, .time = ns,
		};
	} else {
		r.mapping = (struct seam_perf_mapping) {
			.pid = id, .tid = id,
		};
	}
	seam_stopped_read(s, &r);
}

enum { EXEC = PERF_RECORD_COMM, MAP = PERF_RECORD_MMAP2,
       END = PERF_RECORD_EXIT };

static void counts(struct seam_stopped *s, uint64_t n)
{
	struct seam_counts losses = { 0 };

	seam_stopped_round(s, false, &losses);
	seam_stopped_round(s, false, &losses);
	assert_int_equal(losses.n[SEAM_COUNT_PROGRAMS_STOPPED], n);
	seam_stopped_fini(s);
}

/* A round in which nothing can be counted yet. */
static void round_of(struct seam_stopped *s)
{
	struct seam_counts losses = { 0 };

	seam_stopped_round(s, false, &losses);
	assert_int_equal(losses.n[SEAM_COUNT_PROGRAMS_STOPPED], 0);
}

UNIT_TEST(an_end_right_after_exec_is_counted)
{
	struct seam_stopped s = { 0 };
	struct seam_counts losses = { 0 };

	see(&s, EXEC, 7, 100);
	see(&s, MAP, 7, 110);
	see(&s, EXEC, 7, 200);
	see(&s, END, 7, 210);
	seam_stopped_round(&s, true, &losses);
	assert_string_equal(losses.stopped, "su");
	assert_int_equal(losses.n[SEAM_COUNT_PROGRAMS_STOPPED], 1);
	counts(&s, 0);
}

UNIT_TEST(programs_that_ran_are_not)
{
	struct seam_stopped s = { 0 };

	see(&s, EXEC, 7, 100);
	see(&s, MAP, 7, 110);
	see(&s, END, 7, 900);
	see(&s, END, 8, 900);		/* a fork without exec() */
	see(&s, MAP, 9, 100);
	see(&s, END, 9, 900);
	counts(&s, 0);
}

UNIT_TEST(the_rings_may_be_read_in_any_order)
{
	struct seam_stopped s = { 0 };

	/* mapped on a CPU whose ring is read before that of the exec */
	see(&s, MAP, 7, 110);
	see(&s, EXEC, 7, 100);
	see(&s, END, 7, 900);
	/* its end is seen, and the mapping a round later */
	see(&s, END, 8, 900);
	see(&s, EXEC, 8, 100);
	round_of(&s);
	see(&s, MAP, 8, 110);
	counts(&s, 0);
	/* stopped, and its end is read first */
	see(&s, END, 9, 900);
	round_of(&s);
	see(&s, EXEC, 9, 899);
	counts(&s, 1);
}

UNIT_TEST(the_end_of_a_thread_is_not_that_of_its_process)
{
	struct seam_stopped s = { 0 };
	const struct seam_perf_sideband end = {
		.type = PERF_RECORD_EXIT, .sample_id.time = 101,
		.task = { .pid = 7, .ppid = 1, .tid = 8, .time = 101 },
	};

	see(&s, EXEC, 7, 100);
	seam_stopped_read(&s, &end);
	counts(&s, 0);
}

UNIT_TEST(a_process_with_the_same_number_is_another)
{
	struct seam_stopped s = { 0 };

	see(&s, EXEC, 7, 100);
	see(&s, END, 7, 101);
	round_of(&s);
	see(&s, END, 7 + (1 << 16), 200);
	counts(&s, 1);
}

UNIT_MAIN(NULL, NULL, NULL, NULL)
