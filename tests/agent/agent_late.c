/* SPDX-License-Identifier: MIT */
/*
 * agent_late.c - a program that loads LuaJIT when its threads run
 *
 *	agent_late LIBRARY [HANDLER]
 *
 * One thread uses CPU time in C from the start; the first one loads LIBRARY
 * and runs Lua.  Prints "cpu TID NANOSECONDS" for both, of the time since the
 * library was loaded.  With a second argument it handles SIGURG before.
 */
#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static _Atomic bool is_loaded;

static long cpu_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return t.tv_sec * 1000000000L + t.tv_nsec;
}

static void report(long since)
{
	printf("cpu %ld %ld\n", syscall(SYS_gettid), cpu_ns() - since);
	fflush(stdout);
}

static void *spin(void *unused)
{
	long since;

	while (!is_loaded)
		;
	since = cpu_ns();
	while (cpu_ns() - since < 300000000)
		;
	report(since);
	return unused;
}

static void on_urgent(int signal)
{
	(void)signal;
}

int main(int argc, char **argv)
{
	void *(*newstate)(void);
	int (*loadstring)(void *, const char *);
	int (*pcall)(void *, int, int, int);
	void *library, *lua;
	pthread_t thread;
	long since;

	if (argc < 2 || pthread_create(&thread, NULL, spin, NULL))
		return 2;
	if (argc > 2)
		signal(SIGURG, on_urgent);
	/* some look for an error in this way, though the call succeeded */
	library = dlopen("libm.so.6", RTLD_NOW);
	if (!library || dlerror() || dlclose(library) || dlerror())
		return 5;
	library = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
	if (!library)
		return 3;
	is_loaded = true;
	since = cpu_ns();
	*(void **)&newstate = dlsym(library, "luaL_newstate");
	*(void **)&loadstring = dlsym(library, "luaL_loadstring");
	*(void **)&pcall = dlsym(library, "lua_pcall");
	lua = newstate();
	while (cpu_ns() - since < 300000000)
		if (loadstring(lua, "local x = 0 "
			       "for i = 1, 20000 do x = x + i % 7 end") ||
		    pcall(lua, 0, 0, 0))
			return 4;
	report(since);
	pthread_join(thread, NULL);
	return 0;
}
