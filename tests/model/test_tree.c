/* SPDX-License-Identifier: MIT */
/* test_tree.c - samples counted by stack, stacks merged into call trees */
#include "model/profile/tree.h"

#include "built.h"
#include "unit.h"

static struct seam_selected all_of(const struct seam_profile *p)
{
	struct seam_selection selection;
	struct seam_selected s;

	seam_selection_init(&selection);
	assert_int_equal(seam_selected_init(&s, p, &selection, NULL), 0);
	return s;
}

UNIT_TEST(equal_stacks_are_one_tally)
{
	struct seam_profile p = built();
	struct seam_selected s;
	struct seam_tallies t;

	built_add(&p, 0, "a", "main;x");
	built_add(&p, 1, "b", "main;y");
	built_put(&p, (struct built_sample) { 2, "b", "main;x",
					      .weight = 5 });
	s = all_of(&p);
	assert_int_equal(seam_tallies_make(&t, &s, SEAM_NONE,
					   SEAM_GROUP_NONE), 0);
	assert_int_equal(t.n, 2);
	assert_int_equal(t.items[0].samples, 2);
	assert_int_equal(t.items[0].weight, 1005);
	assert_int_equal(t.samples, 3);
	assert_int_equal(t.weight, 2005);
	free(t.items);
	seam_profile_fini(&p);
}

/* Alternating groups on one stack: the array misses, the table finds. */
UNIT_TEST(groups_keep_equal_stacks_apart)
{
	struct seam_profile p = built();
	struct seam_selected s;
	struct seam_tallies t;

	for (uint64_t i = 0; i < 30; i++)
		built_put(&p, (struct built_sample) {
			i, i % 3 ? "a" : "b", "main", .tid = 1 + (int)(i % 5),
			.pid = 1 + (int)(i % 5) / 3 });
	s = all_of(&p);
	assert_int_equal(seam_tallies_make(&t, &s, SEAM_NONE,
					   SEAM_GROUP_COMM), 0);
	assert_int_equal(t.n, 2);
	assert_int_equal(t.items[0].samples + t.items[1].samples, 30);
	free(t.items);
	assert_int_equal(seam_tallies_make(&t, &s, SEAM_NONE,
					   SEAM_GROUP_THREAD), 0);
	assert_int_equal(t.n, 5);
	assert_int_equal(t.items[4].samples, 6);
	free(t.items);
	assert_int_equal(seam_tallies_make(&t, &s, SEAM_NONE,
					   SEAM_GROUP_PROCESS), 0);
	assert_int_equal(t.n, 2);
	assert_int_equal(t.items[0].samples, 18);
	free(t.items);
	seam_profile_fini(&p);
}

UNIT_TEST(only_the_event_asked_for_is_counted)
{
	struct seam_profile p = built();
	struct seam_selected s;
	struct seam_tallies t;

	built_add(&p, 0, "a", "main");
	built_add(&p, 0, "a", "main");
	built_put(&p, (struct built_sample) { 1, "a", "main",
					      .event = "faults" });
	s = all_of(&p);
	assert_int_equal(seam_tallies_make(&t, &s, 1, SEAM_GROUP_NONE), 0);
	assert_int_equal(t.samples, 1);
	free(t.items);
	seam_profile_fini(&p);
}

/* Two call sites in a function are two frames of the profile. */
static uint32_t at_line(struct seam_profile *p, uint32_t parent, uint32_t like,
			uint32_t line)
{
	struct seam_frame frame = p->frames.items[p->stacks.items[like].frame];

	frame.line = line;
	return seam_profile_stack(p, parent, seam_profile_frame(p, &frame));
}

UNIT_TEST(places_in_a_function_are_one_node)
{
	struct seam_profile p = built();
	struct seam_selected s;
	struct seam_tallies t;
	struct seam_tree tree;
	uint32_t main_1, main_2;

	main_1 = built_stack(&p, "main");
	main_2 = at_line(&p, 0, main_1, 20);
	assert_int_not_equal(main_1, main_2);
	built_add(&p, 0, "a", "main");
	built_add(&p, 1, "a", "main;f");
	p.samples.stack[0] = main_2;
	s = all_of(&p);
	assert_int_equal(seam_tallies_make(&t, &s, SEAM_NONE,
					   SEAM_GROUP_NONE), 0);
	assert_int_equal(seam_tree_make(&tree, &s, &t, NULL, false), 0);
	assert_int_equal(tree.n, 3);
	assert_int_equal(tree.items[1].self_samples, 1);
	assert_int_equal(tree.items[1].samples, 2);
	assert_int_equal(tree.items[0].samples, 2);
	free(tree.items);
	free(t.items);
	seam_profile_fini(&p);
}

UNIT_TEST(each_group_has_a_tree_of_its_own)
{
	struct seam_profile p = built();
	struct seam_selected s;
	struct seam_tallies t;
	struct seam_tree tree;
	uint32_t order[8], n = 0;

	built_add(&p, 0, "a", "main;f");
	built_add(&p, 1, "b", "main;f");
	built_add(&p, 2, "a", "main");
	s = all_of(&p);
	assert_int_equal(seam_tallies_make(&t, &s, SEAM_NONE,
					   SEAM_GROUP_COMM), 0);
	assert_int_equal(seam_tree_make(&tree, &s, &t, NULL, true), 0);
	assert_int_equal(tree.n, 7);
	for (uint32_t i = 0; i != SEAM_NONE; i = seam_tree_next(&tree, i, true))
		order[n++] = tree.items[i].depth;
	assert_int_equal(n, 7);
	assert_int_equal(order[1], 1);
	assert_int_equal(order[4], 1);
	assert_true(tree.items[tree.items[0].first_child].is_group);
	free(tree.items);
	free(t.items);
	seam_profile_fini(&p);
}

/* A stack of 100,000 frames must cost no call stack of ours. */
UNIT_TEST(a_very_deep_stack_is_a_tree_like_any_other)
{
	struct seam_profile p = built();
	struct seam_selected s;
	struct seam_tallies t;
	struct seam_tree tree;
	uint32_t stack = built_stack(&p, "f"), visited = 0;

	for (int i = 1; i < 100000; i++)
		stack = seam_profile_stack(&p, stack,
					   p.stacks.items[1].frame);
	built_add(&p, 0, "a", "f");
	p.samples.stack[0] = stack;
	s = all_of(&p);
	assert_int_equal(seam_tallies_make(&t, &s, SEAM_NONE,
					   SEAM_GROUP_NONE), 0);
	assert_int_equal(seam_tree_make(&tree, &s, &t, NULL, false), 0);
	assert_int_equal(tree.n, 100001);
	assert_int_equal(tree.items[1].samples, 1);
	for (uint32_t i = 0; i != SEAM_NONE; i = seam_tree_next(&tree, i, true))
		visited++;
	assert_int_equal(visited, 100001);
	free(tree.items);
	free(t.items);
	seam_profile_fini(&p);
}

static int larger_first(const struct seam_node *a, const struct seam_node *b,
			void *context)
{
	(void)context;
	return (a->samples < b->samples) - (a->samples > b->samples);
}

UNIT_TEST(children_are_sorted_and_none_is_lost)
{
	struct seam_profile p = built();
	struct seam_selected s;
	struct seam_tallies t;
	struct seam_tree tree;
	uint64_t last = UINT64_MAX, n = 0;

	for (int i = 0; i < 9; i++)
		for (int k = 0; k < i * 7 % 9; k++) {
			char stack[16];

			snprintf(stack, sizeof(stack), "main;f%d", i);
			built_add(&p, 0, "a", stack);
		}
	s = all_of(&p);
	assert_int_equal(seam_tallies_make(&t, &s, SEAM_NONE,
					   SEAM_GROUP_NONE), 0);
	assert_int_equal(seam_tree_make(&tree, &s, &t, NULL, false), 0);
	assert_int_equal(seam_tree_sort(&tree, larger_first, NULL), 0);
	for (uint32_t c = tree.items[1].first_child; c != SEAM_NONE;
	     c = tree.items[c].next_sibling, n++) {
		assert_true(tree.items[c].samples <= last);
		last = tree.items[c].samples;
	}
	assert_int_equal(n, 8);
	free(tree.items);
	free(t.items);
	seam_profile_fini(&p);
}

UNIT_MAIN(NULL, NULL, NULL, NULL)
