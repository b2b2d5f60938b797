/* SPDX-License-Identifier: MIT */
/*
 * test_export_profile.c - limits of exports of whole profiles, and no memory
 *
 * What they write is read back by test_exports.py.
 */
#include <errno.h>

#include "../no_memory.h"
#include "export_oracle.h"
#include "../unit.h"

static const char *const formats[] = {
	"pprof", "firefox", "speedscope", "perfetto", "page",
};

static char said[600];

__attribute__((format(printf, 1, 2)))
static void hear(const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	vsnprintf(said, sizeof(said), fmt, args);
	va_end(args);
}

static int write_as(const struct seam_profile *p, const char *format,
		    FILE *out, struct seam_err *err)
{
	struct seam_selection selection;
	struct seam_selected selected;
	int r;

	seam_selection_init(&selection);
	r = seam_selected_init(&selected, p, &selection, err);
	if (r)
		return r;
	r = seam_exporter_find(format)->write(&(struct seam_export) {
		.out = out, .selected = &selected, .say = hear }, err);
	seam_selected_fini(&selected);
	return r;
}

/* How many allocations fail, one after another, until none is left. */
static long fail_each(const struct seam_profile *p, const char *format,
		      FILE *out)
{
	long n = 1;

	for (;; n += n < 200 ? 1 : n / 50) {
		int r;

		until_failure = n;
		r = write_as(p, format, out, NULL);
		assert_true(r == 0 || r == -ENOMEM);
		if (until_failure > 0)
			break;
		assert_int_equal(r, -ENOMEM);
	}
	until_failure = 0;
	return n;
}

UNIT_TEST(each_failed_allocation_is_reported)
{
	FILE *out = fopen("/dev/null", "w");

	assert_non_null(out);
	for (size_t i = 0; i < SEAM_ARRAY_SIZE(made_profiles); i++) {
		struct seam_profile p = made_profile(i);

		for (size_t k = 0; k < SEAM_ARRAY_SIZE(formats); k++)
			assert_true(fail_each(&p, formats[k], out) > 5);
		seam_profile_fini(&p);
	}
	fclose(out);
}

UNIT_TEST(more_events_than_a_file_can_have_are_refused)
{
	struct seam_profile p = built();
	char event[16];

	for (unsigned int i = 0; i <= 64; i++) {
		snprintf(event, sizeof(event), "event%u", i);
		put(&p, i, "app", 100, event, 1, "main");
	}
	for (size_t k = 0; k < SEAM_ARRAY_SIZE(formats); k++) {
		struct seam_err err = { 0 };

		assert_int_equal(write_as(&p, formats[k], stderr, &err),
				 -E2BIG);
		assert_non_null(strstr(err.cause[0], "choose one with "
				       "--event"));
	}
	seam_profile_fini(&p);
}

/* A few samples of deep stacks: 480 MB of JSON, of a profile of 2 MiB. */
UNIT_TEST(stacks_that_no_browser_opens_are_refused)
{
	enum { DEPTH = 60000, LEAVES = 1200 };
	struct seam_profile p = built();
	char inner[] = "inner";
	uint32_t stack = 0, frame = built_frame(&p, inner);
	FILE *out = fopen("/dev/null", "w");
	struct seam_err err = { 0 };

	for (unsigned int i = 0; i < DEPTH; i++)
		stack = seam_profile_stack(&p, stack, frame);
	built_leaves(&p, stack, LEAVES);
	assert_int_equal(write_as(&p, "speedscope", out, &err), -EFBIG);
	assert_non_null(strstr(err.cause[0], "--time"));
	fclose(out);
	seam_profile_fini(&p);
}

UNIT_TEST(ends_of_calls_without_a_begin_are_counted)
{
	FILE *out = fopen("/dev/null", "w");

	for (size_t i = 0; i < SEAM_ARRAY_SIZE(made_profiles); i++) {
		struct seam_profile p;

		if (strcmp(made_profiles[i].name, "broken_calls") != 0)
			continue;
		p = made_profile(i);
		said[0] = '\0';
		assert_int_equal(write_as(&p, "perfetto", out, NULL), 0);
		assert_non_null(strstr(said, "2 ends of calls"));
		assert_int_equal(write_as(&p, "speedscope", out, NULL), 0);
		assert_non_null(strstr(said, "2 ends of calls"));
		seam_profile_fini(&p);
	}
	fclose(out);
}

/* The same as fuzz_exports, which finds its bytes itself. */
UNIT_TEST(any_profile_becomes_files_that_parse_and_add_up)
{
	uint32_t random_state = 1;

	for (unsigned int i = 0; i < 500; i++) {
		uint8_t bytes[2000];
		size_t size = next_random(&random_state, sizeof(bytes));

		for (size_t k = 0; k < size; k++)
			bytes[k] = (uint8_t)next_random(&random_state, 256);
		oracle_run(bytes, size);
	}
}

UNIT_MAIN(NULL, NULL, NULL, NULL)
