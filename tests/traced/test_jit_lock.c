/* SPDX-License-Identifier: MIT */
/* test_jit_lock.c - threads that die in a call, or never come back to it */
#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/clock.h"
#include "traced/jit/lock.h"

#include "jit_written.h"

enum { N_CALLS = 1000, MAX_SECONDS = 60 };

static void in_a_thread(void *(*work)(void *context), void *context)
{
	pthread_t thread;

	assert_int_equal(pthread_create(&thread, NULL, work, context), 0);
	assert_int_equal(pthread_join(thread, NULL), 0);
}

static void *acquire_and_end(void *context)
{
	seam_lock_acquire(context);
	return NULL;
}

static void the_lock_of_a_dead_thread_is_acquired(void **state)
{
	struct seam_lock lock = { 0 };

	(void)state;
	seam_lock_init();
	in_a_thread(acquire_and_end, &lock);
	assert_int_equal(seam_lock_acquire(&lock), SEAM_LOCK_OWNER_DIED);
	seam_lock_release(&lock);
	assert_int_equal(seam_lock_acquire(&lock), SEAM_LOCK_WAS_FREE);
	assert_int_equal(seam_lock_acquire(&lock), -EDEADLK);
}

/* A tid is used again: its new thread is not the owner. */
static void a_thread_with_the_tid_of_a_dead_one_is_another(void **state)
{
	struct seam_lock lock = { 0 };

	(void)state;
	seam_lock_init();
	assert_int_equal(seam_lock_acquire(&lock), SEAM_LOCK_WAS_FREE);
	lock.word ^= UINT64_C(1) << 30;		/* of the serial */
	assert_int_equal(seam_lock_acquire(&lock), SEAM_LOCK_OWNER_DIED);
}

/* In the middle of its write: half a record is in the file. */
static void *die_in_a_write(void *context)
{
	struct seam_jitdump *dump = context;

	seam_lock_acquire(&dump->lock);
	assert_int_equal(write(dump->out->file.fd, "half a record", 13), 13);
	return NULL;
}

/* The file has grown, but the buffer was not emptied. */
static void *die_after_a_write(void *context)
{
	struct seam_jitdump *dump = context;
	struct seam_writer_buffer *b = &dump->out->buffer;
	struct seam_jitdump_code code = {
		.name = "last", .bytes = bytes, .size = sizeof(bytes),
	};

	seam_lock_acquire(&dump->lock);
	b->used = seam_writer_put_code(dump, b->bytes, &code, 77, 0x9000);
	b->n = 1;
	assert_int_equal(write(dump->out->file.fd, b->bytes, b->used), b->used);
	dump->out->file.size += b->used;
	return NULL;
}

static void expect_all_recorded(void *(*die)(void *), uint64_t n_more)
{
	struct seam_jitdump *dump = open_dump();
	uint64_t n;

	load(dump, "first", 0x1000);
	in_a_thread(die, dump);
	for (int i = 0; i < N_CALLS; i++)
		load(dump, "later", 0x2000);
	assert_int_equal(seam_jitdump_lost(dump), 0);
	count_loads(seam_jitdump_path(dump), &n);
	assert_int_equal(n, 1 + n_more + N_CALLS);
	seam_jitdump_close(dump);
}

static void a_thread_that_dies_in_a_call_costs_no_record(void **state)
{
	(void)state;
	expect_all_recorded(die_in_a_write, 0);
	expect_all_recorded(die_after_a_write, 1);
}

/* ---- owners that live ---- */

struct left_call {
	struct seam_jitdump *dump;
	sem_t is_locked, may_release, released;
};

/* As after a longjmp() out of the call: the lock is not released. */
static void *acquire_and_live(void *context)
{
	struct left_call *t = context;

	seam_lock_acquire(&t->dump->lock);
	sem_post(&t->is_locked);
	sem_wait(&t->may_release);
	seam_lock_release(&t->dump->lock);
	sem_post(&t->released);
	return NULL;
}

static void begin_left_call(struct left_call *t, pthread_t *thread)
{
	t->dump = open_dump();
	sem_init(&t->is_locked, 0, 0);
	sem_init(&t->may_release, 0, 0);
	sem_init(&t->released, 0, 0);
	load(t->dump, "before", 0x1000);
	pthread_create(thread, NULL, acquire_and_live, t);
	sem_wait(&t->is_locked);
}

static void *load_all(void *context)
{
	for (int i = 0; i < N_CALLS; i++)
		load(context, "lost", 0x2000);
	return NULL;
}

/* It inherits the count of what the parent lost. */
static int load_in_child(struct seam_jitdump *dump)
{
	uint64_t lost = seam_jitdump_lost(dump);

	load(dump, "own", 0x7000);
	return seam_jitdump_lost(dump) != lost;
}

static void no_thread_waits_after_one_has_timed_out(void **state)
{
	struct left_call t;
	pthread_t owner, others[3];
	uint64_t n, since;

	(void)state;
	begin_left_call(&t, &owner);
	since = seam_clock_ns();
	for (int i = 0; i < 3; i++)
		pthread_create(&others[i], NULL, load_all, t.dump);
	for (int i = 0; i < 3; i++)
		pthread_join(others[i], NULL);
	/* One second for all of them; where each call waits, 1,000. */
	assert_true(seam_clock_ns() - since < MAX_SECONDS * SEAM_NS_PER_S);
	assert_int_equal(seam_jitdump_lost(t.dump), 3 * N_CALLS);
	/* A child is not affected. */
	in_child(load_in_child, t.dump);

	sem_post(&t.may_release);
	sem_wait(&t.released);
	load(t.dump, "after", 0x3000);
	assert_int_equal(seam_jitdump_lost(t.dump), 3 * N_CALLS);
	count_loads(seam_jitdump_path(t.dump), &n);
	assert_int_equal(n, 2);
	pthread_join(owner, NULL);
	seam_jitdump_close(t.dump);
}

static void what_is_buffered_is_written_after_a_longjmp(void **state)
{
	struct seam_jitdump *dump = open_as(SEAM_JITDUMP_FORMAT_DUMP, 1);
	char path[SEAM_WRITER_PATH_BYTES];
	struct reading r;

	(void)state;
	load(dump, "buffered", 0x1000);
	assert_int_equal(seam_lock_acquire(&dump->lock), SEAM_LOCK_WAS_FREE);
	load(dump, "lost", 0x2000);
	assert_int_equal(seam_jitdump_lost(dump), 1);
	memcpy(path, seam_jitdump_path(dump), sizeof(path));
	seam_jitdump_close(dump);
	read_path(&r, path);
	assert_string_equal(next(&r, SEAM_JITDUMP_LOAD).load.name, "buffered");
	next(&r, SEAM_JITDUMP_CLOSE);
	read_end(&r);
}

/* ---- the first thread of a process, which stays as a zombie ---- */

static struct seam_jitdump *orphaned;
static pthread_t first;

static void *load_after_first(void *context)
{
	(void)context;
	pthread_join(first, NULL);
	for (int i = 0; i < N_CALLS; i++)
		load(orphaned, "later", 0x2000);
	_exit(seam_jitdump_lost(orphaned) != 0);
}

static int end_first_thread(struct seam_jitdump *dump)
{
	pthread_t thread;

	orphaned = dump;
	first = pthread_self();
	load(dump, "child's", 0x1000);
	seam_lock_acquire(&dump->lock);
	pthread_create(&thread, NULL, load_after_first, NULL);
	pthread_exit(NULL);
}

static void the_lock_of_a_zombie_is_acquired_too(void **state)
{
	struct seam_jitdump *dump = open_dump();

	(void)state;
	in_child(end_first_thread, dump);
	seam_jitdump_close(dump);
}

int main(void)
{
#define TEST(name) \
	cmocka_unit_test_setup_teardown(name, make_folder, drop_folder)
	const struct CMUnitTest tests[] = {
		TEST(the_lock_of_a_dead_thread_is_acquired),
		TEST(a_thread_with_the_tid_of_a_dead_one_is_another),
		TEST(a_thread_that_dies_in_a_call_costs_no_record),
		TEST(no_thread_waits_after_one_has_timed_out),
		TEST(what_is_buffered_is_written_after_a_longjmp),
		TEST(the_lock_of_a_zombie_is_acquired_too),
	};

	return cmocka_run_group_tests_name("jit_lock", tests, NULL, NULL);
}
