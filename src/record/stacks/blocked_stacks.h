/* SPDX-License-Identifier: MIT */
/*
 * blocked_stacks.h - stacks of waiting threads, read from outside
 *
 * Where the kernel gives no sample at a switch, at perf_event_paranoid 2 or
 * beyond the budget (switch_stacks.h), a thread that waits for longer than a
 * minimum is read while it waits: nothing is done to the thread.  SWITCH records
 * say which threads these are.  The recorder looks once in a minimum, so waits
 * are read from half of that on; each is read once:
 *
 *   1. /proc/PID/task/TID/schedstat: how often the thread was switched in.
 *   2. /proc/PID/task/TID/syscall: number of the system call (-1: a page fault,
 *	or a stop in user code), stack pointer and program counter; "running":
 *	there is no stack.
 *   3. process_vm_readv(): the stack from its pointer on, at most
 *	SEAM_BLOCKED_STACK_BYTES; only of pages that are in memory, by
 *	/proc/PID/task/TID/pagemap, because others may never come.
 *   4. schedstat again: unless the number is equal, the thread has run
 *	meanwhile, and the copy is dropped.
 *
 * So no copy is of two waits, and the moment after step 3, the time of the
 * sample, is inside the wait whose stack was read.  Two reads of step 2 would
 * not do: a worker that waits at the same place again gives the same line.
 *
 * The result is a sample of the event SEAM_BLOCKED_STACK_EVENT with two user
 * registers and a copy of the stack, for live_stacks, which unwinds it as any
 * other (unwind/walk/repair.h).  Its WEIGHT is the number of the system call.
 *
 * What may be read is up to the kernel: a process of the same user, dumpable,
 * and as Yama allows.  A refusal is counted, and the thread not tried again.
 * A recorder that may read the processes of other users does not: between steps 2
 * and 3 another thread of a process may map memory that never comes, and the
 * recorder would wait for it.
 *
 * Threads that ran before the recording may wait all the time, without any
 * SWITCH record: they are read as if they had lost their CPU when the recording
 * began.  Whether such a thread waits is in the sample even where its stack was
 * not read (SEAM_BLOCKED_NOT_READ).
 *
 * Bounded: SEAM_BLOCKED_THREADS threads, of which those are forgotten whose
 * slot another one needs, SEAM_BLOCKED_FDS threads with open files, and
 * SEAM_BLOCKED_HZ reads in a second.
 *
 * Cost: about 12 us a stack.  Threads: one, the recorder's.
 * Source: proc_pid_syscall(5), Documentation/scheduler/sched-stats.rst.
 */
#pragma once

#include "base/base.h"
#include "base/err.h"
#include "wire/perf/perf_record.h"
#include "wire/perf/wait_events.h"

#include <linux/perf_event.h>

enum {
	SEAM_BLOCKED_THREADS = 1 << 16,
	SEAM_BLOCKED_FDS = 64,
	SEAM_BLOCKED_HZ = 4000,
	/* with the other fields less than a record's 64 KiB */
	SEAM_BLOCKED_STACK_BYTES = 60 << 10,
};

/* What became of waits that were due: SEAM_COUNT_OFF_CPU_READ and following. */
enum seam_blocked_result {
	SEAM_BLOCKED_READ,
	SEAM_BLOCKED_RAN,	/* the thread ran, or has ended */
	SEAM_BLOCKED_OVER_RATE,
	SEAM_BLOCKED_REFUSED,	/* by the kernel */
	SEAM_BLOCKED_N_RESULTS,
};

struct seam_blocked_thread;

/* Zeroed is valid: not used. */
struct seam_blocked_stacks {
	uint64_t min_ns;	/* a wait is due after half of this */
	uint64_t event_id;	/* in the samples; set by the caller */
	struct seam_blocked_thread *threads;	/* slots, by tid */
	/* Slots of threads that wait and were not read, oldest first. */
	uint32_t first, last;		/* and 1; 0: none */
	size_t n_open;			/* threads with open files */
	uint64_t allowed_ns;		/* until then reads are paid for */
	bool had_switch;		/* since the last look */
	bool has_samples;		/* of switches, of the kernel: set by the caller */
	uint64_t n[SEAM_BLOCKED_N_RESULTS];
	uint8_t *record;		/* the last one */
};

/* Make @attr that of the event, without the fields that all events have. */
void seam_blocked_stacks_describe(struct perf_event_attr *attr);

/*
 * Begin; .event_id is set.  Nearly all waits of @min_ns or more are read.  0 or
 * -ENOMEM.
 */
int seam_blocked_stacks_init(struct seam_blocked_stacks *blocked,
			     uint64_t min_ns, struct seam_err *err);

/* The recording begins, at @time_ns, with a thread that runs already. */
void seam_blocked_stacks_attach(struct seam_blocked_stacks *blocked,
				uint32_t pid, uint32_t tid, uint64_t time_ns);

/*
 * The kernel sampled the stack of a thread that loses its CPU: the wait that
 * begins with its next SWITCH record is not read.
 */
void seam_blocked_stacks_sample(struct seam_blocked_stacks *blocked,
				uint32_t pid, uint32_t tid);

/* A SWITCH record, in the order of time. */
void seam_blocked_stacks_switch(struct seam_blocked_stacks *blocked,
				uint32_t pid, uint32_t tid, uint64_t time_ns,
				bool is_out, bool is_preempt);

/* A side-band record: threads end, and execute programs. */
void seam_blocked_stacks_sideband(struct seam_blocked_stacks *blocked,
				  const struct seam_perf_sideband *record);

/*
 * Read the next stack that is due: a SAMPLE record, valid until the next call.
 * NULL: no more are due now.
 */
const void *seam_blocked_stacks_next(struct seam_blocked_stacks *blocked);

/*
 * How long the recorder may wait for the next round, in ms, when it would wait
 * @wait_ms.
 */
int seam_blocked_stacks_wait_ms(struct seam_blocked_stacks *blocked,
				int wait_ms);

void seam_blocked_stacks_fini(struct seam_blocked_stacks *blocked);
