/* SPDX-License-Identifier: MIT */
/*
 * sampler_late.c - a program that loads LuaJIT when its threads run
 *
 *	sampler_late LIBRARY [handler|trap|blocked|filter]
 *
 * One thread uses CPU time in C from the start; the first one loads LIBRARY
 * and runs Lua.  Prints "cpu TID NANOSECONDS" for both, of the time since the
 * library was loaded.  With "handler" it handles SIGURG before, with "trap"
 * SIGTRAP, of which it sends itself 10.  With "blocked" the other thread blocks
 * all signals, and none is pending; it unblocks them when half of its time is
 * over.  With "filter" a filter, inherited, traps the clock of CPU time, and a
 * handler of SIGSYS answers by its other number.
 */
#include <dlfcn.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <ucontext.h>
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

static void spin_until(long end)
{
	while (cpu_ns() < end)
		;
}

static void *spin(void *is_blocked)
{
	sigset_t all, pending;
	long since;

	sigfillset(&all);
	if (is_blocked)
		pthread_sigmask(SIG_BLOCK, &all, NULL);
	while (!is_loaded)
		;
	since = cpu_ns();
	spin_until(since + 150000000);
	sigpending(&pending);
	if (!sigisemptyset(&pending))
		_exit(7);
	pthread_sigmask(SIG_UNBLOCK, &all, NULL);
	spin_until(since + 300000000);
	report(since);
	return NULL;
}

static void on_urgent(int signal)
{
	(void)signal;
}

static _Atomic int n_traps;

static void on_trap(int signal)
{
	(void)signal;
	n_traps++;
}

static void answer(int signal, siginfo_t *info, void *context)
{
	greg_t *registers = ((ucontext_t *)context)->uc_mcontext.gregs;

	(void)signal;
	(void)info;
	/* the same clock, by another number: of thread 0, the caller */
	clock_gettime((clockid_t)(~0U << 3 | 6), (void *)registers[REG_RSI]);
	registers[REG_RAX] = 0;
}

static int filter(char **argv)
{
	struct sock_filter traps[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_clock_gettime, 0, 3),
		/* the low half of the first argument */
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, 16),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, CLOCK_THREAD_CPUTIME_ID, 0,
			 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_TRAP),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = { 6, traps };
	struct sigaction action = {
		/* a tick comes in this handler too */
		.sa_sigaction = answer, .sa_flags = SA_SIGINFO | SA_NODEFER,
	};

	if (getenv("HAS_FILTER"))
		return sigaction(SIGSYS, &action, NULL);
	setenv("HAS_FILTER", "1", 1);
	prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
	prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program, 0, 0);
	return execv("/proc/self/exe", argv);
}

int main(int argc, char **argv)
{
	void *(*newstate)(void);
	int (*loadstring)(void *, const char *);
	int (*pcall)(void *, int, int, int);
	void *library, *lua;
	pthread_t thread;
	long since;

	if (argc > 2 && !strcmp(argv[2], "filter") && filter(argv))
		return 6;
	if (argc < 2 ||
	    pthread_create(&thread, NULL, spin, argc > 2 &&
			   !strcmp(argv[2], "blocked") ? argv : NULL))
		return 2;
	if (argc > 2 && !strcmp(argv[2], "handler"))
		signal(SIGURG, on_urgent);
	if (argc > 2 && !strcmp(argv[2], "trap"))
		signal(SIGTRAP, on_trap);
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
	if (argc > 2 && !strcmp(argv[2], "trap")) {
		for (int i = 0; i < 10; i++)
			raise(SIGTRAP);
		return n_traps != 10;
	}
	return 0;
}
