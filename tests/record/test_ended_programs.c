/* SPDX-License-Identifier: MIT */
/* test_ended_programs.c - programs end, and their rings are given back soon */
#include <linux/perf_event.h>
#include <poll.h>
#include <sys/prctl.h>

#include "base/clock.h"
#include "record/services/services.h"
#include "ring/link/link.h"
#include "unit.h"

enum {
	N_SERVICES = 2,
	WAIT_MS = 5000,
	/* Read, drained, resolved and given back, if one a round. */
	MAX_ROUNDS = 8,
};

static struct seam_service_stream ended;	/* the last */

static void end(struct seam_service_stream *stream,
		const struct seam_owner_counts *counts)
{
	(void)counts;
	ended = *stream;
}

static struct seam_service services[N_SERVICES] = {
	{ .link = { .name = "one", .n_free = 2,
		    .geometry = { .n_slots = 4, .data_bytes = 4096 } },
	  .end = end },
	{ .link = { .name = "two", .n_free = 2,
		    .geometry = { .n_slots = 4, .data_bytes = 4096 } } },
};

static struct seam_services s;
static bool is_checked;		/* what is done once a second is, each round */

static int setup(void **state)
{
	struct seam_err err = { 0 };

	ended = (struct seam_service_stream) { 0 };
	is_checked = false;
	for (int i = 0; i < N_SERVICES; i++)
		services[i].n_unowned = 0;
	for (int i = 0; i < N_SERVICES; i++)
		seam_services_add(&s, &services[i]);
	seam_services_open(&s, &err);
	return s.is_open ? 0 : -1;
}

static int teardown(void **state)
{
	seam_services_fini(&s);
	return 0;
}

static void run_round(void)
{
	s.checked_ns = is_checked ? 0 : seam_clock_ns();
	s.is_ready = true;
	seam_services_copy(&s, false);
	seam_services_learn(&s);
	seam_services_take(&s);
}

/* How many rounds it takes until no program has rings. */
static int rounds_until_forgotten(void)
{
	int n = 0;

	for (; n < MAX_ROUNDS && s.server.n_targets; n++)
		run_round();
	return n;
}

/* In the child. */
static void connect_program(struct seam_link_client *c)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (seam_link_client_connect(c, s.server.address, "one two", WAIT_MS))
		_exit(1);
}

static void claim_rings(struct seam_link_client *c)
{
	struct seam_ring_claim claim;

	for (uint32_t i = 0; i < N_SERVICES; i++)
		if (seam_link_client_claim(c, i, (uint32_t)getpid(), &claim))
			_exit(2);
}

/* In the child: claim a ring of each service, and stay. */
static void run_program(int ready)
{
	struct seam_link_client c;
	char done = 1;

	connect_program(&c);
	claim_rings(&c);
	if (write(ready, &done, 1) != 1)
		_exit(3);
	for (;;)
		pause();
}

static pid_t start_program(void)
{
	struct pollfd ready;
	int ends[2];
	pid_t pid;

	assert_int_equal(pipe(ends), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0)
		run_program(ends[1]);
	ready = (struct pollfd) { .fd = ends[0], .events = POLLIN };
	do
		run_round();
	while (poll(&ready, 1, 1) == 0);
	close(ends[0]);
	close(ends[1]);
	assert_int_equal(s.server.n_targets, 1);
	return pid;
}

static void end_program(pid_t pid)
{
	assert_int_equal(kill(pid, SIGKILL), 0);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
}

static void see_task(uint32_t type, pid_t pid, pid_t tid, pid_t parent)
{
	const struct seam_perf_sideband record = {
		.type = type, .sample_id.time = seam_clock_ns(),
		.task = { .pid = pid, .tid = tid, .ppid = parent },
	};

	seam_services_see_task(&s, &record);
}

static void see_exit(pid_t pid)
{
	see_task(PERF_RECORD_EXIT, pid, pid, 0);
}

static void expect_given_back(pid_t pid)
{
	assert_in_range(rounds_until_forgotten(), 1, MAX_ROUNDS - 1);
	assert_int_equal(ended.pid, pid);
}

/* The program ends, its exit is recorded, and its rings are given back. */
static void end_and_forget(pid_t pid)
{
	end_program(pid);
	see_exit(pid);
	expect_given_back(pid);
}

UNIT_TEST(rings_of_an_ended_program_are_given_back)
{
	pid_t pid = start_program();

	run_round();
	assert_int_equal(s.server.n_targets, 1);
	end_and_forget(pid);
}

UNIT_TEST(also_if_its_exit_was_not_recorded)
{
	pid_t pid = start_program();

	is_checked = true;
	run_round();
	assert_int_equal(s.server.n_targets, 1);
	end_program(pid);
	expect_given_back(pid);
}

/* A ring of service "one" for thread @tid of the program. */
static void claim_for(pid_t tid)
{
	struct seam_link_target *target = s.server.targets[0];
	struct seam_ring_claim claim;

	assert_int_equal(seam_ring_memory_claim(&target->rings[0].owners.memory,
						(uint32_t)tid, &claim), 0);
}

static uint32_t n_claimed(void)
{
	const struct seam_link_target *target = s.server.targets[0];
	uint32_t n = 0;

	for (uint32_t i = 0; i < target->rings[0].owners.n_present; i++)
		n += target->rings[0].owners.items[i].word != 0;
	return n;
}

/* They keep the program's rings from being given back. */
UNIT_TEST(children_that_ended_leave_their_rings_for_others)
{
	pid_t pid = start_program(), child = 1, thread = 2;

	run_round();
	see_task(PERF_RECORD_FORK, child, child, pid);
	see_task(PERF_RECORD_FORK, child, thread, child);
	claim_for(child);
	run_round();
	claim_for(thread);
	end_program(pid);
	see_exit(pid);
	for (int i = 0; i < MAX_ROUNDS; i++)
		run_round();
	assert_int_equal(s.server.n_targets, 1);
	assert_int_equal(n_claimed(), 2);
	see_task(PERF_RECORD_EXIT, child, thread, 0);
	for (int i = 0; i < MAX_ROUNDS; i++)
		run_round();
	assert_int_equal(n_claimed(), 1);
	assert_int_equal(ended.pid, child);
	assert_int_equal(ended.tid, thread);
	see_exit(child);
	assert_in_range(rounds_until_forgotten(), 1, MAX_ROUNDS - 1);
	assert_int_equal(ended.tid, child);
	assert_int_equal(services[0].n_unowned, 0);
}

/* Its writer may live: another one in the ring would destroy the records. */
UNIT_TEST(a_ring_of_nobody_is_given_back_with_the_programs)
{
	pid_t pid = start_program();

	claim_for(getppid());
	for (int i = 0; i < 2 * MAX_ROUNDS; i++)
		run_round();
	assert_int_equal(n_claimed(), 2);
	end_and_forget(pid);
	assert_int_equal(services[0].n_unowned, 1);
}

/*
 * Connected, and stopped; then it claims its rings and becomes another program.
 * @end is closed from then on.
 */
static pid_t start_stopped(int *end)
{
	struct seam_link_client c;
	int ends[2], status;
	pid_t pid;

	assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		connect_program(&c);
		raise(SIGSTOP);
		claim_rings(&c);
		execlp("sleep", "sleep", "60", (char *)NULL);
		_exit(3);
	}
	close(ends[1]);
	while (waitpid(pid, &status, WUNTRACED | WNOHANG) == 0)
		run_round();
	assert_true(WIFSTOPPED(status));
	*end = ends[0];
	return pid;
}

/* No round sees it claim its rings. */
static void let_go_on(pid_t pid, int end)
{
	char c;

	assert_int_equal(kill(pid, SIGCONT), 0);
	assert_int_equal(read(end, &c, 1), 0);
	close(end);
}

static void see_exec(pid_t pid, uint64_t time_ns)
{
	const struct seam_perf_sideband record = {
		.type = PERF_RECORD_COMM, .misc = PERF_RECORD_MISC_COMM_EXEC,
		.comm.pid = pid, .sample_id.time = time_ns,
	};

	seam_services_see_task(&s, &record);
}

/* The memory is gone and the connection closed before the record is written. */
UNIT_TEST(an_exec_that_is_recorded_late_keeps_the_owner)
{
	uint64_t time_ns;
	int end;
	pid_t pid = start_stopped(&end);

	let_go_on(pid, end);
	for (int i = 0; i < 4 * MAX_ROUNDS; i++)
		run_round();
	time_ns = seam_clock_ns();
	see_exec(pid, time_ns);
	expect_given_back(pid);
	assert_int_equal(ended.until_ns, time_ns - 1);
	assert_int_equal(services[0].n_unowned, 0);
	end_program(pid);
}

UNIT_MAIN(NULL, NULL, setup, teardown)
