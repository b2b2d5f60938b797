/* SPDX-License-Identifier: MIT */
/* test_jitdump_print.c - promises of wire/jit/jitdump.h, a made dump at a time */
#include "unit.h"

#include <jansson.h>

#include "jit_dump.h"
#include "wire/jit/jitdump.h"
#include "wire/jit/perf_map.h"

static struct dump made, big;	/* empty when a test begins */

/* What the last show() printed and returned. */
static char *shown;
static uint64_t n_damaged;
static int r;

static int set_up(void **state)
{
	memset(&made, 0, sizeof(made));
	memset(&big, 0, sizeof(big));
	return 0;
}

static int tear_down(void **state)
{
	free(shown);
	shown = NULL;
	return 0;
}

static void show(struct seam_bytes bytes, enum seam_line_form form)
{
	size_t size;
	FILE *out;

	free(shown);
	out = open_memstream(&shown, &size);
	r = seam_jitdump_print(out, bytes, form, &n_damaged, NULL);
	fclose(out);
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

	put_all(&made);
	show(dump_bytes(&made), SEAM_LINE_TEXT);
	assert_int_equal(r, 0);
	assert_int_equal(n_damaged, 0);
	assert_memory_equal(shown, "         0 header magic=0x4a695444 ", 34);
	assert_non_null(strstr(shown, load));
	assert_non_null(strstr(shown, "entries=[0x1000 \"a.js\":10:3, "
			       "0x1001 \"b\\x1b[31m.js\":11:3]"));
	assert_non_null(strstr(shown, "JIT_CODE_MOVE id=0x1 "));
	assert_non_null(strstr(shown, "JIT_CODE_CLOSE id=0x3 "));
	assert_non_null(strstr(shown, "TYPE_77 id=0x4d "));
	assert_non_null(strstr(shown, "# records of an unknown type: 1\n"));
	assert_null(strchr(shown, '\x1b'));
	assert_int_equal(count_lines(shown), 8);
}

UNIT_TEST(bytes_are_shown_on_request)
{
	put_all(&made);
	show(dump_bytes(&made), SEAM_LINE_TEXT_BYTES);
	assert_non_null(strstr(shown, "unwinding_data=00000000000000011b033b00"));
	assert_non_null(strstr(shown, "code=31c0c3\n"));
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
	put_all(&made);
	show(dump_bytes(&made), SEAM_LINE_JSON);
	assert_non_null(strstr(shown, "\"code\":\"31c0c3\"}"));
	assert_non_null(strstr(shown, "{\"code_addr\":4096,\"line\":10,"
			       "\"discrim\":3,\"name\":\"a.js\"}"));
	assert_int_equal(check_json(shown), 8);
}

UNIT_TEST(shows_records_that_contradict_themselves)
{
	size_t at;

	put_header(&made);
	at = put_load(&made, 1, "bad", 0x1000, 3, 1);
	made.bytes[at + 40] = 0xff;		/* code_size */
	put_load(&made, 2, "good", 0x2000, 3, 2);
	at = put_load(&made, 3, "last", 0x1000, 3, 1);
	made.bytes[at + 40] = 0xff;
	show(dump_bytes(&made), SEAM_LINE_TEXT);
	assert_int_equal(r, 0);
	assert_int_equal(n_damaged, 2);
	assert_int_equal(count_lines(shown), 5);
	assert_non_null(strstr(shown, "DAMAGED\n"));
	assert_non_null(strstr(shown, "name=\"good\""));
}

UNIT_TEST(a_cut_dump_shows_what_is_whole)
{
	size_t before = 0;

	put_all(&made);
	for (size_t size = 0; size <= made.size; size++) {
		uint8_t *exact = malloc(size + 1);
		size_t lines;

		memcpy(exact, made.bytes, size);
		show((struct seam_bytes) { exact, size }, SEAM_LINE_JSON);
		assert_true(r == 0 || r == -ENODATA);
		if (size < SEAM_JITDUMP_HEADER_BYTES)
			assert_int_equal(r, -ENODATA);
		if (strstr(shown, "last record cut off"))
			assert_int_equal(r, -ENODATA);
		lines = check_json(shown);
		assert_true(lines + 2 > before);
		before = lines;
		free(exact);
	}
}

UNIT_TEST(a_flipped_byte_leaves_json_valid)
{
	put_all(&made);
	for (size_t i = 0; i < made.size; i++) {
		made.bytes[i] ^= 0xff;
		show(dump_bytes(&made), SEAM_LINE_JSON);
		check_json(shown);
		made.bytes[i] ^= 0xff;
	}
}

UNIT_TEST(big_endian_reads_as_little)
{
	char *little;

	big.endian = SEAM_BIG;
	put_all(&made);
	put_all(&big);
	assert_true(seam_jitdump_is(dump_bytes(&made)));
	assert_true(seam_jitdump_is(dump_bytes(&big)));
	show(dump_bytes(&made), SEAM_LINE_JSON);
	little = strdup(shown);
	show(dump_bytes(&big), SEAM_LINE_JSON);
	assert_string_equal(shown, little);
	free(little);
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
	size_t size = 0;
	FILE *out = open_memstream(&shown, &size);

	n_damaged = 0;
	assert_int_equal(seam_perf_map_print(out, text_bytes(map),
					     SEAM_LINE_TEXT, &n_damaged), 0);
	fclose(out);
	assert_int_equal(n_damaged, 1);
	assert_string_equal(shown,
		"         0 entry start=0x1000 size=0x10 name=\"f g\"\n"
		"      0x15 entry start=0x2000 size=0x8 name=\"\\x1b[2J\"\n");
}

UNIT_MAIN(NULL, NULL, set_up, tear_down)
