/* SPDX-License-Identifier: MIT */
/*
 * self_walk.c - a frame in a signal handler, beside libgcc's unwinder
 *
 *	self_walk [ROUNDS]
 *
 * Medians of ROUNDS (default 15), each of 200 walks by Seam, then 200 by
 * _Unwind_Backtrace(), in a handler that interrupted the same stack: on the
 * thread's stack, on an alternate one, and in a thread whose stack is not known.
 */
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <unwind.h>

#include "base/clock.h"
#include "unwind/in_process/self_images.h"
#include "unwind/in_process/self_walk.h"

enum { WALKS = 200, MAX_ROUNDS = 1001, MAX_FRAMES = 256 };

static int n_rounds = 15;
static const char *title;
static volatile int sink;

static _Unwind_Reason_Code count(struct _Unwind_Context *context, void *n)
{
	sink = (int)_Unwind_GetIP(context);
	(*(int *)n)++;
	return _URC_NO_REASON;
}

static int by_value(const void *a, const void *b)
{
	double one = *(const double *)a, other = *(const double *)b;

	return one < other ? -1 : one > other;
}

static double median(double *values)
{
	qsort(values, (size_t)n_rounds, sizeof(values[0]), by_value);
	return values[n_rounds / 2];
}

static void on_signal(int signal, siginfo_t *info, void *context)
{
	static double ours[MAX_ROUNDS], theirs[MAX_ROUNDS];
	struct seam_unwind_frame frames[MAX_FRAMES];
	struct seam_unwind_stack stack = {
		.frames = frames, .max = MAX_FRAMES };
	double our_ns, their_ns;
	int n = 0;

	(void)signal;
	(void)info;
	for (int round = 0; round < n_rounds; round++) {
		uint64_t begin = seam_clock_ns(), middle;

		for (int i = 0; i < WALKS; i++)
			seam_self_walk(context, &stack);
		middle = seam_clock_ns();
		for (int i = 0; i < WALKS; i++) {
			n = 0;
			_Unwind_Backtrace(count, &n);
		}
		ours[round] = (double)(middle - begin) / WALKS;
		theirs[round] = (double)(seam_clock_ns() - middle) / WALKS;
	}
	our_ns = median(ours) / (double)stack.n;
	their_ns = median(theirs) / n;
	printf("%-28s %4zu %8.1f %8.1f %7.2f\n", title, stack.n, our_ns,
	       their_ns, our_ns / their_ns);
}

/* Through libc, as most stacks are. */
static int compare(const void *a, const void *b)
{
	(void)a;
	(void)b;
	raise(SIGUSR1);
	return 0;
}

__attribute__((noinline, optimize("omit-frame-pointer")))
static void deep(int n)
{
	volatile int keep = n;
	int numbers[2] = { 2, 1 };

	if (n > 0)
		deep(n - 1);
	else
		qsort(numbers, 2, sizeof(numbers[0]), compare);
	sink = keep;
}

static void measure(const char *name, int depth, int flags)
{
	struct sigaction action = { .sa_flags = SA_SIGINFO | flags };

	action.sa_sigaction = on_signal;
	sigaction(SIGUSR1, &action, NULL);
	title = name;
	deep(depth);
}

static void *measure_thread(void *unused)
{
	measure("a thread that is not known", 16, 0);
	return unused;
}

int main(int argc, char **argv)
{
	static char other[64 << 10];
	const stack_t alternate = { .ss_sp = other, .ss_size = sizeof(other) };
	uint64_t begin = seam_clock_ns();
	pthread_t thread;

	if (argc > 1)
		n_rounds = atoi(argv[1]);
	if (n_rounds < 1 || n_rounds > MAX_ROUNDS || seam_self_init() < 0 ||
	    seam_self_thread_begin() < 0)
		return 2;
	printf("tables of all images: %.1f ms, %.0f KiB\n\n",
	       (double)(seam_clock_ns() - begin) / 1e6,
	       (double)seam_self_bytes() / 1024);
	printf("%-28s %4s %8s %8s %7s\n", "walk in a handler, ns a frame", "n",
	       "Seam", "libgcc", "ratio");
	measure("shallow", 16, 0);
	measure("deep", 200, 0);
	sigaltstack(&alternate, NULL);
	measure("on an alternate stack", 16, SA_ONSTACK);
	if (pthread_create(&thread, NULL, measure_thread, NULL) == 0)
		pthread_join(thread, NULL);
	return 0;
}
