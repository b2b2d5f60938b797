/* SPDX-License-Identifier: MIT */
/*
 * switches.c ROUNDS LOOPS - two threads on one CPU hand each other a byte
 *
 * ROUNDS times, through pipes, with LOOPS of work before each.  Prints for each
 * switch: wall and CPU ns, and ns from the end of the work of one thread to the
 * begin of that of the other, the hand-over: write(), the switch, read() and
 * what the kernel records of it.
 *
 * The CPU of a virtual machine is half as fast one moment as the next, so the
 * time of the work differs by more than what a recorder adds to a hand-over.
 * That of hand-overs is a mean without those that took 8 times the median: in
 * these a sample was taken, or another program ran.
 */
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

enum { TOO_LONG = 8 };		/* medians */

static int there[2], back[2];
static long n_rounds, n_loops;
static volatile unsigned long sum;

/* One thread runs at a time. */
static double *hand_overs, end_of_work;
static size_t n_hand_overs;

static double now_ns(clockid_t clock)
{
	struct timespec t;

	clock_gettime(clock, &t);
	return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static void work(void)
{
	double begin = now_ns(CLOCK_MONOTONIC);

	if (end_of_work > 0)
		hand_overs[n_hand_overs++] = begin - end_of_work;
	for (long i = 0; i < n_loops; i++)
		sum += (unsigned long)i;
	end_of_work = n_loops ? now_ns(CLOCK_MONOTONIC) : begin;
}

static void take(int fd)
{
	char byte;

	if (read(fd, &byte, 1) != 1)
		abort();
}

static void give(int fd)
{
	if (write(fd, "x", 1) != 1)
		abort();
}

static void *answer(void *unused)
{
	for (long i = 0; i < n_rounds; i++) {
		take(there[0]);
		work();
		give(back[1]);
	}
	return unused;
}

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static double mean_hand_over(void)
{
	double total = 0;
	size_t n = 0;

	qsort(hand_overs, n_hand_overs, sizeof(*hand_overs), compare);
	for (; n < n_hand_overs &&
	       hand_overs[n] <= TOO_LONG * hand_overs[n_hand_overs / 2]; n++)
		total += hand_overs[n];
	return n ? total / (double)n : 0;
}

int main(int argc, char **argv)
{
	pthread_t thread;
	double wall, cpu;
	cpu_set_t one;

	n_rounds = argc > 1 ? atol(argv[1]) : 100000;
	n_loops = argc > 2 ? atol(argv[2]) : 0;
	hand_overs = calloc(2 * (size_t)n_rounds + 1, sizeof(*hand_overs));
	CPU_ZERO(&one);
	CPU_SET(0, &one);
	if (!hand_overs || sched_setaffinity(0, sizeof(one), &one) ||
	    pipe(there) || pipe(back) ||
	    pthread_create(&thread, NULL, answer, NULL))
		return 1;
	wall = now_ns(CLOCK_MONOTONIC);
	cpu = now_ns(CLOCK_PROCESS_CPUTIME_ID);
	for (long i = 0; i < n_rounds; i++) {
		work();
		give(there[1]);
		take(back[0]);
	}
	wall = now_ns(CLOCK_MONOTONIC) - wall;
	cpu = now_ns(CLOCK_PROCESS_CPUTIME_ID) - cpu;
	printf("%.0f %.0f %.0f\n", wall / (2 * (double)n_rounds),
	       cpu / (2 * (double)n_rounds), mean_hand_over());
	return pthread_join(thread, NULL);
}
