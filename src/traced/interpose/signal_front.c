/* SPDX-License-Identifier: MIT */
/* signal_front.c - see signal_front.h */
#include "traced/interpose/signal_front.h"

#include <errno.h>
#include <stdatomic.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum {
	N_ACTIONS = 8,		/* a reader is done after so many changes */
	SET_BYTES = 8,		/* of the kernel's signal set */
	PAUSE_NS = 20 * 1000,
};

/* One signal, with the actions that the program has set. */
struct watched_signal {
	const struct seam_signal_front *_Atomic front;	/* NULL: never */
	_Atomic bool is_on;
	_Atomic uint32_t n_actions;
	struct sigaction actions[N_ACTIONS];
};

static struct watched_signal all_watched[NSIG];
static _Atomic pid_t process;
/* of the copies, a process; another process was copied by a fork */
static _Atomic pid_t holder;

static struct watched_signal *watched_of(int signal)
{
	/* no signal is number 0 */
	return &all_watched[signal > 0 && signal < NSIG ? signal : 0];
}

/* A waiter sleeps: at a real-time priority it could keep the holder waiting. */
static void lock(void)
{
	const struct timespec pause = { 0, PAUSE_NS };
	pid_t own = getpid(), seen = 0;

	while (!atomic_compare_exchange_weak(&holder, &seen, own)) {
		if (seen == own) {
			/* nanosleep() is where a thread may be cancelled */
			syscall(SYS_nanosleep, &pause, NULL);
			seen = 0;
		}
	}
}

static void unlock(void)
{
	atomic_store(&holder, 0);
}

struct sigaction seam_signal_front_program(int signal)
{
	const struct watched_signal *w = watched_of(signal);

	return w->actions[atomic_load(&w->n_actions) % N_ACTIONS];
}

/* Source: signal(7): the default action is to do nothing, or to go on */
static bool is_harmless(int signal)
{
	return signal == SIGCHLD || signal == SIGURG || signal == SIGWINCH ||
	       signal == SIGCONT;
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

/*
 * The kernel forces such a signal: where it is blocked or ignored, it ends the
 * program.  Of a fault, a breakpoint, a system call that a filter traps; not of
 * a perf event.
 */
static bool is_forced(int signal, const siginfo_t *info)
{
	enum { CODE_PERF = 6 };

	return comes_again(signal, info) ||
	       (signal == SIGSYS && info->si_code > 0) ||
	       (signal == SIGTRAP && info->si_code > 0 &&
		info->si_code != CODE_PERF);
}

/* ---- the handler ---- */

/* By the default action, as soon as the handler returns. */
static void end_program(int signal, const siginfo_t *info, ucontext_t *context)
{
	const struct sigaction action = { .sa_handler = SIG_DFL };

	seam_signal_real(signal, &action, NULL);
	sigdelset(&context->uc_sigmask, signal);
	if (!comes_again(signal, info) &&
	    syscall(SYS_rt_tgsigqueueinfo, getpid(), gettid(), signal, info))
		syscall(SYS_tgkill, getpid(), gettid(), signal);
}

static void set_mask(const struct sigaction *action, int signal,
		     const ucontext_t *context)
{
	sigset_t mask = context->uc_sigmask;

	for (int i = 1; i < NSIG; i++)
		if (sigismember(&action->sa_mask, i) == 1)
			sigaddset(&mask, i);
	if (!(action->sa_flags & SA_NODEFER))
		sigaddset(&mask, signal);
	/* the return from the handler restores the mask of before */
	syscall(SYS_rt_sigprocmask, SIG_SETMASK, &mask, NULL, SET_BYTES);
}

/*
 * A handler that replaced ours and calls it is the program's for the next
 * begin, and would be called by its own call.  Such a call has the same
 * @context, deeper in the stack; with an equal @frame it is another signal,
 * after the program's handler left by siglongjmp(3).
 */
static void call_program(const struct sigaction *action, int signal,
			 siginfo_t *info, void *context, const void *frame)
{
	static __thread struct { const void *context, *frame; } called
		__attribute__((tls_model("initial-exec")));

	if (called.context == context && called.frame != frame)
		return;
	called.context = context;
	called.frame = frame;
	set_mask(action, signal, context);
	if (action->sa_flags & SA_SIGINFO)
		action->sa_sigaction(signal, info, context);
	else
		action->sa_handler(signal);
	called.context = NULL;
}

/* As the kernel would. */
static void pass_on(const struct seam_signal_front *front, int signal,
		    siginfo_t *info, void *context, const void *frame)
{
	struct sigaction action = seam_signal_front_program(signal);

	if (front->defer && !is_forced(signal, info) &&
	    front->defer(signal, info, context))
		return;
	if (!seam_signal_has_handler(&action)) {
		if (is_forced(signal, info) ||
		    (action.sa_handler == SIG_DFL && !is_harmless(signal)))
			end_program(signal, info, context);
		return;
	}
	if (action.sa_flags & (int)SA_RESETHAND)
		seam_signal_front_set(signal, &(struct sigaction) {
			.sa_handler = SIG_DFL, .sa_mask = action.sa_mask,
			.sa_flags = action.sa_flags });
	call_program(&action, signal, info, context, frame);
}

/* For the rest of our handler; with SA_NODEFER the kernel did not. */
static void block(int signal)
{
	const uint64_t set = UINT64_C(1) << (signal - 1);

	syscall(SYS_rt_sigprocmask, SIG_BLOCK, &set, NULL, SET_BYTES);
}

static void on_signal(int signal, siginfo_t *info, void *context)
{
	/* acquire: pairs with the release in seam_signal_front_begin() */
	const struct seam_signal_front *front =
		atomic_load_explicit(&watched_of(signal)->front,
				     memory_order_acquire);
	int saved_errno = errno;
	bool is_ours = front->take(signal, info, context);

	errno = saved_errno;
	if (is_ours)
		return;
	block(signal);
	pass_on(front, signal, info, context, __builtin_frame_address(0));
}

/* ---- what the kernel has ---- */

static bool is_ours(const struct sigaction *action)
{
	return action->sa_flags & SA_SIGINFO &&
	       action->sa_sigaction == on_signal;
}

/* The kernel's action, where the program's is @action. */
static struct sigaction action_for(const struct seam_signal_front *front,
				   const struct sigaction *action)
{
	static const int faults[] = {
		SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGTRAP, SIGSYS,
	};
	bool has_handler = seam_signal_has_handler(action);
	struct sigaction ours = {
		.sa_sigaction = on_signal,
		.sa_flags = SA_SIGINFO | front->flags,
	};

	/* without SA_RESETHAND, or the kernel would not call us again */
	ours.sa_flags |= has_handler ?
		action->sa_flags & (SA_ONSTACK | SA_RESTART | SA_NOCLDSTOP |
				    SA_NOCLDWAIT) :
		front->flags_without;
	sigfillset(&ours.sa_mask);
	for (size_t i = 0; i < SEAM_ARRAY_SIZE(faults); i++)
		sigdelset(&ours.sa_mask, faults[i]);
	return ours;
}

static int set_locked(struct watched_signal *w, int signal,
		      const struct sigaction *action)
{
	uint32_t next = atomic_load(&w->n_actions) + 1;
	struct sigaction ours;

	w->actions[next % N_ACTIONS] = *action;
	ours = action_for(atomic_load(&w->front), action);
	if (seam_signal_real(signal, &ours, NULL))
		return -1;
	atomic_store(&w->n_actions, next);
	return 0;
}

int seam_signal_front_set(int signal, const struct sigaction *action)
{
	const struct seam_signal_front *front =
		atomic_load(&watched_of(signal)->front);
	const struct sigaction copy = *action;
	sigset_t all, old;
	int r;

	if (front->before_handler && seam_signal_has_handler(&copy))
		front->before_handler(signal);

	/* a handler of this thread may call sigaction() as well */
	sigfillset(&all);
	syscall(SYS_rt_sigprocmask, SIG_SETMASK, &all, &old, SET_BYTES);
	lock();
	r = set_locked(watched_of(signal), signal, &copy);
	unlock();
	syscall(SYS_rt_sigprocmask, SIG_SETMASK, &old, NULL, SET_BYTES);
	return r;
}

int seam_signal_front_begin(int signal, const struct seam_signal_front *front)
{
	struct watched_signal *w = watched_of(signal);
	struct sigaction before;

	if (seam_signal_real(signal, NULL, &before))
		return -errno;
	atomic_store(&process, getpid());
	/* release: pairs with the acquire in on_signal() */
	atomic_store_explicit(&w->front, front, memory_order_release);
	atomic_store(&w->is_on, true);
	if (is_ours(&before) || seam_signal_front_set(signal, &before) == 0)
		return 0;
	atomic_store(&w->is_on, false);
	return -errno;
}

bool seam_signal_front_is_there(int signal)
{
	struct sigaction now;

	return seam_signal_real(signal, NULL, &now) == 0 && is_ours(&now);
}

void seam_signal_front_end(int signal)
{
	const struct sigaction program = seam_signal_front_program(signal);

	atomic_store(&watched_of(signal)->is_on, false);
	if (seam_signal_front_is_there(signal))
		seam_signal_real(signal, &program, NULL);
}

bool seam_signal_front_is_on(int signal)
{
	return atomic_load(&watched_of(signal)->is_on);
}

bool seam_signal_front_is_own_process(void)
{
	return getpid() == atomic_load(&process);
}

void seam_signal_front_begin_child(void)
{
	atomic_store(&process, getpid());
}
