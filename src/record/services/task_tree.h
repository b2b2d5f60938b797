/* SPDX-License-Identifier: MIT */
/*
 * task_tree.h - processes and threads, by the kernel's records of tasks
 *
 * The side-band has a record of each fork, exec and exit.  From these follows
 * which process a thread is of, and which processes have the memory of a
 * connection (doc/design/owners.md).  The rings of CPUs are read one after
 * another, so records are applied in the order of time, once a round.
 *
 * A process is kept while one of its threads lives, or anything refers to it.
 * Memory: 16 bytes for each id in the pages of 4,096 ids that living threads
 * have, and 64 bytes for each process.  Without memory a record has no effect.
 *
 * Threads: one.
 */
#pragma once

#include "base/array.h"
#include "wire/perf/perf_record.h"

enum {
	SEAM_TASK_TREE_PAGE = 4096,
	/* Source: PID_MAX_LIMIT, linux/threads.h */
	SEAM_TASK_TREE_MAX_ID = 1 << 22,
	SEAM_TASK_TREE_PAGES = SEAM_TASK_TREE_MAX_ID / SEAM_TASK_TREE_PAGE,
};

/* A process from its fork or exec to its next exec or its end. */
struct seam_tree_process {
	uint32_t pid;
	uint32_t n_threads;		/* that live */
	uint32_t n_children;		/* that have its memory, or theirs do */
	uint32_t n_references;
	uint64_t begin_ns;		/* 0: before the first record */
	uint64_t end_ns;		/* 0: it lives */
	bool has_executed;		/* that ended it */
	/* that forked it; NULL: not known, or it began with an exec */
	struct seam_tree_process *parent;
	/* that executed it; NULL: none, or there was another exec since */
	struct seam_tree_process *before;
};

/* One record: a fork, an exit, or an exec (COMM). */
struct seam_task_event {
	uint64_t order;			/* its time, by the kernel's clock */
	uint64_t time_ns;
	uint32_t type;			/* PERF_RECORD_* */
	uint32_t pid, tid, parent;
};

struct seam_task_tree {
	struct seam_thread_page *pages[SEAM_TASK_TREE_PAGES];
	SEAM_ARRAY(struct seam_task_event) events;	/* not applied yet */
	/* Threads that have ended; those of the round before come first. */
	SEAM_ARRAY(uint32_t) ended;
	size_t n_ended_before;
};

/* Valid on a zeroed struct.  Processes that are referred to stay. */
void seam_task_tree_fini(struct seam_task_tree *t);

/*
 * A record of the side-band, by CLOCK_MONOTONIC at @time_ns, which is the
 * record's time unless that is of another clock.  Ignored if it is of no task.
 */
void seam_task_tree_see(struct seam_task_tree *t,
			const struct seam_perf_sideband *record,
			uint64_t time_ns);

/* Apply the records up to @until_ns of their clock: all of them were seen. */
void seam_task_tree_apply(struct seam_task_tree *t, uint64_t until_ns);

/*
 * The process @pid as it was at @time_ns, not long ago.  It is made where no
 * record names it.  The caller has a reference then; NULL: no memory, or the
 * process was another one before.
 */
struct seam_tree_process *seam_task_tree_get(struct seam_task_tree *t,
					     uint32_t pid, uint64_t time_ns);

/*
 * Process @pid, with a reference for the caller, where there are no records of
 * tasks: one that is not known was forked from @parent just now.  NULL: no
 * memory.
 */
struct seam_tree_process *
seam_task_tree_believe(struct seam_task_tree *t, uint32_t pid,
		       struct seam_tree_process *parent);

/*
 * The process of thread @tid that has or had the memory which @connected got at
 * @since_ns, with a reference for the caller; NULL: none is known.
 */
struct seam_tree_process *
seam_task_tree_owner(struct seam_task_tree *t, uint32_t tid,
		     struct seam_tree_process *connected,
		     uint64_t since_ns);

/*
 * Whether thread @tid of @process has ended; of its first thread, the process:
 * others may write for it.
 */
bool seam_task_tree_has_ended(const struct seam_task_tree *t,
			      const struct seam_tree_process *process,
			      uint32_t tid);

/*
 * Where the record of a fork or an end may have been lost: thread @tid is one
 * of a process that is known, by /proc/TID/status, if it lives; @process ends
 * if the kernel knows it no more.
 */
void seam_task_tree_ask(struct seam_task_tree *t, uint32_t tid);
void seam_task_tree_check(struct seam_task_tree *t,
			  struct seam_tree_process *process);

/* Whether a process lives that has the memory of @process. */
static inline bool
seam_tree_process_has_memory(const struct seam_tree_process *process)
{
	return !process->end_ns || process->n_children;
}

/* Give a reference back; @process may be NULL. */
void seam_tree_process_unref(struct seam_tree_process *process);
