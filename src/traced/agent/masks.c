/* SPDX-License-Identifier: MIT */
/*
 * masks.c - the tick's signal in the masks that the program sets and reads
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
 * another signal whose sa_mask has this one, where a tick may be pending.
 */
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "traced/agent/agent.h"
#include "traced/interpose/interpose.h"
#include "traced/interpose/signal_front.h"

enum { SET_BYTES = 8 };		/* of the kernel's signal set */

typedef int mask_function(int, const sigset_t *, sigset_t *);

/*
 * The mask that the calling thread is shown where the kernel has all of it but
 * the tick's signal; without that signal: none.
 */
static __thread uint64_t shown __attribute__((tls_model("initial-exec")));

static uint64_t bit_of(int signal)
{
	return UINT64_C(1) << (signal - 1);
}

static uint64_t own_bit(void)
{
	return bit_of(seam_agent.signal);
}

/* What libc and the kernel do not block. */
static uint64_t word_of(const sigset_t *set)
{
	uint64_t word;

	memcpy(&word, set, sizeof(word));
	return word & ~(bit_of(SIGKILL) | bit_of(SIGSTOP) | bit_of(32) |
			bit_of(33));
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

uint64_t seam_agent_mask_shown(void)
{
	return shown;
}

bool seam_agent_mask_block(void)
{
	if (!shown || !is_shown(change_kernel(SIG_BLOCK, 0)))
		return false;
	change_kernel(SIG_BLOCK, own_bit());
	return true;
}

void seam_agent_mask_unblock(void)
{
	change_kernel(SIG_UNBLOCK, own_bit());
}

void seam_agent_mask_begin(struct seam_agent_self *self, uint64_t of_creator)
{
	uint64_t kernel = change_kernel(SIG_BLOCK, 0);

	self->is_paused = kernel == own_bit();
	shown = of_creator;
	if (self->is_paused || !(kernel & own_bit()))
		return;
	shown = kernel;
	change_kernel(SIG_UNBLOCK, own_bit());
}

bool seam_agent_mask_of(uint32_t tid)
{
	char path[64], line[256];
	uint64_t blocked = 0;
	FILE *status;

	snprintf(path, sizeof(path), "/proc/self/task/%u/status", tid);
	status = fopen(path, "re");
	while (status && fgets(line, sizeof(line), status))
		if (!strncmp(line, "SigBlk:", 7))
			blocked = strtoull(line + 7, NULL, 16);
	if (status)
		fclose(status);
	return blocked & own_bit();
}

void seam_agent_drop_tick(void)
{
	const uint64_t set = own_bit();
	const struct timespec now = { 0, 0 };
	siginfo_t info;

	if (syscall(SYS_rt_sigtimedwait, &set, &info, &now, SET_BYTES) > 0 &&
	    !seam_tick_is_ours(&seam_agent_self->tick, &info))
		syscall(SYS_rt_tgsigqueueinfo, getpid(), gettid(),
			seam_agent.signal, &info);
}

bool seam_agent_mask_defer(int signal, siginfo_t *info, ucontext_t *context)
{
	if (!is_shown(word_of(&context->uc_sigmask)))
		return false;
	if (seam_agent_self) {
		seam_agent_detach();
		seam_agent_self->is_paused = true;
		/* one of this handler's time: a second one has no place */
		seam_agent_drop_tick();
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

/* ---- what the program calls ---- */

/* The tick goes on where the signal is not blocked any more. */
static void go_on(struct seam_agent_self *self)
{
	if (change_kernel(SIG_BLOCK, 0) & own_bit())
		return;
	self->is_paused = false;
	seam_agent_attach(self);
}

/* The signal alone is blocked: the kernel's mask has to differ. */
static void pause_tick(struct seam_agent_self *self)
{
	seam_agent_detach();
	self->is_paused = true;
	change_kernel(SIG_BLOCK, own_bit());
}

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
	if (is_blocked && !was_shown && kernel == before)
		pause_tick(seam_agent_self);
	else if (is_blocked)
		shown = kernel | own_bit();
	else if (is_shown(kernel))
		shown = 0;
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
			sigdelset(&changed, seam_agent.signal);
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
			sigaddset(old, seam_agent.signal);
	}
	return 0;
}

static int change_mask(mask_function *real, int how, const sigset_t *set,
		       sigset_t *old)
{
	struct seam_agent_self *self = seam_agent_self;
	int r;

	if (!self || !atomic_load(&seam_agent.is_on))
		return real(how, set, old);
	/* a child of vfork() has a mask of its own, and this memory */
	if (seam_agent_is_sampling() && !self->is_paused &&
	    seam_agent_is_own_process())
		return change_sampled(real, how, set, old);
	seam_agent_mask_block();
	r = real(how, set, old);
	if (r == 0 && set && seam_agent_is_sampling() &&
	    seam_agent_is_own_process())
		go_on(self);
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
