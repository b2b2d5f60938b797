/* SPDX-License-Identifier: MIT */
/*
 * tasks.h - processes, threads, their names and address spaces over time
 *
 * The side-band of a recording comes out of several rings and is not in order.
 * It is collected as changes; sealing sorts them by time and replays them once,
 * into the profile's processes and threads and into address spaces.  After that
 * a look-up takes a task key, which stands for a pair (pid, tid) as a sample
 * has it, and a time: a pid that was used twice, or a thread that was renamed,
 * has different results at different times.
 *
 * Threads: one fills and seals; then any number look up.
 */
#pragma once

#include "model/perf/spaces.h"
#include "model/profile/profile.h"

enum seam_change_kind {
	SEAM_CHANGE_FORK,	/* pid, tid begin; ppid, ptid started them */
	SEAM_CHANGE_EXIT,	/* tid of pid ends */
	SEAM_CHANGE_NAME,	/* tid of pid is now called name */
	SEAM_CHANGE_EXEC,	/* the same, by exec: a new address space */
	SEAM_CHANGE_MAP,	/* mapping is at [addr, addr + len) of pid */
	SEAM_CHANGE_KERNEL,	/* ... of the kernel; SEAM_NONE: removed */
};

struct seam_change {
	uint64_t time_ns;	/* 0: before the recording */
	enum seam_change_kind kind;
	int32_t pid, tid, ppid, ptid;
	uint32_t name;		/* string of the profile */
	uint32_t mapping;	/* the caller's number */
	uint64_t addr, len;
};

/* The time from which a task key means a thread. */
struct seam_task_span {
	uint64_t from_ns;
	uint32_t thread;	/* of the profile */
	uint32_t space;		/* of spaces */
};

struct seam_thread_name {
	uint64_t from_ns;
	uint32_t name;
};

struct seam_task {
	int32_t pid;
	int32_t tid;
	SEAM_ARRAY(struct seam_task_span) spans;	/* by from_ns */
};

struct seam_thread_names {
	SEAM_ARRAY(struct seam_thread_name) since;	/* by from_ns */
};

struct seam_task_process {
	uint32_t space;		/* of spaces */
	uint32_t n_threads;	/* that have not ended, during the replay */
};

struct seam_tasks {
	SEAM_ARRAY(struct seam_change) changes;	/* in the file's order */
	struct seam_spaces spaces;			/* of processes */
	struct seam_spaces kernel;			/* only space 0 */
	SEAM_ARRAY(struct seam_task) keys;		/* by task key */
	struct seam_index key_index;
	SEAM_ARRAY(struct seam_thread_names) names;	/* by thread */
	SEAM_ARRAY(struct seam_task_process) processes;	/* by process */
};

/* The key of (@pid, @tid), new or not; SEAM_NONE when memory ran out. */
uint32_t seam_tasks_key(struct seam_tasks *tasks, int32_t pid, int32_t tid);

/*
 * Replay all changes into @profile's processes and threads and into spaces.
 * Every key has at least one span afterwards.  0 or -ENOMEM.
 */
int seam_tasks_seal(struct seam_tasks *tasks, struct seam_profile *profile);

/* The thread that a task key means, and from when to when that holds. */
struct seam_task_at {
	uint32_t key;
	uint32_t thread;	/* of the profile */
	uint32_t space;		/* of spaces */
	uint32_t name;		/* string: what the thread was called */
	uint64_t from_ns, to_ns;
};

/*
 * The thread of @key at @time_ns: of the last span that began by then, or the
 * first.  For millions of samples, reuse the result while seam_task_at_holds().
 */
struct seam_task_at seam_tasks_find(const struct seam_tasks *tasks,
				    uint32_t key, uint64_t time_ns);

/* What @thread was called at @time_ns: a string; 0: not known. */
uint32_t seam_tasks_name(const struct seam_tasks *tasks, uint32_t thread,
			 uint64_t time_ns);

static inline bool seam_task_at_holds(const struct seam_task_at *at,
				      uint32_t key, uint64_t time_ns)
{
	return at->key == key && at->from_ns <= time_ns &&
	       time_ns < at->to_ns;
}

void seam_tasks_fini(struct seam_tasks *tasks);
