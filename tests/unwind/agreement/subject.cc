/* SPDX-License-Identifier: MIT */
/*
 * subject.cc - code of all kinds, to be stopped anywhere
 *
 * Compiled as C++ with gcc and clang, at each level of optimization, without
 * frame pointers; run by compare.c.  An argument is the library to load.
 */
#include <alloca.h>
#include <csetjmp>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <dlfcn.h>
#include <stdexcept>
#include <string>
#include <vector>

#include "stepper.h"

#define NOINLINE __attribute__((noinline))

static volatile int sink;

/* --- recursion --- */

NOINLINE static int recurse(int n, const char *text)
{
	volatile char room[24];

	room[n % 24] = text[0];
	if (n == 0)
		return (int)strlen(text);
	return recurse(n - 1, text) + room[n % 24];
}

/* Stepped at its end only: the calls would take longer than all the rest. */
NOINLINE static int deep(int n)
{
	volatile int keep = n;

	if (n > 0)
		return deep(n - 1) + keep;
	start_stepping();
	keep = recurse(20, "deep");
	stop_stepping();
	return keep;
}

/* --- stacks of variable size, and aligned ones --- */

NOINLINE static int variable(size_t n)
{
	char *room = (char *)alloca(n);
	int array[n + 1];

	memset(room, (int)n, n);
	memset(array, 0, sizeof(array));
	return room[n / 2] + array[n] + recurse(3, "variable");
}

NOINLINE static int aligned(size_t n)
{
	alignas(64) volatile char room[128];
	char *more = (char *)alloca(n);

	room[n] = more[n - 1] = (char)n;
	return variable(n) + room[n] + more[n - 1];
}

/* --- exceptions --- */

struct guard {
	~guard() { sink = sink + 1; }
};

NOINLINE static void thrower(int n)
{
	guard g;
	std::string text = "a text that is too long to be kept inside";

	if (n == 0)
		throw std::runtime_error(text);
	thrower(n - 1);
}

NOINLINE static int catcher(int n)
{
	try {
		thrower(n);
	} catch (const std::exception &e) {
		return (int)strlen(e.what());
	}
	return 0;
}

/* --- libc calls back --- */

static int by_value(const void *a, const void *b)
{
	return *(const int *)a - *(const int *)b;
}

NOINLINE static int sorted(void)
{
	int numbers[32];

	for (int i = 0; i < 32; i++)
		numbers[i] = i * 37 % 32;
	qsort(numbers, 32, sizeof(numbers[0]), by_value);
	return numbers[3];
}

/* libc's code that is written by hand */
NOINLINE static int assembly(void)
{
	static char from[1024], to[1024];
	char text[300];
	int n = 0;

	for (size_t size : { 3, 17, 100, 700 }) {
		memset(from, 'x', size);
		memcpy(to, from, size);
		memmove(to + 1, to, size - 1);
		from[size] = to[size] = 0;
		n += strcmp(from, to) + (int)strlen(from);
		n += strchr(to, 'y') != NULL;
		n += memchr(to, 'y', size) != NULL;
		n += (int)strnlen(to, size) + (strstr(to, "xxy") != NULL);
	}
	snprintf(text, sizeof(text), "%d %s %.3f %x", n, "text", 2.5, n);
	n += (int)strtod("3.25e2", NULL) + (int)strtol("77", NULL, 8);
	return n + text[0];
}

/* --- jumps --- */

static std::jmp_buf back;

NOINLINE static void jump(int n)
{
	if (n == 0)
		std::longjmp(back, 1);
	jump(n - 1);
	sink = n;
}

NOINLINE static int jumped(void)
{
	if (setjmp(back))
		return 1;
	jump(4);
	return 0;
}

/* --- signals --- */

static void handler(int)
{
	start_stepping();
	sink = sorted() + recurse(5, "handler");
}

NOINLINE static void raise_it(int flags)
{
	static char room[65536];
	stack_t alternate = {};
	struct sigaction action = {};

	alternate.ss_sp = room;
	alternate.ss_size = sizeof(room);
	sigaltstack(&alternate, NULL);
	action.sa_handler = handler;
	action.sa_flags = flags;
	sigaction(SIGUSR1, &action, NULL);
	raise(SIGUSR1);
}

/* --- a library --- */

static int call_back(int n)
{
	return recurse(n, "back") + sorted();
}

NOINLINE static int library(const char *path)
{
	void *handle = path ? dlopen(path, RTLD_LAZY) : NULL;
	int (*entry)(int, int (*)(int)) = handle ?
		(int (*)(int, int (*)(int)))dlsym(handle, "library_entry") :
		NULL;
	int n = entry ? entry(7, call_back) : 0;

	if (handle)
		dlclose(handle);
	return n;
}

NOINLINE static long clocks(void)
{
	struct timespec t;
	long sum = 0;

	for (int i = 0; i < 8; i++) {
		clock_gettime(CLOCK_MONOTONIC, &t);
		sum += t.tv_nsec;
	}
	return sum;
}

int main(int argc, char **argv)
{
	std::vector<std::string> words;

	/* the first exception of a static program sorts all its tables */
	sink = catcher(0);
	install_stepper();
	start_stepping();
	for (size_t n : { 5, 40, 100 })
		sink = aligned(n);
	sink = catcher(2) + sorted() + assembly() + jumped();
	for (int i = 0; i < 4; i++)
		words.push_back("word " + std::to_string(i * 7919));
	raise_it(0);
	raise_it(SA_ONSTACK);
	sink = library(argc > 1 ? argv[1] : NULL);
	sink = (int)clocks();
	stop_stepping();
	sink = deep(3000);
	return words.size() != 4;
}
