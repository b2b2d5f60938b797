/* SPDX-License-Identifier: MIT */
/*
 * threads.c - the program's threads, from start to end
 *
 * Threads of pthread_create() and the one in which the agent was loaded.
 * Others, of clone(2) itself or of thrd_create(3), are not sampled here; the
 * recorder samples them.
 */
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "target/agent/agent.h"
#include "target/interpose/interpose.h"
#include "unwind/in_process/self_walk.h"

static pthread_key_t key;	/* its destructor ends a thread */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct seam_agent_self *first;	/* under the lock */

/*
 * All signals are blocked while the list changes: a handler of the program may
 * fork(), or install a handler of our signal, and both need the list.
 */
static uint64_t lock_all(void)
{
	const uint64_t all = UINT64_MAX;
	uint64_t old;

	syscall(SYS_rt_sigprocmask, SIG_SETMASK, &all, &old, sizeof(old));
	pthread_mutex_lock(&lock);
	return old;
}

static void unlock_all(uint64_t old)
{
	pthread_mutex_unlock(&lock);
	syscall(SYS_rt_sigprocmask, SIG_SETMASK, &old, NULL, sizeof(old));
}

void seam_agent_threads_lock(void)
{
	pthread_mutex_lock(&lock);
}

void seam_agent_threads_unlock(void)
{
	pthread_mutex_unlock(&lock);
}

static void add(struct seam_agent_self *self)
{
	uint64_t mask = lock_all();

	self->tid = (uint32_t)syscall(SYS_gettid);
	self->previous = NULL;
	self->next = first;
	if (first)
		first->previous = self;
	first = self;
	self->is_listed = true;
	unlock_all(mask);
}

static void remove_self(struct seam_agent_self *self)
{
	uint64_t mask = lock_all();

	if (self->next)
		self->next->previous = self->previous;
	if (self->previous)
		self->previous->next = self->next;
	else
		first = self->next;
	self->is_listed = false;
	unlock_all(mask);
}

/* A signal that is still on its way would find nothing that it is of. */
static void end_thread(void *unused)
{
	struct seam_agent_self *self = &seam_agent_self;
	sigset_t ours;

	(void)unused;
	sigemptyset(&ours);
	sigaddset(&ours, SEAM_AGENT_SIGNAL);
	SEAM_REAL(pthread_sigmask)(SIG_BLOCK, &ours, NULL);
	seam_agent_detach();
	if (self->is_listed)
		remove_self(self);
	/* after the agent's end it stays mapped: see seam_agent.is_off */
	if (self->thread && !atomic_load(&seam_agent.is_off))
		munmap(self->thread, sizeof(*self->thread));
	self->thread = NULL;
}

int seam_agent_threads_init(void)
{
	return -pthread_key_create(&key, end_thread);
}

void seam_agent_thread_begin(void)
{
	struct seam_agent_self *self = &seam_agent_self;

	if (atomic_load(&seam_agent.is_off))
		return;
	if (!self->is_listed) {
		add(self);
		/* not NULL: so that the destructor is called */
		pthread_setspecific(key, self);
	}
	/* in the list before: the one that sets it requests all of them */
	if (!atomic_load(&seam_agent.is_on))
		return;
	seam_self_thread_begin();
	seam_agent_attach();
}

void seam_agent_attach_all(void)
{
	uint64_t mask = lock_all();

	for (struct seam_agent_self *s = first; s; s = s->next)
		if (s != &seam_agent_self)
			seam_agent_request(s->tid);
	unlock_all(mask);
	if (seam_agent_self.is_listed)
		seam_agent_thread_begin();
}

void seam_agent_abandon_all(void)
{
	uint64_t mask = lock_all();

	for (struct seam_agent_self *s = first; s; s = s->next)
		if (s->thread)
			seam_tick_abandon(&s->thread->tick);
	unlock_all(mask);
}

void seam_agent_threads_begin_child(void)
{
	struct seam_agent_self *self = &seam_agent_self;

	pthread_mutex_init(&lock, NULL);
	first = self->is_listed ? self : NULL;
	self->next = self->previous = NULL;
	if (!atomic_load(&seam_agent.is_off))
		self->tid = (uint32_t)syscall(SYS_gettid);
}

/* ---- what the program calls ---- */

struct start {
	void *(*function)(void *);
	void *argument;
	bool is_blocked;
};

static void *start_thread(void *argument)
{
	struct start start = *(struct start *)argument;

	free(argument);
	seam_agent_show_blocked(start.is_blocked);
	seam_agent_thread_begin();
	return start.function(start.argument);
}

SEAM_INTERPOSED
int pthread_create(pthread_t *thread, const pthread_attr_t *attr,
		   void *(*function)(void *), void *argument)
{
	bool is_blocked = seam_agent_shows_blocked();
	struct start *start = NULL;
	int r;

	seam_agent_refresh(NULL);
	if (seam_agent.address[0] && !atomic_load(&seam_agent.is_off))
		start = malloc(sizeof(*start));
	if (!start)
		return SEAM_REAL(pthread_create)(thread, attr, function,
						 argument);
	*start = (struct start) { function, argument, is_blocked };
	r = SEAM_REAL(pthread_create)(thread, attr, start_thread, start);
	if (r)
		free(start);
	return r;
}
