/* SPDX-License-Identifier: MIT */
/* test_stack_plan.c - copies of stacks that fit their rings */
#include "record/plan.c"

#include "unit.h"

enum { KIB = 1024, MIB = 1024 * KIB };

UNIT_TEST(the_largest_copy_that_ring_and_rate_allow)
{
	assert_int_equal(seam_stack_plan_bytes(4 * MIB, 1000), 48 * KIB);
	assert_int_equal(seam_stack_plan_bytes(4 * MIB, 1300), 32 * KIB);
	assert_int_equal(seam_stack_plan_bytes(2 * MIB, 1000), 32 * KIB);
	assert_int_equal(seam_stack_plan_bytes(1 * MIB, 1000), 32 * KIB);
	assert_int_equal(seam_stack_plan_bytes(512 * KIB, 1000), 16 * KIB);
	assert_int_equal(seam_stack_plan_bytes(2 * MIB, 4000), 32 * KIB);
	assert_int_equal(seam_stack_plan_bytes(1 * MIB, 4000), 16 * KIB);
	assert_int_equal(seam_stack_plan_bytes(512 * KIB, 4000), 8 * KIB);
	assert_int_equal(seam_stack_plan_bytes(256 * KIB, 1000), 8 * KIB);
	assert_int_equal(seam_stack_plan_bytes(1 * MIB, 6000), 8 * KIB);
}

UNIT_TEST(no_copy_where_a_ring_is_too_small_or_the_rate_too_high)
{
	assert_int_equal(seam_stack_plan_bytes(128 * KIB, 100), 0);
	assert_int_equal(seam_stack_plan_bytes(512 * KIB, 5000), 0);
	assert_int_equal(seam_stack_plan_bytes(2 * MIB, UINT64_MAX), 0);
}

UNIT_TEST(an_unknown_rate_gets_the_smallest_copy)
{
	assert_int_equal(seam_stack_plan_bytes(2 * MIB, 0), 8 * KIB);
	assert_int_equal(seam_stack_plan_bytes(4 * KIB, 0), 0);
}

UNIT_TEST(the_frequency_that_would_fit_does)
{
	for (size_t ring = 512 * KIB; ring <= 16 * MIB; ring *= 2) {
		uint64_t hz = max_hz_of(ring, 8 * KIB);

		assert_int_equal(seam_stack_plan_bytes(ring, hz), 8 * KIB);
		assert_int_equal(seam_stack_plan_bytes(ring, hz + 1), 0);
	}
	assert_int_equal(max_hz_of(512 * KIB, 65528), 545);
}

UNIT_TEST(live_unwinding_keeps_copies_from_the_file)
{
	const uint64_t copies = PERF_SAMPLE_REGS_USER | PERF_SAMPLE_STACK_USER;

	for (int how = SEAM_CALL_GRAPH_NONE; how <= SEAM_CALL_GRAPH_DWARF;
	     how++) {
		bool is_copied = how >= SEAM_CALL_GRAPH_AUTO;
		struct perf_event_attr file;
		struct seam_event event;

		seam_event_init(&event);
		seam_stack_plan_apply(&event, how, 16 * KIB);
		assert_int_equal((event.attr.sample_type & copies) == copies,
				 is_copied);
		assert_int_equal(event.attr.sample_stack_user,
				 is_copied ? 16 * KIB : 0);
		file = seam_event_file_attr(&event);
		assert_int_equal((file.sample_type & copies) != 0,
				 how == SEAM_CALL_GRAPH_DWARF);
		assert_int_equal(file.sample_regs_user != 0,
				 how == SEAM_CALL_GRAPH_DWARF);
		assert_int_equal((file.sample_type & PERF_SAMPLE_CALLCHAIN) !=
				 0, how != SEAM_CALL_GRAPH_NONE);
	}
}

UNIT_MAIN(NULL, NULL, NULL, NULL)
