/* SPDX-License-Identifier: MIT */
/* apart.c - a clone() that a sleeping thread lends its storage; see apart.h */
#include "record/proc/apart.h"

#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
	STACK_BYTES = 512 * 1024,	/* of the process */
	LENDER_BYTES = STACK_BYTES + 64 * 1024,
};

struct apart {
	void (*run)(void *context);
	void *context;
};

static int owner_fd = -1;	/* written once, before the first start */

int seam_apart_owner_fd(void)
{
	return owner_fd;
}

static void close_standard(void)
{
	fflush(NULL);
	for (int fd = 0; fd <= STDERR_FILENO; fd++)
		close(fd);
}

void seam_apart_leave(void)
{
	static bool is_registered;

	is_registered = is_registered || atexit(close_standard) == 0;
}

static int run(void *context)
{
	const struct apart *a = context;

	a->run(a->context);
	return 0;
}

/* Where no process can be made, the thread does the work itself. */
static void *lend(void *context)
{
	_Alignas(16) char stack[STACK_BYTES];
	pid_t pid = clone(run, stack + sizeof(stack),
			  CLONE_VM | CLONE_FILES | CLONE_FS, context);

	if (pid < 0)
		run(context);
	while (pid >= 0 && waitpid(pid, NULL, __WALL) < 0 && errno == EINTR)
		continue;
	free(context);
	return NULL;
}

static int start_lender(pthread_t *thread, struct apart *a)
{
	struct sched_param normal = { 0 };
	sigset_t all, old;
	pthread_attr_t attr;
	int r;

	sigfillset(&all);
	pthread_attr_init(&attr);
	pthread_attr_setinheritsched(&attr, PTHREAD_EXPLICIT_SCHED);
	pthread_attr_setschedpolicy(&attr, SCHED_OTHER);
	pthread_attr_setschedparam(&attr, &normal);
	pthread_attr_setstacksize(&attr, LENDER_BYTES);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	r = pthread_create(thread, &attr, lend, a);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	pthread_attr_destroy(&attr);
	return -r;
}

int seam_apart_start(pthread_t *thread, void (*run_)(void *context),
		     void *context)
{
	struct apart *a;
	int r;

	if (owner_fd < 0)
		owner_fd = (int)syscall(SYS_pidfd_open, getpid(), 0);
	if (owner_fd < 0)
		return -errno;
	a = malloc(sizeof(*a));
	if (!a)
		return -ENOMEM;
	*a = (struct apart) { run_, context };
	r = start_lender(thread, a);
	if (r < 0)
		free(a);
	return r;
}
