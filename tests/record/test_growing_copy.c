/* SPDX-License-Identifier: MIT */
/* test_growing_copy.c - maps are copied as they grow, with times; dumps too */
#include "record/bundle/follow.c"

#include "base/clock.h"
#include "base/file.h"
#include "folder.h"
#include "wire/jit/perf_map.h"
#include "unit.h"

enum { MAX_BYTES = 1 << 20 };

static struct growing_copy copy;
static int folder_fd, map;	/* the map's descriptor writes */
static char path[96];

static int begin(void **state)
{
	if (make_folder(state))
		return -1;
	snprintf(path, sizeof(path), "%s/map", folder);
	map = open(path, O_WRONLY | O_CREAT | O_APPEND, 0600);
	folder_fd = open(folder, O_RDONLY | O_DIRECTORY);
	copy = (struct growing_copy) {
		.kind = SEAM_JIT_MAP, .from = -1, .to = -1, .times = -1,
		.max_bytes = MAX_BYTES,
	};
	copy_set_source(&copy, open(path, O_RDONLY));
	return 0;
}

static int end(void **state)
{
	copy_close(&copy);
	close(map);
	close(folder_fd);
	return drop_folder(state);
}

static void put(const char *text)
{
	assert_int_equal(write(map, text, strlen(text)), strlen(text));
}

static ssize_t step(void)
{
	return copy_update(&copy, folder_fd, "copy", 1 << 20, NULL);
}

static void expect_file(const char *text)
{
	struct seam_file file;

	assert_int_equal(seam_file_read(&file, folder_fd, "copy", 1 << 20,
					NULL), 0);
	assert_int_equal(file.bytes.size, strlen(text));
	assert_memory_equal(file.bytes.data, text, strlen(text));
	seam_file_close(&file);
}

/* The marks, of which there are @n; their offsets must be @offsets. */
static void read_marks(struct seam_perf_map_mark *marks, size_t n,
		       const uint64_t *offsets)
{
	struct seam_perf_map_times times;
	struct seam_perf_map_mark more;
	struct seam_file file;

	assert_int_equal(seam_file_read(&file, folder_fd, "copy.times", 1 << 20,
					NULL), 0);
	times = seam_perf_map_times_begin(file.bytes);
	for (size_t i = 0; i < n; i++) {
		assert_true(seam_perf_map_times_next(&times, &marks[i]));
		assert_int_equal(marks[i].offset, offsets[i]);
	}
	assert_false(seam_perf_map_times_next(&times, &more));
	assert_int_equal(times.n_bad, 0);
	seam_file_close(&file);
}

UNIT_TEST(what_comes_is_appended_with_its_time)
{
	static const uint64_t offsets[] = { 0, 9, 12 };
	struct seam_perf_map_mark marks[3];
	uint64_t first_ns, second_ns;

	assert_int_equal(step(), 0);
	put("1000 1 a\n");
	first_ns = seam_clock_ns();
	assert_int_equal(step(), 9);
	assert_int_equal(step(), 0);
	second_ns = seam_clock_ns();
	put("200");
	assert_int_equal(step(), 3);
	put("0 1 b\n");
	assert_int_equal(step(), 6);
	assert_int_equal(step(), 0);
	expect_file("1000 1 a\n2000 1 b\n");
	read_marks(marks, 3, offsets);
	assert_true(marks[0].from_ns <= first_ns);
	assert_true(marks[0].to_ns >= first_ns);
	/* Nothing was there at the look before. */
	assert_true(marks[1].from_ns >= marks[0].from_ns);
	assert_true(marks[1].to_ns >= second_ns);
}

UNIT_TEST(a_map_that_begins_anew_is_copied_after_the_old)
{
	static const uint64_t offsets[] = { 0, 12, 21, 30 };
	struct seam_perf_map_mark marks[4];

	put("1000 1 a\n99");
	step();
	/* Cut, and as long as before by now. */
	assert_int_equal(ftruncate(map, 0), 0);
	put("2000 1 b\n");
	step();
	assert_int_equal(ftruncate(map, 0), 0);
	put("3000 1 c\n");
	step();
	expect_file("1000 1 a\n99\n2000 1 b\n3000 1 c\n");
	/* Another file under its name. */
	unlink(path);
	close(map);
	map = open(path, O_WRONLY | O_CREAT | O_EXCL, 0600);
	put("4000 1 d\n");
	copy_set_source(&copy, open(path, O_RDONLY));
	step();
	expect_file("1000 1 a\n99\n2000 1 b\n3000 1 c\n4000 1 d\n");
	read_marks(marks, 4, offsets);
}

UNIT_TEST(a_map_of_zeros_or_without_end_is_bounded)
{
	put("1000 1 a\n");
	/* A hole of a terabyte. */
	if (ftruncate(map, (off_t)1 << 40) && errno != EFBIG)
		fail();
	step();
	assert_true(copy.is_over);
	expect_file("1000 1 a\n");
	put("2000 1 b\n");
	assert_int_equal(step(), 0);
	end(NULL);
	begin(NULL);
	copy.max_bytes = 14;
	put("1000 1 a\n2000 1 b\n");
	step();
	assert_true(copy.is_over && copy.is_cut);
	expect_file("1000 1 a\n2000 ");
	end(NULL);
	begin(NULL);

	/* The newline after a cut line is one byte more than the limit. */
	copy.max_bytes = 14;
	put("1000 1 a");
	step();
	assert_int_equal(ftruncate(map, 0), 0);
	put("2000 1");
	step();
	put(" b\n");
	step();
	assert_true(copy.is_over && copy.is_cut);
	expect_file("1000 1 a\n2000 1");
}

UNIT_TEST(a_dump_that_begins_anew_is_copied_anew)
{
	copy.kind = SEAM_JIT_DUMP;
	put("header and records");
	step();
	put(", more");
	step();
	expect_file("header and records, more");
	assert_int_equal(copy.n_restarts, 0);
	assert_int_equal(ftruncate(map, 0), 0);
	put("header");
	step();
	expect_file("header");
	assert_int_equal(copy.n_restarts, 1);
	/* nothing is there where a hole ends */
	assert_int_equal(ftruncate(map, 1 << 19), 0);
	step();
	assert_true(copy.n_bytes <= 4096);
}

UNIT_TEST(a_copy_that_cannot_be_written_ends)
{
	struct rlimit old, limit;

	put("1000 1 a\n");
	step();
	put("2000 1 b\n");
	signal(SIGXFSZ, SIG_IGN);
	getrlimit(RLIMIT_FSIZE, &old);
	limit = old;
	limit.rlim_cur = 12;
	setrlimit(RLIMIT_FSIZE, &limit);
	assert_int_equal(step(), -EFBIG);
	setrlimit(RLIMIT_FSIZE, &old);
	assert_int_equal(step(), 0);
	assert_true(copy.n_bytes == 9);
}

UNIT_MAIN(NULL, NULL, begin, end)
