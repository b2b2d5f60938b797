/* SPDX-License-Identifier: MIT */
/*
 * switches.c ROUNDS LOOPS - two threads on one CPU hand each other a byte
 *
 * ROUNDS times, through pipes, with LOOPS of work before each.  Prints wall and
 * CPU ns for each switch.
 */
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

static int there[2], back[2];
static long n_rounds, n_loops;
static volatile unsigned long sum;

static double now_ns(clockid_t clock)
{
	struct timespec t;

	clock_gettime(clock, &t);
	return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static void work(void)
{
	for (long i = 0; i < n_loops; i++)
		sum += (unsigned long)i;
}

static void pass(int from, int to)
{
	char byte = 'x';

	if (from >= 0 && read(from, &byte, 1) != 1)
		abort();
	work();
	if (to >= 0 && write(to, &byte, 1) != 1)
		abort();
}

static void *answer(void *unused)
{
	for (long i = 0; i < n_rounds; i++)
		pass(there[0], back[1]);
	return unused;
}

int main(int argc, char **argv)
{
	pthread_t thread;
	double wall, cpu;
	cpu_set_t one;

	n_rounds = argc > 1 ? atol(argv[1]) : 100000;
	n_loops = argc > 2 ? atol(argv[2]) : 0;
	CPU_ZERO(&one);
	CPU_SET(0, &one);
	if (sched_setaffinity(0, sizeof(one), &one) || pipe(there) ||
	    pipe(back) || pthread_create(&thread, NULL, answer, NULL))
		return 1;
	wall = now_ns(CLOCK_MONOTONIC);
	cpu = now_ns(CLOCK_PROCESS_CPUTIME_ID);
	for (long i = 0; i < n_rounds; i++) {
		pass(-1, there[1]);
		pass(back[0], -1);
	}
	wall = now_ns(CLOCK_MONOTONIC) - wall;
	cpu = now_ns(CLOCK_PROCESS_CPUTIME_ID) - cpu;
	printf("%.0f %.0f\n", wall / (2 * (double)n_rounds),
	       cpu / (2 * (double)n_rounds));
	return pthread_join(thread, NULL);
}
