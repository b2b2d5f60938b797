/* SPDX-License-Identifier: MIT */
/*
 * attach.c - begin and end to sample a thread
 *
 * A thread has one mapping, of its tick, and a second one from its first tick
 * on: most threads of a program with thousands use no CPU time.
 */
#include "traced/agent/agent.h"

#include <errno.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/clock.h"
#include "traced/agent/handler.h"

static _Atomic uint32_t n_ticks;	/* threads */

int seam_agent_attach(struct seam_agent_self *self)
{
	int r = -ENOSPC;

	/* relaxed: a thread that begins late is not sampled long */
	if (atomic_load_explicit(&seam_agent.is_off, memory_order_relaxed))
		return -EPIPE;
	if (self->tick.source != SEAM_TICK_OFF || self->is_paused)
		return 0;
	if (atomic_fetch_add(&n_ticks, 1) < SEAM_AGENT_MAX_TICKS)
		r = seam_tick_start(&self->tick, (int32_t)self->tid,
				    seam_agent.signal, seam_agent.period_ns);
	if (r < 0)
		atomic_fetch_sub(&n_ticks, 1);
	self->is_refused = r < 0;
	return r;
}

struct seam_agent_thread *seam_agent_thread(struct seam_agent_self *self)
{
	struct seam_agent_thread *t = self->thread;

	if (!t) {
		t = mmap(NULL, sizeof(*t), PROT_READ | PROT_WRITE,
			 MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		if (t == MAP_FAILED)
			return NULL;
		if (madvise(t, sizeof(*t), MADV_WIPEONFORK)) {
			munmap(t, sizeof(*t));
			return NULL;
		}
		self->thread = t;
	}
	if (!t->tick) {
		t->tid = self->tid;
		t->spent_ns = t->n_carried = t->n_unwritten = 0;
		memset(t->n_skipped, 0, sizeof(t->n_skipped));
		t->tick = &self->tick;
	}
	return t;
}

void seam_agent_detach(void)
{
	struct seam_agent_self *self = seam_agent_self;
	struct seam_agent_thread *t = self ? self->thread : NULL;
	struct seam_link_client *c = &seam_agent.client;

	/* a seccomp filter may be there; the recorder sees the thread's end */
	if (!self || self->tick.source == SEAM_TICK_OFF ||
	    atomic_load_explicit(&seam_agent.is_off, memory_order_relaxed))
		return;
	if (t && t->tick)
		seam_agent_skip(t, SEAM_AGENT_ENDED,
				seam_tick_rest(&self->tick));
	seam_tick_stop(&self->tick);
	atomic_fetch_sub(&n_ticks, 1);
	if (!t || !t->tick)
		return;
	for (uint32_t i = 0; i < SEAM_AGENT_N_SERVICES; i++) {
		if (t->claims[i].word)
			seam_ring_memory_close(&c->memories[i], &t->claims[i]);
		t->claims[i].word = 0;
	}
	t->has_ring = false;
	t->tick = NULL;
}

void seam_agent_count_refused(const struct seam_agent_self *self)
{
	struct seam_ring_memory_head *head =
		seam_agent.client.memories[SEAM_AGENT_GUEST].head;

	/* relaxed: a count */
	if (self->is_refused && head)
		atomic_fetch_add_explicit(&head->n_lost,
					  seam_clock_thread_ns() /
					  seam_agent.period_ns,
					  memory_order_relaxed);
}

void seam_agent_attach_begin_child(void)
{
	atomic_store(&n_ticks, 0);
}
