/* SPDX-License-Identifier: MIT */
/* test_ended_programs.c - programs end, and their rings are given back soon */
#include <dirent.h>
#include <fcntl.h>
#include <linux/perf_event.h>
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/clock.h"
#include "record/services/services.h"
#include "ring/link/link_client.h"

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

static int setup(void **state)
{
	struct seam_err err = { 0 };

	(void)state;
	ended = (struct seam_service_stream) { 0 };
	for (int i = 0; i < N_SERVICES; i++)
		seam_services_add(&s, &services[i]);
	seam_services_open(&s, &err);
	return s.is_open ? 0 : -1;
}

static int teardown(void **state)
{
	(void)state;
	seam_services_fini(&s);
	return 0;
}

/* Without what is done once a second. */
static void run_round(void)
{
	s.checked_ns = seam_clock_ns();
	s.is_ready = true;
	seam_services_copy(&s, false);
	seam_services_take(&s, false);
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

static void see_exit(pid_t pid)
{
	const struct seam_perf_sideband record = {
		.type = PERF_RECORD_EXIT, .task.pid = pid, .task.tid = pid,
		.sample_id.time = seam_clock_ns(),
	};

	seam_services_see(&s, &record);
}

static void rings_of_an_ended_program_are_given_back(void **state)
{
	pid_t pid = start_program();

	(void)state;
	end_program(pid);
	see_exit(pid);
	assert_in_range(rounds_until_forgotten(), 1, MAX_ROUNDS - 1);
}

/* On a loaded machine a process is found in /proc long after its record. */
static void also_if_its_exit_was_recorded_rounds_before_it_ended(void **state)
{
	pid_t pid = start_program();

	(void)state;
	see_exit(pid);
	for (int i = 0; i < MAX_ROUNDS; i++)
		run_round();
	assert_int_equal(s.server.n_targets, 1);
	end_program(pid);
	assert_in_range(rounds_until_forgotten(), 1, MAX_ROUNDS - 1);
}

static void also_if_its_exit_was_not_recorded(void **state)
{
	pid_t pid = start_program();

	(void)state;
	end_program(pid);
	assert_in_range(rounds_until_forgotten(), 1, MAX_ROUNDS - 1);
}

/*
 * Connected, and stopped; then it claims its rings and becomes another program,
 * or is killed.  @end is closed from then on.
 */
static pid_t start_stopped(bool is_killed, int *end)
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
		if (is_killed)
			raise(SIGKILL);
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

	seam_services_see(&s, &record);
}

/* The memory is gone and the connection closed before the record is written. */
static void an_exec_that_is_recorded_late_keeps_the_owner(void **state)
{
	uint64_t time_ns;
	int end;
	pid_t pid = start_stopped(false, &end);

	(void)state;
	let_go_on(pid, end);
	for (int i = 0; i < 4 * MAX_ROUNDS; i++)
		run_round();
	time_ns = seam_clock_ns();
	see_exec(pid, time_ns);
	assert_in_range(rounds_until_forgotten(), 1, MAX_ROUNDS - 1);
	assert_int_equal(ended.pid, pid);
	assert_int_equal(ended.until_ns, time_ns - 1);
	assert_int_equal(services[0].n_unowned, 0);
	end_program(pid);
}

static int n_folders;

DIR *__real_opendir(const char *path);
DIR *__wrap_opendir(const char *path);

DIR *__wrap_opendir(const char *path)
{
	n_folders++;
	return __real_opendir(path);
}

/* That takes longer than the program ran. */
static void no_process_is_looked_for_among_all_of_them(void **state)
{
	int end;
	pid_t pid = start_stopped(true, &end);

	(void)state;
	let_go_on(pid, end);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	n_folders = 0;
	assert_in_range(rounds_until_forgotten(), 1, MAX_ROUNDS - 1);
	assert_int_equal(n_folders, 0);
	assert_int_equal(ended.pid, pid);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
		TEST(rings_of_an_ended_program_are_given_back),
		TEST(also_if_its_exit_was_recorded_rounds_before_it_ended),
		TEST(also_if_its_exit_was_not_recorded),
		TEST(an_exec_that_is_recorded_late_keeps_the_owner),
		TEST(no_process_is_looked_for_among_all_of_them),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
