/* SPDX-License-Identifier: MIT */
/* test_folded.c - lines of folded stacks: counts, order, hostile names */
#include "export/exporter.h"

#include "../model/built.h"
#include "unit.h"

static char *folded_of(const struct seam_profile *p, bool by_weight,
		       unsigned int layers)
{
	struct seam_selection selection;
	struct seam_selected s;
	static char *text;
	static size_t size;
	FILE *out = open_memstream(&text, &size);

	seam_selection_init(&selection);
	if (layers)
		selection.layers = layers;
	assert_int_equal(seam_selected_init(&s, p, &selection, NULL), 0);
	assert_int_equal(seam_write_folded(&(struct seam_export) {
		.out = out, .selected = &s, .group = SEAM_GROUP_COMM,
		.by_weight = by_weight }, NULL), 0);
	fclose(out);
	seam_selected_fini(&s);
	return text;
}

static void check(struct seam_profile *p, const char *expected)
{
	char *text = folded_of(p, false, 0);

	assert_string_equal(text, expected);
	free(text);
	seam_profile_fini(p);
}

UNIT_TEST(each_layer_has_its_ending)
{
	struct seam_profile p = built();

	built_add(&p, 0, "app", "main;tiny_[i];lua_[g];trace_[j];read_[k]");
	built_add(&p, 1, "app", "main;tiny_[i];lua_[g];trace_[j];read_[k]");
	check(&p, "app;main;tiny_[i];lua_[g];trace_[j];read_[k] 2\n");
}

UNIT_TEST(lines_are_sorted_by_their_bytes)
{
	static const char *const stacks[] = {
		"b", "a", "a;x", "a-b;x", "a b;x", "ab", "a 1;x", "a:b",
		"\xc3\xa4;x", "a  z;x", "a -;x", "a;x;y", "a 9", "A",
	};
	struct seam_profile p = built();
	char *text, *line, *last = NULL;
	size_t n = 0;

	for (size_t i = 0; i < SEAM_ARRAY_SIZE(stacks); i++) {
		built_add(&p, i, "z", stacks[i]);
		built_add(&p, i, "a thread", stacks[i]);
	}
	text = folded_of(&p, false, 0);
	for (line = strchr(text, '\n'); line; line = strchr(line + 1, '\n')) {
		*line = '\0';
		n++;
	}
	assert_int_equal(n, 2 * SEAM_ARRAY_SIZE(stacks));
	for (line = text; n--; last = line, line += strlen(line) + 1)
		if (last)
			assert_true(strcmp(last, line) < 0);
	free(text);
	seam_profile_fini(&p);
}

UNIT_TEST(names_that_show_alike_are_one_line)
{
	struct seam_profile p = built();

	built_add(&p, 0, "a:b", "main@/lib/one.so;f");
	built_add(&p, 1, "a;b", "main@/lib/two.so;f");
	check(&p, "a:b;main;f 2\n");
}

UNIT_TEST(no_name_breaks_a_line_or_a_terminal)
{
	struct seam_profile p = built();

	built_add(&p, 0, "a\nb;c", "x\x1b[2J;y\xe2\x80\xae" "e;z\xc2\x9b");
	check(&p, "a\\x0ab:c;x\\x1b[2J;y\\u202ee;z\\x9b 1\n");
}

UNIT_TEST(a_name_of_64_kib_is_whole)
{
	struct seam_profile p = built();
	char *name = malloc(65537), *text;

	memset(name, '\x01', 65536);
	name[65536] = '\0';
	built_add(&p, 0, "a", name);
	text = folded_of(&p, false, 0);
	assert_int_equal(strlen(text), 2 + 4 * 65536 + 3);
	free(text);
	free(name);
	seam_profile_fini(&p);
}

UNIT_TEST(a_sample_without_a_stack_is_its_thread)
{
	struct seam_profile p = built();

	built_add(&p, 0, "app", "");
	built_add(&p, 0, "app", "main");
	check(&p, "app 1\napp;main 1\n");
}

UNIT_TEST(weights_are_added_up)
{
	struct seam_profile p = built();
	char *text;

	built_put(&p, (struct built_sample) { 0, "a", "f", .weight = 7 });
	built_put(&p, (struct built_sample) { 0, "a", "f", .weight = 8 });
	text = folded_of(&p, true, 0);
	assert_string_equal(text, "a;f 15\n");
	free(text);
	seam_profile_fini(&p);
}

UNIT_TEST(only_what_is_selected_is_written)
{
	struct seam_profile p = built();
	char *text;

	built_add(&p, 0, "a", "main;read_[k];copy_[k]");
	built_add(&p, 0, "a", "main;write_[k]");
	built_add(&p, 0, "a", "idle_[k]");
	text = folded_of(&p, false, 1 << SEAM_LAYER_NATIVE);
	assert_string_equal(text, "a;main 2\n");
	free(text);
	seam_profile_fini(&p);
}

UNIT_TEST(an_empty_profile_is_no_line)
{
	struct seam_profile p = built();

	check(&p, "");
}

static ssize_t count_bytes(void *n_bytes, const char *buf, size_t size)
{
	(void)buf;
	*(uint64_t *)n_bytes += size;
	return (ssize_t)size;
}

/*
 * Few samples of deep stacks are long lines: the text would be 4.9 GiB, of a
 * profile of 32 MiB.
 */
UNIT_TEST(text_beyond_its_limit_is_refused)
{
	enum { DEPTH = 32, NAME = 1 << 20, LEAVES = 156 };
	struct seam_profile p = built();
	struct seam_selection selection;
	struct seam_selected selected;
	uint64_t n_bytes = 0;
	FILE *out = fopencookie(&n_bytes, "w", (cookie_io_functions_t) {
		.write = count_bytes,
	});
	char *name = malloc(NAME + 1);
	uint32_t stack = 0;

	memset(name, 'x', NAME);
	name[NAME] = '\0';
	for (char i = 0; i < DEPTH; i++) {
		name[0] = (char)('A' + i);
		stack = seam_profile_stack(&p, stack, built_frame(&p, name));
	}
	free(name);
	built_leaves(&p, stack, LEAVES);
	seam_selection_init(&selection);
	assert_int_equal(seam_selected_init(&selected, &p, &selection, NULL),
			 0);
	assert_int_equal(seam_write_folded(&(struct seam_export) {
		.out = out, .selected = &selected,
		.group = SEAM_GROUP_COMM }, NULL), -EFBIG);
	fclose(out);
	assert_in_range(n_bytes, SEAM_FOLDED_MAX_BYTES,
			SEAM_FOLDED_MAX_BYTES + DEPTH * (NAME + 1) + 64);
	seam_selected_fini(&selected);
	seam_profile_fini(&p);
}

UNIT_MAIN(NULL, NULL, NULL, NULL)
