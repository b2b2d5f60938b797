/* SPDX-License-Identifier: MIT */
/* test_guest_names.c - names of chunks and of functions in them */
#include "model/guest/guest_names.h"
#include "unit.h"

static struct seam_profile profile;
static struct seam_guest_names names;

static int set_up(void **state)
{
	names = (struct seam_guest_names) { .profile = &profile };
	return seam_profile_init(&profile);
}

static int tear_down(void **state)
{
	seam_guest_names_fini(&names);
	seam_profile_fini(&profile);
	return 0;
}

static uint32_t function(const char *chunk, uint64_t line, const char *own)
{
	uint32_t c = seam_guest_chunk(&names, (struct seam_bytes) {
		(const uint8_t *)chunk, strlen(chunk) });

	assert_int_not_equal(c, SEAM_NONE);
	return seam_guest_function(&names, c, line, own);
}

static void check(uint32_t function, const char *name)
{
	const struct seam_function *f = &profile.functions.items[function];

	assert_int_equal(f->layer, SEAM_LAYER_GUEST);
	assert_string_equal(seam_profile_text(&profile, f->name), name);
}

UNIT_TEST(a_function_is_its_chunk_and_line)
{
	check(function("@app.lua", 12, NULL), "app.lua:12");
	check(function("@/srv/init.lua", 0, ""), "/srv/init.lua:0");
	check(function("=stdin", 3, "f"), "f stdin:3");
	assert_int_equal(function("@app.lua", 12, NULL),
			 function("@app.lua", 12, NULL));
	assert_string_equal(seam_profile_path(&profile,
		profile.functions.items[0].module), "app.lua");
}

UNIT_TEST(a_text_is_its_first_line_and_stays_distinct)
{
	check(function("return 1", 0, NULL), "[string \"return 1\"]:0");
	check(function("a\nb", 1, NULL), "[string \"a...\"]:1");
	check(function("a\nc", 1, NULL), "[string \"a...\"]#2:1");
	check(function("a\nb", 2, NULL), "[string \"a...\"]:2");
	check(function("a\r\nd", 1, NULL), "[string \"a...\"]#3:1");
	check(function("", 0, NULL), "[string \"\"]:0");
}

UNIT_TEST(a_long_text_is_cut_between_characters)
{
	/* 47 bytes, and a character of two */
	check(function("01234567890123456789012345678901234567890123456\xc3\xa4x",
		       0, NULL),
	      "[string \"01234567890123456789012345678901234567890123456"
	      "...\"]:0");
}

static const char *name_of(uint32_t function)
{
	return seam_profile_text(&profile,
				 profile.functions.items[function].name);
}

UNIT_TEST(a_trace_is_where_it_started)
{
	uint32_t chunk = seam_guest_chunk(&names, (struct seam_bytes) {
		(const uint8_t *)"@app.lua", 8 });
	uint32_t trace = seam_guest_trace(&names, 3, chunk, 12);

	assert_string_equal(name_of(trace), "TRACE [3] started at app.lua:12");
	assert_int_equal(trace, seam_guest_trace(&names, 3, chunk, 12));
	assert_int_equal(profile.functions.items[trace].layer, SEAM_LAYER_JIT);
	assert_string_equal(name_of(seam_guest_trace(&names, 4, SEAM_NONE, 0)),
			    "TRACE [4]");
}

UNIT_TEST(a_builtin_is_the_vms)
{
	uint32_t id = seam_guest_builtin(&names, "string.gsub", true);

	check(id, "string.gsub");
	assert_string_equal(seam_profile_path(&profile,
		profile.functions.items[id].module), "[vm]");
}

UNIT_MAIN(NULL, NULL, set_up, tear_down)
