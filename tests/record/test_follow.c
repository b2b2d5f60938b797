/* SPDX-License-Identifier: MIT */
/* test_follow.c - files of JITs, copied and handed on while they are written */
#include "record/bundle/follow.h"

#include <linux/perf_event.h>
#include <poll.h>

#include "base/file.h"
#include "folder.h"
#include "jit_dump.h"
#include "record/bundle/kept_files.h"
#include "record/proc/target_file.h"
#include "record/stacks/live_jit.h"
#include "unit.h"

enum { CODE = 0x100000, MAX_LOADS = 200, MAX_WAITS = 3000 };

static struct seam_live_jit jit;
static struct seam_bundle bundle;
static struct seam_follow follow;
static struct seam_kept_counts counts;
static struct dump d;
static char path[128], map[64];
static int out;
static _Atomic bool hangs;

int __real_seam_target_open_path(const struct seam_target *target,
				 const char *name, struct seam_err *err);
int __wrap_seam_target_open_path(const struct seam_target *target,
				 const char *name, struct seam_err *err);

int __wrap_seam_target_open_path(const struct seam_target *target,
				 const char *name, struct seam_err *err)
{
	while (hangs && strstr(name, "/hanging/"))
		usleep(1000);
	return __real_seam_target_open_path(target, name, err);
}

static void take_code(void *context, uint32_t pid, struct seam_bytes group)
{
	(void)context;
	seam_live_jit_add(&jit, (int32_t)pid, group);
}

static int set_up(void **state)
{
	if (make_folder(state))
		return -1;
	bundle.dir = open(folder, O_RDONLY | O_DIRECTORY);
	jit = (struct seam_live_jit) { .n = 0 };
	follow = (struct seam_follow) {
		.bundle = &bundle, .on_code = take_code,
	};
	d.size = 0;
	snprintf(map, sizeof(map), "/tmp/perf-%d.map", getpid());
	unlink(map);	/* of a process that had this pid before */
	snprintf(path, sizeof(path), "%s/jit-%d.dump", folder, getpid());
	out = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	return out < 0;
}

static int tear_down(void **state)
{
	close(out);
	unlink(map);
	seam_follow_fini(&follow);
	seam_live_jit_fini(&jit);
	close(bundle.dir);
	return drop_folder(state);
}

static void maps(int32_t pid, const char *name)
{
	const struct seam_perf_sideband record = {
		.type = PERF_RECORD_MMAP2,
		.mapping = { .pid = pid, .prot = PROT_EXEC, .filename = name },
	};

	seam_follow_sideband(&follow, &record);
}

/* Rounds, until @n bytes were copied, and some more. */
static void wait_for_bytes(uint64_t n)
{
	for (int i = 0; i < MAX_WAITS && seam_follow_bytes(&follow) < n; i++) {
		usleep(1000);
		seam_follow_step(&follow);
	}
	assert_int_equal(seam_follow_bytes(&follow), n);
	for (int i = 0; i < 10; i++)
		seam_follow_step(&follow);
}

/* The follower has found that the file was cut. */
static void wait_for_none(void)
{
	for (int i = 0; i < MAX_WAITS && seam_follow_bytes(&follow); i++)
		usleep(1000);
	assert_int_equal(seam_follow_bytes(&follow), 0);
}

static bool wait_for(void *context, int fd, int timeout_ms)
{
	struct pollfd ended = { .fd = fd, .events = POLLIN };

	(void)context;
	poll(&ended, 1, timeout_ms);
	return true;
}

static void finish(void)
{
	const struct seam_kept_destination to = {
		.bundle = &bundle, .wait = wait_for,
	};

	seam_follow_copy(&follow, &to, &counts);
}

static void append(const void *bytes, size_t n)
{
	assert_int_equal(write(out, bytes, n), n);
}

static void expect_copy(const char *name, const void *bytes, size_t n)
{
	struct seam_file file;
	char copy[128];

	snprintf(copy, sizeof(copy), "%s/jit/%s", folder, name);
	assert_int_equal(seam_file_read(&file, AT_FDCWD, copy, 1 << 24, NULL),
			 0);
	assert_int_equal(file.bytes.size, n);
	assert_memory_equal(file.bytes.data, bytes, n);
	seam_file_close(&file);
}

static void expect_dump(const void *bytes, size_t n)
{
	char name[32];

	snprintf(name, sizeof(name), "jit-%d.dump", getpid());
	expect_copy(name, bytes, n);
}

/* A header that names this process, then loads of 64 bytes, with tables. */
static void make_dump(uint64_t n_loads)
{
	uint32_t pid = (uint32_t)getpid();

	d.size = 0;
	put_header(&d);
	memcpy(d.bytes + 20, &pid, sizeof(pid));
	for (uint64_t i = 0; i < n_loads; i++) {
		put_unwinding(&d);
		put_load(&d, 10 + i, "f", CODE + i * 64, 64, i);
	}
}

static bool is_found(uint64_t addr)
{
	struct seam_live_jit_process *p = seam_live_jit_process(&jit, getpid());
	struct seam_unwind_code code;

	return p && seam_live_jit_find(&jit, p, addr, UINT64_MAX - 1, &code);
}

/* All that is before it, and it, is known, and nothing after it. */
static void check_known(uint64_t n)
{
	for (uint64_t i = 0; i < MAX_LOADS; i++)
		assert_int_equal(is_found(CODE + i * 64 + 3), i < n);
}

UNIT_TEST(what_is_appended_is_read_on_wherever_a_write_ended)
{
	size_t at = 0, group;
	uint32_t seed = 7;

	make_dump(1);
	group = d.size - SEAM_JITDUMP_HEADER_BYTES;
	make_dump(MAX_LOADS);
	maps(getpid(), path);
	seam_follow_step(&follow);
	/* a header at once: what does not begin with one is no dump */
	append(d.bytes, SEAM_JITDUMP_HEADER_BYTES);
	at = SEAM_JITDUMP_HEADER_BYTES;
	while (at < d.size) {
		size_t n;

		seed = seed * 1103515245 + 12345;
		n = (seed >> 8) % 2000;
		n = n < d.size - at ? n : d.size - at;
		append(d.bytes + at, n);
		at += n;
		wait_for_bytes(at);
		check_known((at - SEAM_JITDUMP_HEADER_BYTES) / group);
	}
	check_known(MAX_LOADS);
	finish();
	expect_dump(d.bytes, d.size);
	assert_int_equal(counts.n_copied, 1);
	assert_int_equal(counts.n_bytes, d.size);
}

UNIT_TEST(a_record_that_is_larger_than_a_read_is_skipped)
{
	static uint8_t large[SEAM_FOLLOW_READ + 5000];
	const uint32_t prefix[2] = { 0, sizeof(large) };
	static struct dump after;

	make_dump(1);
	memcpy(large, prefix, sizeof(prefix));
	memset(large + sizeof(prefix), 1, sizeof(large) - sizeof(prefix));
	after.size = 0;
	put_load(&after, 99, "g", CODE + 64, 64, 7);
	append(d.bytes, d.size);
	append(large, sizeof(large));
	append(after.bytes, after.size);
	maps(getpid(), path);
	wait_for_bytes(d.size + sizeof(large) + after.size);
	check_known(2);
}

UNIT_TEST(nothing_is_taken_after_a_record_without_a_size)
{
	static const uint8_t zeros[2 * SEAM_FOLLOW_READ];

	make_dump(2);
	append(d.bytes, d.size);
	append(zeros, sizeof(zeros));
	append(d.bytes + SEAM_JITDUMP_HEADER_BYTES, 2000);
	maps(getpid(), path);
	wait_for_bytes(d.size + sizeof(zeros) + 2000);
	check_known(2);
}

UNIT_TEST(only_dumps_that_count_as_we_do_are_taken)
{
	uint64_t flags = SEAM_JITDUMP_ARCH_TIMESTAMP;

	make_dump(3);
	memcpy(d.bytes + 32, &flags, sizeof(flags));
	append(d.bytes, d.size);
	maps(getpid(), path);
	wait_for_bytes(d.size);
	check_known(0);
	finish();
	expect_dump(d.bytes, d.size);
}

UNIT_TEST(a_file_that_others_may_write_to_is_refused)
{
	make_dump(3);
	append(d.bytes, d.size);
	assert_int_equal(fchmod(out, 0666), 0);
	maps(getpid(), path);
	finish();
	check_known(0);
	assert_int_equal(counts.n_copied, 0);
	assert_int_equal(counts.n_left_out[SEAM_KEPT_REFUSED], 1);
	assert_non_null(strstr(counts.why.cause[0], "others may write it"));
	assert_int_equal(faccessat(bundle.dir, "jit", F_OK, 0), -1);
}

/* @record: the process of the first dump is none, or executes another. */
static void check_former(const struct seam_perf_sideband *record)
{
	size_t two;

	make_dump(2);
	two = d.size;
	append(d.bytes, two);
	maps(getpid(), path);
	wait_for_bytes(two);
	check_known(2);
	seam_follow_sideband(&follow, record);
	make_dump(5);
	append(d.bytes + two, d.size - two);
	wait_for_bytes(d.size);
	check_known(2);
	/* the next program writes one of that name: its copy replaces the other */
	assert_int_equal(ftruncate(out, 0), 0);
	assert_int_equal(lseek(out, 0, SEEK_SET), 0);
	make_dump(4);
	append(d.bytes, d.size);
	maps(getpid(), path);
	wait_for_bytes(d.size);
	check_known(4);
	finish();
	expect_dump(d.bytes, d.size);
	assert_int_equal(counts.n_copied, 1);
}

UNIT_TEST(the_dump_of_a_program_before_an_exec_is_not_taken_on)
{
	check_former(&(struct seam_perf_sideband) {
		.type = PERF_RECORD_COMM, .misc = PERF_RECORD_MISC_COMM_EXEC,
		.comm = { .pid = getpid() } });
}

UNIT_TEST(the_dump_of_a_process_with_that_number_is_not_taken_on)
{
	check_former(&(struct seam_perf_sideband) {
		.type = PERF_RECORD_FORK,
		.task = { .pid = getpid(), .ppid = getppid() } });
}

UNIT_TEST(a_dump_that_is_written_anew_is_handed_on_anew)
{
	size_t header = SEAM_JITDUMP_HEADER_BYTES;

	make_dump(3);
	append(d.bytes, d.size);
	maps(getpid(), path);
	wait_for_bytes(d.size);
	check_known(3);
	assert_int_equal(ftruncate(out, 0), 0);
	assert_int_equal(lseek(out, 0, SEEK_SET), 0);
	wait_for_none();
	/* shorter than before: without the loads that are known */
	d.size = header;
	put_load(&d, 20, "f", CODE + 3 * 64, 64, 3);
	append(d.bytes, d.size);
	wait_for_bytes(d.size);
	check_known(4);
	finish();
	expect_dump(d.bytes, d.size);
}

UNIT_TEST(a_streamed_dump_has_the_short_name)
{
	char name[64], second[64];

	make_dump(2);
	append(d.bytes, d.size);
	maps(getpid(), path);
	wait_for_bytes(d.size);
	snprintf(name, sizeof(name), "jit/jit-%d.dump", getpid());
	close(openat(bundle.dir, name, O_WRONLY | O_CREAT | O_EXCL, 0600));
	finish();
	expect_dump("", 0);
	snprintf(second, sizeof(second), "jit-%d-%d.dump", getpid(), getpid());
	expect_copy(second, d.bytes, d.size);
}

UNIT_TEST(a_snapshot_has_what_was_written_until_then)
{
	struct seam_bundle snapshot;
	const struct seam_kept_destination to = {
		.bundle = &snapshot, .is_snapshot = true,
	};
	char name[64];
	int fd;

	make_dump(2);
	append(d.bytes, d.size);
	maps(getpid(), path);
	maps(getpid(), "//anon");
	fd = open(map, O_WRONLY | O_CREAT | O_EXCL, 0600);
	assert_int_equal(write(fd, "1000 10 a\n", 10), 10);
	close(fd);
	wait_for_bytes(d.size + 10);
	assert_int_equal(mkdirat(bundle.dir, "snapshot", 0700), 0);
	snapshot.dir = openat(bundle.dir, "snapshot", O_RDONLY | O_DIRECTORY);
	seam_follow_copy(&follow, &to, &counts);
	assert_int_equal(counts.n_copied, 2);
	assert_int_equal(counts.n_bytes, d.size + 10);
	snprintf(name, sizeof(name), "jit/jit-%d.dump", getpid());
	assert_int_equal(faccessat(snapshot.dir, name, F_OK, 0), 0);
	snprintf(name, sizeof(name), "jit/perf-%d.map.times", getpid());
	assert_int_equal(faccessat(snapshot.dir, name, F_OK, 0), 0);
	close(snapshot.dir);
}

UNIT_TEST(the_map_of_the_last_of_all_processes_is_copied)
{
	static const char text[] = "1000 10 a\n";
	char name[64];
	int fd;

	fd = open(map, O_WRONLY | O_CREAT | O_EXCL, 0600);
	assert_int_equal(write(fd, text, strlen(text)), strlen(text));
	close(fd);
	/* no such processes */
	for (int i = 1; i < SEAM_FOLLOW_MAX; i++)
		maps(INT32_MAX - i, "//anon");
	maps(getpid(), "//anon");
	maps(INT32_MAX, "//anon");
	maps(INT32_MAX, "//anon");
	finish();
	snprintf(name, sizeof(name), "perf-%d.map", getpid());
	expect_copy(name, text, strlen(text));
	assert_int_equal(counts.n_copied, 1);
	assert_int_equal(counts.n_left_out[SEAM_KEPT_TOO_MANY], 1);
}

UNIT_TEST(a_file_that_does_not_answer_costs_no_other_file)
{
	char hanging[64];

	hangs = true;
	snprintf(hanging, sizeof(hanging), "/hanging/jit-%d.dump", 7);
	maps(INT32_MAX - 1, hanging);
	usleep(20000);
	make_dump(2);
	append(d.bytes, d.size);
	maps(getpid(), path);
	for (int i = 0; !seam_follow_bytes(&follow) && i < 80; i++) {
		usleep(100000);
		seam_follow_step(&follow);
	}
	wait_for_bytes(d.size);
	check_known(2);
	finish();
	expect_dump(d.bytes, d.size);
	assert_int_equal(counts.n_left_out[SEAM_KEPT_TIMED_OUT], 1);
	hangs = false;
}

UNIT_MAIN(NULL, NULL, set_up, tear_down)
