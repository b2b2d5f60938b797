/* SPDX-License-Identifier: MIT */
/* test_elide.c - names fit their column, and no two read alike */
#include "report/report.h"
#include "report/view.h"

#include <locale.h>

#include "fixture.h"

enum { MAX_NAMES = 400 };

static void check_cut_as(const char *text, size_t columns, bool unicode,
			 const char *expected)
{
	struct seam_arena arena = { 0 };

	assert_int_equal(seam_elide_all(&arena, &text, 1, columns, unicode), 0);
	assert_string_equal(text, expected);
	seam_arena_fini(&arena);
}

static void check_cut(const char *text, size_t columns, const char *expected)
{
	check_cut_as(text, columns, true, expected);
}

static void a_name_is_cut_in_its_middle(void **state)
{
	check_cut("short", 5, "short");
	check_cut("v8::internal::Heap::Collect", 11, "v8::i…llect");
	check_cut("abcdefgh", 6, "abc…gh");
	check_cut("日本語日本語日本語", 9, "日本…本語");
	check_cut("日本語日本語日本語", 8, "日本…語");
	/* an accent takes no column, and stays with its letter */
	check_cut("e\xcc\x81" "e\xcc\x81" "e\xcc\x81" "e\xcc\x81", 4,
		  "e\xcc\x81" "e\xcc\x81" "e\xcc\x81" "e\xcc\x81");
	check_cut("ae\xcc\x81" "bcdefge\xcc\x81z", 5,
		  "ae\xcc\x81" "…e\xcc\x81z");
}

static void an_ellipsis_is_what_the_locale_can_show(void **state)
{
	check_cut_as("abcdefghij", 6, false, "ab..ij");
}

/* All of @n names, which are distinct, in each width. */
static void check_distinct(const char **names, size_t n)
{
	for (size_t columns = 12; columns < 60; columns += 3) {
		struct seam_arena arena = { 0 };
		const char *shown[MAX_NAMES];
		size_t n_long = 0;

		memcpy(shown, names, n * sizeof(*shown));
		assert_int_equal(seam_elide_all(&arena, shown, n, columns,
						columns % 2), 0);
		for (size_t i = 0; i < n; i++) {
			bool fits = seam_elide_columns(shown[i]) <= columns;

			n_long += !fits;
			assert_true(fits || strcmp(shown[i], names[i]) == 0);
			for (size_t k = 0; k < i; k++)
				if (strcmp(shown[i], shown[k]) == 0 &&
				    strcmp(names[i], names[k]) != 0)
					fail_msg("'%s' and '%s' are both '%s'",
						 names[i], names[k],
						 shown[i]);
		}
		if (columns >= 30)
			assert_true(n_long <= n / 8);
		seam_arena_fini(&arena);
	}
}

static void distinct_names_stay_distinct_in_any_width(void **state)
{
	/* what programs have: templates, overloads, clones, packages */
	static const char *const forms[] = {
		"std::_Rb_tree<int, std::pair<int const, T%d>, std::_Select1st"
		"<std::pair<int const, T%d> > >::_M_insert_unique(int)",
		"v8::internal::compiler::turboshaft::GraphVisitor::Visit%d"
		"(v8::internal::compiler::turboshaft::OpIndex) [clone .isra.%d]",
		"[libQt5WebEngineCore.so.5.15.8+0x%04d00%04d]",
		"github.com/prometheus/prometheus/tsdb/index.(*Reader).Post%d"
		"ings.func%d",
		"core::ops::function::FnOnce::call_once{{vtable.shim}}::h%08d"
		"c0ffee%08d",
		"LuaFunction at /usr/share/lua/5.1/pl/pretty.lua:%d:%d (loop)",
		"漢字漢字漢字漢字漢字漢字漢字漢字漢字漢字漢字%d漢字漢字漢字漢字漢字%d漢字漢字漢字",
		"x…y…%d…z…%d",
	};
	static char text[MAX_NAMES][300];
	const char *names[MAX_NAMES];
	size_t n = 0;

	for (size_t f = 0; f < SEAM_ARRAY_SIZE(forms); f++)
		for (int i = 0; i < 40; i++, n++) {
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
			snprintf(text[n], sizeof(text[n]), forms[f], i / 4, i);
#pragma GCC diagnostic pop
			names[n] = text[n];
		}
	check_distinct(names, n);
}

static void names_of_an_adversary_stay_distinct(void **state)
{
	static char text[MAX_NAMES][300];
	const char *names[MAX_NAMES];
	unsigned int seed = 1;

	/* two letters, so that pieces are alike wherever they are cut */
	for (size_t i = 0; i < MAX_NAMES; i++) {
		size_t size = 20 + (size_t)(rand_r(&seed) % 250);

		for (size_t k = 0; k < size; k++)
			text[i][k] = rand_r(&seed) % 40 ? 'a' : 'b';
		text[i][size] = '\0';
		names[i] = text[i];
	}
	for (size_t i = 0; i < MAX_NAMES; i++) {
		struct seam_arena arena = { 0 };
		size_t width = 12 + i % 40;
		const char *shown = names[i];

		assert_int_equal(seam_elide_all(&arena, &shown, 1, width,
						true), 0);
		assert_true(seam_elide_columns(shown) <= width);
		seam_arena_fini(&arena);
	}
	for (size_t columns = 12; columns < 60; columns += 9) {
		struct seam_arena arena = { 0 };
		const char *shown[MAX_NAMES];

		memcpy(shown, names, sizeof(shown));
		assert_int_equal(seam_elide_all(&arena, shown, MAX_NAMES,
						columns, true), 0);
		for (size_t i = 0; i < MAX_NAMES; i++)
			for (size_t k = 0; k < i; k++)
				assert_false(strcmp(shown[i], shown[k]) == 0 &&
					     strcmp(names[i], names[k]) != 0);
		seam_arena_fini(&arena);
	}
}

static void paths_have_as_many_folders_as_keep_them_apart(void **state)
{
	struct seam_arena arena = { 0 };
	const char *paths[] = {
		"/usr/lib/libc.so.6", "/snap/core/usr/lib/libz.so",
		"/opt/usr/lib/libz.so", "/usr/lib/libc.so.6", "[kernel.kallsyms]",
		"libm.so", "/a/libm.so", "/", "",
	};
	static const char *const expected[] = {
		"libc.so.6", "core/usr/lib/libz.so", "opt/usr/lib/libz.so",
		"libc.so.6", "[kernel.kallsyms]", "libm.so", "a/libm.so", "/",
		"",
	};

	assert_int_equal(seam_elide_paths(&arena, paths,
					  SEAM_ARRAY_SIZE(paths)), 0);
	for (size_t i = 0; i < SEAM_ARRAY_SIZE(paths); i++)
		assert_string_equal(paths[i], expected[i]);
	seam_arena_fini(&arena);
}

/* What @print makes of @p on a terminal of 80 columns; the caller frees it. */
static char *printed(int (*print)(const struct seam_report *report,
				  const struct seam_view *view))
{
	static char *text;
	static size_t size;
	struct seam_view view = {
		.width = 80, .unicode = true,
		.out = open_memstream(&text, &size),
	};
	struct seam_selection selection;
	struct seam_selected selected;
	struct seam_report report = {
		.profile = &p, .selected = &selected, .path = "a",
	};

	seam_selection_init(&selection);
	assert_int_equal(seam_selected_init(&selected, &p, &selection, NULL),
			 0);
	assert_int_equal(print(&report, &view), 0);
	fclose(view.out);
	seam_selected_fini(&selected);
	return text;
}

/* Of the lines of @text, 30 have @key, and from there on each is another. */
static void check_lines(char *text, const char *key)
{
	char *rest, *lines[200];
	size_t n = 0;

	for (char *line = strtok_r(text, "\n", &rest); line;
	     line = strtok_r(NULL, "\n", &rest)) {
		assert_true(seam_elide_columns(line) <= 80);
		if (strstr(line, key))
			lines[n++] = strstr(line, key);
	}
	assert_int_equal(n, 30);
	for (size_t i = 0; i < n; i++)
		for (size_t k = 0; k < i; k++)
			assert_string_not_equal(lines[i], lines[k]);
	free(text);
}

static void no_two_rows_of_a_terminal_read_alike(void **state)
{
	for (int i = 0; i < 30; i++) {
		char name[300];

		snprintf(name, sizeof(name), "a::very::long::common::prefix::"
			 "of::all::%c%d::and::an::end::of::all@/opt/%d/some/"
			 "where/librarywithalongname.so", 'a' + i % 3, i,
			 i % 2);
		built_add(&p, (uint64_t)i + 1, "app", name);
	}
	check_lines(printed(seam_report_text), "native");
}

static void no_two_callees_of_a_tree_read_alike(void **state)
{
	for (int i = 0; i < 30; i++) {
		char stack[300];

		snprintf(stack, sizeof(stack), "main;run;a::very::long::common"
			 "::prefix::of::all::%d::and::an::end::of::all::that"
			 "::is::long%s", i, i % 4 ? "" : "_[i]");
		built_add(&p, (uint64_t)i + 1, "app", stack);
	}
	check_lines(printed(seam_report_tree_text), "a::very");
}

static void the_bar_gives_way_before_a_name(void **state)
{
	/* 31 of figures, 8 of the layer, 2 + 6 of the module: 33 are left */
	static const struct { size_t name, bar; } each[] = {
		{ 20, 10 }, { 21, 10 }, { 22, 9 }, { 25, 6 }, { 27, 4 },
		{ 28, 0 }, { 33, 0 },
	};

	for (size_t i = 0; i < SEAM_ARRAY_SIZE(each); i++) {
		char name[64], *text;
		size_t n = 0;

		snprintf(name, sizeof(name), "%.*s@abcdef", (int)each[i].name,
			 "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx");
		seam_profile_fini(&p);
		p = built();
		built_add(&p, 1, "app", name);
		text = printed(seam_report_text);
		for (char *at = text; (at = strstr(at, "█")); at += 3)
			n++;
		assert_int_equal(n, each[i].bar);
		assert_null(strstr(text, "…"));
		free(text);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_name_is_cut_in_its_middle),
		cmocka_unit_test(an_ellipsis_is_what_the_locale_can_show),
		cmocka_unit_test(distinct_names_stay_distinct_in_any_width),
		cmocka_unit_test(names_of_an_adversary_stay_distinct),
		cmocka_unit_test(paths_have_as_many_folders_as_keep_them_apart),
		TEST(no_two_rows_of_a_terminal_read_alike),
		TEST(no_two_callees_of_a_tree_read_alike),
		TEST(the_bar_gives_way_before_a_name),
	};

	setlocale(LC_CTYPE, "C.UTF-8");
	return cmocka_run_group_tests(tests, NULL, NULL);
}
