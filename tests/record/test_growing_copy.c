/* SPDX-License-Identifier: MIT */
/* test_growing_copy.c - maps are copied as they grow, with times; dumps too */
#include "record/bundle/follow.c"

#include <errno.h>
#include <fcntl.h>
#include <sys/resource.h>
#include <signal.h>
#include <sys/stat.h>

#include "base/clock.h"
#include "base/file.h"
#include "folder.h"
#include "wire/jit/perf_map.h"
#include "unit.h"

enum { MAX_BYTES = 1 << 20 };

struct following {
	struct growing_copy copy;
	int folder, map;		/* the map's descriptor writes */
	char path[96];
};

static void begin_kind(struct following *f, enum seam_jit_kind kind)
{
	snprintf(f->path, sizeof(f->path), "%s/map", folder);
	f->map = open(f->path, O_WRONLY | O_CREAT | O_APPEND, 0600);
	f->folder = open(folder, O_RDONLY | O_DIRECTORY);
	f->copy = (struct growing_copy) {
		.kind = kind, .from = -1, .to = -1, .times = -1,
		.max_bytes = MAX_BYTES,
	};
	copy_set_source(&f->copy, open(f->path, O_RDONLY));
}

static void begin(struct following *f)
{
	begin_kind(f, SEAM_JIT_MAP);
}

static void end(struct following *f)
{
	copy_close(&f->copy);
	close(f->map);
	close(f->folder);
}

static void put(struct following *f, const char *text)
{
	assert_int_equal(write(f->map, text, strlen(text)), strlen(text));
}

static ssize_t step(struct following *f)
{
	return copy_update(&f->copy, f->folder, "copy", 1 << 20, NULL);
}

static void expect_file(const char *name, const char *text)
{
	struct seam_file file;
	char path[96];

	snprintf(path, sizeof(path), "%s/%s", folder, name);
	assert_int_equal(seam_file_read(&file, AT_FDCWD, path, 1 << 20, NULL),
			 0);
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
	char path[96];

	snprintf(path, sizeof(path), "%s/copy.times", folder);
	assert_int_equal(seam_file_read(&file, AT_FDCWD, path, 1 << 20, NULL),
			 0);
	times = seam_perf_map_times_begin(file.bytes);
	for (size_t i = 0; i < n; i++) {
		assert_true(seam_perf_map_times_next(&times, &marks[i]));
		assert_int_equal(marks[i].offset, offsets[i]);
	}
	assert_false(seam_perf_map_times_next(&times, &more));
	assert_int_equal(times.n_bad, 0);
	seam_file_close(&file);
}

TEST(what_comes_is_appended_with_its_time)
{
	static const uint64_t offsets[] = { 0, 9, 12 };
	struct seam_perf_map_mark marks[3];
	uint64_t first_ns, second_ns;
	struct following f;

	begin(&f);
	assert_int_equal(step(&f), 0);
	put(&f, "1000 1 a\n");
	first_ns = seam_clock_ns();
	assert_int_equal(step(&f), 9);
	assert_int_equal(step(&f), 0);
	second_ns = seam_clock_ns();
	put(&f, "200");
	assert_int_equal(step(&f), 3);
	put(&f, "0 1 b\n");
	assert_int_equal(step(&f), 6);
	assert_int_equal(step(&f), 0);
	expect_file("copy", "1000 1 a\n2000 1 b\n");
	read_marks(marks, 3, offsets);
	assert_true(marks[0].from_ns <= first_ns);
	assert_true(marks[0].to_ns >= first_ns);
	/* Nothing was there at the look before. */
	assert_true(marks[1].from_ns >= marks[0].from_ns);
	assert_true(marks[1].to_ns >= second_ns);
	end(&f);
}

TEST(a_map_that_begins_anew_is_copied_after_the_old)
{
	static const uint64_t offsets[] = { 0, 12, 21, 30 };
	struct seam_perf_map_mark marks[4];
	struct following f;

	begin(&f);
	put(&f, "1000 1 a\n99");
	step(&f);
	/* Cut, and as long as before by now. */
	assert_int_equal(ftruncate(f.map, 0), 0);
	put(&f, "2000 1 b\n");
	step(&f);
	assert_int_equal(ftruncate(f.map, 0), 0);
	put(&f, "3000 1 c\n");
	step(&f);
	expect_file("copy", "1000 1 a\n99\n2000 1 b\n3000 1 c\n");
	/* Another file under its name. */
	unlink(f.path);
	close(f.map);
	f.map = open(f.path, O_WRONLY | O_CREAT | O_EXCL, 0600);
	put(&f, "4000 1 d\n");
	copy_set_source(&f.copy, open(f.path, O_RDONLY));
	step(&f);
	expect_file("copy", "1000 1 a\n99\n2000 1 b\n3000 1 c\n4000 1 d\n");
	read_marks(marks, 4, offsets);
	end(&f);
}

TEST(a_map_of_zeros_or_without_end_is_bounded)
{
	struct following f;

	begin(&f);
	put(&f, "1000 1 a\n");
	/* A hole of a terabyte. */
	if (ftruncate(f.map, (off_t)1 << 40) && errno != EFBIG)
		fail();
	step(&f);
	assert_true(f.copy.is_over);
	expect_file("copy", "1000 1 a\n");
	put(&f, "2000 1 b\n");
	assert_int_equal(step(&f), 0);
	end(&f);
	drop_folder(NULL);
	make_folder(NULL);

	begin(&f);
	f.copy.max_bytes = 14;
	put(&f, "1000 1 a\n2000 1 b\n");
	step(&f);
	assert_true(f.copy.is_over && f.copy.is_cut);
	expect_file("copy", "1000 1 a\n2000 ");
	end(&f);
	drop_folder(NULL);
	make_folder(NULL);

	/* The newline after a cut line is one byte more than the limit. */
	begin(&f);
	f.copy.max_bytes = 14;
	put(&f, "1000 1 a");
	step(&f);
	assert_int_equal(ftruncate(f.map, 0), 0);
	put(&f, "2000 1");
	step(&f);
	put(&f, " b\n");
	step(&f);
	assert_true(f.copy.is_over && f.copy.is_cut);
	expect_file("copy", "1000 1 a\n2000 1");
	end(&f);
}

TEST(a_dump_that_begins_anew_is_copied_anew)
{
	struct following f;

	begin_kind(&f, SEAM_JIT_DUMP);
	put(&f, "header and records");
	step(&f);
	put(&f, ", more");
	step(&f);
	expect_file("copy", "header and records, more");
	assert_int_equal(f.copy.n_restarts, 0);
	assert_int_equal(ftruncate(f.map, 0), 0);
	put(&f, "header");
	step(&f);
	expect_file("copy", "header");
	assert_int_equal(f.copy.n_restarts, 1);
	/* nothing is there where a hole ends */
	assert_int_equal(ftruncate(f.map, 1 << 19), 0);
	step(&f);
	assert_true(f.copy.n_bytes <= 4096);
	end(&f);
}

TEST(a_copy_that_cannot_be_written_ends)
{
	struct rlimit old, limit;
	struct following f;

	begin(&f);
	put(&f, "1000 1 a\n");
	step(&f);
	put(&f, "2000 1 b\n");
	signal(SIGXFSZ, SIG_IGN);
	getrlimit(RLIMIT_FSIZE, &old);
	limit = old;
	limit.rlim_cur = 12;
	setrlimit(RLIMIT_FSIZE, &limit);
	assert_int_equal(step(&f), -EFBIG);
	setrlimit(RLIMIT_FSIZE, &old);
	assert_int_equal(step(&f), 0);
	assert_true(f.copy.n_bytes == 9);
	end(&f);
}

TESTS(make_folder, drop_folder)
