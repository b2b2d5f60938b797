/* SPDX-License-Identifier: MIT */
/*
 * profiler.h - the one profiler of a process, inside libseam-sysprof
 *
 *	profiler.c		<seam/lmisclib.h>: start, stop, a fork between
 *	profiler_handler.c	from a signal to a sample
 *	stream_events.c		records of the stream
 *	native_symbols.c	C symbols of loaded files
 *	lua_symbols.c		names in the tables of the VM
 *	lua_sysprof.c		the Lua modules
 *
 * Its state is one static object, which a handler finds at once.  Start and
 * stop change it while no handler uses it.
 *
 *	stop				handler
 *	state = BUSY		(A)	n_in_handler++		(C)
 *	while (n_in_handler)	(B)	if (state == RUNNING &&	(D)
 *		yield			    tid == own)
 *	use the rest				sample
 *					n_in_handler--
 *
 * A before B and C before D, all sequentially consistent: a stop that finds
 * no handler in (B) is seen by the next one (D).  A stop in the sampled thread
 * does not wait, because other threads' handlers do not sample.  A thread of
 * an earlier run may be anywhere in its handler, so (D) checks both after (C).
 */
#pragma once

#include <semaphore.h>
#include <signal.h>
#include <stdatomic.h>

#include <seam/lmisclib.h>

#include "traced/interpose/signal_front.h"
#include "traced/sampler/tick.h"
#include "traced/sysprof/native_symbols.h"
#include "traced/sysprof/stream_events.h"

/*
 * Ignored by default, so a late one, or one after exec, does nothing.  Not
 * SIGTRAP, as the sampler has: a library that a script loads is not in front of
 * exec(3) and sigprocmask(2), and a tick would end a program that is executed,
 * or be what sigwait(3) returns.
 */
enum { SEAM_SYSPROF_SIGNAL = SIGURG };

enum seam_sysprof_state {
	SEAM_SYSPROF_IDLE,
	SEAM_SYSPROF_BUSY,	/* a start or stop has it, and no other may */
	SEAM_SYSPROF_RUNNING,
	SEAM_SYSPROF_HALTED,	/* the writer failed; until it is stopped */
};

/* Symbols that became known while samples are written; see profiler.c. */
struct seam_sysprof_late {
	struct seam_sysprof_late *next;
	size_t n;
	uint8_t bytes[];	/* events of the stream */
};

struct seam_sysprof_run {
	_Atomic uint32_t state;		/* enum seam_sysprof_state */
	_Atomic uint32_t n_in_handler;	/* threads */
	bool is_sampling;		/* of the sampled thread alone */
	/* Written by start, before RUNNING. */
	int32_t pid;
	_Atomic int32_t tid;		/* the sampled thread */
	const void *vm;			/* identity */
	uint8_t mode;			/* enum luam_sysprof_mode */
	luam_Sysprof_backtracer backtracer;
	/* Written by the handler, read when it is stopped. */
	struct seam_tick tick;
	uint64_t record[SEAM_TICK_RECORD_WORDS];	/* the kernel's */
	uint64_t counts[SEAM_N_VMSTATES];
	struct seam_sysprof_stream stream;
	struct seam_guest_sample sample;
	struct seam_sysprof_host host;
	uint64_t n_unmapped;	/* seam_self_n_unmapped(), last sample */
	/* A post wakes the thread for loads; is_woken: it was posted. */
	sem_t wake;
	atomic_bool is_woken;
	/* Pushed by that thread, taken by the handler. */
	struct seam_sysprof_late *_Atomic late;
	struct seam_sysprof_late *written;	/* the handler's, to be freed */
};

extern struct seam_sysprof_run seam_sysprof_run;

/* Write late symbols; by the handler, or when it is stopped. */
void seam_sysprof_write_late(struct seam_sysprof_run *run);

/* The handler: see seam_signal_front.take. */
bool seam_sysprof_on_signal(int signal, siginfo_t *info, ucontext_t *context);

/* ---- not in handlers ---- */

/* Functions that write the stream; NULL writer: not set. */
struct seam_sysprof_output {
	/*
	 * Called when nothing else can make a start fail but the writer and
	 * the tick; 0, or a negative errno.  NULL: there is nothing to open.
	 */
	int (*open)(void *ctx);
	luam_Sysprof_writer writer;
	luam_Sysprof_on_stop on_stop;
	/* Free @ctx in a forked child, without writing.  NULL: it stays. */
	void (*on_child)(void *ctx);
	bool ends_at_exit;	/* stop when the program calls exit() */
	size_t enough;		/* bytes; see stream_events.h */
};

/* As luaM_sysprof_start(), with a stream that is written by @output. */
int seam_sysprof_start(lua_State *L, const struct luam_sysprof_options *opt,
		       const struct seam_sysprof_output *output);

/*
 * Add the names in the VM of @L to @names, after seam_guest_init().  Throws no
 * error.
 */
void seam_lua_symbols_add(lua_State *L, struct seam_native_names *names);
