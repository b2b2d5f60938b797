/* SPDX-License-Identifier: MIT */
/* test_task_tree.c - whose a thread is, and which process has the memory */
#include <linux/perf_event.h>
#include <pthread.h>

#include "record/services/task_tree.h"
#include "unit.h"

/* Process 10 got the memory at time 100. */
enum { CONNECTED = 10, SINCE = 100 };

static struct seam_task_tree tree;
static struct seam_tree_process *connected;

static int set_up(void **state)
{
	connected = seam_task_tree_get(&tree, CONNECTED, SINCE);
	return connected ? 0 : -1;
}

static int tear_down(void **state)
{
	seam_tree_process_unref(connected);
	seam_task_tree_fini(&tree);
	return 0;
}

static void see(uint32_t type, uint32_t pid, uint32_t tid, uint32_t parent,
		uint64_t time_ns)
{
	struct seam_perf_sideband record = {
		.type = type, .sample_id.time = time_ns,
	};

	if (type == PERF_RECORD_COMM) {
		record.misc = PERF_RECORD_MISC_COMM_EXEC;
		record.comm.pid = (int32_t)pid;
	} else {
		record.task.pid = (int32_t)pid;
		record.task.tid = (int32_t)tid;
		record.task.ppid = (int32_t)parent;
	}
	seam_task_tree_see(&tree, &record, time_ns);
}

static void see_fork(uint32_t pid, uint32_t parent, uint64_t time_ns)
{
	see(PERF_RECORD_FORK, pid, pid, parent, time_ns);
}

static void see_thread(uint32_t tid, uint32_t pid, uint64_t time_ns)
{
	see(PERF_RECORD_FORK, pid, tid, pid, time_ns);
}

static void see_exec(uint32_t pid, uint64_t time_ns)
{
	see(PERF_RECORD_COMM, pid, pid, 0, time_ns);
}

static void see_exit(uint32_t tid, uint32_t pid, uint64_t time_ns)
{
	see(PERF_RECORD_EXIT, pid, tid, 0, time_ns);
}

/* Thread @tid claims a ring: it is @pid's, 0: nobody's; @end_ns: its end. */
static void expect(uint32_t tid, uint32_t pid, uint64_t end_ns)
{
	struct seam_tree_process *owner =
		seam_task_tree_owner(&tree, tid, connected, SINCE);

	assert_int_equal(owner ? owner->pid : 0, pid);
	assert_int_equal(owner ? owner->end_ns : 0, end_ns);
	seam_tree_process_unref(owner);
}

static void apply_all(void)
{
	seam_task_tree_apply(&tree, UINT64_MAX);
}

UNIT_TEST(who_connected_has_the_memory_until_its_exec)
{
	expect(CONNECTED, CONNECTED, 0);
	expect(11, 0, 0);
	see_exec(CONNECTED, 200);
	apply_all();
	expect(CONNECTED, CONNECTED, 200);
	assert_true(connected->has_executed);
	assert_false(seam_tree_process_has_memory(connected));
}

UNIT_TEST(a_child_has_it_if_it_was_forked_in_that_time)
{
	see_fork(20, CONNECTED, 100);
	see_fork(21, CONNECTED, 101);
	see_fork(22, CONNECTED, 200);
	see_exec(CONNECTED, 201);
	see_fork(23, CONNECTED, 202);
	see_fork(24, 99, 150);
	apply_all();
	expect(20, 0, 0);
	expect(21, 21, 0);
	expect(22, 22, 0);
	expect(23, 0, 0);
	expect(24, 0, 0);
	/* and its children, of before its exec only */
	see_fork(30, 21, 300);
	see_exec(21, 310);
	see_fork(31, 21, 320);
	apply_all();
	expect(30, 30, 0);
	expect(21, 21, 310);
	expect(31, 0, 0);
}

/* The rings of CPUs are read one after another. */
UNIT_TEST(records_count_in_the_order_of_time)
{
	see_thread(41, 20, 140);
	see_exec(20, 160);
	see_fork(20, CONNECTED, 130);
	see_fork(50, 21, 170);
	see_fork(21, 20, 150);
	see_fork(22, 20, 165);
	apply_all();
	expect(20, 20, 160);
	expect(41, 20, 160);
	expect(21, 21, 0);
	expect(50, 50, 0);
	expect(22, 0, 0);
}

UNIT_TEST(later_records_wait)
{
	see_fork(20, CONNECTED, 150);
	see_fork(21, CONNECTED, 151);
	seam_task_tree_apply(&tree, 150);
	expect(20, 20, 0);
	expect(21, 0, 0);
	seam_task_tree_apply(&tree, 151);
	expect(21, 21, 0);
}

UNIT_TEST(a_thread_is_of_the_process_that_had_its_id_last)
{
	see_thread(40, CONNECTED, 90);
	apply_all();
	expect(40, CONNECTED, 0);
	see_thread(40, 99, 120);
	apply_all();
	expect(40, 0, 0);
	see_fork(40, CONNECTED, 200);
	apply_all();
	expect(40, 40, 0);
	see_fork(CONNECTED + 1, 40, 210);
	see_thread(40, 99, 220);
	apply_all();
	/* the end of process 40 was not recorded, its child is still there */
	expect(CONNECTED + 1, CONNECTED + 1, 0);
	expect(40, 0, 0);
}

/* Its last records are read in this round or the next. */
UNIT_TEST(a_thread_that_has_ended_is_known_for_two_rounds)
{
	struct seam_tree_process *owner;

	see_thread(40, CONNECTED, 110);
	apply_all();
	owner = seam_task_tree_owner(&tree, 40, connected, SINCE);
	assert_ptr_equal(owner, connected);
	assert_false(seam_task_tree_has_ended(&tree, owner, 40));
	see_exit(40, CONNECTED, 120);
	for (int i = 0; i < 2; i++) {
		apply_all();
		expect(40, CONNECTED, 0);
		assert_true(seam_task_tree_has_ended(&tree, owner, 40));
	}
	apply_all();
	expect(40, 0, 0);
	assert_true(seam_task_tree_has_ended(&tree, owner, 40));
	/* another thread with its id */
	see_thread(40, 99, 130);
	apply_all();
	assert_true(seam_task_tree_has_ended(&tree, owner, 40));
	assert_false(seam_task_tree_has_ended(&tree, owner, CONNECTED));
	seam_tree_process_unref(owner);
}

UNIT_TEST(a_process_ends_with_its_last_thread)
{
	see_thread(40, CONNECTED, 110);
	see_exit(CONNECTED, CONNECTED, 120);
	apply_all();
	apply_all();
	assert_false(seam_task_tree_has_ended(&tree, connected, CONNECTED));
	see_thread(41, CONNECTED, 130);
	see_exit(40, CONNECTED, 140);
	apply_all();
	assert_false(connected->end_ns);
	see_exit(41, CONNECTED, 150);
	apply_all();
	assert_int_equal(connected->end_ns, 150);
	assert_false(connected->has_executed);
}

UNIT_TEST(the_memory_goes_with_the_last_process_that_has_it)
{
	see_fork(20, CONNECTED, 110);
	see_fork(30, 20, 120);
	see_fork(31, 20, 120);
	see_exit(CONNECTED, CONNECTED, 130);
	see_exit(20, 20, 140);
	apply_all();
	assert_true(seam_tree_process_has_memory(connected));
	see_exec(30, 150);
	apply_all();
	assert_true(seam_tree_process_has_memory(connected));
	see_exit(31, 31, 160);
	apply_all();
	assert_false(seam_tree_process_has_memory(connected));
	/* 30 is another program now, with children that have none of it */
	see_fork(32, 30, 170);
	apply_all();
	expect(32, 0, 0);
	assert_false(seam_tree_process_has_memory(connected));
}

UNIT_TEST(an_end_that_was_not_recorded_is_found)
{
	struct seam_tree_process *gone, *own;
	pid_t pid = fork();

	if (pid == 0)
		_exit(0);
	gone = seam_task_tree_get(&tree, (uint32_t)pid, 1);
	own = seam_task_tree_get(&tree, (uint32_t)getpid(), 1);
	seam_task_tree_check(&tree, gone);
	assert_int_equal(gone->end_ns, 0);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	seam_task_tree_check(&tree, gone);
	seam_task_tree_check(&tree, own);
	assert_int_not_equal(gone->end_ns, 0);
	assert_int_equal(own->end_ns, 0);
	seam_tree_process_unref(gone);
	seam_tree_process_unref(own);
}

static void *stay(void *pipes)
{
	uint32_t tid = (uint32_t)gettid();
	char c;

	assert_int_equal(write(((int *)pipes)[1], &tid, sizeof(tid)),
			 sizeof(tid));
	return read(((int *)pipes)[2], &c, 1) == 0 ? NULL : pipes;
}

UNIT_TEST(so_is_a_thread_of_a_known_process)
{
	struct seam_tree_process *own, *owner;
	pthread_t thread;
	int pipes[4];
	uint32_t tid;

	assert_int_equal(pipe(pipes), 0);
	assert_int_equal(pipe(pipes + 2), 0);
	assert_int_equal(pthread_create(&thread, NULL, stay, pipes), 0);
	assert_int_equal(read(pipes[0], &tid, sizeof(tid)), sizeof(tid));
	seam_task_tree_ask(&tree, tid);	/* of no known process */
	own = seam_task_tree_get(&tree, (uint32_t)getpid(), 1);
	assert_null(seam_task_tree_owner(&tree, tid, own, 1));
	seam_task_tree_ask(&tree, tid);
	owner = seam_task_tree_owner(&tree, tid, own, 1);
	assert_ptr_equal(owner, own);
	assert_int_equal(own->n_threads, 2);
	/* the recorder, or another process */
	seam_task_tree_ask(&tree, (uint32_t)getppid());
	assert_null(seam_task_tree_owner(&tree, (uint32_t)getppid(), own, 1));
	close(pipes[3]);
	assert_int_equal(pthread_join(thread, NULL), 0);
	for (int i = 0; i < 3; i++)
		close(pipes[i]);
	seam_tree_process_unref(owner);
	seam_tree_process_unref(own);
}

/* A recording of weeks has as many tasks as ids, again and again. */
UNIT_TEST(tasks_that_ended_take_no_memory)
{
	for (uint32_t i = 0; i < 70000; i++) {
		uint32_t pid = 1000 + i;
		uint64_t time_ns = 200 + 5 * i;

		see_fork(pid, CONNECTED, time_ns);
		see_thread(100000 + i, pid, time_ns + 1);
		see_exit(100000 + i, pid, time_ns + 2);
		see_exec(pid, time_ns + 3);
		see_exit(pid, pid, time_ns + 4);
		if (i % 1000 == 0)
			apply_all();
	}
	apply_all();
	apply_all();
	apply_all();
	for (uint32_t i = 1; i < SEAM_TASK_TREE_PAGES; i++)
		assert_null(tree.pages[i]);
	assert_int_equal(connected->n_references, 2);
	assert_int_equal(connected->n_children, 0);
}

UNIT_TEST(numbers_that_are_no_ids_have_no_effect)
{
	static const uint32_t none[] = {
		0, SEAM_TASK_TREE_MAX_ID, UINT32_MAX,
	};

	for (size_t i = 0; i < SEAM_ARRAY_SIZE(none); i++) {
		see_fork(none[i], CONNECTED, 200);
		see_fork(20, none[i], 200);
		see_thread(none[i], CONNECTED, 200);
		see_thread(21, none[i], 200);
		see_exec(none[i], 200);
		see_exit(none[i], none[i], 200);
		apply_all();
		expect(none[i], 0, 0);
		expect(21, 0, 0);
		assert_null(seam_task_tree_get(&tree, none[i], 300));
		assert_null(seam_task_tree_believe(&tree, none[i], connected));
	}
	assert_int_equal(connected->end_ns, 0);
}

/* Where there are no records of tasks. */
UNIT_TEST(a_believed_process_has_the_memory_until_its_end)
{
	struct seam_tree_process *child =
		seam_task_tree_believe(&tree, 20, connected);
	struct seam_tree_process *same =
		seam_task_tree_believe(&tree, 20, connected);

	assert_non_null(child);
	assert_ptr_equal(same, child);
	expect(20, 20, 0);
	see_exit(CONNECTED, CONNECTED, 200);
	apply_all();
	assert_true(seam_tree_process_has_memory(connected));
	see_exit(20, 20, UINT64_MAX - 1);
	apply_all();
	assert_false(seam_tree_process_has_memory(connected));
	seam_tree_process_unref(child);
	seam_tree_process_unref(same);
}

UNIT_MAIN(NULL, NULL, set_up, tear_down)
