/* SPDX-License-Identifier: MIT */
/*
 * test_xray_memory.c - each allocation on the way of an XRay log fails once
 *
 * Linked with --wrap, so that only calls in Seam count.  Every step says
 * -ENOMEM or does without; nothing leaks: AddressSanitizer looks.
 */
#include <stdatomic.h>

#include "../no_memory.h"
#include "../trace_made.h"
#include "../wire/xray_made.h"
#include "export/exporter.h"
#include "model/profile/timeline.h"
#include "model/xray/load_xray.h"
#include "model/xray/slow_calls.h"
#include "report/calls_table.h"
#include "../unit.h"

static void make_mark(struct made *m, const char *text)
{
	made_record(m, &(struct seam_xray_record) {
		.state = SEAM_XRAY_AT_CUSTOM, .marker.tsc_delta = 10,
		.data = { (const uint8_t *)text, strlen(text) } });
}

/* Two sections, the second a fork's; two threads; a missing entry. */
static void make_log(struct made *m)
{
	for (unsigned int i = 0; i < 2; i++) {
		made_header(m, 5, SEAM_XRAY_FDR, SEAM_LITTLE, 1000000000, 0);
		made_block(m, 1, 2, 10, 0, 1000);
		for (uint32_t f = 1; f < 20; f++)
			made_call(m, SEAM_XRAY_ENTRY, f, 100 * f);
		make_mark(m, "begin one of two");
		make_mark(m, "begin two");
		make_mark(m, "end one");
		make_mark(m, "end two");
		made_call(m, SEAM_XRAY_EXIT, i ? 3 : 4, 10);
		made_end(m, 0, 0);
		made_block(m, 1, 3, 10 + i, 0, 1000);
		made_call(m, SEAM_XRAY_ENTRY, 1, 10);
		made_call(m, SEAM_XRAY_EXIT, 1, 10);
		made_call(m, SEAM_XRAY_EXIT, 5, 10);
		made_end(m, 0, 0);
	}
}

/* How many of the steps failed; each failure must be -ENOMEM. */
static int count_failed(int r)
{
	assert_true(r == 0 || r == -ENOMEM);
	return r != 0;
}

static int show(const struct seam_trace *trace, FILE *out)
{
	const struct seam_account_options options = {
		.edges = true, .n_slowest = 3,
	};
	const struct seam_xray_map names = { 0 };
	struct seam_xray_problems problems = { 0 };
	const struct seam_export export = {
		.out = out, .trace = trace, .names = &names,
		.problems = &problems,
	};
	struct seam_view view = { .out = out };
	struct seam_slow_calls slow = { 0 };
	struct seam_account account;
	struct seam_marked_sums marked = { .account.rows.n = 0 };
	struct seam_calls_report report = {
		.account = &account, .names = &names, .marked = &marked,
	};
	int failed = count_failed(seam_account_build(&account, trace, &options,
						     NULL));

	if (!failed) {
		failed += count_failed(seam_slow_calls_find(&slow, trace,
							    &account, 100,
							    NULL));
		failed += count_failed(seam_marked_sums_build(&marked, trace,
							      NULL));
		failed += count_failed(seam_calls_table(&report, &view));
		failed += count_failed(seam_calls_json(&report, out));
		seam_calls_stacks(&report, &slow, trace, &view);
	}
	seam_slow_calls_fini(&slow);
	seam_marked_sums_fini(&marked);
	seam_account_fini(&account);
	failed += count_failed(seam_write_trace_json(&export, NULL));
	failed += count_failed(seam_write_xray_yaml(&export, NULL));
	failed += count_failed(seam_write_xray_log(&export, NULL));
	return failed;
}

/* Every item of every thread. */
static int iterate(const struct seam_profile *profile)
{
	struct seam_timelines all;
	int r = seam_timelines_init(&all, profile), failed = count_failed(r);

	for (uint32_t i = 0; !r && i < profile->threads.n; i++) {
		struct seam_timeline timeline;
		struct seam_item item;

		seam_timeline_open(&timeline, &all, NULL, i);
		while ((r = seam_timeline_next(&timeline, &item)) > 0)
			;
		failed += count_failed(r);
		seam_timeline_close(&timeline);
	}
	seam_timelines_fini(&all);
	return failed;
}

static int load(struct seam_trace *trace)
{
	struct seam_profile profile;
	int failed = count_failed(seam_trace_select(trace, "10%,90%", NULL));

	if (count_failed(seam_profile_init(&profile)))
		return failed + 1;
	failed += count_failed(seam_load_xray(&profile, trace, NULL, NULL,
					      NULL));
	failed += iterate(&profile);
	seam_profile_fini(&profile);
	return failed;
}

static int run_all(struct seam_bytes bytes, FILE *out)
{
	struct seam_trace trace;
	int failed = count_failed(trace_from_bytes(&trace, bytes, NULL));

	if (!failed) {
		failed += show(&trace, out);
		failed += load(&trace);
		seam_trace_close(&trace);
	}
	return failed;
}

UNIT_TEST(each_failed_allocation_is_reported)
{
	FILE *out = fopen("/dev/null", "w");
	struct made m = { 0 };
	int n = 1, n_failed = 0;

	assert_non_null(out);
	make_log(&m);
	for (;; n++) {
		until_failure = n;
		n_failed += run_all((struct seam_bytes) { m.data, m.size },
				    out) > 0;
		if (until_failure > 0)
			break;
		assert_true(n < 10000);
	}
	until_failure = 0;
	assert_true(n > 50);
	assert_true(n_failed > n / 2);
	fclose(out);
	made_free(&m);
}

UNIT_MAIN(NULL, NULL, NULL, NULL)
