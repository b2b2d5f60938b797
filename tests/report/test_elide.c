/* SPDX-License-Identifier: MIT */
/* test_elide.c - names fit their column, and no two read alike */
#include "report/report.h"
#include "report/view.h"

#include <locale.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "../model/built.h"

enum { MAX_NAMES = 400 };

static void check_cut(const char *text, size_t columns, const char *expected)
{
	struct seam_arena arena = { 0 };

	assert_string_equal(seam_elide(&arena, text, columns, true), expected);
	seam_arena_fini(&arena);
}

static void a_name_is_cut_in_its_middle(void **state)
{
	(void)state;
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
	struct seam_arena arena = { 0 };

	(void)state;
	assert_string_equal(seam_elide(&arena, "abcdefghij", 6, false),
			    "ab..ij");
	seam_arena_fini(&arena);
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

	(void)state;
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

	(void)state;
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

		assert_true(seam_elide_columns(seam_elide(&arena, names[i],
				width, true)) <= width);
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

	(void)state;
	assert_int_equal(seam_elide_paths(&arena, paths,
					  SEAM_ARRAY_SIZE(paths)), 0);
	for (size_t i = 0; i < SEAM_ARRAY_SIZE(paths); i++)
		assert_string_equal(paths[i], expected[i]);
	seam_arena_fini(&arena);
}

/* The table of @p on a terminal of @width columns; the caller frees it. */
static char *table(const struct seam_profile *p, unsigned int width,
		   uint32_t by)
{
	static char *text;
	static size_t size;
	struct seam_view view = {
		.width = width, .unicode = true,
		.out = open_memstream(&text, &size),
	};
	struct seam_selection selection;
	struct seam_selected selected;
	struct seam_report report = {
		.profile = p, .selected = &selected, .path = "a", .by = by,
	};

	seam_selection_init(&selection);
	assert_int_equal(seam_selected_init(&selected, p, &selection, NULL), 0);
	assert_int_equal(seam_report_text(&report, &view), 0);
	fclose(view.out);
	seam_selected_fini(&selected);
	return text;
}

static void no_two_rows_of_a_terminal_read_alike(void **state)
{
	static const char prefix[] = "a::very::long::common::prefix::of::all::";
	struct seam_profile p = built();
	char *text, *rest, *lines[200];
	size_t n = 0;

	(void)state;
	for (int i = 0; i < 30; i++) {
		char name[300];

		snprintf(name, sizeof(name), "%s%c%d::and::an::end::of::all@"
			 "/opt/%d/some/where/librarywithalongname.so", prefix,
			 'a' + i % 3, i, i % 2);
		built_add(&p, (uint64_t)i + 1, "app", name);
	}
	text = table(&p, 80, SEAM_BY_SYMBOL);
	for (char *line = strtok_r(text, "\n", &rest); line;
	     line = strtok_r(NULL, "\n", &rest)) {
		assert_true(seam_elide_columns(line) <= 80);
		if (strstr(line, "native"))
			lines[n++] = strstr(line, "native");
	}
	assert_int_equal(n, 30);
	for (size_t i = 0; i < n; i++)
		for (size_t k = 0; k < i; k++)
			assert_string_not_equal(lines[i], lines[k]);
	free(text);
	seam_profile_fini(&p);
}

static void no_two_callees_of_a_tree_read_alike(void **state)
{
	static char text[30][300];
	struct seam_profile p = built();
	struct seam_selection selection;
	struct seam_selected selected;
	struct seam_view view = { .width = 80, .unicode = true };
	struct seam_report report = {
		.profile = &p, .selected = &selected, .path = "a",
	};
	char *all, *rest;
	size_t size, n = 0;

	(void)state;
	for (int i = 0; i < 30; i++) {
		char stack[300];

		snprintf(stack, sizeof(stack), "main;run;a::very::long::common"
			 "::prefix::of::all::%d::and::an::end::of::all::that"
			 "::is::long%s", i, i % 4 ? "" : "_[i]");
		built_add(&p, (uint64_t)i + 1, "app", stack);
	}
	seam_selection_init(&selection);
	assert_int_equal(seam_selected_init(&selected, &p, &selection, NULL),
			 0);
	view.out = open_memstream(&all, &size);
	assert_int_equal(seam_report_tree_text(&report, &view), 0);
	fclose(view.out);
	for (char *line = strtok_r(all, "\n", &rest); line;
	     line = strtok_r(NULL, "\n", &rest)) {
		assert_true(seam_elide_columns(line) <= 80);
		if (strstr(line, "a::very"))
			snprintf(text[n++], sizeof(text[0]), "%s",
				 strstr(line, "a::very"));
	}
	assert_int_equal(n, 30);
	for (size_t i = 0; i < n; i++)
		for (size_t k = 0; k < i; k++)
			assert_string_not_equal(text[i], text[k]);
	free(all);
	seam_selected_fini(&selected);
	seam_profile_fini(&p);
}

static void the_bar_gives_way_before_a_name(void **state)
{
	/* 31 of figures, 8 of the layer, 2 + 6 of the module: 33 are left */
	static const struct { size_t name, bar; } each[] = {
		{ 20, 10 }, { 21, 10 }, { 22, 9 }, { 25, 6 }, { 27, 4 },
		{ 28, 0 }, { 33, 0 },
	};

	(void)state;
	for (size_t i = 0; i < SEAM_ARRAY_SIZE(each); i++) {
		struct seam_profile p = built();
		char name[64], *text;
		size_t n = 0;

		snprintf(name, sizeof(name), "%.*s@abcdef", (int)each[i].name,
			 "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx");
		built_add(&p, 1, "app", name);
		text = table(&p, 80, SEAM_BY_SYMBOL);
		for (char *at = text; (at = strstr(at, "█")); at += 3)
			n++;
		assert_int_equal(n, each[i].bar);
		assert_null(strstr(text, "…"));
		free(text);
		seam_profile_fini(&p);
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
		cmocka_unit_test(no_two_rows_of_a_terminal_read_alike),
		cmocka_unit_test(no_two_callees_of_a_tree_read_alike),
		cmocka_unit_test(the_bar_gives_way_before_a_name),
	};

	setlocale(LC_CTYPE, "C.UTF-8");
	return cmocka_run_group_tests(tests, NULL, NULL);
}
