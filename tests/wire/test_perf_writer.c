/* SPDX-License-Identifier: MIT */
/* test_perf_writer.c - the bytes of a file, and what failures leave of it */
#include "wire/perf/perf_writer.h"

#include "base/file.h"
#include "wire/perf/perf_data.h"

#include <linux/perf_event.h>

#include "unit.h"

enum {
	N_EVENTS = 2,
	IDS = SEAM_PERF_FILE_HEADER_BYTES,
	ATTRS = IDS + 3 * 8,
	DATA = ATTRS + N_EVENTS * 144,
	DATA_SIZE_AT = 48,
	FLAGS_AT = 72,
};

static uint64_t first_ids[] = { 11, 12 }, second_ids[] = { 99 };
static struct seam_perf_event events[N_EVENTS] = {
	{
		.attr = { .type = PERF_TYPE_SOFTWARE, .size = 128,
			  .sample_period = 7 },
		.name = "cpu-clock", .ids = first_ids, .n_ids = 2,
	}, {
		.attr = { .type = PERF_TYPE_RAW, .size = 128,
			  .config = 0x1234 },
		.name = "r1234", .ids = second_ids, .n_ids = 1,
	},
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

UNIT_TEST(writes_the_header_of_perf)
{
	struct opened o;
	char magic[8];
	uint64_t id;
	struct perf_event_attr attr;

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
	assert_memory_equal(&attr, &events[1].attr, 128);
	assert_int_equal(u64_at(&o, ATTRS + 128), IDS);
	assert_int_equal(u64_at(&o, ATTRS + 136), 16);
	assert_int_equal(u64_at(&o, ATTRS + 144 + 128), IDS + 16);
	assert_int_equal(u64_at(&o, ATTRS + 144 + 136), 8);
	id = u64_at(&o, IDS + 16);
	assert_int_equal(id, 99);
	close(o.fd);
}

/* Each byte of the attr is another, but for its size. */
static struct seam_perf_attr odd_attr(int seed)
{
	struct seam_perf_attr attr;
	uint8_t *bytes = (uint8_t *)&attr;

	for (size_t i = 0; i < sizeof(attr); i++)
		bytes[i] = (uint8_t)(seed + (int)i * 3);
	attr.size = SEAM_PERF_WRITER_ATTR_BYTES;
	/* an id in its usual place, and no fields of unknown size */
	attr.sample_type = PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_TIME |
			   PERF_SAMPLE_CPU;
	attr.config3 = 0;	/* is after the bytes that a file has */
	return attr;
}

/* The whole file, on the heap and no byte longer. */
static struct seam_bytes contents(int fd)
{
	off_t size = lseek(fd, 0, SEEK_END);
	uint8_t *bytes = malloc((size_t)size);

	assert_int_equal(pread(fd, bytes, (size_t)size, 0), size);
	return (struct seam_bytes) { bytes, (size_t)size };
}

static void assert_same_event(const struct seam_perf_data *data, uint32_t i,
			      const struct seam_perf_event *written)
{
	const struct seam_perf_event *read = &data->events.items[i];
	struct seam_perf_layout layout =
		seam_perf_layout_make(&written->attr, SEAM_NATIVE);

	assert_memory_equal(&read->attr, &written->attr, sizeof(read->attr));
	assert_string_equal(read->name, written->name);
	for (size_t k = 0; k < written->n_ids; k++)
		assert_int_equal(seam_perf_data_event(data, written->ids[k]), i);
	assert_memory_equal(&read->layout, &layout, sizeof(layout));
}

UNIT_TEST(the_reader_finds_the_events_that_the_writer_was_given)
{
	struct seam_perf_event given[N_EVENTS] = { events[0], events[1] };
	uint64_t ids[4] = { 1001, 1002 };
	struct seam_perf_features f = { 0 };
	struct opened o = { .fd = memfd_create("data", MFD_CLOEXEC) };
	struct seam_perf_data data;
	struct seam_bytes bytes;

	for (int i = 0; i < N_EVENTS; i++)
		given[i].attr = odd_attr(17 * i);
	given[1].ids = ids;
	given[1].n_ids = 2;
	given[1].max_ids = 4;
	assert_int_equal(seam_perf_writer_begin(&o.writer, o.fd, "data", given,
						N_EVENTS, NULL), 0);
	assert_int_equal(append(&o, "aaaaaaaa", ""), 0);
	assert_int_equal(seam_perf_writer_add_id(&o.writer, 1, 1003, NULL), 0);
	seam_perf_features_string(&f, SEAM_PERF_FEATURE_HOSTNAME, "vm");
	seam_perf_features_events(&f, given, N_EVENTS);
	assert_int_equal(seam_perf_writer_finish(&o.writer, &f, NULL), 0);

	bytes = contents(o.fd);
	assert_int_equal(seam_perf_data_open(&data, bytes, NULL), 0);
	assert_int_equal(data.events.n, N_EVENTS);
	for (uint32_t i = 0; i < N_EVENTS; i++)
		assert_same_event(&data, i, &given[i]);
	assert_int_equal(data.ids.n, given[0].n_ids + given[1].n_ids);
	assert_int_equal(data.data_begin, o.writer.data_offset);
	assert_int_equal(data.data_end - data.data_begin, 8);
	assert_string_equal(seam_perf_data_string(&data,
				SEAM_PERF_FEATURE_HOSTNAME), "vm");
	seam_perf_data_close(&data);
	seam_perf_features_fini(&f);
	free((void *)(uintptr_t)bytes.data);
	close(o.fd);
}

UNIT_TEST(writes_an_attr_as_the_kernel_lays_it_out)
{
	struct perf_event_attr attr;
	struct seam_perf_attr copy;
	uint8_t bytes[SEAM_PERF_WRITER_ATTR_BYTES];

	for (size_t i = 0; i < sizeof(attr); i++)
		((uint8_t *)&attr)[i] = (uint8_t)(i * 5 + 1);
	attr.size = sizeof(bytes);
	copy = seam_perf_attr_of(&attr);
	assert_true(copy.config2 == attr.config2);
	assert_true(copy.sig_data == attr.sig_data);
	assert_int_equal(seam_perf_attr_has(&copy,
				SEAM_PERF_ATTR_WRITE_BACKWARD),
			 attr.write_backward);
	seam_perf_attr_write(&copy, SEAM_NATIVE, bytes, sizeof(bytes));
	assert_memory_equal(bytes, &attr, sizeof(bytes));
}

UNIT_TEST(keeps_the_size_true_after_each_batch)
{
	struct opened o;
	char got[24];

	begin(&o);
	assert_int_equal(append(&o, "aaaaaaaa", "bbbbbbbb"), 0);
	assert_int_equal(u64_at(&o, DATA_SIZE_AT), 16);
	assert_int_equal(append(&o, "cccccccc", ""), 0);
	assert_int_equal(u64_at(&o, DATA_SIZE_AT), 24);
	assert_int_equal(pread(o.fd, got, 24, DATA), 24);
	assert_memory_equal(got, "aaaaaaaabbbbbbbbcccccccc", 24);
	close(o.fd);
}

UNIT_TEST(writes_more_pieces_than_one_call_takes)
{
	enum { N = 5000 };
	static struct iovec pieces[N];
	struct opened o;

	begin(&o);
	for (int i = 0; i < N; i++)
		pieces[i] = (struct iovec) { (void *)(uintptr_t)"12345678", 8 };
	assert_int_equal(seam_perf_writer_append(&o.writer, pieces, N, NULL),
			 0);
	assert_int_equal(u64_at(&o, DATA_SIZE_AT), 8 * N);
	assert_int_equal(u64_at(&o, DATA + 8 * (N - 1)), u64_at(&o, DATA));
	close(o.fd);
}

UNIT_TEST(features_that_were_dropped_are_none)
{
	struct seam_perf_features f = { 0 };

	seam_perf_features_string(&f, SEAM_PERF_FEATURE_HOSTNAME, "host");
	seam_perf_features_fini(&f);
	assert_null(f.bytes.items);
	seam_perf_features_fini(&f);
}

UNIT_TEST(lists_features_by_ascending_bit)
{
	struct seam_perf_features f = { 0 };
	const uint32_t cpus[] = { 2, 1 };
	struct opened o;
	uint32_t size;

	begin(&o);
	append(&o, "aaaaaaaa", "");
	seam_perf_features_string(&f, SEAM_PERF_FEATURE_HOSTNAME, "vm");
	seam_perf_features_string(&f, SEAM_PERF_FEATURE_ARCH, "");
	seam_perf_features_data(&f, SEAM_PERF_FEATURE_NRCPUS, cpus,
				sizeof(cpus));
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

/* Offset and size of each AUXTRACE record, after their number. */
UNIT_TEST(the_index_of_aux_data_has_each_pair)
{
	static const uint64_t index[] = { 2, 1000, 40, 2000, 41 };
	struct seam_perf_features f = { 0 };

	seam_perf_features_auxtrace(&f, index + 1, 2);
	assert_int_equal(f.bytes.n, sizeof(index));
	assert_memory_equal(f.bytes.items, index, sizeof(index));
	seam_perf_features_fini(&f);
}

UNIT_TEST(a_full_disk_leaves_the_last_whole_batch)
{
	struct rlimit limit, tight;
	struct seam_err err = { 0 };
	struct seam_perf_features f = { 0 };
	struct iovec piece;
	struct opened o;
	FILE *file = tmpfile();

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
	assert_int_equal(seam_perf_writer_finish(&o.writer, &f, NULL), -EFBIG);
	setrlimit(RLIMIT_FSIZE, &limit);
	assert_int_equal(u64_at(&o, DATA_SIZE_AT), 8);
	assert_int_equal(u64_at(&o, FLAGS_AT), 0);
	assert_int_equal(lseek(o.fd, 0, SEEK_END), DATA + 8);
	seam_perf_features_fini(&f);
	fclose(file);
}

UNIT_TEST(ids_that_come_later_go_into_their_room)
{
	static uint64_t ids[3] = { 11 };
	struct seam_perf_event event = {
		.attr = events[0].attr, .name = "cpu-clock", .ids = ids,
		.n_ids = 1, .max_ids = 3,
	};
	struct opened o = { .fd = memfd_create("data", MFD_CLOEXEC) };
	uint64_t ids_size_at = IDS + 3 * 8 + SEAM_PERF_WRITER_ATTR_BYTES + 8;

	assert_int_equal(seam_perf_writer_begin(&o.writer, o.fd, "data",
						&event, 1, NULL), 0);
	assert_int_equal(append(&o, "records1", ""), 0);
	assert_int_equal(u64_at(&o, (off_t)ids_size_at), 8);
	for (uint64_t id = 12; id <= 13; id++) {
		assert_int_equal(seam_perf_writer_add_id(&o.writer, 0, id,
							 NULL), 0);
		assert_int_equal(u64_at(&o, (off_t)ids_size_at), 8 * (id - 10));
		assert_int_equal(u64_at(&o, (off_t)(IDS + 8 * (id - 11))), id);
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

UNIT_TEST(formats_of_tracepoints_are_found_after_each_batch)
{
	static const char formats[] = "format of sched_switch";
	struct seam_perf_features f = { 0 };
	struct opened o;
	char got[64];

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
UNIT_TEST(formats_of_tracepoints_outlast_a_full_disk)
{
	static const char batch[] = "bbbbbbbbccccccccdddddddd";
	struct rlimit limit, tight;

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

UNIT_TEST(a_file_that_was_cut_gets_no_more_records)
{
	struct seam_err err = { 0 };
	struct iovec piece = { "aaaaaaaa", 8 };
	struct opened o;

	begin(&o);
	assert_int_equal(append(&o, "aaaaaaaa", ""), 0);
	assert_false(o.writer.was_cut);
	assert_int_equal(ftruncate(o.fd, (off_t)o.writer.data_offset + 4), 0);
	assert_int_equal(seam_perf_writer_append(&o.writer, &piece, 1, &err),
			 -EIO);
	assert_true(o.writer.was_cut);
	assert_non_null(strstr(err.cause[0], "by another process"));
	assert_int_equal(u64_at(&o, DATA_SIZE_AT), 8);
	close(o.fd);
}

UNIT_MAIN(NULL, NULL, NULL, NULL)
