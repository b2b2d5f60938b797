/* SPDX-License-Identifier: MIT */
/* test_perf_map.c - lines of a map are read, others are counted */
#include "wire/perf_map.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "jit_corpus.h"

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

static void names_may_hold_blanks_and_numbers_a_prefix(void **state)
{
	struct seam_perf_map_reader r = begin(
		"7f00 10 main\n"
		"0x7f10 0X20 LazyCompile:~f /a b/c.js:1:2\r\n"
		"FFFFffffFFFFfff0 10 top\n"
		"\n"
		"7f30 8 no line end");
	struct seam_perf_map_entry e;

	(void)state;
	expect(&r, 0x7f00, 0x10, "main");
	expect(&r, 0x7f10, 0x20, "LazyCompile:~f /a b/c.js:1:2");
	expect(&r, 0xfffffffffffffff0, 0x10, "top");
	expect(&r, 0x7f30, 8, "no line end");
	assert_false(seam_perf_map_next(&r, &e));
	assert_int_equal(r.n_entries, 4);
	assert_int_equal(r.n_bad, 0);
}

static void garbage_is_counted_and_passed_over(void **state)
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

	(void)state;
	expect(&r, 0x7f00, 0x10, "good");
	assert_false(seam_perf_map_next(&r, &e));
	assert_int_equal(r.n_bad, 9);
}

static void a_line_too_long_is_no_name(void **state)
{
	size_t size = SEAM_PERF_MAP_LINE_BYTES + 100;
	char *text = malloc(size);
	struct seam_perf_map_reader r;

	(void)state;
	memset(text, 'x', size);
	memcpy(text, "10 10 ", 6);
	memcpy(text + size - 9, "\n10 10 y", 9);
	r = begin(text);
	expect(&r, 0x10, 0x10, "y");
	assert_int_equal(r.n_bad, 1);
	free(text);
}

static void every_cut_and_every_flip_ends(void **state)
{
	static const char text[] = "7f00 10 a b\n0x7f10 20 cc\r\n junk\n";

	(void)state;
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

static void real_maps_have_no_bad_line(void **state)
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
	(void)state;
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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(names_may_hold_blanks_and_numbers_a_prefix),
		cmocka_unit_test(garbage_is_counted_and_passed_over),
		cmocka_unit_test(a_line_too_long_is_no_name),
		cmocka_unit_test(every_cut_and_every_flip_ends),
		cmocka_unit_test(real_maps_have_no_bad_line),
	};

	return cmocka_run_group_tests_name("perf_map", tests, NULL, NULL);
}
