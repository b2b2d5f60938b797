/* SPDX-License-Identifier: MIT */
/*
 * task_history.h - the parents of processes, and the processes of threads
 *
 * The FORK, EXIT and COMM (exec) records of the side-band, kept to resolve the
 * owner of a ring that /proc no longer shows: a process has the memory of the
 * rings if it connected, or if it was forked from one that had it, with no
 * exec since; a thread has its process's.
 *
 * Each CPU's records are in order, but those of different CPUs are not: an
 * exec may be seen before the fork, and a thread before its process.
 *
 * Of processes the newest 65,536 are kept, and of threads as many.
 *
 * Threads: one.
 */
#ifndef SEAM_TASK_HISTORY_H
#define SEAM_TASK_HISTORY_H

#include "base/array.h"
#include "base/err.h"

/* A process since its fork. */
struct seam_process_life {
	uint32_t pid, parent;
	uint64_t fork_ns;		/* 0: not seen so far */
	uint64_t exec_ns;		/* the first; 0: none so far */
	uint64_t last_exec_ns;
};

/* A thread, when it was forked and when it ended. */
struct seam_thread_life {
	uint32_t tid, pid;
	uint64_t seen_ns;
};

struct seam_task_history {
	SEAM_ARRAY(struct seam_process_life) processes;	/* oldest first */
	uint32_t n_dropped;		/* processes before the first */
	uint32_t *newest;		/* by pid: a life; 0: none */
	SEAM_ARRAY(struct seam_thread_life) threads;	/* oldest first */
};

/* A process that got a memory of rings. */
struct seam_ring_holder {
	uint32_t pid;
	uint64_t since_ns;
	uint64_t until_ns;		/* 0: still */
};

/* 0 or -ENOMEM.  Cost: 16 MiB of addresses, a page for each pid seen. */
int seam_task_history_init(struct seam_task_history *h, struct seam_err *err);

/* Valid on a zeroed struct. */
void seam_task_history_fini(struct seam_task_history *h);

/* Process @pid was forked from @parent. */
void seam_task_history_fork(struct seam_task_history *h, uint32_t pid,
			    uint32_t parent, uint64_t time_ns);

/* Process @pid executed another program. */
void seam_task_history_exec(struct seam_task_history *h, uint32_t pid,
			    uint64_t time_ns);

/* Thread @tid of process @pid was forked, or ended. */
void seam_task_history_thread(struct seam_task_history *h, uint32_t tid,
			      uint32_t pid, uint64_t time_ns);

/*
 * Whether @life, and so each one that is kept before it, was forked before
 * @time_ns: records of different CPUs are much less apart than this allows.
 */
bool seam_task_history_is_before(const struct seam_process_life *life,
				 uint64_t time_ns);

/* Whether @pid is @ancestor or was forked from it, at any distance. */
bool seam_task_history_descends(const struct seam_task_history *h, uint32_t pid,
				uint32_t ancestor);

/*
 * Whether process @pid had the memory of @holder, and until when (0: still).
 */
bool seam_task_history_has_rings(const struct seam_task_history *h,
				 const struct seam_ring_holder *holder,
				 uint32_t pid, uint64_t *until_ns);

/*
 * The process of thread @tid that had the memory of @holder, and until when
 * (0: still).  0: none is known.
 */
uint32_t seam_task_history_find(const struct seam_task_history *h,
				const struct seam_ring_holder *holder,
				uint32_t tid, uint64_t *until_ns);

#endif /* SEAM_TASK_HISTORY_H */
