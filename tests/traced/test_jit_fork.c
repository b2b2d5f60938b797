/* SPDX-License-Identifier: MIT */
/* test_jit_fork.c - a child has a dump of its own, and the live code in it */
#include <pthread.h>

#include "jit_written.h"
#include "unit.h"

static int close_everything_and_call(struct seam_jitdump *dump)
{
	for (int fd = 3; fd < 100; fd++)
		close(fd);
	return call_once(dump);
}

/* The test's own handler would go on testing in the child. */
static int call_in_a_crash(struct seam_jitdump *dump)
{
	signal(SIGSEGV, SIG_DFL);
	return call_once(dump);
}

static int call_once_more(struct seam_jitdump *dump)
{
	load(dump, "own", 0x7000);
	return seam_jitdump_flush(dump);
}

static void expect_inherited(int (*work)(struct seam_jitdump *),
			     int is_buffered)
{
	static const struct seam_jitdump_line line = {
		.offset = 2, .line = 5, .file = "x.lua" };
	struct seam_jitdump_code f = {
		.name = "f", .bytes = bytes, .size = 5, .addr = 0x1000,
		.lines = &line, .n_lines = 1,
	};
	struct seam_jitdump *dump = open_as(SEAM_JITDUMP_FORMAT_DUMP,
					    is_buffered);
	struct seam_jitdump_debug_entry entry;
	struct seam_jitdump_lines lines;
	struct seam_jitdump_record rec;
	uint64_t gone;
	char path[256];
	struct reading r;

	assert_int_equal(seam_jitdump_load(dump, &f, 1), 0);
	gone = load(dump, "gone", 0x2000);
	load(dump, "stays", 0x4000);
	assert_int_equal(seam_jitdump_unload(dump, gone), 0);
	assert_int_equal(seam_jitdump_move(dump, f.id, 0x3000), 0);
	in_child(work, dump);

	find_child_file(path, sizeof(path));
	read_path(&r, path);
	assert_int_not_equal(r.reader.header.pid, getpid());
	rec = next(&r, SEAM_JITDUMP_DEBUG_INFO);
	assert_int_equal(rec.debug_info.code_addr, 0x3000);
	lines = seam_jitdump_lines_make(&rec.debug_info, r.reader.endian);
	assert_true(seam_jitdump_line(&lines, &entry));
	assert_int_equal(entry.code_addr, 0x3002);
	rec = next(&r, SEAM_JITDUMP_LOAD);
	assert_string_equal(rec.load.name, "f");
	assert_int_equal(rec.load.code_addr, 0x3000);
	assert_int_equal(rec.load.pid, r.reader.header.pid);
	assert_int_equal(rec.load.code_index, f.id);
	rec = next(&r, SEAM_JITDUMP_LOAD);
	assert_string_equal(rec.load.name, "stays");
	if (!is_buffered) {
		rec = next(&r, SEAM_JITDUMP_LOAD);
		assert_string_equal(rec.load.name, "own");
		assert_true(rec.load.code_index > gone + 1);
	}
	read_end(&r);

	/* The parent's is as it was, and goes on. */
	load(dump, "later", 0x5000);
	assert_int_equal(seam_jitdump_flush(dump), 0);
	read_path(&r, seam_jitdump_path(dump));
	next(&r, SEAM_JITDUMP_DEBUG_INFO);
	for (int i = 0; i < 3; i++)
		next(&r, SEAM_JITDUMP_LOAD);
	next(&r, SEAM_JITDUMP_MOVE);
	rec = next(&r, SEAM_JITDUMP_LOAD);
	assert_string_equal(rec.load.name, "later");
	read_end(&r);
	seam_jitdump_close(dump);
}

UNIT_TEST(a_child_writes_a_dump_of_its_own)
{
	expect_inherited(call_once, 0);
}

UNIT_TEST(a_child_inherits_what_is_still_buffered)
{
	expect_inherited(seam_jitdump_flush, 1);
}

UNIT_TEST(a_daemon_that_closed_all_inherits_too)
{
	expect_inherited(close_everything_and_call, 0);
}

static int do_nothing(struct seam_jitdump *dump)
{
	return seam_jitdump_path(dump) == NULL;
}

UNIT_TEST(a_child_that_makes_no_code_leaves_no_file)
{
	struct seam_jitdump *dump = open_dump();
	char command[128];

	in_child(do_nothing, dump);
	snprintf(command, sizeof(command), "test $(ls %s | wc -l) = 1",
		 folder);
	assert_int_equal(system(command), 0);
	seam_jitdump_close(dump);
}

/* ---- at any moment ---- */

/*
 * Another thread may fork at any moment.  The growing table of code is met
 * where its memory changes: all calls of Seam's go through these.
 */
int __real_munmap(void *p, size_t size);
int __wrap_munmap(void *p, size_t size);

static struct seam_jitdump *forked_dump;
static int n_forked;

static void fork_here(void)
{
	struct seam_jitdump *dump = forked_dump;

	if (!dump)
		return;
	forked_dump = NULL;
	n_forked++;
	in_child(call_in_a_crash, dump);
	forked_dump = dump;
}

int __wrap_munmap(void *p, size_t size)
{
	int r;

	fork_here();
	r = __real_munmap(p, size);
	fork_here();
	return r;
}

UNIT_TEST(a_child_born_while_memory_grows_has_all_code)
{
	enum { MORE_THAN_A_TABLE = 2100 };
	struct seam_jitdump *dump = open_dump();

	forked_dump = dump;
	for (int i = 0; i < MORE_THAN_A_TABLE; i++)
		load(dump, "f", 0x1000);
	forked_dump = NULL;
	assert_true(n_forked > 0);
	assert_int_equal(seam_jitdump_lost(dump), 0);
	seam_jitdump_close(dump);
}

static volatile bool is_over;

static void *load_until_over(void *context)
{
	while (!is_over)
		load(context, "busy", 0x1000);
	return NULL;
}

static int alarm_and_call(struct seam_jitdump *dump)
{
	alarm(20);		/* hanging is failing */
	return call_once(dump);
}

UNIT_TEST(a_fork_in_the_middle_of_a_call_is_survived)
{
	struct seam_jitdump *dump = open_dump();
	pthread_t thread;

	is_over = false;
	pthread_create(&thread, NULL, load_until_over, dump);
	for (int i = 0; i < 20; i++)
		in_child(alarm_and_call, dump);
	is_over = true;
	pthread_join(thread, NULL);
	assert_int_equal(seam_jitdump_lost(dump), 0);
	seam_jitdump_close(dump);
}

/* ---- what cannot be inherited ---- */

/* Flush where a file may have no more than @max bytes. */
static int flush_limited(struct seam_jitdump *dump, rlim_t max)
{
	int r;

	limit_files(max);
	r = seam_jitdump_flush(dump);
	limit_files(RLIM_INFINITY);
	return r;
}

/* In a child that may not write, and then may. */
static int inherit_in_vain(struct seam_jitdump *dump)
{
	uint64_t n;

	if (flush_limited(dump, 1000) != -EFBIG ||
	    seam_jitdump_lost(dump) != 3000)
		return 1;
	load(dump, "later", 0x7000);
	count_loads(seam_jitdump_path(dump), &n);
	return n != 1 || seam_jitdump_lost(dump) != 3000;
}

UNIT_TEST(a_child_counts_what_it_could_not_inherit)
{
	struct seam_jitdump *dump = open_dump();

	for (int i = 0; i < 3000; i++)
		load(dump, "f", 0x1000);
	in_child(inherit_in_vain, dump);
	seam_jitdump_close(dump);
}

static int inherit_half(struct seam_jitdump *dump)
{
	int r = flush_limited(dump, 100 * 1024);
	uint64_t n;

	count_loads(seam_jitdump_path(dump), &n);
	if (r != -EFBIG || !n || n + seam_jitdump_lost(dump) != 2000)
		return 1;
	/* Of what is lost there is nothing to move. */
	for (uint64_t id = 1; id <= 4000; id += 2)
		n -= seam_jitdump_move(dump, id, 0x9000) == 0;
	return n != 0;
}

/* Those that are gone stay where they were in the parent's. */
UNIT_TEST(a_child_finds_what_it_has_inherited)
{
	struct seam_jitdump *dump = open_dump();

	for (int i = 0; i < 4000; i++)
		load(dump, "f", 0x1000);
	for (uint64_t id = 2; id <= 4000; id += 2)
		seam_jitdump_unload(dump, id);
	in_child(inherit_half, dump);
	seam_jitdump_close(dump);
}

/* A child must not mistake what came later for what was lost. */
UNIT_TEST(a_child_inherits_nothing_that_was_lost)
{
	struct seam_jitdump *dump = open_as(SEAM_JITDUMP_FORMAT_DUMP, 1);
	char path[256];
	struct reading r;

	load(dump, "lost", 0x1000);
	assert_true(flush_limited(dump, 1) < 0);
	load(dump, "kept", 0x2000);
	in_child(call_once_more, dump);
	find_child_file(path, sizeof(path));
	read_path(&r, path);
	assert_string_equal(next(&r, SEAM_JITDUMP_LOAD).load.name, "kept");
	assert_string_equal(next(&r, SEAM_JITDUMP_LOAD).load.name, "own");
	read_end(&r);
	seam_jitdump_close(dump);
}

UNIT_MAIN(NULL, NULL, make_folder, drop_folder)
