/* SPDX-License-Identifier: MIT */
/* test_perf_map.c - lines of a map are read, others are counted */
#include "wire/jit/perf_map.h"

#include "jit_corpus.h"
#include "unit.h"

static struct seam_perf_map_reader begin(const char *text)
{
	return seam_perf_map_begin((struct seam_bytes) {
		(const uint8_t *)text, strlen(text) });
}

static void expect(struct seam_perf_map_reader *r, uint64_t start,
		   uint64_t size, const char *name)
{
	struct seam_perf_map_entry e;

	assert_true(seam_perf_map_next(r, &e));
	assert_int_equal(e.start_addr, start);
	assert_int_equal(e.size, size);
	assert_int_equal(e.name.size, strlen(name));
	assert_memory_equal(e.name.data, name, strlen(name));
}

UNIT_TEST(names_may_hold_blanks_and_numbers_a_prefix)
{
	struct seam_perf_map_reader r = begin(
		"7f00 10 main\n"
		"0x7f10 0X20 LazyCompile:~f /a b/c.js:1:2\r\n"
		"FFFFffffFFFFfff0 10 top\n"
		"\n"
		"7f30 8 no line end");
	struct seam_perf_map_entry e;

	expect(&r, 0x7f00, 0x10, "main");
	expect(&r, 0x7f10, 0x20, "LazyCompile:~f /a b/c.js:1:2");
	expect(&r, 0xfffffffffffffff0, 0x10, "top");
	expect(&r, 0x7f30, 8, "no line end");
	assert_false(seam_perf_map_next(&r, &e));
	assert_int_equal(r.n_entries, 4);
	assert_int_equal(r.n_bad, 0);
}

UNIT_TEST(garbage_is_counted_and_passed_over)
{
	struct seam_perf_map_reader r = begin(
		"hello\n"
		"7f00\n"
		"7f00 10\n"
		"7f00 10 \n"
		"7f00 0 empty\n"
		"7f00 xyz name\n"
		"0x 10 no digits\n"
		"12345678901234567 10 too long\n"
		"fffffffffffffff0 11 wraps\n"
		"7f00 10 good\n");
	struct seam_perf_map_entry e;

	expect(&r, 0x7f00, 0x10, "good");
	assert_false(seam_perf_map_next(&r, &e));
	assert_int_equal(r.n_bad, 9);
}

UNIT_TEST(a_line_too_long_is_no_name)
{
	size_t size = SEAM_PERF_MAP_LINE_BYTES + 100;
	char *text = malloc(size);
	struct seam_perf_map_reader r;

	memset(text, 'x', size);
	memcpy(text, "10 10 ", 6);
	memcpy(text + size - 9, "\n10 10 y", 9);
	r = begin(text);
	expect(&r, 0x10, 0x10, "y");
	assert_int_equal(r.n_bad, 1);
	free(text);
}

UNIT_TEST(every_cut_and_every_flip_ends)
{
	static const char text[] = "7f00 10 a b\n0x7f10 20 cc\r\n junk\n";

	for (size_t size = 0; size < sizeof(text); size++) {
		uint8_t *copy = malloc(sizeof(text));
		struct seam_perf_map_reader r;
		struct seam_perf_map_entry e;
		uint64_t n_lines = 0;

		memcpy(copy, text, sizeof(text));
		copy[size] ^= 0x21;
		r = seam_perf_map_begin((struct seam_bytes) { copy, size });
		while (seam_perf_map_next(&r, &e))
			n_lines++;
		assert_int_equal(r.n_entries, n_lines);
		assert_int_equal(r.pos, size);
		free(copy);
	}
}

UNIT_TEST(real_maps_have_no_bad_line)
{
	static const struct {
		const char *name;
		unsigned int n_lines;
	} maps[] = {
		{ "cpython312-map/perf-30175.map", 785 },
		{ "cpython313-map/perf-30146.map", 810 },
		{ "erlang25-jpperf-true/perf-28412.map", 14861 },
		{ "java17-dumpperfmap/perf-30052.map", 483 },
		{ "mono68-jitmap/perf-30407.map", 164 },
		{ "node20-basicprof-map/perf-27895.map", 3148 },
		{ "php82-map/perf-29728.map", 56 },
	};
	for (size_t i = 0; i < SEAM_ARRAY_SIZE(maps); i++) {
		struct seam_perf_map_reader r;
		struct seam_perf_map_entry e;
		struct seam_file file;

		assert_true(jit_corpus_read(maps[i].name, &file));
		r = seam_perf_map_begin(file.bytes);
		while (seam_perf_map_next(&r, &e))
			;
		assert_int_equal(r.n_bad, 0);
		assert_int_equal(r.n_entries, maps[i].n_lines);
		seam_file_close(&file);
	}
}

static struct seam_perf_map_times begin_times(const char *text, size_t size)
{
	return seam_perf_map_times_begin((struct seam_bytes) {
		(const uint8_t *)text, size });
}

UNIT_TEST(times_are_read_as_they_were_laid_out)
{
	const struct seam_perf_map_mark marks[] = {
		{ 0, 0, 5 }, { 17, 6, UINT64_MAX - 1 },
		{ UINT64_MAX, UINT64_MAX, UINT64_MAX },
	};
	char text[3 * SEAM_PERF_MAP_MARK_BYTES];
	struct seam_perf_map_times t;
	struct seam_perf_map_mark m;
	size_t n = 0;

	for (size_t i = 0; i < 3; i++)
		n += seam_perf_map_mark_put(text + n, &marks[i]);
	t = begin_times(text, n);
	for (size_t i = 0; i < 3; i++) {
		assert_true(seam_perf_map_times_next(&t, &m));
		assert_memory_equal(&m, &marks[i], sizeof(m));
	}
	assert_false(seam_perf_map_times_next(&t, &m));
	assert_int_equal(t.n_bad, 0);
}

UNIT_TEST(times_that_cannot_be_are_counted)
{
	static const char text[] =
		"# OFFSET FROM TO\n0 1 2\n\n"
		"x\n1 2\n1 2 3 4\n1 3 2\n-1 2 3\n1 2 18446744073709551616\n"
		"10 5 6\n"
		"9 6 7\n"		/* before the last */
		"11 5 5\n"
		"12 4 8\n"		/* raised */
		"13 9 9";		/* cut */
	struct seam_perf_map_times t = begin_times(text, strlen(text));
	struct seam_perf_map_mark m;

	assert_true(seam_perf_map_times_next(&t, &m));
	assert_true(seam_perf_map_times_next(&t, &m));
	assert_int_equal(m.offset, 10);
	assert_true(seam_perf_map_times_next(&t, &m));
	assert_int_equal(m.offset, 12);
	assert_int_equal(m.from_ns, 5);
	assert_int_equal(m.to_ns, 8);
	assert_false(seam_perf_map_times_next(&t, &m));
	assert_int_equal(t.n_bad, 8);
	for (size_t n = 0; n < strlen(text); n++) {
		char *cut = malloc(n + 1);

		memcpy(cut, text, n);
		t = begin_times(cut, n);
		while (seam_perf_map_times_next(&t, &m))
			assert_true(m.from_ns <= m.to_ns);
		free(cut);
	}
}

UNIT_MAIN(NULL, NULL, NULL, NULL)
