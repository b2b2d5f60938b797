/* SPDX-License-Identifier: MIT */
/* test_report.c - tables and trees as they are printed, word for word */
#include "report/report.h"

#include <jansson.h>

#include "fixture.h"

typedef int printer(const struct seam_report *report,
		    const struct seam_view *view);

static int as_json(const struct seam_report *report,
		   const struct seam_view *view)
{
	return seam_report_json(report, view->out);
}

static int as_tree_json(const struct seam_report *report,
			const struct seam_view *view)
{
	return seam_report_tree_json(report, view->out);
}

/* What the last put() printed. */
static char *text;

static void put(struct seam_report report, struct seam_view view,
		printer *print)
{
	static size_t size;
	struct seam_selection selection;
	struct seam_selected selected;

	free(text);
	seam_selection_init(&selection);
	assert_int_equal(seam_selected_init(&selected, &p, &selection, NULL),
			 0);
	report.profile = &p;
	report.selected = &selected;
	report.path = "a.seam";
	view.out = open_memstream(&text, &size);
	assert_int_equal(print(&report, &view), 0);
	fclose(view.out);
	seam_selected_fini(&selected);
}

static void check(struct seam_report report, struct seam_view view,
		  printer *print, const char *expected)
{
	put(report, view, print);
	assert_string_equal(text, expected);
}

static void has(const char *part)
{
	assert_non_null(strstr(text, part));
}

static const struct seam_view piped = { .width = 0 };
static const struct seam_view terminal = { .width = 80, .unicode = true };
static const struct seam_report by_symbol = { .by = SEAM_BY_SYMBOL };

static int begin_small(void **state)
{
	begin(state);
	built_add(&p, 1000000000, "app", "main;fib;fib");
	built_add(&p, 2000000000, "app", "main;fib;fib");
	built_add(&p, 3000000000, "app", "main;read_[k]");
	built_add(&p, 3500000000, "app", "main;tiny_[i]");
	return 0;
}

#define SMALL_TEST(function)						\
	cmocka_unit_test_setup_teardown(function, begin_small, end)

static void a_table_is_aligned(void **state)
{
	check(by_symbol, piped, seam_report_text,
	      "app --fast\n"
	      "a.seam: 4 samples over 2.50 s, nothing lost\n"
	      "\n"
	      "cpu-clock: 4 samples, 4.00 us\n"
	      "    SELF     TOTAL    SAMPLES  LAYER   SYMBOL  MODULE\n"
	      "  50.00%    50.00%          2  native  fib     app\n"
	      "  25.00%    25.00%          1  kernel  read    [kernel.kallsyms]\n"
	      "  25.00%    25.00%          1  native  tiny    app\n"
	      "   0.00%   100.00%          0  native  main    app\n");
}

static void what_top_hides_is_added_up(void **state)
{
	struct seam_report report = { .by = SEAM_BY_SYMBOL, .top = 1 };

	put(report, piped, seam_report_text);
	has("  50.00%  in 3 more rows; "
	    "--top 0 shows all\n");
}

static void threads_are_reported_by_number_and_name(void **state)
{
	struct seam_report report = { .by = SEAM_BY_THREAD };

	built_put(&p, (struct built_sample) { 3600000000, "io\x1b[m", "read",
					      .tid = 4711, .pid = 1 });
	put(report, piped, seam_report_text);
	has("   SHARE       TID    SAMPLES  THREAD\n"
	    "  80.00%         1          4  app\n"
	    "  20.00%      4711          1  io\\x1b[m\n");
}

static size_t longest_line(void)
{
	size_t longest = 0, n = 0;

	for (const char *c = text; *c; c++) {
		if (*c == '\n') {
			longest = n > longest ? n : longest;
			n = 0;
		} else {
			n += ((unsigned char)*c & 0xc0) != 0x80;
		}
	}
	return longest;
}

/* Names of 64 KiB, and figures of many digits. */
static void a_terminal_line_fits(void **state)
{
	static const unsigned int widths[] = { 60, 80, 100, 132 };
	static printer *const printers[] = {
		seam_report_text, seam_report_tree_text,
	};
	char *name = malloc(65537);

	memset(name, 'x', 65536);
	name[65536] = '\0';
	built_add(&p, 0, "app", name);
	memcpy(name, "\xce\xbb\x1b", 3);
	built_add(&p, 0, "app", name);
	for (size_t i = 0; i < SEAM_ARRAY_SIZE(widths); i++) {
		struct seam_view view = {
			.width = widths[i], .unicode = i % 2 == 1,
		};

		for (size_t k = 0; k < SEAM_ARRAY_SIZE(printers); k++) {
			put(by_symbol, view, printers[k]);
			assert_in_range(longest_line(), 40, widths[i]);
			has(i % 2 ? "…" : "..");
		}
	}
	free(name);
}

static void nothing_is_cut_where_there_is_no_terminal(void **state)
{
	char *name = malloc(65537);

	memset(name, 'x', 65536);
	name[65536] = '\0';
	built_add(&p, 0, "app", name);
	put(by_symbol, piped, seam_report_text);
	has(name);
	free(name);
}

static void no_name_acts_on_a_terminal(void **state)
{
	static const char evil[] = "a\x1b[2J;\xc2\x9b" "b;c\xe2\x80\xae;d\ne";
	static printer *const printers[] = {
		seam_report_text, seam_report_tree_text, as_json, as_tree_json,
	};

	built_add(&p, 0, evil, evil);
	p.command = built_string(&p, evil);
	p.events.items[0].name = built_string(&p, evil);
	seam_profile_lost(&p, "test", built_string(&p, evil), 1, 0);
	seam_profile_note(&p, "%s", evil);
	for (size_t i = 0; i < SEAM_ARRAY_SIZE(printers); i++) {
		put(by_symbol, terminal, printers[i]);
		for (const char *c = text; *c; c++)
			assert_true((unsigned char)*c >= 0x20 || *c == '\n');
		assert_null(strstr(text, "\xc2\x9b"));
		assert_null(strstr(text, "\xe2\x80\xae"));
		assert_null(strstr(text, "d\ne"));
	}
}

static void losses_and_notes_are_always_shown(void **state)
{
	seam_profile_lost(&p, "ring full", built_string(&p, "cpu-clock"), 6, 0);
	seam_profile_lost(&p, "record damaged", built_string(&p, "data"), 0,
			  4096);
	seam_profile_note(&p, "no symbols for %s", "/bin/x");
	p.events.items[0].n_lost = 6;
	check((struct seam_report) { .by = SEAM_BY_SYMBOL,
					 .filter = "fib" },
	      piped, seam_report_text,
	      "app --fast\n"
	      "a.seam: 4 samples over 2.50 s, 6 records lost (60.00%)\n"
	      "\n"
	      "cpu-clock: 4 samples, 4.00 us, 6 lost (60.00%)\n"
	      "    SELF     TOTAL    SAMPLES  LAYER   SYMBOL  MODULE\n"
	      "  50.00%    50.00%          2  native  fib     app\n"
	      "\n"
	      "lost: 6 records, ring full (cpu-clock)\n"
	      "lost: 4,096 bytes, record damaged (data)\n"
	      "note: no symbols for /bin/x\n");
}

static void events_are_shown_one_after_another(void **state)
{
	char *second;

	built_put(&p, (struct built_sample) { 0, "app", "main;fault_[k]",
		.event = "page-faults", .weight = 12345 });
	put(by_symbol, piped, seam_report_text);
	has("cpu-clock: 4 samples, 4.00 us\n");
	second = strstr(text, "page-faults: 1 sample, 12,345 events\n");
	assert_non_null(second);
	assert_non_null(strstr(second,
			       " 100.00%   100.00%          1  kernel"));
}

static void one_is_not_many(void **state)
{
	built_put(&p, (struct built_sample) { 0, "app", "main;fault_[k]",
		.event = "page-faults", .weight = 1 });
	put(by_symbol, piped, seam_report_text);
	has("page-faults: 1 sample, 1 event\n");
}

static void no_samples_are_reported(void **state)
{
	put(by_symbol, piped, seam_report_text);
	has("0 samples over 0 ns");
	has("The recording has no samples.\n");
	put(by_symbol, piped, seam_report_tree_text);
	has("The recording has no samples.\n");
}

static void colour_and_bars_are_for_terminals_only(void **state)
{
	struct seam_view view = {
		.width = 120, .unicode = true, .color = true,
	};

	put(by_symbol, view, seam_report_text);
	has("\x1b[34m██████████\x1b[0m");
	has("\x1b[33m█████     \x1b[0m");
	put(by_symbol, piped, seam_report_text);
	assert_null(strstr(text, "\x1b"));
	assert_null(strstr(text, "█"));
}

static void a_tree_steps_right_only_where_calls_part(void **state)
{
	built_add(&p, 0, "app", "_start;main;parse;lex;read_[k]");
	built_add(&p, 1, "app", "_start;main;parse;lex;read_[k]");
	built_add(&p, 2, "app", "_start;main;parse;tree");
	built_add(&p, 3, "app", "_start;main;run;fib;fib");
	built_add(&p, 4, "app", "other");
	check(by_symbol, terminal, seam_report_tree_text,
	      "app --fast\n"
	      "a.seam: 5 samples over 4 ns, nothing lost\n"
	      "\n"
	      "cpu-clock: 5 samples, 5.00 us\n"
	      "   TOTAL      SELF  CALLS\n"
	      "  80.00%     0.00%  ├─ _start\n"
	      "  80.00%     0.00%  │  main\n"
	      "  60.00%     0.00%  │  ├─ parse\n"
	      "  40.00%     0.00%  │  │  ├─ lex\n"
	      "  40.00%    40.00%  │  │  │  read\n"
	      "  20.00%    20.00%  │  │  └─ tree\n"
	      "  20.00%     0.00%  │  └─ run\n"
	      "  20.00%     0.00%  │     fib\n"
	      "  20.00%    20.00%  │     fib\n"
	      "  20.00%    20.00%  └─ other\n");
}

static void small_nodes_of_a_tree_are_cut_and_counted(void **state)
{
	struct seam_report report = {
		.by = SEAM_BY_PROCESS, .min_percent = 40,
	};

	check(report, piped, seam_report_tree_text,
	      "app --fast\n"
	      "a.seam: 4 samples over 2.50 s, nothing lost\n"
	      "\n"
	      "cpu-clock: 4 samples, 4.00 us\n"
	      "   TOTAL      SELF  CALLS\n"
	      " 100.00%     0.00%  app (1)\n"
	      " 100.00%     0.00%  main\n"
	      "  50.00%     0.00%  fib\n"
	      "  50.00%    50.00%  fib\n"
	      "2 smaller or filtered nodes not shown; "
	      "--min-percent 0 shows all sizes\n");
}

static void a_node_of_just_the_percentage_stays(void **state)
{
	struct seam_report report = { .min_percent = 25 };

	put(report, piped, seam_report_tree_text);
	has("read\n");
	assert_null(strstr(text, "not shown"));
}

static void samples_without_a_stack_are_in_a_tree_too(void **state)
{
	built_add(&p, 3600000000, "app", "");
	put(by_symbol, piped, seam_report_tree_text);
	has("  20.00%    20.00%  [no stack]\n");
	put(by_symbol, piped, as_tree_json);
	has("\"stackless\":1,");
}

static void a_tree_filter_keeps_callers_and_callees(void **state)
{
	struct seam_report report = { .filter = "PARSE" };

	built_add(&p, 0, "app", "main;parse;lex");
	built_add(&p, 1, "app", "main;run");
	put(report, piped, seam_report_tree_text);
	has("main\n");
	has("lex\n");
	assert_null(strstr(text, "run\n"));
}

static void json_is_the_contract(void **state)
{
	seam_profile_lost(&p, "ring full", built_string(&p, "cpu-clock"), 1, 0);
	check(by_symbol, piped, as_json,
	      "{\"schema\":\"seam.report/1\",\"file\":\"a.seam\","
	      "\"command\":\"app --fast\",\"samples\":4,"
	      "\"start_ns\":1000000000,\"duration_ns\":2500000000,"
	      "\"lost\":{\"records\":1,\"percent\":20,\"bytes\":0,\"causes\":["
	      "{\"cause\":\"ring full\",\"source\":\"cpu-clock\","
	      "\"records\":1,\"bytes\":0}]},\"notes\":[],\"by\":\"symbol\","
	      "\"rows\":[{\"layer\":\"native\",\"symbol\":\"fib\","
	      "\"module\":\"/usr/bin/app\",\"self\":2,\"total\":2,"
	      "\"self_weight\":2000,\"total_weight\":2000},"
	      "{\"layer\":\"kernel\",\"symbol\":\"read\","
	      "\"module\":\"[kernel.kallsyms]\",\"self\":1,\"total\":1,"
	      "\"self_weight\":1000,\"total_weight\":1000},"
	      "{\"layer\":\"native\",\"symbol\":\"tiny\","
	      "\"module\":\"/usr/bin/app\",\"self\":1,\"total\":1,"
	      "\"self_weight\":1000,\"total_weight\":1000},"
	      "{\"layer\":\"native\",\"symbol\":\"main\","
	      "\"module\":\"/usr/bin/app\",\"self\":0,\"total\":4,"
	      "\"self_weight\":0,\"total_weight\":4000}],"
	      "\"events\":[{\"event\":\"cpu-clock\",\"unit\":\"ns\","
	      "\"samples\":4,\"weight\":4000,\"lost\":0}]}\n");
}

static json_t *parsed(struct seam_report report, printer *print)
{
	json_t *root;

	put(report, piped, print);
	root = json_loads(text, 0, NULL);
	assert_non_null(root);
	return root;
}

static json_int_t int_of(const json_t *object, const char *key)
{
	assert_true(json_is_integer(json_object_get(object, key)));
	return json_integer_value(json_object_get(object, key));
}

/* Rows over all events have no weights: ns and faults have no sum. */
static void json_of_several_events_has_rows_for_each(void **state)
{
	json_t *root, *events, *rows;

	built_put(&p, (struct built_sample) { 0, "app", "main;fault_[k]",
		.event = "page-faults", .weight = 3 });
	root = parsed(by_symbol, as_json);
	rows = json_object_get(root, "rows");
	events = json_object_get(root, "events");
	assert_int_equal(int_of(root, "samples"), 5);
	assert_int_equal(json_array_size(rows), 5);
	assert_null(json_object_get(json_array_get(rows, 0), "self_weight"));
	assert_int_equal(json_array_size(events), 2);
	rows = json_object_get(json_array_get(events, 1), "rows");
	assert_int_equal(json_array_size(rows), 2);
	assert_int_equal(int_of(json_array_get(rows, 0), "self_weight"), 3);
	json_decref(root);
}

static void json_rows_by_thread_say_who(void **state)
{
	struct seam_report report = { .by = SEAM_BY_THREAD };
	json_t *root = parsed(report, as_json);
	const json_t *row = json_array_get(json_object_get(root, "rows"), 0);

	assert_int_equal(int_of(row, "tid"), 1);
	assert_int_equal(int_of(row, "pid"), 1);
	assert_int_equal(int_of(row, "self"), 4);
	assert_string_equal(json_string_value(json_object_get(row, "thread")),
			    "app");
	json_decref(root);
}

static void json_trees_nest(void **state)
{
	json_t *root = parsed(by_symbol, as_tree_json);
	const json_t *event = json_array_get(json_object_get(root, "events"),
					     0);
	const json_t *node = json_array_get(json_object_get(event, "tree"), 0);
	const json_t *children = json_object_get(node, "children");

	assert_string_equal(json_string_value(json_object_get(root, "schema")),
			    "seam.tree/1");
	assert_int_equal(int_of(node, "total"), 4);
	assert_int_equal(json_array_size(children), 3);
	assert_int_equal(int_of(json_array_get(children, 0), "total"), 2);
	assert_true(json_is_true(json_object_get(json_array_get(children, 2),
						 "inlined")));
	json_decref(root);
}

/* Deeper than JSON goes: cut, marked, and nothing of its counts missing. */
static void json_trees_are_cut_where_readers_end(void **state)
{
	uint32_t stack = built_stack(&p, "f");
	json_t *root, *list;
	const json_t *node = NULL;
	int depth = 0;

	for (int i = 1; i < 5000; i++)
		stack = seam_profile_stack(&p, stack, p.stacks.items[1].frame);
	built_add(&p, 0, "app", "f");
	p.samples.stack[0] = stack;
	root = parsed(by_symbol, as_tree_json);
	list = json_object_get(json_array_get(json_object_get(root, "events"),
					      0), "tree");
	for (; list; list = json_object_get(node, "children"), depth++)
		node = json_array_get(list, 0);
	assert_int_equal(depth, SEAM_REPORT_DEPTH);
	assert_true(json_is_true(json_object_get(node, "cut")));
	assert_int_equal(int_of(node, "total"), 1);
	json_decref(root);
}

static void numbers_read_well(void **state)
{
	char buf[SEAM_NUMBER];

	assert_string_equal(seam_format_count(buf, 0), "0");
	assert_string_equal(seam_format_count(buf, 999), "999");
	assert_string_equal(seam_format_count(buf, UINT64_MAX),
			    "18,446,744,073,709,551,615");
	assert_string_equal(seam_format_weight(buf, 12, SEAM_UNIT_NS), "12 ns");
	assert_string_equal(seam_format_weight(buf, 1500000, SEAM_UNIT_NS),
			    "1.50 ms");
	assert_string_equal(seam_format_weight(buf, 61000000000, SEAM_UNIT_NS),
			    "61.0 s");
	assert_string_equal(seam_format_weight(buf, 999999, SEAM_UNIT_COUNT),
			    "999,999");
	assert_string_equal(seam_format_weight(buf, 1230000000,
					       SEAM_UNIT_COUNT), "1.23 G");
	assert_string_equal(seam_format_percent(buf, 1, 0), "0.00%");
	assert_string_equal(seam_format_percent(buf, 1, 3), "33.33%");
}

static int as_stats(const struct seam_report *report,
		    const struct seam_view *view)
{
	seam_report_stats_text(report, view);
	return 0;
}

static void expect_stats(const char *part, bool is_there)
{
	put(by_symbol, piped, as_stats);
	assert_int_equal(strstr(text, part) != NULL, is_there);
}

static void stats_count_what_is_not_in_the_ends(void **state)
{
	struct seam_stack_counts *counts = &p.stack_counts;

	counts->n_ended[SEAM_STACK_COMPLETE] = 9;
	expect_stats("kernel's part", false);
	expect_stats("no user stack", false);
	expect_stats("32-bit", false);
	counts->n_kernel_cut = counts->n_empty = counts->n_32_bit = 1;
	expect_stats("\nthe kernel's part of 1 stack is truncated: deeper "
		     "than kernel.perf_event_max_stack allows\n", true);
	expect_stats("\n1 sample had no user stack\n", true);
	expect_stats("\n1 sample of 32-bit tasks: by frame pointers\n",
		     true);
	counts->n_kernel_cut = 1234;
	counts->n_empty = counts->n_32_bit = 5;
	expect_stats("\nthe kernel's part of 1,234 stacks is truncated",
		     true);
	expect_stats("\n5 samples had no user stack\n", true);
	expect_stats("\n5 samples of 32-bit tasks", true);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		SMALL_TEST(a_table_is_aligned),
		SMALL_TEST(what_top_hides_is_added_up),
		SMALL_TEST(threads_are_reported_by_number_and_name),
		SMALL_TEST(a_terminal_line_fits),
		TEST(nothing_is_cut_where_there_is_no_terminal),
		TEST(no_name_acts_on_a_terminal),
		SMALL_TEST(losses_and_notes_are_always_shown),
		SMALL_TEST(events_are_shown_one_after_another),
		TEST(one_is_not_many),
		TEST(no_samples_are_reported),
		SMALL_TEST(colour_and_bars_are_for_terminals_only),
		TEST(a_tree_steps_right_only_where_calls_part),
		SMALL_TEST(small_nodes_of_a_tree_are_cut_and_counted),
		SMALL_TEST(a_node_of_just_the_percentage_stays),
		SMALL_TEST(samples_without_a_stack_are_in_a_tree_too),
		TEST(a_tree_filter_keeps_callers_and_callees),
		SMALL_TEST(json_is_the_contract),
		SMALL_TEST(json_of_several_events_has_rows_for_each),
		SMALL_TEST(json_rows_by_thread_say_who),
		SMALL_TEST(json_trees_nest),
		TEST(json_trees_are_cut_where_readers_end),
		cmocka_unit_test(numbers_read_well),
		SMALL_TEST(stats_count_what_is_not_in_the_ends),
	};

	return cmocka_run_group_tests_name("report", tests, NULL, NULL);
}
