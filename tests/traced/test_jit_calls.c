/* SPDX-License-Identifier: MIT */
/* test_jit_calls.c - signals, cancellation, faults and deaths in a call */
#include <pthread.h>
#include <semaphore.h>
#include <sys/time.h>

#include "base/clock.h"
#include "unit.h"

#include "jit_written.h"

enum { N_CALLS = 1000, MAX_SECONDS = 60 };

static struct seam_jitdump *dump;
static uint64_t n_handler_calls;
static sigjmp_buf before_call;

static void with_timer(void (*handler)(int), void (*work)(void))
{
	struct sigaction action = { .sa_handler = handler };
	struct itimerval timer = { { 0, 300 }, { 0, 300 } }, off = { 0 };

	sigaction(SIGALRM, &action, NULL);
	setitimer(ITIMER_REAL, &timer, NULL);
	work();
	setitimer(ITIMER_REAL, &off, NULL);
}

static void call_from_handler(int signal)
{
	(void)signal;
	load(dump, "handler", 1);
	n_handler_calls++;
}

static void load_while_handlers_call(void)
{
	for (uint64_t n = 0; n < N_CALLS || n_handler_calls < 50; n++)
		load(dump, "loop", 0x2000);
}

UNIT_TEST(a_handler_can_call_at_any_time)
{
	uint64_t n;

	dump = open_dump();
	with_timer(call_from_handler, load_while_handlers_call);
	assert_int_equal(seam_jitdump_lost(dump), 0);
	count_loads(seam_jitdump_path(dump), &n);
	assert_true(n >= N_CALLS + n_handler_calls);
	seam_jitdump_close(dump);
}

static void jump_out(int signal)
{
	(void)signal;
	siglongjmp(before_call, 1);
}

static void load_while_handlers_jump(void)
{
	static volatile uint64_t n, n_jumps;

	if (sigsetjmp(before_call, 1))
		n_jumps++;
	for (; n < N_CALLS || n_jumps < 50; n++)
		load(dump, "loop", 0x2000);
}

UNIT_TEST(a_handler_that_jumps_out_leaves_no_call_unfinished)
{
	uint64_t n;

	dump = open_dump();
	with_timer(jump_out, load_while_handlers_jump);
	assert_int_equal(seam_jitdump_lost(dump), 0);
	count_loads(seam_jitdump_path(dump), &n);
	assert_true(n >= N_CALLS);
	seam_jitdump_close(dump);
}

static void *load_until_cancelled(void *context)
{
	sem_post(context);
	for (;; pthread_testcancel())
		load(dump, "cancelled", 0x1000);
	return NULL;
}

UNIT_TEST(a_thread_is_cancelled_after_its_call)
{
	pthread_t thread;
	sem_t runs;
	uint64_t n;

	dump = open_dump();
	sem_init(&runs, 0, 0);
	for (int i = 0; i < 50; i++) {
		pthread_create(&thread, NULL, load_until_cancelled, &runs);
		sem_wait(&runs);
		usleep(200);
		pthread_cancel(thread);
		pthread_join(thread, NULL);
		load(dump, "later", 0x2000);
	}
	assert_int_equal(seam_jitdump_lost(dump), 0);
	count_loads(seam_jitdump_path(dump), &n);
	assert_true(n > 50);
	seam_jitdump_close(dump);
}

/* ---- faults: the caller's code is in memory that must not be read ---- */

static void *page;
static sem_t has_faulted, may_go_on;

static uint64_t load_page(const char *name)
{
	struct seam_jitdump_code code = { .name = name, .bytes = page,
					  .size = 16, .addr = 0x5000 };

	seam_jitdump_load(dump, &code, 1);
	return code.id;
}

static void set_fault_handler(void (*handler)(int))
{
	struct sigaction action = { .sa_handler = handler };

	page = mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	assert_ptr_not_equal(page, MAP_FAILED);
	sigaction(SIGSEGV, &action, NULL);
}

static void wait_and_allow(int signal)
{
	(void)signal;
	sem_post(&has_faulted);
	sem_wait(&may_go_on);
	mprotect(page, 4096, PROT_READ);
}

static void *load_after_a_fault(void *context)
{
	(void)context;
	load_page("slow");
	return NULL;
}

static void *load_all(void *context)
{
	(void)context;
	for (int i = 0; i < N_CALLS; i++)
		load(dump, "lost", 0x2000);
	return NULL;
}

/* It inherits the count of what the parent lost. */
static int load_in_child(struct seam_jitdump *own)
{
	uint64_t lost = seam_jitdump_lost(own);

	load(own, "own", 0x7000);
	return seam_jitdump_lost(own) != lost;
}

UNIT_TEST(no_thread_waits_after_one_has_timed_out)
{
	pthread_t slow, others[3];
	uint64_t n, since;

	dump = open_dump();
	load(dump, "before", 0x1000);
	sem_init(&has_faulted, 0, 0);
	sem_init(&may_go_on, 0, 0);
	set_fault_handler(wait_and_allow);
	pthread_create(&slow, NULL, load_after_a_fault, NULL);
	sem_wait(&has_faulted);
	since = seam_clock_ns();
	for (int i = 0; i < 3; i++)
		pthread_create(&others[i], NULL, load_all, NULL);
	for (int i = 0; i < 3; i++)
		pthread_join(others[i], NULL);
	/* One second for all of them; where each call waits, 1,000. */
	assert_true(seam_clock_ns() - since < MAX_SECONDS * SEAM_NS_PER_S);
	assert_int_equal(seam_jitdump_lost(dump), 3 * N_CALLS);
	/* A child is not affected. */
	in_child(load_in_child, dump);

	sem_post(&may_go_on);
	pthread_join(slow, NULL);
	load(dump, "after", 0x3000);
	assert_int_equal(seam_jitdump_lost(dump), 3 * N_CALLS);
	count_loads(seam_jitdump_path(dump), &n);
	assert_int_equal(n, 3);
	signal(SIGSEGV, SIG_DFL);
	seam_jitdump_close(dump);
}

UNIT_TEST(buffers_are_written_after_a_jump_out_of_a_fault)
{
	char path[SEAM_WRITER_PATH_BYTES];
	struct reading r;

	dump = open_as(SEAM_JITDUMP_FORMAT_DUMP, 1);
	load(dump, "buffered", 0x1000);
	set_fault_handler(jump_out);
	if (!sigsetjmp(before_call, 1))
		load_page("left");
	signal(SIGSEGV, SIG_DFL);
	load(dump, "lost", 0x2000);
	assert_int_equal(seam_jitdump_lost(dump), 1);
	memcpy(path, seam_jitdump_path(dump), sizeof(path));
	seam_jitdump_close(dump);
	read_path(&r, path);
	assert_string_equal(next(&r, SEAM_JITDUMP_LOAD).load.name, "buffered");
	next(&r, SEAM_JITDUMP_CLOSE);
	read_end(&r);
}

/* ---- a program that is killed ---- */

/* All records of the file are those that were loaded, and one may be cut. */
static void expect_a_prefix(const char *path)
{
	struct seam_jitdump_record rec;
	struct reading r;
	uint64_t id = 0;

	read_path(&r, path);
	while (seam_jitdump_next(&r.reader, &rec)) {
		assert_int_equal(rec.id, SEAM_JITDUMP_LOAD);
		assert_int_equal(rec.load.code_index, ++id);
		assert_string_equal(rec.load.name, "killed");
	}
	seam_file_close(&r.file);
}

UNIT_TEST(a_dump_is_readable_whenever_its_writer_is_killed)
{
	char path[SEAM_WRITER_PATH_BYTES + 32];
	int fds[2];

	for (int i = 0; i < 40; i++) {
		uint8_t ready;
		pid_t child;

		assert_int_equal(pipe(fds), 0);
		child = fork();
		if (!child) {
			dump = open_as(SEAM_JITDUMP_FORMAT_DUMP, i % 2);
			ready = (uint8_t)write(fds[1], "", 1);
			for (;;)
				load(dump, "killed", 0x1000);
		}
		assert_int_equal(read(fds[0], &ready, 1), 1);
		usleep((useconds_t)i * 50);
		kill(child, SIGKILL);
		waitpid(child, NULL, 0);
		snprintf(path, sizeof(path), "%s/jit-%d.dump", folder, child);
		expect_a_prefix(path);
		close(fds[0]);
		close(fds[1]);
	}
}

UNIT_MAIN(NULL, NULL, make_folder, drop_folder)
