/* SPDX-License-Identifier: MIT */
/*
 * task_times.h - where each thread's time went, by its context switches
 *
 * SWITCH, FORK, EXIT and COMM records, which any user may have of their own
 * programs, become times on a CPU, blocked and preempted.  A thread is
 *
 *	on a CPU	from a switch in, or an exec
 *	blocked		from a switch out that it wanted
 *	preempted	from a switch out with PERF_RECORD_MISC_SWITCH_OUT_
 *			PREEMPT, or from its fork: it can run, another does
 *
 * The three add up to its life.  The last switch of a thread has no record: its
 * EXIT ends it.
 *
 * Records arrive in the order of each CPU.  They are kept, and applied in the
 * order of time once all CPUs were read (seam_task_times_apply()).
 *
 * Memory: 48 bytes for each record of a round; 112 bytes for each living thread,
 * and as much for those that have ended since, at most as many; 112 bytes for
 * each process, of which at most SEAM_TASK_MAX_PROCESSES have a row.
 *
 * Source: perf_event_switch_output(), kernel/events/core.c of Linux 6.18.
 */
#pragma once

#include "base/index.h"
#include "wire/perf/perf_record.h"

enum {
	SEAM_TASK_MAX_PROCESSES = 4096,	/* rows; later ones share another */
	SEAM_TASK_NAME = 16,		/* Source: TASK_COMM_LEN, sched.h */
};

/* Of a thread, of a process, or of all. */
struct seam_task_sums {
	uint64_t on_ns, blocked_ns, preempted_ns;
	uint64_t n_blocked, n_preempted;	/* switches out */
	uint64_t n_migrations;	/* switches in on another CPU than the last */
	/* By schedstat, of the part of its time that could be read: */
	uint64_t read_on_ns;	/* on a CPU up to the reading */
	uint64_t wake_ns;	/* from a wakeup to the switch in */
};

/* A process, until its last thread ends. */
struct seam_timed_process {
	int pid;			/* 0: of all beyond the limit */
	char name[SEAM_TASK_NAME];	/* of its first thread, the last one */
	uint32_t parent;		/* a row before; SEAM_NONE: unknown */
	uint32_t n_threads;		/* that live */
	uint64_t begin_ns, end_ns;	/* end 0: it lives */
	struct seam_task_sums sums;	/* of threads that have ended */
};

enum seam_timed_state {
	SEAM_TASK_ON,
	SEAM_TASK_BLOCKED,
	SEAM_TASK_PREEMPTED,
	SEAM_TASK_ENDED,
};

struct seam_timed_thread {
	int tid;
	uint32_t process;		/* index */
	uint32_t cpu;			/* the last; UINT32_MAX: unknown */
	enum seam_timed_state state;
	bool is_guess;			/* the state before its first record */
	uint64_t since_ns;
	uint64_t base_on_ns, base_wait_ns;	/* schedstat at its begin */
	struct seam_task_sums sums;
};

struct seam_task_record {
	uint64_t ns;
	int pid, tid;
	int ppid;			/* FORK */
	uint32_t cpu;			/* SWITCH */
	uint16_t type;			/* PERF_RECORD_* */
	uint16_t misc;
	char name[SEAM_TASK_NAME];	/* COMM */
};

struct seam_task_times {
	SEAM_ARRAY(struct seam_task_record) records;	/* not applied yet */
	SEAM_ARRAY(struct seam_timed_thread) threads;
	struct seam_index by_tid;	/* of threads */
	size_t n_ended;			/* of threads */
	SEAM_ARRAY(struct seam_timed_process) processes;
	struct seam_index by_pid;	/* of processes, ended ones too */
	struct seam_task_sums ended;	/* of all threads that have */
	uint64_t n_switches;		/* records, to see if there were any */
	bool no_memory;			/* something is missing */
	/* Called before the end of a thread; may be NULL. */
	void (*on_end)(void *context, struct seam_timed_thread *thread);
	void *context;
};

/* Valid on a zeroed struct. */
void seam_task_times_fini(struct seam_task_times *t);

/* A record of the kernel; others than the four are ignored. */
void seam_task_times_take(struct seam_task_times *t,
			  const struct seam_perf_record *record);

/*
 * Thread @tid of @pid ran before the recording, which begins at @ns.  @letter
 * is its state in /proc/TID/stat: R runs or is preempted, others are blocked.
 * Valid until the next call; NULL: no memory.
 */
struct seam_timed_thread *
seam_task_times_begin(struct seam_task_times *t, int pid, int tid,
		      const char *name, char letter, uint64_t ns);

/* Apply the records before @until_ns: of every CPU all of them were taken. */
void seam_task_times_apply(struct seam_task_times *t, uint64_t until_ns);

/* End all threads that live, at @ns.  Nothing may be taken afterwards. */
void seam_task_times_end(struct seam_task_times *t, uint64_t ns);
