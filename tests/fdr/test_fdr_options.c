/* SPDX-License-Identifier: MIT */
/* test_fdr_options.c - what SEAM_TRACE may say */

#include "traced/fdr/options.h"
#include "unit.h"

static struct seam_fdr_options options;
static struct seam_err err;

static int parse(const char *text)
{
	seam_fdr_options_fini(&options);
	err.n_causes = 0;
	return seam_fdr_options_parse(&options, text, &err);
}

static int teardown(void **state)
{
	seam_fdr_options_fini(&options);
	return 0;
}

UNIT_TEST(nothing_is_the_default)
{
	for (int i = 0; i < 2; i++) {
		assert_int_equal(parse(i ? ";;" : ""), 0);
		assert_true(options.is_started);
		assert_false(options.is_flight);
		assert_int_equal(options.functions.list.n, 0);
		assert_int_equal(options.n_triggers, 0);
		assert_int_equal(options.min_ns, 0);
		assert_null(options.out);
	}
}

UNIT_TEST(each_option_has_its_value)
{
	assert_int_equal(parse("functions=a*,b;except=c;min=5us;depth=7;args=6;"
			       "flight=1;after=10ms;out=/tmp/x;start=0"), 0);
	assert_int_equal(options.functions.list.n, 2);
	assert_string_equal(options.functions.list.items[1].text, "b");
	assert_string_equal(options.except.list.items[0].text, "c");
	assert_int_equal(options.min_ns, 5000);
	assert_int_equal(options.depth, 7);
	assert_int_equal(options.n_arguments, 6);
	assert_true(options.is_flight);
	assert_string_equal(options.out, "/tmp/x");
	assert_false(options.is_started);
}

UNIT_TEST(separators_may_be_part_of_a_glob)
{
	assert_int_equal(parse("functions=f<a\\, b>,g\\;h"), 0);
	assert_int_equal(options.functions.list.n, 2);
	/* fnmatch() removes the backslashes */
	assert_string_equal(options.functions.list.items[0].text, "f<a\\, b>");
	assert_string_equal(options.functions.list.items[1].text, "g\\;h");
}

UNIT_TEST(empty_parts_mean_nothing)
{
	assert_int_equal(parse("functions=,a,,b,;trigger=,f>1ms,;out="), 0);
	assert_int_equal(options.functions.list.n, 2);
	assert_string_equal(options.functions.list.items[0].text, "a");
	assert_int_equal(options.n_triggers, 1);
	assert_null(options.out);
}

UNIT_TEST(a_text_has_a_greatest_length)
{
	static char text[SEAM_FDR_MAX_OPTIONS_BYTES + 1];

	memset(text, ';', sizeof(text) - 1);
	assert_int_equal(parse(text), -EINVAL);
	assert_true(err.n_causes);
	text[sizeof(text) - 2] = 0;
	assert_int_equal(parse(text), 0);
}

UNIT_TEST(triggers_are_of_two_kinds)
{
	assert_int_equal(parse("trigger=f>10ms,calls:abort_*,calls::f>1ns,"
			       "v<w<int>>>2s"), 0);
	assert_int_equal(options.n_triggers, 4);
	assert_int_equal(options.triggers[0].kind, SEAM_TRIGGER_SLOW);
	assert_string_equal(options.triggers[0].function, "f");
	assert_int_equal(options.triggers[0].limit_ns, 10 * 1000 * 1000);
	assert_int_equal(options.triggers[1].kind, SEAM_TRIGGER_CALLS);
	assert_string_equal(options.triggers[1].function, "abort_*");
	assert_string_equal(options.triggers[2].function, "calls::f");
	assert_string_equal(options.triggers[3].function, "v<w<int>>");
	assert_int_equal(options.triggers[3].limit_ns, 2000000000);
	/* nothing else keeps what led up to one */
	assert_true(options.is_flight);
}

UNIT_TEST(what_cannot_be_is_refused_with_the_cause)
{
	static const char *const bad[] = {
		"x=1", "functions", "min=", "min=5 us", "min=-1", "args=7",
		"min=5", "after=10", "trigger=f>10",
		"depth=257", "depth=7x", "depth=4294967296", "x=1;depth=3",
		"flight=2", "start=yes",
		"trigger=f", "trigger=>1ms", "trigger=f>", "trigger=f>x",
		"trigger=signal:SEGV", "after=1h",
		"min=99999999999999999999", "min=18446744073709551615s",
		"trigger=a>1s,a>1s,a>1s,a>1s,a>1s,a>1s,a>1s,a>1s,a>1s,a>1s,"
		"a>1s,a>1s,a>1s,a>1s,a>1s,a>1s,a>1s",
	};

	for (size_t i = 0; i < SEAM_ARRAY_SIZE(bad); i++) {
		if (parse(bad[i]) != -EINVAL)
			fail_msg("accepted: %s", bad[i]);
		assert_true(err.n_causes);
		assert_true(options.is_started);
		assert_null(options.text);
	}
}

UNIT_TEST(any_cut_text_is_parsed_or_refused)
{
	const char *text = "functions=a\\,b*,c;except=\\;;min=5us;depth=7;"
			   "args=6;trigger=f>1ms,calls:g;after=1s;out=/x";
	char part[256];

	for (size_t n = 0; n <= strlen(text); n++) {
		memcpy(part, text, n);
		part[n] = 0;
		assert_true(parse(part) == 0 || err.n_causes);
	}
}

int main(void)
{
	return unit_run(NULL, teardown, NULL, NULL);
}
