/* SPDX-License-Identifier: MIT */
/*
 * waits.c - threads that wait, each with a stack of its own; C, or C++ with
 * -x c++
 *
 * 'waits SEED THREADS': each thread calls functions of all kinds at random, and
 * the last one waits.  A function has a frame that is hard to leave from rsp
 * and rip alone: alloca(), arrays of variable length, arguments on the stack,
 * alignment, 20 KiB, pages that are probed, blocks out of order, a tail call,
 * handlers of signals on either stack, callbacks, landing pads.  It calls the
 * next one directly or by a pointer, in code where all kinds call all others.
 *
 * Before that it may call all of this without waiting: such calls leave their
 * frames, of the same functions at the same places, on the stack below, and
 * later frames with uninitialized memory contain them.
 *
 * Prints "ready PID" when all threads wait, as far as they can say.
 */
#include <alloca.h>
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <search.h>
#include <semaphore.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
#ifdef __cplusplus
#include <functional>
#include <memory>
#include <string>
#include <vector>
#endif

#if defined(__clang__)
#define KEEP __attribute__((noinline))
#else
#define KEEP __attribute__((noinline, noclone))
#endif
#define INLINE static inline __attribute__((always_inline))

/* What a thread does next; in thread-local memory for callbacks. */
struct state {
	unsigned seed;
	int depth;		/* calls that are left */
	int is_dry;		/* do not wait: leave frames */
};

static __thread struct state now;
static volatile int sink;
static volatile int n_waiting;
static int idle_pipe[2], idle_epoll;
static sem_t idle_sem;
static pthread_mutex_t idle_mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t idle_cond = PTHREAD_COND_INITIALIZER;
static int idle_futex;

static unsigned pick(unsigned n)
{
	now.seed = now.seed * 1103515245 + 12345;
	return (now.seed >> 16) % n;
}

/* Waits that return only when a signal comes; EINTR is taken for it. */
INLINE void wait_here(void)
{
	struct timespec t = { 100000, 0 };
	struct epoll_event event;
	char byte;
	long result;

	if (now.is_dry)
		return;
	__atomic_fetch_add(&n_waiting, 1, __ATOMIC_SEQ_CST);
	switch (pick(9)) {
	case 0:
		poll(NULL, 0, -1);
		break;
	case 1:
		nanosleep(&t, NULL);
		break;
	case 2:
		result = read(idle_pipe[0], &byte, 1);
		sink += (int)result;
		break;
	case 3:		/* seven arguments: one on the stack */
		syscall(SYS_futex, &idle_futex, 0, 0, NULL, NULL, 0);
		break;
	case 4:
		pthread_mutex_lock(&idle_mutex);
		pthread_cond_wait(&idle_cond, &idle_mutex);
		pthread_mutex_unlock(&idle_mutex);
		break;
	case 5:
		sem_wait(&idle_sem);
		break;
	case 6:
		epoll_wait(idle_epoll, &event, 1, -1);
		break;
	case 7:		/* in the function itself */
		__asm__ volatile("syscall" : "=a"(result)
				 : "a"(SYS_pause) : "rcx", "r11", "memory");
		break;
	case 8:
		clock_nanosleep(CLOCK_MONOTONIC, 0, &t, NULL);
		break;
	}
	sink++;
}

static void go_on(void);

/* Leave frames below: a chain of calls that does not wait. */
KEEP static void leave_frames(int depth)
{
	struct state before = now;

	now.depth = depth;
	now.is_dry = 1;
	go_on();
	before.seed = now.seed;
	now = before;
}

/* ---- the kinds: each calls go_on(), and something after it ---- */

#define KINDS(X) X(plain) X(buffer) X(huge) X(dynamic) X(variable) X(many)	\
	X(aligned) X(aligned_more) X(drap) X(branchy) X(either) X(loops)	\
	X(jumps) X(cold) X(early) X(tail) X(variadic) X(by_value) X(sorts)	\
	X(walks_tree) X(handled) X(handled_apart) X(returns_twice) X(probes)	\
	X(nested_many) X(registers) MORE(X)
#ifdef __cplusplus
#define MORE(X) X(catches) X(cleans_up) X(calls_virtual) X(calls_function)	\
	X(has_strings)
#else
#define MORE(X)
#endif
#define DECLARE(name) KEEP static void name(int n);
KINDS(DECLARE)

static void (*const kinds[])(int) = {
#define POINTER(name) name,
	KINDS(POINTER)
};
enum { N_KINDS = sizeof(kinds) / sizeof(kinds[0]) };
enum {
#define NUMBER(name) NUMBER_##name,
	KINDS(NUMBER)
};

/* In each function: wait, or a call of another, directly or by pointer. */
INLINE void next(void)
{
	unsigned kind;
	int n;

	if (now.depth <= 0) {
		wait_here();
		return;
	}
	now.depth--;
	if (!now.is_dry && pick(3) == 0)
		leave_frames(1 + (int)pick(25));
	kind = pick(N_KINDS);
	n = 1 + (int)pick(7);
	if (pick(2)) {
		kinds[kind](n);
		sink++;
		return;
	}
	switch (kind) {
#define CALL(name) case NUMBER_##name: name(n); sink++; break;
	KINDS(CALL)
	}
}

KEEP static void go_on(void)
{
	next();
	sink++;
}

KEEP static void plain(int n)
{
	next();
	sink += n;
}

KEEP static void buffer(int n)
{
	volatile char bytes[300];	/* most of it is what was there */

	bytes[n] = 1;
	next();
	sink += bytes[n];
}

KEEP static void huge(int n)
{
	volatile char bytes[20000];

	bytes[n] = 1;
	next();
	sink += bytes[n];
}

KEEP static void dynamic(int n)
{
	volatile char *bytes = (volatile char *)alloca((size_t)n * 700 + 16);

	bytes[0] = 1;
	next();
	sink += bytes[0];
}

KEEP static void variable(int n)
{
	volatile int words[n * 50 + 3];

	words[n] = 1;
	for (int i = 0; i < n; i++) {
		volatile char bytes[i * 100 + 9];

		bytes[0] = 1;
		if (i == n - 1)
			next();
		sink += bytes[0];
	}
	sink += words[n];
}

KEEP static long nine(int a, int b, int c, int d, int e, int f, int g, int h,
		      int i)
{
	next();
	sink += a + b;
	return a + b + c + d + e + f + g + h + i;
}

KEEP static void many(int n)
{
	sink += (int)nine(n, 1, 2, 3, 4, 5, n, 7, sink);
	sink++;
}

KEEP static long takes(long a, long b, long c, long d, long e, long f, long g,
		       long h)
{
	return a + b + c + d + e + f + g + h + sink;
}

/* Arguments that may still be on the stack when it goes on. */
KEEP static void nested_many(int n)
{
	long x = takes(n, 1, 2, 3, 4, 5, 6, 7);

	x += takes(n, x, 2, 3, 4, 5, x, 8);
	if (x != 5)
		next();
	x += takes(n, 1, nine(n, 1, 2, 3, 4, 5, 6, 7, 8), 3, 4, 5, 6, x);
	sink += (int)x;
}

KEEP static void aligned(int n)
{
	volatile int x[9] __attribute__((aligned(32)));

	x[n] = n;
	next();
	sink += x[n];
}

KEEP static void aligned_more(int n)
{
	volatile int x[40] __attribute__((aligned(128)));
	char bytes[200];

	x[n] = n;
	memset(bytes + n, n, 3);
	next();
	sink += x[n] + bytes[n + 1];
}

struct large { long words[12]; };

KEEP static void takes_large(int n, struct large l, int m)
{
	volatile int x[9] __attribute__((aligned(64)));

	x[n & 7] = n;
	next();
	sink += x[n & 7] + (int)l.words[n & 7] + m;
}

KEEP static void drap(int n)
{
	struct large l = { { n, 2, 3 } };

	takes_large(n, l, n);
	sink++;
}

KEEP static void by_value(int n)
{
	struct large l = { { n, 2, 3 } }, m = l;

	l.words[n] = sink;
	next();
	takes(l.words[0], m.words[1], 3, 4, 5, 6, l.words[n], 8);
	sink += (int)l.words[n];
}

KEEP static void branchy(int n)
{
	switch (n) {
	case 1: next(); sink += 1; break;
	case 2: sink += (int)takes(n, 2, 3, 4, 5, 6, 7, 8); next(); break;
	case 3: sink += 7; __attribute__((fallthrough));
	case 4: next(); sink += 2; break;
	case 5: if (sink == 4711) return; next(); sink += 3; break;
	default: takes(1, 2, 3, 4, 5, 6, 7, n); next(); sink += 4;
	}
}

/* The stack is dynamic on one way, and both lead to the same place. */
KEEP static void either(int n)
{
	volatile char *bytes;
	volatile char own[40];

	if (n & 1)
		bytes = (volatile char *)alloca((size_t)n * 300);
	else
		bytes = own;
	bytes[0] = 1;
	next();
	sink += bytes[0];
}

KEEP static void loops(int n)
{
	for (int i = 0; i < n; i++) {
		if (i == n - 1)
			next();
		else
			takes(i, 2, 3, 4, 5, 6, 7, 8);
		while (sink == 4711)
			sink += (int)takes(i, 2, 3, 4, 5, 6, 7, 9);
	}
	sink++;
}

KEEP static void jumps(int n)
{
	static void *const labels[] = { &&one, &&two, &&three };

	goto *labels[n % 3];
one:
	takes(n, 2, 3, 4, 5, 6, 7, 8);
	goto last;
two:
	sink += n;
	if (sink == 4711)
		return;
	goto last;
three:
	sink += 2;
last:
	next();
	sink++;
}

KEEP static void cold(int n)
{
	volatile char bytes[100];

	bytes[n] = 1;
	if (__builtin_expect(n != 99, 0)) {
		takes(n, 2, 3, 4, 5, 6, 7, 8);
		next();
		sink += bytes[n];
	}
	sink++;
}

KEEP static void early(int n)
{
	if (n == 99)
		return;
	if (sink == 4711) {
		printf("%d\n", n);
		abort();
	}
	next();
	sink += n;
}

KEEP static void tail_of(int n, int m)
{
	next();
	sink += n + m;
}

KEEP static void tail(int n)
{
	volatile char bytes[50];

	bytes[n] = 1;
	sink += bytes[n];
	tail_of(n, 3);
}

KEEP static void takes_some(int n, ...)
{
	va_list list;

	va_start(list, n);
	for (int i = 0; i < n; i++)
		sink += (int)va_arg(list, double);
	next();
	va_end(list);
}

KEEP static void variadic(int n)
{
	takes_some(9, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, (double)n);
	sink++;
}

static int compare(const void *a, const void *b)
{
	if (now.depth >= 0) {
		next();
		now.depth = -1;
	}
	return *(const int *)a - *(const int *)b;
}

KEEP static void sorts(int n)
{
	int items[9] = { 7, 3, n, 1 };
	int before = now.depth;

	qsort(items, 9, sizeof(*items), compare);
	now.depth = before;
	sink += items[3];
}

KEEP static void walks_tree(int n)
{
	int items[3] = { 7, 3, n };
	int before = now.depth;
	void *root = NULL;

	tsearch(&items[0], &root, compare);
	tsearch(&items[1], &root, compare);
	now.depth = before;
	tdelete(&items[0], &root, compare);
	tdelete(&items[1], &root, compare);
	now.depth = before;
}

static void on_signal(int number)
{
	(void)number;
	next();
	sink++;
}

KEEP static void handled(int n)
{
	if (now.is_dry)
		next();
	else
		raise(SIGUSR1);
	sink += n;
}

KEEP static void handled_apart(int n)
{
	if (now.is_dry)
		next();
	else
		raise(SIGUSR2);
	sink += n;
}

KEEP static void returns_twice(int n)
{
	jmp_buf place;
	volatile int count = n;

	if (setjmp(place) == 0)
		longjmp(place, 1);
	next();
	sink += count;
}

/* Several pages: with probes, a loop or a line of them. */
KEEP static void probes(int n)
{
	volatile char bytes[5 * 4096 + 30];

	for (int i = 0; i < n; i++)
		bytes[i * 2000] = 1;
	next();
	sink += bytes[2000];
}

KEEP static void registers(int n)
{
	long a = sink, b = a * n, c = b ^ a, d = c + b, e = d - a, f = e * c;

	next();
	sink += (int)(a + b * c - d + e / (f | 1));
	next_is_not_called:
	sink++;
	if (sink == 4711)
		goto next_is_not_called;
}

#ifdef __cplusplus
struct Base {
	virtual ~Base() {}
	virtual void call(int n) { sink += n; }
};

struct Derived : Base {
	volatile int member;
	KEEP void call(int n) override
	{
		next();
		member = n;
	}
};

KEEP static void calls_virtual(int n)
{
	std::unique_ptr<Base> base(new Derived);

	base->call(n);
	sink++;
}

KEEP static void catches(int n)
{
	try {
		if (n != 99)
			throw n;
	} catch (int thrown) {
		next();
		sink += thrown;
	}
}

struct Cleaner {
	int n;
	KEEP ~Cleaner()
	{
		next();
		sink += n;
	}
};

KEEP static void throws(int n)
{
	Cleaner cleaner = { n };

	if (n != 99)
		throw n;
}

KEEP static void cleans_up(int n)
{
	try {
		throws(n);
	} catch (int thrown) {
		sink += thrown;
	}
}

KEEP static void calls_function(int n)
{
	std::function<void(int)> f = [n](int m) {
		next();
		sink += n + m;
	};

	f(n);
	sink++;
}

KEEP static void has_strings(int n)
{
	std::vector<std::string> list(3, std::string((size_t)n, 'x'));

	next();
	sink += (int)list[2].size();
}
#endif

static void *run(void *argument)
{
	static __thread char other_stack[256 << 10];
	stack_t stack = { .ss_sp = other_stack, .ss_flags = 0,
			  .ss_size = sizeof(other_stack) };

	sigaltstack(&stack, NULL);
	now.seed = (unsigned)(size_t)argument;
	pick(2);
	now.depth = 1 + (int)pick(12);
	leave_frames(30);
	go_on();
	for (;;)	/* a wait that has returned */
		pause();
	return NULL;
}

int main(int argc, char **argv)
{
	unsigned seed = argc > 1 ? (unsigned)atoi(argv[1]) : 1;
	int n = argc > 2 ? atoi(argv[2]) : 100;
	struct sigaction action;
	struct timespec t = { 0, 10000000 };
	pthread_t thread;

	memset(&action, 0, sizeof(action));
	action.sa_handler = on_signal;
	action.sa_flags = SA_NODEFER | SA_RESTART;
	sigaction(SIGUSR1, &action, NULL);
	action.sa_flags |= SA_ONSTACK;
	sigaction(SIGUSR2, &action, NULL);
	if (pipe(idle_pipe) < 0)
		return 1;
	idle_epoll = epoll_create1(0);
	sem_init(&idle_sem, 0, 0);
	for (int i = 0; i < n; i++)
		pthread_create(&thread, NULL, run,
			       (void *)(size_t)(seed * 1000 + (unsigned)i));
	for (int i = 0; i < 500 && n_waiting < n; i++)
		nanosleep(&t, NULL);
	printf("ready %d\n", getpid());
	fflush(stdout);
	now.seed = seed;
	go_on();
	for (;;)
		pause();
}
