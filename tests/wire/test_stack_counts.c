/* SPDX-License-Identifier: MIT */
/* test_stack_counts.c - stacks are counted by reason and file, and explained */
#include "wire/stack_counts.h"

#include "unit.h"

UNIT_TEST(each_end_has_a_key_of_its_own)
{
	for (unsigned int i = 0; i < SEAM_STACK_N_ENDS; i++) {
		assert_true(*seam_stack_ends[i].text);
		assert_int_equal(seam_stack_end_parse(seam_stack_ends[i].key),
				 i);
	}
	assert_int_equal(seam_stack_end_parse("other"), SEAM_STACK_N_ENDS);
}

UNIT_TEST(files_are_told_apart_by_reason_and_ordered)
{
	struct seam_stack_counts *c = calloc(1, sizeof(*c));

	seam_stack_counts_add(c, SEAM_STACK_COMPLETE, "/a");
	/* these are no fault of the file */
	seam_stack_counts_add(c, SEAM_STACK_TRUNCATED, "/a");
	seam_stack_counts_add(c, SEAM_STACK_OTHER_STACK, "/a");
	seam_stack_counts_add(c, SEAM_STACK_BEYOND, "/a");
	seam_stack_counts_add(c, SEAM_STACK_JOINED, "/a");
	/* and these are no stacks */
	seam_stack_counts_add(c, SEAM_STACK_ABSENT, NULL);
	seam_stack_counts_add(c, SEAM_STACK_OF_32_BIT, NULL);
	seam_stack_counts_add(c, SEAM_STACK_UNREPORTED, NULL);
	seam_stack_counts_add(c, SEAM_STACK_UNREADABLE, NULL);
	seam_stack_counts_add(c, SEAM_STACK_WITHOUT_CFI, "/a");
	seam_stack_counts_add(c, SEAM_STACK_BROKEN_CFI, "/a");
	seam_stack_counts_add(c, SEAM_STACK_BROKEN_CFI, "/a");
	seam_stack_counts_sort(c);
	assert_int_equal(c->n_modules, 2);
	assert_int_equal(c->modules[0].end, SEAM_STACK_BROKEN_CFI);
	assert_int_equal(c->modules[0].n, 2);
	assert_int_equal(c->modules[1].n, 1);
	assert_int_equal(seam_stack_counts_total(c), 9);
	assert_int_equal(c->n_empty, 1);
	assert_int_equal(c->n_32_bit, 1);
	free(c);
}

UNIT_TEST(the_worst_file_stays_in_a_full_list)
{
	struct seam_stack_counts *c = calloc(1, sizeof(*c));
	char path[32];

	for (int i = 0; i < 1000; i++) {
		snprintf(path, sizeof(path), "/lib/%d", i);
		seam_stack_counts_add(c, SEAM_STACK_WITHOUT_CFI, path);
		seam_stack_counts_add(c, SEAM_STACK_WITHOUT_CFI, "/worst");
	}
	seam_stack_counts_sort(c);
	assert_int_equal(c->n_modules, SEAM_STACK_MAX_MODULES);
	assert_string_equal(c->modules[0].path, "/worst");
	assert_int_equal(c->modules[0].n, 1000);
	assert_int_equal(c->n_ended[SEAM_STACK_WITHOUT_CFI], 2000);
	free(c);
}

UNIT_TEST(a_long_path_keeps_the_name_of_the_file)
{
	struct seam_stack_counts *c = calloc(1, sizeof(*c));
	char *path = calloc(1, 5000);

	memset(path, 'd', 4998);
	memcpy(path + 4990, "/libx.so", 9);
	seam_stack_counts_add(c, SEAM_STACK_NO_FILE, path);
	seam_stack_counts_add(c, SEAM_STACK_NO_FILE, path);
	assert_int_equal(c->n_modules, 1);
	assert_int_equal(strlen(c->modules[0].path), SEAM_STACK_PATH - 1);
	assert_string_equal(c->modules[0].path + SEAM_STACK_PATH - 9,
			    "/libx.so");
	free(path);
	free(c);
}

UNIT_TEST(merging_adds_every_count)
{
	struct seam_stack_counts *sum = calloc(1, sizeof(*sum));
	struct seam_stack_counts from = {
		.n_ended = { 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14 },
		.n_empty = 19, .n_jvm = 20, .n_kernel_cut = 22, .n_32_bit = 23,
		.dump_bytes = 21, .n_modules = 1,
		.modules = { { 3, SEAM_STACK_NO_FILE, "/a" } },
	};

	seam_stack_counts_merge(sum, &from);
	assert_memory_equal(sum, &from, sizeof(from));
	seam_stack_counts_merge(sum, &from);
	assert_int_equal(seam_stack_counts_total(sum), 210);
	assert_int_equal(sum->modules[0].n, 6);
	assert_int_equal(sum->dump_bytes, 21);
	free(sum);
}

static const char *advice(const struct seam_stack_counts *c)
{
	static char text[600];

	return seam_stack_counts_advise(c, text, sizeof(text)) ? text : NULL;
}

UNIT_TEST(advice_names_the_option_the_file_or_the_jvm)
{
	struct seam_stack_counts c = {
		.n_ended = { [SEAM_STACK_COMPLETE] = 90,
			     [SEAM_STACK_TRUNCATED] = 10 },
	};

	assert_null(advice(&c));
	assert_null(advice(&(struct seam_stack_counts) { 0 }));
	c.n_32_bit = 10;
	assert_null(advice(&c));
	c.n_32_bit = 25;
	assert_string_equal(advice(&c), "20.0 % of the user stacks are of "
		"32-bit tasks: by frame pointers (build them with "
		"-fno-omit-frame-pointer)");
	c.n_32_bit = 0;
	c.n_ended[SEAM_STACK_TRUNCATED] = 30;
	assert_string_equal(advice(&c), "75.0 % of the user stacks are "
		"complete; 25.0 % end early: deeper than the copy of the "
		"stack");
	c.dump_bytes = 49152;
	assert_string_equal(advice(&c), "75.0 % of the user stacks are "
		"complete; 25.0 % end early: deeper than the copy of the "
		"stack (a larger one: --call-graph auto,SIZE)");
	/* the kernel makes none that is larger */
	c.dump_bytes = SEAM_STACK_MAX_COPY;
	assert_null(strstr(advice(&c), "larger"));
	c.n_ended[SEAM_STACK_BEYOND] = 40;
	assert_null(strstr(advice(&c), "--call-graph"));
	c.n_ended[SEAM_STACK_BEYOND] = 0;
	seam_stack_counts_add_module(&c, SEAM_STACK_WITHOUT_CFI, "/l/x", 60);
	c.n_ended[SEAM_STACK_WITHOUT_CFI] = 60;
	assert_non_null(strstr(advice(&c), "50.0 % of the user stacks"));
	assert_non_null(strstr(advice(&c), "most in /l/x"));
	/* an option for a compiler is of no use for the code of a JIT */
	seam_stack_counts_add_module(&c, SEAM_STACK_WITHOUT_CFI, "[jit]", 70);
	assert_non_null(strstr(advice(&c), "most in [jit]"));
	assert_null(strstr(advice(&c), "-f"));
	c.n_ended[SEAM_STACK_JOINED] = 100;
	assert_non_null(strstr(advice(&c), "32.1 % of the user stacks are "
			       "complete, 35.7 % more after [joined]; "));
	c.n_ended[SEAM_STACK_JOINED] = 0;
	c.n_jvm = 80;
	assert_non_null(strstr(advice(&c), "-XX:+PreserveFramePointer"));
}

UNIT_MAIN(NULL, NULL, NULL, NULL)
