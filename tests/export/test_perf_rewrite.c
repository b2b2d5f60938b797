/* SPDX-License-Identifier: MIT */
/* test_perf_rewrite.c - promises of export/inject/perf_rewrite.h on made files */

#include "export/inject/perf_rewrite.h"
#include "perf_bytes.h"
#include "unit.h"
#include "wire/perf/perf_stream.h"

/* The file of a few records, and what is written of it. */
struct made {
	struct bytes file;
	struct seam_perf_data data;
	uint8_t *out;
	size_t out_size;
};

static const uint64_t chain[] = { PERF_CONTEXT_USER, 0x1000 };

static struct bytes make_records(enum seam_endian endian)
{
	struct bytes data = { .endian = endian };

	put_mmap2(&data, 7, 0x400000, 0x1000, 0, "/bin/x", 0);
	put_comm(&data, 7, 7, "x", true, 100);
	put_mmap2(&data, 7, 0x5000, 0x1000, 0, "//anon", 150);
	put_sample(&data, TEST_ID_1, 7, 7, 200, chain, 2);
	put_sample(&data, TEST_ID_2, 7, 7, 180, chain, 2);
	put_sample(&data, TEST_ID_1, 7, 7, 300, chain, 2);
	end_record(&data, begin_record(&data, 68, 0));
	put_sample(&data, TEST_ID_1, 7, 7, 400, chain, 2);
	return data;
}

static struct made make(enum seam_endian endian)
{
	struct bytes records = make_records(endian);
	struct made made = { .file = make_file(&records) };

	free(records.data);
	return made;
}

static int rewrite(struct made *made, size_t size,
		   struct seam_perf_rewrite *what)
{
	FILE *out = tmpfile();
	int r;

	free(made->out);
	made->out = NULL;
	made->out_size = 0;
	r = seam_perf_data_open(&made->data, (struct seam_bytes) {
				made->file.data, size }, NULL);
	if (r == 0) {
		what->data = &made->data;
		r = seam_perf_rewrite(what, out, NULL);
		fseek(out, 0, SEEK_END);
		made->out_size = (size_t)ftell(out);
		made->out = malloc(made->out_size + 1);
		rewind(out);
		assert_int_equal(fread(made->out, 1, made->out_size, out),
				 made->out_size);
	}
	seam_perf_data_close(&made->data);
	fclose(out);
	return r;
}

static void drop(struct made *made)
{
	free(made->file.data);
	free(made->out);
}

/* "MMAP2@150 ..." of what was written: types in order, mappings with name. */
static void describe(const struct made *made, char *text, size_t cap)
{
	struct seam_perf_stream stream;
	struct seam_perf_record record;
	struct seam_perf_data data;
	size_t n = 0;

	assert_int_equal(seam_perf_data_open(&data, (struct seam_bytes) {
			made->out, made->out_size }, NULL), 0);
	assert_false(data.is_cut);
	assert_string_equal(seam_perf_data_string(&data, SEAM_PERF_FEATURE_HOSTNAME),
			    "testhost");
	seam_perf_stream_init(&stream, data.bytes, data.endian,
			      data.data_begin, data.data_end, false);
	text[0] = '\0';
	while (seam_perf_stream_next(&stream, &record, NULL) > 0) {
		struct seam_bytes payload = record.payload;
		struct seam_perf_sample_id stamp = { 0 };
		struct seam_perf_mapping m = { .filename = "" };
		struct seam_perf_sample sample = { 0 };

		if (record.type == PERF_RECORD_SAMPLE) {
			seam_perf_sample_read(&data.events.items[0].attr,
					      data.endian, payload, &sample);
			stamp.time = sample.time;
		} else if (seam_perf_record_has_sample_id(record.type)) {
			seam_perf_sample_id_read(&data.events.items[0].attr,
						 data.endian, &payload, &stamp);
			assert_true(record.type != PERF_RECORD_MMAP2 ||
				    stamp.id == TEST_ID_1);
		}
		if (record.type == PERF_RECORD_MMAP2)
			assert_int_equal(seam_perf_mapping_read(record.type,
				record.misc, payload, data.endian, &m), 0);
		n += (size_t)snprintf(text + n, cap - n, "%s%s@%d ",
				      record.type == PERF_RECORD_MMAP2 ? "" :
				      seam_perf_record_name(record.type),
				      m.filename, (int)stamp.time);
	}
	seam_perf_stream_fini(&stream);
	seam_perf_data_close(&data);
}

UNIT_TEST(nothing_to_do_gives_the_same_bytes)
{
	for (int endian = SEAM_LITTLE; endian <= SEAM_BIG; endian++) {
		struct seam_perf_rewrite what = { 0 };
		struct made made = make((enum seam_endian)endian);

		assert_int_equal(rewrite(&made, made.file.size, &what), 0);
		assert_int_equal(made.out_size, made.file.size);
		assert_memory_equal(made.out, made.file.data, made.out_size);
		drop(&made);
	}
}

static bool is_anon(void *context, const struct seam_perf_mapping *mapping,
		    uint64_t time_ns)
{
	assert_int_equal(time_ns, strcmp(mapping->filename, "//anon") ? 0 :
			 150);
	return strcmp(mapping->filename, "//anon") == 0;
}

UNIT_TEST(mappings_come_before_what_is_not_older)
{
	static const struct seam_perf_added added[] = {
		{ .time_ns = 50, .pid = 7, .addr = 1, .len = 1,
		  .filename = "a" },
		{ .time_ns = 200, .pid = 7, .addr = 1, .len = 1,
		  .filename = "b" },
		{ .time_ns = 200, .pid = 7, .addr = 1, .len = 1,
		  .filename = "c" },
		{ .time_ns = 250, .pid = 7, .addr = 1, .len = 1,
		  .filename = "d" },
		{ .time_ns = 399, .pid = 7, .addr = 1, .len = 1,
		  .filename = "e" },
		{ .time_ns = 401, .pid = 7, .addr = 1, .len = 1,
		  .filename = "useless" },
	};
	char text[1024];

	for (int endian = SEAM_LITTLE; endian <= SEAM_BIG; endian++) {
		struct seam_perf_rewrite what = {
			.added = added, .n_added = 6, .leaves_out = is_anon,
		};
		struct made made = make((enum seam_endian)endian);

		assert_int_equal(rewrite(&made, made.file.size, &what), 0);
		assert_int_equal(what.n_written, 5);
		assert_int_equal(what.n_left_out, 1);
		describe(&made, text, sizeof(text));
		assert_string_equal(text, "/bin/x@0 a@50 COMM@100 b@200 c@200 "
			"SAMPLE@200 SAMPLE@180 d@250 SAMPLE@300 "
			"FINISHED_ROUND@0 e@399 SAMPLE@400 ");
		drop(&made);
	}
}

UNIT_TEST(mappings_are_what_was_asked_for)
{
	static const struct seam_perf_added added = {
		.time_ns = 1, .pid = 9, .addr = 0x7000, .len = 0x123,
		.pgoff = 0x80, .filename = "/tmp/jitted-9.so", .maj = 8,
		.min = 2, .ino = 77,
	};
	struct seam_perf_rewrite what = { .added = &added, .n_added = 1 };
	struct made made = make(SEAM_LITTLE);
	struct seam_perf_mmap2 m;
	size_t at = 104 + 16 + 2 * 144;

	assert_int_equal(rewrite(&made, made.file.size, &what), 0);
	at += made.out[at + 6];		/* behind the one of time 0 */
	assert_int_equal(seam_perf_record_read(
		seam_perf_record_table(PERF_RECORD_MMAP2, 0),
		(struct seam_bytes) { made.out + at + 8, 96 }, SEAM_LITTLE,
		&m), 0);
	assert_int_equal(m.pid, 9);
	assert_int_equal(m.tid, 9);
	assert_int_equal(m.addr, 0x7000);
	assert_int_equal(m.len, 0x123);
	assert_int_equal(m.pgoff, 0x80);
	assert_int_equal(m.ino, 77);
	assert_int_equal(m.prot, 5);
	assert_string_equal(m.filename, "/tmp/jitted-9.so");
	drop(&made);
}

UNIT_TEST(a_cut_file_is_copied_as_far_as_it_goes)
{
	struct made made = make(SEAM_LITTLE);
	size_t whole = made.file.size;

	for (size_t size = 0; size < whole; size++) {
		struct seam_perf_rewrite what = { 0 };
		int r = rewrite(&made, size, &what);

		assert_true(r == 0 || r == -ENODATA || r == -EBADMSG ||
			    r == -ENOTSUP);
		/* But for the size of the data, which was never true. */
		if (size < 104 + 16 + 2 * 144)
			continue;
		assert_int_equal(made.out_size, size);
		memset(made.out + 48, 0, 8);
		memset(made.file.data + 48, 0, 8);
		assert_memory_equal(made.out, made.file.data, size);
		drop(&made);
		made = make(SEAM_LITTLE);
	}
	drop(&made);
}

/* 16 bytes of an area, and in place of EVENT_DESC the index of them. */
static struct made make_traced(enum seam_endian endian)
{
	enum { FEATURES_AT = 72, DATA = 104 + 16 + 2 * 144, AUXTRACE = 18 };
	struct bytes records = { .endian = endian };
	struct made made = { 0 };
	size_t trace, table, index;

	put_sample(&records, TEST_ID_1, 7, 7, 200, chain, 2);
	trace = begin_record(&records, SEAM_PERF_AUXTRACE, 0);
	put_u64(&records, 16);
	for (int i = 0; i < 4; i++)
		put_u64(&records, 0);
	end_record(&records, trace);
	put(&records, "0123456789abcdef", 16);
	put_sample(&records, TEST_ID_1, 7, 7, 300, chain, 2);
	made.file = make_file(&records);
	table = DATA + records.size;
	index = made.file.size;
	put_u64(&made.file, 1);
	put_u64(&made.file, DATA + trace);
	put_u64(&made.file, 48);
	set_n(&made.file, FEATURES_AT,
	      1 << SEAM_PERF_FEATURE_HOSTNAME | 1 << AUXTRACE, 8);
	set_n(&made.file, table + 16, index, 8);
	set_n(&made.file, table + 24, 24, 8);
	free(records.data);
	return made;
}

UNIT_TEST(the_index_of_traces_leads_to_them_all_the_same)
{
	static const struct seam_perf_added added = {
		.time_ns = 1, .pid = 7, .addr = 1, .len = 1, .filename = "a",
	};

	for (int endian = SEAM_LITTLE; endian <= SEAM_BIG; endian++) {
		struct seam_perf_rewrite what = {
			.added = &added, .n_added = 1,
		};
		struct made made = make_traced((enum seam_endian)endian);
		struct seam_cursor index, record;

		assert_int_equal(rewrite(&made, made.file.size, &what), 0);
		assert_int_equal(what.n_written, 1);
		index = seam_cursor_make(made.out + made.out_size - 16, 16,
					 (enum seam_endian)endian);
		record = seam_cursor_make(made.out, made.out_size,
					  (enum seam_endian)endian);
		seam_cursor_skip(&record, (size_t)seam_cursor_u64(&index));
		assert_int_equal(seam_cursor_u32(&record), SEAM_PERF_AUXTRACE);
		seam_cursor_skip(&record, 44);
		assert_memory_equal(seam_cursor_bytes(&record, 16),
				    "0123456789abcdef", 16);
		drop(&made);
	}
}

static void put_u64_at(struct made *made, size_t at, uint64_t v)
{
	memcpy(made->file.data + at, &v, sizeof(v));
}

/* Records that move would take the attrs or the ids with them. */
UNIT_TEST(events_described_in_the_data_are_refused)
{
	enum { ATTRS_SIZE_AT = 32, ATTRS = 104 + 16, IDS_AT = ATTRS + 128 };
	static const struct { size_t at; uint64_t value; } damage[] = {
		{ ATTRS_SIZE_AT, 3 * 144 },	/* one attr too many */
		{ IDS_AT + 8, 512 },		/* ids run into the data */
		{ IDS_AT, ATTRS + 2 * 144 },	/* ids are in the data */
	};

	for (size_t i = 0; i < sizeof(damage) / sizeof(*damage); i++) {
		struct seam_perf_rewrite what = { 0 };
		struct made made = make(SEAM_LITTLE);

		put_u64_at(&made, damage[i].at, damage[i].value);
		if (i == 0)	/* with a type and a size that can be read */
			memset(made.file.data + ATTRS + 2 * 144, 0, 8);
		assert_int_equal(rewrite(&made, made.file.size, &what),
				 -ENOTSUP);
		drop(&made);
	}
}

UNIT_TEST(a_flipped_byte_is_survived)
{
	static const struct seam_perf_added added = {
		.time_ns = 160, .pid = 7, .addr = 1, .len = 1,
		.filename = "f",
	};
	struct made made = make(SEAM_LITTLE);

	for (size_t i = 0; i < made.file.size; i++) {
		struct seam_perf_rewrite what = {
			.added = &added, .n_added = 1,
		};

		made.file.data[i] ^= 0xff;
		rewrite(&made, made.file.size, &what);
		made.file.data[i] ^= 0xff;
	}
	drop(&made);
}

static ssize_t fail_then_fail_otherwise(void *n_failed, const char *data,
					size_t size)
{
	errno = ++*(int *)n_failed == 1 ? ENOSPC : EBADF;
	return 0;
}

UNIT_TEST(the_first_error_of_writing_is_the_reason)
{
	static const cookie_io_functions_t failing = {
		.write = fail_then_fail_otherwise,
	};
	struct made made = make(SEAM_LITTLE);
	struct seam_perf_rewrite what = { .data = &made.data };
	struct seam_err err = { 0 };
	int n_failed = 0;
	FILE *out = fopencookie(&n_failed, "w", failing);

	setvbuf(out, NULL, _IONBF, 0);
	assert_int_equal(seam_perf_data_open(&made.data, (struct seam_bytes) {
		made.file.data, made.file.size }, NULL), 0);
	assert_int_equal(seam_perf_rewrite(&what, out, &err), -ENOSPC);
	assert_non_null(strstr(err.cause[0], strerror(ENOSPC)));
	seam_perf_data_close(&made.data);
	fclose(out);
	drop(&made);
}

UNIT_MAIN(NULL, NULL, NULL, NULL)
