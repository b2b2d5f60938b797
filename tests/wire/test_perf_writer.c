/* SPDX-License-Identifier: MIT */
/* test_perf_writer.c - the bytes of a file, and what failures leave of it */
#include "wire/perf/perf_writer.h"

#include "base/cursor.h"
#include "base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cmocka.h>

enum {
	N_EVENTS = 2,
	IDS = SEAM_PERF_WRITER_HEADER_BYTES,
	ATTRS = IDS + 3 * 8,
	DATA = ATTRS + N_EVENTS * 144,
	DATA_SIZE_AT = 48,
	FLAGS_AT = 72,
};

static const struct perf_event_attr attrs[N_EVENTS] = {
	{ .type = PERF_TYPE_SOFTWARE, .size = 128, .sample_period = 7 },
	{ .type = PERF_TYPE_RAW, .size = 128, .config = 0x1234 },
};
static uint64_t first_ids[] = { 11, 12 }, second_ids[] = { 99 };
static struct seam_perf_written_event events[N_EVENTS] = {
	{ &attrs[0], "cpu-clock", first_ids, 2, 0 },
	{ &attrs[1], "r1234", second_ids, 1, 0 },
};

struct opened {
	int fd;
	struct seam_perf_writer writer;
};

static void begin(struct opened *o)
{
	o->fd = memfd_create("data", MFD_CLOEXEC);
	assert_true(o->fd >= 0);
	assert_int_equal(seam_perf_writer_begin(&o->writer, o->fd, "data",
						events, N_EVENTS, NULL), 0);
}

static uint64_t u64_at(const struct opened *o, off_t at)
{
	uint64_t v = 0;

	assert_int_equal(pread(o->fd, &v, 8, at), 8);
	return v;
}

static int append(struct opened *o, const char *a, const char *b)
{
	struct iovec pieces[] = {
		{ (void *)(uintptr_t)a, strlen(a) },
		{ NULL, 0 },
		{ (void *)(uintptr_t)b, strlen(b) },
	};

	return seam_perf_writer_append(&o->writer, pieces, 3, NULL);
}

static void writes_the_header_of_perf(void **state)
{
	struct opened o;
	char magic[8];
	uint64_t id;
	struct perf_event_attr attr;

	(void)state;
	begin(&o);
	assert_int_equal(pread(o.fd, magic, 8, 0), 8);
	assert_memory_equal(magic, "PERFILE2", 8);
	assert_int_equal(u64_at(&o, 8), 104);
	assert_int_equal(u64_at(&o, 16), 144);
	assert_int_equal(u64_at(&o, 24), ATTRS);
	assert_int_equal(u64_at(&o, 32), N_EVENTS * 144);
	assert_int_equal(u64_at(&o, 40), DATA);
	assert_int_equal(u64_at(&o, DATA_SIZE_AT), 0);
	for (int i = 0; i < 4; i++)
		assert_int_equal(u64_at(&o, FLAGS_AT + 8 * i), 0);
	assert_int_equal(pread(o.fd, &attr, 128, ATTRS + 144), 128);
	assert_memory_equal(&attr, &attrs[1], 128);
	assert_int_equal(u64_at(&o, ATTRS + 128), IDS);
	assert_int_equal(u64_at(&o, ATTRS + 136), 16);
	assert_int_equal(u64_at(&o, ATTRS + 144 + 128), IDS + 16);
	assert_int_equal(u64_at(&o, ATTRS + 144 + 136), 8);
	id = u64_at(&o, IDS + 16);
	assert_int_equal(id, 99);
	close(o.fd);
}

static void keeps_the_size_true_after_each_batch(void **state)
{
	struct opened o;
	char got[24];

	(void)state;
	begin(&o);
	assert_int_equal(append(&o, "aaaaaaaa", "bbbbbbbb"), 0);
	assert_int_equal(u64_at(&o, DATA_SIZE_AT), 16);
	assert_int_equal(append(&o, "cccccccc", ""), 0);
	assert_int_equal(u64_at(&o, DATA_SIZE_AT), 24);
	assert_int_equal(pread(o.fd, got, 24, DATA), 24);
	assert_memory_equal(got, "aaaaaaaabbbbbbbbcccccccc", 24);
	close(o.fd);
}

static void writes_more_pieces_than_one_call_takes(void **state)
{
	enum { N = 5000 };
	static struct iovec pieces[N];
	struct opened o;

	(void)state;
	begin(&o);
	for (int i = 0; i < N; i++)
		pieces[i] = (struct iovec) { (void *)(uintptr_t)"12345678", 8 };
	assert_int_equal(seam_perf_writer_append(&o.writer, pieces, N, NULL),
			 0);
	assert_int_equal(u64_at(&o, DATA_SIZE_AT), 8 * N);
	assert_int_equal(u64_at(&o, DATA + 8 * (N - 1)), u64_at(&o, DATA));
	close(o.fd);
}

static void lists_features_by_ascending_bit(void **state)
{
	struct seam_perf_features f = { 0 };
	const uint32_t cpus[] = { 2, 1 };
	struct opened o;
	uint32_t size;

	(void)state;
	begin(&o);
	append(&o, "aaaaaaaa", "");
	seam_perf_features_string(&f, SEAM_PERF_FEATURE_HOSTNAME, "vm");
	seam_perf_features_string(&f, SEAM_PERF_FEATURE_ARCH, "");
	seam_perf_features_u32(&f, SEAM_PERF_FEATURE_NRCPUS, cpus, 2);
	assert_int_equal(seam_perf_writer_finish(&o.writer, &f, NULL), 0);
	assert_int_equal(u64_at(&o, FLAGS_AT), 1 << 3 | 1 << 7);
	/* the sections, then the payloads */
	assert_int_equal(u64_at(&o, DATA + 8), DATA + 8 + 32);
	assert_int_equal(u64_at(&o, DATA + 16), 4 + 64);
	assert_int_equal(u64_at(&o, DATA + 24), DATA + 8 + 32 + 68);
	assert_int_equal(u64_at(&o, DATA + 32), 8);
	assert_int_equal(pread(o.fd, &size, 4, DATA + 40), 4);
	assert_int_equal(size, 64);
	assert_int_equal(u64_at(&o, DATA + 44), 0x6d76);	/* "vm" */
	assert_int_equal(u64_at(&o, DATA + 40 + 68), 2 | UINT64_C(1) << 32);
	seam_perf_features_fini(&f);
	close(o.fd);
}

static void a_full_disk_leaves_the_last_whole_batch(void **state)
{
	struct rlimit limit, tight;
	struct seam_err err = { 0 };
	struct seam_perf_features f = { 0 };
	struct iovec piece;
	struct opened o;
	FILE *file = tmpfile();

	(void)state;
	assert_non_null(file);
	o.fd = fileno(file);
	assert_int_equal(seam_perf_writer_begin(&o.writer, o.fd, "data",
						events, N_EVENTS, NULL), 0);
	append(&o, "aaaaaaaa", "");
	signal(SIGXFSZ, SIG_IGN);
	getrlimit(RLIMIT_FSIZE, &limit);
	tight = limit;
	tight.rlim_cur = DATA + 12;
	setrlimit(RLIMIT_FSIZE, &tight);
	piece = (struct iovec) { (void *)(uintptr_t)"bbbbbbbb", 8 };
	assert_int_equal(seam_perf_writer_append(&o.writer, &piece, 1, &err),
			 -EFBIG);
	assert_non_null(strstr(err.cause[0], "pwritev at offset 4"));
	assert_int_equal(lseek(o.fd, 0, SEEK_END), DATA + 8);
	seam_perf_features_string(&f, SEAM_PERF_FEATURE_HOSTNAME, "vm");
	assert_int_equal(seam_perf_writer_finish(&o.writer, &f, NULL),
			 -EFBIG);
	setrlimit(RLIMIT_FSIZE, &limit);
	assert_int_equal(u64_at(&o, DATA_SIZE_AT), 8);
	assert_int_equal(u64_at(&o, FLAGS_AT), 0);
	assert_int_equal(lseek(o.fd, 0, SEEK_END), DATA + 8);
	seam_perf_features_fini(&f);
	fclose(file);
}

static void ids_that_come_later_go_into_their_room(void **state)
{
	static uint64_t ids[3] = { 11 };
	struct seam_perf_written_event event = { &attrs[0], "cpu-clock", ids, 1, 3 };
	struct opened o = { .fd = memfd_create("data", MFD_CLOEXEC) };
	uint64_t ids_size_at = IDS + 3 * 8 + SEAM_PERF_WRITER_ATTR_BYTES + 8;

	(void)state;
	assert_int_equal(seam_perf_writer_begin(&o.writer, o.fd, "data",
						&event, 1, NULL), 0);
	assert_int_equal(append(&o, "records1", ""), 0);
	assert_int_equal(u64_at(&o, (off_t)ids_size_at), 8);
	for (uint64_t id = 12; id <= 13; id++) {
		assert_int_equal(seam_perf_writer_add_id(&o.writer, 0, id,
							 NULL), 0);
		assert_int_equal(u64_at(&o, (off_t)ids_size_at),
				 8 * (id - 10));
		assert_int_equal(u64_at(&o, (off_t)(IDS + 8 * (id - 11))),
				 id);
	}
	assert_int_equal(seam_perf_writer_add_id(&o.writer, 0, 14, NULL),
			 -ENOSPC);
	assert_int_equal(event.n_ids, 3);
	close(o.fd);
}

/* Whether the table of features behind the data is that of the formats. */
static bool has_formats(const struct opened *o, const char *formats)
{
	uint64_t data = u64_at(o, 40), end = data + u64_at(o, DATA_SIZE_AT);
	char got[64] = "";

	return u64_at(o, FLAGS_AT) & 2 &&
	       u64_at(o, (off_t)end + 8) == strlen(formats) &&
	       pread(o->fd, got, strlen(formats),
		     (off_t)u64_at(o, (off_t)end)) == (ssize_t)strlen(formats) &&
	       strcmp(got, formats) == 0;
}

static void put_formats(struct opened *o, const char *text)
{
	struct seam_bytes formats = { (const uint8_t *)text, strlen(text) };

	assert_int_equal(seam_perf_writer_formats(&o->writer, formats, NULL),
			 0);
}

static void formats_of_tracepoints_are_found_after_each_batch(void **state)
{
	static const char formats[] = "format of sched_switch";
	struct seam_perf_features f = { 0 };
	struct opened o;
	char got[64];

	(void)state;
	begin(&o);
	put_formats(&o, formats);
	assert_true(has_formats(&o, formats));
	assert_int_equal(u64_at(&o, 40) % 8, 0);
	/* in pieces that end before, at and behind the table's end */
	assert_int_equal(append(&o, "aaaaaaaa", ""), 0);
	assert_true(has_formats(&o, formats));
	assert_int_equal(append(&o, "bbbbbbbb", "cccccccc"), 0);
	assert_true(has_formats(&o, formats));
	assert_int_equal(append(&o, "ddd", "dddddeeeeeeeeffffffff"), 0);
	assert_true(has_formats(&o, formats));
	assert_int_equal(pread(o.fd, got, 48, (off_t)u64_at(&o, 40)), 48);
	assert_memory_equal(got, "aaaaaaaabbbbbbbbccccccccdddddddd"
			    "eeeeeeeeffffffff", 48);
	seam_perf_features_string(&f, SEAM_PERF_FEATURE_HOSTNAME, "vm");
	assert_int_equal(seam_perf_writer_finish(&o.writer, &f, NULL), 0);
	assert_int_equal(u64_at(&o, FLAGS_AT), 1 << 1 | 1 << 3);
	assert_true(has_formats(&o, formats));
	seam_perf_features_fini(&f);
	close(o.fd);
}

/* The disk is full at each of its bytes. */
static void formats_of_tracepoints_outlast_a_full_disk(void **state)
{
	static const char batch[] = "bbbbbbbbccccccccdddddddd";
	struct rlimit limit, tight;

	(void)state;
	signal(SIGXFSZ, SIG_IGN);
	getrlimit(RLIMIT_FSIZE, &limit);
	for (size_t room = 0; room < strlen(batch) + 16; room++) {
		struct opened o;

		begin(&o);
		put_formats(&o, "format");
		assert_int_equal(append(&o, "aaaaaaaa", ""), 0);
		tight = limit;
		tight.rlim_cur = seam_perf_writer_end(&o.writer) - 16 + room;
		setrlimit(RLIMIT_FSIZE, &tight);
		assert_int_equal(append(&o, batch, ""), -EFBIG);
		setrlimit(RLIMIT_FSIZE, &limit);
		assert_int_equal(u64_at(&o, DATA_SIZE_AT), 8);
		assert_true(has_formats(&o, "format"));
		close(o.fd);
	}
}

static void record(struct opened *o, uint32_t type, uint16_t size)
{
	uint8_t bytes[64] = { 0 };
	struct perf_event_header header = { .type = type, .size = size };
	struct iovec piece = { bytes, size };

	memcpy(bytes, &header, sizeof(header));
	assert_int_equal(seam_perf_writer_append(&o->writer, &piece, 1, NULL),
			 0);
}

static void a_file_that_was_cut_ends_with_its_last_whole_record(void **state)
{
	struct seam_perf_writer_left left;
	struct seam_err err = { 0 };
	struct opened o;

	(void)state;
	begin(&o);
	put_formats(&o, "format");
	record(&o, PERF_RECORD_COMM, 16);
	record(&o, PERF_RECORD_SAMPLE, 24);
	record(&o, PERF_RECORD_SAMPLE, 24);
	assert_int_equal(ftruncate(o.fd, (off_t)o.writer.data_offset + 50), 0);
	assert_int_equal(append(&o, "aaaaaaaa", ""), -EIO);
	assert_true(o.writer.was_cut);
	assert_int_equal(seam_perf_writer_salvage(&o.writer, &left, &err), 0);
	assert_int_equal(left.n_records, 2);
	assert_int_equal(left.n_samples, 1);
	assert_int_equal(u64_at(&o, DATA_SIZE_AT), 40);
	assert_true(has_formats(&o, "format"));
	record(&o, PERF_RECORD_SAMPLE, 24);
	assert_int_equal(ftruncate(o.fd, 0), 0);
	assert_int_equal(append(&o, "aaaaaaaa", ""), -EIO);
	assert_int_equal(seam_perf_writer_salvage(&o.writer, &left, &err),
			 -ENODATA);
	close(o.fd);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(ids_that_come_later_go_into_their_room),
		cmocka_unit_test(writes_the_header_of_perf),
		cmocka_unit_test(keeps_the_size_true_after_each_batch),
		cmocka_unit_test(writes_more_pieces_than_one_call_takes),
		cmocka_unit_test(lists_features_by_ascending_bit),
		cmocka_unit_test(a_full_disk_leaves_the_last_whole_batch),
		cmocka_unit_test(
			formats_of_tracepoints_are_found_after_each_batch),
		cmocka_unit_test(formats_of_tracepoints_outlast_a_full_disk),
		cmocka_unit_test(
			a_file_that_was_cut_ends_with_its_last_whole_record),
	};

	return cmocka_run_group_tests_name("perf_writer", tests, NULL, NULL);
}
