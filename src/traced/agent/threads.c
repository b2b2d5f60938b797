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
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "traced/agent/agent.h"
#include "traced/interpose/interpose.h"
#include "unwind/in_process/self_walk.h"

static pthread_key_t key;	/* its destructor ends a thread */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct seam_agent_self *first;	/* under the lock */

/*
 * Signals are blocked while the list changes: a handler of the program may
 * fork(), or install a handler of our signal, and both need the list.
 */
static uint64_t lock_all(void)
{
	const uint64_t signals = SEAM_AGENT_BLOCKED;
	uint64_t old;

	syscall(SYS_rt_sigprocmask, SIG_BLOCK, &signals, &old, sizeof(old));
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

/* No thread attaches this one afterwards, and its signal stays blocked. */
static void end_thread(void *argument)
{
	struct seam_agent_self *self = argument;
	bool is_on = seam_agent_is_sampling();
	uint64_t mask = lock_all();
	sigset_t ours;

	if (self->next)
		self->next->previous = self->previous;
	if (self->previous)
		self->previous->next = self->next;
	else
		first = self->next;
	unlock_all(mask);
	seam_agent_detach();
	if (is_on)
		seam_agent_count_refused(self);
	if (atomic_load(&seam_agent.is_on)) {
		sigemptyset(&ours);
		sigaddset(&ours, seam_agent.signal);
		SEAM_REAL(pthread_sigmask)(SIG_BLOCK, &ours, NULL);
	}
	/* after the agent's end it stays: a filter may be there */
	if (is_on && self->thread)
		munmap(self->thread, sizeof(*self->thread));
	seam_agent_self = NULL;
	free(self);
}

int seam_agent_threads_init(void)
{
	return -pthread_key_create(&key, end_thread);
}

/* Under the lock: another thread may be attaching all of them. */
static void sample_self(struct seam_agent_self *self, uint64_t shown)
{
	uint64_t mask;

	seam_agent_mask_begin(self, shown);
	seam_self_thread_begin();
	mask = lock_all();
	seam_agent_attach(self);
	unlock_all(mask);
}

void seam_agent_thread_begin(struct seam_agent_self *self, uint64_t shown)
{
	uint64_t mask = lock_all();

	self->tid = (uint32_t)syscall(SYS_gettid);
	self->next = first;
	if (first)
		first->previous = self;
	first = self;
	unlock_all(mask);
	seam_agent_self = self;
	/* its destructor is called */
	pthread_setspecific(key, self);
	/* in the list before: the one that sets it attaches all of them */
	if (seam_agent_is_sampling())
		sample_self(self, shown);
}

/* Whether thread @tid of this process blocks the signal. */
static bool blocks_signal(uint32_t tid)
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
	return blocked & SEAM_AGENT_BIT(seam_agent.signal);
}

void seam_agent_attach_all(void)
{
	uint64_t mask = lock_all();

	for (struct seam_agent_self *s = first; s; s = s->next)
		if (s != seam_agent_self) {
			s->is_paused = blocks_signal(s->tid);
			seam_agent_attach(s);
		}
	unlock_all(mask);
	if (seam_agent_self)
		sample_self(seam_agent_self, 0);
}

void seam_agent_abandon_all(void)
{
	uint64_t mask = lock_all();

	for (struct seam_agent_self *s = first; s; s = s->next)
		seam_tick_abandon(&s->tick);
	unlock_all(mask);
}

void seam_agent_threads_begin_child(void)
{
	struct seam_agent_self *self = seam_agent_self;

	pthread_mutex_init(&lock, NULL);
	first = self;
	seam_agent_attach_begin_child();
	if (!self)
		return;
	/* the parent's event is not there */
	self->tick = (struct seam_tick) { .source = SEAM_TICK_OFF };
	self->next = self->previous = NULL;
	if (!atomic_load(&seam_agent.is_off))
		self->tid = (uint32_t)syscall(SYS_gettid);
}

/* ---- what the program calls ---- */

struct start {
	void *(*function)(void *);
	void *argument;
	uint64_t shown;
	struct seam_agent_self *self;
};

static void *start_thread(void *argument)
{
	struct start start = *(struct start *)argument;

	free(argument);
	seam_agent_thread_begin(start.self, start.shown);
	return start.function(start.argument);
}

/* NULL: the thread is not sampled. */
static struct start *make_start(void *(*function)(void *), void *argument)
{
	struct start *start = NULL;

	if (seam_agent.address[0] && !atomic_load(&seam_agent.is_off))
		start = malloc(sizeof(*start));
	if (!start)
		return NULL;
	*start = (struct start) {
		function, argument, seam_agent_mask_shown(),
		calloc(1, sizeof(*start->self)),
	};
	if (start->self)
		return start;
	free(start);
	return NULL;
}

SEAM_INTERPOSED
int pthread_create(pthread_t *thread, const pthread_attr_t *attr,
		   void *(*function)(void *), void *argument)
{
	struct start *start;
	int r;

	seam_agent_refresh(NULL);
	start = make_start(function, argument);
	if (!start)
		return SEAM_REAL(pthread_create)(thread, attr, function,
						 argument);
	r = SEAM_REAL(pthread_create)(thread, attr, start_thread, start);
	if (r) {
		free(start->self);
		free(start);
	}
	return r;
}
