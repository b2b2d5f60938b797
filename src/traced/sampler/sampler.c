/* SPDX-License-Identifier: MIT */
/* sampler.c - begin and end in a process; see sampler.h */
#include "traced/sampler/sampler.h"

#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "traced/guest/guest_adapter.h"
#include "traced/interpose/interpose.h"
#include "traced/interpose/preloaded.h"
#include "traced/interpose/signal_front.h"
#include "unwind/in_process/self_images.h"
#include "unwind/in_process/self_walk.h"

enum {
	CONNECT_MS = 1000,	/* for the recorder to answer */
	DEFAULT_PERIOD_NS = 1000 * 1000,
	PAUSE_NS = 50 * 1000,
	MAX_PAUSES = 20000,	/* one second, of a fork */
};

/* One thread at a time refreshes; others leave it to the next. */
static _Atomic bool is_busy;

/* End for good, in all threads, and report @why to the recorder's user. */
static void end_all(const char *why);

/* ---- messages for the recorder's user ---- */

__attribute__((format(printf, 1, 2)))
static void report(const char *format, ...)
{
	char text[SEAM_LINK_NOTE_BYTES];
	va_list list;

	va_start(list, format);
	seam_preloaded_format(text, format, list);
	va_end(list);
	/* a program without a message goes on as one with it */
	(void)seam_link_client_note(seam_sampler.address, text);
}

/*
 * ---- the program's threads, from start to end ----
 *
 * Threads of pthread_create() and the one in which the sampler was loaded.
 * Others, of clone(2) itself or of thrd_create(3), are not sampled here; the
 * recorder samples them.
 */

static pthread_key_t key;	/* its destructor ends a thread */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct seam_sampler_self *first;	/* under the lock */

enum { SET_BYTES = 8 };		/* of the kernel's signal set */

/* Returns the mask before. */
static uint64_t block_signals(void)
{
	const uint64_t signals = SEAM_SAMPLER_BLOCKED;
	uint64_t old;

	syscall(SYS_rt_sigprocmask, SIG_BLOCK, &signals, &old, SET_BYTES);
	return old;
}

static void restore(uint64_t mask)
{
	syscall(SYS_rt_sigprocmask, SIG_SETMASK, &mask, NULL, SET_BYTES);
}

/*
 * Signals are blocked while the list changes: a handler of the program may
 * fork(), or install a handler of our signal, and both need the list.
 */
static uint64_t lock_all(void)
{
	uint64_t old = block_signals();

	pthread_mutex_lock(&lock);
	return old;
}

static void unlock_all(uint64_t old)
{
	pthread_mutex_unlock(&lock);
	restore(old);
}

/* Count the CPU time of a thread that ends, and had no room for a tick. */
static void count_refused(const struct seam_sampler_self *self)
{
	struct seam_ring_memory_head *head =
		seam_sampler.client.memories[SEAM_SAMPLER_GUEST].head;

	/* relaxed: a count */
	if (self->is_refused && head)
		atomic_fetch_add_explicit(&head->n_lost,
					  seam_clock_thread_ns() /
					  seam_sampler.period_ns,
					  memory_order_relaxed);
}

/* No thread attaches this one afterwards, and its signal stays blocked. */
static void end_thread(void *argument)
{
	struct seam_sampler_self *self = argument;
	bool is_on = seam_sampler_is_sampling();
	uint64_t mask = lock_all();
	sigset_t ours;

	if (self->next)
		self->next->previous = self->previous;
	if (self->previous)
		self->previous->next = self->next;
	else
		first = self->next;
	unlock_all(mask);
	seam_sampler_detach();
	if (is_on)
		count_refused(self);
	if (atomic_load(&seam_sampler.is_on)) {
		sigemptyset(&ours);
		sigaddset(&ours, seam_sampler.signal);
		SEAM_REAL(pthread_sigmask)(SIG_BLOCK, &ours, NULL);
	}
	/* after the sampler's end it stays: a filter may be there */
	if (is_on && self->thread)
		munmap(self->thread, sizeof(*self->thread));
	seam_sampler_self = NULL;
	free(self);
}

/* Under the lock: another thread may be attaching all of them. */
static void sample_self(struct seam_sampler_self *self, uint64_t shown)
{
	uint64_t mask;

	seam_sampler_mask_begin(self, shown);
	seam_self_thread_begin();
	mask = lock_all();
	seam_sampler_attach(self);
	unlock_all(mask);
}

/*
 * Add the calling thread to the list, by @self, which is the sampler's from
 * then on; sample it if others are.  @shown: seam_sampler_mask_shown() of its
 * creator.
 */
static void begin_thread(struct seam_sampler_self *self, uint64_t shown)
{
	uint64_t mask = lock_all();

	self->tid = (uint32_t)syscall(SYS_gettid);
	self->next = first;
	if (first)
		first->previous = self;
	first = self;
	unlock_all(mask);
	seam_sampler_self = self;
	/* its destructor is called */
	pthread_setspecific(key, self);
	/* in the list before: the one that sets it attaches all of them */
	if (seam_sampler_is_sampling())
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
	return blocked & SEAM_SAMPLER_BIT(seam_sampler.signal);
}

/* Begin the ticks of all threads in the list. */
static void attach_all(void)
{
	uint64_t mask = lock_all();

	for (struct seam_sampler_self *s = first; s; s = s->next)
		if (s != seam_sampler_self) {
			s->is_paused = blocks_signal(s->tid);
			seam_sampler_attach(s);
		}
	unlock_all(mask);
	if (seam_sampler_self)
		sample_self(seam_sampler_self, 0);
}

static void abandon_all(void)
{
	uint64_t mask = lock_all();

	for (struct seam_sampler_self *s = first; s; s = s->next)
		seam_tick_abandon(&s->tick);
	unlock_all(mask);
}

/* ---- begin ---- */

/* A number that no other process of this pid has had: see wire/guest. */
static uint32_t make_table(void)
{
	return (uint32_t)(seam_clock_ns() >> 10) | 1;
}

static int connect_to_recorder(void)
{
	struct seam_link_client *c = &seam_sampler.client;
	int r = seam_link_client_connect(c, seam_sampler.address,
					 SEAM_SAMPLER_SERVICES, CONNECT_MS);

	if (r)
		return r;
	for (int i = 0; i < SEAM_SAMPLER_N_SERVICES; i++)
		if (!c->memories[i].head)
			r = -ENOENT;
	seam_sampler.period_ns = c->parameters[SEAM_SAMPLER_GUEST];
	if (seam_sampler.period_ns < SEAM_TICK_MIN_NS)
		seam_sampler.period_ns = DEFAULT_PERIOD_NS;
	if (r)
		seam_link_client_fini(c);
	return r;
}

/* Other threads mostly have what the calling one has. */
static void report_ticks(void)
{
	const struct seam_sampler_self *self = seam_sampler_self;

	if (!self || self->is_paused)
		return;
	if (self->tick.source == SEAM_TICK_OFF)
		report("cannot be sampled: no event and no timer");
	else if (self->tick.source == SEAM_TICK_TIMER)
		report("sampled by a timer, 250 times a second at most: "
		       "perf_event_open: %s", strerror(self->tick.refusal));
}

/*
 * The kernel keeps one pending signal of a number: one of the program's that
 * comes with a tick's would be lost, and its handler not called.  A SIGTRAP
 * that a thread is sent by an event, or by a breakpoint of its own, is handled
 * before the thread goes on.
 */
static void before_handler(int signal)
{
	if (signal == SIGURG)
		end_all("it has a handler of SIGURG of its own");
}

static bool has_handler(int signal)
{
	struct sigaction action;

	return seam_signal_real(signal, NULL, &action) ||
	       seam_signal_has_handler(&action);
}

/*
 * Which signal the tick has, and our handler for it.  0 or -errno; -EBUSY: the
 * program has one of its own.
 */
static int install_handler(void)
{
	static const struct seam_signal_front front = {
		.take = seam_sampler_on_signal,
		.defer = seam_sampler_mask_defer,
		/* for SIGTRAP; not SA_ONSTACK: see handler.c */
		.flags = SA_NODEFER, .flags_without = SA_RESTART,
		.before_handler = before_handler,
	};

	seam_sampler.signal = seam_sampler.is_urgent ? SIGURG :
			      seam_tick_signal();
	if (has_handler(seam_sampler.signal))
		seam_sampler.signal = SIGURG;
	return has_handler(seam_sampler.signal) ? -EBUSY :
	       seam_signal_front_begin(seam_sampler.signal, &front);
}

/*
 * ---- fork: what it copies, and what the child begins with
 *
 * Signals are blocked meanwhile.  The kernel restarts a fork that a signal
 * interrupts, and one of a large process could take longer than a period for
 * ever; ticks that are due have their weight in the next sample.  And a handler
 * of the program may fork as well, or install a handler of our signal: it would
 * wait for locks that its own thread has.
 *
 * The child has no event and no ring of its parent's.  It attaches here, for
 * children that go on without exec; one that executes another program loses
 * some 50 us.  vfork() and posix_spawn() do not come here, and a child of
 * clone(2) itself is not sampled.
 */

/* Of the thread that forks; one at a time has the locks. */
static uint64_t old_mask;
static bool is_held;

static void before_fork(void)
{
	const struct timespec pause = { 0, PAUSE_NS };
	uint64_t before = block_signals();
	bool held = false, was_busy = false;

	/* no refresh runs from here on, unless one still does after a second */
	for (int i = 0; i < MAX_PAUSES && !held; i++, was_busy = false) {
		held = atomic_compare_exchange_strong(&is_busy, &was_busy,
						      true);
		if (!held)
			nanosleep(&pause, NULL);
	}
	pthread_mutex_lock(&lock);
	is_held = held;
	old_mask = before;
}

static void after_fork(void)
{
	uint64_t mask = old_mask;
	bool held = is_held;

	pthread_mutex_unlock(&lock);
	if (held)
		atomic_store(&is_busy, false);
	restore(mask);
}

static void begin_child(void)
{
	uint64_t mask = old_mask;

	/* the other handler of the child has run before */
	if (seam_sampler_is_sampling()) {
		seam_signal_front_begin_child();
		seam_sampler.table = make_table();
		seam_guest_announce_all_again();
		if (seam_sampler_self)
			seam_sampler_attach(seam_sampler_self);
	}
	restore(mask);
}

/*
 * The list has threads that the child does not have, and one of those may have
 * held a lock.
 */
static void begin_child_unsampled(void)
{
	struct seam_sampler_self *self = seam_sampler_self;

	seam_sampler.pid = getpid();
	pthread_mutex_init(&lock, NULL);
	first = self;
	seam_sampler_attach_begin_child();
	if (self) {
		/* the parent's event is not there */
		self->tick = (struct seam_tick) { .source = SEAM_TICK_OFF };
		self->next = self->previous = NULL;
		if (!atomic_load(&seam_sampler.is_off))
			self->tid = (uint32_t)syscall(SYS_gettid);
	}
	atomic_store(&is_busy, false);
}

/* ---- begin in a process ---- */

/* Find VMs, connect, begin to sample all threads. */
static void begin(void)
{
	static bool has_fork_handlers;
	int r = seam_self_init();

	/*
	 * After seam_self_init(), whose own handler has to come later in a
	 * fork: it stops a refresh, and ours waits for one.
	 */
	if (r == 0 && !has_fork_handlers) {
		r = -pthread_atfork(before_fork, after_fork, begin_child);
		has_fork_handlers = r == 0;
	}
	if (r == 0)
		r = seam_guest_init();
	if (r == -ENOENT)
		return;
	if (r == -ENOTSUP)
		report("Lua stacks are not recorded: %s", seam_guest_refusal());
	else if (r < 0)
		report("Lua stacks are not recorded: %s", strerror(-r));
	else if ((r = connect_to_recorder()) < 0)
		report("Lua stacks are not recorded: %s", r == -EXDEV ?
		       "it is in another pid namespace" : strerror(-r));
	if (r == 0) {
		seam_sampler.table = make_table();
		r = install_handler();
		if (r == -EBUSY)
			report("Lua stacks are not recorded: it has a handler "
			       "of SIGURG of its own");
		if (r < 0)
			seam_link_client_fini(&seam_sampler.client);
	}
	if (r < 0) {
		atomic_store(&seam_sampler.is_off, true);
		return;
	}
	/* the adapter has seen functions in its own proof */
	seam_guest_announce_all_again();
	atomic_store(&seam_sampler.is_on, true);
	attach_all();
	report_ticks();
}

/* Whether the library @handle, or any where it is NULL, exports a VM. */
static bool has_vm(void *handle)
{
	for (size_t i = 0; i < SEAM_GUEST_MAX_ADAPTERS; i++)
		if (seam_guest_adapters[i] &&
		    dlsym(handle ? handle : RTLD_DEFAULT,
			  seam_guest_adapters[i]->symbol))
			return true;
	return false;
}

static void refresh(void *handle)
{
	uint32_t n_before;

	if (!atomic_load(&seam_sampler.is_on)) {
		if (!has_vm(handle))
			return;
		if (!seam_preloaded_is_in_valgrind()) {
			begin();
			return;
		}
		report("Lua stacks are not recorded: it runs under valgrind");
		atomic_store(&seam_sampler.is_off, true);
		return;
	}
	/* 1: images have changed */
	if (seam_self_refresh() == 1) {
		n_before = seam_guest_n_symbols();
		seam_guest_refresh();
		/* a VM that is new was proven, and its functions have ids */
		if (seam_guest_n_symbols() != n_before)
			seam_guest_announce_all_again();
	}
	if (!seam_signal_front_is_there(seam_sampler.signal))
		end_all("it has replaced the handler of the tick");
}

/* Also called by interpose.c. */
void seam_interpose_loads(void *handle)
{
	int saved_errno = errno;
	bool was_busy = false;

	if (!seam_sampler.address[0] || atomic_load(&seam_sampler.is_off))
		return;
	if (!atomic_compare_exchange_strong(&is_busy, &was_busy, true))
		return;
	refresh(handle);
	atomic_store(&is_busy, false);
	/* symbols that were not found are no error of the program's calls */
	(void)dlerror();
	errno = saved_errno;
}

/* ---- end ---- */

static void end_all(const char *why)
{
	int saved_errno = errno;

	if (!seam_sampler.address[0] || atomic_load(&seam_sampler.is_off) ||
	    !seam_interpose_is_own_process())
		return;
	if (atomic_load(&seam_sampler.is_on))
		report("Lua stacks end early: %s", why);
	/* while it may make system calls */
	seam_sampler_detach();
	atomic_store(&seam_sampler.is_off, true);
	abandon_all();
	errno = saved_errno;
}

/* ---- what interpose.c calls ---- */

bool seam_interpose_wants_loads(void)
{
	return seam_sampler.address[0];
}

bool seam_interpose_is_own_process(void)
{
	return getpid() == seam_sampler.pid;
}

static _Atomic bool has_ended_for_filter;

void seam_interpose_before_filter(void)
{
	bool was_off = atomic_load(&seam_sampler.is_off);

	end_all("it installs a seccomp filter");
	atomic_store(&has_ended_for_filter,
		     !was_off && atomic_load(&seam_sampler.is_off));
}

/*
 * The ticks of other threads, which may be in their handler, were abandoned
 * and do not begin again: the recorder samples those.
 */
void seam_interpose_filter_refused(void)
{
	int saved_errno = errno;

	if (!atomic_exchange(&has_ended_for_filter, false))
		return;
	atomic_store(&seam_sampler.is_off, false);
	if (atomic_load(&seam_sampler.is_on)) {
		report("Lua stacks go on in thread %d: there is no filter",
		       (int)syscall(SYS_gettid));
		if (seam_sampler_self)
			seam_sampler_attach(seam_sampler_self);
	}
	errno = saved_errno;
}

int seam_sampler_is_sampling(void)
{
	return atomic_load(&seam_sampler.is_on) &&
	       !atomic_load(&seam_sampler.is_off);
}

/* ---- pthread_create() ---- */

struct start {
	void *(*function)(void *);
	void *argument;
	uint64_t shown;
	struct seam_sampler_self *self;
};

static void *start_thread(void *argument)
{
	struct start start = *(struct start *)argument;

	free(argument);
	begin_thread(start.self, start.shown);
	return start.function(start.argument);
}

/* NULL: the thread is not sampled. */
static struct start *make_start(void *(*function)(void *), void *argument)
{
	struct start *start = NULL;

	if (seam_sampler.address[0] && !atomic_load(&seam_sampler.is_off))
		start = malloc(sizeof(*start));
	if (!start)
		return NULL;
	*start = (struct start) {
		function, argument, seam_sampler_mask_shown(),
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

	seam_interpose_loads(NULL);
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

/* ---- the library is loaded, and unloaded at exit ---- */

__attribute__((constructor))
static void load(void)
{
	/* Source: secure_getenv(3): NULL for set-user-ID and the like */
	const char *address = secure_getenv(SEAM_LINK_VARIABLE);
	struct seam_sampler_self *self;

	if (!address || getauxval(AT_SECURE) ||
	    strlen(address) >= sizeof(seam_sampler.address))
		return;
	/* the destructor of the key ends a thread */
	if (pthread_key_create(&key, end_thread) ||
	    pthread_atfork(NULL, NULL, begin_child_unsampled))
		return;
	self = calloc(1, sizeof(*self));
	if (!self)
		return;
	seam_sampler.is_unthrottled = secure_getenv("SEAM_SAMPLER_UNTHROTTLED");
	memcpy(seam_sampler.address, address, strlen(address) + 1);
	seam_sampler.is_urgent = secure_getenv("SEAM_SAMPLER_SIGURG");
	seam_sampler.pid = getpid();
	begin_thread(self, 0);
	seam_interpose_loads(NULL);
}

__attribute__((destructor))
static void unload(void)
{
	seam_sampler_detach();
}
