/* SPDX-License-Identifier: MIT */
/*
 * own_signals.c - a program that depends on its signals, case by case
 *
 * usage: own_signals CASE
 *
 * What it prints, and how it ends, is the same whether or not these signals are
 * triggers: own_signals.py compares.
 */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

#define SHOWN __attribute__((xray_always_instrument, noinline))

static char alternate[64 << 10];
static sigjmp_buf out;
static volatile int count;

/* ---- how it may end ---- */

SHOWN static void fault(void)
{
	*(volatile int *)16 = 1;
}

SHOWN static void not_canonical(void)
{
	*(volatile int *)0x8000000000000000 = 1;
}

SHOWN static void bus(void)
{
	int fd = open("/proc/self/exe", O_RDONLY);
	volatile char *p = mmap(NULL, 1 << 30, PROT_READ, MAP_PRIVATE, fd, 0);

	(void)p[(1 << 30) - 1];
}

SHOWN static void divide(void)
{
	__asm__ volatile("divl %0" : : "r" (0) : "eax", "edx");
}

SHOWN static void illegal(void)
{
	__asm__ volatile("ud2");
}

SHOWN static void trap(void)
{
	__asm__ volatile("int3");
}

SHOWN static void overflow(void)
{
	volatile char page[4096];

	page[0] = (char)count++;
	overflow();
	page[1] = 1;
}

static void send_segv(void)
{
	kill(getpid(), SIGSEGV);
	pause();
}

static void raise_usr1(void)
{
	raise(SIGUSR1);
}

static void raise_term(void)
{
	raise(SIGTERM);
}

static void queue_rt(void)
{
	sigqueue(getpid(), SIGRTMIN + 3, (union sigval) { .sival_int = 4 });
	pause();
}

/* ---- handlers ---- */

static void print_mask(void)
{
	sigset_t mask;

	sigprocmask(SIG_SETMASK, NULL, &mask);
	printf("mask");
	for (int i = 1; i < NSIG; i++)
		if (sigismember(&mask, i) == 1)
			printf(" %d", i);
	printf("\n");
}

static void on_signal(int signal)
{
	char here;

	printf("signal %d, alternate %d, errno %d\n", signal,
	       &here >= alternate && &here < alternate + sizeof(alternate),
	       errno);
	print_mask();
	errno = 1;
	if (signal == SIGSEGV || signal == SIGFPE)
		siglongjmp(out, 1);
}

static void on_info(int signal, siginfo_t *info, void *context)
{
	ucontext_t *c = context;
	bool is_fault = info->si_code > 0;

	/* the address of the instruction, from one that is near */
	printf("signal %d, code %d, address %p, value %d, at %ld\n", signal,
	       info->si_code, is_fault ? info->si_addr : NULL,
	       info->si_code == SI_QUEUE ? info->si_value.sival_int : 0,
	       is_fault ? (long)(c->uc_mcontext.gregs[REG_RIP] -
				 (greg_t)(uintptr_t)fault) : 0);
	on_signal(signal);
}

static void install(int signal, void (*handler)(int), int flags)
{
	struct sigaction action = { .sa_handler = handler, .sa_flags = flags };
	struct sigaction old;

	if (flags & SA_SIGINFO)
		action.sa_sigaction = on_info;
	sigaddset(&action.sa_mask, SIGHUP);
	sigaction(signal, &action, NULL);
	sigaction(signal, NULL, &old);
	printf("is own %d, flags %x\n", old.sa_handler == action.sa_handler,
	       (unsigned int)old.sa_flags & ~0x4000000u);
}

static void handle(void)
{
	install(SIGUSR1, on_signal, 0);
	errno = 77;
	raise(SIGUSR1);
	printf("errno %d\n", errno);
	install(SIGUSR1, NULL, SA_SIGINFO | SA_NODEFER);
	raise(SIGUSR1);
	install(SIGRTMIN + 3, NULL, SA_SIGINFO);
	sigqueue(getpid(), SIGRTMIN + 3, (union sigval) { .sival_int = 4 });
	print_mask();
}

static void handle_once(void)
{
	install(SIGUSR1, on_signal, (int)SA_RESETHAND);
	raise(SIGUSR1);
	printf("again\n");
	fflush(stdout);
	raise(SIGUSR1);
	printf("not here\n");
}

static void recover(void)
{
	stack_t stack = { .ss_sp = alternate, .ss_size = sizeof(alternate) };
	struct rlimit limit = { 1 << 20, 1 << 20 };

	setrlimit(RLIMIT_STACK, &limit);
	sigaltstack(&stack, NULL);
	install(SIGSEGV, NULL, SA_SIGINFO | SA_ONSTACK);
	if (!sigsetjmp(out, 1))
		fault();
	if (!sigsetjmp(out, 1))
		send_segv();
	install(SIGFPE, on_signal, 0);
	if (!sigsetjmp(out, 1))
		divide();
	print_mask();
}

static void recover_from_overflow(void)
{
	stack_t stack = { .ss_sp = alternate, .ss_size = sizeof(alternate) };

	sigaltstack(&stack, NULL);
	install(SIGSEGV, on_signal, SA_ONSTACK);
	if (!sigsetjmp(out, 1))
		overflow();
	printf("recovered\n");
}

static void ignore(void)
{
	char *const arguments[] = { "sh", "-c", "kill -USR1 $$; echo lives",
				    NULL };

	printf("was default %d\n", signal(SIGUSR1, SIG_IGN) == SIG_DFL);
	raise(SIGUSR1);
	printf("was ignored %d\n", signal(SIGUSR1, on_signal) == SIG_IGN);
	printf("was own %d\n", signal(SIGUSR1, SIG_IGN) == on_signal);
	/* and so is it in what it executes */
	fflush(stdout);
	execv("/bin/sh", arguments);
}

static void harmless(void)
{
	struct timespec pause = { 0, 50 * 1000 * 1000 };

	if (fork() == 0)
		_exit(0);
	printf("interrupted %d\n", nanosleep(&pause, NULL));
	wait(NULL);
}

static void in_child(void)
{
	int status;

	install(SIGUSR1, on_signal, 0);
	fflush(stdout);
	if (fork() == 0) {
		signal(SIGUSR1, SIG_DFL);
		raise(SIGUSR1);
		_exit(0);
	}
	wait(&status);
	printf("child %x\n", status);
	raise(SIGUSR1);
	fflush(stdout);
	if (vfork() == 0) {
		signal(SIGUSR1, SIG_IGN);
		_exit(0);
	}
	wait(&status);
	raise(SIGUSR1);
	printf("%d\n", system("kill -USR1 $$"));
}

static const struct {
	const char *name;
	void (*run)(void);
} cases[] = {
	{ "fault", fault }, { "not_canonical", not_canonical }, { "bus", bus },
	{ "divide", divide }, { "illegal", illegal }, { "trap", trap },
	{ "overflow", overflow }, { "abort", abort },
	{ "send_segv", send_segv }, { "raise_usr1", raise_usr1 },
	{ "raise_term", raise_term }, { "queue_rt", queue_rt },
	{ "handle", handle }, { "handle_once", handle_once },
	{ "recover", recover },
	{ "recover_from_overflow", recover_from_overflow },
	{ "ignore", ignore }, { "harmless", harmless },
	{ "in_child", in_child },
};

int main(int argc, char **argv)
{
	/* 0.  Source: ISO C, 7.5 */
	int begin_errno = errno;

	setvbuf(stdout, NULL, _IOLBF, 0);
	if (argc > 1)
		printf("errno %d\n", begin_errno);
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++)
		if (argc < 2)
			printf("%s\n", cases[i].name);
		else if (!strcmp(argv[1], cases[i].name))
			cases[i].run();
	return 0;
}
