/* SPDX-License-Identifier: MIT */
/* test_task_times.c - records of switches to times, beside a made-up schedule */
#include <linux/perf_event.h>

#include "record/counters/task_times.h"
#include "record/perf/sources.h"
#include "unit.h"

static struct seam_task_times times;

static int set_up(void **state)
{
	(void)state;
	times = (struct seam_task_times) { 0 };
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	assert_false(times.no_memory);
	seam_task_times_fini(&times);
	return 0;
}

static struct seam_perf_sample_id id_of(int pid, int tid, uint32_t cpu,
					uint64_t ns)
{
	return (struct seam_perf_sample_id) {
		.pid = pid, .tid = tid, .cpu = cpu, .time = ns,
	};
}

static void take(const void *bytes)
{
	struct seam_perf_record record = seam_perf_record_at(bytes);

	seam_task_times_take(&times, &record);
}

static void take_fields(uint32_t type, uint16_t misc, const void *fields,
			const struct seam_perf_sample_id *id)
{
	uint8_t bytes[256];

	assert_true(seam_perf_sideband_write(&seam_sources_common,
			SEAM_NATIVE, type, misc, fields, id, bytes,
			sizeof(bytes)) > 0);
	take(bytes);
}

/* As the kernel writes it: a header and the trailer. */
static void switched(int pid, int tid, uint32_t cpu, uint16_t misc,
		     uint64_t ns)
{
	struct {
		struct seam_perf_header header;
		int32_t pid, tid;
		uint64_t time;
		uint32_t cpu, reserved;
		uint64_t id;
	} record = {
		{ PERF_RECORD_SWITCH, misc, sizeof(record) },
		pid, tid, ns, cpu, 0, 1,
	};

	take(&record);
}

enum {
	IN = 0,
	BLOCKED = PERF_RECORD_MISC_SWITCH_OUT,
	PREEMPTED = PERF_RECORD_MISC_SWITCH_OUT |
		    PERF_RECORD_MISC_SWITCH_OUT_PREEMPT,
};

static void of_task(uint32_t type, int pid, int ppid, int tid, uint64_t ns)
{
	const struct seam_perf_task task = {
		.pid = pid, .ppid = ppid, .tid = tid, .time = ns,
	};
	const struct seam_perf_sample_id id = id_of(pid, tid, 0, ns);

	take_fields(type, 0, &task, &id);
}

static void executed(int pid, const char *name, uint64_t ns)
{
	const struct seam_perf_comm comm = { pid, pid, name };
	const struct seam_perf_sample_id id = id_of(pid, pid, 0, ns);

	take_fields(PERF_RECORD_COMM, PERF_RECORD_MISC_COMM_EXEC, &comm, &id);
}

UNIT_TEST_WITH(a_thread_is_on_a_cpu_blocked_or_preempted, set_up, tear_down)
{
	const struct seam_task_sums *sums = &times.ended;

	executed(10, "one", 100);
	switched(10, 10, 0, BLOCKED, 150);	/* on: 50 */
	switched(10, 10, 1, IN, 170);		/* blocked: 20 */
	switched(10, 10, 1, PREEMPTED, 270);	/* on: 100 */
	switched(10, 10, 1, IN, 273);		/* preempted: 3 */
	of_task(PERF_RECORD_EXIT, 10, 1, 10, 280);	/* on: 7 */
	seam_task_times_apply(&times, UINT64_MAX);
	assert_int_equal(sums->on_ns, 157);
	assert_int_equal(sums->blocked_ns, 20);
	assert_int_equal(sums->preempted_ns, 3);
	assert_int_equal(sums->n_blocked, 1);
	assert_int_equal(sums->n_preempted, 1);
	assert_int_equal(sums->n_migrations, 1);
	assert_string_equal(times.processes.items[0].name, "one");
	assert_int_equal(times.processes.items[0].end_ns, 280);
}

UNIT_TEST_WITH(records_of_a_later_round_wait_for_it, set_up, tear_down)
{
	executed(10, "one", 100);
	of_task(PERF_RECORD_EXIT, 10, 1, 10, 300);
	seam_task_times_apply(&times, 200);
	/* of another CPU, which was read after that one */
	switched(10, 10, 1, IN, 250);
	switched(10, 10, 0, BLOCKED, 220);
	seam_task_times_apply(&times, UINT64_MAX);
	assert_int_equal(times.ended.on_ns, 120 + 50);
	assert_int_equal(times.ended.blocked_ns, 30);
}

UNIT_TEST_WITH(an_exec_ends_the_other_threads, set_up, tear_down)
{
	executed(10, "one", 100);
	of_task(PERF_RECORD_FORK, 10, 10, 11, 100);
	switched(10, 11, 1, IN, 100);
	switched(10, 10, 0, BLOCKED, 100);
	/* thread 11 executes: it is thread 10 from here on */
	executed(10, "two", 200);
	of_task(PERF_RECORD_EXIT, 10, 1, 10, 300);
	seam_task_times_end(&times, 1000);
	assert_int_equal(times.ended.on_ns, 200);
	assert_int_equal(times.processes.n, 1);
	assert_string_equal(times.processes.items[0].name, "two");
}

UNIT_TEST_WITH(an_exec_after_the_end_of_the_first_thread_ends_the_others,
	       set_up, tear_down)
{
	executed(10, "one", 100);
	of_task(PERF_RECORD_FORK, 10, 10, 11, 100);
	switched(10, 11, 1, IN, 100);
	of_task(PERF_RECORD_EXIT, 10, 10, 10, 100);
	executed(10, "two", 200);
	of_task(PERF_RECORD_EXIT, 10, 1, 10, 300);
	seam_task_times_end(&times, 1000);
	assert_int_equal(times.ended.on_ns, 200);
	assert_int_equal(times.processes.items[0].end_ns, 300);
}

UNIT_TEST_WITH(a_pid_that_is_used_twice_is_two_processes, set_up, tear_down)
{
	executed(10, "one", 100);
	of_task(PERF_RECORD_EXIT, 10, 1, 10, 110);
	executed(10, "two", 200);
	of_task(PERF_RECORD_EXIT, 10, 1, 10, 230);
	seam_task_times_apply(&times, UINT64_MAX);
	assert_int_equal(times.processes.n, 2);
	assert_int_equal(times.processes.items[0].sums.on_ns, 10);
	assert_int_equal(times.processes.items[1].sums.on_ns, 30);
	assert_string_equal(times.processes.items[1].name, "two");
}

UNIT_TEST_WITH(a_thread_that_ran_before_was_where_its_first_switch_says,
	       set_up, tear_down)
{
	seam_task_times_begin(&times, 10, 10, "one", 'R', 100);
	seam_task_times_begin(&times, 10, 11, "one", 'R', 100);
	seam_task_times_begin(&times, 10, 12, "one", 'S', 100);
	switched(10, 10, 0, IN, 107);		/* it was preempted */
	switched(10, 11, 0, BLOCKED, 103);	/* it was on a CPU */
	seam_task_times_end(&times, 200);
	assert_int_equal(times.ended.preempted_ns, 7);
	assert_int_equal(times.ended.on_ns, 93 + 3);
	assert_int_equal(times.ended.blocked_ns, 97 + 100);
}

UNIT_TEST_WITH(processes_beyond_the_limit_share_a_row, set_up, tear_down)
{
	enum { N = SEAM_TASK_MAX_PROCESSES + 1000 };
	const struct seam_timed_process *last;

	for (int i = 0; i < N; i++) {
		executed(1000 + i, "one", 100 + (uint64_t)i);
		of_task(PERF_RECORD_EXIT, 1000 + i, 1, 1000 + i,
			105 + (uint64_t)i);
	}
	seam_task_times_apply(&times, UINT64_MAX);
	assert_int_equal(times.processes.n, SEAM_TASK_MAX_PROCESSES);
	assert_int_equal(times.ended.on_ns, 5 * N);
	last = &times.processes.items[SEAM_TASK_MAX_PROCESSES - 1];
	assert_int_equal(last->pid, 0);
	assert_int_equal(last->sums.on_ns, 5 * 1001);
	/* and the threads that have ended are not kept */
	assert_true(times.threads.n < 1000);
}

UNIT_TEST_WITH(damaged_records_are_left_out, set_up, tear_down)
{
	struct seam_perf_header header = {
		PERF_RECORD_SWITCH, 0, sizeof(header),
	};

	take(&header);
	header.type = PERF_RECORD_FORK;
	take(&header);
	header.type = PERF_RECORD_COMM;
	take(&header);
	seam_task_times_end(&times, 100);
	assert_int_equal(times.ended.on_ns, 0);
	assert_int_equal(times.processes.n, 0);
}

/* ---- beside a schedule ---- */

enum { N_THREADS = 40, N_STEPS = 20000 };

/* What a thread of the schedule does, and has done. */
struct actor {
	bool lives;
	uint16_t state;			/* IN, BLOCKED or PREEMPTED */
	struct seam_task_sums sums;
};

static void spend(struct actor *actor, uint64_t ns)
{
	if (actor->state == IN)
		actor->sums.on_ns += ns;
	else if (actor->state == BLOCKED)
		actor->sums.blocked_ns += ns;
	else
		actor->sums.preempted_ns += ns;
}

/* One step of @actor, thread @tid of process 1, at @ns. */
static void act(struct actor *actor, int tid, uint64_t ns)
{
	int dice = rand() % 10;

	if (!actor->lives) {
		actor->lives = true;
		actor->state = PREEMPTED;
		of_task(PERF_RECORD_FORK, 1, 1, tid, ns);
	} else if (actor->state != IN) {
		actor->state = IN;
		switched(1, tid, 0, IN, ns);
	} else if (dice == 0) {
		actor->lives = false;
		of_task(PERF_RECORD_EXIT, 1, 1, tid, ns);
	} else {
		actor->state = dice < 5 ? BLOCKED : PREEMPTED;
		actor->sums.n_blocked += actor->state == BLOCKED;
		actor->sums.n_preempted += actor->state == PREEMPTED;
		switched(1, tid, 0, actor->state, ns);
	}
}

UNIT_TEST_WITH(sums_are_those_of_a_random_schedule, set_up, tear_down)
{
	struct actor actors[N_THREADS] = { 0 };
	struct seam_task_sums all = { 0 };
	uint64_t ns = 1000;

	srand(1);
	executed(1, "keeper", ns);
	switched(1, 1, 0, BLOCKED, ns);
	for (int i = 0; i < N_STEPS; i++) {
		uint64_t passed = (uint64_t)(rand() % 1000 + 1);
		int tid = rand() % N_THREADS;

		for (int k = 0; k < N_THREADS; k++)
			if (actors[k].lives)
				spend(&actors[k], passed);
		ns += passed;
		act(&actors[tid], 100 + tid, ns);
		if (i % 100 == 0)
			seam_task_times_apply(&times, ns - 500);
	}
	seam_task_times_end(&times, ns);
	for (int k = 0; k < N_THREADS; k++) {
		all.on_ns += actors[k].sums.on_ns;
		all.blocked_ns += actors[k].sums.blocked_ns;
		all.preempted_ns += actors[k].sums.preempted_ns;
		all.n_blocked += actors[k].sums.n_blocked;
		all.n_preempted += actors[k].sums.n_preempted;
	}
	/* process 1's first thread was blocked from its begin on */
	assert_int_equal(times.ended.on_ns, all.on_ns);
	assert_int_equal(times.ended.blocked_ns, all.blocked_ns + ns - 1000);
	assert_int_equal(times.ended.preempted_ns, all.preempted_ns);
	assert_int_equal(times.ended.n_blocked, all.n_blocked + 1);
	assert_int_equal(times.ended.n_preempted, all.n_preempted);
}

UNIT_MAIN(NULL, NULL, NULL, NULL)
