/* SPDX-License-Identifier: MIT */
/* test_perf_data.c - the promises of perf_data.h and perf_stream.h */
#include "wire/perf/perf_stream.h"

#include <zstd.h>

#include "../perf_bytes.h"
#include "unit.h"

static const uint64_t chain[] = {
	(uint64_t)PERF_CONTEXT_USER, 0x401000, 0x402000,
};

/* COMM, MMAP2, four samples of two events, LOST, EXIT. */
static struct bytes some_data(enum seam_endian endian)
{
	struct bytes b = { .endian = endian };

	put_comm(&b, 7, 7, "worker", true, 100);
	put_mmap2(&b, 7, 0x400000, 0x10000, 0, "/bin/worker", 110);
	for (uint64_t i = 0; i < 4; i++)
		put_sample(&b, i % 2 ? TEST_ID_2 : TEST_ID_1, 7, 7, 200 + i,
			   chain, 3);
	put_lost(&b, TEST_ID_1, 9);
	put_task(&b, PERF_RECORD_EXIT, 7, 1, 7, 1, 300);
	return b;
}

#define N_RECORDS 8

static struct bytes make(enum seam_endian endian, bool pipe)
{
	struct bytes data = some_data(endian);
	struct bytes file = pipe ? make_pipe(&data) : make_file(&data);

	free(data.data);
	return file;
}

/* Offset, type and size of each record, up to @most; *@r is how it ended. */
static size_t walk(const struct seam_perf_data *data, uint64_t *offsets,
		   size_t most, int *r)
{
	struct seam_perf_stream stream;
	struct seam_perf_record record;
	uint64_t last = 0;
	size_t n = 0;

	seam_perf_stream_init(&stream, data->bytes, data->endian,
			      data->data_begin, data->data_end, false);
	while ((*r = seam_perf_stream_next(&stream, &record, NULL)) > 0) {
		assert_true(n == 0 || record.offset > last);
		last = record.offset;
		if (n < most)
			offsets[n] = record.offset;
		n++;
	}
	seam_perf_stream_fini(&stream);
	return n;
}

UNIT_TEST(reads_events_in_both_byte_orders_and_modes)
{
	for (int i = 0; i < 4; i++) {
		bool pipe = i & 2;
		struct bytes file = make((enum seam_endian)(i & 1), pipe);
		struct seam_perf_data data;
		uint64_t offsets[64];
		int r;
		size_t n;

		assert_int_equal(seam_perf_data_open(&data,
			(struct seam_bytes) { file.data, file.size }, NULL), 0);
		assert_int_equal(data.endian, i & 1);
		assert_int_equal(data.is_pipe, pipe);
		assert_int_equal(data.events.n, 2);
		assert_string_equal(data.events.items[0].name, "cpu-clock:u");
		assert_string_equal(data.events.items[1].name, "faults");
		assert_true(seam_perf_attr_has(&data.events.items[0].attr,
					       SEAM_PERF_ATTR_SAMPLE_ID_ALL));
		assert_int_equal(data.events.items[0].attr.sample_type,
				 TEST_SAMPLE_TYPE);
		assert_int_equal(seam_perf_data_event(&data, TEST_ID_2), 1);
		assert_int_equal(seam_perf_data_event(&data, 99), SEAM_NONE);
		n = walk(&data, offsets, 64, &r);
		assert_int_equal(r, 0);
		assert_int_equal(n, pipe ? N_RECORDS + 4 : N_RECORDS);
		if (!pipe)
			assert_string_equal(seam_perf_data_string(&data,
				SEAM_PERF_FEATURE_HOSTNAME), "testhost");
		seam_perf_data_close(&data);
		free(file.data);
	}
}

enum { FLAGS_AT = 72 };	/* in the header.  Source: perf.data-file-format.txt */

/* The string of @feature in a file whose feature bits are @flags; or "". */
static void expect_feature(uint64_t flags, enum seam_perf_feature feature,
			   const char *text)
{
	struct bytes file = make(SEAM_BIG, false);
	struct seam_perf_data data;
	const char *found;

	set_n(&file, FLAGS_AT, flags, 8);
	assert_int_equal(seam_perf_data_open(&data,
		(struct seam_bytes) { file.data, file.size }, NULL), 0);
	found = seam_perf_data_string(&data, feature);
	assert_string_equal(found ? found : "", text);
	seam_perf_data_close(&data);
	free(file.data);
}

/* Old perf wrote them as words of its own size, and always HOSTNAME. */
UNIT_TEST(feature_bits_of_the_other_byte_order_are_put_in_order)
{
	uint64_t hostname = UINT64_C(1) << SEAM_PERF_FEATURE_HOSTNAME;

	expect_feature(hostname, SEAM_PERF_FEATURE_HOSTNAME, "testhost");
	expect_feature(hostname << 32, SEAM_PERF_FEATURE_HOSTNAME, "testhost");
	/* neither order: the only feature that such a perf wrote */
	expect_feature(UINT64_C(1) << 40, SEAM_PERF_FEATURE_HOSTNAME, "");
	expect_feature(UINT64_C(1) << 40, SEAM_PERF_FEATURE_BUILD_ID,
		      "testhost");
}

/* Where each record ends, so that a cut can be judged. */
UNIT_TEST(a_cut_costs_only_what_is_cut)
{
	for (int pipe = 0; pipe < 2; pipe++) {
		struct bytes file = make(SEAM_LITTLE, pipe);
		struct seam_perf_data data;
		uint64_t offsets[64];
		size_t n_all;
		int r;

		assert_int_equal(seam_perf_data_open(&data,
			(struct seam_bytes) { file.data, file.size }, NULL), 0);
		n_all = walk(&data, offsets, 64, &r);
		offsets[n_all] = data.data_end;
		seam_perf_data_close(&data);

		for (size_t size = 0; size < file.size; size++) {
			struct seam_bytes cut = exact(file.data, size);
			size_t expect = 0, n = 0;

			r = seam_perf_data_open(&data, cut, NULL);
			while (expect < n_all && offsets[expect + 1] <= size)
				expect++;
			if (r == 0) {
				n = walk(&data, NULL, 0, &r);
				assert_int_equal(n, expect);
				assert_true(r == 0 || r == -ENODATA);
			} else {
				assert_true(r == -EBADMSG || r == -ENODATA);
				assert_true(expect < 5);
			}
			seam_perf_data_close(&data);
			free_exact(cut);
		}
		free(file.data);
	}
}

/* Whatever a byte becomes, reading ends, and the rest is mostly there. */
UNIT_TEST(a_flipped_byte_costs_little)
{
	struct bytes file = make(SEAM_LITTLE, false);
	size_t n_kept = 0, n_tries = 0;

	for (size_t pos = 0; pos < file.size; pos++) {
		for (int bit = 0; bit < 8; bit += 3) {
			struct seam_bytes copy = exact(file.data, file.size);
			struct seam_perf_data data;
			int r;

			((uint8_t *)(uintptr_t)copy.data)[pos] ^=
				(uint8_t)(1u << bit);
			if (seam_perf_data_open(&data, copy, NULL) == 0) {
				size_t n = walk(&data, NULL, 0, &r);

				assert_true(n <= file.size / 8);
				n_kept += n < N_RECORDS ? n : N_RECORDS;
			}
			n_tries++;
			seam_perf_data_close(&data);
			free_exact(copy);
		}
	}
	/* More than 85 % of all records survive one flip. */
	assert_true(n_kept * 100 > n_tries * N_RECORDS * 85);
	free(file.data);
}

UNIT_TEST(a_recording_whose_writer_was_killed_reads_to_the_end)
{
	struct bytes file = make(SEAM_LITTLE, false);
	struct seam_perf_data data;
	size_t data_end;
	int r;

	assert_int_equal(seam_perf_data_open(&data,
		(struct seam_bytes) { file.data, file.size }, NULL), 0);
	data_end = data.data_end;
	seam_perf_data_close(&data);
	set_n(&file, 48, 0, 8);		/* data.size was never written */
	assert_int_equal(seam_perf_data_open(&data,
		(struct seam_bytes) { file.data, data_end }, NULL), 0);
	assert_true(data.is_cut);
	assert_int_equal(walk(&data, NULL, 0, &r), N_RECORDS);
	assert_int_equal(r, 0);
	seam_perf_data_close(&data);
	free(file.data);
}

UNIT_TEST(a_record_without_size_ends_the_walk)
{
	struct bytes b = some_data(SEAM_LITTLE), file;
	struct seam_perf_data data;
	struct seam_perf_stream stream;
	struct seam_perf_record record;
	struct seam_err err = { 0 };
	int r;

	begin_record(&b, PERF_RECORD_SAMPLE, 0);	/* its size stays 0 */
	put_comm(&b, 7, 7, "never", false, 1);
	file = make_file(&b);
	assert_int_equal(seam_perf_data_open(&data,
		(struct seam_bytes) { file.data, file.size }, NULL), 0);
	seam_perf_stream_init(&stream, data.bytes, data.endian,
			      data.data_begin, data.data_end, false);
	while ((r = seam_perf_stream_next(&stream, &record, &err)) > 0)
		assert_int_not_equal(record.payload.size, 0);
	assert_int_equal(r, -EBADMSG);
	assert_non_null(strstr(err.cause[0], "size=0"));
	assert_int_equal(seam_perf_stream_next(&stream, &record, NULL),
			 -EBADMSG);
	seam_perf_stream_fini(&stream);
	seam_perf_data_close(&data);
	free(b.data);
	free(file.data);
}

/*
 * One zstd stream in pieces that end anywhere, as perf -z writes it: as
 * COMPRESSED (81) with its exact size, or as COMPRESSED2 (83), padded.
 */
static struct bytes pack(const struct bytes *plain, size_t piece, bool second)
{
	struct bytes b = { .endian = plain->endian };
	ZSTD_CStream *zstd = ZSTD_createCStream();

	ZSTD_initCStream(zstd, 1);
	for (size_t pos = 0; pos < plain->size; pos += piece) {
		uint8_t buf[4096];
		size_t left = plain->size - pos;
		ZSTD_inBuffer in = { plain->data + pos,
				     left < piece ? left : piece, 0 };
		ZSTD_outBuffer out = { buf, sizeof(buf), 0 };
		size_t at;

		ZSTD_compressStream(zstd, &out, &in);
		ZSTD_flushStream(zstd, &out);
		at = begin_record(&b, second ? 83 : 81, 0);
		if (second)
			put_u64(&b, out.pos);
		put(&b, buf, out.pos);
		if (second)
			put(&b, "\0\0\0\0\0\0\0", -b.size & 7);
		end_record(&b, at);
	}
	ZSTD_freeCStream(zstd);
	return b;
}

UNIT_TEST(packed_records_read_as_plain_ones)
{
	struct bytes plain = some_data(SEAM_LITTLE);

	for (size_t piece = 1; piece < plain.size; piece += 13) {
		for (int second = 0; second < 2; second++) {
			struct bytes packed = pack(&plain, piece, second);
			struct seam_perf_stream stream;
			struct seam_perf_record record;
			size_t n = 0, size = 0;
			int r;

			seam_perf_stream_init(&stream, (struct seam_bytes) {
				packed.data, packed.size }, SEAM_LITTLE, 0,
				packed.size, false);
			while ((r = seam_perf_stream_next(&stream, &record,
							  NULL)) > 0) {
				assert_memory_equal(record.payload.data,
					plain.data + size + 8,
					record.payload.size);
				size += 8 + record.payload.size;
				n++;
			}
			assert_int_equal(r, 0);
			assert_int_equal(n, N_RECORDS);
			assert_int_equal(size, plain.size);
			seam_perf_stream_fini(&stream);
			free(packed.data);
		}
	}
	free(plain.data);
}

UNIT_TEST(a_cut_packed_stream_reports_it)
{
	struct bytes plain = some_data(SEAM_LITTLE);
	struct bytes packed = pack(&plain, 100, false);
	struct seam_perf_stream stream;
	struct seam_perf_record record;
	size_t first_piece;
	int r;

	first_piece = packed.data[6] | (size_t)packed.data[7] << 8;
	seam_perf_stream_init(&stream, (struct seam_bytes) { packed.data,
			      first_piece }, SEAM_LITTLE, 0, first_piece,
			      false);
	while ((r = seam_perf_stream_next(&stream, &record, NULL)) > 0)
		;
	assert_int_equal(r, -ENODATA);
	seam_perf_stream_fini(&stream);
	free(plain.data);
	free(packed.data);
}

/* AUXTRACE has its trace behind it, not inside its size. */
UNIT_TEST(trace_data_comes_with_its_record)
{
	struct bytes b = { .endian = SEAM_LITTLE };
	struct seam_perf_stream stream;
	struct seam_perf_record record;
	size_t at = begin_record(&b, SEAM_PERF_AUXTRACE, 0);

	put_u64(&b, 24);
	for (int i = 0; i < 4; i++)
		put_u64(&b, 0);
	end_record(&b, at);
	put(&b, "twenty-four bytes trace.", 24);
	put_comm(&b, 1, 1, "next", false, 1);

	seam_perf_stream_init(&stream, (struct seam_bytes) { b.data, b.size },
			      SEAM_LITTLE, 0, b.size, false);
	assert_int_equal(seam_perf_stream_next(&stream, &record, NULL), 1);
	assert_int_equal(stream.trailing.size, 24);
	assert_memory_equal(stream.trailing.data, "twenty-four", 11);
	assert_int_equal(seam_perf_stream_next(&stream, &record, NULL), 1);
	assert_int_equal(record.type, PERF_RECORD_COMM);
	assert_int_equal(seam_perf_stream_next(&stream, &record, NULL), 0);
	seam_perf_stream_fini(&stream);

	/* A trace longer than the file. */
	set_n(&b, 8, UINT64_MAX - 3, 8);
	seam_perf_stream_init(&stream, (struct seam_bytes) { b.data, b.size },
			      SEAM_LITTLE, 0, b.size, false);
	assert_int_equal(seam_perf_stream_next(&stream, &record, NULL),
			 -ENODATA);
	free(b.data);
}

/* Formats of tracepoints stand behind their record, padded to 8. */
/* Records of @b one after the other, as types; how many. */
static size_t types_of(const struct bytes *b, uint32_t *types, size_t most)
{
	struct seam_perf_stream stream;
	struct seam_perf_record record;
	size_t n = 0;

	seam_perf_stream_init(&stream, (struct seam_bytes) { b->data, b->size },
			      b->endian, 0, b->size, false);
	while (n < most &&
	       seam_perf_stream_next(&stream, &record, NULL) > 0)
		types[n++] = record.type;
	seam_perf_stream_fini(&stream);
	return n;
}

/* simpleperf pads them to 64, in the record. */
UNIT_TEST(formats_in_the_record_are_not_after_it)
{
	for (uint64_t size = 1; size <= 96; size++) {
		struct bytes b = { .endian = SEAM_LITTLE };
		size_t at = begin_record(&b, SEAM_PERF_HEADER_TRACING_DATA, 0);
		uint32_t types[4];

		put_u32(&b, size);
		for (uint64_t i = 0; i < (size + 63) / 64 * 64; i++)
			put(&b, "f", 1);
		put_n(&b, 0, 4);
		end_record(&b, at);
		put_comm(&b, 1, 1, "next", false, 1);
		put_comm(&b, 1, 1, "last", false, 1);
		assert_int_equal(types_of(&b, types, 4), 3);
		assert_int_equal(types[1], PERF_RECORD_COMM);
		free(b.data);
	}
}

UNIT_TEST(a_record_of_simpleperf_has_a_size_of_32_bits)
{
	static const uint8_t zeros[70000];

	for (int i = 0; i < 2; i++) {
		struct bytes b = { .endian = i ? SEAM_BIG : SEAM_LITTLE };
		uint32_t types[4];

		put_u32(&b, SEAM_PERF_FIRST_SIMPLEPERF + 1);
		put_u16(&b, (sizeof(zeros) + 8) >> 16);
		put_u16(&b, (sizeof(zeros) + 8) & 0xffff);
		put(&b, zeros, sizeof(zeros));
		put_comm(&b, 1, 1, "next", false, 1);
		assert_int_equal(types_of(&b, types, 4), 2);
		assert_int_equal(types[1], PERF_RECORD_COMM);
		free(b.data);
	}
}

/* The trailer of put_stamp() is not part of it here. */
static struct seam_perf_mapping read_mapping(const struct bytes *b,
					     uint16_t misc)
{
	struct seam_perf_mapping m;

	assert_int_equal(seam_perf_mapping_read(PERF_RECORD_MMAP2, misc,
		(struct seam_bytes) { b->data, b->size }, b->endian, &m), 0);
	return m;
}

static void put_old_mmap2(struct bytes *b, const char *name)
{
	put_u32(b, 7);
	put_u32(b, 8);
	put_u64(b, 0x400000);
	put_u64(b, 0x1000);
	put_u64(b, 0x2000);
	put_u32(b, 8);
	put_u32(b, 1);
	put_u64(b, 4711);
	put_u64(b, 0);
	put_name(b, name);
}

/* The kernel leaves the mark of a build id in records of other layout. */
UNIT_TEST(a_mark_without_a_build_id_leaves_the_inode)
{
	static const uint32_t majors[] = { 254, 8, 0, 259, 7 };

	for (size_t i = 0; i < 2 * SEAM_ARRAY_SIZE(majors); i++) {
		struct bytes b = { .endian = i % 2 ? SEAM_BIG : SEAM_LITTLE };
		struct seam_perf_mapping m;

		put_old_mmap2(&b, "");
		b.size -= 8;
		set_n(&b, 32, majors[i / 2], 4);
		put_u32(&b, 5);
		put_u32(&b, 2);
		put_name(&b, "/lib/a.so");
		m = read_mapping(&b, PERF_RECORD_MISC_USER |
				 PERF_RECORD_MISC_MMAP_BUILD_ID);
		assert_null(m.build_id);
		assert_int_equal(m.maj, majors[i / 2]);
		assert_int_equal(m.ino, 4711);
		assert_int_equal(m.prot, 5);
		assert_string_equal(m.filename, "/lib/a.so");
		/* a hash of 8 bytes, as lld has */
		if (majors[i / 2] == 8 && b.endian == SEAM_LITTLE) {
			memset(b.data + 36, 0xab, 8);
			m = read_mapping(&b, PERF_RECORD_MISC_MMAP_BUILD_ID);
			assert_int_equal(m.build_id_size, 8);
		}
		free(b.data);
	}
}

UNIT_TEST(a_mapping_of_a_kernel_before_3_16_reads)
{
	static const char *const names[] = {
		"/system/lib/libc.so", "//anon", "[vdso]", "/a", "", "[stack]",
		"anon_inode:x",
	};

	for (size_t i = 0; i < 2 * SEAM_ARRAY_SIZE(names); i++) {
		struct bytes b = { .endian = i % 2 ? SEAM_BIG : SEAM_LITTLE };
		struct seam_perf_mapping m;

		put_old_mmap2(&b, names[i / 2]);
		m = read_mapping(&b, 0);
		assert_string_equal(m.filename, names[i / 2]);
		assert_int_equal(m.prot, 5);
		assert_int_equal(m.pgoff, 0x2000);
		m = read_mapping(&b, PERF_RECORD_MISC_MMAP_DATA);
		assert_int_equal(m.prot, 1);
		free(b.data);
	}
}

/* 0x4000 in the protection is simpleperf's, and no letter of a name. */
UNIT_TEST(code_that_simpleperf_saw_a_jit_write_is_marked)
{
	for (int i = 0; i < 2; i++) {
		struct bytes b = { .endian = i ? SEAM_BIG : SEAM_LITTLE };
		struct seam_perf_mapping m;

		put_old_mmap2(&b, "");
		b.size -= 8;
		put_u32(&b, 0x4004);
		put_u32(&b, 2);
		put_name(&b, "jit_app_cache:0-784");
		m = read_mapping(&b, 0);
		assert_string_equal(m.filename, "jit_app_cache:0-784");
		assert_int_equal(m.prot, 0x4004);
		assert_true(m.is_jit_symfile);
		free(b.data);
	}
}

UNIT_TEST(formats_of_any_size_are_passed_over)
{
	for (uint64_t size = 1; size <= 16; size++) {
		struct bytes b = { .endian = SEAM_LITTLE };
		size_t at = begin_record(&b, SEAM_PERF_HEADER_TRACING_DATA, 0);
		uint32_t types[4];

		put_u32(&b, size);
		end_record(&b, at);
		put(&b, "formats, formats", (size + 7) / 8 * 8);
		put_comm(&b, 1, 1, "next", false, 1);
		assert_int_equal(types_of(&b, types, 4), 2);
		assert_int_equal(types[1], PERF_RECORD_COMM);
		free(b.data);
	}
}

/* perf 6.16 counts in 16 bits what is in a COMPRESSED2: 64 KiB and more. */
UNIT_TEST(a_packed_record_may_be_longer_than_its_size_field)
{
	enum { N = 20, BYTES = 4000 };

	for (int e = SEAM_LITTLE; e <= SEAM_BIG; e++) {
		struct bytes plain = { .endian = (enum seam_endian)e };
		struct bytes b = { .endian = (enum seam_endian)e };
		size_t room = ZSTD_compressBound(N * (BYTES + 8)), size, at;
		uint8_t *packed = malloc(room);
		struct seam_perf_stream stream;
		struct seam_perf_record record;
		uint64_t random = 1;
		int n = 0;

		for (int i = 0; i < N; i++) {
			at = begin_record(&plain, 9999, 0);
			for (int k = 0; k < BYTES / 8; k++)
				put_u64(&plain, random = random *
					6364136223846793005u + 1);
			end_record(&plain, at);
		}
		size = ZSTD_compress(packed, room, plain.data, plain.size, 1);
		assert_false(ZSTD_isError(size));
		assert_true(size > UINT16_MAX + 8);
		at = begin_record(&b, SEAM_PERF_COMPRESSED2, 0);
		put_u64(&b, size);
		put(&b, packed, size);
		set_n(&b, at + 6, (b.size - at) & UINT16_MAX, 2);
		put_comm(&b, 1, 1, "next", false, 1);
		seam_perf_stream_init(&stream, (struct seam_bytes) {
				b.data, b.size }, b.endian, 0, b.size, false);
		while (seam_perf_stream_next(&stream, &record, NULL) > 0)
			n += record.type == 9999 &&
			     record.payload.size == BYTES;
		assert_int_equal(n, N);
		assert_int_equal(record.type, PERF_RECORD_COMM);
		seam_perf_stream_fini(&stream);
		free(packed);
		free(plain.data);
		free(b.data);
	}
}

UNIT_TEST(an_attr_of_any_age_reads)
{
	for (uint32_t size = 0; size <= 200; size += 8) {
		struct bytes b = { .endian = SEAM_BIG };
		struct seam_cursor c;
		struct seam_perf_attr attr;
		struct seam_bytes whole;

		put_attr(&b, 1, PERF_SAMPLE_IP);
		while (b.size < 200)
			put_u64(&b, 0x1122334455667788);
		set_n(&b, 4, size, 4);
		whole = exact(b.data, size < 64 ? 64 : size);
		c = seam_cursor_make(whole.data, whole.size, SEAM_BIG);
		if (size > 0 && size < 64) {
			assert_int_equal(seam_perf_attr_read(&c, SEAM_BIG,
							     &attr, NULL),
					 -EBADMSG);
		} else {
			assert_int_equal(seam_perf_attr_read(&c, SEAM_BIG,
							     &attr, NULL), 0);
			assert_int_equal(c.pos, size ? size : 64);
			assert_int_equal(attr.config, 1);
			assert_true(seam_perf_attr_has(&attr,
						       SEAM_PERF_ATTR_FREQ));
			assert_int_equal(attr.config3, size >= 136 ?
					 0x1122334455667788 : 0);
		}
		free_exact(whole);
		free(b.data);
	}
}

/* A sample that is nothing but its event's id. */
UNIT_TEST(the_attr_of_a_record_is_by_its_last_word)
{
	struct bytes file = make(SEAM_LITTLE, false), b = { .endian = 0 };
	struct seam_perf_data data;

	assert_int_equal(seam_perf_data_open(&data, (struct seam_bytes) {
		file.data, file.size }, NULL), 0);
	put_u64(&b, TEST_ID_2);
	for (size_t n = 0; n <= 8; n++) {
		struct seam_bytes payload = exact(b.data, n);

		assert_ptr_equal(seam_perf_data_attr_of(&data, payload),
				 &data.events.items[n == 8].attr);
		free_exact(payload);
	}
	seam_perf_data_close(&data);
	free(b.data);
	free(file.data);
}

/* Each event could claim the whole file for its ids: events by bytes. */
UNIT_TEST(ids_that_overlap_are_refused)
{
	struct bytes file = make(SEAM_LITTLE, false);
	struct seam_perf_data data;
	struct seam_err err = { 0 };

	for (size_t i = 0; i < 2; i++) {
		set_n(&file, 120 + i * 144 + 128, 0, 8);
		set_n(&file, 120 + i * 144 + 136, UINT64_MAX, 8);
	}
	assert_int_equal(seam_perf_data_open(&data, (struct seam_bytes) {
		file.data, file.size }, &err), -EBADMSG);
	assert_non_null(strstr(err.cause[0], "overlap"));
	/* No more was read than there is. */
	assert_true(data.ids.n <= file.size / 8);
	seam_perf_data_close(&data);
	free(file.data);
}

UNIT_TEST(what_is_not_perf_data_is_refused)
{
	static const char *const others[] = { "", "P", "PERFILE", "\x7f""ELF",
					      "PERFILE3\0\0\0\0\0\0\0\0" };

	for (size_t i = 0; i < SEAM_ARRAY_SIZE(others); i++) {
		struct seam_bytes bytes = exact(others[i], strlen(others[i]));
		struct seam_perf_data data;

		assert_int_equal(seam_perf_data_open(&data, bytes, NULL),
				 -EBADMSG);
		seam_perf_data_close(&data);
		free_exact(bytes);
	}
}

/* The first event's name after it is named from beside the file. */
static void expect_name(struct bytes file, size_t n_names, const char *name)
{
	static const char *const names[] = { "seam:guest", "other", "third" };
	struct seam_perf_data data;

	assert_int_equal(seam_perf_data_open(&data,
		(struct seam_bytes) { file.data, file.size }, NULL), 0);
	assert_int_equal(data.events.n, 2);
	seam_perf_data_name_events(&data, names, n_names);
	if (name)
		assert_string_equal(data.events.items[0].name, name);
	else
		assert_string_not_equal(data.events.items[0].name, names[0]);
	seam_perf_data_close(&data);
}

UNIT_TEST(events_of_a_killed_recorder_are_named_from_beside)
{
	enum { FEATURES_AT = 72 };
	struct bytes file = make(SEAM_LITTLE, false);
	struct bytes pipe = make(SEAM_LITTLE, true);

	expect_name(pipe, 2, NULL);
	/* it has names of its own */
	expect_name(file, 2, "cpu-clock:u");
	set_n(&file, FEATURES_AT, 0, 8);
	expect_name(file, 2, "seam:guest");
	expect_name(file, 1, NULL);
	expect_name(file, 3, NULL);
	free(file.data);
	free(pipe.data);
}

UNIT_MAIN(NULL, NULL, NULL, NULL)
