/* SPDX-License-Identifier: MIT */
/*
 * fdr_fork.c - what a fork copies; see fdr_process.h
 *
 * A fork waits for a thread that patches or reads the list of images; so no
 * child finds a lock taken, of ours or, because of us, of the loader, nor half
 * of a list.  The child has the patched code of its parent, and records by its
 * own pid from its first call on (fdr_thread.h).
 *
 * vfork() and posix_spawn() do not come here.
 */
#include <pthread.h>

#include "traced/fdr/announce_functions.h"
#include "traced/fdr/fdr_process.h"
#include "traced/fdr/record/thread_area.h"
#include "traced/fdr/record/thread_states.h"

static struct seam_fdr_process *const process = &seam_fdr_process;

/*
 * Not after the end for good, when our system calls may kill.  That is set with
 * the lock, so whether a fork has it is seen from it as long as the fork lasts.
 */
static void begin_fork(void)
{
	if (process->is_off)
		return;
	if (!seam_fdr_lock())
		process->n_nested_forks++;
	else if (process->is_off)
		seam_fdr_unlock();
}

/* Whether it was a fork in a fault's handler: its thread goes on with it. */
static bool end_nested(void)
{
	if (!process->n_nested_forks)
		return false;
	process->n_nested_forks--;
	return true;
}

static void end_fork(void)
{
	if (!process->is_off && !end_nested())
		seam_fdr_unlock();
}

static void begin_child(void)
{
	if (process->is_off)
		return;
	/* before a child of its own, by vfork(), records */
	(void)seam_fdr_states_pid();
	seam_fdr_thread_begin_child();
	if (end_nested()) {
		seam_fdr_announce_begin_child();
		return;
	}
	seam_fdr_fork_begin_child();
	seam_fdr_unlock();
}

static int code;

static void install(void)
{
	code = -pthread_atfork(begin_fork, end_fork, begin_child);
}

int seam_fdr_fork_init(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, install);
	return code;
}
