/* SPDX-License-Identifier: MIT */
/*
 * gcc_calls.cpp - random calls of -finstrument-functions, and a log of them
 *
 * Calls, recursion, exceptions, threads, a forked child.  At its end it prints
 * for each thread "thread TID" and then "+ NAME" and "- NAME", in order.
 */
#include <cstdio>
#include <cstdlib>
#include <stdexcept>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>
#include <vector>

#define PLAIN __attribute__((no_instrument_function))
#define CALLED __attribute__((noinline))

enum { N_THREADS = 3, MAX_EVENTS = 400000, DEPTH = 12 };

struct Event {
	const char *name;
	bool is_exit;
};

/* Of a thread; room for all, so that it calls nothing while it is filled. */
struct Own {
	Event *events;
	size_t n;
	int tid;
	unsigned int random;
};

static thread_local Own own;

PLAIN static void note(const char *name, bool is_exit)
{
	if (own.n < MAX_EVENTS)
		own.events[own.n++] = { name, is_exit };
}

/* The function's own exit comes after its locals are gone, on every way. */
struct Noted {
	const char *name;

	PLAIN Noted(const char *n) : name(n)
	{
		note(name, false);
	}

	PLAIN ~Noted()
	{
		note(name, true);
	}
};

PLAIN static unsigned int next()
{
	own.random = own.random * 1664525 + 1013904223;
	return own.random >> 16;
}

void step(int depth);

extern "C" CALLED void thrower(int depth)
{
	Noted noted(__func__);

	if (next() % 3 == 0)
		throw std::runtime_error("thrown");
	step(depth + 1);
}

extern "C" CALLED void catcher(int depth)
{
	Noted noted(__func__);

	try {
		step(depth + 1);
		thrower(depth + 1);
	} catch (const std::runtime_error &) {
		step(depth + 1);
	}
}

extern "C" CALLED int recursive(int n, int depth)
{
	Noted noted(__func__);

	if (n == 0)
		return depth;
	return recursive(n - 1, depth) + 1;
}

extern "C" {
static CALLED void local(int depth)
{
	Noted noted(__func__);

	step(depth + 1);
	step(depth + 1);
}
}

PLAIN void step(int depth)
{
	if (depth > DEPTH)
		return;
	switch (next() % 5) {
	case 0:
		try {
			thrower(depth);
		} catch (const std::runtime_error &) {
		}
		break;
	case 1:
		catcher(depth);
		break;
	case 2:
		recursive((int)(next() % 8), depth);
		break;
	default:
		local(depth);
	}
}

PLAIN static void print()
{
	printf("thread %d\n", own.tid);
	for (size_t i = 0; i < own.n; i++)
		printf("%c %s\n", "+-"[own.events[i].is_exit],
		       own.events[i].name);
}

PLAIN static void begin(unsigned int seed)
{
	own.events = new Event[MAX_EVENTS];
	own.n = 0;
	own.tid = (int)syscall(SYS_gettid);
	own.random = seed;
}

static FILE *lock_of_output = stdout;

PLAIN static void run(unsigned int seed)
{
	begin(seed);
	while (own.n < MAX_EVENTS / 40)
		step(0);
	flockfile(lock_of_output);
	print();
	funlockfile(lock_of_output);
}

/* A class, so that the thread's start is of this file, and not recorded. */
struct Runner {
	unsigned int seed;

	PLAIN void operator()() const
	{
		run(seed);
	}
};

PLAIN static void *start(void *runner)
{
	(*static_cast<Runner *>(runner))();
	return nullptr;
}

PLAIN int main(int argc, char **argv)
{
	unsigned int seed = argc > 1 ? (unsigned int)atoi(argv[1]) : 1;
	Runner runners[N_THREADS];
	pthread_t threads[N_THREADS];
	pid_t child;

	for (int i = 0; i < N_THREADS; i++) {
		runners[i].seed = seed + (unsigned int)i;
		pthread_create(&threads[i], nullptr, start, &runners[i]);
	}
	for (int i = 0; i < N_THREADS; i++)
		pthread_join(threads[i], nullptr);
	run(seed + 100);
	fflush(stdout);
	child = fork();
	if (child == 0) {
		run(seed + 200);
		exit(0);
	}
	waitpid(child, nullptr, 0);
	return 0;
}
