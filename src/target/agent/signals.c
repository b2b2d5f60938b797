/* SPDX-License-Identifier: MIT */
/*
 * signals.c - the handler, in front of the program's own
 *
 * The program's calls for our signal change a copy, which is what it is
 * shown; signals that are not of a tick are passed on as that copy says.  A
 * handler of the program's own ends the sampling.
 *
 * Threads that block all signals are sampled too: our signal stays unblocked,
 * and is shown to them as blocked.  It becomes blocked with the first signal
 * that the program has a handler for, or its next call.
 *
 * Not covered: system calls without libc; sigset(3) and other System V calls;
 * a program that waits for this signal by sigwait(3) or signalfd(2).
 */
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "target/agent/agent.h"
#include "target/interpose/interpose.h"

enum {
	N_ACTIONS = 16,		/* a reader is done after so many changes */
	SET_BYTES = 8,		/* of the kernel's signal set */
};

typedef int sigaction_function(int, const struct sigaction *,
			       struct sigaction *);
typedef sighandler_t signal_function(int, sighandler_t);
typedef int mask_function(int, const sigset_t *, sigset_t *);

/* What the program has set; it begins with what was there before us. */
static struct sigaction actions[N_ACTIONS];
static _Atomic uint32_t n_actions;
static _Atomic bool is_installed;

/* Whether the program blocks the signal, in the calling thread. */
static __thread bool is_blocked __attribute__((tls_model("initial-exec")));

static struct sigaction *program_action(void)
{
	return &actions[atomic_load(&n_actions) % N_ACTIONS];
}

static bool is_handled(const struct sigaction *action)
{
	return action->sa_handler != SIG_DFL && action->sa_handler != SIG_IGN;
}

static void set_program_action(const struct sigaction *action)
{
	static atomic_flag is_busy = ATOMIC_FLAG_INIT;
	sigset_t all, old;
	uint32_t next;

	/* a handler of this thread may call sigaction() as well */
	sigfillset(&all);
	syscall(SYS_rt_sigprocmask, SIG_SETMASK, &all, &old, SET_BYTES);
	while (atomic_flag_test_and_set(&is_busy))
		sched_yield();
	next = atomic_load(&n_actions) + 1;
	actions[next % N_ACTIONS] = *action;
	atomic_store(&n_actions, next);
	atomic_flag_clear(&is_busy);
	syscall(SYS_rt_sigprocmask, SIG_SETMASK, &old, NULL, SET_BYTES);
}

/* ---- the handler ---- */

/* Block it as the program did, and send it again. */
static void defer(int signal, siginfo_t *info, ucontext_t *context)
{
	sigaddset(&context->uc_sigmask, signal);
	is_blocked = false;
	if (info->si_code == SI_TKILL)
		syscall(SYS_rt_tgsigqueueinfo, getpid(), gettid(), signal,
			info);
	else
		syscall(SYS_rt_sigqueueinfo, getpid(), signal, info);
}

/* As the kernel would call it. */
static void call_program(int signal, siginfo_t *info, ucontext_t *context)
{
	struct sigaction action = *program_action();
	sigset_t mask = context->uc_sigmask;

	if (!is_handled(&action))
		return;
	if (is_blocked) {
		defer(signal, info, context);
		return;
	}
	if (action.sa_flags & (int)SA_RESETHAND)
		set_program_action(&(struct sigaction) {
			.sa_handler = SIG_DFL, .sa_mask = action.sa_mask,
			.sa_flags = action.sa_flags });
	for (int i = 1; i < NSIG; i++)
		if (sigismember(&action.sa_mask, i) == 1)
			sigaddset(&mask, i);
	if (!(action.sa_flags & SA_NODEFER))
		sigaddset(&mask, signal);
	/* the return from the handler restores that of before */
	syscall(SYS_rt_sigprocmask, SIG_SETMASK, &mask, NULL, SET_BYTES);
	if (action.sa_flags & SA_SIGINFO)
		action.sa_sigaction(signal, info, context);
	else
		action.sa_handler(signal);
}

static void on_signal(int signal, siginfo_t *info, void *context)
{
	int saved_errno = errno;

	if (!seam_agent_on_signal(info, context)) {
		errno = saved_errno;
		call_program(signal, info, context);
		return;
	}
	errno = saved_errno;
}

static struct sigaction our_action(void)
{
	struct sigaction ours = {
		.sa_sigaction = on_signal,
		/* not SA_ONSTACK: see handler.c */
		.sa_flags = SA_SIGINFO | SA_RESTART,
	};

	sigfillset(&ours.sa_mask);
	/* faults: the kernel kills where one is blocked */
	sigdelset(&ours.sa_mask, SIGSEGV);
	sigdelset(&ours.sa_mask, SIGBUS);
	sigdelset(&ours.sa_mask, SIGILL);
	sigdelset(&ours.sa_mask, SIGFPE);
	sigdelset(&ours.sa_mask, SIGTRAP);
	return ours;
}

int seam_agent_signals_init(void)
{
	sigaction_function *real = SEAM_REAL(sigaction);
	struct sigaction ours = our_action(), before;

	if (!real || real(SEAM_AGENT_SIGNAL, NULL, &before))
		return -ENOSYS;
	if (is_handled(&before))
		return -EBUSY;
	set_program_action(&before);
	atomic_store(&is_installed, true);
	return real(SEAM_AGENT_SIGNAL, &ours, NULL) ? -errno : 0;
}

bool seam_agent_signals_are_ours(void)
{
	struct sigaction now;

	return SEAM_REAL(sigaction)(SEAM_AGENT_SIGNAL, NULL, &now) == 0 &&
	       now.sa_sigaction == on_signal;
}

/* ---- what the program calls ---- */

/*
 * The kernel keeps one pending signal of a number: one of the program's that
 * comes with a tick's would be lost, and its handler not called.
 */
static void end_for_program(void)
{
	seam_agent_end("it has a handler of SIGURG of its own");
}

SEAM_INTERPOSED
int sigaction(int signal, const struct sigaction *new, struct sigaction *old)
{
	sigaction_function *real = SEAM_REAL(sigaction);
	struct sigaction before;
	int r = 0;

	if (signal != SEAM_AGENT_SIGNAL || !atomic_load(&is_installed))
		return real(signal, new, old);
	before = *program_action();
	if (!seam_agent_is_own_process()) {
		/* a child of vfork() has these variables of its parent */
		r = real(signal, new, NULL);
		new = NULL;
	}
	if (new && is_handled(new))
		end_for_program();
	if (new)
		set_program_action(new);
	if (r == 0 && old)
		*old = before;
	return r;
}

SEAM_INTERPOSED
sighandler_t signal(int number, sighandler_t handler)
{
	signal_function *real = SEAM_REAL(signal);
	struct sigaction action = {
		.sa_handler = handler, .sa_flags = SA_RESTART,
	};
	sighandler_t before;

	if (number != SEAM_AGENT_SIGNAL || !atomic_load(&is_installed))
		return real(number, handler);
	if (handler == SIG_ERR) {
		errno = EINVAL;
		return SIG_ERR;
	}
	sigaddset(&action.sa_mask, number);
	before = program_action()->sa_handler;
	if (!seam_agent_is_own_process())
		return real(number, handler) == SIG_ERR ? SIG_ERR : before;
	if (is_handled(&action))
		end_for_program();
	set_program_action(&action);
	return before;
}

/* What the program was shown so far. */
static void block_signal(mask_function *real)
{
	sigset_t ours;

	sigemptyset(&ours);
	sigaddset(&ours, SEAM_AGENT_SIGNAL);
	real(SIG_BLOCK, &ours, NULL);
	is_blocked = false;
}

/*
 * Do what @real does, but for our signal, which stays unblocked where the
 * program has no handler for it.
 */
static int change_mask(mask_function *real, int how, const sigset_t *set,
		       sigset_t *old)
{
	bool was_blocked = is_blocked;
	sigset_t changed;
	int r;

	if (!atomic_load(&is_installed))
		return real(how, set, old);
	if (is_handled(program_action()) || !seam_agent_is_sampling()) {
		if (was_blocked)
			block_signal(real);
		return real(how, set, old);
	}
	if (set) {
		bool has = sigismember(set, SEAM_AGENT_SIGNAL) == 1;

		changed = *set;
		if (how != SIG_UNBLOCK)
			sigdelset(&changed, SEAM_AGENT_SIGNAL);
		is_blocked = how == SIG_SETMASK ? has :
			     has ? how == SIG_BLOCK : was_blocked;
	}
	r = real(how, set ? &changed : NULL, old);
	if (r)
		is_blocked = was_blocked;
	else if (old && was_blocked)
		sigaddset(old, SEAM_AGENT_SIGNAL);
	return r;
}

bool seam_agent_shows_blocked(void)
{
	/* where it may be blocked by now, a thread inherits that */
	if (is_blocked)
		change_mask(SEAM_REAL(pthread_sigmask), SIG_BLOCK, NULL, NULL);
	return is_blocked;
}

void seam_agent_show_blocked(bool blocked)
{
	is_blocked = blocked;
}

SEAM_INTERPOSED
int pthread_sigmask(int how, const sigset_t *set, sigset_t *old)
{
	return change_mask(SEAM_REAL(pthread_sigmask), how, set, old);
}

SEAM_INTERPOSED
int sigprocmask(int how, const sigset_t *set, sigset_t *old)
{
	return change_mask(SEAM_REAL(sigprocmask), how, set, old);
}
