/* SPDX-License-Identifier: MIT */
/* test_flamegraph.c - the still picture: widths, order, hostile names */
#include "report/flamegraph.h"

#include "fixture.h"

/* The picture of the last draw(). */
static char *svg;

static void draw(struct seam_flamegraph graph)
{
	static size_t size;
	struct seam_selection selection;
	struct seam_selected selected;
	FILE *out;

	free(svg);
	out = open_memstream(&svg, &size);
	seam_selection_init(&selection);
	assert_int_equal(seam_selected_init(&selected, &p, &selection, NULL),
			 0);
	graph.selected = &selected;
	graph.group = SEAM_GROUP_COMM;
	if (!graph.title)
		graph.title = "test";
	assert_int_equal(seam_flamegraph_write(&graph, out), 0);
	fclose(out);
	seam_selected_fini(&selected);
}

/* The line of the frame with @name; "" when it is not drawn. */
static const char *frame(const char *name)
{
	static char line[1024];
	char key[128];
	const char *at;

	line[0] = '\0';
	snprintf(key, sizeof(key), "<title>%s\n", name);
	at = strstr(svg, key);
	if (at) {
		const char *end = strstr(at, "</g>");

		while (at > svg && at[-1] != '\n')
			at--;
		snprintf(line, sizeof(line), "%.*s", (int)(end - at), at);
	}
	return line;
}

static void has(const char *text, const char *part)
{
	assert_non_null(strstr(text, part));
}

/* Frames begin a line; strstr() would look at all 5 MB each time here. */
static size_t n_frames(void)
{
	static const char start[] = "\n<g class=\"f ";
	size_t n = 0;

	for (const char *at = svg; *at; at++)
		n += *at == '\n' &&
		     strncmp(at, start, sizeof(start) - 1) == 0;
	return n;
}

static void a_frame_is_as_wide_as_its_weight(void **state)
{
	built_put(&p, (struct built_sample) { 0, "app", "main;b",
					      .weight = 1000 });
	built_put(&p, (struct built_sample) { 1, "app", "main;a",
					      .weight = 3000 });
	draw((struct seam_flamegraph) { 0 });
	assert_int_equal(n_frames(), 5);
	/* 1176 px in all, largest first, 0.7 px apart. */
	has(frame("a"), "data-x=\"0\" data-w=\"3000\"");
	has(frame("a"), "x=\"12.00\"");
	has(frame("a"), "width=\"881.30\"");
	has(frame("b"), "data-x=\"3000\" data-w=\"1000\"");
	has(frame("b"), "x=\"894.00\"");
	has(frame("b"), "total 1 sample, 25.00%, 1.00 us\n");
}

static void the_root_is_below_or_above(void **state)
{
	built_add(&p, 0, "app", "main");
	draw((struct seam_flamegraph) { 0 });
	has(frame("all"), " y=\"122\"");
	has(frame("main"), " y=\"84\"");
	draw((struct seam_flamegraph) { .inverted = true });
	has(frame("all"), " y=\"84\"");
	has(frame("main"), " y=\"122\"");
}

static void each_layer_has_its_colour_and_its_word(void **state)
{
	static const struct { const char *name; const char *class; } looks[] = {
		{ "main", "\"f n" }, { "tiny", "\"f i" }, { "lua", "\"f g" },
		{ "trace", "\"f j" }, { "read", "\"f k" }, { "app", "\"f a" },
	};

	built_add(&p, 0, "app", "main;tiny_[i];lua_[g];trace_[j];read_[k]");
	draw((struct seam_flamegraph) { 0 });
	for (size_t i = 0; i < SEAM_ARRAY_SIZE(looks); i++)
		has(frame(looks[i].name), looks[i].class);
	has(svg, ">guest</text>");
	has(svg, "native, inlined · /usr/bin/app");
}

static void the_legend_has_only_what_is_drawn(void **state)
{
	built_add(&p, 0, "app", "main");
	draw((struct seam_flamegraph) { 0 });
	has(svg, ">native</text>");
	assert_null(strstr(svg, ">guest</text>"));
}

/* The script and the style are ours; beyond them no markup may come up. */
static void no_name_becomes_markup(void **state)
{
	static const char evil[] =
		"</title><script>alert(1)</script>'\"&]]>\x1b\xc2\x9b"
		"\xe2\x80\xae\xef\xbf\xbe\xff<b onload='x'>";
	char *after;

	built_add(&p, 0, evil, evil);
	p.functions.items[0].module = built_module(&p, evil);
	p.events.items[0].name = built_string(&p, evil);
	draw((struct seam_flamegraph) { .title = evil });
	after = strstr(svg, "</style>");
	assert_non_null(after);
	assert_null(strstr(after, "<script>alert"));
	assert_null(strstr(after, "<b"));
	assert_null(strstr(after, "onload='"));
	assert_null(strstr(after, "\x1b"));
	assert_null(strstr(after, "\xef\xbf\xbe"));
	assert_null(strstr(after, "\xe2\x80\xae"));
	/* One CDATA section, the script's own. */
	after = strstr(after, "]]>");
	assert_non_null(after);
	assert_string_equal(after, "]]></script>\n</svg>\n");
}

static void a_name_of_64_kib_is_cut_at_a_character(void **state)
{
	char *name = malloc(65537);

	for (size_t i = 0; i < 65536; i += 2)
		memcpy(name + i, "\xce\xbb", 2);
	name[65536] = '\0';
	name[0] = name[1] = 'x';
	built_add(&p, 0, "app", name);
	built_add(&p, 0, "app", name + 1);
	draw((struct seam_flamegraph) { .title = name });
	assert_in_range(strlen(svg), 1000, 40000);
	has(svg, "λ…");
	assert_null(strstr(svg, "\\x"));
	free(name);
}

static void what_is_too_narrow_is_counted(void **state)
{
	built_put(&p, (struct built_sample) { 0, "app", "main;big",
					      .weight = 1000000 });
	built_put(&p, (struct built_sample) { 1, "app", "main;tiny;leaf",
					      .weight = 10 });
	draw((struct seam_flamegraph) { .min_percent = 0.01 });
	assert_string_equal(frame("tiny"), "");
	has(svg, "; 2 narrow frames not drawn");
	draw((struct seam_flamegraph) { 0 });
	assert_string_not_equal(frame("tiny"), "");
	assert_null(strstr(svg, "frames not drawn"));
}

/* What main has called and is not drawn is not its own time. */
static void a_filler_is_where_narrow_frames_were_left_out(void **state)
{
	const char *at;

	for (unsigned int i = 0; i < 60; i++)
		built_add(&p, i, "app", "main;wide");
	for (unsigned int i = 0; i < 30; i++) {
		char stack[32];

		snprintf(stack, sizeof(stack), "main;n%u", i);
		built_add(&p, 100 + i, "app", stack);
	}
	for (unsigned int i = 0; i < 10; i++)
		built_add(&p, 200 + i, "app", "main");
	draw((struct seam_flamegraph) { .min_percent = 5 });
	at = strstr(svg, "<g class=\"rest\" data-w=");
	assert_non_null(at);
	has(at, "<title>30 narrow frames, not drawn\n"
	    "total 30 samples, 30.00%");
	/* it begins where the wide one ends: at 60 % of 1176 */
	has(at, "<rect x=\"717.60\"");
	assert_null(strstr(at + 20, "<g class=\"rest\""));
	draw((struct seam_flamegraph) { .min_percent = 0 });
	assert_null(strstr(svg, "<g class=\"rest\""));
}

/* flamegraph.js reads it: the formats are those of put_list(). */
static void what_is_too_narrow_is_listed_for_searches(void **state)
{
	for (unsigned int i = 0; i < 900; i++)
		built_add(&p, i, "app", "main;wide");
	for (unsigned int i = 0; i < 20; i++)
		built_add(&p, i, "app", "main;a<b;c;d");
	for (unsigned int i = 0; i < 10; i++)
		built_add(&p, i, "app", "main;a<b;e");
	built_add(&p, 0, "app", "main;f;c");
	draw((struct seam_flamegraph) { .min_percent = 5 });
	has(svg, "<g class=\"rest\" data-w=\"31000\""
	    " data-list=\",1:7530,2:4e20,3^2,4:2710^2,5:3e8,2\">");
	has(svg, "<metadata id=\"names\" data-cut=\"0\">"
	    "\na&lt;b\nc\nd\ne\nf</metadata>");
}

/* A search then says "at least". */
static void a_page_of_50_mb_has_no_lists(void **state)
{
	char stack[1001];

	memset(stack, '&', sizeof(stack));
	for (unsigned int i = 0; i < 10500; i++) {
		snprintf(stack + 990, sizeof(stack) - 990, "%010u", i);
		built_add(&p, i, "app", stack);
	}
	draw((struct seam_flamegraph) { .min_percent = 1 });
	has(svg, "<metadata id=\"names\" data-cut=\"1\">"
	    "</metadata>");
	assert_null(strstr(svg, " data-list="));
}

static void the_least_width_is_a_share_of_all_samples(void **state)
{
	for (unsigned int i = 0; i < 56; i++)
		built_add(&p, i, "app", "main;wide");
	for (unsigned int i = 0; i < 4; i++)
		built_add(&p, 60 + i, "app", "main;narrow");
	for (unsigned int i = 0; i < 40; i++)
		built_add(&p, 100 + i, "other", "main");
	draw((struct seam_flamegraph) { .min_percent = 5 });
	assert_true(*frame("wide"));
	assert_false(*frame("narrow"));
}

/* Before a byte of it is written. */
static void a_page_over_50_mb_is_refused(void **state)
{
	struct seam_selection selection;
	struct seam_selected selected;
	struct seam_flamegraph graph = {
		.selected = &selected, .title = "large",
		.group = SEAM_GROUP_COMM, .min_percent = 0,
	};
	char stack[2048];
	char *text = NULL;
	size_t size = 0;
	FILE *out = open_memstream(&text, &size);

	memset(stack, '&', sizeof(stack));
	for (unsigned int i = 0; i < 5100; i++) {
		snprintf(stack + 1990, sizeof(stack) - 1990, "%05u", i);
		memcpy(stack, stack + 1990, 5);
		built_add(&p, i, "app", stack);
	}
	seam_selection_init(&selection);
	assert_int_equal(seam_selected_init(&selected, &p, &selection, NULL),
			 0);
	assert_int_equal(seam_flamegraph_write(&graph, out), 0);
	fflush(out);
	assert_in_range(size, 5000 * 5100, SEAM_FLAMEGRAPH_MAX_BYTES);
	for (unsigned int i = 5100; i < 10500; i++) {
		snprintf(stack + 1990, sizeof(stack) - 1990, "%05u", i);
		memcpy(stack, stack + 1990, 5);
		built_add(&p, i, "app", stack);
	}
	rewind(out);
	fflush(out);
	seam_selected_fini(&selected);
	assert_int_equal(seam_selected_init(&selected, &p, &selection, NULL),
			 0);
	assert_int_equal(seam_flamegraph_write(&graph, out), -EFBIG);
	assert_int_equal(ftell(out), 0);
	fclose(out);
	free(text);
	seam_selected_fini(&selected);
}

/* Not that of a module's code without a name: that has its layer. */
static void the_unknown_has_a_colour_of_its_own(void **state)
{
	built_add(&p, 1, "app", "main;[unknown];[app+0x12]");
	draw((struct seam_flamegraph) { .min_percent = 0 });
	has(frame("[unknown]"), "class=\"f u");
	has(frame("[app+0x12]"), "class=\"f n");
	has(svg, ">unknown</text>");
}

/* 8,000 equal stacks of three: more frames than are drawn. */
static void a_picture_has_a_bounded_number_of_frames(void **state)
{
	for (int i = 0; i < 8000; i++) {
		char stack[32];

		snprintf(stack, sizeof(stack), "f%d;g;h", i);
		built_add(&p, (uint64_t)i, "app", stack);
	}
	draw((struct seam_flamegraph) { .min_percent = 0 });
	assert_int_equal(n_frames(), 24002);
	draw((struct seam_flamegraph) { .min_percent = -1 });
	assert_int_equal(n_frames(), SEAM_FLAMEGRAPH_FRAMES);
	has(svg, "; 4,002 narrow frames not drawn");
}

static void loss_is_in_the_picture(void **state)
{
	built_add(&p, 0, "app", "main");
	seam_profile_lost(&p, "ring full", 0, 3, 0);
	draw((struct seam_flamegraph) { 0 });
	has(svg, "class=\"sub lossy\"");
	has(svg, "3 records lost (75.00%)");
}

static void several_events_are_drawn_by_samples(void **state)
{
	built_add(&p, 0, "app", "main");
	built_put(&p, (struct built_sample) { 1, "app", "main",
		.event = "faults", .weight = 1000000 });
	draw((struct seam_flamegraph) { 0 });
	has(frame("main"), "data-w=\"2\"");
}

static void an_empty_profile_is_a_picture_too(void **state)
{
	draw((struct seam_flamegraph) { .min_percent = 1 });
	assert_int_equal(n_frames(), 1);
	assert_null(strstr(svg, "\"nan"));
	assert_null(strstr(svg, "\"inf"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_frame_is_as_wide_as_its_weight),
		TEST(the_root_is_below_or_above),
		TEST(each_layer_has_its_colour_and_its_word),
		TEST(the_legend_has_only_what_is_drawn),
		TEST(no_name_becomes_markup),
		TEST(a_name_of_64_kib_is_cut_at_a_character),
		TEST(what_is_too_narrow_is_counted),
		TEST(what_is_too_narrow_is_listed_for_searches),
		TEST(a_page_of_50_mb_has_no_lists),
		TEST(a_filler_is_where_narrow_frames_were_left_out),
		TEST(the_least_width_is_a_share_of_all_samples),
		TEST(a_page_over_50_mb_is_refused),
		TEST(the_unknown_has_a_colour_of_its_own),
		TEST(a_picture_has_a_bounded_number_of_frames),
		TEST(loss_is_in_the_picture),
		TEST(several_events_are_drawn_by_samples),
		TEST(an_empty_profile_is_a_picture_too),
	};

	return cmocka_run_group_tests_name("flamegraph", tests, NULL, NULL);
}
