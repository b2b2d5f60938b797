/* SPDX-License-Identifier: MIT */
/*
 * sampler.h - libseam-sampler: samples of a program with a virtual machine
 *
 * A library that "seam record" preloads (LD_PRELOAD).  Without a recorder's
 * address in the environment, or with the rights of another user (AT_SECURE),
 * it does nothing.  Until the program loads a VM, it connects to no recorder,
 * and sends no signal.
 *
 *	process	constructor, or dlopen() of a VM's library
 *	  sampler.c	find VMs, connect, start each thread
 *	thread	the main one, and those of pthread_create()
 *	  sampler.c	the list, start and end
 *	  handler.c	tick, memory, end: system calls only
 *	sample	a signal
 *	  handler.c	weigh, walk, write a record and names, or skip it
 *
 * What the program does is left as it is:
 *  - Calls that would show or replace the handler, or block its signal, are
 *    interposed (interpose/signal_front.h, masks.c), and those that execute a
 *    program.  fork() has handlers of pthread_atfork().
 *  - No thread is added: a program may depend on being single-threaded
 *    (unshare(2), setns(2), pthread_exit() of its last thread), and a forked
 *    child would not have it.  Libraries that the program loads are taken into
 *    account where it loads them: dlopen() and dlclose() are interposed
 *    (interpose/interpose.c).
 *  - A program that installs a seccomp filter is no longer sampled: the filter
 *    may kill it for a system call of ours (interpose/interpose.c).  If the
 *    kernel refuses the filter, this thread and later threads are sampled.
 *
 * The files are two groups.  handler.c and tick.c run in signal handlers, and
 * tools/check-traced checks what they call; all others run in calls that the
 * program makes, and may use libc.
 */
#pragma once

#include <signal.h>
#include <sys/types.h>

#include "ring/link/link.h"
#include "traced/guest/guest_sample.h"
#include "traced/sampler/tick.h"
#include "wire/guest/guest_encode.h"

enum {
	SEAM_SAMPLER_STACK_BYTES = 64 << 10,	/* of the handler */
	/*
	 * Threads with a tick at a time.  Each has a mapping, of which a
	 * process has 65,530 by default.
	 */
	SEAM_SAMPLER_MAX_TICKS = 4096,
};

#define SEAM_SAMPLER_BIT(signal) (UINT64_C(1) << ((signal) - 1))

/*
 * What the sampler blocks where a handler of the program may not come: all but
 * faults, which would end it, and libc's own two, of pthread_cancel() and
 * setuid().  A tick by SIGTRAP comes (handler.c says why it must).
 */
#define SEAM_SAMPLER_BLOCKED						\
	(~(SEAM_SAMPLER_BIT(SIGSEGV) | SEAM_SAMPLER_BIT(SIGBUS) |		\
	   SEAM_SAMPLER_BIT(SIGILL) | SEAM_SAMPLER_BIT(SIGFPE) |		\
	   SEAM_SAMPLER_BIT(SIGTRAP) | SEAM_SAMPLER_BIT(SIGSYS) |		\
	   SEAM_SAMPLER_BIT(32) | SEAM_SAMPLER_BIT(33)))

/* The services, in this order in HELLO. */
enum seam_sampler_service {
	SEAM_SAMPLER_GUEST,
	SEAM_SAMPLER_SYMTAB,
	SEAM_SAMPLER_N_SERVICES,
};

#define SEAM_SAMPLER_SERVICES "guest guest_symtab"

/*
 * Of one thread, from its first tick on; in pages of its own that are zeroes
 * in a forked child.  The stack is below what it must not damage: what
 * overflows it comes into the bytes of a record, which the recorder checks.
 */
struct seam_sampler_thread {
	uint8_t bytes[SEAM_GUEST_MAX_BYTES];
	_Alignas(64) uint8_t stack[SEAM_SAMPLER_STACK_BYTES];
	struct seam_tick *tick;		/* NULL: all of it is to be set */
	bool has_ring;
	uint32_t tid;
	struct seam_ring_claim claims[SEAM_SAMPLER_N_SERVICES];
	uint64_t spent_ns;	/* in the handler */
	uint64_t n_carried;	/* ticks for the next sample's weight */
	uint64_t n_skipped[SEAM_RING_N_SKIPPED];
	uint64_t n_unwritten;	/* samples that found no room, in a row */
	uint64_t record[SEAM_TICK_RECORD_WORDS];	/* the kernel's */
	struct seam_guest_sample sample;
	struct seam_guest_symbol symbol;
};

/*
 * Of one thread, from its start to its end; on the heap, because one that ends
 * by a system call stays in the list.
 */
struct seam_sampler_self {
	struct seam_tick tick;
	struct seam_sampler_thread *thread;	/* NULL: no tick so far */
	bool is_paused;		/* it blocks the signal: see masks.c */
	bool is_refused;	/* there was no room for its tick */
	bool is_busy;		/* a tick that comes meanwhile is not taken */
	/* in the list of sampler.c: */
	uint32_t tid;
	struct seam_sampler_self *next, *previous;
};

/* NULL: not a thread of ours */
extern __thread struct seam_sampler_self *seam_sampler_self
	__attribute__((tls_model("initial-exec")));

/* Of the process. */
struct seam_sampler {
	char address[SEAM_LINK_ADDRESS_BYTES];	/* of the recorder; "": none */
	_Atomic bool is_on;	/* connected: threads are sampled */
	_Atomic bool is_off;	/* for good; no system call from then on */
	pid_t pid;
	int signal;		/* of the tick; set before is_on */
	bool is_unthrottled;	/* SEAM_SAMPLER_UNTHROTTLED is set: for tests */
	bool is_urgent;		/* SEAM_SAMPLER_SIGURG is set */
	uint32_t table;		/* of the ids; see wire/guest */
	uint64_t period_ns;
	struct seam_link_client client;
};

extern struct seam_sampler seam_sampler;

/* ---- handler.c ---- */

/*
 * Begin to sample the thread of @self, with the list locked or in that thread.
 * 0, or -errno: it is not sampled.  Makes system calls only.
 */
int seam_sampler_attach(struct seam_sampler_self *self);

/*
 * End it, in the thread; ticks that are left are counted, unless the sampler is
 * off.
 */
void seam_sampler_detach(void);

/* In a child of fork(). */
void seam_sampler_attach_begin_child(void);

/* See seam_signal_front.take.  False: it is not of our tick. */
bool seam_sampler_on_signal(int signal, siginfo_t *info, ucontext_t *context);

/* ---- sampler.c ---- */

/*
 * Whether threads of this process are sampled: 1 or 0.  Exported, for other
 * profilers in the process: dlsym(RTLD_DEFAULT, "seam_sampler_is_sampling").
 */
__attribute__((visibility("default")))
int seam_sampler_is_sampling(void);

/* ---- masks.c ---- */

/* A thread begins to be sampled, before its tick.  Sets is_paused. */
void seam_sampler_mask_begin(struct seam_sampler_self *self, uint64_t shown);

/* For threads that the calling one creates; a number of masks.c's. */
uint64_t seam_sampler_mask_shown(void);

/* See seam_signal_front.defer. */
bool seam_sampler_mask_defer(int signal, siginfo_t *info, ucontext_t *context);
