/* SPDX-License-Identifier: MIT */
/*
 * signal_front.h - a handler of ours in front of the program's
 *
 *	kernel -> our handler, all signals but faults blocked
 *		   take(): ours?	-> done
 *		   else the program's handler, as the kernel would call it:
 *		   its mask, SA_RESETHAND, SA_NODEFER; or the default action
 *
 * One table for each library that has this file, for the tick of its sampler:
 * the sampler's and sysprof's.  The program's own action is a copy here; a
 * library whose sigaction() is in front of libc's shows and sets that copy
 * (signal_calls.c).
 *
 * No handler of the program runs inside take(), so none can leave it by
 * siglongjmp(3).  Faults are not blocked: the kernel kills where they are.
 *
 * Threads: any.  The handler takes no lock.
 */
#pragma once

#include <signal.h>
#include <ucontext.h>

#include "base/base.h"

struct seam_signal_front {
	/*
	 * In the handler, errno is saved.  True: the signal is ours alone.
	 */
	bool (*take)(int signal, siginfo_t *info, ucontext_t *context);
	int flags;		/* of sigaction(2), always */
	int flags_without;	/* where the program has no handler */
	/*
	 * Optional: before the program gets the signal.  True: the thread has
	 * the signal blocked, as far as it sees, and gets the signal later.
	 */
	bool (*defer)(int signal, siginfo_t *info, ucontext_t *context);
	/* Optional: the program is about to set a handler. */
	void (*before_handler)(int signal);
};

/*
 * Put our handler in front of the present action, which becomes the program's.
 * No effect if our handler is there.  @front is static.  0 or -errno.
 */
int seam_signal_front_begin(int signal, const struct seam_signal_front *front);

/* Give the kernel the program's action again, unless ours was replaced. */
void seam_signal_front_end(int signal);

/* Whether the kernel has our handler; a system call can replace it. */
bool seam_signal_front_is_there(int signal);

/* Whether between begin and end; whether not in a child of vfork(). */
bool seam_signal_front_is_on(int signal);
bool seam_signal_front_is_own_process(void);

/* In a child of fork(). */
void seam_signal_front_begin_child(void);

struct sigaction seam_signal_front_program(int signal);

/* The program sets @action.  As sigaction(2). */
int seam_signal_front_set(int signal, const struct sigaction *action);

static inline bool seam_signal_has_handler(const struct sigaction *action)
{
	return action->sa_handler != SIG_DFL && action->sa_handler != SIG_IGN;
}

/*
 * The sigaction() after ours: of signal_calls.c, or of a library that has none
 * in front of libc's.
 */
int seam_signal_real(int signal, const struct sigaction *new,
		     struct sigaction *old);
