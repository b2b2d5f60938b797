/* SPDX-License-Identifier: MIT */
/*
 * agent.h - libseam-agent: samples of a program with a virtual machine
 *
 * A library that "seam record" preloads (LD_PRELOAD).  Without a recorder's
 * address in the environment, or with the rights of another user (AT_SECURE),
 * it does nothing.  Until the program loads a VM, it connects to no recorder,
 * and sends no signal.
 *
 *	process	constructor, or dlopen() of a VM's library
 *	  agent.c	find VMs, connect, start each thread
 *	thread	the main one, and those of pthread_create()
 *	  threads.c	its list, start and end
 *	  attach.c	memory, rings, tick: system calls only
 *	sample	a signal
 *	  handler.c	weigh, walk, write a record, or skip it
 *	  announce.c	names of the functions in it
 *
 * What the program does is left as it is:
 *  - Calls that would show or replace the handler, or block its signal, are
 *    interposed (signals.c).  fork() has handlers of pthread_atfork() (fork.c).
 *  - No thread is added: a program may depend on being single-threaded
 *    (unshare(2), setns(2), pthread_exit() of its last thread), and a forked
 *    child would not have it.  Libraries that the program loads are taken into
 *    account where it loads them: dlopen() and dlclose() are interposed
 *    (interpose/loader.c).
 *  - A program that installs a seccomp filter is no longer sampled: the filter
 *    may kill it for a system call of ours (interpose/seccomp.c).
 *
 * The files are two groups.  attach.c, handler.c, announce.c and tick.c run in
 * signal handlers, and tools/check-target checks what they call; all others run
 * in calls that the program makes, and may use libc.
 */
#ifndef SEAM_AGENT_H
#define SEAM_AGENT_H

#include <signal.h>
#include <sys/types.h>

#include "ring/link/link_client.h"
#include "target/agent/tick.h"
#include "target/guest/guest_sample.h"
#include "wire/guest/agent_counts.h"
#include "wire/guest/guest_encode.h"

/*
 * The signal.  By default it is ignored: a program that executes another, or a
 * child without our handler, does not die of it, as of SIGPROF.
 */
enum {
	SEAM_AGENT_SIGNAL = SIGURG,
	SEAM_AGENT_STACK_BYTES = 64 << 10,	/* of the handler */
};

/* The services, in this order in HELLO. */
enum seam_agent_service {
	SEAM_AGENT_GUEST,
	SEAM_AGENT_SYMTAB,
	SEAM_AGENT_N_SERVICES,
};

#define SEAM_AGENT_SERVICES "guest guest_symtab"

/*
 * Of one thread, while it is sampled; in pages of its own that are zeroes in
 * a forked child.
 */
struct seam_agent_thread {
	bool is_on;
	bool has_ring;
	uint32_t tid;
	struct seam_tick tick;
	struct seam_ring_claim claims[SEAM_AGENT_N_SERVICES];
	uint64_t spent_ns;	/* in the handler */
	uint64_t n_carried;	/* ticks for the next sample's weight */
	uint64_t n_skipped[SEAM_RING_N_SKIPPED];
	uint64_t n_unwritten;	/* samples that found no room, in a row */
	struct seam_guest_sample sample;
	struct seam_guest_symbol symbol;
	uint8_t bytes[SEAM_GUEST_MAX_BYTES];
	/* The handler's stack: what overflows it is not used by others. */
	_Alignas(4096) uint8_t guard[4096];
	uint8_t stack[SEAM_AGENT_STACK_BYTES];
};

/* Of one thread, from its start to its end; in its thread-local data. */
struct seam_agent_self {
	struct seam_agent_thread *thread;	/* NULL: not sampled */
	bool is_attaching;
	/* in the list of threads.c: */
	bool is_listed;
	uint32_t tid;
	struct seam_agent_self *next, *previous;
};

extern __thread struct seam_agent_self seam_agent_self
	__attribute__((tls_model("initial-exec")));

/* Of the process. */
struct seam_agent {
	char address[SEAM_LINK_ADDRESS_BYTES];	/* of the recorder; "": none */
	_Atomic bool is_on;	/* connected: threads are sampled */
	_Atomic bool is_off;	/* for good; no system call from then on */
	pid_t pid;
	bool is_unthrottled;	/* SEAM_AGENT_UNTHROTTLED is set: for tests */
	uint32_t table;		/* of the ids; see wire/guest */
	uint64_t period_ns;
	struct seam_link_client client;
};

extern struct seam_agent seam_agent;

/* ---- attach.c: in handlers too ---- */

/*
 * Begin to sample the calling thread.  0, or -errno: it is not sampled.  Makes
 * system calls only.
 */
int seam_agent_attach(void);

/* End it; ticks that are left are counted, unless the agent is off. */
void seam_agent_detach(void);

/*
 * Request thread @tid to attach, by the signal; it looks for the request with
 * the second function.
 */
void seam_agent_request(uint32_t tid);
bool seam_agent_is_request(const siginfo_t *info);

/* ---- handler.c ---- */

/*
 * The signal came.  False: it is not of our tick, but the program's.
 */
bool seam_agent_on_signal(const siginfo_t *info, const ucontext_t *context);

/* ---- agent.c ---- */

/*
 * A library was loaded, @handle, or NULL: some were loaded or unloaded.  Find
 * VMs in them; the first one begins all.  Keeps errno.
 */
void seam_agent_refresh(void *handle);

/* End for good, in all threads, and report @why to the recorder's user. */
void seam_agent_end(const char *why);

/*
 * Whether the caller is in the process that is sampled.  A child of vfork() has
 * its memory, and one of clone(2) may have a copy of it.
 */
bool seam_agent_is_own_process(void);

/*
 * Whether threads of this process are sampled: 1 or 0.  Exported, for other
 * profilers in the process: dlsym(RTLD_DEFAULT, "seam_agent_is_sampling").
 */
__attribute__((visibility("default")))
int seam_agent_is_sampling(void);

/*
 * For fork.c: no refresh runs between these two; what a child begins with.
 * False: one still runs after a second, and there is nothing to release.
 */
bool seam_agent_hold(void);
void seam_agent_release(void);
void seam_agent_begin_child(void);

/* ---- threads.c ---- */

/* The key whose destructor ends a thread.  0 or a negative errno. */
int seam_agent_threads_init(void);

/* Add the calling thread to the list, and sample it if others are. */
void seam_agent_thread_begin(void);

/* Request all threads in the list to attach; end the ticks of all of them. */
void seam_agent_attach_all(void);
void seam_agent_abandon_all(void);

/*
 * For fork.c: the list does not change; in a child it has the caller only, and
 * is not locked.
 */
void seam_agent_threads_lock(void);
void seam_agent_threads_unlock(void);
void seam_agent_threads_begin_child(void);

/* ---- fork.c ---- */

/* At load.  0 or a negative errno. */
int seam_agent_fork_init(void);

/*
 * When threads are to be sampled; after seam_self_init(), whose own handler has
 * to come later in a fork: it stops a refresh, and ours waits for one.
 */
int seam_agent_fork_begin(void);

/* ---- signals.c ---- */

/*
 * Install the handler.  0 or -errno; -EBUSY: the program has one of its own.
 */
int seam_agent_signals_init(void);

/*
 * Whether the calling thread is shown the signal as blocked.  A thread that it
 * creates inherits that.
 */
bool seam_agent_shows_blocked(void);
void seam_agent_show_blocked(bool blocked);

/* Whether it is still there: a system call can replace it. */
bool seam_agent_signals_are_ours(void);

#endif /* SEAM_AGENT_H */
