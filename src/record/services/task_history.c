/* SPDX-License-Identifier: MIT */
/* task_history.c - forks, execs and exits; see task_history.h */
#include "record/services/task_history.h"

#include <errno.h>
#include <stdlib.h>

#include "base/clock.h"

enum {
	MAX_LIVES = 65536,	/* kept; then the older half is dropped */
	MAX_PIDS = 1 << 22,	/* Source: PID_MAX_LIMIT, linux/threads.h */
	MAX_DISTANCE = 128,	/* from a process to its ancestor */
	DISORDER_S = 10,	/* of records of different CPUs, at most */
};

int seam_task_history_init(struct seam_task_history *h, struct seam_err *err)
{
	h->newest = calloc(MAX_PIDS, sizeof(*h->newest));
	return h->newest ? 0 : seam_err_no_memory(err);
}

void seam_task_history_fini(struct seam_task_history *h)
{
	free(h->processes.items);
	free(h->threads.items);
	free(h->newest);
	*h = (struct seam_task_history) { 0 };
}

/* The newest life of @pid; NULL when none is kept. */
static struct seam_process_life *find(const struct seam_task_history *h,
				      uint32_t pid)
{
	uint32_t number = pid < MAX_PIDS ? h->newest[pid] : 0;

	return number > h->n_dropped ?
	       &h->processes.items[number - h->n_dropped - 1] : NULL;
}

/* The newest life of @pid from now on; NULL: out of memory. */
static struct seam_process_life *push(struct seam_task_history *h, uint32_t pid)
{
	struct seam_process_life *life;

	if (h->processes.n == MAX_LIVES) {
		h->processes.n = MAX_LIVES / 2;
		h->n_dropped += MAX_LIVES / 2;
		memmove(h->processes.items, h->processes.items + MAX_LIVES / 2,
			MAX_LIVES / 2 * sizeof(*life));
	}
	life = SEAM_ARRAY_PUSH(&h->processes);
	if (!life)
		return NULL;
	*life = (struct seam_process_life) { .pid = pid };
	h->newest[pid] = h->n_dropped + (uint32_t)h->processes.n;
	return life;
}

void seam_task_history_fork(struct seam_task_history *h, uint32_t pid,
			    uint32_t parent, uint64_t time_ns)
{
	struct seam_process_life *life = find(h, pid), before = { 0 };

	if (pid >= MAX_PIDS)
		return;
	if (life)
		before = *life;
	life = push(h, pid);
	if (!life)
		return;
	life->parent = parent;
	life->fork_ns = time_ns;
	/* An exec that was seen first is this one's. */
	life->exec_ns = before.exec_ns > time_ns ? before.exec_ns :
			before.last_exec_ns > time_ns ? before.last_exec_ns :
			0;
	life->last_exec_ns = life->exec_ns;
}

void seam_task_history_exec(struct seam_task_history *h, uint32_t pid,
			    uint64_t time_ns)
{
	struct seam_process_life *life = find(h, pid);

	if (!life && pid < MAX_PIDS)
		life = push(h, pid);
	if (!life)
		return;
	if (!life->exec_ns)
		life->exec_ns = time_ns;
	life->last_exec_ns = time_ns;
}

void seam_task_history_thread(struct seam_task_history *h, uint32_t tid,
			      uint32_t pid, uint64_t time_ns)
{
	struct seam_thread_life *life;

	if (h->threads.n == MAX_LIVES) {
		h->threads.n = MAX_LIVES / 2;
		memmove(h->threads.items, h->threads.items + MAX_LIVES / 2,
			MAX_LIVES / 2 * sizeof(*life));
	}
	life = SEAM_ARRAY_PUSH(&h->threads);
	if (life)
		*life = (struct seam_thread_life) {
			.tid = tid, .pid = pid, .seen_ns = time_ns,
		};
}

static bool is_long_before(uint64_t seen_ns, uint64_t time_ns)
{
	return seen_ns && seen_ns + DISORDER_S * SEAM_NS_PER_S < time_ns;
}

bool seam_task_history_is_before(const struct seam_process_life *life,
				 uint64_t time_ns)
{
	return is_long_before(life->fork_ns, time_ns);
}

bool seam_task_history_descends(const struct seam_task_history *h, uint32_t pid,
				uint32_t ancestor)
{
	/* Pids are reused, so the parents may form a circle. */
	for (int i = 0; i < MAX_DISTANCE && pid && pid != ancestor; i++) {
		const struct seam_process_life *life = find(h, pid);

		pid = life ? life->parent : 0;
	}
	return pid == ancestor;
}

/* Whether @life began while @holder had the memory, with no exec between. */
static bool inherits(const struct seam_task_history *h,
		     const struct seam_ring_holder *holder,
		     const struct seam_process_life *life)
{
	const struct seam_process_life *parent;

	for (int i = 0; life && i < MAX_DISTANCE; i++, life = parent) {
		if (life->fork_ns <= holder->since_ns)
			return false;
		if (life->parent == holder->pid)
			return !holder->until_ns ||
			       life->fork_ns <= holder->until_ns;
		parent = find(h, life->parent);
		if (parent && parent->exec_ns &&
		    life->fork_ns >= parent->exec_ns)
			return false;
	}
	return false;
}

bool seam_task_history_has_rings(const struct seam_task_history *h,
				 const struct seam_ring_holder *holder,
				 uint32_t pid, uint64_t *until_ns)
{
	const struct seam_process_life *life = find(h, pid);

	if (pid == holder->pid) {
		*until_ns = holder->until_ns;
		return true;
	}
	*until_ns = life && life->exec_ns ? life->exec_ns - 1 : 0;
	return inherits(h, holder, life);
}

uint32_t seam_task_history_find(const struct seam_task_history *h,
				const struct seam_ring_holder *holder,
				uint32_t tid, uint64_t *until_ns)
{
	const struct seam_process_life *process = find(h, tid);
	uint64_t after_ns = process && process->fork_ns > holder->since_ns ?
			    process->fork_ns : holder->since_ns;

	/* Ids are reused: the newest, and after a process of that id. */
	for (size_t i = h->threads.n; i-- > 0;) {
		const struct seam_thread_life *life = &h->threads.items[i];

		if (is_long_before(life->seen_ns, after_ns))
			break;
		if (life->tid == tid && life->seen_ns > after_ns &&
		    seam_task_history_has_rings(h, holder, life->pid, until_ns))
			return life->pid;
	}
	return seam_task_history_has_rings(h, holder, tid, until_ns) ? tid : 0;
}
