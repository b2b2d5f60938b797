/* SPDX-License-Identifier: MIT */
/* test_jitdump_print.c - promises of wire/jit/jitdump.h, a made dump at a time */
#include "unit.h"

#include <jansson.h>

#include "jit_dump.h"
#include "wire/jit/jitdump.h"
#include "wire/jit/perf_map.h"

/* What a dump looks like; free() it. */
static char *shown(struct seam_bytes bytes, enum seam_line_form form,
		   int *result, uint64_t *n_damaged)
{
	char *text = NULL;
	size_t size = 0;
	FILE *out = open_memstream(&text, &size);

	*result = seam_jitdump_print(out, bytes, form, n_damaged, NULL);
	fclose(out);
	return text;
}

static void put_all(struct dump *d)
{
	static const char *const names[] = { "a.js", "b\x1b[31m.js" };

	put_header(d);
	put_debug(d, 0x1000, 0x1000, names, 2);
	put_unwinding(d);
	put_load(d, 100, "one\x1b]0;x", 0x1000, 3, 1);
	put_move(d, 200, 0x1000, 0x2000, 3, 1);
	put_prefix(d, 3, 16);
	put_prefix(d, 77, 16);
}

static size_t count_lines(const char *text)
{
	size_t n = 0;

	for (; *text; text++)
		n += *text == '\n';
	return n;
}

UNIT_TEST(shows_header_and_every_record_as_text)
{
	static const char load[] = "JIT_CODE_LOAD id=0 total_size=0x44 "
		"timestamp=0x64 pid=0x2a tid=0x2b vma=0x1000 code_addr=0x1000 "
		"code_size=0x3 code_index=0x1 name=\"one\\x1b]0;x\" "
		"code=[3 bytes]\n";
	struct dump *d = calloc(1, sizeof(*d));
	uint64_t n_damaged;
	char *text;
	int r;

	put_all(d);
	text = shown(dump_bytes(d), SEAM_LINE_TEXT, &r, &n_damaged);
	assert_int_equal(r, 0);
	assert_int_equal(n_damaged, 0);
	assert_memory_equal(text, "         0 header magic=0x4a695444 ", 34);
	assert_non_null(strstr(text, load));
	assert_non_null(strstr(text, "entries=[0x1000 \"a.js\":10:3, "
			       "0x1001 \"b\\x1b[31m.js\":11:3]"));
	assert_non_null(strstr(text, "JIT_CODE_MOVE id=0x1 "));
	assert_non_null(strstr(text, "JIT_CODE_CLOSE id=0x3 "));
	assert_non_null(strstr(text, "TYPE_77 id=0x4d "));
	assert_non_null(strstr(text, "# records of an unknown type: 1\n"));
	assert_null(strchr(text, '\x1b'));
	assert_int_equal(count_lines(text), 8);
	free(text);
	free(d);
}

UNIT_TEST(bytes_are_shown_on_request)
{
	struct dump *d = calloc(1, sizeof(*d));
	uint64_t n_damaged;
	char *text;
	int r;

	put_all(d);
	text = shown(dump_bytes(d), SEAM_LINE_TEXT_BYTES, &r, &n_damaged);
	assert_non_null(strstr(text, "unwinding_data=00000000000000011b033b00"));
	assert_non_null(strstr(text, "code=31c0c3\n"));
	free(text);
	free(d);
}

/* Each line is an object with offset and type, or a note. */
static size_t check_json(char *text)
{
	size_t n = 0;

	for (char *line = strsep(&text, "\n"); line && *line;
	     line = strsep(&text, "\n"), n++) {
		json_t *object = json_loads(line, JSON_DECODE_INT_AS_REAL,
					    NULL);

		assert_true(json_is_object(object));
		assert_true(json_is_string(json_object_get(object, "type")));
		json_decref(object);
	}
	return n;
}

UNIT_TEST(json_has_an_object_a_line)
{
	struct dump *d = calloc(1, sizeof(*d));
	uint64_t n_damaged;
	char *text;
	int r;

	put_all(d);
	text = shown(dump_bytes(d), SEAM_LINE_JSON, &r, &n_damaged);
	assert_non_null(strstr(text, "\"code\":\"31c0c3\"}"));
	assert_non_null(strstr(text, "{\"code_addr\":4096,\"line\":10,"
			       "\"discrim\":3,\"name\":\"a.js\"}"));
	assert_int_equal(check_json(text), 8);
	free(text);
	free(d);
}

UNIT_TEST(shows_records_that_contradict_themselves)
{
	struct dump *d = calloc(1, sizeof(*d));
	uint64_t n_damaged;
	size_t at;
	char *text;
	int r;

	put_header(d);
	at = put_load(d, 1, "bad", 0x1000, 3, 1);
	d->bytes[at + 40] = 0xff;		/* code_size */
	put_load(d, 2, "good", 0x2000, 3, 2);
	at = put_load(d, 3, "last", 0x1000, 3, 1);
	d->bytes[at + 40] = 0xff;
	text = shown(dump_bytes(d), SEAM_LINE_TEXT, &r, &n_damaged);
	assert_int_equal(r, 0);
	assert_int_equal(n_damaged, 2);
	assert_int_equal(count_lines(text), 5);
	assert_non_null(strstr(text, "DAMAGED\n"));
	assert_non_null(strstr(text, "name=\"good\""));
	free(text);
	free(d);
}

UNIT_TEST(a_cut_dump_shows_what_is_whole)
{
	struct dump *d = calloc(1, sizeof(*d));
	size_t before = 0;

	put_all(d);
	for (size_t size = 0; size <= d->size; size++) {
		uint8_t *exact = malloc(size + 1);
		uint64_t n_damaged;
		size_t lines;
		char *text;
		int r;

		memcpy(exact, d->bytes, size);
		text = shown((struct seam_bytes) { exact, size },
			     SEAM_LINE_JSON, &r, &n_damaged);
		assert_true(r == 0 || r == -ENODATA);
		if (size < SEAM_JITDUMP_HEADER_BYTES)
			assert_int_equal(r, -ENODATA);
		if (strstr(text, "last record cut off"))
			assert_int_equal(r, -ENODATA);
		lines = check_json(text);
		assert_true(lines + 2 > before);
		before = lines;
		free(text);
		free(exact);
	}
	free(d);
}

UNIT_TEST(a_flipped_byte_leaves_json_valid)
{
	struct dump *d = calloc(1, sizeof(*d));

	put_all(d);
	for (size_t i = 0; i < d->size; i++) {
		uint64_t n_damaged;
		char *text;
		int r;

		d->bytes[i] ^= 0xff;
		text = shown(dump_bytes(d), SEAM_LINE_JSON, &r,
			     &n_damaged);
		check_json(text);
		free(text);
		d->bytes[i] ^= 0xff;
	}
	free(d);
}

UNIT_TEST(big_endian_reads_as_little)
{
	struct dump *d = calloc(1, sizeof(*d));
	struct dump *big = calloc(1, sizeof(*big));
	uint64_t n_damaged;
	char *a, *b;
	int r;

	big->endian = SEAM_BIG;
	put_all(d);
	put_all(big);
	assert_true(seam_jitdump_is(dump_bytes(d)));
	assert_true(seam_jitdump_is(dump_bytes(big)));
	a = shown(dump_bytes(d), SEAM_LINE_JSON, &r, &n_damaged);
	b = shown(dump_bytes(big), SEAM_LINE_JSON, &r, &n_damaged);
	assert_string_equal(a, b);
	free(a);
	free(b);
	free(big);
	free(d);
}

static struct seam_bytes text_bytes(const char *text)
{
	return (struct seam_bytes) { (const uint8_t *)text, strlen(text) };
}

UNIT_TEST(recognizes_maps_by_name_or_by_shape)
{
	assert_true(seam_perf_map_is("/tmp/perf-12.map", text_bytes("")));
	assert_true(seam_perf_map_is("x", text_bytes("7f00 10 f\n")));
	assert_false(seam_perf_map_is("perf-x.map", text_bytes("hello")));
	assert_false(seam_perf_map_is("perf-12.map.bak", text_bytes("")));
	assert_false(seam_perf_map_is("perf-.map", text_bytes("\n1 2 3")));
}

UNIT_TEST(shows_the_lines_of_a_map)
{
	static const char map[] = "1000 10 f g\nnonsense\n2000 8 \x1b[2J\n";
	uint64_t n_damaged = 0;
	char *text = NULL;
	size_t size = 0;
	FILE *out = open_memstream(&text, &size);

	assert_int_equal(seam_perf_map_print(out, text_bytes(map),
					     SEAM_LINE_TEXT, &n_damaged), 0);
	fclose(out);
	assert_int_equal(n_damaged, 1);
	assert_string_equal(text,
		"         0 entry start=0x1000 size=0x10 name=\"f g\"\n"
		"      0x15 entry start=0x2000 size=0x8 name=\"\\x1b[2J\"\n");
	free(text);
}

UNIT_MAIN(NULL, NULL, NULL, NULL)
