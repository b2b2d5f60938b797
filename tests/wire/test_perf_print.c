/* SPDX-License-Identifier: MIT */
/* test_perf_print.c - each field of a record is printed, and no other one */
#include "wire/perf/perf_print.h"

#include "perf_bytes.h"
#include "unit.h"

enum { PID = 7, TID = 8 };

static void put_namespaces(struct bytes *b)
{
	size_t at = begin_record(b, PERF_RECORD_NAMESPACES, 0);

	put_u32(b, PID);
	put_u32(b, TID);
	put_u64(b, 2);
	for (uint64_t i = 1; i <= 2; i++) {
		put_u64(b, 10 * i);
		put_u64(b, 10 * i + 1);
	}
	put_stamp(b, PID, TID, 50);
	end_record(b, at);
}

static void put_id_index(struct bytes *b)
{
	size_t at = begin_record(b, SEAM_PERF_ID_INDEX, 0);

	put_u64(b, 1);
	for (uint64_t i = 30; i <= 33; i++)
		put_u64(b, i);
	end_record(b, at);
}

/* The lines of a file with the records of @b, as JSON; free() them. */
static char *print_records(struct bytes *b, uint64_t sample_type)
{
	struct bytes made = make_file(b);
	struct seam_perf_data data;
	uint64_t n_damaged = 0;
	char *text = NULL;
	size_t size = 0;
	FILE *out = open_memstream(&text, &size);

	for (size_t at = 120; at <= 120 + 144; at += 144)
		set_n(&made, at + 24, sample_type, 8);	/* of an attr */
	assert_int_equal(seam_perf_data_open(&data, (struct seam_bytes) {
		made.data, made.size }, NULL), 0);
	assert_int_equal(seam_perf_print(out, &data, data.bytes,
		data.data_begin, data.data_end, SEAM_LINE_JSON, NULL,
		&n_damaged, NULL), 0);
	assert_int_equal(n_damaged, 0);
	fclose(out);
	seam_perf_data_close(&data);
	free(made.data);
	free(b->data);
	return text;
}

static char *print(enum seam_endian endian)
{
	const uint64_t chain[] = { (uint64_t)PERF_CONTEXT_USER, 0x5001 };
	struct bytes b = { .endian = endian };

	put_sample(&b, TEST_ID_1, PID, TID, 40, chain, SEAM_ARRAY_SIZE(chain));
	put_namespaces(&b);
	put_id_index(&b);
	return print_records(&b, TEST_SAMPLE_TYPE);
}

static const char lines[] =
	"{\"offset\":408,\"type\":\"SAMPLE\",\"misc\":2,"
	"\"event\":\"cpu-clock:u\",\"id\":4097,\"ip\":20481,\"pid\":7,\"tid\":8,"
	"\"time\":40,\"cpu\":1,\"period\":250000,"
	"\"callchain\":[18446744073709551104,20481]}\n"
	"{\"offset\":488,\"type\":\"NAMESPACES\",\"misc\":0,\"pid\":7,\"tid\":8,"
	"\"nr_namespaces\":2,\"link_info\":[{\"dev\":10,\"ino\":11},"
	"{\"dev\":20,\"ino\":21}],\"sample_id\":{\"pid\":7,\"tid\":8,"
	"\"time\":50,\"id\":4097,\"cpu\":0}}\n"
	"{\"offset\":576,\"type\":\"ID_INDEX\",\"misc\":0,\"nr\":1,"
	"\"entries\":[{\"id\":30,\"idx\":31,\"cpu\":32,\"tid\":33}]}\n";

UNIT_TEST(prints_the_fields_of_the_event_and_whole_lists)
{
	char *little = print(SEAM_LITTLE), *big = print(SEAM_BIG);

	assert_string_equal(little, lines);
	assert_string_equal(big, lines);
	free(little);
	free(big);
}

UNIT_TEST(prints_the_stream_of_a_record)
{
	struct bytes b = { .endian = SEAM_LITTLE };
	size_t at = begin_record(&b, PERF_RECORD_COMM, 0);
	char *text;

	put_u32(&b, PID);
	put_u32(&b, TID);
	put_name(&b, "worker");
	put_u32(&b, PID);
	put_u32(&b, TID);
	put_u64(&b, 60);	/* time */
	put_u64(&b, 77);	/* stream id */
	put_u64(&b, 3);		/* CPU */
	put_u64(&b, TEST_ID_1);
	end_record(&b, at);
	text = print_records(&b, TEST_SAMPLE_TYPE | PERF_SAMPLE_STREAM_ID);
	assert_non_null(strstr(text, "\"sample_id\":{\"pid\":7,\"tid\":8,"
			       "\"time\":60,\"id\":4097,\"stream_id\":77,"
			       "\"cpu\":3}"));
	free(text);
}

UNIT_TEST(a_record_without_a_trailer_has_no_member_for_it)
{
	struct bytes b = { .endian = SEAM_LITTLE };
	size_t at = begin_record(&b, PERF_RECORD_COMM, 0);
	char *text;

	put_u32(&b, PID);
	put_u32(&b, TID);
	put_name(&b, "worker");
	end_record(&b, at);
	text = print_records(&b, 0);
	assert_non_null(strstr(text, "worker"));
	assert_null(strstr(text, "sample_id"));
	free(text);
}

UNIT_MAIN(NULL, NULL, NULL, NULL)
