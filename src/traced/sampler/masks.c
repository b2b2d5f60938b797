/* SPDX-License-Identifier: MIT */
/*
 * masks.c - the tick's signal in the masks that the program sets and reads,
 * and in programs that it executes
 *
 * A thread that blocks all signals is sampled too: the tick's signal stays
 * unblocked, and is shown as blocked.  What is shown is a property of the mask
 * that the kernel has: siglongjmp(3), swapcontext(3) and the return from a
 * handler restore that mask without a call of ours, and what is shown with it.
 *
 *	program blocks		kernel's mask	shown as blocked
 *	all			all but it	while the kernel has this mask
 *	the signal alone	the signal	the kernel's; no tick meanwhile
 *
 * A signal of the program's own, while it is shown as blocked, becomes blocked
 * and pending, as it would be; the thread has no tick until it unblocks it.
 *
 * Not covered: system calls without libc; sigblock(3), sighold(3); a handler of
 * another signal whose sa_mask has this one, where a tick may be pending; where
 * that handler faults, the handler of the fault finds our registers (handler.c).
 */
#include <errno.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "traced/sampler/sampler.h"
#include "traced/interpose/interpose.h"
#include "traced/interpose/signal_front.h"

enum { SET_BYTES = 8 };		/* of the kernel's signal set */

typedef int mask_function(int, const sigset_t *, sigset_t *);

/*
 * The mask that the calling thread is shown where the kernel has all of it but
 * the tick's signal; without that signal: none.
 */
static __thread uint64_t shown __attribute__((tls_model("initial-exec")));

static uint64_t own_bit(void)
{
	return SEAM_SAMPLER_BIT(seam_sampler.signal);
}

/* What libc and the kernel do not block. */
static uint64_t word_of(const sigset_t *set)
{
	uint64_t word;

	memcpy(&word, set, sizeof(word));
	return word & ~(SEAM_SAMPLER_BIT(SIGKILL) | SEAM_SAMPLER_BIT(SIGSTOP) |
			SEAM_SAMPLER_BIT(32) | SEAM_SAMPLER_BIT(33));
}

static uint64_t change_kernel(int how, uint64_t set)
{
	uint64_t before;

	syscall(SYS_rt_sigprocmask, how, &set, &before, SET_BYTES);
	return before;
}

/* Whether a thread with the mask @kernel is shown the signal as blocked. */
static bool is_shown(uint64_t kernel)
{
	return shown & own_bit() && (shown & ~own_bit()) == kernel;
}

uint64_t seam_sampler_mask_shown(void)
{
	return shown;
}

/* Block the signal where the thread is shown it as blocked; whether it was. */
static bool block_if_shown(void)
{
	if (!shown || !is_shown(change_kernel(SIG_BLOCK, 0)))
		return false;
	change_kernel(SIG_BLOCK, own_bit());
	return true;
}

void seam_sampler_mask_begin(struct seam_sampler_self *self,
			     uint64_t of_creator)
{
	uint64_t kernel = change_kernel(SIG_BLOCK, 0);

	self->is_paused = kernel == own_bit();
	shown = of_creator;
	if (self->is_paused || !(kernel & own_bit()))
		return;
	shown = kernel;
	change_kernel(SIG_UNBLOCK, own_bit());
}

/*
 * After the tick of the calling thread was stopped, with its signal blocked:
 * what is pending of it is no tick.
 */
static void drop_tick(void)
{
	const uint64_t set = own_bit();
	const struct timespec now = { 0, 0 };
	siginfo_t info;

	if (syscall(SYS_rt_sigtimedwait, &set, &info, &now, SET_BYTES) > 0 &&
	    !seam_tick_is_ours(&seam_sampler_self->tick, &info))
		syscall(SYS_rt_tgsigqueueinfo, getpid(), gettid(),
			seam_sampler.signal, &info);
}

bool seam_sampler_mask_defer(int signal, siginfo_t *info, ucontext_t *context)
{
	if (!is_shown(word_of(&context->uc_sigmask)))
		return false;
	if (seam_sampler_self) {
		seam_sampler_detach();
		seam_sampler_self->is_paused = true;
		/* one of this handler's time: a second one has no place */
		drop_tick();
	}
	/* blocked when the handler returns; it is blocked in the handler */
	sigaddset(&context->uc_sigmask, signal);
	if (info->si_code == SI_TKILL)
		syscall(SYS_rt_tgsigqueueinfo, getpid(), gettid(), signal,
			info);
	else
		syscall(SYS_rt_sigqueueinfo, getpid(), signal, info);
	return true;
}

/* ---- masks that the program sets ---- */

/*
 * The kernel's mask was @before, and @set is what the program has called for;
 * it was shown the signal as blocked, or not.
 */
static void note(int how, uint64_t set, uint64_t before, bool was_shown)
{
	bool has = set & own_bit(), is_blocked;
	uint64_t kernel = how == SIG_SETMASK ? set :
			  how == SIG_BLOCK ? before | set : before & ~set;

	kernel &= ~own_bit();
	is_blocked = how == SIG_SETMASK ? has :
		     how == SIG_BLOCK ? has || was_shown : !has && was_shown;
	if (is_blocked && !was_shown && kernel == before) {
		/* the signal alone is blocked: the kernel's mask must differ */
		seam_sampler_detach();
		seam_sampler_self->is_paused = true;
		change_kernel(SIG_BLOCK, own_bit());
	} else if (is_blocked) {
		shown = kernel | own_bit();
	} else if (is_shown(kernel)) {
		shown = 0;
	}
}

/* All but the signal, which the kernel has unblocked. */
static int change_sampled(mask_function *real, int how, const sigset_t *set,
			  sigset_t *old)
{
	uint64_t wanted = set ? word_of(set) : 0;
	sigset_t before, changed;
	bool was_shown;
	int r;

	if (set) {
		changed = *set;
		if (how != SIG_UNBLOCK)
			sigdelset(&changed, seam_sampler.signal);
	}
	r = real(how, set ? &changed : NULL, &before);
	if (r)
		return r;
	was_shown = is_shown(word_of(&before));
	if (set)
		note(how, wanted, word_of(&before), was_shown);
	if (old) {
		*old = before;
		if (was_shown)
			sigaddset(old, seam_sampler.signal);
	}
	return 0;
}

static int change_mask(mask_function *real, int how, const sigset_t *set,
		       sigset_t *old)
{
	struct seam_sampler_self *self = seam_sampler_self;
	int r;

	if (!self || !atomic_load(&seam_sampler.is_on))
		return real(how, set, old);
	/* a child of vfork() has a mask of its own, and this memory */
	if (seam_sampler_is_sampling() && !self->is_paused &&
	    seam_interpose_is_own_process())
		return change_sampled(real, how, set, old);
	block_if_shown();
	r = real(how, set, old);
	if (r == 0 && set && seam_sampler_is_sampling() &&
	    seam_interpose_is_own_process() &&
	    !(change_kernel(SIG_BLOCK, 0) & own_bit())) {
		/* the signal is not blocked any more: the tick goes on */
		self->is_paused = false;
		seam_sampler_attach(self);
	}
	return r;
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

/*
 * ---- programs that the program executes
 *
 * The new program begins with the calling thread's mask, its pending signals,
 * and what is ignored.  Those have to be the program's, and no tick may be
 * pending: SIGTRAP would end the new program.  A tick that is due in the kernel
 * during execve(2) comes after it, tried on Linux 6.18, so the tick is stopped
 * before; where the call fails, it goes on.
 *
 * Not covered: execve(2) without libc; syscall(3) comes here (interpose.c).
 */

/* What was changed for a call. */
struct exec_state {
	bool is_on, is_blocked, is_ignored, is_stopped;
};

/* What the kernel has becomes what the program is shown. */
static struct exec_state show(bool will_exec)
{
	struct sigaction program =
		seam_signal_front_program(seam_sampler.signal);
	struct exec_state s = { .is_on = atomic_load(&seam_sampler.is_on) };
	int saved_errno = errno;

	if (!s.is_on || !seam_sampler_self)
		return (struct exec_state) { .is_on = false };
	if (will_exec && seam_sampler_is_sampling() &&
	    seam_interpose_is_own_process()) {
		s.is_stopped = seam_sampler_self->tick.source != SEAM_TICK_OFF;
		seam_sampler_detach();
	}
	s.is_blocked = block_if_shown();
	if (s.is_stopped)
		drop_tick();
	s.is_ignored = program.sa_handler == SIG_IGN &&
		       !seam_signal_real(seam_sampler.signal, &program, NULL);
	errno = saved_errno;
	return s;
}

static void hide(const struct exec_state *s)
{
	struct sigaction program =
		seam_signal_front_program(seam_sampler.signal);
	int saved_errno = errno;

	if (!s->is_on)
		return;
	/* not in a child of vfork(), which ends or tries again */
	if (s->is_ignored && seam_interpose_is_own_process())
		seam_signal_front_set(seam_sampler.signal, &program);
	if (s->is_stopped)
		seam_sampler_attach(seam_sampler_self);
	if (s->is_blocked)
		change_kernel(SIG_UNBLOCK, own_bit());
	errno = saved_errno;
}

#define SHOWN(will_exec, call)						\
	({								\
		struct exec_state s_ = show(will_exec);			\
		__typeof__(call) r_ = call;				\
		hide(&s_);						\
		r_;							\
	})

/* @arguments are those of @parameters. */
#define INTERPOSE(type, name, will_exec, parameters, arguments)		\
	SEAM_INTERPOSED							\
	type name parameters						\
	{								\
		return SHOWN(will_exec, SEAM_REAL(name) arguments);	\
	}

INTERPOSE(int, execve, true,
	  (const char *path, char *const *argv, char *const *envp),
	  (path, argv, envp))
INTERPOSE(int, execv, true, (const char *path, char *const *argv),
	  (path, argv))
INTERPOSE(int, execvp, true, (const char *file, char *const *argv),
	  (file, argv))
INTERPOSE(int, execvpe, true,
	  (const char *file, char *const *argv, char *const *envp),
	  (file, argv, envp))
INTERPOSE(int, fexecve, true, (int fd, char *const *argv, char *const *envp),
	  (fd, argv, envp))
INTERPOSE(int, execveat, true,
	  (int fd, const char *path, char *const *argv, char *const *envp,
	   int flags), (fd, path, argv, envp, flags))
INTERPOSE(int, posix_spawn, false,
	  (pid_t *pid, const char *path,
	   const posix_spawn_file_actions_t *actions,
	   const posix_spawnattr_t *attr, char *const *argv, char *const *envp),
	  (pid, path, actions, attr, argv, envp))
INTERPOSE(int, posix_spawnp, false,
	  (pid_t *pid, const char *file,
	   const posix_spawn_file_actions_t *actions,
	   const posix_spawnattr_t *attr, char *const *argv, char *const *envp),
	  (pid, file, actions, attr, argv, envp))
INTERPOSE(int, system, false, (const char *command), (command))
INTERPOSE(FILE *, popen, false, (const char *command, const char *mode),
	  (command, mode))

/*
 * The arguments of a call with a list, up to its NULL, as argv[]; the list is
 * read twice, because their number is that of the array.
 */
#define TAKE_ARGUMENTS(list, first)					\
	va_list copy_;							\
	size_t n_ = 1;							\
									\
	va_start(list, first);						\
	va_copy(copy_, list);						\
	while (va_arg(copy_, char *))					\
		n_++;							\
	va_end(copy_);							\
	char *argv[n_ + 1];						\
	argv[0] = (char *)(uintptr_t)first;				\
	for (size_t i_ = 1; i_ <= n_; i_++)				\
		argv[i_] = va_arg(list, char *)

SEAM_INTERPOSED
int execl(const char *path, const char *first, ...)
{
	va_list list;

	TAKE_ARGUMENTS(list, first);
	va_end(list);
	return execv(path, argv);
}

SEAM_INTERPOSED
int execlp(const char *file, const char *first, ...)
{
	va_list list;

	TAKE_ARGUMENTS(list, first);
	va_end(list);
	return execvp(file, argv);
}

SEAM_INTERPOSED
int execle(const char *path, const char *first, ...)
{
	char *const *envp;
	va_list list;

	TAKE_ARGUMENTS(list, first);
	envp = va_arg(list, char *const *);
	va_end(list);
	return execve(path, argv, envp);
}
