/* SPDX-License-Identifier: MIT */
/* test_tree.c - samples counted by stack, stacks merged into call trees */
#include "model/profile/tree.h"

#include "built.h"
#include "unit.h"

/* Of each test: the profile, and what is made of its samples. */
static struct seam_profile p;
static struct seam_selected s;
static struct seam_tallies t;
static struct seam_tree tree;

static int set_up(void **state)
{
	p = built();
	return 0;
}

static int tear_down(void **state)
{
	free(tree.items);
	tree = (struct seam_tree) { 0 };
	free(t.items);
	t = (struct seam_tallies) { 0 };
	seam_profile_fini(&p);
	return 0;
}

/* Tally all samples of @event, by @group. */
static void count(uint32_t event, enum seam_group group)
{
	struct seam_selection all;

	seam_selection_init(&all);
	assert_int_equal(seam_selected_init(&s, &p, &all, NULL), 0);
	free(t.items);
	assert_int_equal(seam_tallies_make(&t, &s, event, group), 0);
}

/* A tree of all samples. */
static void grow(enum seam_group group, bool by_group)
{
	count(SEAM_NONE, group);
	assert_int_equal(seam_tree_make(&tree, &s, &t, NULL, by_group), 0);
}

UNIT_TEST(equal_stacks_are_one_tally)
{
	built_add(&p, 0, "a", "main;x");
	built_add(&p, 1, "b", "main;y");
	built_put(&p, (struct built_sample) { 2, "b", "main;x",
					      .weight = 5 });
	count(SEAM_NONE, SEAM_GROUP_NONE);
	assert_int_equal(t.n, 2);
	assert_int_equal(t.items[0].samples, 2);
	assert_int_equal(t.items[0].weight, 1005);
	assert_int_equal(t.samples, 3);
	assert_int_equal(t.weight, 2005);
}

/* Alternating groups on one stack: the array misses, the table finds. */
UNIT_TEST(groups_keep_equal_stacks_apart)
{
	for (uint64_t i = 0; i < 30; i++)
		built_put(&p, (struct built_sample) {
			i, i % 3 ? "a" : "b", "main", .tid = 1 + (int)(i % 5),
			.pid = 1 + (int)(i % 5) / 3 });
	count(SEAM_NONE, SEAM_GROUP_COMM);
	assert_int_equal(t.n, 2);
	assert_int_equal(t.items[0].samples + t.items[1].samples, 30);
	count(SEAM_NONE, SEAM_GROUP_THREAD);
	assert_int_equal(t.n, 5);
	assert_int_equal(t.items[4].samples, 6);
	count(SEAM_NONE, SEAM_GROUP_PROCESS);
	assert_int_equal(t.n, 2);
	assert_int_equal(t.items[0].samples, 18);
}

UNIT_TEST(only_the_event_asked_for_is_counted)
{
	built_add(&p, 0, "a", "main");
	built_add(&p, 0, "a", "main");
	built_put(&p, (struct built_sample) { 1, "a", "main",
					      .event = "faults" });
	count(1, SEAM_GROUP_NONE);
	assert_int_equal(t.samples, 1);
}

/* Two call sites in a function are two frames of the profile. */
static uint32_t at_line(uint32_t parent, uint32_t like, uint32_t line)
{
	struct seam_frame frame = p.frames.items[p.stacks.items[like].frame];

	frame.line = line;
	return seam_profile_stack(&p, parent, seam_profile_frame(&p, &frame));
}

UNIT_TEST(places_in_a_function_are_one_node)
{
	uint32_t main_1, main_2;

	main_1 = built_stack(&p, "main");
	main_2 = at_line(0, main_1, 20);
	assert_int_not_equal(main_1, main_2);
	built_add(&p, 0, "a", "main");
	built_add(&p, 1, "a", "main;f");
	p.samples.stack[0] = main_2;
	grow(SEAM_GROUP_NONE, false);
	assert_int_equal(tree.n, 3);
	assert_int_equal(tree.items[1].self_samples, 1);
	assert_int_equal(tree.items[1].samples, 2);
	assert_int_equal(tree.items[0].samples, 2);
}

UNIT_TEST(each_group_has_a_tree_of_its_own)
{
	uint32_t order[8], n = 0;

	built_add(&p, 0, "a", "main;f");
	built_add(&p, 1, "b", "main;f");
	built_add(&p, 2, "a", "main");
	grow(SEAM_GROUP_COMM, true);
	assert_int_equal(tree.n, 7);
	for (uint32_t i = 0; i != SEAM_NONE; i = seam_tree_next(&tree, i, true))
		order[n++] = tree.items[i].depth;
	assert_int_equal(n, 7);
	assert_int_equal(order[1], 1);
	assert_int_equal(order[4], 1);
	assert_true(tree.items[tree.items[0].first_child].is_group);
}

/* A stack of 100,000 frames must cost no call stack of ours. */
UNIT_TEST(a_very_deep_stack_is_a_tree_like_any_other)
{
	uint32_t stack = built_stack(&p, "f"), visited = 0;

	for (int i = 1; i < 100000; i++)
		stack = seam_profile_stack(&p, stack, p.stacks.items[1].frame);
	built_add(&p, 0, "a", "f");
	p.samples.stack[0] = stack;
	grow(SEAM_GROUP_NONE, false);
	assert_int_equal(tree.n, 100001);
	assert_int_equal(tree.items[1].samples, 1);
	for (uint32_t i = 0; i != SEAM_NONE; i = seam_tree_next(&tree, i, true))
		visited++;
	assert_int_equal(visited, 100001);
}

static int larger_first(const struct seam_node *a, const struct seam_node *b,
			void *context)
{
	return (a->samples < b->samples) - (a->samples > b->samples);
}

UNIT_TEST(children_are_sorted_and_none_is_lost)
{
	uint64_t last = UINT64_MAX, n = 0;

	for (int i = 0; i < 9; i++)
		for (int k = 0; k < i * 7 % 9; k++) {
			char stack[16];

			snprintf(stack, sizeof(stack), "main;f%d", i);
			built_add(&p, 0, "a", stack);
		}
	grow(SEAM_GROUP_NONE, false);
	assert_int_equal(seam_tree_sort(&tree, larger_first, NULL), 0);
	for (uint32_t c = tree.items[1].first_child; c != SEAM_NONE;
	     c = tree.items[c].next_sibling, n++) {
		assert_true(tree.items[c].samples <= last);
		last = tree.items[c].samples;
	}
	assert_int_equal(n, 8);
}

UNIT_MAIN(NULL, NULL, set_up, tear_down)
