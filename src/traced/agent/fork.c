/* SPDX-License-Identifier: MIT */
/*
 * fork.c - what a fork copies, and what the child begins with
 *
 * Signals are blocked meanwhile.  The kernel restarts a fork that a signal
 * interrupts, and one of a large process could take longer than a period for
 * ever; ticks that are due have their weight in the next sample.  And a handler
 * of the program may fork as well, or install a handler of our signal: it would
 * wait for locks that its own thread has.
 *
 * The child has no event and no ring of its parent's.  It attaches here, for
 * children that go on without exec; one that executes another program loses
 * some 50 us.  vfork() and posix_spawn() do not come here, and a child of
 * clone(2) itself is not sampled.
 */
#include <pthread.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "traced/agent/agent.h"

enum { SET_BYTES = 8 };		/* of the kernel's signal set */

/* Of the thread that forks; one at a time has the locks. */
static uint64_t old_mask;
static bool is_held;

static uint64_t bit_of(int signal)
{
	return UINT64_C(1) << (signal - 1);
}

/*
 * All but faults, which may come in handlers of pthread_atfork(), and libc's
 * own two, of pthread_cancel() and setuid().
 */
static uint64_t blocked_in_fork(void)
{
	return ~(bit_of(SIGSEGV) | bit_of(SIGBUS) | bit_of(SIGILL) |
		 bit_of(SIGFPE) | bit_of(SIGTRAP) | bit_of(SIGSYS) |
		 bit_of(32) | bit_of(33));
}

static void before_fork(void)
{
	const uint64_t signals = blocked_in_fork();
	uint64_t before;
	bool held;

	syscall(SYS_rt_sigprocmask, SIG_BLOCK, &signals, &before, SET_BYTES);
	held = seam_agent_hold();
	seam_agent_threads_lock();
	is_held = held;
	old_mask = before;
}

static void restore(uint64_t mask)
{
	syscall(SYS_rt_sigprocmask, SIG_SETMASK, &mask, NULL, SET_BYTES);
}

static void after_fork(void)
{
	uint64_t mask = old_mask;
	bool held = is_held;

	seam_agent_threads_unlock();
	if (held)
		seam_agent_release();
	restore(mask);
}

static void begin_child(void)
{
	uint64_t mask = old_mask;

	/* the other handler of the child has run before */
	seam_agent_begin_child();
	restore(mask);
}

/*
 * The list has threads that the child does not have, and one of those may have
 * held a lock.
 */
static void begin_child_unsampled(void)
{
	seam_agent.pid = getpid();
	seam_agent_threads_begin_child();
	seam_agent_release();
}

int seam_agent_fork_init(void)
{
	return -pthread_atfork(NULL, NULL, begin_child_unsampled);
}

int seam_agent_fork_begin(void)
{
	return -pthread_atfork(before_fork, after_fork, begin_child);
}
