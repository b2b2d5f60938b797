/* SPDX-License-Identifier: MIT */
/* test_event.c - names and modifiers of events */
#include "record/events/event.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static int parse(struct seam_event *event, const char *text)
{
	seam_event_init(event);
	return seam_event_parse(event, text, NULL);
}

static void has_the_names_of_perf(void **state)
{
	static const struct { const char *name; uint32_t type; uint64_t id; }
	some[] = {
		{ "cycles", PERF_TYPE_HARDWARE, PERF_COUNT_HW_CPU_CYCLES },
		{ "branch-instructions", PERF_TYPE_HARDWARE,
		  PERF_COUNT_HW_BRANCH_INSTRUCTIONS },
		{ "cpu-clock", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CPU_CLOCK },
		{ "cs", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CONTEXT_SWITCHES },
		{ "faults", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_PAGE_FAULTS },
		{ "LLC-load-misses", PERF_TYPE_HW_CACHE, 0x10002 },
		{ "dTLB-load-misses", PERF_TYPE_HW_CACHE, 0x10003 },
		{ "r1A8", PERF_TYPE_RAW, 0x1a8 },
	};
	struct seam_event event;

	(void)state;
	for (size_t i = 0; i < sizeof(some) / sizeof(some[0]); i++) {
		assert_int_equal(parse(&event, some[i].name), 0);
		assert_string_equal(event.name, some[i].name);
		assert_int_equal(event.attr.type, some[i].type);
		assert_int_equal(event.attr.config, some[i].id);
		assert_int_equal(event.attr.exclude_kernel, 0);
	}
}

static void modifiers_choose_where_to_count(void **state)
{
	struct seam_event event;

	(void)state;
	assert_int_equal(parse(&event, "cycles:u"), 0);
	assert_false(event.attr.exclude_user);
	assert_true(event.attr.exclude_kernel && event.attr.exclude_hv);
	assert_int_equal(parse(&event, "cycles:k"), 0);
	assert_true(event.attr.exclude_user && event.attr.exclude_hv);
	assert_false(event.attr.exclude_kernel);
	assert_int_equal(parse(&event, "cycles:uk"), 0);
	assert_false(event.attr.exclude_user || event.attr.exclude_kernel);
	assert_true(event.attr.exclude_hv);
	assert_int_equal(parse(&event, "cycles:upp"), 0);
	assert_int_equal(event.attr.precise_ip, 2);
	assert_true(event.attr.exclude_kernel);
	assert_int_equal(parse(&event, "cycles:P"), 0);
	assert_true(event.any_precision);
	assert_int_equal(event.attr.precise_ip, 3);
}

/* As 'perf record -vv' of Linux 6.1 shows the attr of each. */
static void guests_of_kvm_count_where_perf_counts_them(void **state)
{
	static const struct { const char *text; int no_guest, no_host; }
	some[] = {
		{ "cycles", 1, 0 }, { "cpu-clock:u", 1, 0 }, { "r1a8", 1, 0 },
		{ "cycles:p", 1, 0 }, { "cycles:k", 0, 0 },
		{ "cycles:I", 0, 0 }, { "cycles:G", 0, 1 },
		{ "cycles:H", 1, 0 }, { "dummy:HG", 0, 0 },
		{ "cycles:GH", 0, 0 }, { "cpu-clock:uH", 1, 0 },
	};
	struct seam_event event;

	(void)state;
	for (size_t i = 0; i < sizeof(some) / sizeof(some[0]); i++) {
		assert_int_equal(parse(&event, some[i].text), 0);
		assert_int_equal(event.attr.exclude_guest, some[i].no_guest);
		assert_int_equal(event.attr.exclude_host, some[i].no_host);
	}
	assert_int_equal(parse(&event, "cpu-clock:ID"), 0);
	assert_true(event.attr.exclude_idle && event.attr.pinned);
}

static void refuses_what_is_no_event(void **state)
{
	static const char *const bad[] = {
		"", "nosuch", "cycles:x", "cycles:pppp", "r", "rxyz",
		"r12345678901234567", ":u", "cycles cycles", "cycle",
		"cycles:u:k",
	};
	struct seam_event event;

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		assert_int_equal(parse(&event, bad[i]), -EINVAL);
}

static void refuses_a_name_that_it_could_not_keep(void **state)
{
	char text[2 * SEAM_EVENT_NAME] = "cycles:";
	struct seam_event event;

	(void)state;
	memset(text + 7, 'u', SEAM_EVENT_NAME - 8);
	assert_int_equal(parse(&event, text), 0);
	text[SEAM_EVENT_NAME - 1] = 'u';
	assert_int_equal(parse(&event, text), -EINVAL);
}

static void an_event_of_a_program_has_an_id_that_no_kernel_gives(void **state)
{
	struct seam_event_list list = { 0 };

	(void)state;
	for (uint32_t i = 0; i < 2; i++) {
		struct seam_event *event = seam_event_list_push(&list);

		seam_event_init_program(event, "guest:function", i);
		assert_string_equal(event->name, "guest:function");
		assert_int_equal(event->origin, SEAM_EVENT_OF_PROGRAM);
		assert_int_equal(event->leader, SEAM_EVENT_ALONE);
		assert_true(event->each_time);
		assert_true(event->program_id >> 63);
	}
	assert_int_not_equal(list.items[0].program_id,
			     list.items[1].program_id);
	assert_int_equal(seam_event_list_push(&list)->program_id, 0);
	seam_event_list_fini(&list);
}

static void every_name_in_the_list_can_be_asked_for(void **state)
{
	struct seam_event event;
	size_t n = 0;

	(void)state;
	for (; seam_event_name(n); n++)
		assert_int_equal(parse(&event, seam_event_name(n)), 0);
	assert_true(n > 30);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(has_the_names_of_perf),
		cmocka_unit_test(modifiers_choose_where_to_count),
		cmocka_unit_test(guests_of_kvm_count_where_perf_counts_them),
		cmocka_unit_test(refuses_what_is_no_event),
		cmocka_unit_test(refuses_a_name_that_it_could_not_keep),
		cmocka_unit_test(
			an_event_of_a_program_has_an_id_that_no_kernel_gives),
		cmocka_unit_test(every_name_in_the_list_can_be_asked_for),
	};

	return cmocka_run_group_tests_name("event", tests, NULL, NULL);
}
