/* SPDX-License-Identifier: MIT */
/*
 * frames.h - what each program that programs.py generates is made of
 *
 * A function marked FRAME stays a frame of its own: no compiler inlines,
 * clones or merges the function, and KEEP after a call forbids a tail call.
 * "PROGRAM check" runs each path once, and POINT() prints the return addresses
 * that libgcc's unwinder finds there; "PROGRAM SECONDS" runs the paths for as
 * much CPU time of each thread.
 */
#define _GNU_SOURCE
#include <execinfo.h>
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

#ifdef __clang__
#define FRAME __attribute__((noinline, used))
#else
#define FRAME __attribute__((noipa, used))
#endif
#define KEEP __asm__ volatile("" ::: "memory")
#define USE(a) __asm__ volatile("" :: "r"(a) : "memory")
#define POINT(id) do { if (checking) point(id); } while (0)

typedef void code(long n);

/* A path: main() or a thread calls @entry, and the leaf spins @n times. */
struct path {
	code *entry;
	long n;
};

static volatile int checking;
static double seconds;
static __thread code *volatile trap_next, *volatile fault_next;
static __thread volatile long trap_n, fault_n;

/* Print the addresses of the callers, the innermost first. */
static __attribute__((noinline)) void point(int id)
{
	static void *at[20000];
	int n = backtrace(at, 20000);
	dprintf(1, "point %d", id);
	for (int i = 0; i < n; i++)
		dprintf(1, " %lx", (unsigned long)at[i]);
	dprintf(1, "\n");
}

static void print_maps(void)
{
	static char text[1 << 16];
	int fd = open("/proc/self/maps", O_RDONLY);
	for (ssize_t n; (n = read(fd, text, sizeof(text))) > 0; )
		if (write(1, text, n) != n)
			break;
	close(fd);
}

static inline __attribute__((always_inline)) int is_over(void)
{
	struct timespec t;
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return t.tv_sec + t.tv_nsec / 1e9 >= seconds;
}

/* All of @order, which are numbers of paths, again and again; inline. */
#define RUN(paths, order) \
	do { \
		for (unsigned i = 0; i < sizeof(order) / sizeof((order)[0]); \
		     i++) \
			paths[order[i]].entry(paths[order[i]].n); \
	} while (!checking && !is_over())

static void use_other_stack(void *at, size_t size)
{
	stack_t stack;
	memset(&stack, 0, sizeof(stack));
	stack.ss_sp = at;
	stack.ss_size = size;
	if (sigaltstack(&stack, 0))
		abort();
}

/*
 * Send SIGRTMAX to this thread again and again, wherever it is.  Of signals
 * that are pending together the kernel begins the handler of the largest one
 * last, so no other handler begins on this handler's stack.
 */
static void tick(void)
{
	struct sigevent event;
	struct itimerspec each = { { 0, 700000 }, { 0, 700000 } };
	timer_t timer;
	memset(&event, 0, sizeof(event));
	event.sigev_notify = SIGEV_THREAD_ID;
	event.sigev_signo = SIGRTMAX;
	event._sigev_un._tid = (pid_t)syscall(SYS_gettid);
	if (timer_create(CLOCK_MONOTONIC, &event, &timer) ||
	    timer_settime(timer, 0, &each, 0))
		abort();
}

static void handle(int signal, void (*handler)(int), int flags)
{
	struct sigaction act;
	memset(&act, 0, sizeof(act));
	act.sa_handler = handler;
	act.sa_flags = flags;
	if (sigaction(signal, &act, 0))
		abort();
}
