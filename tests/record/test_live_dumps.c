/* SPDX-License-Identifier: MIT */
/* test_live_dumps.c - jitdump files, read while they are written */
#include "record/stacks/live_dumps.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "folder.h"
#include "jit_dump.h"

enum { CODE = 0x100000, MAX_LOADS = 200 };

static struct seam_live_jit jit;
static struct seam_live_dumps dumps;
static uint64_t now;
static char path[128];
static int out;

static bool has_no_memory;

char *__real_strdup(const char *text);
char *__wrap_strdup(const char *text);

char *__wrap_strdup(const char *text)
{
	return has_no_memory ? NULL : __real_strdup(text);
}

static int set_up(void **state)
{
	if (make_folder(state))
		return -1;
	jit = (struct seam_live_jit) { .n = 0 };
	dumps = (struct seam_live_dumps) { .jit = &jit };
	now = 1;
	snprintf(path, sizeof(path), "%s/jit-%d.dump", folder, getpid());
	out = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	return out < 0;
}

static int tear_down(void **state)
{
	close(out);
	seam_live_dumps_fini(&dumps);
	seam_live_jit_fini(&jit);
	return drop_folder(state);
}

/* Rounds, until the file was read at least once more. */
static void step(void)
{
	for (int i = 0; i < 4; i++) {
		now += 32 * SEAM_LIVE_DUMPS_WAIT_NS;
		seam_live_dumps_step(&dumps, now);
		while (dumps.is_busy && seam_helper_collect(dumps.helper))
			usleep(100);
	}
}

static void append(const void *bytes, size_t n)
{
	assert_int_equal(write(out, bytes, n), n);
}

/* A header that names this process, then loads of 64 bytes, with tables. */
static void make_dump(struct dump *d, uint64_t n_loads)
{
	uint32_t pid = (uint32_t)getpid();

	put_header(d);
	memcpy(d->bytes + 20, &pid, sizeof(pid));
	for (uint64_t i = 0; i < n_loads; i++) {
		put_unwinding(d);
		put_load(d, 10 + i, "f", CODE + i * 64, 64, i);
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

static void what_is_appended_is_read_on_wherever_a_write_ended(void **state)
{
	static struct dump d;
	size_t at = 0, group;
	uint32_t seed = 7;

	(void)state;
	d.size = 0;
	make_dump(&d, 1);
	group = d.size - SEAM_JITDUMP_HEADER_BYTES;
	d.size = 0;
	make_dump(&d, MAX_LOADS);
	seam_live_dumps_add(&dumps, getpid(), path);
	step();			/* an empty file is tried again */
	while (at < d.size) {
		size_t n;

		seed = seed * 1103515245 + 12345;
		n = (seed >> 8) % 900;
		n = n < d.size - at ? n : d.size - at;
		append(d.bytes + at, n);
		at += n;
		step();
		check_known(at < SEAM_JITDUMP_HEADER_BYTES ? 0 :
			    (at - SEAM_JITDUMP_HEADER_BYTES) / group);
	}
	check_known(MAX_LOADS);
}

static void a_record_that_is_larger_than_a_read_is_skipped(void **state)
{
	static uint8_t large[SEAM_LIVE_DUMPS_READ + 5000];
	static struct dump d, after;
	const uint32_t prefix[2] = { 0, sizeof(large) };

	(void)state;
	d.size = after.size = 0;
	make_dump(&d, 1);
	memcpy(large, prefix, sizeof(prefix));
	put_load(&after, 99, "g", CODE + 64, 64, 7);
	append(d.bytes, d.size);
	append(large, sizeof(large));
	append(after.bytes, after.size);
	seam_live_dumps_add(&dumps, getpid(), path);
	step();
	check_known(2);
}

static void nothing_is_read_after_a_record_without_a_size(void **state)
{
	static const uint8_t zeros[2 * SEAM_LIVE_DUMPS_READ];
	static struct dump d;

	(void)state;
	d.size = 0;
	make_dump(&d, 2);
	append(d.bytes, d.size);
	append(zeros, sizeof(zeros));
	seam_live_dumps_add(&dumps, getpid(), path);
	step();
	check_known(2);
	assert_true(dumps.items.items[0].is_over);
	assert_int_equal(dumps.items.items[0].fd, -1);
}

static void the_file_of_an_ended_process_is_read_to_its_end(void **state)
{
	static struct dump d;
	size_t half;

	(void)state;
	d.size = 0;
	make_dump(&d, 2);
	half = d.size;
	d.size = 0;
	make_dump(&d, 4);
	append(d.bytes, half);
	seam_live_dumps_add(&dumps, getpid(), path);
	step();
	step();
	assert_false(dumps.items.items[0].is_over);
	append(d.bytes + half, d.size - half);
	seam_live_dumps_exit(&dumps, getpid());
	step();
	check_known(4);
	assert_true(dumps.items.items[0].is_over);
	assert_int_equal(dumps.items.items[0].fd, -1);
}

static void without_memory_for_its_name_a_file_is_not_read(void **state)
{
	(void)state;
	has_no_memory = true;
	for (int i = 0; i < 3; i++) {
		seam_live_dumps_add(&dumps, getpid(), path);
		step();
	}
	assert_int_equal(dumps.items.n, 1);
	has_no_memory = false;
	seam_live_dumps_add(&dumps, getpid(), path);
	assert_int_equal(dumps.items.n, 1);
	assert_non_null(dumps.items.items[0].path);
}

static void only_dumps_that_count_as_we_do_are_read(void **state)
{
	static struct dump d;
	uint64_t flags = SEAM_JITDUMP_ARCH_TIMESTAMP;

	(void)state;
	d.size = 0;
	make_dump(&d, 3);
	memcpy(d.bytes + 32, &flags, sizeof(flags));
	append(d.bytes, d.size);
	seam_live_dumps_add(&dumps, getpid(), path);
	seam_live_dumps_add(&dumps, getpid(), "/tmp/other");
	step();
	check_known(0);
	assert_int_equal(dumps.items.n, 1);
	assert_true(dumps.items.items[0].is_over);
}

static void a_file_that_others_may_write_to_is_not_read(void **state)
{
	static struct dump d;

	(void)state;
	d.size = 0;
	make_dump(&d, 3);
	append(d.bytes, d.size);
	assert_int_equal(fchmod(out, 0666), 0);
	seam_live_dumps_add(&dumps, getpid(), path);
	for (int i = 0; i < SEAM_LIVE_DUMPS_TRIES; i++)
		step();
	check_known(0);
	assert_true(dumps.items.items[0].is_over);
}

static void the_file_of_a_program_before_an_exec_is_not_read_on(void **state)
{
	static struct dump d;

	(void)state;
	d.size = 0;
	make_dump(&d, 2);
	append(d.bytes, d.size);
	seam_live_dumps_add(&dumps, getpid(), path);
	now += SEAM_LIVE_DUMPS_WAIT_NS;
	seam_live_dumps_step(&dumps, now);
	assert_true(dumps.is_busy);
	/* while its job runs */
	seam_live_dumps_forget(&dumps, getpid());
	step();
	check_known(0);
	seam_live_dumps_add(&dumps, getpid(), path);
	step();
	check_known(2);
	assert_int_equal(dumps.items.n, 1);
}

static void of_many_files_those_idle_for_long_are_given_up(void **state)
{
	char name[64];

	(void)state;
	for (int i = 1; i < 3 * SEAM_LIVE_DUMPS_MAX; i++) {
		snprintf(name, sizeof(name), "/nowhere/jit-%d.dump", i);
		seam_live_dumps_add(&dumps, i, name);
		seam_live_dumps_step(&dumps, now++);
	}
	assert_int_equal(dumps.items.n, SEAM_LIVE_DUMPS_MAX);
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		T(what_is_appended_is_read_on_wherever_a_write_ended),
		T(a_record_that_is_larger_than_a_read_is_skipped),
		T(nothing_is_read_after_a_record_without_a_size),
		T(the_file_of_an_ended_process_is_read_to_its_end),
		T(without_memory_for_its_name_a_file_is_not_read),
		T(only_dumps_that_count_as_we_do_are_read),
		T(a_file_that_others_may_write_to_is_not_read),
		T(the_file_of_a_program_before_an_exec_is_not_read_on),
		T(of_many_files_those_idle_for_long_are_given_up),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
