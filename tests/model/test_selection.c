/* SPDX-License-Identifier: MIT */
/* test_selection.c - what counts, and what is left of its stack */
#include "model/profile/selection.h"

#include "built.h"
#include "unit.h"

/* Of each test. */
static struct seam_profile p;

static int set_up(void **state)
{
	p = built();
	return 0;
}

static int tear_down(void **state)
{
	seam_profile_fini(&p);
	return 0;
}

static void add_ten_samples(void)
{
	for (uint64_t i = 0; i < 10; i++)
		built_add(&p, 5000000000 + i * 1000000000, "app", "main");
}

static size_t n_selected(const struct seam_selection *selection)
{
	struct seam_selected s;
	size_t n = 0;

	assert_int_equal(seam_selected_init(&s, &p, selection, NULL), 0);
	for (size_t i = 0; i < p.samples.n; i++)
		n += seam_selected_has(&s, i);
	seam_selected_fini(&s);
	return n;
}

static size_t n_in(const char *range)
{
	struct seam_selection selection;

	seam_selection_init(&selection);
	assert_int_equal(seam_selection_time(&selection, &p, range, NULL), 0);
	return n_selected(&selection);
}

UNIT_TEST(a_range_holds_its_beginning_and_not_its_end)
{
	add_ten_samples();
	assert_int_equal(n_in(","), 10);
	assert_int_equal(n_in("0,1"), 1);
	assert_int_equal(n_in("1,3"), 2);
	assert_int_equal(n_in("1000ms,3000000us"), 2);
	assert_int_equal(n_in("8.5,"), 1);
	assert_int_equal(n_in(",0.5s"), 1);
	assert_int_equal(n_in("2,2"), 0);
	assert_int_equal(n_in("1m,"), 0);
	assert_int_equal(n_in("1000000000ns,1000000001ns"), 1);
	assert_int_equal(n_in("@6,@8000ms"), 2);
	assert_int_equal(n_in("@0,@5.000000001"), 1);
	assert_int_equal(n_in("@7,2"), 0);
	assert_int_equal(n_in("8.5,@20"), 1);
	assert_int_equal(n_in(",99999999999999999999999999999999"), 10);
	assert_int_equal(n_in("0.00000000000000000000000000000001,1"), 1);
}

/* Beyond 2^53 ns, as of a clock that began in 1970. */
UNIT_TEST(a_time_is_exact_to_the_nanosecond)
{
	struct seam_selection s;

	built_add(&p, 1795162410731990093, "app", "main");
	seam_selection_init(&s);
	assert_int_equal(seam_selection_time(&s, &p, "@1795162410.731990093,"
					     "@1795162410.732541356", NULL), 0);
	assert_int_equal(s.from_ns, 1795162410731990093);
	assert_int_equal(s.to_ns, 1795162410732541356);
}

UNIT_TEST(percent_covers_the_whole_recording)
{
	add_ten_samples();
	assert_int_equal(n_in("0%,100%"), 10);
	assert_int_equal(n_in("0%,50%") + n_in("50%,100%"), 10);
	assert_int_equal(n_in("99%,"), 1);
}

UNIT_TEST(a_range_that_is_none_is_refused)
{
	static const char *const wrong[] = {
		"", "1", "a,b", "1,2,3", "-1,2", "1e3,2", "1.2.3,4", "0x1,2",
		"2,1", " 1,2", "1 ,2", "1h,2", "nan,1", ".,1", "%,1", "1ms%,",
		"@,1", "@", "1,@", "@@1,2", "@10%,", "@-1,", "1..2,3",
	};
	struct seam_selection selection;
	struct seam_err err = { 0 };

	add_ten_samples();
	for (size_t i = 0; i < SEAM_ARRAY_SIZE(wrong); i++) {
		seam_selection_init(&selection);
		assert_int_equal(seam_selection_time(&selection, &p, wrong[i],
						     &err), -EINVAL);
		assert_non_null(strstr(err.cause[0], "cannot select"));
		assert_true(selection.to_ns == UINT64_MAX);
	}
}

UNIT_TEST(times_past_the_end_of_counting_do_not_wrap)
{
	add_ten_samples();
	assert_int_equal(n_in("0,99999999999999999999999"), 10);
	assert_int_equal(n_in("99999999999999999999999,"), 0);
}

UNIT_TEST(layers_are_named_one_or_more)
{
	struct seam_selection s;

	assert_int_equal(seam_selection_layers(&s, "kernel,jit", NULL), 0);
	assert_int_equal(s.layers, 1 << SEAM_LAYER_KERNEL |
				   1 << SEAM_LAYER_JIT);
	assert_int_equal(seam_selection_layers(&s, "", NULL), -EINVAL);
	assert_int_equal(seam_selection_layers(&s, "jit,", NULL), -EINVAL);
	assert_int_equal(seam_selection_layers(&s, "heap", NULL), -EINVAL);
}

/* The names of sample 0's stack, root first, as ready. */
static const char *stack_of(const struct seam_selection *selection)
{
	static char text[256];
	struct seam_selected s;

	text[0] = '\0';
	assert_int_equal(seam_selected_init(&s, &p, selection, NULL), 0);
	for (uint32_t i = seam_selected_stack(&s, 0); i;
	     i = s.stacks[i].parent) {
		uint32_t f = p.frames.items[s.stacks[i].frame].function;
		char rest[256];

		memcpy(rest, text, sizeof(rest));
		snprintf(text, sizeof(text), "%.80s;%.160s",
			 seam_profile_text(&p, p.functions.items[f].name),
			 rest);
	}
	seam_selected_fini(&s);
	return text;
}

UNIT_TEST(frames_that_were_not_asked_for_are_taken_out)
{
	struct seam_selection s;

	built_add(&p, 0, "app", "main;tiny_[i];lua_[g];trace_[j];read_[k]");
	seam_selection_init(&s);
	assert_string_equal(stack_of(&s), "main;tiny;lua;trace;read;");
	s.no_inline = true;
	assert_string_equal(stack_of(&s), "main;lua;trace;read;");
	s.layers = 1 << SEAM_LAYER_NATIVE | 1 << SEAM_LAYER_JIT;
	assert_string_equal(stack_of(&s), "main;trace;");
	s.no_inline = false;
	assert_string_equal(stack_of(&s), "main;tiny;trace;");
}

UNIT_TEST(stacks_that_become_equal_become_one)
{
	struct seam_selection selection;
	struct seam_selected s;

	built_add(&p, 0, "app", "main;a_[k];leaf");
	built_add(&p, 1, "app", "main;b_[k];leaf");
	seam_selection_init(&selection);
	selection.layers = 1 << SEAM_LAYER_NATIVE;
	assert_int_equal(seam_selected_init(&s, &p, &selection, NULL), 0);
	assert_int_equal(seam_selected_stack(&s, 0),
			 seam_selected_stack(&s, 1));
	assert_int_equal(s.n_stacks, 3);
	seam_selected_fini(&s);
}

UNIT_TEST(a_sample_without_a_frame_of_the_layers_does_not_count)
{
	struct seam_selection s;

	built_add(&p, 0, "app", "main;read_[k]");
	built_add(&p, 1, "app", "idle_[k]");
	built_add(&p, 2, "app", "");
	seam_selection_init(&s);
	assert_int_equal(n_selected(&s), 3);
	s.layers = 1 << SEAM_LAYER_NATIVE;
	assert_int_equal(n_selected(&s), 1);
}

/* The frames of sample @i, outermost first, by spaces. */
static void check_stack(const struct seam_selected *s, size_t i,
			const char *expected)
{
	uint32_t stack = seam_selected_stack(s, i);
	char *text = strdup("");

	for (; stack; stack = s->stacks[stack].parent) {
		const char *name = seam_profile_text(
			s->profile, s->profile->functions.items[
			s->profile->frames.items[s->stacks[stack].frame]
			.function].name);
		char *inner = text;

		assert_true(asprintf(&text, "%s%s%s", name, *inner ? " " : "",
				     inner) >= 0);
		free(inner);
	}
	assert_string_equal(text, expected);
	free(text);
}

UNIT_TEST(callers_are_turned_round_and_callees_begin_with_it)
{
	struct seam_selection selection;
	struct seam_selected s;

	built_add(&p, 1, "app", "main;f;g;f;h");
	built_add(&p, 2, "app", "main;h");
	built_add(&p, 3, "app", "main;f;k_[k]");
	seam_selection_init(&selection);
	selection.callers_of = "f";
	assert_int_equal(seam_selected_init(&s, &p, &selection, NULL), 0);
	check_stack(&s, 0, "f g f main");
	check_stack(&s, 2, "f main");
	assert_false(seam_selected_has(&s, 1));
	seam_selected_fini(&s);
	selection.callers_of = NULL;
	selection.callees_of = "f";
	selection.layers = 1 << SEAM_LAYER_NATIVE;
	assert_int_equal(seam_selected_init(&s, &p, &selection, NULL), 0);
	check_stack(&s, 0, "f g f h");
	check_stack(&s, 2, "f");
	assert_false(seam_selected_has(&s, 1));
	seam_selected_fini(&s);
	selection.callees_of = "nosuch";
	assert_int_equal(seam_selected_init(&s, &p, &selection, NULL), -ENOENT);
}

UNIT_TEST(a_thread_is_a_number_or_any_name_it_had)
{
	struct seam_selection s;
	struct seam_err err;

	built_put(&p, (struct built_sample) { 0, "early", "main", .tid = 7 });
	built_put(&p, (struct built_sample) { 1, "late", "main", .tid = 7 });
	built_put(&p, (struct built_sample) { 2, "other", "main", .tid = 77 });
	seam_selection_init(&s);
	s.thread = "7";
	assert_int_equal(n_selected(&s), 2);
	s.thread = "early";
	assert_int_equal(n_selected(&s), 1);
	s.thread = "late";	/* its last name stands for all of it */
	assert_int_equal(n_selected(&s), 2);
	s.thread = "nobody";
	assert_int_equal(seam_selected_init(&(struct seam_selected) { 0 }, &p,
					    &s, &err), -EINVAL);
}

UNIT_TEST(an_event_that_is_not_there_is_refused_with_a_list)
{
	struct seam_selection s;
	struct seam_err err;

	built_put(&p, (struct built_sample) { 0, "a", "m", .event = "x\x1b" });
	built_put(&p, (struct built_sample) { 0, "a", "m", .event = "faults" });
	seam_selection_init(&s);
	s.event = "faults";
	assert_int_equal(n_selected(&s), 1);
	s.event = "cycles";
	assert_int_equal(seam_selected_init(&(struct seam_selected) { 0 }, &p,
					    &s, &err), -EINVAL);
	assert_non_null(strstr(err.cause[0], "x\\x1b, faults"));
}

UNIT_TEST(an_empty_profile_can_be_selected_from)
{
	struct seam_selection s;

	assert_int_equal(n_in("0%,100%"), 0);
	seam_selection_init(&s);
	s.no_inline = true;
	assert_int_equal(n_selected(&s), 0);
}

UNIT_MAIN(NULL, NULL, set_up, tear_down)
