/* SPDX-License-Identifier: MIT */
/*
 * test_guest_samples.c - guest records of a recording become merged stacks
 *
 * Files are made by hand, so that every answer is known.  Their binaries do not
 * exist: a native address shows as [module+0x...].
 */
#include "../guest_file.h"
#include "loaded.h"
#include "model/guest/guest_merge.h"

enum { PID = 7, TABLE = 70, NO_SYMBOL = 9 };

/* The records of a test, and what was loaded from them. */
static struct bytes b = { .endian = SEAM_LITTLE };
static struct loaded got;

static void load_as(bool has_clock, bool by_record)
{
	load_made(&got, make_guest_file(&b, has_clock),
		  (struct seam_perf_input) { .by_record = by_record });
}

static void load(void)
{
	load_as(true, false);
}

static int drop(void **state)
{
	unload(&got);
	got = (struct loaded) { 0 };
	free(b.data);
	b = (struct bytes) { .endian = SEAM_LITTLE };
	return 0;
}

/* "root;...;leaf" of sample @i, with the letters of layers that are not C. */
static const char *merged_text(size_t i)
{
	static const char *const suffixes[] = { "_[k]", "", "_[j]", "_[g]" };
	static char text[4000];
	char before[2000];

	text[0] = '\0';
	for (uint32_t s = got.profile.samples.stack[i]; s != 0;
	     s = got.profile.stacks.items[s].parent) {
		const struct seam_function *f =
			seam_profile_leaf(&got.profile, s);

		snprintf(before, sizeof(before), "%.1999s", text);
		snprintf(text, sizeof(text), "%s%s%s%s",
			 seam_profile_text(&got.profile, f->name),
			 suffixes[f->layer], *before ? ";" : "", before);
	}
	return text;
}

static bool has_note(const char *text)
{
	for (size_t i = 0; i < got.profile.notes.n; i++)
		if (strstr(seam_profile_text(&got.profile,
					     got.profile.notes.items[i]), text))
			return true;
	return false;
}

static const struct seam_guest_head head = {
	.adapter = SEAM_GUEST_LUAJIT, .table = TABLE,
	.vmstate = SEAM_VMSTATE_LFUNC, .n_segments = 1, .n_ticks = 2,
	.vm = 0x41,
};

static void put_functions(int32_t pid, uint32_t table)
{
	put_symbol(&b, pid, 5, (struct seam_guest_symbol) {
		.table = table, .id = 1, .line = 12 }, "@app.lua",
		"lua_payload");
	put_symbol(&b, pid, 5, (struct seam_guest_symbol) {
		.table = table, .id = 2 }, "@app.lua", "");
	put_symbol(&b, pid, 5, (struct seam_guest_symbol) {
		.table = table, .id = 3, .kind = SEAM_GUEST_FRAME_BUILTIN,
		.address = 44 }, "", "string.gsub");
	put_symbol(&b, pid, 5, (struct seam_guest_symbol) {
		.table = table, .id = 4, .kind = SEAM_GUEST_FRAME_TRACE,
		.address = 6, .start = 1, .line = 13 }, "", "");
	put_symbol(&b, pid, 5, (struct seam_guest_symbol) {
		.table = table, .id = 5, .kind = SEAM_GUEST_FRAME_C,
		.address = 0x401500 }, "", "os_exit");
}

static void put_program(int32_t pid)
{
	put_comm(&b, pid, pid, "app", true, 1);
	put_mmap2(&b, pid, 0x400000, 0x10000, 0, "/bin/app", 2);
}

static void put_app(void)
{
	put_program(PID);
	put_functions(PID, TABLE);
}

static const uint64_t chain[] = {
	/* the last call is the last instruction of the mapping */
	USER, 0x401000, 0x402010, 0x403020, 0x404030, 0x405040, 0x410000,
};

/* Whatever the nesting: native code, the guest, native code, the guest. */
UNIT_TEST(guest_frames_replace_the_frames_of_their_vm)
{
	static const struct seam_guest_segment segments[] = {
		{ .join = 1, .n_replaced = 1, .n_frames = 2 },
		{ .join = 3, .n_replaced = 2, .n_frames = 1 },
	};
	static const struct seam_guest_frame frames[] = {
		{ 3, SEAM_GUEST_FRAME_BUILTIN << 28 }, { 1, 14 }, { 2, 30 },
	};
	struct guest_instant i = {
		PID, PID, 100, 2000000, chain, 7, head, segments, frames,
	};

	put_app();
	i.head.n_segments = 2;
	put_guest(&b, &i);
	load();
	/* return addresses are looked up a byte earlier */
	assert_string_equal(merged_text(0), "[app+0x10000];app.lua:0_[g];"
		"[app+0x3020];lua_payload app.lua:12_[g];string.gsub_[g];"
		"[app+0x1000]");
	assert_int_equal(got.profile.samples.n, 1);
	assert_int_equal(got.profile.samples.vmstate[0], SEAM_VMSTATE_LFUNC);
}

/* Position of the segment, frames; what is expected. */
static void check_one(struct seam_guest_segment segment, const uint64_t *words,
		      size_t n_words, const char *stack)
{
	static const struct seam_guest_frame frames[] = {
		{ 4, SEAM_GUEST_FRAME_TRACE << 28 }, { 1, 14 },
	};
	struct guest_instant i = {
		PID, PID, 100, 2000000, words, n_words, head, &segment, frames,
	};

	put_app();
	put_guest(&b, &i);
	load();
	assert_string_equal(merged_text(0), stack);
	drop(NULL);
}

UNIT_TEST(a_segment_may_be_anywhere_in_the_stack)
{
	static const uint64_t kernel[] = {
		KERNEL, 0xffffffff81000010, USER, 0x401000, 0x402010,
	};
	static const char lua[] = "lua_payload app.lua:12_[g];"
				  "TRACE [6] started at app.lua:13_[j]";
	char text[200];

	snprintf(text, sizeof(text), "[app+0x2010];%s", lua);
	check_one((struct seam_guest_segment) { 0, 1, 2, 0, 0 }, chain, 3,
		  text);
	snprintf(text, sizeof(text), "%s;[app+0x1000]", lua);
	check_one((struct seam_guest_segment) { 1, 1, 2, 0, 0 }, chain, 3,
		  text);
	snprintf(text, sizeof(text), "[app+0x2010];[app+0x1000];%s", lua);
	check_one((struct seam_guest_segment) { 0, 0, 2, 0, 0 }, chain, 3,
		  text);
	snprintf(text, sizeof(text), "%s;[app+0x2010];[app+0x1000]", lua);
	check_one((struct seam_guest_segment) {
		SEAM_GUEST_NO_JOIN, 0, 2, 0, 0 }, chain, 3, text);
	snprintf(text, sizeof(text), "[app+0x2010];%s;"
		 "[kernel.kallsyms+0xffffffff81000010]_[k]", lua);
	check_one((struct seam_guest_segment) { 0, 1, 2, 0, 0 }, kernel, 5,
		  text);
	/* all of the stack, and a stack without host */
	check_one((struct seam_guest_segment) { 0, 2, 2, 0, 0 }, chain, 3, lua);
	check_one((struct seam_guest_segment) { 0, 0, 2, 0, 0 }, chain, 1, lua);
	/* an empty segment leaves the frame of the VM */
	check_one((struct seam_guest_segment) { 0, 1, 0, 0, 0 }, chain, 3,
		  "[app+0x2010];[app+0x1000]");
}

/* The word before the host's address after a segment from @join on. */
static uint64_t marker_after(uint16_t join, uint16_t n_replaced)
{
	static const struct seam_guest_frame frame = { 1, 14 };
	const struct seam_guest_segment segment = { join, n_replaced, 1, 0, 0 };
	struct seam_guest_head one = head;
	uint8_t raw[64];
	struct seam_guest_reader reader;
	struct seam_guest_words words = { 0 };
	uint64_t marker;

	one.n_segments = 1;
	assert_int_equal(seam_guest_read_sample((struct seam_bytes) { raw,
		seam_guest_encode_sample(raw, sizeof(raw), &one, &segment,
					 &frame) }, &reader, NULL), 0);
	assert_int_equal(seam_guest_merge(reader, chain, 3, &words), 0);
	assert_int_equal(words.items[words.n - 1], chain[2]);
	marker = words.items[words.n - (join + n_replaced ? 2 : 3)];
	free(words.items);
	return marker;
}

UNIT_TEST(an_address_after_a_segment_is_that_of_a_call_or_the_leaf)
{
	assert_int_equal(marker_after(0, 0), USER);
	assert_int_equal(marker_after(0, 1), SEAM_GUEST_CALLER);
	assert_int_equal(marker_after(1, 0), SEAM_GUEST_CALLER);
}

UNIT_TEST(a_c_function_is_shown_as_the_host_shows_it)
{
	static const struct seam_guest_segment segment = { 1, 1, 2, 0, 0 };
	static const struct seam_guest_frame frames[] = {
		{ 5, (uint32_t)SEAM_GUEST_FRAME_C << 28 }, { 1, 14 },
	};
	struct guest_instant i = {
		PID, PID, 100, 1, chain, 3, head, &segment, frames,
	};

	put_app();
	put_guest(&b, &i);
	load();
	assert_string_equal(merged_text(0), "lua_payload app.lua:12_[g];"
			    "[app+0x1500];[app+0x1000]");
}

UNIT_TEST(the_address_of_another_symbol_is_no_c_function)
{
	static const struct seam_guest_segment segment = { 1, 1, 1, 0, 0 };
	static const struct seam_guest_frame frame = {
		3, (uint32_t)SEAM_GUEST_FRAME_C << 28,
	};
	struct guest_instant i = {
		PID, PID, 100, 1, chain, 3, head, &segment, &frame,
	};

	put_app();
	put_guest(&b, &i);
	load();
	assert_string_equal(merged_text(0), "string.gsub_[g];[app+0x1000]");
}

static const struct seam_guest_segment leaf = { 0, 1, 1, 0, 0 };

/* One sample of one function, @id of @table, in process @pid. */
static void put_function(int32_t pid, uint32_t table, uint32_t id)
{
	struct seam_guest_frame frame = { id, 0 };
	struct guest_instant i = {
		pid, pid, 100, 1000000, chain, 3, head, &leaf, &frame,
	};

	i.head.table = table;
	put_guest(&b, &i);
}

UNIT_TEST(ids_are_of_one_process_and_table_in_any_order)
{
	put_function(PID, TABLE, 1);
	put_function(PID, TABLE + 1, 1);
	put_function(PID + 1, TABLE, 1);
	put_symbol(&b, PID + 1, 9, (struct seam_guest_symbol) {
		.table = TABLE, .id = 1, .line = 3 }, "@child.lua", "");
	put_symbol(&b, PID, 9, (struct seam_guest_symbol) {
		.table = TABLE + 1, .id = 1, .line = 2 }, "@exec.lua", "");
	put_symbol(&b, PID, 9, (struct seam_guest_symbol) {
		.table = TABLE, .id = 1, .line = 1 }, "@app.lua", "");
	/* announced again, with a name, and then with another */
	put_symbol(&b, PID, 9, (struct seam_guest_symbol) {
		.table = TABLE, .id = 1, .line = 1 }, "@app.lua", "f");
	put_symbol(&b, PID, 9, (struct seam_guest_symbol) {
		.table = TABLE, .id = 1, .line = 1 }, "@app.lua", "g");
	put_program(PID);
	put_program(PID + 1);
	load();
	assert_string_equal(merged_text(0), "[app+0x2010];f app.lua:1_[g]");
	assert_string_equal(merged_text(1), "[app+0x2010];exec.lua:2_[g]");
	assert_string_equal(merged_text(2), "[app+0x2010];child.lua:3_[g]");
	assert_false(has_note("symbol records"));
}

UNIT_TEST(a_function_whose_symbol_was_lost_is_still_one)
{
	static const struct seam_guest_frame builtin = {
		NO_SYMBOL + 2, SEAM_GUEST_FRAME_BUILTIN << 28,
	};
	struct guest_instant i = {
		PID, PID, 100, 1, chain, 3, head, &leaf, &builtin,
	};

	put_program(PID);
	put_function(PID, TABLE, NO_SYMBOL);
	put_function(PID, TABLE, NO_SYMBOL);
	put_function(PID, TABLE, NO_SYMBOL + 1);
	put_guest(&b, &i);
	load();
	assert_string_equal(merged_text(0),
			    "[app+0x2010];function 9 of pid 7_[g]");
	assert_int_equal(got.profile.samples.stack[0],
			 got.profile.samples.stack[1]);
	assert_int_not_equal(got.profile.samples.stack[0],
			     got.profile.samples.stack[2]);
	assert_string_equal(merged_text(3),
			    "[app+0x2010];builtin 11 of pid 7_[g]");
	assert_true(has_note("symbol records were lost: 3"));
}

UNIT_TEST(a_builtin_without_a_name_has_its_number)
{
	put_program(PID);
	put_symbol(&b, PID, 5, (struct seam_guest_symbol) {
		.table = TABLE, .id = 1, .kind = SEAM_GUEST_FRAME_BUILTIN,
		.address = 171 }, "", "");
	put_function(PID, TABLE, 1);
	load();
	assert_string_equal(merged_text(0), "[app+0x2010];builtin 171_[g]");
	assert_false(has_note("symbol records"));
}

UNIT_TEST(lines_are_those_of_files_that_are_named)
{
	static const struct seam_guest_frame frame = { 1, 14 };
	struct guest_instant i = {
		PID, PID, 100, 1000000, chain, 3, head, &leaf, &frame,
	};
	const struct seam_frame *f;

	put_functions(PID, TABLE);
	put_guest(&b, &i);
	load();
	f = &got.profile.frames.items[got.profile.stacks.items[
		got.profile.samples.stack[0]].frame];
	assert_string_equal(seam_profile_text(&got.profile, f->file),
			    "app.lua");
	assert_int_equal(f->line, 14);
}

UNIT_TEST(a_chunk_that_is_no_file_has_no_lines)
{
	static const struct seam_guest_frame frame = { 1, 14 };
	struct guest_instant i = {
		PID, PID, 100, 1000000, chain, 3, head, &leaf, &frame,
	};
	const struct seam_frame *f;

	put_symbol(&b, PID, 90, (struct seam_guest_symbol) {
		.table = TABLE, .id = 1, .line = 12 }, "return 1", "");
	put_guest(&b, &i);
	load();
	f = &got.profile.frames.items[got.profile.stacks.items[
		got.profile.samples.stack[0]].frame];
	assert_int_equal(f->file, 0);
	assert_int_equal(f->line, 0);
}

/* One flame graph: all CPU time is of one event, in nanoseconds. */
UNIT_TEST(samples_count_for_the_clock_that_was_recorded)
{
	put_app();
	put_sample(&b, TEST_ID_1, PID, PID, 50, chain, 3);
	put_function(PID, TABLE, 1);
	load();
	assert_int_equal(got.profile.samples.n, 2);
	assert_int_equal(got.profile.samples.event[1], 0);
	assert_int_equal(got.profile.events.items[0].n_samples, 2);
	assert_int_equal(got.profile.events.items[1].n_samples, 0);
	assert_int_equal(got.profile.events.items[2].n_samples, 0);
	assert_int_equal(seam_samples_weight(&got.profile.samples, 0), 250000);
	assert_int_equal(seam_samples_weight(&got.profile.samples, 1), 1000000);
	assert_int_equal(got.profile.guest_counts.n_ticks, 2);
	assert_int_equal(seam_samples_vmstate(&got.profile.samples, 0),
			 SEAM_VMSTATE_NONE);
}

UNIT_TEST(without_a_clock_they_are_an_event_of_their_own)
{
	put_app();
	put_function(PID, TABLE, 1);
	load_as(false, false);
	assert_int_equal(got.profile.samples.event[0], 1);
	assert_int_equal(got.profile.events.items[1].unit, SEAM_UNIT_NS);
	assert_true(has_note("event of its own"));
}

UNIT_TEST(records_with_names_have_a_frame_for_each_address)
{
	put_app();
	put_function(PID, TABLE, 1);
	load_as(true, true);
	assert_string_equal(merged_text(0), "[app+0x2010];[app+0x1000]");
	assert_int_equal(got.profile.samples.record[0], 5);
}

/* Count the ends of guest and host, of one sample each. */
static void put_end(enum seam_guest_end guest, enum seam_stack_end host)
{
	struct guest_instant i = {
		PID, PID, 100, 1000000, chain, 3, head, NULL, NULL,
	};

	i.head.n_segments = 0;
	i.head.guest_end = (uint8_t)guest;
	i.head.host_end = (uint8_t)host;
	put_guest(&b, &i);
}

UNIT_TEST(incomplete_stacks_are_counted_by_reason)
{
	const struct seam_guest_counts *c = &got.profile.guest_counts;

	put_program(PID);
	put_end(SEAM_GUEST_COMPLETE, SEAM_STACK_COMPLETE);
	put_end(SEAM_GUEST_COMPLETE, SEAM_STACK_WITHOUT_CFI);
	put_end(SEAM_GUEST_UNSETTLED, SEAM_STACK_COMPLETE);
	put_end(SEAM_GUEST_ABSENT, SEAM_STACK_COMPLETE);
	load();
	assert_int_equal(seam_guest_counts_total(c), 4);
	assert_int_equal(c->n_complete, 2);
	assert_int_equal(c->n_guest[SEAM_GUEST_UNSETTLED], 1);
	assert_int_equal(c->n_host[SEAM_STACK_WITHOUT_CFI], 1);
	assert_true(has_note("66.7 % of the VM stacks are complete; most "
			     "others: the VM was changing its frames"));
}

/* A join beyond the stack, a bad record: the host's half is shown. */
UNIT_TEST(a_bad_guest_record_leaves_the_native_stack)
{
	static const struct seam_guest_frame frame = { 1, 0 };
	static const struct seam_guest_segment beyond = { 2, 1, 1, 0, 0 };
	struct guest_instant i = {
		PID, PID, 100, 1, chain, 3, head, &beyond, &frame,
	};
	uint8_t raw[SEAM_GUEST_SYMBOL_BYTES] = { 0 };

	put_app();
	put_guest(&b, &i);
	put_guest_raw(&b, &i, raw, 40);
	put_guest_raw(&b, &i, raw, 0);
	put_symbol_raw(&b, PID, 3, raw, 40);
	load();
	assert_int_equal(got.profile.samples.n, 3);
	for (size_t k = 0; k < 3; k++)
		assert_string_equal(merged_text(k),
				    "[app+0x2010];[app+0x1000]");
	assert_int_equal(got.profile.guest_counts.n_bad, 4);
	assert_true(has_note("break their format: 4"));
	assert_int_equal(got.profile.losses.n, 1);
}

/* Each distinct merged stack is one, and the guest belongs to it. */
UNIT_TEST(equal_stacks_are_one_and_others_are_not)
{
	put_app();
	put_function(PID, TABLE, 1);
	put_function(PID, TABLE, 2);
	put_function(PID, TABLE, 1);
	load();
	assert_int_equal(got.profile.samples.stack[0],
			 got.profile.samples.stack[2]);
	assert_int_not_equal(got.profile.samples.stack[0],
			     got.profile.samples.stack[1]);
}

UNIT_TEST(frames_left_out_are_one_frame)
{
	static const struct seam_guest_segment segment = { 0, 1, 3, 0, 0 };
	struct seam_guest_frame frames[] = {
		{ 1, 0 }, { 900, (uint32_t)SEAM_GUEST_FRAME_CUT << 28 },
		{ 2, 0 },
	};
	struct guest_instant i = {
		PID, PID, 100, 1, chain, 3, head, &segment, frames,
	};

	put_app();
	put_guest(&b, &i);
	frames[1].id = 901;
	put_guest(&b, &i);
	load();
	assert_string_equal(merged_text(0), "[app+0x2010];app.lua:0_[g];"
			    "[frames left out]_[g];lua_payload app.lua:12_[g]");
	assert_int_equal(got.profile.samples.stack[0],
			 got.profile.samples.stack[1]);
}

/* A large file is scanned in parts, by several threads. */
UNIT_TEST(parts_of_a_file_are_joined)
{
	enum { N = 70000 };
	struct seam_guest_frame frame = { 1, 0 };
	struct guest_instant i = {
		PID, PID, 0, 1000, chain, 3, head, &leaf, &frame,
	};

	put_program(PID);
	for (i.time = 100; i.time < 100 + N; i.time++) {
		frame.id = 1 + i.time % 2;
		i.head.vmstate = (uint8_t)(i.time % SEAM_N_VMSTATES);
		put_guest(&b, &i);
	}
	put_functions(PID, TABLE);
	load();
	assert_int_equal(got.profile.samples.n, N);
	assert_int_equal(seam_guest_counts_total(&got.profile.guest_counts), N);
	for (size_t k = 0; k < N; k++) {
		uint64_t time = got.profile.samples.time_ns[k];

		assert_int_equal(seam_samples_vmstate(&got.profile.samples, k),
				 time % SEAM_N_VMSTATES);
		assert_int_equal(got.profile.samples.stack[k],
				 got.profile.samples.stack[time % 2]);
	}
	assert_string_equal(merged_text(0),
			    "[app+0x2010];lua_payload app.lua:12_[g]");
}

UNIT_MAIN(NULL, NULL, NULL, drop)
