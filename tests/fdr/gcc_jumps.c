/* SPDX-License-Identifier: MIT */
/*
 * gcc_jumps.c - calls of -finstrument-functions that longjmp() leaves, calls in
 * a signal handler, calls of a library; prints as gcc_calls.cpp
 */
#include <dlfcn.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

#define PLAIN __attribute__((no_instrument_function))
#define CALLED __attribute__((noinline))

enum { ROUNDS = 500, MAX_EVENTS = 100000 };

static struct { const char *name; char sign; } events[MAX_EVENTS];
static volatile int n;
static jmp_buf target;

PLAIN static void note(char sign, const char *name)
{
	int i = n++;

	events[i].name = name;
	events[i].sign = sign;
}

CALLED static void jumper(int depth)
{
	note('+', __func__);
	if (depth == 0)
		longjmp(target, 1);
	jumper(depth - 1);
	note('-', __func__);
}

CALLED static void lander(int depth)
{
	note('+', __func__);
	if (!setjmp(target))
		jumper(depth);
	note('-', __func__);
}

CALLED static void handle(int number)
{
	note('+', __func__);
	(void)number;
	note('-', __func__);
}

CALLED static void raiser(void)
{
	note('+', __func__);
	raise(SIGUSR1);
	note('-', __func__);
}

PLAIN static void *load(const char *path)
{
	note('+', "begin_library");
	note('+', "in_library");
	note('-', "in_library");
	note('-', "begin_library");
	return dlopen(path, RTLD_NOW);
}

PLAIN int main(int argc, char **argv)
{
	void *library = argc > 1 ? load(argv[1]) : NULL;
	void (*in_library)(void) = library ?
		(void (*)(void))dlsym(library, "in_library") : NULL;

	signal(SIGUSR1, handle);
	for (int i = 0; i < ROUNDS; i++) {
		lander(i % 7);
		raiser();
		if (in_library) {
			note('+', "in_library");
			in_library();
			note('-', "in_library");
		}
	}
	if (library)
		dlclose(library);
	printf("thread %d\n", getpid());
	for (int i = 0; i < n; i++)
		printf("%c %s\n", events[i].sign, events[i].name);
	return 0;
}
