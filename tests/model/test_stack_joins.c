/* SPDX-License-Identifier: MIT */
/* test_stack_joins.c - cut stacks get callers that no other sample denies */
#include "model/perf/stack_joins.h"

#include "loaded.h"
#include "wire/perf/unwound.h"

enum { PID = 7, CODE = 0x400000, STACK = 0x7f0000 };

/* -- samples ------------------------------------------------------------ */

static struct bytes data;
static uint64_t now;

/* Add a sample of thread @tid with the @n words at @chain, and RAW data. */
static void put_stack(int32_t tid, const uint64_t *chain, size_t n,
		      const uint8_t *raw, size_t n_raw)
{
	size_t at = begin_record(&data, PERF_RECORD_SAMPLE,
				 PERF_RECORD_MISC_USER);

	put_u64(&data, TEST_ID_1);
	put_u64(&data, chain[1]);
	put_u32(&data, PID);
	put_u32(&data, (uint32_t)tid);
	put_u64(&data, ++now);
	put_u64(&data, 1);
	put_u64(&data, 250000);
	put_u64(&data, n);
	for (size_t i = 0; i < n; i++)
		put_u64(&data, chain[i]);
	put(&data, raw, n_raw);
	end_record(&data, at);
}

/*
 * Add a sample of thread @tid.  @frames has a letter for each frame, leaf
 * first; that of letter F at place i of the stack from its outer end has the
 * CFA 16 * i below STACK: equal outer ends are at equal places.  The outermost
 * @n_hidden are not in the sample.
 */
static void sample_of(int32_t tid, const char *frames, size_t n_hidden,
		      enum seam_stack_end end)
{
	uint64_t chain[64] = { USER }, cfas[64];
	uint8_t raw[SEAM_UNWOUND_MAX_BYTES];
	size_t n = strlen(frames), n_cfas = 0, shown = n - n_hidden;

	for (size_t i = 0; i < shown; i++)
		chain[1 + i] = CODE + 0x100 * (uint64_t)frames[i] + 1;
	for (size_t i = 0; i < shown && i + 1 < n; i++)
		cfas[n_cfas++] = STACK - 16 * (uint64_t)(n - i);
	put_stack(tid, chain, 1 + shown, raw,
		  seam_unwound_write(raw, (uint8_t)end, shown, cfas, n_cfas));
}

static void whole(const char *frames)
{
	sample_of(PID, frames, 0, SEAM_STACK_COMPLETE);
}

/* Of @frames only @n were copied. */
static void cut(const char *frames, size_t n)
{
	sample_of(PID, frames, strlen(frames) - n, SEAM_STACK_TRUNCATED);
}

static void map(const char *name)
{
	put_mmap2(&data, PID, CODE, 0x100000, 0, name, ++now);
}

static int set_up(void **state)
{
	data = (struct bytes) { .endian = SEAM_LITTLE };
	now = 1;
	put_comm(&data, PID, PID, "test", true, 1);
	map("/nowhere/a");
	return 0;
}

/* -- their stacks ------------------------------------------------------- */

static void load_as(struct loaded *l, bool no_joins)
{
	struct bytes made = make_file(&data);

	for (size_t i = 0; i < 2; i++)
		set_n(&made, 120 + 144 * i + 24,
		      TEST_SAMPLE_TYPE | PERF_SAMPLE_RAW, 8);
	free(data.data);
	load_made(l, made, (struct seam_perf_input) { .no_joins = no_joins });
}

static void load(struct loaded *l)
{
	load_as(l, false);
}

/* The letters of sample @i, "|" for the frame [joined]. */
static const char *letters(const struct loaded *l, size_t i)
{
	static char text[64];
	const struct seam_profile *p = &l->profile;
	size_t n = 0;

	for (uint32_t s = p->samples.stack[i]; s; s = p->stacks.items[s].parent)
	{
		const struct seam_frame *f =
			&p->frames.items[p->stacks.items[s].frame];
		const char *name = seam_profile_text(p,
			p->functions.items[f->function].name);

		text[n++] = strcmp(name, "[joined]") == 0 ? '|' :
			    (char)(f->addr >> 8);
	}
	text[n] = '\0';
	return text;
}

/* What a test has loaded. */
static struct loaded got;

static int tear_down(void **state)
{
	if (got.file.data)
		unload(&got);
	return 0;
}

/* Whether the last sample of those added is @expected. */
static void expect_last(const char *expected)
{
	struct loaded l;

	load(&l);
	assert_string_equal(letters(&l, l.profile.samples.n - 1), expected);
	unload(&l);
}

/* -- tests -------------------------------------------------------------- */

UNIT_TEST(a_cut_stack_goes_on_to_the_root)
{
	whole("lCBA");
	cut("ldCBA", 3);
	whole("mCBA");
	load(&got);
	assert_string_equal(letters(&got, 0), "lCBA");
	assert_string_equal(letters(&got, 1), "ldC|BA");
	/* which is not complete */
	assert_int_equal(ended(&got, SEAM_STACK_COMPLETE), 2);
	assert_int_equal(ended(&got, SEAM_STACK_JOINED), 1);
	assert_int_equal(ended(&got, SEAM_STACK_TRUNCATED), 0);
}

UNIT_TEST(it_stays_cut_on_request)
{
	whole("lCBA");
	whole("mCBA");
	cut("ldCBA", 3);
	load_as(&got, true);
	assert_string_equal(letters(&got, 2), "ldC");
	assert_int_equal(ended(&got, SEAM_STACK_JOINED), 0);
	assert_int_equal(ended(&got, SEAM_STACK_TRUNCATED), 1);
}

/* Whole stacks, and "STACK/N" of which N frames were copied. */
UNIT_TEST(callers_are_known_by_two_samples_at_one_place)
{
	static const struct { const char *samples, *last; } cases[] = {
		{ "lCBA ldCBA/3", "ldC" },
		{ "lBA lBA lDCBA/4 mDCBA/4 lEDCBA/3", "lED|CBA" },
		/* never half: to the entry of the thread, or as it was cut */
		{ "lDCBA/4 mDCBA/4 lEDCBA/3", "lED" },
		/* C at another depth is another frame */
		{ "lCBA mCBA lCXBA/2", "lC" },
	};

	for (size_t i = 0; i < SEAM_ARRAY_SIZE(cases); i++) {
		char text[64], *rest = text, *one;

		if (i)
			set_up(state);
		snprintf(text, sizeof(text), "%s", cases[i].samples);
		while ((one = strtok_r(rest, " ", &rest))) {
			char *n = strchr(one, '/');

			if (n)
				*n = '\0';
			sample_of(PID, one, n ? strlen(one) -
				  (size_t)(n[1] - '0') : 0, n ?
				  SEAM_STACK_TRUNCATED : SEAM_STACK_COMPLETE);
		}
		expect_last(cases[i].last);
	}
}

/* As a recursion has, at one place or another. */
UNIT_TEST(code_with_several_callers_needs_more_samples)
{
	for (int i = 1; i < SEAM_STACK_JOIN_MORE_SAMPLES; i++)
		whole("lRRBA");
	cut("lRRRBA", 3);
	expect_last("lRR");
	set_up(NULL);
	for (int i = 0; i < SEAM_STACK_JOIN_MORE_SAMPLES; i++)
		whole("lRRBA");
	cut("lRRRBA", 3);
	expect_last("lRR|RBA");
}

/* Of two callers of a recursion, which one it was is not known. */
UNIT_TEST(a_second_caller_forbids_the_first)
{
	for (int i = 0; i < 100; i++)
		whole("lRRBA");
	whole("lRRCA");
	cut("lRRRBA", 3);
	expect_last("lRR");
}

/* Wherever in the recording it is, and if that sample is cut too. */
UNIT_TEST(a_cut_stack_can_be_the_one_that_forbids)
{
	cut("lRRBA", 4);
	for (int i = 0; i < 100; i++)
		whole("lRRCA");
	cut("lRRRCA", 4);
	load(&got);
	assert_string_equal(letters(&got, 101), "lRRR");
}

UNIT_TEST(threads_have_nothing_in_common)
{
	whole("lCBA");
	whole("mCBA");
	sample_of(PID + 1, "ldCBA", 2, SEAM_STACK_TRUNCATED);
	expect_last("ldC");
}

UNIT_TEST(another_program_begins_anew)
{
	whole("lCBA");
	whole("mCBA");
	put_comm(&data, PID, PID, "next", true, ++now);
	map("/nowhere/a");
	cut("ldCBA", 3);
	load(&got);
	assert_string_equal(letters(&got, 2), "ldC");
}

UNIT_TEST(another_mapping_at_the_address_begins_anew)
{
	whole("lCBA");
	whole("mCBA");
	cut("ldCBA", 3);
	map("/nowhere/b");
	/* other callers there are no contradiction */
	whole("lCXA");
	cut("ldCBA", 3);
	load(&got);
	assert_string_equal(letters(&got, 2), "ldC|BA");
	assert_string_equal(letters(&got, 4), "ldC");
}

/* What a signal interrupted has a CFA, and an address that is no return. */
UNIT_TEST(a_stack_that_a_signal_left_is_joined)
{
	whole("CBA");
	whole("CBA");
	sample_of(PID, "lhCBA", 2, SEAM_STACK_OTHER_STACK);
	expect_last("lhC|BA");
}

UNIT_TEST(other_ends_are_not_joined)
{
	whole("lCBA");
	whole("mCBA");
	sample_of(PID, "ldCBA", 2, SEAM_STACK_WITHOUT_CFI);
	expect_last("ldC");
}

/* Hostile: callers in a circle. */
UNIT_TEST(a_circle_of_callers_ends)
{
	uint64_t chain[] = { USER, CODE + 0x4301, CODE + 0x4201,
			     CODE + 0x4301, CODE + 0x4201 };
	const uint64_t cfas[] = { STACK, STACK + 16, STACK, STACK + 16 };
	uint8_t raw[SEAM_UNWOUND_MAX_BYTES];

	for (int i = 0; i < 3; i++)
		put_stack(PID, chain, 5, raw,
			  seam_unwound_write(raw, SEAM_STACK_TRUNCATED, 4, cfas,
					     4));
	load(&got);
	assert_string_equal(letters(&got, 2), "CBCB");
}

/* RAW data of more frames than there are, or that break the format. */
UNIT_TEST(a_record_that_does_not_fit_its_chain_is_not_used)
{
	static const uint8_t bad[] = {
		12, 0, 0, 0, 'S', 'u', 1, SEAM_STACK_TRUNCATED,
		3, 200, 0x80, 0x80, 0, 0, 0, 0,
	};
	const uint64_t chain[] = { USER, CODE + 0x6c01 };
	const uint64_t cfas[] = { STACK - 80, STACK - 64, STACK - 48 };
	uint8_t raw[SEAM_UNWOUND_MAX_BYTES];

	whole("lCBA");
	whole("mCBA");
	put_stack(PID, chain, 2, raw,
		  seam_unwound_write(raw, SEAM_STACK_TRUNCATED, 3, cfas, 3));
	put_stack(PID, chain, 2, bad, sizeof(bad));
	load(&got);
	assert_string_equal(letters(&got, 2), "l");
	assert_string_equal(letters(&got, 3), "l");
	assert_int_equal(ended(&got, SEAM_STACK_TRUNCATED), 2);
}

/* The counts are those of what is selected. */
UNIT_TEST(ends_are_counted_for_the_selection)
{
	struct seam_selection selection;
	struct seam_selected selected;
	struct seam_stack_counts counts;
	struct loaded l;

	whole("lCBA");
	whole("lCBA");
	sample_of(PID + 1, "lCBA", 2, SEAM_STACK_WITHOUT_CFI);
	sample_of(PID + 1, "l", 0, SEAM_STACK_ABSENT);
	load(&l);
	seam_selection_init(&selection);
	selection.thread = "8";
	assert_int_equal(seam_selected_init(&selected, &l.profile, &selection,
					    NULL), 0);
	assert_int_equal(seam_stack_ends_count(&l.profile, &selected, &counts),
			 0);
	assert_int_equal(counts.n_ended[SEAM_STACK_COMPLETE], 0);
	assert_int_equal(counts.n_ended[SEAM_STACK_WITHOUT_CFI], 1);
	assert_int_equal(counts.n_empty, 1);
	assert_int_equal(counts.n_modules, 1);
	assert_string_equal(counts.modules[0].path, "/nowhere/a");
	assert_int_equal(ended(&l, SEAM_STACK_COMPLETE), 2);
	seam_selected_fini(&selected);
	unload(&l);
}

UNIT_MAIN(NULL, NULL, set_up, tear_down)
