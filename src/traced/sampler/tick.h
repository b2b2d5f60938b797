/* SPDX-License-Identifier: MIT */
/*
 * tick.h - a thread's own CPU time as a signal
 *
 *	seam_tick_start(&tick, gettid(), seam_tick_signal(), 1000000);
 *	... in the handler of that signal, on that thread:
 *	seam_tick_take(&tick, info, record, &taken);
 *	if (!taken.is_ours)
 *		call the program's handler
 *	else if (taken.weight)
 *		a sample that stands for so many ticks
 *	...
 *	seam_tick_stop(&tick);				in the thread
 *
 * A tick is due for each period of the thread's CPU time, in user and kernel
 * mode.  Its source is a task-clock perf event of the thread: the only timer
 * that runs at 1 to 10 kHz of CPU time: timers of
 * timer_create(CLOCK_THREAD_CPUTIME_ID) and setitimer() run at the kernel's
 * 250 Hz at most.
 *
 *	signal	how	system calls		blocked, or at exec
 *	SIGTRAP	sigtrap	none ends early		stays pending; kills a program
 *						that is executed meanwhile
 *	SIGURG	F_SETSIG	some end with EINTR	stays pending; is ignored
 *
 * With attr.sigtrap the kernel queues the signal as task work, and sends it
 * when the thread returns to user mode.  The caller has to stop the tick before
 * an exec: see sampler/masks.c.
 *
 * Where perf_event_open(2) is refused the source is timer_create().
 *
 * The event's ring overwrites, so the newest sample is always in it; it has the
 * kernel's part of the stack, and the CPU time of the thread.  The weight is
 * that time since the last sample by the period, so ticks whose signals were
 * merged, blocked, or skipped by the caller are in the weight of the next one:
 * all weights times the period are the CPU time.  Without the right to see the
 * kernel, a tick in kernel mode sends no signal and is in the next weight too.
 *
 * An event has 8 KiB of locked memory.  A thread for which perf_event_mlock_kb,
 * a limit of each user, leaves no room uses the timer.
 *
 * The descriptor of the event is closed at once: the mapping keeps the event,
 * and the program gains no descriptor.  exec ends it, as it ends mappings.  A
 * forked child has no event, and its mapping is gone: clear the struct there.
 *
 * Threads: the struct belongs to one thread and its handlers.  Another thread
 * may start it for that thread, and call seam_tick_abandon().
 */
#pragma once

#include <signal.h>

#include "base/base.h"

enum {
	SEAM_TICK_MIN_NS = 10000,	/* the kernel's limit */
	SEAM_TICK_MAX_KERNEL = 64,	/* frames, the innermost ones */
	SEAM_TICK_RECORD_WORDS = SEAM_TICK_MAX_KERNEL + 24,
};

enum seam_tick_source {
	SEAM_TICK_OFF,
	SEAM_TICK_PERF,		/* task-clock, with the kernel's stack */
	SEAM_TICK_PERF_USER,	/* task-clock; the kernel is not visible */
	SEAM_TICK_TIMER,	/* CPU-time timer, at the kernel's tick */
};

/* Zeroed: off. */
struct seam_tick {
	uint8_t source;		/* enum seam_tick_source */
	int refusal;		/* errno of perf_event_open(), or 0 */
	int fd;			/* number that the signal has; closed */
	int32_t pid;		/* of the start; a forked child has another */
	int timer;		/* of the kernel */
	/* mapping of the event; a thread takes it out to unmap or replace it */
	_Atomic(void *) ring;
	uint64_t period_ns;
	uint64_t seen;		/* the ring's head at the last sample */
	uint64_t base_ns;	/* the thread's CPU time at the start */
	int64_t ahead_ns;	/* of the event's count */
	uint64_t n_samples;
	uint64_t counted_ns;	/* CPU time since, in weights */
	uint64_t n_due;		/* sum of all weights */
};

struct seam_tick_taken {
	bool is_ours;		/* the signal is of this tick */
	uint64_t weight;	/* ticks since the last; 0: no sample */
	uint64_t time_ns;	/* CLOCK_MONOTONIC */
	uint32_t cpu;
	/*
	 * Instruction pointers in the kernel, innermost first, in the caller's
	 * record; none where the tick was in user mode.
	 */
	const uint64_t *kernel;
	size_t n_kernel;
};

/*
 * SIGTRAP where the kernel sends it without ending system calls, and this
 * process has such events and no debugger; else SIGURG.  Makes system calls
 * only.
 */
int seam_tick_signal(void);

/*
 * Begin to send @signal, one of the two, to thread @tid of this process at each
 * @period_ns of its CPU time, at least SEAM_TICK_MIN_NS.  0; -EINVAL; or the
 * errno of timer_create(), when that is refused as well: the tick stays off.
 * Makes system calls only.
 */
int seam_tick_start(struct seam_tick *tick, int32_t tid, int signal,
		    uint64_t period_ns);

/*
 * End.  A signal may still be pending: is_ours holds for it as before, and
 * its weight is 0.
 */
void seam_tick_stop(struct seam_tick *tick);

/*
 * End the events of another thread, which may be in its handler: that finds
 * no further sample.  Only memory is exchanged, so seam_tick_stop() is still
 * to be called.
 */
void seam_tick_abandon(struct seam_tick *tick);

/*
 * Whether the signal is of @tick, or of an event of another tick of this copy
 * of the file; also after its end.
 */
bool seam_tick_is_ours(const struct seam_tick *tick, const siginfo_t *info);

/*
 * In the handler: whether the signal is of @tick, and the ticks since the last
 * call.  @record: where the newest sample is copied to.  No lock, no
 * allocation.  Cost: the copy of one record; with SEAM_TICK_TIMER two calls of
 * clock_gettime().
 */
void seam_tick_take(struct seam_tick *tick, const siginfo_t *info,
		    uint64_t record[SEAM_TICK_RECORD_WORDS],
		    struct seam_tick_taken *taken);

/*
 * Ticks that are due by now and were not taken; they count as taken.  In the
 * thread, before seam_tick_stop(), so that no tick is lost silently.
 */
uint64_t seam_tick_rest(struct seam_tick *tick);
