/* SPDX-License-Identifier: MIT */
/*
 * execs.c - a program that executes another one
 *
 * The new program begins with the calling thread's mask, its pending signals,
 * and what is ignored.  Those have to be the program's, and no tick may be
 * pending: SIGTRAP would end the new program.  A tick that is due in the kernel
 * during execve(2) comes after it, tried on Linux 6.18, so the tick is stopped
 * before; where the call fails, it goes on.
 *
 * Not covered: execve(2) without libc; syscall(3) comes here (seccomp.c).
 */
#include <errno.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdio.h>
#include <unistd.h>

#include "traced/agent/agent.h"
#include "traced/interpose/interpose.h"
#include "traced/interpose/signal_front.h"

/* What was changed for a call. */
struct shown {
	bool is_on, is_blocked, is_ignored, is_stopped;
};

/* What the kernel has becomes what the program is shown. */
static struct shown show(bool will_exec)
{
	struct sigaction program = seam_signal_front_program(seam_agent.signal);
	struct shown s = { .is_on = atomic_load(&seam_agent.is_on) };
	int saved_errno = errno;

	if (!s.is_on || !seam_agent_self)
		return (struct shown) { .is_on = false };
	if (will_exec && seam_agent_is_sampling() &&
	    seam_agent_is_own_process()) {
		s.is_stopped = seam_agent_self->tick.source != SEAM_TICK_OFF;
		seam_agent_detach();
	}
	s.is_blocked = seam_agent_mask_block();
	if (s.is_stopped)
		seam_agent_drop_tick();
	s.is_ignored = program.sa_handler == SIG_IGN &&
		       seam_signal_real(seam_agent.signal, &program, NULL) == 0;
	errno = saved_errno;
	return s;
}

static void hide(const struct shown *s)
{
	struct sigaction program = seam_signal_front_program(seam_agent.signal);
	int saved_errno = errno;

	if (!s->is_on)
		return;
	/* not in a child of vfork(), which ends or tries again */
	if (s->is_ignored && seam_agent_is_own_process())
		seam_signal_front_set(seam_agent.signal, &program);
	if (s->is_stopped)
		seam_agent_attach(seam_agent_self);
	if (s->is_blocked)
		seam_agent_mask_unblock();
	errno = saved_errno;
}

#define SHOWN(will_exec, call)						\
	({								\
		struct shown s_ = show(will_exec);			\
		__typeof__(call) r_ = call;				\
		hide(&s_);						\
		r_;							\
	})

/* ---- what the program calls ---- */

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
