/* SPDX-License-Identifier: MIT */
/*
 * trace_program.c - programs whose calls are recorded: trace_program HOW [N]...
 *
 *	calls N		N times step(), which calls leaf() twice
 *	threads T N	T threads at a time, each with N times step()
 *	short T N	T threads, four at a time, each with N times step()
 *	leaderless N	the first thread ends; another goes on for 2 s, with
 *			threads of its own; each N times step()
 *	turns N		two threads take turns; each turn fills many chunks
 *	starved N	its parent is stopped meanwhile: N times step()
 *	gap N		outer() calls N times step() as above, and once more
 *			when a line was read, after half a second
 *	fork N		a child and its parent with N times step() each
 *	vfork N		a child of vfork() is the first to record, of two
 *			threads; then these, N times step() each
 *	exec N		N times step(); then itself as "calls N"
 *	forever		until it is killed; says "running"
 *	clocks		the counter and CLOCK_MONOTONIC, at the start and end
 *
 * Each process prints "records PID N" at its end: how many it made.
 */
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include <x86intrin.h>

#define TRACED __attribute__((noinline, xray_always_instrument))
#define PLAIN __attribute__((xray_never_instrument))

static volatile unsigned int sink;
static _Atomic uint64_t n_records;

/* An argument that says which call it is. */
TRACED void leaf(unsigned int i)
{
	sink = i;
}

TRACED void step(unsigned int i)
{
	leaf(i);
	leaf(i + 1);
	__asm__ volatile("");
}

PLAIN static void steps(uint64_t n)
{
	for (uint64_t i = 0; i < n; i++)
		step((unsigned int)i);
	/* relaxed: a count */
	atomic_fetch_add_explicit(&n_records, 6 * n, memory_order_relaxed);
}

PLAIN static void report(void)
{
	printf("records %d %" PRIu64 "\n", getpid(), n_records);
	fflush(stdout);
}

/* ---- threads ---- */

PLAIN static void *run_steps(void *n)
{
	steps((uint64_t)(uintptr_t)n);
	return NULL;
}

PLAIN static void run_threads(uint64_t n_threads, uint64_t at_once, uint64_t n)
{
	pthread_t threads[64];

	for (uint64_t done = 0; done < n_threads; done += at_once) {
		uint64_t some = n_threads - done;

		some = some < at_once ? some : at_once;
		for (uint64_t i = 0; i < some; i++)
			if (pthread_create(&threads[i], NULL, run_steps,
					   (void *)(uintptr_t)n))
				exit(2);
		for (uint64_t i = 0; i < some; i++)
			pthread_join(threads[i], NULL);
	}
}

PLAIN static void *outlive(void *n)
{
	const struct timespec pause = { .tv_nsec = 100000000 };

	for (int i = 0; i < 20; i++) {
		nanosleep(&pause, NULL);
		run_threads(1, 1, (uint64_t)(uintptr_t)n);
		steps((uint64_t)(uintptr_t)n);
	}
	report();
	exit(0);
}

PLAIN static void run_leaderless(uint64_t n)
{
	pthread_t other;

	if (pthread_create(&other, NULL, outlive, (void *)(uintptr_t)n))
		exit(2);
	pthread_exit(NULL);
}

/* More than a quarter of an area: the recorder is woken. */
enum { STEPS_OF_TURN = (5 << 18) / 48 };

static uint64_t n_turns;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t turned = PTHREAD_COND_INITIALIZER;
static uint64_t turn;

/* A recorder that is awake takes the chunks of each in turn. */
PLAIN static void *take_turns(void *self)
{
	const struct timespec pause = { .tv_nsec = 3000000 };

	for (uint64_t i = 0; i < n_turns; i++) {
		pthread_mutex_lock(&lock);
		while (turn % 2 != (uintptr_t)self)
			pthread_cond_wait(&turned, &lock);
		steps(STEPS_OF_TURN);
		nanosleep(&pause, NULL);
		turn++;
		pthread_cond_broadcast(&turned);
		pthread_mutex_unlock(&lock);
	}
	return NULL;
}

PLAIN static void run_turns(uint64_t n)
{
	pthread_t other;

	n_turns = n;
	if (pthread_create(&other, NULL, take_turns, (void *)1))
		exit(2);
	take_turns(NULL);
	pthread_join(other, NULL);
}

/* ---- processes ---- */

PLAIN static void run_fork(uint64_t n)
{
	pid_t child;

	steps(n);
	child = fork();
	if (child == 0) {
		n_records = 0;
		steps(n);
		report();
		_exit(0);
	}
	waitpid(child, NULL, 0);
	steps(n);
}

/* What its child records is the thread's: they have one memory. */
PLAIN static void *vfork_first(void *n)
{
	pid_t child = vfork();

	if (child == 0) {
		steps(1);
		_exit(0);
	}
	waitpid(child, NULL, 0);
	steps((uintptr_t)n);
	return NULL;
}

PLAIN static void run_vfork(uint64_t n)
{
	pthread_t other;

	if (pthread_create(&other, NULL, vfork_first, (void *)n))
		exit(2);
	vfork_first((void *)n);
	pthread_join(other, NULL);
}

PLAIN static void run_starved(uint64_t n)
{
	pid_t recorder = getppid();

	steps(1);
	kill(recorder, SIGSTOP);
	steps(n);
	kill(recorder, SIGCONT);
}

/*
 * Its records before, in and after the gap; the first after it is a step's, and
 * more than a chunk of them follow.
 */
TRACED void outer(uint64_t n)
{
	const struct timespec pause = { .tv_nsec = 500000000 };
	pid_t recorder = getppid();

	steps(1);
	kill(recorder, SIGSTOP);
	steps(n);
	nanosleep(&pause, NULL);
	kill(recorder, SIGCONT);
	getchar();
	steps(1);
}

PLAIN static void run_gap(uint64_t n)
{
	outer(n);
	n_records += 2;
	steps(4000);
}

PLAIN static void run_exec(const char *self, const char *n)
{
	steps(strtoull(n, NULL, 0));
	report();
	execl(self, self, "calls", n, (char *)NULL);
	exit(2);
}

/* ---- clocks ---- */

PLAIN static void print_clocks(void)
{
	uint64_t narrowest = UINT64_MAX, tsc = 0, ns = 0;

	for (int i = 0; i < 100; i++) {
		uint64_t before = __rdtsc(), after;
		struct timespec now;

		clock_gettime(CLOCK_MONOTONIC, &now);
		after = __rdtsc();
		if (after - before >= narrowest)
			continue;
		narrowest = after - before;
		tsc = before + narrowest / 2;
		ns = (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
	}
	printf("clocks %" PRIu64 " %" PRIu64 "\n", tsc, ns);
}

PLAIN static void run_clocks(void)
{
	const struct timespec pause = { .tv_nsec = 300000000 };

	print_clocks();
	steps(10);
	nanosleep(&pause, NULL);
	print_clocks();
}

PLAIN int main(int argc, char **argv)
{
	const char *how = argc > 1 ? argv[1] : "";
	uint64_t a = argc > 2 ? strtoull(argv[2], NULL, 0) : 0;
	uint64_t b = argc > 3 ? strtoull(argv[3], NULL, 0) : 0;

	if (strcmp(how, "calls") == 0)
		steps(a);
	else if (strcmp(how, "threads") == 0)
		run_threads(a, a, b);
	else if (strcmp(how, "short") == 0)
		run_threads(a, 4, b);
	else if (strcmp(how, "leaderless") == 0)
		run_leaderless(a);
	else if (strcmp(how, "gap") == 0)
		run_gap(a);
	else if (strcmp(how, "turns") == 0)
		run_turns(a);
	else if (strcmp(how, "starved") == 0)
		run_starved(a);
	else if (strcmp(how, "fork") == 0)
		run_fork(a);
	else if (strcmp(how, "vfork") == 0)
		run_vfork(a);
	else if (strcmp(how, "exec") == 0)
		run_exec(argv[0], argv[2]);
	else if (strcmp(how, "open") == 0)
		printf("opened %d\n", open("/dev/null", O_RDONLY));
	else if (strcmp(how, "clocks") == 0)
		run_clocks();
	else if (strcmp(how, "forever") == 0) {
		puts("running");
		fflush(stdout);
		for (;;) {
			steps(100);
			usleep(100);
		}
	} else {
		return 2;
	}
	report();
	return 0;
}
