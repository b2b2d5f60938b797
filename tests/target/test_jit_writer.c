/* SPDX-License-Identifier: MIT */
/* test_jit_writer.c - the writer says what happened and disturbs nobody */
#include <seam/jitdump.h>

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/file.h"
#include "folder.h"
#include "target/jit/turn.h"
#include "target/jit/writer.h"
#include "wire/jitdump.h"
#include "wire/perf_map.h"

static const uint8_t bytes[] = { 0x31, 0xc0, 0xc3, 0x90, 0x90 };

static struct seam_jitdump *open_as(enum seam_jitdump_format format,
				    int is_buffered)
{
	struct seam_jitdump_options options = {
		.folder = folder, .format = format,
		.is_buffered = is_buffered,
	};
	struct seam_jitdump *dump;

	assert_int_equal(seam_jitdump_open(&dump, &options), 0);
	return dump;
}

static struct seam_jitdump *open_dump(void)
{
	return open_as(SEAM_JITDUMP_FORMAT_DUMP, 0);
}

static uint64_t load(struct seam_jitdump *dump, const char *name, uint64_t addr)
{
	struct seam_jitdump_code code = {
		.name = name, .bytes = bytes, .size = sizeof(bytes),
		.addr = addr,
	};

	seam_jitdump_load(dump, &code, 1);
	return code.id;
}

/* ---- reading back ---- */

struct reading {
	struct seam_file file;
	struct seam_jitdump_reader reader;
};

static void read_path(struct reading *r, const char *path)
{
	assert_int_equal(seam_file_open(&r->file, path, NULL), 0);
	assert_int_equal(seam_jitdump_begin(&r->reader, r->file.bytes, NULL),
			 0);
}

static struct seam_jitdump_record next(struct reading *r,
				       enum seam_jitdump_id id)
{
	struct seam_jitdump_record record;

	assert_true(seam_jitdump_next(&r->reader, &record));
	assert_int_equal(record.id, id);
	return record;
}

/* No record is left, none was bad and none is cut. */
static void read_end(struct reading *r)
{
	struct seam_jitdump_record record;

	assert_false(seam_jitdump_next(&r->reader, &record));
	for (int n = 0; n < SEAM_JITDUMP_N_NOTES; n++)
		assert_int_equal(r->reader.n_notes[n], 0);
	seam_file_close(&r->file);
}

static void what_is_loaded_is_read_back(void **state)
{
	static const struct seam_jitdump_line lines[] = {
		{ .offset = 0, .line = 7, .column = 3, .file = "a.lua" },
		{ .offset = 2, .line = 8 },
		{ .offset = 4, .line = 1, .file = "b.lua" },
	};
	static const struct seam_jitdump_unwinding unwinding = {
		.eh_frame = bytes, .eh_frame_size = 1,
		.eh_frame_hdr = bytes, .eh_frame_hdr_size = 4,
		.mapped_size = 8,
	};
	struct seam_jitdump_code codes[] = {
		{ .name = "f", .bytes = bytes, .size = 5, .addr = 0x1000,
		  .lines = lines, .n_lines = 3, .unwinding = &unwinding },
		{ .name = "nothing", .addr = 0x2000 },
		{ .bytes = bytes, .size = 1 },
	};
	struct seam_jitdump *dump = open_dump();
	struct seam_jitdump_debug_entry entry;
	struct seam_jitdump_lines walk;
	struct seam_jitdump_record rec;
	struct reading r;
	struct stat st;

	(void)state;
	assert_int_equal(seam_jitdump_load(dump, codes, 3), 0);
	assert_int_equal(stat(seam_jitdump_path(dump), &st), 0);
	assert_int_equal(st.st_mode & 07777, 0600);
	read_path(&r, seam_jitdump_path(dump));
	assert_int_equal(r.reader.header.pid, getpid());
	assert_int_equal(r.reader.header.version, 1);
	rec = next(&r, SEAM_JITDUMP_DEBUG_INFO);
	assert_int_equal(rec.debug_info.code_addr, 0x1000);
	walk = seam_jitdump_lines_make(&rec.debug_info, r.reader.endian);
	assert_true(seam_jitdump_line(&walk, &entry));
	assert_int_equal(entry.code_addr, 0x1000);
	assert_int_equal(entry.discrim, 3);
	assert_true(seam_jitdump_line(&walk, &entry));
	assert_string_equal(entry.name, "a.lua");
	assert_int_equal(entry.code_addr, 0x1002);
	assert_true(seam_jitdump_line(&walk, &entry));
	assert_string_equal(entry.name, "b.lua");
	assert_false(seam_jitdump_line(&walk, &entry));
	rec = next(&r, SEAM_JITDUMP_UNWINDING_INFO);
	assert_int_equal(rec.unwinding_info.unwinding_data.size, 5);
	assert_int_equal(rec.unwinding_info.mapped_size, 8);
	rec = next(&r, SEAM_JITDUMP_LOAD);
	assert_string_equal(rec.load.name, "f");
	assert_int_equal(rec.load.vma, 0x1000);
	assert_int_equal(rec.load.code_index, codes[0].id);
	assert_memory_equal(rec.load.code.data, bytes, 5);
	rec = next(&r, SEAM_JITDUMP_LOAD);
	assert_int_equal(rec.load.code_size, 0);
	rec = next(&r, SEAM_JITDUMP_LOAD);
	assert_string_equal(rec.load.name, "");
	assert_int_equal(rec.load.code_addr, (uintptr_t)bytes);
	read_end(&r);
	seam_jitdump_close(dump);
}

/* Each record, written again from its table, is the same bytes. */
static void the_layout_by_hand_is_that_of_the_tables(void **state)
{
	static const struct seam_jitdump_line line = { 1, 2, 3, "file.lua" };
	static const struct seam_jitdump_unwinding unwinding = {
		bytes, 1, bytes, 4, 0 };
	struct seam_jitdump_code code = {
		.name = "f", .bytes = bytes, .size = 5, .lines = &line,
		.n_lines = 1, .unwinding = &unwinding,
	};
	struct seam_jitdump *dump = open_dump();
	struct seam_jitdump_record rec;
	uint8_t again[256];
	struct reading r;
	size_t n = 0, size;

	(void)state;
	assert_int_equal(seam_jitdump_load(dump, &code, 1), 0);
	assert_int_equal(seam_jitdump_move(dump, code.id, 0x9999), 0);
	read_path(&r, seam_jitdump_path(dump));
	size = seam_wire_write(&seam_jitdump_header_table, &r.reader.header,
			       r.reader.endian, again, sizeof(again));
	assert_int_equal(size, r.reader.header.total_size);
	assert_memory_equal(again, r.file.bytes.data, size);
	for (; seam_jitdump_next(&r.reader, &rec); n++) {
		size = seam_wire_write(seam_jitdump_table(rec.id), &rec.prefix,
				       r.reader.endian, again, sizeof(again));
		assert_int_equal(size, rec.prefix.total_size);
		assert_memory_equal(again, r.file.bytes.data + rec.pos, size);
	}
	assert_int_equal(n, 4);
	read_end(&r);
	seam_jitdump_close(dump);
}

static void moves_close_and_unload(void **state)
{
	struct seam_jitdump *dump = open_dump();
	uint64_t id = load(dump, "f", 0x1000);
	char path[128];
	struct seam_jitdump_record rec;
	struct reading r;

	(void)state;
	snprintf(path, sizeof(path), "%s", seam_jitdump_path(dump));
	assert_int_equal(seam_jitdump_move(dump, id, 0x2000), 0);
	assert_int_equal(seam_jitdump_move(dump, id, 0x3000), 0);
	assert_int_equal(seam_jitdump_unload(dump, id), 0);
	assert_int_equal(seam_jitdump_unload(dump, id), -ENOENT);
	assert_int_equal(seam_jitdump_move(dump, id, 1), -ENOENT);
	assert_int_equal(seam_jitdump_move(dump, 99, 1), -ENOENT);
	assert_int_equal(seam_jitdump_move(dump, 0, 1), -ENOENT);
	seam_jitdump_close(dump);
	read_path(&r, path);
	next(&r, SEAM_JITDUMP_LOAD);
	rec = next(&r, SEAM_JITDUMP_MOVE);
	assert_int_equal(rec.move.old_code_addr, 0x1000);
	assert_int_equal(rec.move.new_code_addr, 0x2000);
	assert_int_equal(rec.move.code_size, sizeof(bytes));
	rec = next(&r, SEAM_JITDUMP_MOVE);
	assert_int_equal(rec.move.old_code_addr, 0x2000);
	assert_int_equal(rec.move.code_index, id);
	next(&r, SEAM_JITDUMP_CLOSE);
	read_end(&r);
}

/* ---- children ---- */

/* Run @work in a child and expect it to return 0. */
static void in_child(int (*work)(struct seam_jitdump *dump),
		     struct seam_jitdump *dump)
{
	int status;
	pid_t pid = fork();

	if (!pid)
		_exit(work(dump));
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

static int call_once(struct seam_jitdump *dump)
{
	load(dump, "own", 0x7000);
	return seam_jitdump_lost(dump) != 0;
}

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

/* Somebody else's file has the name of the parent's by now. */
static int replace_and_call(struct seam_jitdump *dump)
{
	char path[sizeof(dump->file.path)], aside[sizeof(path) + 8];
	char command[5 * sizeof(path)];

	memcpy(path, dump->file.path, sizeof(path));
	snprintf(aside, sizeof(aside), "%s.aside", path);
	snprintf(command, sizeof(command),
		 "mv '%s' '%s'; "
		 "tr a-z A-Z <'%s' >'%s'",
		 path, aside, aside, path);
	if (system(command))
		return 1;
	for (int fd = 3; fd < 100; fd++)
		close(fd);
	load(dump, "own", 0x7000);
	snprintf(command, sizeof(command), "mv '%s' '%s'", aside, path);
	return seam_jitdump_lost(dump) != 1 || system(command);
}

static void find_child_file(char *path, size_t cap)
{
	char command[256];
	FILE *list;

	snprintf(command, sizeof(command), "ls %s/* | grep -v -e '-%d\\.'",
		 folder, getpid());
	list = popen(command, "r");
	assert_non_null(list);
	assert_non_null(fgets(path, (int)cap, list));
	path[strcspn(path, "\n")] = '\0';
	pclose(list);
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

static void a_child_writes_a_dump_of_its_own(void **state)
{
	(void)state;
	expect_inherited(call_once, 0);
}

static void a_child_inherits_what_still_waits(void **state)
{
	(void)state;
	expect_inherited(seam_jitdump_flush, 1);
}

static void a_daemon_that_closed_all_inherits_too(void **state)
{
	(void)state;
	expect_inherited(close_everything_and_call, 0);
}

static void a_file_in_the_place_of_the_parents_is_not_read(void **state)
{
	struct seam_jitdump *dump = open_dump();
	char path[256];
	struct reading r;

	(void)state;
	load(dump, "parents", 0x1000);
	in_child(replace_and_call, dump);
	find_child_file(path, sizeof(path));
	read_path(&r, path);
	assert_string_equal(next(&r, SEAM_JITDUMP_LOAD).load.name, "own");
	read_end(&r);
	seam_jitdump_close(dump);
}

static int do_nothing(struct seam_jitdump *dump)
{
	return seam_jitdump_path(dump) == NULL;
}

static void a_child_that_makes_no_code_leaves_no_file(void **state)
{
	struct seam_jitdump *dump = open_dump();
	char command[128];

	(void)state;
	in_child(do_nothing, dump);
	snprintf(command, sizeof(command), "test $(ls %s | wc -l) = 1",
		 folder);
	assert_int_equal(system(command), 0);
	seam_jitdump_close(dump);
}

/* ---- threads and signals ---- */

enum { N_THREADS = 4, N_CALLS = 500 };

static void *take_and_end(void *context)
{
	seam_turn_take(context);
	return NULL;
}

static void a_turn_whose_owner_has_ended_is_given_up(void **state)
{
	struct seam_turn turn = { 0 };
	pthread_t thread;

	(void)state;
	seam_turn_init();
	pthread_create(&thread, NULL, take_and_end, &turn);
	pthread_join(thread, NULL);
	assert_int_equal(seam_turn_take(&turn), -EBUSY);
}

static void *load_many(void *context)
{
	for (int i = 0; i < N_CALLS; i++)
		load(context, "threaded", 0x1000);
	return NULL;
}

static void threads_do_not_mix_their_records(void **state)
{
	struct seam_jitdump *dump = open_dump();
	bool seen[N_THREADS * N_CALLS + 1] = { false };
	pthread_t threads[N_THREADS];
	uint64_t last_ns = 0;
	struct reading r;

	(void)state;
	for (int i = 0; i < N_THREADS; i++)
		pthread_create(&threads[i], NULL, load_many, dump);
	for (int i = 0; i < N_THREADS; i++)
		pthread_join(threads[i], NULL);
	assert_int_equal(seam_jitdump_lost(dump), 0);
	read_path(&r, seam_jitdump_path(dump));
	for (int i = 0; i < N_THREADS * N_CALLS; i++) {
		struct seam_jitdump_record rec = next(&r, SEAM_JITDUMP_LOAD);

		assert_true(rec.load.code_index <= N_THREADS * N_CALLS);
		assert_false(seen[rec.load.code_index]);
		seen[rec.load.code_index] = true;
		assert_true(rec.load.timestamp >= last_ns);
		last_ns = rec.load.timestamp;
	}
	read_end(&r);
	seam_jitdump_close(dump);
}

static struct seam_jitdump *handler_dump;
static volatile uint64_t n_handler_calls;
static volatile int worst_result;

static void call_from_handler(int signal)
{
	struct seam_jitdump_code code = { .name = "handler", .addr = 1 };
	int r = seam_jitdump_load(handler_dump, &code, 1);

	(void)signal;
	n_handler_calls++;
	if (r && r != -EDEADLK)
		worst_result = r;
}

static void a_handler_never_waits_for_its_own_thread(void **state)
{
	struct sigaction action = { .sa_handler = call_from_handler };
	struct itimerval timer = { { 0, 300 }, { 0, 300 } }, off = { 0 };
	uint64_t n = 0;
	struct reading r;

	(void)state;
	/* As if interrupted in the middle of a call. */
	handler_dump = open_dump();
	assert_int_equal(seam_turn_take(&handler_dump->turn), 0);
	call_from_handler(0);
	assert_int_equal(seam_jitdump_lost(handler_dump), 1);
	seam_turn_give(&handler_dump->turn);
	seam_jitdump_close(handler_dump);
	assert_int_equal(worst_result, 0);

	handler_dump = open_dump();
	n_handler_calls = 0;
	sigaction(SIGALRM, &action, NULL);
	setitimer(ITIMER_REAL, &timer, NULL);
	for (; n < 3000; n++)
		load(handler_dump, "loop", 0x2000);
	setitimer(ITIMER_REAL, &off, NULL);
	assert_int_equal(worst_result, 0);
	n += n_handler_calls;
	read_path(&r, seam_jitdump_path(handler_dump));
	for (n -= seam_jitdump_lost(handler_dump); n; n--)
		next(&r, SEAM_JITDUMP_LOAD);
	read_end(&r);
	seam_jitdump_close(handler_dump);
}

/*
 * Another thread may fork at any moment.  The growing table of code is met
 * where its memory changes: all calls of Seam's go through these.
 */
void *__real_mremap(void *p, size_t size, size_t bigger, int flags, ...);
void *__wrap_mremap(void *p, size_t size, size_t bigger, int flags, ...);
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

void *__wrap_mremap(void *p, size_t size, size_t bigger, int flags, ...)
{
	p = __real_mremap(p, size, bigger, flags);
	fork_here();
	return p;
}

int __wrap_munmap(void *p, size_t size)
{
	int r;

	fork_here();
	r = __real_munmap(p, size);
	fork_here();
	return r;
}

static void a_child_born_while_memory_grows_has_all_code(void **state)
{
	enum { MORE_THAN_A_TABLE = 2100 };
	struct seam_jitdump *dump = open_dump();

	(void)state;
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

static void a_fork_in_the_middle_of_a_call_is_survived(void **state)
{
	struct seam_jitdump *dump = open_dump();
	pthread_t thread;

	(void)state;
	is_over = false;
	pthread_create(&thread, NULL, load_until_over, dump);
	for (int i = 0; i < 20; i++)
		in_child(alarm_and_call, dump);
	is_over = true;
	pthread_join(thread, NULL);
	assert_int_equal(seam_jitdump_lost(dump), 0);
	seam_jitdump_close(dump);
}

/* ---- trouble ---- */

static void count_loads(const char *path, uint64_t *n)
{
	struct seam_jitdump_record rec;
	struct reading r;

	read_path(&r, path);
	for (*n = 0; seam_jitdump_next(&r.reader, &rec); )
		*n += rec.id == SEAM_JITDUMP_LOAD;
	assert_int_equal(r.reader.tail_bytes, 0);
	seam_file_close(&r.file);
}

static void a_full_disk_costs_records_and_nothing_else(void **state)
{
	enum { N = 4000 };
	struct seam_jitdump *dump;
	uint64_t n, lost;
	char path[128];
	FILE *ballast;

	(void)state;
	if (mount("none", folder, "tmpfs", 0, "size=256k"))
		skip();
	dump = open_dump();
	snprintf(path, sizeof(path), "%s/ballast", folder);
	ballast = fopen(path, "w");
	for (int i = 0; i < 100 * 1024; i++)
		fputc(0, ballast);
	fclose(ballast);
	errno = 4711;
	for (int i = 0; i < N; i++)
		load(dump, "f", 0x1000);
	assert_int_equal(errno, 4711);
	lost = seam_jitdump_lost(dump);
	count_loads(seam_jitdump_path(dump), &n);
	assert_true(lost > 0);
	assert_int_equal(n + lost, N);
	/* Room comes back. */
	unlink(path);
	load(dump, "f", 0x1000);
	count_loads(seam_jitdump_path(dump), &n);
	assert_int_equal(seam_jitdump_lost(dump), lost);
	assert_int_equal(n + lost, N + 1);
	seam_jitdump_close(dump);
	/* The marker is still mapped from it. */
	assert_int_equal(umount2(folder, MNT_DETACH), 0);
}

static void a_limit_on_file_sizes_raises_no_signal(void **state)
{
	struct rlimit old, limit;
	struct seam_jitdump *dump = open_dump();
	uint64_t n;

	(void)state;
	getrlimit(RLIMIT_FSIZE, &old);
	limit = old;
	limit.rlim_cur = 8192;
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
	for (int i = 0; i < 400; i++)
		load(dump, "f", 0x1000);
	setrlimit(RLIMIT_FSIZE, &old);
	count_loads(seam_jitdump_path(dump), &n);
	assert_true(n > 50 && seam_jitdump_lost(dump) > 50);
	assert_int_equal(n + seam_jitdump_lost(dump), 400);
	seam_jitdump_close(dump);
}

/* In a child that may not write, and then may. */
static int inherit_in_vain(struct seam_jitdump *dump)
{
	struct rlimit old, limit;
	uint64_t n;
	int r;

	getrlimit(RLIMIT_FSIZE, &old);
	limit = old;
	limit.rlim_cur = 1000;
	setrlimit(RLIMIT_FSIZE, &limit);
	r = seam_jitdump_flush(dump);
	setrlimit(RLIMIT_FSIZE, &old);
	if (r != -EFBIG || seam_jitdump_lost(dump) != 3000)
		return 1;
	load(dump, "later", 0x7000);
	count_loads(seam_jitdump_path(dump), &n);
	return n != 1 || seam_jitdump_lost(dump) != 3000;
}

static void a_child_counts_what_it_could_not_inherit(void **state)
{
	struct seam_jitdump *dump = open_dump();

	(void)state;
	for (int i = 0; i < 3000; i++)
		load(dump, "f", 0x1000);
	in_child(inherit_in_vain, dump);
	seam_jitdump_close(dump);
}

static int inherit_half(struct seam_jitdump *dump)
{
	struct rlimit old, limit;
	uint64_t n;
	int r;

	getrlimit(RLIMIT_FSIZE, &old);
	limit = old;
	limit.rlim_cur = 100 * 1024;
	setrlimit(RLIMIT_FSIZE, &limit);
	r = seam_jitdump_flush(dump);
	setrlimit(RLIMIT_FSIZE, &old);
	count_loads(seam_jitdump_path(dump), &n);
	if (r != -EFBIG || !n || n + seam_jitdump_lost(dump) != 2000)
		return 1;
	/* Of what is lost there is nothing to move. */
	for (uint64_t id = 1; id <= 4000; id += 2)
		n -= seam_jitdump_move(dump, id, 0x9000) == 0;
	return n != 0;
}

/* Those that are gone stay where they were in the parent's. */
static void a_child_knows_what_it_has_inherited(void **state)
{
	struct seam_jitdump *dump = open_dump();

	(void)state;
	for (int i = 0; i < 4000; i++)
		load(dump, "f", 0x1000);
	for (uint64_t id = 2; id <= 4000; id += 2)
		seam_jitdump_unload(dump, id);
	in_child(inherit_half, dump);
	seam_jitdump_close(dump);
}

static bool ftruncate_fails;

int __real_ftruncate64(int fd, off_t size);
int __wrap_ftruncate64(int fd, off_t size);

int __wrap_ftruncate64(int fd, off_t size)
{
	if (!ftruncate_fails)
		return __real_ftruncate64(fd, size);
	errno = EIO;
	return -1;
}

static void a_file_that_cannot_be_mended_is_let_go(void **state)
{
	uint8_t *large = calloc(1, 200 * 1024);
	struct seam_jitdump_code code = {
		.bytes = large,
		.size = 200 * 1024,
	};
	struct seam_jitdump *dump;
	int fd;

	(void)state;
	if (mount("none", folder, "tmpfs", 0, "size=64k"))
		skip();
	dump = open_dump();
	fd = dump->file.fd;
	ftruncate_fails = true;
	assert_int_equal(seam_jitdump_load(dump, &code, 1), -ENOSPC);
	ftruncate_fails = false;
	assert_int_equal(fcntl(fd, F_GETFD), -1);
	assert_int_equal(seam_jitdump_load(dump, &code, 1), -EBADF);
	assert_int_equal(seam_jitdump_lost(dump), 2);
	seam_jitdump_close(dump);
	assert_int_equal(umount2(folder, MNT_DETACH), 0);
	free(large);
}

static void an_open_that_fails_leaves_nothing(void **state)
{
	struct seam_jitdump_options options = { .folder = folder };
	struct rlimit old, limit;
	struct seam_jitdump *dump;
	char command[256];
	int before = dup(0);

	(void)state;
	close(before);
	getrlimit(RLIMIT_FSIZE, &old);
	limit = old;
	limit.rlim_cur = 10;
	setrlimit(RLIMIT_FSIZE, &limit);
	assert_int_equal(seam_jitdump_open(&dump, &options), -EFBIG);
	setrlimit(RLIMIT_FSIZE, &old);
	assert_null(dump);
	snprintf(command, sizeof(command),
		 "! grep -q '%s' /proc/%d/maps && "
		 "test $(ls %s | wc -l) = 0",
		 folder, getpid(), folder);
	assert_int_equal(system(command), 0);
	assert_int_equal(dup(0), before);
	close(before);
}

/* A child must not take what came later for what was lost. */
static void a_child_inherits_nothing_that_was_lost(void **state)
{
	struct seam_jitdump *dump = open_as(SEAM_JITDUMP_FORMAT_DUMP, 1);
	struct rlimit old, none;
	char path[256];
	struct reading r;

	(void)state;
	getrlimit(RLIMIT_FSIZE, &old);
	none = old;
	none.rlim_cur = 1;
	load(dump, "lost", 0x1000);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &none), 0);
	assert_true(seam_jitdump_flush(dump) < 0);
	setrlimit(RLIMIT_FSIZE, &old);
	load(dump, "kept", 0x2000);
	in_child(call_once_more, dump);
	find_child_file(path, sizeof(path));
	read_path(&r, path);
	assert_string_equal(next(&r, SEAM_JITDUMP_LOAD).load.name, "kept");
	assert_string_equal(next(&r, SEAM_JITDUMP_LOAD).load.name, "own");
	read_end(&r);
	seam_jitdump_close(dump);
}

/* The number of our descriptor may be somebody else's file by now. */
static void a_stolen_descriptor_is_not_written_to(void **state)
{
	struct seam_jitdump *dump = open_dump();
	int fd = dump->file.fd, other;
	char path[128];
	struct stat st;

	(void)state;
	snprintf(path, sizeof(path), "%s/precious", folder);
	close(fd);
	other = open(path, O_RDWR | O_CREAT, 0600);
	assert_int_equal(other, fd);
	load(dump, "f", 0x1000);
	assert_int_equal(seam_jitdump_lost(dump), 1);
	seam_jitdump_close(dump);
	assert_int_equal(fstat(other, &st), 0);
	assert_int_equal(st.st_size, 0);
	close(other);
}

static void a_stale_file_is_replaced_and_a_used_one_is_not(void **state)
{
	struct seam_jitdump_options options = { .folder = folder };
	struct seam_jitdump *dump, *second;
	char path[128], victim[128];
	struct reading r;
	struct stat st;

	(void)state;
	snprintf(victim, sizeof(victim), "%s/victim", folder);
	snprintf(path, sizeof(path), "%s/jit-%d.dump", folder, getpid());
	close(open(victim, O_CREAT | O_WRONLY, 0600));
	assert_int_equal(symlink(victim, path), 0);
	dump = open_dump();
	assert_int_equal(stat(victim, &st), 0);
	assert_int_equal(st.st_size, 0);
	assert_int_equal(seam_jitdump_open(&second, &options), -EEXIST);
	assert_null(second);
	load(dump, "f", 0x1000);
	read_path(&r, path);
	next(&r, SEAM_JITDUMP_LOAD);
	read_end(&r);
	seam_jitdump_close(dump);
	dump = open_dump();	/* over our own, closed one */
	seam_jitdump_close(dump);
	options.folder = "/nowhere";
	assert_int_equal(seam_jitdump_open(&dump, &options), -ENOENT);
}

static void the_marker_is_mapped_executable_and_stays(void **state)
{
	struct seam_jitdump *dump = open_dump();
	char command[256];

	(void)state;
	snprintf(command, sizeof(command),
		 "grep -q 'r-xp.*%s/jit-%d.dump' /proc/%d/maps", folder,
		 getpid(), getpid());
	assert_int_equal(system(command), 0);
	seam_jitdump_close(dump);
	assert_int_equal(system(command), 0);
}

static void code_larger_than_the_buffer_is_written_whole(void **state)
{
	size_t size = 3 * SEAM_WRITER_BUFFER_BYTES + 5;
	uint8_t *large = calloc(1, size);
	struct seam_jitdump_code codes[] = {
		{ .name = "small", .bytes = large, .size = 10 },
		{ .name = "large", .bytes = large, .size = size },
		{ .name = "small", .bytes = large, .size = 10 },
		{ .name = "none", .bytes = large, .size = UINT64_C(1) << 33 },
	};
	struct seam_jitdump *dump = open_dump();
	struct seam_jitdump_record rec;
	struct reading r;

	(void)state;
	assert_int_equal(seam_jitdump_load(dump, codes, 4), -EFBIG);
	assert_int_equal(seam_jitdump_lost(dump), 1);
	read_path(&r, seam_jitdump_path(dump));
	next(&r, SEAM_JITDUMP_LOAD);
	rec = next(&r, SEAM_JITDUMP_LOAD);
	assert_int_equal(rec.load.code.size, size);
	next(&r, SEAM_JITDUMP_LOAD);
	read_end(&r);
	seam_jitdump_close(dump);
	free(large);
}

static void buffered_records_wait_for_flush_and_close(void **state)
{
	struct seam_jitdump *dump = open_as(SEAM_JITDUMP_FORMAT_DUMP, 1);
	char path[128];
	struct reading r;
	uint64_t n;

	(void)state;
	snprintf(path, sizeof(path), "%s", seam_jitdump_path(dump));
	load(dump, "f", 0x1000);
	count_loads(path, &n);
	assert_int_equal(n, 0);
	assert_int_equal(seam_jitdump_flush(dump), 0);
	count_loads(path, &n);
	assert_int_equal(n, 1);
	load(dump, "g", 0x2000);
	seam_jitdump_close(dump);
	read_path(&r, path);
	next(&r, SEAM_JITDUMP_LOAD);
	next(&r, SEAM_JITDUMP_LOAD);
	next(&r, SEAM_JITDUMP_CLOSE);
	read_end(&r);
}

/* ---- maps ---- */

static void expect_entry(struct seam_perf_map_reader *r, uint64_t addr,
			 const char *name)
{
	struct seam_perf_map_entry entry;

	assert_true(seam_perf_map_next(r, &entry));
	assert_int_equal(entry.start_addr, addr);
	assert_int_equal(entry.size, sizeof(bytes));
	assert_int_equal(entry.name.size, strlen(name));
	assert_memory_equal(entry.name.data, name, strlen(name));
}

static void a_map_has_a_line_for_each_place(void **state)
{
	struct seam_jitdump *dump = open_as(SEAM_JITDUMP_FORMAT_MAP, 0);
	struct seam_jitdump_code nothing = { .name = "nothing", .addr = 1 };
	struct seam_perf_map_reader r;
	struct seam_perf_map_entry entry;
	struct seam_file file;
	char path[256];
	uint64_t id;

	(void)state;
	id = load(dump, "a name\nof two lines", 0xf);
	assert_int_equal(seam_jitdump_load(dump, &nothing, 1), 0);
	assert_int_equal(seam_jitdump_move(dump, id, 0x123456789abcdef0), 0);
	assert_int_equal(seam_jitdump_move(dump, nothing.id, 5), 0);
	in_child(call_once, dump);
	assert_int_equal(seam_file_open(&file, seam_jitdump_path(dump), NULL),
			 0);
	r = seam_perf_map_begin(file.bytes);
	expect_entry(&r, 0xf, "a name of two lines");
	expect_entry(&r, 0x123456789abcdef0, "a name of two lines");
	assert_false(seam_perf_map_next(&r, &entry));
	assert_int_equal(r.n_bad, 0);
	seam_file_close(&file);
	find_child_file(path, sizeof(path));
	assert_non_null(strstr(path, "/perf-"));
	assert_int_equal(seam_file_open(&file, path, NULL), 0);
	r = seam_perf_map_begin(file.bytes);
	expect_entry(&r, 0x123456789abcdef0, "a name of two lines");
	expect_entry(&r, 0x7000, "own");
	assert_false(seam_perf_map_next(&r, &entry));
	seam_file_close(&file);
	assert_int_equal(seam_jitdump_lost(dump), 0);
	seam_jitdump_close(dump);
}

static void no_dump_is_a_dump_that_does_nothing(void **state)
{
	struct seam_jitdump_code code = { .name = "f" };

	(void)state;
	assert_int_equal(seam_jitdump_load(NULL, &code, 1), 0);
	assert_int_equal(seam_jitdump_move(NULL, 1, 1), 0);
	assert_int_equal(seam_jitdump_unload(NULL, 1), 0);
	assert_int_equal(seam_jitdump_flush(NULL), 0);
	assert_int_equal(seam_jitdump_lost(NULL), 0);
	assert_string_equal(seam_jitdump_path(NULL), "");
	seam_jitdump_close(NULL);
}

int main(void)
{
#define TEST(name) \
	cmocka_unit_test_setup_teardown(name, make_folder, drop_folder)
	const struct CMUnitTest tests[] = {
		TEST(what_is_loaded_is_read_back),
		TEST(the_layout_by_hand_is_that_of_the_tables),
		TEST(moves_close_and_unload),
		TEST(a_child_writes_a_dump_of_its_own),
		TEST(a_child_inherits_what_still_waits),
		TEST(a_daemon_that_closed_all_inherits_too),
		TEST(a_file_in_the_place_of_the_parents_is_not_read),
		TEST(a_child_that_makes_no_code_leaves_no_file),
		TEST(a_turn_whose_owner_has_ended_is_given_up),
		TEST(threads_do_not_mix_their_records),
		TEST(a_handler_never_waits_for_its_own_thread),
		TEST(a_child_born_while_memory_grows_has_all_code),
		TEST(a_fork_in_the_middle_of_a_call_is_survived),
		TEST(a_full_disk_costs_records_and_nothing_else),
		TEST(a_limit_on_file_sizes_raises_no_signal),
		TEST(a_child_counts_what_it_could_not_inherit),
		TEST(a_child_knows_what_it_has_inherited),
		TEST(a_file_that_cannot_be_mended_is_let_go),
		TEST(an_open_that_fails_leaves_nothing),
		TEST(a_child_inherits_nothing_that_was_lost),
		TEST(a_stolen_descriptor_is_not_written_to),
		TEST(a_stale_file_is_replaced_and_a_used_one_is_not),
		TEST(the_marker_is_mapped_executable_and_stays),
		TEST(code_larger_than_the_buffer_is_written_whole),
		TEST(buffered_records_wait_for_flush_and_close),
		TEST(a_map_has_a_line_for_each_place),
		TEST(no_dump_is_a_dump_that_does_nothing),
	};

	return cmocka_run_group_tests_name("jit_writer", tests, NULL, NULL);
}
