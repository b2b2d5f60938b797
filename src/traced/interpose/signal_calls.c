/* SPDX-License-Identifier: MIT */
/*
 * signal_calls.c - sigaction() and signal(), of signals that are ours first
 *
 * Both show and set the program's own action.  Not covered: system calls
 * without libc; sigset(3) and other System V calls.
 */
#include "traced/interpose/interpose.h"
#include "traced/interpose/signal_front.h"

/* Source: arch/x86/include/uapi/asm/signal.h */
enum { SA_RESTORER = 0x04000000 };

int seam_signal_real(int signal, const struct sigaction *new,
		     struct sigaction *old)
{
	return SEAM_REAL(sigaction)(signal, new, old);
}

/* Set @new, if not NULL; @old, if not NULL, gets the action of before. */
static int change(int signal, const struct sigaction *new,
		  struct sigaction *old)
{
	const struct sigaction before = seam_signal_front_program(signal);
	struct sigaction set;

	if (new) {
		set = *new;
		/* libc sets the flag, and the kernel shows it */
		set.sa_flags |= SA_RESTORER;
		if (seam_signal_front_set(signal, &set))
			return -1;
	}
	if (old)
		*old = before;
	return 0;
}

/*
 * In a child of vfork(), or of clone(2), the kernel has our handler still; the
 * memory may be the parent's.
 */
static int show(int signal, const struct sigaction *new, struct sigaction *old)
{
	const struct sigaction program = seam_signal_front_program(signal);
	bool was_there = old && seam_signal_front_is_there(signal);
	int r = SEAM_REAL(sigaction)(signal, new, old);

	if (r == 0 && was_there)
		*old = program;
	return r;
}

SEAM_INTERPOSED
int sigaction(int signal, const struct sigaction *new, struct sigaction *old)
{
	if (!seam_signal_front_is_on(signal))
		return SEAM_REAL(sigaction)(signal, new, old);
	return seam_signal_front_is_own_process() ? change(signal, new, old) :
	       show(signal, new, old);
}

SEAM_INTERPOSED
sighandler_t signal(int number, sighandler_t handler)
{
	struct sigaction action = {
		.sa_handler = handler, .sa_flags = SA_RESTART,
	}, before;

	if (handler == SIG_ERR || !seam_signal_front_is_on(number))
		return SEAM_REAL(signal)(number, handler);
	sigaddset(&action.sa_mask, number);
	return sigaction(number, &action, &before) ? SIG_ERR :
	       before.sa_handler;
}
