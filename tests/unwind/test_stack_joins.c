/* SPDX-License-Identifier: MIT */
/* test_stack_joins.c - cut stacks completed from other samples of a thread */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

#include "unwind/walk/recursion.h"
#include "unwind/walk/stack_joins.h"

enum { DEPTH = 60, FRAME = 0x40, TOP = 0x7000000 };

static struct seam_stack_joins joins;
static struct seam_unwind_frame frames[4 * DEPTH];

static int set_up(void **state)
{
	(void)state;
	joins = (struct seam_stack_joins) { .n_learned = 0 };
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	seam_stack_joins_fini(&joins);
	return 0;
}

/*
 * Frames [first, last] of a stack of DEPTH frames, the root is number 0; each
 * has a place and a return address of its own, that of frame @other another.
 */
static struct seam_unwind_stack stack_of(int first, int last, int other)
{
	struct seam_unwind_stack stack = {
		.frames = frames, .max = SEAM_ARRAY_SIZE(frames),
		.end = first == 0 ? SEAM_UNWIND_ROOT : SEAM_UNWIND_TRUNCATED,
	};

	for (int i = last; i >= first; i--)
		frames[stack.n++] = (struct seam_unwind_frame) {
			.pc = 0x1000 + 16 * (uint64_t)i + (i == other),
			.sp = TOP - FRAME * (uint64_t)i,
		};
	/* the innermost is somewhere else in its function each time */
	frames[0].pc += 7;
	return stack;
}

static void learn(int tid, int first, int last, int other)
{
	struct seam_unwind_stack stack = stack_of(first, last, other);

	seam_stack_joins_learn(&joins, tid, &stack);
}

/* How many frames a stack that is cut at @first gets; checks them. */
static size_t complete(int tid, int first, int last, int other)
{
	struct seam_unwind_stack stack = stack_of(first, last, -1);
	size_t n = seam_stack_joins_complete(&joins, tid, false, &stack);

	for (size_t i = stack.n - n; i < stack.n; i++) {
		int at = (int)(stack.n - 1 - i);

		assert_int_equal(frames[i].pc, 0x1000 + 16 * at +
				 (at == other));
		assert_int_equal(frames[i].sp, TOP - FRAME * at);
	}
	return n;
}

static void a_cut_stack_goes_on_to_the_root_by_overlapping_samples(void **s)
{
	(void)s;
	for (int i = 0; i < 2; i++) {
		learn(1, 0, 20, -1);
		learn(1, 10, 40, -1);
	}
	assert_int_equal(complete(1, 30, DEPTH, -1), 30);
}

static void one_sample_is_no_evidence(void **state)
{
	(void)state;
	learn(1, 0, 40, -1);
	assert_int_equal(complete(1, 30, DEPTH, -1), 0);
	learn(1, 0, 40, -1);
	assert_int_equal(complete(1, 30, DEPTH, -1), 30);
}

static void one_sample_is_enough_where_callers_do_not_change(void **state)
{
	(void)state;
	for (int i = 0; i < 10; i++)
		learn(1, 0, 30, -1);
	learn(1, 0, 50, -1);
	assert_int_equal(complete(1, 40, DEPTH, -1), 40);
	/* other threads are not that steady */
	learn(2, 0, 50, -1);
	assert_int_equal(complete(2, 40, DEPTH, -1), 0);
	/* nor is this one, once some have changed */
	for (int i = 1; i < 6; i++)
		learn(1, 0, 20, i);
	learn(1, 31, 59, 33);
	assert_int_equal(complete(1, 40, DEPTH, -1), 0);
}

static void threads_have_nothing_in_common(void **state)
{
	(void)state;
	learn(1, 0, 40, -1);
	learn(1, 0, 40, -1);
	assert_int_equal(complete(2, 30, DEPTH, -1), 0);
}

static void a_gap_on_the_way_to_the_root_leaves_the_stack_cut(void **state)
{
	(void)state;
	for (int i = 0; i < 2; i++) {
		learn(1, 0, 9, -1);
		learn(1, 12, 40, -1);
	}
	assert_int_equal(complete(1, 30, DEPTH, -1), 0);
}

static void too_few_frames_to_compare_leave_the_stack_cut(void **state)
{
	(void)state;
	learn(1, 0, 40, -1);
	learn(1, 0, 40, -1);
	/* the innermost is no return address */
	assert_int_equal(complete(1, 30, 30 + SEAM_STACK_JOIN_FRAMES - 1, -1),
			 0);
	assert_int_equal(complete(1, 30, 30 + SEAM_STACK_JOIN_FRAMES, -1), 30);
}

static void other_frames_at_the_same_place_do_not_match(void **state)
{
	struct seam_unwind_stack stack;

	(void)state;
	learn(1, 0, 40, -1);
	learn(1, 0, 40, -1);
	for (int other = 30; other < 30 + SEAM_STACK_JOIN_FRAMES; other++) {
		stack = stack_of(30, DEPTH, other);
		assert_int_equal(seam_stack_joins_complete(&joins, 1, false,
							   &stack),
				 0);
		assert_int_equal(stack.n, DEPTH - 30 + 1);
	}
}

/* Each time that it changes it has to be the same for longer. */
static void a_caller_that_changes_is_used_after_many_equal_ones(void **state)
{
	(void)state;
	learn(1, 0, 40, -1);
	learn(1, 0, 40, -1);
	/* too few frames for the key of more */
	for (int changes = 1; changes <= SEAM_STACK_JOIN_MAX_CHANGES + 2;
	     changes++) {
		int other = changes % 2 ? 12 : -1;
		int n = changes < SEAM_STACK_JOIN_MAX_CHANGES ? changes :
			SEAM_STACK_JOIN_MAX_CHANGES;

		learn(1, 0, 40, other);
		for (int i = 0; i < n * SEAM_STACK_JOIN_EQUAL_AGAIN; i++) {
			assert_int_equal(complete(1, 13, 24, other), 0);
			learn(1, 0, 40, other);
		}
		assert_int_equal(complete(1, 13, 24, other), 13);
	}
}

/*
 * A function that two places call, at the same depth: its own callees are
 * equal, those further in are not.
 */
static void more_frames_decide_where_a_caller_changes(void **state)
{
	struct seam_unwind_stack stack;

	(void)state;
	for (int i = 0; i < 300; i++) {
		int other = i % 2 ? 12 : -1;

		stack = stack_of(0, 40, other);
		for (size_t k = 0; k < stack.n && i % 2; k++)
			frames[k].pc += frames[k].sp < TOP - FRAME * 17;
		seam_stack_joins_learn(&joins, 1, &stack);
	}
	for (int odd = 0; odd < 2; odd++) {
		stack = stack_of(13, 40, -1);
		for (size_t k = 0; k < stack.n && odd; k++)
			frames[k].pc += frames[k].sp < TOP - FRAME * 17;
		assert_int_equal(seam_stack_joins_complete(&joins, 1, false,
							   &stack), 13);
		assert_int_equal(frames[40 - 12].pc, 0x1000 + 16 * 12 + odd);
	}
}

/* A recursion: frames from 6 on are alternately of two functions. */
static struct seam_unwind_stack recursion_of(int first, int last)
{
	struct seam_unwind_stack stack = stack_of(first, last, -1);

	for (size_t i = 0; i < stack.n; i++)
		if (frames[i].sp <= TOP - FRAME * 6)
			frames[i].pc = 0x9000 + frames[i].sp % (2 * FRAME);
	return stack;
}

static void learn_recursion(int first, int last, int times)
{
	for (int i = 0; i < times; i++) {
		struct seam_unwind_stack stack = recursion_of(first, last);

		seam_stack_joins_learn(&joins, 1, &stack);
	}
}

static void a_recursion_bridges_what_no_sample_had_on_the_last_try(void **s)
{
	struct seam_unwind_stack stack;

	(void)s;
	learn_recursion(0, 40, 20);
	stack = recursion_of(60, 110);
	assert_int_equal(seam_stack_joins_complete(&joins, 1, false, &stack),
			 0);
	assert_int_equal(stack.n, 51);
	assert_int_equal(seam_stack_joins_complete(&joins, 1, true, &stack),
			 60);
	for (size_t i = 1; i < stack.n; i++) {
		uint64_t sp = TOP - FRAME * (110 - i);

		assert_int_equal(frames[i].sp, sp);
		assert_int_equal(frames[i].pc, 110 - i < 6 ?
				 0x1000 + 16 * (110 - i) :
				 0x9000 + sp % (2 * FRAME));
	}
}

static void a_recursion_that_nothing_confirms_leaves_the_stack_cut(void **s)
{
	struct seam_unwind_stack stack;

	(void)s;
	learn_recursion(0, 40, 20);
	/* it leads to other places than those that are known */
	stack = recursion_of(60, 110);
	for (size_t i = 0; i < stack.n; i++)
		frames[i].sp += 8;
	assert_int_equal(seam_stack_joins_complete(&joins, 1, true, &stack),
			 0);
	assert_int_equal(stack.n, 51);
	/* the last frames are no recursion */
	stack = recursion_of(60, 110);
	frames[stack.n - 5].pc++;
	assert_int_equal(seam_stack_joins_complete(&joins, 1, true, &stack),
			 0);
	/* no room */
	stack = recursion_of(60, 110);
	stack.max = stack.n + 59;
	assert_int_equal(seam_stack_joins_complete(&joins, 1, true, &stack),
			 0);
	stack.max++;
	assert_int_equal(seam_stack_joins_complete(&joins, 1, true, &stack),
			 60);
	/* of a thread whose callers change, elsewhere */
	for (int i = 0; i < 20; i++) {
		stack = stack_of(0, 40, i % 2);
		for (size_t k = 0; k < stack.n; k++)
			frames[k].sp += 1 << 20;
		seam_stack_joins_learn(&joins, 1, &stack);
	}
	stack = recursion_of(60, 110);
	assert_int_equal(seam_stack_joins_complete(&joins, 1, true, &stack),
			 0);
}

/* A sample that left the recursion in the gap, once. */
static void one_sample_does_not_lead_out_of_a_recursion(void **state)
{
	struct seam_unwind_stack stack;

	for (int place = 42; place < 56; place++) {
		learn_recursion(0, 40, 20);
		stack = recursion_of(place, place + 6);
		frames[stack.n - 1].pc = 0x5000;
		seam_stack_joins_learn(&joins, 1, &stack);
		stack = recursion_of(60, 110);
		assert_int_equal(seam_stack_joins_complete(&joins, 1, true,
							   &stack), 60);
		for (size_t i = 0; i < stack.n; i++)
			assert_int_not_equal(frames[i].pc, 0x5000);
		tear_down(state);
		set_up(state);
	}
}

static void the_shortest_period_of_a_recursion_is_found(void **state)
{
	struct seam_recursion r;

	(void)state;
	for (int period = 1; period <= DEPTH; period++) {
		struct seam_unwind_stack stack = stack_of(60, 239, -1);

		for (size_t i = 0; i < stack.n; i++)
			frames[i].pc = (stack.n - i) % (size_t)period;
		assert_true(seam_recursion_find(&r, &stack));
		assert_int_equal(r.period, period);
		assert_int_equal(r.bytes, period * FRAME);
		/* distances count as well as places */
		frames[stack.n - 2].sp += 8;
		assert_false(seam_recursion_find(&r, &stack));
		frames[stack.n - 2].sp -= 8;
		/* not one that the stack has once */
		stack.n = 2 * (size_t)period;
		if (period > SEAM_RECURSION_MIN_FRAMES)
			assert_false(seam_recursion_find(&r, &stack));
	}
}

static void stacks_that_ended_otherwise_are_not_learned(void **state)
{
	struct seam_unwind_stack stack;

	(void)state;
	for (int i = 0; i < 2; i++) {
		stack = stack_of(0, 40, -1);
		stack.end = SEAM_UNWIND_NO_MAPPING;
		seam_stack_joins_learn(&joins, 1, &stack);
	}
	assert_int_equal(complete(1, 30, DEPTH, -1), 0);
	assert_null(joins.items);
}

static void no_room_for_the_frames_leaves_the_stack_cut(void **state)
{
	struct seam_unwind_stack stack;

	(void)state;
	learn(1, 0, 40, -1);
	learn(1, 0, 40, -1);
	stack = stack_of(30, DEPTH, -1);
	stack.max = stack.n + 29;
	assert_int_equal(seam_stack_joins_complete(&joins, 1, false,
							   &stack), 0);
	stack.max++;
	assert_int_equal(seam_stack_joins_complete(&joins, 1, false,
							   &stack), 30);
	stack.max = stack.n = 1;
	assert_int_equal(seam_stack_joins_complete(&joins, 1, false,
							   &stack), 0);
	stack.n = 0;
	seam_stack_joins_learn(&joins, 1, &stack);
	assert_int_equal(seam_stack_joins_complete(&joins, 1, false,
							   &stack), 0);
}

static void the_oldest_entries_make_room(void **state)
{
	(void)state;
	for (int tid = 1; tid < 4000; tid++) {
		learn(tid, 0, 40, -1);
		learn(tid, 0, 40, -1);
	}
	assert_int_equal(complete(3999, 30, DEPTH, -1), 30);
	assert_int_equal(complete(1, 30, DEPTH, -1), 0);
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		T(a_cut_stack_goes_on_to_the_root_by_overlapping_samples),
		T(one_sample_is_no_evidence),
		T(one_sample_is_enough_where_callers_do_not_change),
		T(threads_have_nothing_in_common),
		T(a_gap_on_the_way_to_the_root_leaves_the_stack_cut),
		T(too_few_frames_to_compare_leave_the_stack_cut),
		T(other_frames_at_the_same_place_do_not_match),
		T(a_caller_that_changes_is_used_after_many_equal_ones),
		T(more_frames_decide_where_a_caller_changes),
		T(a_recursion_bridges_what_no_sample_had_on_the_last_try),
		T(a_recursion_that_nothing_confirms_leaves_the_stack_cut),
		T(one_sample_does_not_lead_out_of_a_recursion),
		T(the_shortest_period_of_a_recursion_is_found),
		T(stacks_that_ended_otherwise_are_not_learned),
		T(no_room_for_the_frames_leaves_the_stack_cut),
		T(the_oldest_entries_make_room),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
