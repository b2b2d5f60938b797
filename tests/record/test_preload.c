/* SPDX-License-Identifier: MIT */
/* test_preload.c - the environment of the command, and the recorder's after */
#include "record/preload/preload.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#define AGENT "/a/libseam-agent.so"
#define FDR "/a/libseam-fdr.so"

static struct seam_preload with_agent(void)
{
	return (struct seam_preload) { .is_used = true, .library = AGENT };
}

static void put(const char *name, const char *value)
{
	if (value)
		setenv(name, value, 1);
	else
		unsetenv(name);
}

static void expect(const char *name, const char *value)
{
	if (value)
		assert_string_equal(getenv(name), value);
	else
		assert_null(getenv(name));
}

/* @before: what the user preloads. */
static void expect_preload(struct seam_preload p, const char *before,
			   const char *during)
{
	put("LD_PRELOAD", before);
	seam_preload_set(&p);
	expect("LD_PRELOAD", during);
	seam_preload_restore(&p);
	expect("LD_PRELOAD", before);
}

static void the_agent_is_before_what_the_user_preloads(void **state)
{
	struct seam_preload p = with_agent();

	(void)state;
	expect_preload(p, NULL, AGENT);
	expect_preload(p, "", AGENT);
	expect_preload(p, "/x.so:/y.so", AGENT ":/x.so:/y.so");
	expect_preload(p, "/x.so /y.so", AGENT ":/x.so /y.so");
}

/* --trace: with an agent, and without. */
static void libseam_fdr_is_preloaded_as_well(void **state)
{
	struct seam_preload p = with_agent();

	(void)state;
	p.has_fdr = true;
	snprintf(p.fdr, sizeof(p.fdr), "%s", FDR);
	expect_preload(p, NULL, AGENT ":" FDR);
	expect_preload(p, "/x.so", AGENT ":" FDR ":/x.so");
	p.is_used = false;
	expect_preload(p, NULL, FDR);
	expect_preload(p, "/x.so", FDR ":/x.so");
	p.has_fdr = false;
	expect_preload(p, "/x.so", "/x.so");
}

static void expect_asan_options(const char *before, const char *during)
{
	struct seam_preload p = with_agent();

	put("ASAN_OPTIONS", before);
	seam_preload_set(&p);
	expect("ASAN_OPTIONS", during);
	seam_preload_restore(&p);
	expect("ASAN_OPTIONS", before);
}

static void options_of_asan_are_added_to(void **state)
{
	(void)state;
	expect_asan_options(NULL, "verify_asan_link_order=0");
	expect_asan_options("", "verify_asan_link_order=0");
	expect_asan_options("detect_leaks=0",
			    "detect_leaks=0:verify_asan_link_order=0");
}

static void without_an_agent_the_environment_stays(void **state)
{
	struct seam_preload p = with_agent();

	(void)state;
	p.is_used = false;
	put("ASAN_OPTIONS", NULL);
	expect_preload(p, "/x.so", "/x.so");
	expect("ASAN_OPTIONS", NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_agent_is_before_what_the_user_preloads),
		cmocka_unit_test(libseam_fdr_is_preloaded_as_well),
		cmocka_unit_test(options_of_asan_are_added_to),
		cmocka_unit_test(without_an_agent_the_environment_stays),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
