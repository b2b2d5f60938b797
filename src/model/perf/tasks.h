/* SPDX-License-Identifier: MIT */
/*
 * tasks.h - processes, threads, their names and address spaces over time
 *
 * The side-band of a recording (FORK, COMM, EXIT, MMAP) comes out of several
 * rings and is not in order.  It is collected first, as changes; sealing
 * sorts it by time and replays it once, into the profile's processes and
 * threads and into address spaces.  After that, who a sample belongs to is a
 * question with a time in it, so a pid that was used twice, or a thread that
 * was renamed, answers differently at different times.
 *
 * A task key stands for a pair (pid, tid) as a sample has it.
 *
 * Threads: one fills and seals; then any number ask.
 */
#ifndef SEAM_TASKS_H
#define SEAM_TASKS_H

#include "model/perf/spaces.h"
#include "model/profile/profile.h"

enum seam_change_kind {
	SEAM_CHANGE_FORK,	/* pid, tid begin; ppid, ptid started them */
	SEAM_CHANGE_EXIT,	/* tid of pid ends */
	SEAM_CHANGE_NAME,	/* tid of pid is now called name */
	SEAM_CHANGE_EXEC,	/* the same, by exec: a new address space */
	SEAM_CHANGE_MAP,	/* mapping is at [addr, addr + len) of pid */
};

struct seam_change {
	uint64_t time_ns;	/* 0: before the recording */
	uint64_t order;		/* position in the file; decides equal times */
	enum seam_change_kind kind;
	int32_t pid, tid, ppid, ptid;
	uint32_t name;		/* string of the profile */
	uint32_t mapping;	/* the caller's number */
	uint64_t addr, len;
};

/* One stretch of time in which a task key meant one thread. */
struct seam_life {
	uint64_t from_ns;
	uint32_t thread;	/* of the profile */
	uint32_t space;		/* of spaces */
};

struct seam_name_since {
	uint64_t from_ns;
	uint32_t name;
};

struct seam_task {
	int32_t pid;
	int32_t tid;
	SEAM_ARRAY(struct seam_life) lives;		/* by from_ns */
};

struct seam_thread_names {
	SEAM_ARRAY(struct seam_name_since) since;	/* by from_ns */
};

struct seam_tasks {
	SEAM_ARRAY(struct seam_change) changes;
	struct seam_spaces spaces;
	SEAM_ARRAY(struct seam_task) keys;		/* by task key */
	struct seam_index key_index;
	SEAM_ARRAY(struct seam_thread_names) names;	/* by thread */
	SEAM_ARRAY(uint32_t) process_spaces;		/* by process */
};

/* The key of (@pid, @tid), new or not; SEAM_NONE when memory ran out. */
uint32_t seam_tasks_key(struct seam_tasks *tasks, int32_t pid, int32_t tid);

/* Collect a change.  0 or -ENOMEM. */
int seam_tasks_change(struct seam_tasks *tasks,
		      const struct seam_change *change);

/*
 * Replay all changes into @profile's processes and threads and into spaces.
 * Every key has at least one life afterwards.  0 or -ENOMEM.
 */
int seam_tasks_seal(struct seam_tasks *tasks, struct seam_profile *profile);

/* Who a task key means, and from when to when nothing of that changes. */
struct seam_who {
	uint32_t key;
	uint32_t thread;	/* of the profile */
	uint32_t space;		/* of spaces */
	uint32_t name;		/* string: what the thread was called */
	uint64_t from_ns, to_ns;
};

/*
 * Who @key is at @time: the last life that began by then, or the first.
 * Millions of samples ask; keep the answer while seam_who_holds().
 */
struct seam_who seam_tasks_who(const struct seam_tasks *tasks, uint32_t key,
			       uint64_t time_ns);

static inline bool seam_who_holds(const struct seam_who *who, uint32_t key,
				  uint64_t time_ns)
{
	return who->key == key && who->from_ns <= time_ns &&
	       time_ns < who->to_ns;
}

void seam_tasks_fini(struct seam_tasks *tasks);

#endif /* SEAM_TASKS_H */
