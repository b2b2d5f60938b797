/* SPDX-License-Identifier: MIT */
/* test_helper.c - a call that hangs holds up nobody, and is counted */
#include "record/proc/helper.h"

#include <poll.h>

#include "unit.h"

struct log {
	char done[64];
	size_t n_done;
	uint64_t given_up[SEAM_HELPER_MAX_JOBS + 16];
	size_t n_given_up;
};

/* Says its letter, or reads from a pipe first, which may take for ever. */
struct call {
	struct seam_helper_job job;
	int waits_for;		/* -1: nothing */
	char letter;
};

static int n_freed;
static struct seam_helper *helper;
static struct log said;
static int never[2];	/* nobody writes into it */

static int set_up(void **state)
{
	helper = seam_helper_new(NULL);
	said = (struct log) { .n_done = 0 };
	n_freed = 0;
	return helper ? pipe(never) : -1;
}

static int count_freed(void)
{
	return __atomic_load_n(&n_freed, __ATOMIC_SEQ_CST);
}

/* The calls that hang end, until @n jobs are freed. */
static void let_go(int n)
{
	close(never[1]);
	never[1] = -1;
	while (count_freed() < n)
		poll(NULL, 0, 1);
}

static int tear_down(void **state)
{
	seam_helper_free(helper);
	if (never[1] >= 0)
		close(never[1]);
	close(never[0]);
	return 0;
}

static void run(struct seam_helper_job *job)
{
	struct call *call = (struct call *)job;
	char byte;

	if (call->waits_for >= 0)
		assert_true(read(call->waits_for, &byte, 1) <= 1);
}

static void done(struct seam_helper_job *job, void *context)
{
	struct log *log = context;

	log->done[log->n_done++] = ((struct call *)job)->letter;
}

static void given_up(void *context, uint64_t tag)
{
	struct log *log = context;

	log->given_up[log->n_given_up++] = tag;
}

static void free_call(struct seam_helper_job *job)
{
	__atomic_add_fetch(&n_freed, 1, __ATOMIC_SEQ_CST);
	free(job);
}

static int submit_of(uid_t user, char letter, int waits_for)
{
	struct call *call = calloc(1, sizeof(*call));

	assert_non_null(call);
	call->job = (struct seam_helper_job) {
		.run = run, .done = done, .given_up = given_up,
		.free = free_call, .context = &said,
		.tag = (uint64_t)letter, .limit_ns = 20 * 1000 * 1000,
		.user = user,
	};
	call->letter = letter;
	call->waits_for = waits_for;
	return seam_helper_submit(helper, &call->job);
}

static int submit(char letter, int waits_for)
{
	return submit_of(SEAM_HELPER_NO_USER, letter, waits_for);
}

static void wait_for_all(void)
{
	struct pollfd fd = {
		.fd = seam_helper_fd(helper), .events = POLLIN,
	};

	while (seam_helper_collect(helper))
		poll(&fd, 1, 5);
}

UNIT_TEST(jobs_are_done_in_their_order)
{
	for (char c = 'a'; c <= 'z'; c++)
		assert_int_equal(submit(c, -1), 0);
	wait_for_all();
	assert_string_equal(said.done, "abcdefghijklmnopqrstuvwxyz");
	assert_int_equal(said.n_given_up, 0);
}

UNIT_TEST(one_that_hangs_is_given_up_and_the_next_is_done)
{
	submit('a', -1);
	submit('x', never[0]);
	submit('b', -1);
	wait_for_all();
	assert_string_equal(said.done, "ab");
	assert_int_equal(said.n_given_up, 1);
	assert_int_equal(said.given_up[0], 'x');
	/* it ends after all, when nobody waits for it any more */
	let_go(count_freed() + 1);
}

UNIT_TEST(after_so_many_that_hang_the_rest_is_given_up)
{
	for (int i = 0; i <= SEAM_HELPER_MAX_STUCK; i++)
		submit('x', never[0]);
	wait_for_all();
	assert_int_equal(said.n_given_up, SEAM_HELPER_MAX_STUCK + 1);
	assert_int_equal(submit('a', -1), -EBUSY);
	let_go(count_freed() + SEAM_HELPER_MAX_STUCK);
}

/* One user with a file system that does not answer. */
UNIT_TEST(the_jobs_of_other_users_are_done_all_the_same)
{
	enum { HOSTILE = 1001, OTHER = 1002 };
	for (int i = 0; i < 2 * SEAM_HELPER_MAX_STUCK; i++)
		submit_of(HOSTILE, 'x', never[0]);
	submit_of(OTHER, 'a', -1);
	submit_of(HOSTILE, 'y', -1);
	submit_of(OTHER, 'b', -1);
	wait_for_all();
	assert_string_equal(said.done, "ab");
	assert_int_equal(said.n_given_up, 2 * SEAM_HELPER_MAX_STUCK + 1);
	assert_int_equal(submit_of(HOSTILE, 'z', -1), -EBUSY);
	assert_int_equal(submit_of(OTHER, 'c', -1), 0);
	wait_for_all();
	assert_string_equal(said.done, "abc");
}

UNIT_TEST(so_many_users_stop_all_until_their_threads_come_back)
{
	enum { N = SEAM_HELPER_MAX_ALL_STUCK };
	for (uid_t i = 0; i < N; i++)
		submit_of(i, 'x', never[0]);
	wait_for_all();
	assert_int_equal(said.n_given_up, N);
	assert_int_equal(submit_of(N, 'a', -1), -EBUSY);
	let_go(count_freed() + N);
	assert_int_equal(submit_of(0, 'a', -1), 0);
	assert_int_equal(submit_of(N, 'b', -1), 0);
	wait_for_all();
	assert_string_equal(said.done, "ab");
}

UNIT_TEST(a_user_is_known_by_the_process)
{
	assert_int_equal(seam_helper_user_of(getpid()), getuid());
	assert_int_equal(seam_helper_user_of(-1), SEAM_HELPER_NO_USER);
}

UNIT_TEST(no_more_than_so_many_wait)
{
	int n = 0;

	while (submit('x', never[0]) == 0)
		n++;
	assert_true(n == SEAM_HELPER_MAX_JOBS || n == SEAM_HELPER_MAX_JOBS + 1);
	seam_helper_abandon(helper);
	assert_int_equal(said.n_given_up, n);
	assert_false(seam_helper_collect(helper));
	let_go(n);
}

static bool says(int fd, const char *text)
{
	char bytes[16] = "";
	ssize_t n = 0, got;

	while ((got = read(fd, bytes + n, sizeof(bytes) - 1 - (size_t)n)) > 0)
		n += got;
	return strcmp(bytes, text) == 0;
}

/*
 * LeakSanitizer calls this at exit.  A thread that was given up may end only
 * then, and its job is referred to by nothing in between.
 */
__attribute__((visibility("default"))) int __lsan_is_turned_off(void);
int __lsan_is_turned_off(void)
{
	return 1;
}

/* Where a call hangs, the process that made it is left; here it is killed. */
UNIT_TEST(a_process_ends_although_a_call_hangs)
{
	int out[2], status;
	pid_t child;

	assert_int_equal(pipe(out), 0);
	child = fork();
	if (child == 0) {
		set_up(NULL);
		close(STDOUT_FILENO);
		dup2(out[1], STDERR_FILENO);
		close(out[0]);
		close(out[1]);
		submit('x', never[0]);
		wait_for_all();
		if (said.n_given_up == 1)
			(void)!write(STDERR_FILENO, "ends", 4);
		seam_helper_free(helper);
		exit(7);
	}
	close(out[1]);
	/* to the end of the file: nobody has the other end any more */
	assert_true(says(out[0], "ends"));
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 7);
	close(out[0]);
}

UNIT_TEST(a_descriptor_is_closed_by_the_helper)
{
	int fds[2];

	assert_int_equal(pipe(fds), 0);
	submit('a', -1);
	seam_helper_close(helper, getuid(), fds[0]);
	seam_helper_close(helper, getuid(), -1);
	wait_for_all();
	seam_helper_free(helper);
	helper = NULL;
	assert_int_equal(fcntl(fds[0], F_GETFD), -1);
	seam_helper_close(NULL, getuid(), fds[1]);
	assert_int_equal(fcntl(fds[1], F_GETFD), -1);
}

UNIT_MAIN(NULL, NULL, set_up, tear_down)
