/* SPDX-License-Identifier: MIT */
/* test_text.c - what a hostile name may not do, and what JSON looks like */
#include "base/text.h"

#include "base/json.h"
#include "unit.h"

static const char *shown(const char *text, enum seam_text_form form)
{
	static char buf[256];

	return seam_text_copy(buf, sizeof(buf), text, form);
}

UNIT_TEST(no_escape_reaches_a_terminal)
{
	assert_string_equal(shown("a\x1b[31mb\x7f\n", SEAM_TEXT_TERMINAL),
			    "a\\x1b[31mb\\x7f\\x0a");
	/* C1 control CSI as UTF-8, and a right-to-left override. */
	assert_string_equal(shown("\xc2\x9b" "2J", SEAM_TEXT_TERMINAL),
			    "\\x9b2J");
	assert_string_equal(shown("gpj.\xe2\x80\xae" "exe", SEAM_TEXT_TERMINAL),
			    "gpj.\\u202eexe");
}

UNIT_TEST(honest_utf8_stays_and_broken_utf8_is_spelled_out)
{
	assert_string_equal(shown("für_λ", SEAM_TEXT_TERMINAL), "für_λ");
	assert_string_equal(shown("\xff\xc3", SEAM_TEXT_TERMINAL),
			    "\\xff\\xc3");
	/* An overlong slash, a surrogate, a value past U+10FFFF. */
	assert_string_equal(shown("\xc0\xaf", SEAM_TEXT_TERMINAL),
			    "\\xc0\\xaf");
	assert_string_equal(shown("\xed\xa0\x80", SEAM_TEXT_TERMINAL),
			    "\\xed\\xa0\\x80");
	assert_string_equal(shown("\xf4\x90\x80\x80", SEAM_TEXT_TERMINAL),
			    "\\xf4\\x90\\x80\\x80");
}

UNIT_TEST(each_form_guards_its_own_syntax)
{
	assert_string_equal(shown("a\"\\\x01\xff", SEAM_TEXT_JSON),
			    "a\\\"\\\\\\u0001\\ufffd");
	assert_string_equal(shown("<script a='1'>&\"", SEAM_TEXT_XML),
			    "&lt;script a=&#39;1&#39;&gt;&amp;&quot;");
	assert_string_equal(shown("\xef\xbf\xbe\xef\xbf\xbf", SEAM_TEXT_XML),
			    "\\ufffe\\uffff");
	assert_string_equal(shown("a;b\nc", SEAM_TEXT_FOLDED), "a:b\\x0ac");
	assert_string_equal(shown("a\"\\{|}<b> λ", SEAM_TEXT_DOT),
			    "a\\\"\\\\\\{\\|\\}\\<b\\> λ");
	assert_string_equal(shown("\n\x7f\xc2\x9b\xe2\x80\xae\xff",
				  SEAM_TEXT_DOT),
			    "\\\\x0a\\\\x7f\\\\x9b\\\\u202e\\\\xff");
}

UNIT_TEST(a_copy_is_cut_between_characters)
{
	char buf[4];

	seam_text_copy(buf, sizeof(buf), "aλλ", SEAM_TEXT_TERMINAL);
	assert_string_equal(buf, "aλ");
	seam_text_copy(buf, sizeof(buf), "\x1b", SEAM_TEXT_TERMINAL);
	assert_string_equal(buf, "");
	seam_text_copy(buf, 1, "abc", SEAM_TEXT_TERMINAL);
	assert_string_equal(buf, "");
}

UNIT_TEST(json_has_fractions_of_whole_numbers)
{
	char *text;
	size_t size;
	FILE *out = open_memstream(&text, &size);
	struct seam_json j = seam_json_make(out, false);

	seam_json_open(&j, NULL, '[');
	seam_json_fixed(&j, NULL, 0, 6);
	seam_json_fixed(&j, NULL, 1, 6);
	seam_json_fixed(&j, NULL, 1500000, 6);
	seam_json_fixed(&j, NULL, 12000000, 6);
	seam_json_fixed(&j, NULL, 120, 0);
	seam_json_fixed(&j, NULL, UINT64_MAX, 18);
	seam_json_u64(&j, NULL, 0);
	seam_json_close(&j);
	fclose(out);
	assert_string_equal(text, "[0,0.000001,1.5,12,120,"
			    "18.446744073709551615,0]\n");
	free(text);
}

UNIT_TEST(json_places_commas_and_brackets)
{
	char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);
	struct seam_json j = seam_json_make(out, false);

	seam_json_open(&j, NULL, '{');
	seam_json_u64(&j, "big", UINT64_MAX);
	seam_json_i64(&j, "small", INT64_MIN);
	seam_json_open(&j, "list", '[');
	seam_json_double(&j, NULL, 0.1);
	seam_json_double(&j, NULL, 1.0 / 0.0);
	seam_json_bool(&j, NULL, true);
	seam_json_open(&j, NULL, '{');
	seam_json_close(&j);
	seam_json_close(&j);
	seam_json_string(&j, "none", NULL);
	seam_json_hex(&j, "id", (struct seam_bytes) {
		(const uint8_t *)"\x00\xfe", 2 });
	seam_json_close(&j);
	fclose(out);
	assert_string_equal(text,
		"{\"big\":18446744073709551615,"
		"\"small\":-9223372036854775808,"
		"\"list\":[0.1,null,true,{}],\"none\":null,\"id\":\"00fe\"}\n");
	free(text);
}

UNIT_TEST(a_word_is_quoted_as_a_shell_reads_it)
{
	static const struct { const char *word, *quoted; } each[] = {
		{ "plain-1.2/x_y:@%+=,", "plain-1.2/x_y:@%+=," },
		{ "", "''" }, { "a b", "'a b'" }, { "$HOME", "'$HOME'" },
		{ "it's", "'it'\\''s'" }, { "*", "'*'" },
		{ "\xc3\xa4", "'\xc3\xa4'" }, { "'", "''\\'''" },
	};
	char text[64];

	for (size_t i = 0; i < SEAM_ARRAY_SIZE(each); i++) {
		size_t n = strlen(each[i].quoted);

		assert_int_equal(seam_text_quote(text, sizeof(text),
						 each[i].word), n);
		assert_string_equal(text, each[i].quoted);
		assert_int_equal(seam_text_quote(text, 2, each[i].word), n);
		assert_int_equal(strlen(text), 1);
		assert_int_equal(seam_text_quote(NULL, 0, each[i].word), n);
	}
}

UNIT_TEST(a_number_has_its_digits_and_64_bits)
{
	static const struct {
		const char *text;
		unsigned int base;
		uint64_t value;
		ptrdiff_t n;		/* digits; -1: refused */
	} each[] = {
		{ "0", 10, 0, 1 }, { "12a", 10, 12, 2 },
		{ "12a", 16, 0x12a, 3 },
		{ "fFg", 16, 0xff, 2 }, { "", 10, 0, -1 }, { "-1", 10, 0, -1 },
		{ " 1", 10, 0, -1 }, { "a", 10, 0, -1 }, { ":", 16, 0, -1 },
		{ "18446744073709551615", 10, UINT64_MAX, 20 },
		{ "18446744073709551616", 10, 0, -1 },
		{ "00ffffffffffffffff", 16, UINT64_MAX, 18 },
		{ "10000000000000000", 16, 0, -1 },
	};

	for (size_t i = 0; i < SEAM_ARRAY_SIZE(each); i++) {
		const char *text = each[i].text, *after;
		uint64_t value;

		after = seam_text_number(text, text + strlen(text),
					 each[i].base, &value);
		assert_int_equal(after ? after - text : -1, each[i].n);
		if (after)
			assert_true(value == each[i].value);
	}
}

UNIT_TEST(bytes_are_two_digits_each)
{
	static const char *const refused[] = {
		"0", "0g", "AB", "000102", "-1",
	};
	uint8_t bytes[] = { 0x00, 0xfe }, back[2] = { 1, 1 };
	char text[5];

	assert_string_equal(seam_text_hex(text, bytes, 2), "00fe");
	assert_int_equal(seam_text_unhex(back, 2, text, 4), 2);
	assert_memory_equal(bytes, back, 2);
	assert_int_equal(seam_text_unhex(back, 2, "", 0), 0);
	for (size_t i = 0; i < SEAM_ARRAY_SIZE(refused); i++)
		assert_int_equal(seam_text_unhex(back, 2, refused[i],
						 strlen(refused[i])), 0);
	assert_string_equal(seam_text_hex(text, bytes, 0), "");
}

UNIT_MAIN(NULL, NULL, NULL, NULL)
