/* SPDX-License-Identifier: MIT */
/* test_tracepoints.c - formats and fields, whole, cut and damaged */
#include "wire/perf/tracepoints.h"

#include "wire/perf/perf_data.h"

#include "../perf_bytes.h"
#include "unit.h"

static const char format[] =
	"name: opened\n"
	"ID: 77\n"
	"format:\n"
	"\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n"
	"\tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n"
	"\n"
	"\tfield:long ret;\toffset:8;\tsize:8;\tsigned:1;\n"
	"\tfield:unsigned int args[2];\toffset:16;\tsize:8;\tsigned:0;\n"
	"\tfield:__data_loc char[] path;\toffset:24;\tsize:4;\tsigned:0;\n"
	"\n"
	"print fmt: \"%ld\", REC->ret\n";

static struct bytes make_blob(enum seam_endian endian)
{
	struct bytes b = { .endian = endian };

	put(&b, "\x17\x08\x44tracing", 10);
	put(&b, "0.6", 4);
	put_n(&b, endian == SEAM_BIG, 1);
	put_n(&b, 8, 1);
	put_u32(&b, 4096);
	put(&b, "header_page", 12);
	put_u64(&b, 5);
	put(&b, "pages", 5);
	put(&b, "header_event", 13);
	put_u64(&b, 0);
	put_u32(&b, 0);			/* ftrace's own */
	put_u32(&b, 1);			/* systems */
	put(&b, "files", 6);
	put_u32(&b, 1);
	put_u64(&b, sizeof(format) - 1);
	put(&b, format, sizeof(format) - 1);
	put_u32(&b, 0);			/* kallsyms, printk, cmdlines */
	put_u32(&b, 0);
	put_u64(&b, 0);
	return b;
}

static struct bytes make_raw(enum seam_endian endian)
{
	struct bytes b = { .endian = endian };

	put_u64(&b, 0);
	put_u64(&b, (uint64_t)-2);
	put_u32(&b, 7);
	put_u32(&b, 8);
	put_u32(&b, 10u << 16 | 28);	/* ten bytes at 28 */
	put(&b, "/etc/a\"b\x1b", 10);
	put_u16(&b, 0);
	return b;
}

/* The fields as JSON, "none" when the format is not known. */
static void fields_of(const struct seam_tracepoints *t, struct seam_bytes raw,
		      char *text, size_t cap)
{
	char *out = NULL;
	size_t size;
	FILE *f = open_memstream(&out, &size);
	struct seam_line line = {
		.out = f, .form = SEAM_LINE_JSON, .j = seam_json_make(f, false),
	};
	bool known;

	seam_line_open(&line, NULL, '{');
	known = seam_tracepoints_fields(t, 77, raw, &line);
	seam_line_close(&line, '}');
	fclose(f);
	snprintf(text, cap, "%s", known ? out : "none");
	free(out);
}

UNIT_TEST(fields_are_read_in_both_byte_orders)
{
	for (int e = SEAM_LITTLE; e <= SEAM_BIG; e++) {
		struct bytes blob = make_blob((enum seam_endian)e);
		struct bytes raw = make_raw((enum seam_endian)e);
		struct seam_tracepoints *t = seam_tracepoints_new(
			(struct seam_bytes) { blob.data, blob.size });
		char text[500];

		assert_non_null(t);
		assert_string_equal(seam_tracepoints_name(t, 77, text,
							  sizeof(text)),
				    "files:opened");
		assert_null(seam_tracepoints_name(t, 78, text, sizeof(text)));
		fields_of(t, (struct seam_bytes) { raw.data, raw.size }, text,
			  sizeof(text));
		assert_string_equal(text, "{\"ret\":-2,\"args\":[7,8],"
			"\"path\":\"/etc/a\\\"b\\u001b\"}\n");
		seam_tracepoints_free(t);
		free(blob.data);
		free(raw.data);
	}
}

UNIT_TEST(cut_raw_bytes_leave_fields_out)
{
	struct bytes blob = make_blob(SEAM_LITTLE);
	struct bytes raw = make_raw(SEAM_LITTLE);
	struct seam_tracepoints *t = seam_tracepoints_new(
		(struct seam_bytes) { blob.data, blob.size });

	for (size_t size = 0; size < raw.size; size++) {
		struct seam_bytes cut = exact(raw.data, size);
		char text[500];

		fields_of(t, cut, text, sizeof(text));
		assert_int_equal(strstr(text, "ret") != NULL, size >= 16);
		assert_int_equal(strstr(text, "args") != NULL, size >= 24);
		assert_int_equal(strstr(text, "path") != NULL, size >= 38);
		free_exact(cut);
	}
	seam_tracepoints_free(t);
	free(blob.data);
	free(raw.data);
}

UNIT_TEST(a_damaged_description_does_no_harm)
{
	struct bytes blob = make_blob(SEAM_LITTLE);
	struct bytes raw = make_raw(SEAM_LITTLE);
	size_t n_known = 0;

	for (size_t pos = 0; pos < 2 * blob.size; pos++) {
		/* First cut at each byte, then each byte flipped. */
		bool flip = pos >= blob.size;
		struct seam_bytes copy = exact(blob.data, flip ? blob.size :
					       pos);
		struct seam_tracepoints *t;
		char text[500];

		if (flip)
			((uint8_t *)(uintptr_t)copy.data)[pos - blob.size] ^=
				0x41;
		t = seam_tracepoints_new(copy);
		fields_of(t, (struct seam_bytes) { raw.data, raw.size }, text,
			  sizeof(text));
		n_known += strcmp(text, "none") != 0;
		seam_tracepoints_free(t);
		free_exact(copy);
	}
	assert_true(n_known > 20);
	free(blob.data);
	free(raw.data);
}

/* A stream with tracepoint @id, and formats but no name of it. */
static struct bytes make_stream(enum seam_endian endian, uint64_t id)
{
	struct bytes b = { .endian = endian }, blob = make_blob(endian);
	size_t at;

	put_u64(&b, UINT64_C(0x32454c4946524550));	/* PERFILE2 */
	put_u64(&b, 16);
	at = begin_record(&b, SEAM_PERF_HEADER_ATTR, 0);
	put_attr(&b, id, PERF_SAMPLE_IDENTIFIER);
	set_n(&b, at + 8, PERF_TYPE_TRACEPOINT, 4);
	put_u64(&b, TEST_ID_1);
	end_record(&b, at);
	while (blob.size % 8)
		put_n(&blob, 0, 1);
	at = begin_record(&b, SEAM_PERF_HEADER_TRACING_DATA, 0);
	put_u32(&b, (uint32_t)blob.size);
	end_record(&b, at);
	set_n(&b, at + 6, 12, 2);
	b.size = at + 12;
	put(&b, blob.data, blob.size);
	free(blob.data);
	return b;
}

UNIT_TEST(names_an_event_that_nothing_else_names)
{
	for (int i = 0; i < 4; i++) {
		struct bytes b = make_stream((enum seam_endian)(i & 1),
					     i < 2 ? 77 : 78);
		struct seam_perf_data data;

		assert_int_equal(seam_perf_data_open(&data,
			(struct seam_bytes) { b.data, b.size }, NULL), 0);
		assert_int_equal(data.events.n, 1);
		assert_string_equal(data.events.items[0].name,
				    i < 2 ? "files:opened" : "tracepoint:78");
		seam_perf_data_close(&data);
		free(b.data);
	}
}

UNIT_MAIN(NULL, NULL, NULL, NULL)
