/* SPDX-License-Identifier: MIT */
/* test_loop.c - signals arrive as data, and none of them as a signal later */
#include "record/loop.h"

#include "base/clock.h"

#include "unit.h"

/* What is done in a child of its own, whose end is looked at. */
static int status_of(int (*act)(void))
{
	int status = -1;
	pid_t pid = fork();

	if (pid == 0)
		_exit(act());
	assert_int_equal(waitpid(pid, &status, 0), pid);
	return status;
}

static int end_by_signal_and_then_get_another(void)
{
	struct seam_loop loop = { 0 };
	struct seam_loop_signal signal;
	struct seam_err err = { 0 };

	if (seam_loop_init(&loop, &err) < 0)
		return 10;
	kill(getpid(), SIGTERM);
	if (!(seam_loop_wait(&loop, -1, &signal) & SEAM_LOOP_SIGNAL) ||
	    signal.number != SIGTERM)
		return 11;
	kill(getpid(), SIGTERM);
	kill(getpid(), SIGINT);
	seam_loop_fini(&loop);
	return 12;
}

UNIT_TEST(a_second_signal_does_not_kill_what_obeyed_the_first)
{
	int status = status_of(end_by_signal_and_then_get_another);

	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 12);
}

/* 12: one request; 13: two.  Both signals came within 50 ms. */
static int get_a_signal_twice(void)
{
	for (;;) {
		struct seam_loop loop = { 0 };
		struct seam_loop_signal signal;
		struct seam_err err = { 0 };
		uint64_t start_ns = seam_clock_ns();
		bool again;

		if (seam_loop_init(&loop, &err) < 0)
			return 10;
		kill(getpid(), SIGTERM);
		if (!(seam_loop_wait(&loop, -1, &signal) & SEAM_LOOP_SIGNAL))
			return 11;
		kill(getpid(), SIGTERM);
		again = seam_loop_wait(&loop, -1, &signal) & SEAM_LOOP_SIGNAL;
		seam_loop_fini(&loop);
		if (seam_clock_ns() - start_ns < 50000000)
			return again ? 13 : 12;
	}
}

UNIT_TEST(a_signal_to_us_and_to_our_group_is_one_request)
{
	int status = status_of(get_a_signal_twice);

	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 12);
}

static int get_a_signal_afterwards(void)
{
	struct seam_loop loop = { 0 };
	struct seam_err err = { 0 };

	if (seam_loop_init(&loop, &err) < 0)
		return 10;
	seam_loop_fini(&loop);
	kill(getpid(), SIGTERM);
	return 12;
}

UNIT_TEST(a_signal_that_comes_later_does_what_it_did_before)
{
	int status = status_of(get_a_signal_afterwards);

	assert_true(WIFSIGNALED(status));
	assert_int_equal(WTERMSIG(status), SIGTERM);
}

/* EPOLLHUP stays: what has ended would be reported again and again. */
UNIT_TEST(a_ring_whose_event_has_ended_is_reported_once)
{
	struct seam_loop loop = { 0 };
	struct seam_loop_signal signal;
	struct seam_err err = { 0 };
	int fds[2];

	assert_int_equal(pipe(fds), 0);
	assert_int_equal(seam_loop_init(&loop, &err), 0);
	assert_int_equal(seam_loop_add_fd(&loop, fds[0], &err), 0);
	assert_int_equal(seam_loop_wait(&loop, 0, &signal), 0);
	close(fds[1]);
	assert_int_equal(seam_loop_wait(&loop, -1, &signal), SEAM_LOOP_RINGS);
	assert_int_equal(seam_loop_wait(&loop, 0, &signal), 0);
	seam_loop_fini(&loop);
	close(fds[0]);
}

UNIT_MAIN(NULL, NULL, NULL, NULL)
