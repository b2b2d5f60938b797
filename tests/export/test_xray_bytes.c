/* SPDX-License-Identifier: MIT */
/*
 * test_xray_bytes.c - what the bytes of an event become, in any locale
 *
 * In a locale of one byte a character, such as ISO-8859-1, the C library
 * calls bytes above 0x7f printable.  Such locales are seldom installed, so
 * the library's table stands in for one here that calls every byte so.
 */
#include <ctype.h>

#include "../trace_made.h"
#include "../wire/xray_made.h"
#include "export/exporter.h"
#include "model/xray/slow_calls.h"
#include "report/calls_table.h"
#include "unit.h"

const unsigned short **__ctype_b_loc(void)
{
	static unsigned short all[384];
	static const unsigned short *table;

	if (!table) {
		memset(all, 0xff, sizeof(all));
		table = all + 128;
	}
	return &table;
}

/* A call with an event of the bytes @data. */
static void open_log(struct made *m, struct seam_trace *trace, const char *data)
{
	made_header(m, 5, SEAM_XRAY_FDR, SEAM_LITTLE, 1000000000, 0);
	made_block(m, 1, 2, 10, 0, 1000);
	made_call(m, SEAM_XRAY_ENTRY, 1, 100);
	made_record(m, &(struct seam_xray_record) {
		.state = SEAM_XRAY_AT_CUSTOM,
		.data = { (const uint8_t *)data, strlen(data) },
		.marker = { .tsc_delta = 4 } });
	made_call(m, SEAM_XRAY_EXIT, 1, 100);
	made_end(m, 0, 0);
	assert_int_equal(trace_from_bytes(trace, (struct seam_bytes) {
		m->data, m->size }, NULL), 0);
}

static void put_stacks(FILE *out, const struct seam_trace *trace,
		       const struct seam_xray_map *names)
{
	const struct seam_account_options options = { .n_slowest = 1 };
	struct seam_slow_calls slow = { 0 };
	struct seam_account account;
	struct seam_calls_report report = {
		.account = &account, .names = names,
	};
	struct seam_view view = { .out = out };

	assert_int_equal(seam_account_build(&account, trace, &options, NULL),
			 0);
	assert_int_equal(seam_slow_calls_find(&slow, trace, &account, 100,
					      NULL), 0);
	seam_calls_stacks(&report, &slow, trace, &view);
	seam_slow_calls_fini(&slow);
	seam_account_fini(&account);
}

/* What the three views that show bytes make of @data; free it. */
static char *shown(const char *data)
{
	const struct seam_xray_map names = { 0 };
	struct seam_xray_problems problems = { 0 };
	struct seam_trace trace;
	struct seam_export export = {
		.trace = &trace, .names = &names, .problems = &problems,
	};
	struct made m = { 0 };
	char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	open_log(&m, &trace, data);
	export.out = out;
	assert_int_equal(seam_write_trace_json(&export, NULL), 0);
	assert_int_equal(seam_write_xray_yaml(&export, NULL), 0);
	put_stacks(out, &trace, &names);
	fclose(out);
	seam_trace_close(&trace);
	made_free(&m);
	return text;
}

UNIT_TEST(no_byte_that_is_not_ascii_is_shown_raw)
{
	char *text = shown("M\xfcller\x7f\x9b");

	for (const char *p = text; *p; p++)
		assert_true(*p == '\n' || (*p >= 0x20 && *p < 0x7f));
	assert_non_null(strstr(text, "{\"hex\":\"4dfc6c6c65727f9b\"}"));
	assert_non_null(strstr(text, "data: \"M\\xfcller\\x7f\\x9b\""));
	assert_non_null(strstr(text, " 4d fc 6c 6c 65 72 7f 9b"));
	free(text);
}

UNIT_TEST(text_is_shown_as_text)
{
	char *text = shown("a \"b\" ~");

	assert_non_null(strstr(text, "{\"data\":\"a \\\"b\\\" ~\"}"));
	assert_non_null(strstr(text, "data: \"a \\\"b\\\" ~\""));
	assert_non_null(strstr(text, "custom event: \"a \\\"b\\\" ~\""));
	free(text);
}

UNIT_MAIN(NULL, NULL, NULL, NULL)
