/* SPDX-License-Identifier: MIT */
/* test_blocked_stacks.c - which waits are read, and what is read of one */
#include "record/stacks/blocked_stacks.h"

#include "base/clock.h"
#include "unit.h"
#include "wire/perf/perf_sample.h"

#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define SWITCH(b, tid, ns, is_out, is_preempt) \
	seam_blocked_stacks_switch(b, tid, tid, ns, is_out, is_preempt)

enum { MARK = 0x5ea3 };

static struct seam_blocked_stacks blocked;
static uint32_t child;

/* Waits in poll(), with a word on its stack that is no other's. */
static void wait_in_poll(void)
{
	volatile uint64_t marks[100];

	for (size_t i = 0; i < 100; i++)
		marks[i] = MARK;
	for (;;) {
		poll(NULL, 0, -1);
		marks[0]++;
	}
}

static bool is_waiting(uint32_t pid)
{
	char path[64], line[16] = "";
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%u/syscall", pid);
	file = fopen(path, "r");
	assert_non_null(file);
	assert_non_null(fgets(line, sizeof(line), file));
	fclose(file);
	return strtol(line, NULL, 10) == SYS_poll && line[0] != 'r';
}

static int set_up(void **state)
{
	(void)state;
	blocked.event_id = 77;
	assert_int_equal(seam_blocked_stacks_init(&blocked, SEAM_NS_PER_MS,
						  NULL), 0);
	child = (uint32_t)fork();
	if (child == 0)
		wait_in_poll();
	while (!is_waiting(child))
		usleep(100);
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	kill((pid_t)child, SIGKILL);
	waitpid((pid_t)child, NULL, 0);
	seam_blocked_stacks_fini(&blocked);
	return 0;
}

/* Long ago enough to be due. */
static uint64_t before(void)
{
	return seam_clock_ns() - SEAM_NS_PER_S;
}

static struct seam_perf_sample read_record(const void *record)
{
	struct perf_event_attr attr = { 0 };
	struct seam_perf_attr like = { 0 };
	struct seam_perf_sample sample;

	seam_blocked_stacks_describe(&attr);
	like.sample_type = attr.sample_type | PERF_SAMPLE_IDENTIFIER |
		PERF_SAMPLE_IP | PERF_SAMPLE_TID | PERF_SAMPLE_TIME |
		PERF_SAMPLE_CPU | PERF_SAMPLE_PERIOD;
	like.sample_regs_user = attr.sample_regs_user;
	like.sample_stack_user = attr.sample_stack_user;
	assert_int_equal(seam_perf_sample_read(&like, SEAM_NATIVE,
				seam_perf_record_at(record).payload, &sample),
			 0);
	return sample;
}

UNIT_TEST_WITH(a_sample_has_place_stack_and_system_call, set_up, tear_down)
{
	struct seam_perf_sample sample;
	const void *record;
	uint64_t from = seam_clock_ns(), columns[SEAM_PERF_X86_64_COLUMNS];
	uint64_t known, word, n_marks = 0;

	SWITCH(&blocked, child, before(), true, false);
	record = seam_blocked_stacks_next(&blocked);
	assert_non_null(record);
	sample = read_record(record);
	assert_int_equal(sample.id, 77);
	assert_int_equal(sample.pid, child);
	assert_int_equal(sample.tid, child);
	assert_in_range(sample.time, from, seam_clock_ns());
	assert_int_equal(sample.weight, SYS_poll);
	assert_true(seam_perf_registers_x86_64(&sample.user_regs, columns,
					       &known));
	assert_int_equal(known, 1 << 7 | 1 << 16);	/* rsp and rip */
	assert_int_equal(columns[16], sample.ip);
	for (size_t i = 0; i + 8 <= sample.user_stack.size; i += 8) {
		memcpy(&word, sample.user_stack.data + i, sizeof(word));
		n_marks += word == MARK;
	}
	assert_in_range(n_marks, 99, 100);
	/* each wait once */
	assert_null(seam_blocked_stacks_next(&blocked));
	assert_int_equal(blocked.n[SEAM_BLOCKED_READ], 1);
}

UNIT_TEST_WITH(only_long_waits_of_blocked_threads_are_read, set_up, tear_down)
{
	SWITCH(&blocked, child, seam_clock_ns() + SEAM_NS_PER_S, true, false);
	assert_null(seam_blocked_stacks_next(&blocked));	/* too short */
	SWITCH(&blocked, child, before(), false, false);
	assert_null(seam_blocked_stacks_next(&blocked));	/* it is over */
	SWITCH(&blocked, child, before(), true, true);
	assert_null(seam_blocked_stacks_next(&blocked));	/* preempted */
	assert_int_equal(blocked.n[SEAM_BLOCKED_READ], 0);
	SWITCH(&blocked, child, before(), true, false);
	assert_non_null(seam_blocked_stacks_next(&blocked));
}

/* A thread that has ended. */
enum { ENDED = 0x3ffffff };

UNIT_TEST_WITH(a_thread_that_runs_has_no_stack, set_up, tear_down)
{
	int begun[2];
	char byte = 0;

	kill((pid_t)child, SIGKILL);
	waitpid((pid_t)child, NULL, 0);
	assert_int_equal(pipe(begun), 0);
	child = (uint32_t)fork();
	if (child == 0) {
		alarm(60);
		while (write(begun[1], &byte, 1) != 1)
			;
		for (;;)
			;
	}
	assert_int_equal(read(begun[0], &byte, 1), 1);
	close(begun[0]);
	close(begun[1]);
	SWITCH(&blocked, child, before(), true, false);
	SWITCH(&blocked, ENDED, before(), true, false);
	assert_null(seam_blocked_stacks_next(&blocked));
	assert_int_equal(blocked.n[SEAM_BLOCKED_RAN], 2);
}

UNIT_TEST_WITH(a_thread_that_ends_is_forgotten, set_up, tear_down)
{
	struct seam_perf_sideband exit = {
		.type = PERF_RECORD_EXIT,
		.task = { .pid = (int32_t)child, .tid = (int32_t)child },
	};

	SWITCH(&blocked, child, before(), true, false);
	assert_non_null(seam_blocked_stacks_next(&blocked));
	assert_int_equal(blocked.n_open, 1);
	SWITCH(&blocked, child, before(), true, false);
	seam_blocked_stacks_sideband(&blocked, &exit);
	assert_int_equal(blocked.n_open, 0);
	assert_null(seam_blocked_stacks_next(&blocked));
}

UNIT_TEST_WITH(waits_beyond_the_rate_are_counted, set_up, tear_down)
{
	enum { N = 5000 };

	for (size_t i = 0; i < N; i++) {
		SWITCH(&blocked, child, before(), true, false);
		(void)seam_blocked_stacks_next(&blocked);
	}
	assert_int_equal(blocked.n[SEAM_BLOCKED_READ] +
			 blocked.n[SEAM_BLOCKED_OVER_RATE], N);
	assert_true(blocked.n[SEAM_BLOCKED_OVER_RATE] > 0);
}

UNIT_TEST_WITH(the_oldest_of_many_waits_is_read_first, set_up, tear_down)
{
	/* slots that many threads share, and threads in between that wake up */
	for (uint32_t i = 0; i < 3 * SEAM_BLOCKED_THREADS; i++)
		SWITCH(&blocked, (1u << 26) + i, before(), true, false);
	for (uint32_t i = 0; i < 3 * SEAM_BLOCKED_THREADS; i++)
		SWITCH(&blocked, (1u << 26) + i, before(), false, false);
	SWITCH(&blocked, child, before(), true, false);
	SWITCH(&blocked, ENDED, before(), true, false);
	assert_non_null(seam_blocked_stacks_next(&blocked));
	assert_int_equal(blocked.n[SEAM_BLOCKED_RAN], 0);
	assert_null(seam_blocked_stacks_next(&blocked));
	assert_int_equal(blocked.n[SEAM_BLOCKED_RAN], 1);
}

/* As a user that may not read the threads of others. */
static int set_up_as_nobody(void **state)
{
	return set_up(state) || (geteuid() == 0 && seteuid(65534));
}

static int tear_down_as_nobody(void **state)
{
	return (getuid() == 0 && seteuid(0)) || tear_down(state);
}

UNIT_TEST_WITH(a_thread_that_may_not_be_read_is_tried_once, set_up_as_nobody,
	       tear_down_as_nobody)
{
	SWITCH(&blocked, 1, before(), true, false);
	assert_null(seam_blocked_stacks_next(&blocked));
	SWITCH(&blocked, 1, before(), true, false);
	assert_null(seam_blocked_stacks_next(&blocked));
	assert_int_equal(blocked.n[SEAM_BLOCKED_REFUSED], 1);
}

UNIT_TEST_WITH(a_thread_that_is_attached_to_is_read_once, set_up, tear_down)
{
	seam_blocked_stacks_attach(&blocked, child, child, before());
	assert_int_equal(read_record(seam_blocked_stacks_next(&blocked)).weight,
			 SYS_poll);
	assert_null(seam_blocked_stacks_next(&blocked));
	/* one that runs before it is due is not */
	seam_blocked_stacks_attach(&blocked, child, child, before());
	SWITCH(&blocked, child, before(), false, false);
	assert_null(seam_blocked_stacks_next(&blocked));
}

UNIT_TEST_WITH(a_wait_that_the_kernel_sampled_is_not_read, set_up, tear_down)
{
	blocked.has_samples = true;
	seam_blocked_stacks_sample(&blocked, child, child);
	SWITCH(&blocked, child, before(), true, false);
	assert_null(seam_blocked_stacks_next(&blocked));
	assert_int_equal(seam_blocked_stacks_wait_ms(&blocked, 100), 100);
	/* the next one has no sample: beyond the budget */
	SWITCH(&blocked, child, before(), false, false);
	SWITCH(&blocked, child, before(), true, false);
	assert_int_equal(seam_blocked_stacks_wait_ms(&blocked, 100), 1);
	assert_non_null(seam_blocked_stacks_next(&blocked));
	/* one that could run still had a sample of its own */
	seam_blocked_stacks_sample(&blocked, child, child);
	SWITCH(&blocked, child, before(), true, true);
	SWITCH(&blocked, child, before(), false, false);
	SWITCH(&blocked, child, before(), true, false);
	assert_non_null(seam_blocked_stacks_next(&blocked));
}

/* Of user nobody: for root, which may read it. */
UNIT_TEST_WITH(a_process_of_another_user_is_not_read, set_up, tear_down)
{
	int begun[2];
	char byte = 0;

	if (geteuid() != 0)
		return;		/* the kernel refuses: the test below */
	kill((pid_t)child, SIGKILL);
	waitpid((pid_t)child, NULL, 0);
	assert_int_equal(pipe(begun), 0);
	child = (uint32_t)fork();
	if (child == 0) {
		while (setuid(65534) || prctl(PR_SET_DUMPABLE, 1) ||
		       write(begun[1], &byte, 1) != 1)
			;
		wait_in_poll();
	}
	assert_int_equal(read(begun[0], &byte, 1), 1);
	close(begun[0]);
	close(begun[1]);
	while (!is_waiting(child))
		usleep(100);
	SWITCH(&blocked, child, before(), true, false);
	assert_null(seam_blocked_stacks_next(&blocked));
	assert_int_equal(blocked.n[SEAM_BLOCKED_REFUSED], 1);
	assert_int_equal(blocked.n_open, 0);
	seam_blocked_stacks_attach(&blocked, child, child, before());
	assert_true(read_record(seam_blocked_stacks_next(&blocked)).weight ==
		    SEAM_BLOCKED_NOT_READ);
}

/* Process 1 waits, as everybody may see. */
UNIT_TEST_WITH(that_an_attached_thread_waits_is_known_without_its_stack,
	       set_up_as_nobody, tear_down_as_nobody)
{
	struct seam_perf_sample sample;
	const void *record;

	seam_blocked_stacks_attach(&blocked, 1, 1, before());
	record = seam_blocked_stacks_next(&blocked);
	assert_non_null(record);
	sample = read_record(record);
	assert_int_equal(sample.tid, 1);
	assert_true(sample.weight == SEAM_BLOCKED_NOT_READ);
	assert_int_equal(sample.user_stack.size, 0);
	assert_int_equal(sample.user_regs.abi, PERF_SAMPLE_REGS_ABI_NONE);
	assert_int_equal(blocked.n[SEAM_BLOCKED_REFUSED], 1);
	/* one that runs is not said to wait */
	seam_blocked_stacks_attach(&blocked, (uint32_t)getpid(),
				   (uint32_t)getpid(), before());
	assert_null(seam_blocked_stacks_next(&blocked));
}

UNIT_TEST_WITH(the_recorder_looks_as_often_as_waits_may_be_due, set_up,
	       tear_down)
{
	struct seam_blocked_stacks unused = { 0 };

	assert_int_equal(seam_blocked_stacks_wait_ms(&unused, 100), 100);
	SWITCH(&blocked, child, before(), true, false);
	assert_int_equal(seam_blocked_stacks_wait_ms(&blocked, 100), 1);
	assert_non_null(seam_blocked_stacks_next(&blocked));
	assert_int_equal(seam_blocked_stacks_wait_ms(&blocked, 2), 2);
	assert_int_equal(seam_blocked_stacks_wait_ms(&blocked, 100), 16);
}

UNIT_MAIN(NULL, NULL, NULL, NULL)
