/* SPDX-License-Identifier: MIT */
/*
 * attach.c - begin and end to sample a thread
 *
 * In a handler too: where a VM is loaded late, threads that run already are
 * requested by a signal.
 */
#include "target/agent/agent.h"

#include <errno.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "target/agent/handler.h"

/* Zeroes, in a forked child as well; the lowest page of the stack is none. */
static struct seam_agent_thread *map_thread(void)
{
	size_t size = sizeof(struct seam_agent_thread);
	struct seam_agent_thread *t =
		mmap(NULL, size, PROT_READ | PROT_WRITE,
		     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (t == MAP_FAILED)
		return NULL;
	if (madvise(t, size, MADV_WIPEONFORK) == 0 &&
	    mprotect(t->guard, sizeof(t->guard), PROT_NONE) == 0)
		return t;
	munmap(t, size);
	return NULL;
}

static int attach(void)
{
	struct seam_agent_thread *t = seam_agent_self.thread;
	int r;

	if (!t)
		t = map_thread();
	if (!t)
		return -ENOMEM;
	if (t->is_on)
		return 0;
	t->tid = (uint32_t)syscall(SYS_gettid);
	t->has_ring = false;
	for (int i = 0; i < SEAM_AGENT_N_SERVICES; i++)
		t->claims[i].word = 0;
	seam_agent_self.thread = t;
	/* a signal in between finds it off, or all of it */
	r = seam_tick_start(&t->tick, SEAM_AGENT_SIGNAL, seam_agent.period_ns);
	atomic_signal_fence(memory_order_seq_cst);
	t->is_on = r == 0;
	return r;
}

int seam_agent_attach(void)
{
	struct seam_agent_self *self = &seam_agent_self;
	int r;

	/* relaxed: another request may be on its way */
	if (atomic_load_explicit(&seam_agent.is_off, memory_order_relaxed))
		return -EPIPE;
	/* a request's handler has interrupted this function */
	if (self->is_attaching)
		return 0;
	self->is_attaching = true;
	atomic_signal_fence(memory_order_seq_cst);
	r = attach();
	atomic_signal_fence(memory_order_seq_cst);
	self->is_attaching = false;
	return r;
}

bool seam_agent_is_request(const siginfo_t *info)
{
	return info->si_code == SI_QUEUE &&
	       info->si_value.sival_ptr == &seam_agent;
}

void seam_agent_request(uint32_t tid)
{
	siginfo_t info = {
		.si_signo = SEAM_AGENT_SIGNAL, .si_code = SI_QUEUE,
	};

	info.si_pid = getpid();
	info.si_uid = getuid();
	info.si_value.sival_ptr = &seam_agent;
	syscall(SYS_rt_tgsigqueueinfo, getpid(), tid, SEAM_AGENT_SIGNAL, &info);
}

void seam_agent_detach(void)
{
	struct seam_agent_thread *t = seam_agent_self.thread;
	struct seam_link_client *c = &seam_agent.client;

	if (!t || !t->is_on)
		return;
	t->is_on = false;
	atomic_signal_fence(memory_order_seq_cst);
	/* a seccomp filter may be there; the recorder sees the thread's end */
	if (atomic_load_explicit(&seam_agent.is_off, memory_order_relaxed))
		return;
	seam_agent_skip(t, SEAM_AGENT_ENDED, seam_tick_rest(&t->tick));
	seam_tick_stop(&t->tick);
	for (uint32_t i = 0; i < SEAM_AGENT_N_SERVICES; i++)
		if (t->claims[i].word)
			seam_ring_memory_close(&c->memories[i], &t->claims[i]);
	t->has_ring = false;
}
