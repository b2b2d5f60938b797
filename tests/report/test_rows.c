/* SPDX-License-Identifier: MIT */
/* test_rows.c - what self and total are, and in which order rows stand */
#include "report/rows.h"

#include "fixture.h"

static struct seam_rows table_of(uint32_t by, unsigned int layers)
{
	struct seam_selection selection;
	struct seam_selected s;
	struct seam_rows table;

	seam_selection_init(&selection);
	if (layers)
		selection.layers = layers;
	assert_int_equal(seam_selected_init(&s, &p, &selection, NULL), 0);
	assert_int_equal(seam_rows_make(&table, &s, SEAM_NONE, by), 0);
	seam_selected_fini(&s);
	seam_rows_sort(&table, SEAM_SORT_SELF, false);
	return table;
}

static const char *name_of(const struct seam_rows *table,
			   const struct seam_row *row)
{
	static char buf[SEAM_ROW_TEXT];

	return seam_row_text(table, row, seam_by_key(table->by, 0), buf);
}

/* "name self/total" of each row, by spaces. */
static const char *shown(struct seam_rows *table)
{
	static char text[512];
	size_t used = 0;

	text[0] = '\0';
	for (size_t i = 0; i < table->n; i++) {
		const struct seam_row *row = &table->items[i];

		used += (size_t)snprintf(text + used, sizeof(text) - used,
			"%s%s %d/%d", i ? " " : "", name_of(table, row),
			(int)row->self_samples, (int)row->samples);
	}
	seam_rows_fini(table);
	return text;
}

static void check(uint32_t by, const char *expected)
{
	struct seam_rows table = table_of(by, 0);

	assert_string_equal(shown(&table), expected);
}

static void self_is_the_leaf_and_total_all_above_it(void **state)
{
	static const struct {
		const char *stacks[5];
		uint32_t by;
		const char *rows;
	} cases[] = {
		{ { "main;f;g", "main;f;g", "main;f", "main;h;f" },
		  SEAM_BY_SYMBOL, "f 2/4 g 2/2 main 0/4 h 0/1" },
		/* a recursive function counts once a stack */
		{ { "main;fib;fib;fib", "main;fib;odd;fib;odd", "main;fib",
		    "main;odd;fib" },
		  SEAM_BY_SYMBOL, "fib 3/4 odd 1/2 main 0/4" },
		/* inlined or not is one row */
		{ { "main;tiny_[i]", "main;tiny", "main;tiny;tiny_[i]" },
		  SEAM_BY_SYMBOL, "tiny 3/3 main 0/3" },
		/* equal names in two modules or layers are two rows */
		{ { "init@/lib/a.so", "init@/lib/b.so", "init@/lib/b.so_[k]" },
		  SEAM_BY_SYMBOL, "init 1/1 init 1/1 init 1/1" },
		/* modules count once a stack as well */
		{ { "main;f@libc;g;read_[k]", "main;g" }, SEAM_BY_MODULE,
		  "/usr/bin/app 1/2 [kernel.kallsyms] 1/1 libc 0/1" },
		/* samples without a stack have a row, no samples none */
		{ { "", "", "main" }, SEAM_BY_SYMBOL,
		  "[no stack] 2/2 main 1/1" },
		{ { NULL }, SEAM_BY_SYMBOL, "" },
	};

	for (size_t i = 0; i < SEAM_ARRAY_SIZE(cases); i++) {
		seam_profile_fini(&p);
		p = built();
		for (size_t k = 0; cases[i].stacks[k]; k++)
			built_add(&p, k, "app", cases[i].stacks[k]);
		check(cases[i].by, cases[i].rows);
	}
}

static void threads_and_processes_have_their_samples(void **state)
{
	built_put(&p, (struct built_sample) { .comm = "one", .stack = "f",
					      .tid = 1, .pid = 1 });
	for (int i = 0; i < 2; i++)
		built_put(&p, (struct built_sample) {
			.comm = "two", .stack = "g", .tid = 2, .pid = 1 });
	for (int i = 0; i < 4; i++)
		built_put(&p, (struct built_sample) {
			.comm = "far", .stack = "", .tid = 9, .pid = 9 });
	struct seam_rows table = table_of(SEAM_BY_THREAD, 0);

	assert_string_equal(shown(&table), "far 4/4 two 2/2 one 1/1");
	check(SEAM_BY_PROCESS, "far 4/4 one 3/3");
}

static void frames_left_out_give_their_samples_to_their_callers(void **state)
{
	struct seam_rows table;

	built_add(&p, 0, "app", "main;read_[k];copy_[k]");
	built_add(&p, 1, "app", "irq_[k]");
	table = table_of(SEAM_BY_SYMBOL, 1 << SEAM_LAYER_NATIVE);
	assert_int_equal(table.samples, 1);
	assert_string_equal(shown(&table), "main 1/1");
}

static void weights_and_samples_sort_apart(void **state)
{
	struct seam_rows table;

	built_put(&p, (struct built_sample) { .comm = "a", .stack = "m;heavy",
					      .weight = 5000 });
	built_add(&p, 1, "a", "m;often");
	built_add(&p, 2, "a", "m;often");
	table = table_of(SEAM_BY_SYMBOL, 0);
	seam_rows_sort(&table, SEAM_SORT_SELF, true);
	assert_int_equal(table.weight, 7000);
	assert_int_equal(table.items[0].self_weight, 5000);
	seam_rows_sort(&table, SEAM_SORT_TOTAL, false);
	assert_string_equal(shown(&table), "m 0/3 often 2/2 heavy 1/1");
}

static void a_filter_looks_at_names_and_modules_in_any_case(void **state)
{
	struct seam_rows table;

	built_add(&p, 0, "a", "main;Alloc;read_[k]");
	table = table_of(SEAM_BY_SYMBOL, 0);
	seam_rows_filter(&table, "alloc");
	assert_string_equal(shown(&table), "Alloc 0/1");
	table = table_of(SEAM_BY_SYMBOL, 0);
	seam_rows_filter(&table, "KALLSYMS");
	assert_string_equal(shown(&table), "read 1/1");
}

/* Against the definition itself, on stacks made by a small generator. */
static void totals_equal_a_slow_count(void **state)
{
	unsigned int self[8] = { 0 }, total[8] = { 0 }, seed = 7;
	struct seam_rows table;

	for (uint64_t i = 0; i < 2000; i++) {
		char stack[64] = "";
		unsigned int seen = 0, f = 0;

		for (unsigned int n = 1 + seed % 9; n; n--) {
			seed = seed * 1103515245 + 12345;
			f = seed >> 20 & 7;
			snprintf(stack + strlen(stack), 8, "%sf%u",
				 *stack ? ";" : "", f);
			total[f] += !(seen >> f & 1);
			seen |= 1u << f;
		}
		self[f]++;
		built_add(&p, i, "a", stack);
	}
	table = table_of(SEAM_BY_SYMBOL, 0);
	assert_int_equal(table.n, 8);
	for (size_t i = 0; i < table.n; i++) {
		const char *name = name_of(&table, &table.items[i]);

		assert_int_equal(table.items[i].self_samples,
				 self[name[1] - '0']);
		assert_int_equal(table.items[i].samples, total[name[1] - '0']);
	}
	seam_rows_fini(&table);
}

static uint32_t keys(const char *text)
{
	uint32_t by;

	assert_int_equal(seam_by_parse(text, &by), 0);
	return by;
}

/* "a|b self/total" of each row by @text, its keys with bars between. */
static void check_keys(const char *text, const char *expected)
{
	struct seam_rows table = table_of(keys(text), 0);
	char buf[SEAM_ROW_TEXT], all[512] = "";
	size_t used = 0;

	for (size_t i = 0; i < table.n; i++) {
		const struct seam_row *row = &table.items[i];

		for (size_t k = 0; seam_by_key(table.by, k); k++)
			used += (size_t)snprintf(all + used, sizeof(all) - used,
				"%s%s", k ? "|" : i ? " " : "",
				seam_row_text(&table, row,
					      seam_by_key(table.by, k), buf));
		used += (size_t)snprintf(all + used, sizeof(all) - used,
			" %d/%d", (int)row->self_samples, (int)row->samples);
	}
	assert_string_equal(all, expected);
	seam_rows_fini(&table);
}

static void several_keys_make_a_row_of_what_they_have_in_common(void **state)
{
	built_put(&p, (struct built_sample) { 1, "a", "main;f;f", .tid = 1 });
	built_put(&p, (struct built_sample) { 2, "a", "main;g", .tid = 2 });
	built_put(&p, (struct built_sample) { 3, "b", "main;f", .tid = 3 });
	built_put(&p, (struct built_sample) { 4, "b", "", .tid = 3 });
	check_keys("comm", "a 2/2 b 2/2");
	check_keys("comm,symbol", "a|f 1/1 a|g 1/1 b|[no stack] 1/1 "
		   "b|f 1/1 a|main 0/2 b|main 0/1");
	check_keys("symbol,comm", "[no stack]|b 1/1 f|a 1/1 f|b 1/1 "
		   "g|a 1/1 main|a 0/2 main|b 0/1");
	check_keys("module,thread", "/usr/bin/app|a 1/1 /usr/bin/app|a 1/1"
		   " /usr/bin/app|b 1/1 [no stack]|b 1/1");
}

static void a_line_is_a_row_and_so_is_a_function_without(void **state)
{
	uint32_t file = built_string(&p, "/src/a.c");

	built_add(&p, 1, "a", "f;g");
	built_add(&p, 2, "a", "f;h");
	/* f is in line 7, h in the same; g has none */
	for (size_t i = 0; i < p.frames.n; i++) {
		const char *name = seam_profile_text(&p, p.functions.items[
			p.frames.items[i].function].name);

		p.frames.items[i].file = *name == 'g' ? 0 : file;
		p.frames.items[i].line = *name == 'g' ? 0 : 7;
	}
	check_keys("line", "/src/a.c:7 1/2 g 1/1");
	check_keys("line,symbol", "-|g 1/1 /src/a.c:7|h 1/1 "
		   "/src/a.c:7|f 0/2");
}

static void a_cpu_is_a_row_in_the_order_of_numbers(void **state)
{
	for (uint64_t i = 0; i < 3; i++)
		built_add(&p, i, "a", "f");
	p.samples.cpu[0] = 10;
	p.samples.cpu[1] = 2;
	p.samples.cpu[2] = UINT16_MAX;
	check_keys("cpu", "2 1/1 10 1/1 unknown 1/1");
}

static void a_state_of_a_vm_is_a_row_and_so_is_none(void **state)
{
	for (uint64_t i = 0; i < 4; i++)
		built_add(&p, i, "a", i == 3 ? "g" : "f");
	assert_true(seam_samples_set_vmstate(&p.samples, 1,
					     SEAM_VMSTATE_LFUNC));
	assert_true(seam_samples_set_vmstate(&p.samples, 3,
					     SEAM_VMSTATE_LFUNC));
	check_keys("vmstate", "LFUNC 2/2 none 2/2");
	check_keys("vmstate,symbol", "none|f 2/2 LFUNC|f 1/1 LFUNC|g 1/1");
	/* samples that a later reader adds have none */
	assert_true(seam_samples_reserve(&p.samples, 100));
	assert_int_equal(seam_samples_vmstate(&p.samples, 4),
			 SEAM_VMSTATE_NONE);
	assert_int_equal(seam_samples_vmstate(&p.samples, 103),
			 SEAM_VMSTATE_NONE);
}

/* Of one function, in whichever file it is, each address that was sampled. */
static void an_address_is_a_row(void **state)
{
	built_add(&p, 0, "app", "f;g");
	built_add(&p, 1, "app", "f;h");
	for (size_t i = 0; i < p.frames.n; i++)
		p.frames.items[i].addr = 0x10 + i / 2;
	check_keys("address", "0x10 g 1/1 0x11 h 1/1 0x10 f 0/2");
	check_keys("symbol,address",
		   "g|0x10 1/1 h|0x11 1/1 f|0x10 0/2");
}

static void what_is_no_list_of_keys_is_refused(void **state)
{
	static const char *const bad[] = {
		"", ",", "comm,", ",comm", "comm,comm", "commx", "com",
		"symbol,module,comm,cpu,line",
	};
	uint32_t by;

	for (size_t i = 0; i < SEAM_ARRAY_SIZE(bad); i++)
		assert_int_equal(seam_by_parse(bad[i], &by), -EINVAL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(several_keys_make_a_row_of_what_they_have_in_common),
		TEST(a_line_is_a_row_and_so_is_a_function_without),
		TEST(an_address_is_a_row),
		TEST(a_cpu_is_a_row_in_the_order_of_numbers),
		TEST(a_state_of_a_vm_is_a_row_and_so_is_none),
		cmocka_unit_test(what_is_no_list_of_keys_is_refused),
		TEST(self_is_the_leaf_and_total_all_above_it),
		TEST(threads_and_processes_have_their_samples),
		TEST(frames_left_out_give_their_samples_to_their_callers),
		TEST(weights_and_samples_sort_apart),
		TEST(a_filter_looks_at_names_and_modules_in_any_case),
		TEST(totals_equal_a_slow_count),
	};

	return cmocka_run_group_tests_name("rows", tests, NULL, NULL);
}
