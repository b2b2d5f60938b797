/* SPDX-License-Identifier: MIT */
/*
 * loop.h - wait for rings, programs, processes and signals in one place
 *
 * Signals that end a recording are read from a signalfd, so none interrupts a
 * write.  SIGINT and SIGTERM are read even if they were ignored when we were
 * started, as in a background job of a script; SIGHUP (nohup) and SIGQUIT stay
 * ignored then.
 */
#pragma once

#include "base/array.h"
#include "base/err.h"

#include <sched.h>
#include <signal.h>
#include <stdbool.h>

enum seam_loop_events {
	SEAM_LOOP_RINGS = 1 << 0,	/* a ring is above its watermark */
	SEAM_LOOP_CHILD = 1 << 1,	/* a child of ours has changed state */
	SEAM_LOOP_SIGNAL = 1 << 2,	/* one that ends the recording */
	SEAM_LOOP_EXITS = 1 << 3,	/* all watched processes have ended */
	SEAM_LOOP_SNAPSHOT = 1 << 4,	/* requested by SIGUSR2 */
	SEAM_LOOP_LINK = 1 << 5,	/* connection, message or wakeup */
};

/* A signal that ends the recording. */
struct seam_loop_signal {
	int number;
	bool from_terminal;	/* sent to the command too */
	bool was_ignored;	/* at our start, so by the command too */
};

struct seam_loop {
	int epoll;
	int signals;			/* signalfd */
	int link;			/* the link server's; -1: none */
	SEAM_ARRAY(int) processes;	/* pidfds of those still running */
	sigset_t old_mask;
	/* The last accepted signal: see is_repeated() in loop.c. */
	int last_number;
	uint32_t last_pid;
	uint64_t last_ns;
};

/* Block the signals from here on; @loop->old_mask gets the former mask. */
int seam_loop_init(struct seam_loop *loop, struct seam_err *err);

/*
 * From here on a closed pipe or a limit on file sizes is an error of the write
 * and no signal, and SIGCHLD is received even if our parent ignored it.  After
 * fork(): a command must not inherit it.
 */
void seam_loop_take_signals(void);

/* Wait for @fd too: a perf event, or the link server's (.link is set). */
int seam_loop_add_fd(struct seam_loop *loop, int fd, struct seam_err *err);

/*
 * Wait for the end of process or thread @id too, which is not our child.
 * Kernels before 6.9 have no pidfd of a thread: its process is watched there.
 */
int seam_loop_add_process(struct seam_loop *loop, int id, bool is_thread,
			  struct seam_err *err);

/*
 * Wait for at most @timeout_ms.  Returns enum seam_loop_events; @signal is set
 * with SEAM_LOOP_SIGNAL.
 */
unsigned int seam_loop_wait(struct seam_loop *loop, int timeout_ms,
			    struct seam_loop_signal *signal);

/*
 * Wait for signals and children only, and until @fd is readable; requests for
 * a snapshot are dropped.
 */
unsigned int seam_loop_wait_for(struct seam_loop *loop, int fd,
				int timeout_ms,
				struct seam_loop_signal *signal);

/*
 * Restore the signal mask; pending signals are dropped.  Valid after a failed
 * init.
 */
void seam_loop_fini(struct seam_loop *loop);

/* ---- where and when the recorder runs ---- */

/*
 * Request a short time slice, which needs no privilege: such a thread runs
 * earlier after a wakeup, without more CPU time in total.  With CAP_SYS_NICE
 * also a lower nice value, so that it is not preempted for a whole slice of
 * another thread.  If @realtime is not 0, that real-time priority in place of
 * both, which fork() does not inherit.  For the calling thread, after fork():
 * a command must not inherit a slice.  Kernels before 6.12 ignore the slice.
 * 0, or -EPERM: @realtime needs CAP_SYS_NICE.
 *
 * Source: sched_setattr(2); "custom slice" in kernel/sched/fair.c, Linux 6.12.
 */
int seam_sched_request(int realtime, struct seam_err *err);

/* Zeroed: the thread runs on its usual CPUs. */
struct seam_sched {
	bool is_moved;
	int cpu;		/* where it was moved to */
	cpu_set_t usual[8];	/* its CPUs before: of up to 8192 */
};

/*
 * Run the calling thread on @cpu only, or with -1 on its usual CPUs again.
 *
 * For floods of records: a ring that is drained on its own CPU does not fill
 * meanwhile, and no idle CPU has to be woken, which in a virtual machine takes
 * longer than a ring takes to fill.  Errors are ignored.
 */
void seam_sched_move(struct seam_sched *sched, int cpu);
