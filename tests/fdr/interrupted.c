/* SPDX-License-Identifier: MIT */
/*
 * interrupted.c - interrupt a program at given instructions, one in a round
 *
 * usage: interrupted WAYS PROGRAM KIND <ADDRESSES
 *
 * Each address, in hexadecimal, gets WAYS rounds of rounds.c.  At the first
 * time that the program is about to run the instruction there, it gets a
 * signal.  A breakpoint and not a single step, which would begin a restartable
 * sequence anew for ever.
 */
#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ptrace.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

enum { INT3 = 0xcc };

static pid_t child;
static unsigned long address;

static void die(const char *what)
{
	fprintf(stderr, "%s at %lx: errno %d\n", what, address, errno);
	kill(child, SIGKILL);
	exit(1);
}

/* Go on with @signal until the next trap. */
static void go(int signal)
{
	int status;

	do {
		if (ptrace(PTRACE_CONT, child, NULL, (void *)(intptr_t)signal) ||
		    waitpid(child, &status, 0) != child)
			die("cannot go on");
		/* it was blocked, and is delivered now */
		signal = SIGUSR1;
	} while (WIFSTOPPED(status) && WSTOPSIG(status) == SIGUSR1);
	if (!WIFSTOPPED(status) || WSTOPSIG(status) != SIGTRAP) {
		fprintf(stderr, "status %x\n", status);
		die("the program ended");
	}
}

static long peek(void)
{
	errno = 0;
	return ptrace(PTRACE_PEEKTEXT, child, (void *)address, NULL);
}

static void poke(long word)
{
	if (ptrace(PTRACE_POKETEXT, child, (void *)address, (void *)word))
		die("cannot write");
}

/* One round.  Whether the instruction was reached. */
static bool round_of(void)
{
	struct user_regs_struct registers;
	long word = peek();
	bool reached;

	if (errno)
		die("cannot read");
	poke((word & ~0xffL) | INT3);
	go(0);
	if (ptrace(PTRACE_GETREGS, child, NULL, &registers))
		die("cannot read registers");
	reached = registers.rip == address + 1;
	poke(word);
	if (reached) {
		registers.rip = address;
		if (ptrace(PTRACE_SETREGS, child, NULL, &registers))
			die("cannot write registers");
		go(SIGUSR1);	/* to the end of the round */
	}
	go(0);			/* to the next round */
	return reached;
}

int main(int argc, char **argv)
{
	unsigned long n_rounds = 0, n_reached = 0, n_addresses = 0, n_used = 0;
	int n_ways = argc == 4 ? atoi(argv[1]) : 0;

	if (n_ways <= 0)
		return 2;
	child = fork();
	if (child == 0) {
		ptrace(PTRACE_TRACEME, 0, NULL, NULL);
		execl(argv[2], argv[2], argv[3], NULL);
		_exit(127);
	}
	waitpid(child, &(int) { 0 }, 0);
	if (ptrace(PTRACE_SETOPTIONS, child, NULL, (void *)PTRACE_O_EXITKILL))
		die("cannot trace");
	go(0);
	while (scanf("%lx", &address) == 1) {
		unsigned long before = n_reached;

		for (int i = 0; i < n_ways; i++, n_rounds++)
			n_reached += round_of();
		n_addresses++;
		n_used += n_reached > before;
	}
	kill(child, SIGKILL);
	printf("%lu of %lu instructions reached, %lu signals\n", n_used,
	       n_addresses, n_reached);
	return 0;
}
