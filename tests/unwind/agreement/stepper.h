/* SPDX-License-Identifier: MIT */
/*
 * stepper.h - a program that stops itself at instructions
 *
 * With the trap flag set, each instruction raises SIGTRAP.  The handler counts;
 * where it is time, it writes the interrupted registers to descriptor 3, in
 * the order of DWARF's columns, and waits on descriptor 4 for the number
 * of instructions to the next stop.  Meanwhile the reader (compare.c) sees the
 * process as it is.  Signals of a debugger would cost two switches for each
 * instruction.
 */
#ifndef STEPPER_H
#define STEPPER_H

#include <errno.h>
#include <signal.h>
#include <stdint.h>
#include <string.h>
#include <ucontext.h>
#include <unistd.h>

#define IN_STEPPER __attribute__((noinline, section("stepper")))

extern const char __start_stepper[], __stop_stepper[];

static uint64_t steps_left = 1;

IN_STEPPER static void on_trap(int, siginfo_t *, void *context)
{
	static const int order[17] = {
		REG_RAX, REG_RDX, REG_RCX, REG_RBX, REG_RSI, REG_RDI, REG_RBP,
		REG_RSP, REG_R8, REG_R9, REG_R10, REG_R11, REG_R12, REG_R13,
		REG_R14, REG_R15, REG_RIP,
	};
	const greg_t *regs = ((ucontext_t *)context)->uc_mcontext.gregs;
	uintptr_t pc = (uintptr_t)regs[REG_RIP];
	uint64_t out[17];
	int before = errno;

	if (--steps_left)
		return;
	steps_left = 1;
	/* its own pushfq has no rules */
	if (pc - (uintptr_t)__start_stepper <
	    (uintptr_t)(__stop_stepper - __start_stepper))
		return;
	for (int i = 0; i < 17; i++)
		out[i] = (uint64_t)regs[order[i]];
	if (write(3, out, sizeof(out)) != sizeof(out) ||
	    read(4, &steps_left, sizeof(steps_left)) != sizeof(steps_left))
		_exit(9);
	errno = before;
}

/* Also at the start of each handler: the kernel clears the flag for it. */
IN_STEPPER static void start_stepping(void)
{
	__asm__ volatile("pushfq\n\torq $0x100, (%%rsp)\n\tpopfq" ::: "cc",
			 "memory");
}

IN_STEPPER static void stop_stepping(void)
{
	__asm__ volatile("pushfq\n\tandq $~0x100, (%%rsp)\n\tpopfq" ::: "cc",
			 "memory");
}

/* On a stack of its own: what is below the stack pointer stays as it is. */
static void install_stepper(void)
{
	static char room[65536];
	struct sigaction action;
	stack_t stack;

	memset(&stack, 0, sizeof(stack));
	stack.ss_sp = room;
	stack.ss_size = sizeof(room);
	sigaltstack(&stack, NULL);
	memset(&action, 0, sizeof(action));
	action.sa_sigaction = on_trap;
	action.sa_flags = SA_SIGINFO | SA_ONSTACK;
	sigaction(SIGTRAP, &action, NULL);
}

#endif /* STEPPER_H */
