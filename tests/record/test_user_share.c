/* SPDX-License-Identifier: MIT */
/* test_user_share.c - one user's mappings take no more than a share */
#include "record/proc/user_share.h"

#include <linux/perf_event.h>
#include <sys/prctl.h>

#include "base/clock.h"
#include "unit.h"

/* No such processes. */
enum { STRANGER = INT32_MAX - 8, CHILD, OTHER, SIZE = 4096 };

static struct seam_user_shares shares;
static uint64_t now_ns;

static int enter(void **state)
{
	shares = (struct seam_user_shares) { 0 };
	now_ns = 5 * SEAM_NS_PER_S;
	return 0;
}

static bool takes(int32_t pid, size_t size)
{
	const struct seam_perf_sideband record = {
		.type = PERF_RECORD_MMAP2, .mapping.pid = pid,
	};

	return seam_user_shares_take(&shares, &record, size, now_ns);
}

static void forks(int32_t parent, int32_t pid)
{
	const struct seam_perf_sideband record = {
		.type = PERF_RECORD_FORK,
		.task = { .pid = pid, .ppid = parent },
	};

	assert_true(seam_user_shares_take(&shares, &record, SIZE, now_ns));
}

static void execs(int32_t pid)
{
	const struct seam_perf_sideband record = {
		.type = PERF_RECORD_COMM, .misc = PERF_RECORD_MISC_COMM_EXEC,
		.comm.pid = pid,
	};

	assert_true(seam_user_shares_take(&shares, &record, SIZE, now_ns));
}

static void use_up(int32_t pid)
{
	for (int i = 0; i < SEAM_SHARE_BYTES / SIZE; i++)
		assert_true(takes(pid, SIZE));
	assert_false(takes(pid, SIZE));
}

UNIT_TEST(a_user_has_so_much_at_once_and_so_much_a_second)
{
	use_up(STRANGER);
	now_ns += SEAM_NS_PER_S;
	for (int i = 0; i < SEAM_SHARE_RATE / 1000 * 1000 / SIZE; i++)
		assert_true(takes(STRANGER, SIZE));
	assert_false(takes(STRANGER, SIZE));
	/* in steps too small to count one by one */
	for (int i = 0; i < 8000; i++) {
		now_ns += SEAM_NS_PER_MS / 2;
		(void)takes(STRANGER, SEAM_SHARE_BYTES + 1);
	}
	assert_true(takes(STRANGER, 4 * 1000 * 1000));
	assert_false(takes(STRANGER, 1 << 20));
	now_ns += 1000 * SEAM_NS_PER_S;
	use_up(STRANGER);
	/* a clock that goes back gives nothing */
	now_ns -= 100 * SEAM_NS_PER_S;
	assert_false(takes(STRANGER, SIZE));
}

UNIT_TEST(our_own_user_has_no_limit)
{
	for (int i = 0; i < 4; i++)
		assert_true(takes(getpid(), SEAM_SHARE_BYTES));
	assert_int_equal(seam_user_share_of(geteuid()), SEAM_SHARE_USERS);
	assert_true(seam_user_share_of(geteuid() + 1) < SEAM_SHARE_USERS);
}

UNIT_TEST(a_child_that_has_ended_has_the_user_of_its_parent)
{
	use_up(STRANGER);
	assert_true(takes(getpid(), SIZE));
	forks(getpid(), CHILD);
	assert_true(takes(CHILD, SIZE));
	execs(CHILD);
	assert_true(takes(CHILD, SIZE));
	/* its number is used again, by a process of nobody that is known */
	forks(OTHER, CHILD);
	assert_false(takes(CHILD, SIZE));
}

/* A process that waits to be killed, of @user. */
static pid_t start(uid_t user)
{
	int fds[2];
	char byte;
	pid_t pid;

	assert_int_equal(pipe(fds), 0);
	pid = fork();
	if (pid == 0) {
		if (setuid(user))
			_exit(1);
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (write(fds[1], "", 1) == 1)
			pause();
		_exit(1);
	}
	close(fds[1]);
	assert_int_equal(read(fds[0], &byte, 1), 1);
	close(fds[0]);
	return pid;
}

UNIT_TEST(a_program_that_changes_its_user_has_that_users_share)
{
	pid_t pid = start(geteuid() ? geteuid() : 65534);

	assert_true(takes(getpid(), SIZE));
	forks(getpid(), pid);
	execs(pid);
	if (geteuid() == 0)
		use_up(pid);
	else
		assert_true(takes(pid, SEAM_SHARE_BYTES) &&
			    takes(pid, SEAM_SHARE_BYTES));
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

UNIT_TEST(a_user_has_so_many_files)
{
	uint16_t counts[SEAM_SHARE_USERS + 1] = { 0 };

	for (int i = 0; i < SEAM_SHARE_FILES; i++)
		assert_true(seam_user_share_take_file(counts, geteuid() + 1));
	assert_false(seam_user_share_take_file(counts, geteuid() + 1));
	for (int i = 0; i < 3 * SEAM_SHARE_FILES; i++)
		assert_true(seam_user_share_take_file(counts, geteuid()));
}

UNIT_MAIN(NULL, NULL, enter, NULL)
