/* SPDX-License-Identifier: MIT */
/* test_event_names.c - names of typed events, whole, cut and damaged */

#include "base/json.h"
#include "wire/xray/event_names.h"
#include "unit.h"

static const struct {
	uint16_t type;
	const char *name;
} cases[] = {
	{ 0, "" }, { 3, "a" }, { 5, "\"\\/\b\f\n\r\t\x01\x7f" },
	{ 300, "f\xc3\xbcr \xe2\x82\xac \xf0\x9f\x98\x80" },
	{ 65535, "x y" },
};

/* All cases as text, which the caller frees. */
static char *write_cases(size_t *size)
{
	char *text = NULL;
	FILE *out = open_memstream(&text, size);

	for (size_t i = SEAM_ARRAY_SIZE(cases); i-- > 0;)
		seam_event_name_write(out, cases[i].type, cases[i].name);
	fclose(out);
	return text;
}

UNIT_TEST(what_was_written_is_read)
{
	struct seam_event_names names;
	size_t size;
	char *text = write_cases(&size);

	assert_int_equal(seam_event_names_read(&names, (struct seam_bytes) {
			(const uint8_t *)text, size }, NULL), 0);
	for (size_t i = 0; i < SEAM_ARRAY_SIZE(cases); i++)
		assert_string_equal(seam_event_name_find(&names,
					cases[i].type), cases[i].name);
	assert_null(seam_event_name_find(&names, 4));
	assert_null(seam_event_name_find(&names, 65534));
	seam_event_names_fini(&names);
	free(text);
}

/* Other writers escape what seam_event_name_write() copies. */
UNIT_TEST(escapes_of_a_string_become_utf_8)
{
	static const char text[] = "\"\\u0041\\u00fc\\u07ff\\u0800\\u20ac\\uFFFF\"";
	char name[32];

	assert_true(seam_json_unquote(name, sizeof(name), (struct seam_bytes) {
			(const uint8_t *)text, sizeof(text) - 1 }));
	assert_string_equal(name, "A\xc3\xbc\xdf\xbf\xe0\xa0\x80\xe2\x82\xac"
			    "\xef\xbf\xbf");
}

/* Read the first @size bytes from memory of that size, for ASan. */
static size_t count_right(const char *text, size_t size)
{
	struct seam_event_names names;
	uint8_t *copy = malloc(size + 1);
	size_t n = 0;

	memcpy(copy, text, size);
	seam_event_names_read(&names, (struct seam_bytes) { copy, size }, NULL);
	for (size_t i = 0; i < SEAM_ARRAY_SIZE(cases); i++) {
		const char *name = seam_event_name_find(&names, cases[i].type);

		n += name && strcmp(name, cases[i].name) == 0;
	}
	seam_event_names_fini(&names);
	free(copy);
	return n;
}

UNIT_TEST(a_cut_file_has_the_lines_before_the_cut)
{
	size_t size, n = 0;
	char *text = write_cases(&size);

	for (size_t i = 0; i <= size; i++) {
		/* a line is whole without its line feed */
		n += i < size && text[i] == '\n';
		assert_int_equal(count_right(text, i), n);
	}
	free(text);
}

UNIT_TEST(a_flipped_bit_changes_no_other_line_before_it)
{
	size_t size, n = 0;
	char *text = write_cases(&size);

	for (size_t i = 0; i < size; i++) {
		for (int bit = 0; bit < 8; bit++) {
			text[i] = (char)(text[i] ^ 1 << bit);
			assert_true(count_right(text, size) >= n);
			text[i] = (char)(text[i] ^ 1 << bit);
		}
		n += text[i] == '\n';
	}
	free(text);
}

static bool is_json(const char *text)
{
	size_t size = strlen(text);
	uint8_t *copy = malloc(size + 1);
	bool is;

	memcpy(copy, text, size);
	is = seam_json_check((struct seam_bytes) { copy, size });
	free(copy);
	return is;
}

UNIT_TEST(json_is_one_object_or_array)
{
	static const char *const good[] = {
		"{}", "[]", " [ ] ", "{\"\":0}", "[[],{},[[]]]",
		"{\"a\":{\"b\":[1,-0,0.5,1e9,2E-3,true,false,null,\"\"]}}",
		"[\"\\\"\\\\\\/\\b\\f\\n\\r\\t\\u00e4\\u0000 \xc3\xa4\"]",
		"\t[1\n,\r2]\n",
	};
	static const char *const bad[] = {
		"", " ", "1", "\"a\"", "true", "{", "[", "]", "[}", "{]",
		"[1,]", "[,1]", "{,}", "{\"a\"}", "{\"a\":}", "{a:1}",
		"{\"a\":1,}", "[1 2]", "[] []", "[01]", "[+1]", "[.5]",
		"[1.]", "[1e]", "[-]", "[nul]", "[NaN]", "['a']", "[\"a]",
		"[\"\\x\"]", "[\"\\u12g4\"]", "[\"\n\"]", "[\"\xff\"]",
		"[\"\xc0\xaf\"]", "[\"\xed\xa0\x80\"]", "[\"\xe2\x82\"]",
		"[\"\xf4\x90\x80\x80\"]", "\xef\xbb\xbf[]",
	};

	for (size_t i = 0; i < SEAM_ARRAY_SIZE(good); i++)
		assert_true(is_json(good[i]));
	for (size_t i = 0; i < SEAM_ARRAY_SIZE(bad); i++)
		assert_false(is_json(bad[i]));
}

UNIT_MAIN(NULL, NULL, NULL, NULL)
