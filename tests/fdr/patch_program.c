/* SPDX-License-Identifier: MIT */
/*
 * patch_program.c - calls that patched.py knows the number of
 *
 *	patch_program [WORD...]		leaf() 10 times, and for each WORD more
 *
 * It is built in many ways, also as C++, and so has nothing that one of them
 * does not have.  Only what is MARKED has XRay's sleds.
 */
#include <dlfcn.h>
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#ifdef __clang__
#define MARKED __attribute__((noinline, xray_always_instrument))
#define MARKED_ARGS __attribute__((noinline, xray_always_instrument,	\
				   xray_log_args(1)))
#define UNMARKED __attribute__((noinline, xray_never_instrument))
#else
#define MARKED __attribute__((noipa))
#define MARKED_ARGS MARKED
#define UNMARKED __attribute__((noipa))
#endif

#define HIDE() __asm__ volatile("" ::: "memory")

#ifdef UNALIGNED		/* bytes before the functions */
#define TEXT_OF(number) #number
#define SKIP(number) ".text\n.p2align 3\n.skip " TEXT_OF(number) ", 0x90\n"
__asm__(SKIP(UNALIGNED));
#endif

MARKED int leaf(int x)
{
	HIDE();
	return x + 1;
}

MARKED int fibonacci(int x)
{
	int r = x < 2 ? x : fibonacci(x - 1) + fibonacci(x - 2);

	/* or compilers make a loop of it */
	HIDE();
	return r;
}

#if !defined(__clang__) && !defined(__cplusplus)
/* gcc passes where the variables are that it shares in a register, r10. */
UNMARKED static int nested_sum(int n)
{
	int sum = 0;

	MARKED void nested(int x)
	{
		HIDE();
		sum += x;
	}

	for (int i = 0; i < n; i++)
		nested(i);
	return sum;
}
#endif

#ifdef __cplusplus
namespace space {
template <class T, class U> struct box {
	MARKED static T method(T x)
	{
		HIDE();
		return x * 2;
	}
};
}

MARKED int thrower(int x)
{
	HIDE();
	if (x & 1)
		throw x;
	return x;
}

MARKED int catcher(int x)
{
	try {
		return thrower(x);
	} catch (int) {
		return 0;
	}
}
#endif

#ifdef __clang__
MARKED int tail_caller(int x)
{
	HIDE();
	return leaf(x);
}

MARKED_ARGS int logged(int x)
{
	HIDE();
	return x;
}

MARKED void events(void)
{
	static const char text[] = "12345";

	__xray_customevent(text, 5);
}

#ifdef HAS_TYPED
/* clang 14 to 18 mix its operands up, so any address may come of it. */
MARKED void typed_event(const char *data, unsigned long bytes)
{
	__xray_typedevent(7, data, bytes);
}
#endif
#endif

UNMARKED static void *thread(void *n)
{
	for (size_t i = 0; i < (size_t)n; i++)
		leaf((int)i);
	return NULL;
}

UNMARKED static void *sleeper(void *unused)
{
	pause();
	return unused;
}

UNMARKED static void with_library(const char *path, int n)
{
	void *library = dlopen(path, RTLD_NOW);
	int (*f)(int);

	if (!library) {
		printf("%s\n", dlerror());
		exit(1);
	}
	f = (int (*)(int))dlsym(library, "library_leaf");
	for (int i = 0; f && i < n; i++)
		f(i);
	if (f)
		dlclose(library);
}

/* Kill the process for each system call but those that it needs to end. */
UNMARKED static void filter(void)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS,
			 offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_write, 2, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_exit_group, 1, 0),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = {
		sizeof(code) / sizeof(code[0]), code };

	fflush(stdout);
	prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
	if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program, 0, 0))
		_exit(3);
	for (int i = 0; i < 100000; i++)
		leaf(i);
	/* a sled in use begins with a prefix of its mov */
	if (write(1, *(const unsigned char *)leaf == 0x41 ? "in use  \n" :
		  "filtered\n", 9) != 9)
		_exit(4);
	_exit(0);
}

static volatile int n_forks;

UNMARKED static void fork_in_handler(int signal)
{
	pid_t child = fork();

	(void)signal;
	if (child == 0)
		_exit(leaf(1) != 2);
	if (waitpid(child, NULL, 0) == child)
		n_forks++;
}

UNMARKED static void do_word(const char *word)
{
	pthread_t other;

	if (!strcmp(word, "more"))
		for (int i = 0; i < 100; i++)
			leaf(i);
	else if (!strcmp(word, "fork") && fork() == 0)
		for (int i = 0; i < 7; i++)
			leaf(i);
	else if (!strcmp(word, "wait"))
		while (wait(NULL) > 0 || errno == EINTR)
			continue;
	else if (!strcmp(word, "thread") &&
		 !pthread_create(&other, NULL, thread, (void *)1000))
		pthread_join(other, NULL);
	else if (!strcmp(word, "sleep"))
		pthread_create(&other, NULL, sleeper, NULL);
	else if (!strcmp(word, "handler"))
		signal(atoi(getenv("PATCH_PROBE_RAISES")), fork_in_handler);
	else if (!strcmp(word, "forked"))
		printf("forked %d\n", n_forks > 0);
	else if (!strcmp(word, "filter"))
		filter();
	else if (word[0] == '/')
		with_library(word, 5);
#ifdef LINKED
	else if (!strcmp(word, "linked"))
		for (int i = 0; i < 3; i++)
			((int (*)(int))LINKED)(i);
#endif
}

UNMARKED int main(int argc, char **argv)
{
	int sum = 0;

	if (argc > 1 && !strcmp(argv[1], "only")) {
		for (int i = 2; i < argc; i++)
			with_library(argv[i], 0);
		return 0;
	}
	for (int i = 0; i < 10; i++)
		sum += leaf(i);
	sum += fibonacci(10);
#if !defined(__clang__) && !defined(__cplusplus)
	if (nested_sum(5) != 10)
		return 1;
#endif
#ifdef __clang__
	for (int i = 0; i < 4; i++)
		sum += tail_caller(i) + logged(i);
	events();
#ifdef HAS_TYPED
	typed_event("12345", 5);
#endif
#endif
#ifdef __cplusplus
	for (int i = 0; i < 6; i++)
		sum += catcher(i) + space::box<int, long>::method(i);
#endif
	for (int i = 1; i < argc; i++)
		do_word(argv[i]);
	printf("sum %d\n", sum);
	return 0;
}
