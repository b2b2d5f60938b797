/* SPDX-License-Identifier: MIT */
/*
 * flight_program.c - a program with calls to keep, for flight.py
 *
 *	flight_program load THREADS SECONDS	calls at full speed
 *	flight_program slow N EVERY US GAP_US	N slow calls, one in EVERY, that
 *						is after a pause
 *	flight_program busy N EVERY US GAP_US	with other calls in the pause; it
 *						prints which is the last of the
 *						first two fifths
 *	flight_program threads N		threads that end, one by one
 *	flight_program locked			a call that waits for a lock: it
 *						prints for how long
 *	flight_program split N			N calls that run, sleep and recurse
 *						beside others that do not, on one
 *						CPU; it prints what its clocks say
 *	flight_program rare N EVERY		calls rare(), one in EVERY
 *	flight_program end HOW			abort, segv, exit, _exit, wait
 *
 * The first argument of each recorded call is its number in the thread.  Built
 * with -fxray-instrument; functions that are not recorded are 'never' ones.
 */
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define RECORDED __attribute__((noinline, xray_always_instrument))
#define SILENT __attribute__((noinline, xray_never_instrument))

enum {
	N_STEPS = 100,
	N_FIRST = 1000,		/* calls of top() before "running" */
};

static volatile int must_end;
volatile unsigned long sink;

SILENT static unsigned long now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (unsigned long)t.tv_sec * 1000000000 + (unsigned long)t.tv_nsec;
}

SILENT static void spin_ns(unsigned long ns)
{
	unsigned long end = now_ns() + ns;

	while (now_ns() < end)
		;
}

RECORDED unsigned long leaf(unsigned long number)
{
	return sink = number;
}

RECORDED unsigned long middle(unsigned long number)
{
	return leaf(number + 1) + 1;
}

/* Three calls: number, number + 1, number + 2. */
RECORDED unsigned long top(unsigned long number)
{
	return middle(number + 1) + 1;
}

RECORDED void step(unsigned long number, unsigned long ns)
{
	spin_ns(ns);
	sink = number;
}

RECORDED void handle(unsigned long number, unsigned long us)
{
	leaf(number);
	for (unsigned long i = 0; us && i < N_STEPS; i++)
		step(number, us * 1000 / N_STEPS);
	sink = number;
}

RECORDED void rare(unsigned long number)
{
	sink = number;
}

RECORDED void last_words(unsigned long number)
{
	sink = number;
}

SILENT static unsigned int tid(void)
{
	return (unsigned int)syscall(SYS_gettid);
}

static pthread_barrier_t all_run;

SILENT static void *run_load(void *arg)
{
	unsigned long n = 0;

	for (; n < 3 * N_FIRST; n += 3)
		top(n);
	pthread_barrier_wait(&all_run);
	for (; !must_end; n += 3)
		top(n);
	return arg;
}

SILENT static int load(int n_threads, double seconds)
{
	pthread_t threads[64];

	pthread_barrier_init(&all_run, NULL, (unsigned)n_threads + 1);
	for (int i = 0; i < n_threads; i++)
		pthread_create(&threads[i], NULL, run_load, NULL);
	pthread_barrier_wait(&all_run);
	puts("running");
	fflush(stdout);
	usleep((unsigned)(seconds * 1e6));
	must_end = 1;
	for (int i = 0; i < n_threads; i++)
		pthread_join(threads[i], NULL);
	return 0;
}

/* Calls for @gap_us, and the last of the first two fifths. */
SILENT static unsigned long be_busy(unsigned long number, unsigned long gap_us)
{
	unsigned long start = now_ns(), now, last = number;

	while ((now = now_ns()) < start + gap_us * 1000) {
		if (now < start + gap_us * 400)
			last = number;
		handle(number++, 0);
		spin_ns(100000);
	}
	printf("busy %lu\n", last);
	fflush(stdout);
	return number;
}

/* A line for each slow call: its number, and when it returned. */
SILENT static int slow(unsigned long n, unsigned long every, unsigned long us,
		       unsigned long gap_us, int is_busy)
{
	unsigned long number = 0;

	for (unsigned long i = 0; i < n; i++) {
		for (unsigned long k = 1; k < every; k++)
			handle(number++, 0);
		handle(number, us);
		printf("slow %lu tid %u at %lu\n", number++, tid(), now_ns());
		fflush(stdout);
		if (!is_busy)
			usleep((useconds_t)gap_us);
		else
			number = be_busy(number, gap_us);
	}
	return 0;
}

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static volatile int has_lock, wants_lock;

SILENT static void *hold_lock(void *arg)
{
	pthread_mutex_lock(&lock);
	has_lock = 1;
	while (!wants_lock)
		usleep(1000);
	usleep(60000);
	pthread_mutex_unlock(&lock);
	return arg;
}

SILENT static unsigned long thread_cpu_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return (unsigned long)t.tv_sec * 1000000000 + (unsigned long)t.tv_nsec;
}

SILENT __attribute__((noinline)) void compute(unsigned long ns)
{
	unsigned long end = thread_cpu_ns() + ns;

	while (thread_cpu_ns() < end)
		for (int i = 0; i < 10000; i++)
			sink++;
}

/* Returns what is not CPU time, in ns. */
SILENT __attribute__((noinline)) unsigned long take_lock(void)
{
	unsigned long cpu = thread_cpu_ns(), wall = now_ns();

	wants_lock = 1;
	pthread_mutex_lock(&lock);
	wall = now_ns() - wall;
	pthread_mutex_unlock(&lock);
	return wall - (thread_cpu_ns() - cpu);
}

RECORDED unsigned long locked(unsigned long number)
{
	unsigned long ns;

	compute(20000000);
	ns = take_lock();
	compute(20000000);
	sink = number;
	return ns;
}

SILENT static int wait_for_lock(void)
{
	pthread_t thread;

	for (unsigned long i = 0; i < 2000; i++)
		handle(i, 0);
	pthread_create(&thread, NULL, hold_lock, NULL);
	while (!has_lock)
		usleep(100);
	printf("waited %lu\n", locked(2000));
	fflush(stdout);
	pthread_join(thread, NULL);
	return 0;
}

enum { DEPTH = 3, NAP_NS = 4000000, RUN_NS = 1500000 };

RECORDED void dive(unsigned long depth)
{
	const struct timespec nap = { 0, NAP_NS };

	compute(RUN_NS);
	nanosleep(&nap, NULL);
	if (depth)
		dive(depth - 1);
	sink = depth;
}

RECORDED void outer(unsigned long number)
{
	dive(DEPTH);
	sink = number;
}

RECORDED void crowded(unsigned long number)
{
	compute(RUN_NS * 4);
	sink = number;
}

SILENT static void *be_a_crowd(void *arg)
{
	while (!must_end)
		sink++;
	return arg;
}

/* "NAME WALL CPU", of @n calls. */
SILENT static void log_calls(const char *name, unsigned long n,
			     void (*call)(unsigned long number))
{
	unsigned long wall = 0, cpu = 0;

	for (unsigned long i = 0; i < n; i++) {
		unsigned long from = now_ns(), cpu_from = thread_cpu_ns();

		call(i);
		cpu += thread_cpu_ns() - cpu_from;
		wall += now_ns() - from;
	}
	printf("%s %lu %lu\n", name, wall, cpu);
}

SILENT static int split(unsigned long n)
{
	pthread_t crowd;
	cpu_set_t one;

	CPU_ZERO(&one);
	CPU_SET(0, &one);
	sched_setaffinity(0, sizeof(one), &one);
	log_calls("outer", n, outer);
	pthread_create(&crowd, NULL, be_a_crowd, NULL);
	log_calls("crowded", n, crowded);
	must_end = 1;
	pthread_join(crowd, NULL);
	return 0;
}

SILENT static int call_rare(unsigned long n, unsigned long every)
{
	unsigned long number = 0;

	for (unsigned long i = 0; i < n; i++) {
		for (unsigned long k = 1; k < every; k++)
			handle(number++, 0);
		rare(number);
	}
	return 0;
}

SILENT static void *run_short(void *arg)
{
	unsigned long number = *(unsigned long *)arg;

	for (int i = 0; i < 10; i++)
		top(number);
	last_words(number);
	return NULL;
}

SILENT static int short_threads(unsigned long n)
{
	for (unsigned long i = 0; i < n; i++) {
		pthread_t thread;

		if (pthread_create(&thread, NULL, run_short, &i))
			return 1;
		pthread_join(thread, NULL);
	}
	return 0;
}

SILENT static void *run_idle(void *arg)
{
	last_words(2);
	pthread_barrier_wait(&all_run);
	for (;;)
		pause();
	return arg;
}

SILENT static int end(const char *how)
{
	pthread_t thread;

	pthread_barrier_init(&all_run, NULL, 2);
	pthread_create(&thread, NULL, run_idle, NULL);
	pthread_barrier_wait(&all_run);
	for (unsigned long n = 0; n < 300000; n += 3)
		top(n);
	last_words(1);
	puts("running");
	fflush(stdout);
	if (strcmp(how, "abort") == 0)
		abort();
	if (strcmp(how, "segv") == 0)
		*(volatile int *)8 = 1;
	if (strcmp(how, "_exit") == 0)
		_exit(0);
	while (strcmp(how, "wait") == 0)
		pause();
	return 0;
}

SILENT int main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "";
	unsigned long n[4] = { 0 };

	for (int i = 2; i < argc && i < 6; i++)
		n[i - 2] = strtoul(argv[i], NULL, 10);
	if (strcmp(what, "load") == 0)
		return load((int)n[0], argc > 3 ? atof(argv[3]) : 1);
	if (strcmp(what, "slow") == 0 || strcmp(what, "busy") == 0)
		return slow(n[0], n[1], n[2], n[3], *what == 'b');
	if (strcmp(what, "locked") == 0)
		return wait_for_lock();
	if (strcmp(what, "split") == 0)
		return split(n[0]);
	if (strcmp(what, "rare") == 0)
		return call_rare(n[0], n[1]);
	if (strcmp(what, "threads") == 0)
		return short_threads(n[0]);
	return strcmp(what, "end") == 0 && argc > 2 ? end(argv[2]) : 2;
}
