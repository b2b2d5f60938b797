/* SPDX-License-Identifier: MIT */
/* trigger_signals.c - see trigger_signals.h */
#include "target/fdr/check/trigger_signals.h"

#include "target/fdr/check/triggers.h"
#include "target/fdr/record/system.h"
#include "target/interpose/interpose.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

enum {
	N_ACTIONS = 8,		/* a reader is done after so many changes */
	SET_BYTES = 8,		/* of the kernel's signal set */
};

/* A signal that is a trigger; what the program has set for it. */
struct watched_signal {
	bool is_on;
	uint8_t trigger;
	_Atomic uint32_t n_actions;
	struct sigaction actions[N_ACTIONS];
};

static pid_t process;
static atomic_flag is_busy = ATOMIC_FLAG_INIT;

/* At the start, and in a child, whose parent's other threads it has not. */
static void note_process(void)
{
	atomic_flag_clear(&is_busy);
	if (seam_fdr_may_call_system())
		process = getpid();
}

static struct watched_signal watched[NSIG];

static struct watched_signal *watched_of(int signal)
{
	/* none is number 0 */
	return &watched[signal > 0 && signal < NSIG ? signal : 0];
}

/* Not those that stop, nor the two that no program receives. */
static bool is_possible(int signal)
{
	switch (signal) {
	case SIGKILL: case SIGSTOP: case SIGTSTP: case SIGTTIN: case SIGTTOU:
		return false;
	default:
		return signal > 0 && signal < NSIG;
	}
}

/* Source: signal(7): the default action is to do nothing, or to go on */
static bool is_harmless(int signal)
{
	return signal == SIGCHLD || signal == SIGURG || signal == SIGWINCH ||
	       signal == SIGCONT;
}

static bool has_handler(const struct sigaction *action)
{
	return action->sa_handler != SIG_DFL && action->sa_handler != SIG_IGN;
}

static struct sigaction *program_action(struct watched_signal *w)
{
	return &w->actions[atomic_load(&w->n_actions) % N_ACTIONS];
}

/* ---- the handler ---- */

static void on_signal(int signal, siginfo_t *info, void *context);

/* What the kernel is to do, that the program may have @action. */
static struct sigaction action_for(int signal, const struct sigaction *action)
{
	struct sigaction ours = *action;

	if (action->sa_handler == SIG_IGN ||
	    (action->sa_handler == SIG_DFL && is_harmless(signal)))
		return ours;
	ours.sa_sigaction = on_signal;
	ours.sa_flags |= SA_SIGINFO;
	if (has_handler(action)) {
		/* else the kernel would not call us again */
		ours.sa_flags &= ~(int)SA_RESETHAND;
	} else {
		ours.sa_flags |= SA_ONSTACK;
		sigfillset(&ours.sa_mask);
	}
	return ours;
}

static int install(int signal, const struct sigaction *action)
{
	struct sigaction ours = action_for(signal, action);

	return SEAM_REAL(sigaction)(signal, &ours, NULL);
}

/* Note and install the program's @action; as sigaction(2). */
static int set_action(int signal, const struct sigaction *action)
{
	struct watched_signal *w = watched_of(signal);
	struct sigaction copy = *action;
	sigset_t all, old;
	uint32_t next;
	int r;

	/* a handler of this thread may call sigaction() as well */
	sigfillset(&all);
	syscall(SYS_rt_sigprocmask, SIG_SETMASK, &all, &old, SET_BYTES);
	while (atomic_flag_test_and_set(&is_busy))
		sched_yield();
	next = atomic_load(&w->n_actions) + 1;
	w->actions[next % N_ACTIONS] = copy;
	r = install(signal, &copy);
	if (r == 0)
		atomic_store(&w->n_actions, next);
	atomic_flag_clear(&is_busy);
	syscall(SYS_rt_sigprocmask, SIG_SETMASK, &old, NULL, SET_BYTES);
	return r;
}

/*
 * An instruction that faults does so again after the handler.  Source:
 * siginfo of sigaction(2); a memory error found elsewhere is no such fault.
 */
static bool comes_again(int signal, const siginfo_t *info)
{
	if (signal == SIGBUS && info->si_code == BUS_MCEERR_AO)
		return false;
	return info->si_code > 0 && (signal == SIGSEGV || signal == SIGBUS ||
				     signal == SIGILL || signal == SIGFPE);
}

/* By the default action, as soon as the handler returns. */
static void end_program(int signal, const siginfo_t *info)
{
	struct sigaction action = { .sa_handler = SIG_DFL };

	SEAM_REAL(sigaction)(signal, &action, NULL);
	if (!comes_again(signal, info) &&
	    syscall(SYS_rt_tgsigqueueinfo, getpid(), gettid(), signal, info))
		syscall(SYS_tgkill, getpid(), gettid(), signal);
}

static void on_signal(int signal, siginfo_t *info, void *context)
{
	struct watched_signal *w = watched_of(signal);
	struct sigaction action = *program_action(w);
	int error = errno;

	seam_fdr_triggers_signal(w->trigger, signal);
	errno = error;
	if (!has_handler(&action)) {
		/* else it came just before the program ignored it */
		if (action.sa_handler == SIG_DFL && !is_harmless(signal))
			end_program(signal, info);
		return;
	}
	if (action.sa_flags & (int)SA_RESETHAND)
		set_action(signal, &(struct sigaction) {
			.sa_handler = SIG_DFL, .sa_mask = action.sa_mask,
			.sa_flags = action.sa_flags });
	if (action.sa_flags & SA_SIGINFO)
		action.sa_sigaction(signal, info, context);
	else
		action.sa_handler(signal);
}

static int watch(unsigned int trigger, int signal)
{
	struct watched_signal *w = watched_of(signal);
	struct sigaction before;

	if (!is_possible(signal))
		return -EINVAL;
	w->trigger = (uint8_t)trigger;
	if (w->is_on)
		return 0;
	if (SEAM_REAL(sigaction)(signal, NULL, &before))
		return -errno;
	w->is_on = true;
	return set_action(signal, &before) ? -errno : 0;
}

int seam_fdr_trigger_signals_init(const struct seam_fdr_options *o)
{
	static bool has_fork_handler;
	int r = 0;

	if (!has_fork_handler)
		r = -pthread_atfork(NULL, NULL, note_process);
	has_fork_handler = r == 0;
	note_process();
	for (uint32_t i = 0; i < o->n_triggers; i++)
		if (o->triggers[i].kind == SEAM_TRIGGER_SIGNAL)
			r = watch(i, o->triggers[i].signal) ?: r;
	return r;
}

void seam_fdr_trigger_signals_fini(void)
{
	for (int i = 1; i < NSIG; i++)
		if (watched[i].is_on) {
			watched[i].is_on = false;
			SEAM_REAL(sigaction)(i, program_action(&watched[i]),
					     NULL);
		}
}

/* ---- what the program calls ---- */

/* A child of vfork() has these variables of its parent. */
static bool is_watched(int signal)
{
	const struct watched_signal *w = watched_of(signal);

	return w->is_on && getpid() == process;
}

SEAM_INTERPOSED
int sigaction(int signal, const struct sigaction *new, struct sigaction *old)
{
	struct sigaction before;
	int r = 0;

	if (!is_watched(signal))
		return SEAM_REAL(sigaction)(signal, new, old);
	before = *program_action(watched_of(signal));
	if (new)
		r = set_action(signal, new);
	if (r == 0 && old)
		*old = before;
	return r;
}

SEAM_INTERPOSED
sighandler_t signal(int number, sighandler_t handler)
{
	struct sigaction action = {
		.sa_handler = handler, .sa_flags = SA_RESTART,
	}, before;

	if (!is_watched(number) || handler == SIG_ERR)
		return SEAM_REAL(signal)(number, handler);
	before = *program_action(watched_of(number));
	sigaddset(&action.sa_mask, number);
	return set_action(number, &action) ? SIG_ERR : before.sa_handler;
}
