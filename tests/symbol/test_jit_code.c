/* SPDX-License-Identifier: MIT */
/* test_jit_code.c - each sample gets the function that was there then */
#include "symbol/jit/jit_code.h"

#include "base/radix_sort.h"
#include "jit_corpus.h"
#include "jit_dump.h"
#include "unit.h"

/* Of each test: a dump with a header alone, and what load() made of it. */
static struct dump d;
static struct seam_jit_code *jit;

static int set_up(void **state)
{
	d.size = 0;
	put_header(&d);
	jit = seam_jit_code_new();
	return jit ? 0 : -1;
}

static int tear_down(void **state)
{
	seam_jit_code_free(jit);
	return 0;
}

/* The name at @addr of process @pid at @time, "" where nothing is known. */
static const char *at(int32_t pid, uint64_t addr, uint64_t time)
{
	struct seam_jit_location location;

	return seam_jit_code_find(jit, pid, addr, time, &location) ?
	       location.name : "";
}

static void restart(void)
{
	seam_jit_code_free(jit);
	jit = seam_jit_code_new();
}

static void add(const struct dump *from, struct seam_jit_code_options options)
{
	assert_int_equal(seam_jit_code_add_dump(jit, dump_bytes(from),
						&options, NULL), 0);
}

/* The dump, and nothing else, is in jit. */
static void load(void)
{
	restart();
	add(&d, (struct seam_jit_code_options) { .pid = DUMP_PID });
}

static uint64_t n_said;

static void say(void *context, int32_t pid, const char *text, uint64_t count,
		bool is_corrected)
{
	if (strcmp(text, context) == 0)
		n_said += count;
}

/* How often @text is noted. */
static uint64_t notes(const char *text)
{
	n_said = 0;
	seam_jit_code_notes(jit, say, (void *)(uintptr_t)text);
	return n_said;
}

#define TEST(name) UNIT_TEST_WITH(name, set_up, tear_down)

TEST(an_address_used_again_means_what_it_meant_then)
{
	put_load(&d, 10, "first", 0x1000, 0x100, 1);
	put_load(&d, 20, "second", 0x1000, 0x40, 2);
	put_load(&d, 30, "third", 0x1040, 0x40, 3);
	load();
	assert_string_equal(at(DUMP_PID, 0x1000, 9), "");
	assert_string_equal(at(DUMP_PID, 0x1000, 10), "first");
	assert_string_equal(at(DUMP_PID, 0x10ff, 19), "first");
	assert_string_equal(at(DUMP_PID, 0x1100, 19), "");
	assert_string_equal(at(DUMP_PID, 0x1000, 20), "second");
	/* first cannot be entered any more, so its rest is not first. */
	assert_string_equal(at(DUMP_PID, 0x10ff, 20), "");
	assert_string_equal(at(DUMP_PID, 0x1040, 30), "third");
	assert_string_equal(at(DUMP_PID, 0x103f, 99), "second");
	assert_string_equal(at(DUMP_PID + 1, 0x1000, 20), "");
}

TEST(code_inside_other_code_leaves_the_rest_of_it)
{
	put_load(&d, 10, "blob", 0x1000, 0x100, 1);
	put_load(&d, 20, "stub", 0x1040, 0x40, 2);
	load();
	assert_string_equal(at(DUMP_PID, 0x1041, 15), "blob");
	assert_string_equal(at(DUMP_PID, 0x1041, 25), "stub");
	assert_string_equal(at(DUMP_PID, 0x103f, 25), "blob");
	assert_string_equal(at(DUMP_PID, 0x1080, 25), "blob");
}

TEST(times_order_records_and_positions_order_ties)
{
	put_load(&d, 30, "late", 0x1000, 16, 1);
	put_load(&d, 10, "early", 0x1000, 16, 2);
	put_load(&d, 20, "one", 0x1000, 16, 3);
	put_load(&d, 20, "other", 0x1000, 16, 4);
	load();
	assert_string_equal(at(DUMP_PID, 0x1000, 15), "early");
	assert_string_equal(at(DUMP_PID, 0x1000, 20), "other");
	assert_string_equal(at(DUMP_PID, 0x1000, 40), "late");
}

TEST(code_moved_twice_is_found_at_each_place)
{
	struct seam_jit_location l;

	put_load(&d, 10, "f", 0x1000, 16, 7);
	put_move(&d, 20, 0x1000, 0x2000, 16, 7);
	put_move(&d, 30, 0x2000, 0x2008, 16, 7);	/* over itself */
	load();
	assert_string_equal(at(DUMP_PID, 0x1004, 19), "f");
	assert_string_equal(at(DUMP_PID, 0x2004, 19), "");
	assert_string_equal(at(DUMP_PID, 0x1004, 20), "");
	assert_string_equal(at(DUMP_PID, 0x2004, 20), "f");
	assert_string_equal(at(DUMP_PID, 0x2004, 30), "");
	assert_true(seam_jit_code_find(jit, DUMP_PID, 0x200a, 31, &l));
	assert_string_equal(l.name, "f");
	assert_int_equal(l.start_addr, 0x2008);
	assert_int_equal(l.offset, 2);
	assert_int_equal(seam_jit_code_object(jit, l.object)->start_addr,
			 0x1000);
}

TEST(moves_that_cannot_be_are_skipped_and_reported)
{
	put_move(&d, 5, 0x1000, 0x3000, 16, 7);		/* before its load */
	put_load(&d, 10, "f", 0x1000, 16, 7);
	put_move(&d, 20, 0x1000, 0x4000, 24, 7);	/* another size */
	put_move(&d, 30, 0x1000, 0x5000, 16, 99);	/* unknown */
	put_move(&d, 40, 0x7777, 0x6000, 16, 7);	/* from elsewhere */
	load();
	assert_string_equal(at(DUMP_PID, 0x3000, 50), "");
	assert_string_equal(at(DUMP_PID, 0x4000, 50), "");
	assert_string_equal(at(DUMP_PID, 0x5000, 50), "");
	assert_string_equal(at(DUMP_PID, 0x1000, 39), "f");
	assert_string_equal(at(DUMP_PID, 0x6000, 50), "f");
	assert_int_equal(notes("moves with another size than the code, "
			       "skipped"), 1);
	assert_int_equal(notes("moves of unknown code, skipped"), 2);
	assert_int_equal(notes("moves from where the code was not"), 1);
}

/* Two JITs in one process number their code alike. */
TEST(twins_are_distinguished_by_where_they_are)
{
	put_load(&d, 10, "mine", 0x1000, 16, 1);
	put_load(&d, 11, "yours", 0x2000, 16, 1);
	put_move(&d, 20, 0x1000, 0x3000, 16, 1);
	load();
	assert_string_equal(at(DUMP_PID, 0x3000, 20), "mine");
	assert_string_equal(at(DUMP_PID, 0x2000, 20), "yours");
	assert_int_equal(notes("loads with a code index used before"), 1);
}

TEST(a_child_has_its_parents_code_as_of_the_fork)
{
	enum { CHILD = 50, GRANDCHILD = 51 };
	static struct dump child;

	child.size = 0;
	put_load(&d, 10, "before", 0x1000, 32, 1);
	put_load(&d, 12, "other", 0x3000, 32, 2);
	put_load(&d, 30, "after", 0x1000, 32, 3);
	put_header(&child);
	child.bytes[20] = CHILD;
	put_load(&child, 40, "own", 0x3000, 16, 1);
	load();
	/* The child's loads say 42; its header says 50, so numbers differ. */
	add(&child, (struct seam_jit_code_options) { .pid = CHILD + 1000 });
	assert_int_equal(seam_jit_code_fork(jit, DUMP_PID, CHILD + 1000, 20),
			 0);
	assert_int_equal(seam_jit_code_fork(jit, CHILD + 1000, GRANDCHILD, 45),
			 0);
	assert_string_equal(at(CHILD + 1000, 0x1000, 50), "before");
	assert_string_equal(at(DUMP_PID, 0x1000, 50), "after");
	assert_string_equal(at(CHILD + 1000, 0x3000, 39), "other");
	assert_string_equal(at(CHILD + 1000, 0x3000, 40), "own");
	/* other's first byte is own's now. */
	assert_string_equal(at(CHILD + 1000, 0x3018, 39), "other");
	assert_string_equal(at(CHILD + 1000, 0x3018, 40), "");
	assert_string_equal(at(GRANDCHILD, 0x3000, 60), "own");
	assert_string_equal(at(GRANDCHILD, 0x1000, 60), "before");
	assert_int_equal(seam_jit_code_exec(jit, CHILD + 1000, 70), 0);
	assert_string_equal(at(CHILD + 1000, 0x3000, 69), "own");
	assert_string_equal(at(CHILD + 1000, 0x3000, 70), "");
	assert_string_equal(at(GRANDCHILD, 0x3000, 71), "own");
}

/* What lies under it in the parent was written over in the child. */
TEST(what_a_child_wrote_over_does_not_come_back)
{
	enum { CHILD = 1050 };
	static struct dump child;

	child.size = 0;
	put_load(&d, 10, "blob", 0x1000, 256, 1);
	put_header(&child);
	put_load(&child, 30, "stub", 0x1040, 16, 1);
	put_move(&child, 40, 0x1040, 0x2000, 16, 1);
	put_load(&child, 50, "gone", 0x1080, 32, 2);
	put_load(&child, 60, "new", 0x1080, 16, 3);
	load();
	assert_int_equal(seam_jit_code_fork(jit, DUMP_PID, CHILD, 20), 0);
	add(&child, (struct seam_jit_code_options) { .pid = CHILD });
	assert_string_equal(at(CHILD, 0x1040, 29), "blob");
	assert_string_equal(at(CHILD, 0x1040, 30), "stub");
	assert_string_equal(at(CHILD, 0x1040, 40), "");
	assert_string_equal(at(CHILD, 0x1050, 40), "blob");
	assert_string_equal(at(CHILD, 0x1098, 50), "gone");
	assert_string_equal(at(CHILD, 0x1098, 60), "");
	assert_string_equal(at(DUMP_PID, 0x1098, 60), "blob");
}

TEST(a_pid_used_again_has_none_of_the_old_code)
{
	put_load(&d, 10, "old", 0x1000, 32, 1);
	load();
	assert_int_equal(seam_jit_code_fork(jit, 1, DUMP_PID, 50), 0);
	assert_string_equal(at(DUMP_PID, 0x1000, 49), "old");
	assert_string_equal(at(DUMP_PID, 0x1000, 50), "");
}

/* A ring of births at one time must not be walked for ever. */
TEST(forks_in_a_circle_end)
{
	for (int i = 0; i < 100; i++) {
		assert_int_equal(seam_jit_code_fork(jit, 1, 2, 10), 0);
		assert_int_equal(seam_jit_code_fork(jit, 2, 1, 10), 0);
		assert_int_equal(seam_jit_code_fork(jit, 1, 1, 10), 0);
	}
	assert_string_equal(at(1, 0x1000, 10), "");
}

TEST(another_process_in_the_dump_has_its_own_code)
{
	size_t load_pos;

	load_pos = put_load(&d, 10, "child's", 0x1000, 32, 1);
	d.bytes[load_pos + 16] = 43;
	load();
	assert_string_equal(at(43, 0x1000, 10), "child's");
	assert_string_equal(at(DUMP_PID, 0x1000, 10), "");

	/* In another pid namespace the number means nothing here. */
	restart();
	add(&d, (struct seam_jit_code_options) { .pid = 1042 });
	assert_string_equal(at(1042, 0x1000, 10), "child's");
}

static void add_map(const char *map, const char *times)
{
	assert_int_equal(seam_jit_code_add_map(jit, DUMP_PID,
		(struct seam_bytes) { (const uint8_t *)map, strlen(map) },
		(struct seam_bytes) { (const uint8_t *)times, strlen(times) },
		NULL), 0);
}

TEST(a_map_answers_where_the_dump_does_not)
{
	static const char map[] = "1000 20 mapped\n2000 20 only here\n"
				  "3000 20 old line\njunk\n3000 20 new line\n";

	put_load(&d, 10, "dumped", 0x1000, 16, 1);
	load();
	add_map(map, "");
	assert_string_equal(at(DUMP_PID, 0x1000, 9), "mapped");
	assert_string_equal(at(DUMP_PID, 0x1000, 10), "dumped");
	assert_string_equal(at(DUMP_PID, 0x2000, 0), "only here");
	assert_string_equal(at(DUMP_PID, 0x3001, 99), "new line");
	assert_int_equal(notes("lines of the perf map that cannot be "
			       "read"), 1);
}

static bool is_ambiguous(uint64_t addr, uint64_t time_ns)
{
	struct seam_jit_location l;

	assert_true(seam_jit_code_find(jit, DUMP_PID, addr, time_ns, &l));
	return l.is_ambiguous;
}

TEST(a_map_with_times_names_what_was_there_then)
{
	/* Lines of 12 bytes. */
	static const char map[] = "1000 20 one\n" "2000 20 oth\n"
				  "1010 20 two\n" "1000 40 end\n";
	uint64_t from, to;

	add_map(map, "0 100 110\n24 200 210\n36 300 310\n");
	assert_string_equal(at(DUMP_PID, 0x1000, 150), "one");
	assert_string_equal(at(DUMP_PID, 0x1010, 199), "one");
	assert_string_equal(at(DUMP_PID, 0x1010, 200), "two");
	assert_string_equal(at(DUMP_PID, 0x100f, 250), "one");
	assert_string_equal(at(DUMP_PID, 0x1010, 300), "end");
	assert_string_equal(at(DUMP_PID, 0x2000, 900), "oth");
	/* Written late: nothing else was said of these places. */
	assert_string_equal(at(DUMP_PID, 0x1000, 50), "one");
	assert_string_equal(at(DUMP_PID, 0x1020, 150), "two");
	assert_string_equal(at(DUMP_PID, 0x1030, 150), "end");
	assert_false(is_ambiguous(0x1010, 150));
	seam_jit_code_stable_span(jit, DUMP_PID, 250, &from, &to);
	assert_int_equal(from, 210);
	assert_int_equal(to, 300);
	/* Another program of the process has none of it. */
	seam_jit_code_exec(jit, DUMP_PID, 320);
	seam_jit_code_exec(jit, DUMP_PID, 90);
	add_map("2008 8 mid\n", "0 500 510\n");
	assert_string_equal(at(DUMP_PID, 0x1000, 400), "");
	assert_string_equal(at(DUMP_PID, 0x2000, 400), "");
	assert_string_equal(at(DUMP_PID, 0x2008, 400), "mid");
	assert_string_equal(at(DUMP_PID, 0x1000, 310), "end");
	assert_string_equal(at(DUMP_PID, 0x1000, 95), "one");
	assert_string_equal(at(DUMP_PID, 0x1000, 80), "");
	/* One that was written about then is the new program's. */
	seam_jit_code_exec(jit, DUMP_PID, 105);
	assert_string_equal(at(DUMP_PID, 0x1000, 106), "one");
}

TEST(an_address_that_a_map_names_twice_is_ambiguous)
{
	static const char map[] = "1000 20 one\n" "1010 20 two\n"
				  "2000 20 oth\n" "3000 20 sam\n"
				  "3000 20 sam\n" "1010 08 new\n";

	add_map(map, "");
	assert_string_equal(at(DUMP_PID, 0x1010, 5), "new");
	assert_true(is_ambiguous(0x1010, 5));
	assert_false(is_ambiguous(0x2000, 5));
	assert_false(is_ambiguous(0x3000, 5));

	/* With times: until those two lines were there. */
	restart();
	add_map(map, "0 100 110\n60 200 210\n");
	assert_true(is_ambiguous(0x1010, 50));
	assert_true(is_ambiguous(0x1010, 105));
	assert_false(is_ambiguous(0x1010, 110));
	assert_string_equal(at(DUMP_PID, 0x1010, 200), "new");
	assert_false(is_ambiguous(0x1010, 200));
}

static void expect_line(uint64_t addr, const char *file, uint32_t line)
{
	struct seam_jit_location l;

	assert_true(seam_jit_code_find(jit, DUMP_PID, addr, 100, &l));
	assert_int_equal(l.line, line);
	assert_string_equal(l.file, file);
}

TEST(lines_belong_to_the_code_at_their_address)
{
	static const char *const a[] = { "a.js", "a.js" };
	static const char *const b[] = { "b.js" };
	static const char *const c[] = { "c.js" };

	/* jitlink: all debug information, then all code. */
	put_debug(&d, 0x1000, 0x1002, a, 2);
	put_debug(&d, 0x2000, 0x2000, b, 1);
	put_load(&d, 10, "one", 0x1000, 16, 1);
	put_load(&d, 10, "two", 0x2000, 16, 2);
	/* An address that is nobody's: for the next load. */
	put_debug(&d, 0x9999, 0x3004, c, 1);
	put_load(&d, 10, "three", 0x3000, 16, 3);
	put_load(&d, 10, "four", 0x4000, 16, 4);
	put_move(&d, 20, 0x1000, 0x5000, 16, 1);
	load();
	expect_line(0x5000, "", 0);
	expect_line(0x5002, "a.js", 10);
	expect_line(0x500f, "a.js", 11);
	expect_line(0x2000, "b.js", 10);
	expect_line(0x3008, "c.js", 10);
	expect_line(0x4008, "", 0);
}

TEST(lines_outside_of_the_code_are_cut_off)
{
	static const char *const names[] = {
		"-", "-", "x", "x", "x", "x", "-", "-" };
	const struct seam_jit_line *lines;

	put_debug(&d, 0x1000, 0xffe, names, 8);
	put_load(&d, 10, "f", 0x1000, 4, 1);
	load();
	assert_int_equal(seam_jit_code_lines(jit, 0, &lines), 4);
	assert_int_equal(lines[0].addr, 0x1000);
	assert_int_equal(lines[0].line, 12);
	assert_int_equal(lines[3].addr, 0x1003);
	assert_string_equal(lines[3].file, "x");
}

/* V8 and LLVM write addresses for an ELF file that perf made long ago. */
TEST(lines_that_are_an_elf_header_off_are_put_right)
{
	static const char *const names[] = { "a.c" };

	for (uint64_t addr = 0x1000; addr < 0x4000; addr += 0x1000) {
		put_debug(&d, addr, addr + 0x40, names, 1);
		put_load(&d, 10, "f", addr, 16, addr);
	}
	put_debug(&d, 0x4000, 0x4000 + 0x44, names, 1);
	put_load(&d, 10, "f", 0x4000, 16, 4);
	load();
	expect_line(0x1000, "a.c", 10);
	expect_line(0x4003, "", 0);
	expect_line(0x4004, "a.c", 10);

	/* One function with a line where the others have none: no shift. */
	put_debug(&d, 0x5000, 0x5004, names, 1);
	put_load(&d, 10, "f", 0x5000, 16, 5);
	load();
	expect_line(0x1000, "", 0);
	expect_line(0x5004, "a.c", 10);
}

TEST(an_overwritten_file_name_is_found_nearby)
{
	static const char *const names[] = {
		"/usr/share/app/main.js", "/usr/share/app/main.js" };
	size_t pos;

	pos = put_debug(&d, 0x1000, 0x1000, names, 2);
	for (int i = 0; i < 2; i++)	/* as V8: pointers over the name */
		memcpy(d.bytes + pos + 32 + i * 39 + 16,
		       "\xe5\xaf\1\0\0\0\0\0\n\x0e\x84\x76\xe5\xe2\x78\x08",
		       16);
	put_load(&d, 10, "f", 0x1000, 16, 1);
	put_debug(&d, 0x2000, 0x2000, names, 2);
	put_load(&d, 10, "g", 0x2000, 16, 2);
	load();
	expect_line(0x1001, "/usr/share/app/main.js", 11);
	assert_int_equal(notes("functions whose source file name is "
			       "damaged"), 0);
}

TEST(unwinding_information_stays_with_its_code)
{
	const struct seam_jit_object *o;

	put_unwinding(&d);
	put_load(&d, 10, "f", 0x1000, 16, 1);
	put_load(&d, 10, "g", 0x2000, 16, 2);
	load();
	o = seam_jit_code_object(jit, 0);
	assert_int_equal(o->eh_frame.size, 7);
	assert_true(o->eh_frame.data == d.bytes + 80);
	assert_int_equal(o->eh_frame_offset, 16);
	assert_int_equal(o->elf_machine, 62);
	/* Nothing is copied: code and tables are the dump's own bytes. */
	assert_true(o->code.data > d.bytes && o->code.data < d.bytes + d.size);
	o = seam_jit_code_object(jit, 1);
	assert_int_equal(o->eh_frame.size, 0);

	/* As the specification has it. */
	memmove(d.bytes + 80, d.bytes + 87, 20);
	memset(d.bytes + 100, 0, 7);
	load();
	o = seam_jit_code_object(jit, 0);
	assert_int_equal(o->eh_frame.size, 7);
	assert_true(o->eh_frame.data == d.bytes + 100);
	assert_int_equal(o->eh_frame_offset, 16 + 20);
}

static bool halve(void *context, uint64_t count, uint64_t *ns)
{
	*ns = count / 2;
	return count != 9999;
}

/* The name at @time of a dump with @flags, under @options. */
static void expect_clock(uint64_t flags, struct seam_jit_code_options options,
			 uint64_t time, const char *name, uint64_t n_untimed)
{
	d.size = 0;
	put_header(&d);
	memcpy(d.bytes + 32, &flags, sizeof(flags));
	put_load(&d, 2000, "f", 0x1000, 16, 1);
	put_load(&d, 4000, "g", 0x1000, 16, 2);
	options.pid = DUMP_PID;
	restart();
	add(&d, options);
	assert_string_equal(at(DUMP_PID, 0x1000, time), name);
	assert_int_equal(notes("times of an unknown clock; order used instead"),
			 n_untimed);
}

TEST(clocks_are_converted_or_not_used)
{
	typedef struct seam_jit_code_options o;

	expect_clock(0, (o) { 0 }, 2500, "f", 0);
	expect_clock(1, (o) { .to_ns = halve }, 1500, "f", 0);
	expect_clock(1, (o) { .to_ns = halve }, 2000, "g", 0);
	/* No conversion: the last load is right for the longest time. */
	expect_clock(1, (o) { 0 }, 1, "g", 1);
	/* ... unless the times are of the recording. */
	expect_clock(1, (o) { .first_ns = 100, .last_ns = 5000 }, 2500, "f", 0);
	/* llvm-jitlink: bits that nobody set. */
	expect_clock(UINT64_C(0x65) << 56 | 1, (o) { .to_ns = halve }, 2500,
		     "f", 0);
	/* Another clock than the recording's. */
	expect_clock(0, (o) { .is_untimed = true }, 1, "g", 1);
	/* A later process of the same pid: nothing of it was there. */
	expect_clock(0, (o) { .first_ns = 5, .last_ns = 50 }, 10,
		     "", 0);
}

TEST(code_of_no_bytes_is_listed_and_never_found)
{
	put_load(&d, 10, "f", 0x1000, 16, 1);
	put_load(&d, 20, "nothing", 0x1000, 0, 2);
	load();
	assert_int_equal(seam_jit_code_count(jit), 2);
	assert_string_equal(at(DUMP_PID, 0x1000, 30), "f");
}

/* ---- random programs against a replay ---- */

enum { N_STEPS = 120, SPACE = 256, N_TIMES = 200 };

/* The slow way: who owns each byte, and where each code begins. */
struct moment {
	uint8_t owner[SPACE];		/* 0: nobody */
	uint8_t start[N_STEPS + 1];
};

static uint32_t random_state;

static uint32_t pick(uint32_t n)
{
	random_state = random_state * 1664525 + 1013904223;
	return (random_state >> 8) % n;
}

/* Put code @id at a random place, now or again, and into the dump. */
static void step(struct moment *now, uint64_t time, uint8_t id,
		 uint8_t size, bool is_move)
{
	uint8_t to = (uint8_t)pick(SPACE - size);
	char name[8];

	if (is_move) {
		put_move(&d, time, now->start[id], to, size, id);
		for (size_t i = 0; i < SPACE; i++)
			if (now->owner[i] == id)
				now->owner[i] = 0;
	} else {
		snprintf(name, sizeof(name), "%u", id);
		put_load(&d, time, name, to, size, id);
	}
	now->start[id] = to;
	memset(now->owner + to, id, size);
}

/* A dump of loads and moves; @moments[t] is how things are at time t. */
static void make_program(struct moment *moments)
{
	uint8_t sizes[N_STEPS + 1], n = 0;
	struct moment now = { 0 };
	uint64_t time = 1, filled = 0;

	d.size = 0;
	put_header(&d);
	for (int i = 0; i < N_STEPS; i++) {
		bool is_move = n && pick(3) == 0;
		uint8_t id = is_move ? (uint8_t)(1 + pick(n)) : ++n;

		if (!is_move)
			sizes[id] = (uint8_t)(1 + pick(40));
		time += pick(3);
		for (; filled < time && filled < N_TIMES; filled++)
			moments[filled] = now;
		step(&now, time, id, sizes[id], is_move);
	}
	for (; filled < N_TIMES; filled++)
		moments[filled] = now;
}

static void expect_moment(const struct moment *m, uint64_t time)
{
	for (uint64_t a = 0; a < SPACE; a++) {
		uint8_t id = m->owner[a];
		bool is_there = id && m->owner[m->start[id]] == id;
		const char *name = at(DUMP_PID, a, time);

		assert_int_equal(atoi(name), is_there ? id : 0);
	}
}

TEST(random_programs_agree_with_a_replay)
{
	static struct moment moments[N_TIMES];

	for (uint32_t seed = 1; seed <= 40; seed++) {
	
		random_state = seed;
		make_program(moments);
		load();
		for (uint64_t t = 0; t < N_TIMES; t++)
			expect_moment(&moments[t], t);
		}
}

/* ---- all places ---- */

/* Which object is at each address at @time, and how far into it. */
static void play(const struct seam_jit_placements *placements, uint64_t time,
		 uint32_t *objects, uint64_t *offsets)
{
	memset(objects, 0xff, SPACE * sizeof(*objects));
	for (size_t i = 0; i < placements->list.n; i++) {
		const struct seam_jit_placement *p = &placements->list.items[i];

		if (p->time_ns > time)
			break;
		for (uint64_t k = 0; k < p->size; k++) {
			objects[p->start_addr + k] = p->object;
			offsets[p->start_addr + k] = p->offset + k;
		}
	}
}

static void compare(uint64_t time, const uint32_t *objects,
		    const uint64_t *offsets)
{
	for (uint32_t i = 0; i < SPACE; i++) {
		struct seam_jit_location found;
		bool is_found = seam_jit_code_find(jit, DUMP_PID, i, time,
						   &found);

		if (is_found) {
			assert_int_equal(objects[i], found.object);
			assert_int_equal(offsets[i], found.offset);
		} else {
			assert_int_equal(objects[i], SEAM_NONE);
		}
	}
}

TEST(places_played_in_order_give_what_a_look_up_gives)
{
	static struct moment moments[N_TIMES];

	for (uint32_t seed = 1; seed <= 20; seed++) {
		struct seam_jit_placements placements = { 0 };
		uint32_t objects[SPACE];
		uint64_t offsets[SPACE];

		random_state = seed;
		make_program(moments);
		load();
		assert_int_equal(seam_jit_placements_read(&placements, jit), 0);
		assert_int_equal(SEAM_RADIX_SORT(&placements.list, time_ns), 0);
		for (uint64_t time = 0; time < N_TIMES; time++) {
			play(&placements, time, objects, offsets);
			compare(time, objects, offsets);
		}
		free(placements.list.items);
	}
}

TEST(places_of_maps_begin_after_the_last_exec)
{
	struct seam_jit_placements placements = { 0 };

	seam_jit_code_exec(jit, DUMP_PID, 700);
	add_map("1000 10 f\n", "");
	assert_int_equal(seam_jit_placements_read(&placements, jit), 0);
	assert_int_equal(placements.list.n, 1);
	assert_int_equal(placements.list.items[0].pid, DUMP_PID);
	assert_int_equal(placements.list.items[0].time_ns, 701);
	assert_int_equal(placements.list.items[0].size, 0x10);
	free(placements.list.items);
}

/* ---- real dumps ---- */

static void add_file(const struct seam_file *file)
{
	assert_int_equal(seam_jit_code_add_dump(jit, file->bytes,
		&(struct seam_jit_code_options) { .pid = 1 }, NULL), 0);
}

TEST(real_dumps_have_lines_where_their_code_is)
{
	static const struct {
		const char *dump, *function, *file;
		uint32_t line;		/* of its first row */
	} known[] = {
		{ "lli14-mcjit/jit-29836.dump", "fib",
		  "/opt/workload/perf/wl/w.c", 3 },
		{ "lli19-mcjit/jit-29950.dump", "mandel",
		  "/opt/workload/perf/wl/w.c", 4 },
	};
	size_t n_checked = 0;

	for (size_t k = 0; k < SEAM_ARRAY_SIZE(known); k++) {
			struct seam_file file;

		assert_true(jit_corpus_read(known[k].dump, &file));
		restart();
		add_file(&file);
		for (uint32_t i = 0; i < seam_jit_code_count(jit); i++) {
			const struct seam_jit_object *o =
				seam_jit_code_object(jit, i);
			const struct seam_jit_line *lines;

			if (strcmp(o->name, known[k].function))
				continue;
			assert_true(seam_jit_code_lines(jit, i, &lines) > 5);
			assert_int_equal(lines[0].addr, o->start_addr);
			assert_int_equal(lines[0].line, known[k].line);
			assert_string_equal(lines[0].file, known[k].file);
			n_checked++;
		}
			seam_file_close(&file);
	}
	assert_int_equal(n_checked, SEAM_ARRAY_SIZE(known));
}

static bool is_text(const char *s)
{
	size_t n = strlen(s);

	while (*s >= ' ' && *s < 0x7f)
		s++;
	return n && !*s;
}

TEST(every_file_name_of_v8_is_recovered)
{
	struct seam_file file;

	assert_true(jit_corpus_read("node20-perfprof/jit-27809.dump.xz",
				    &file));
	add_file(&file);
	for (uint32_t i = 0; i < seam_jit_code_count(jit); i++) {
		const struct seam_jit_line *lines;
		size_t n = seam_jit_code_lines(jit, i, &lines);

		for (size_t l = 0; l < n; l++)
			assert_true(is_text(lines[l].file));
	}
	assert_int_equal(notes("functions whose source file name is "
			       "damaged"), 0);
	seam_file_close(&file);
}

UNIT_MAIN(NULL, NULL, NULL, NULL)
