/* SPDX-License-Identifier: MIT */
/* stopped.c - COMM and EXIT without MMAP2 in between; see stopped.h */
#include "record/perf/stopped.h"

#include <linux/perf_event.h>
#include <stdlib.h>

enum {
	/* A slot has the newest of its pids: few are in exec() at once. */
	N_TASKS = 1 << 16,
};

struct seam_stopped_task {
	uint32_t pid;
	char name[16];		/* set by exec() */
	uint64_t exec_ns;	/* of its last exec(); 0: none */
	uint64_t mapped_ns;	/* of the newest mapping */
};

static struct seam_stopped_task *task_of(struct seam_stopped *stopped,
					 uint32_t pid)
{
	struct seam_stopped_task *task = &stopped->tasks[pid % N_TASKS];

	if (task->pid != pid)
		*task = (struct seam_stopped_task) { .pid = pid };
	return task;
}

void seam_stopped_read(struct seam_stopped *stopped,
		       const struct seam_perf_sideband *record)
{
	const struct seam_perf_mapping *mapping = &record->mapping;
	uint64_t ns = record->sample_id.time;
	struct seam_stopped_task *task;

	if (!stopped->tasks)
		stopped->tasks = calloc(N_TASKS, sizeof(*stopped->tasks));
	if (!stopped->tasks)
		return;
	if (record->type == PERF_RECORD_MMAP2 && mapping->pid == mapping->tid) {
		task = task_of(stopped, (uint32_t)mapping->pid);
		if (ns > task->mapped_ns)
			task->mapped_ns = ns;
	} else if (record->type == PERF_RECORD_EXIT &&
		   record->task.pid == record->task.tid) {
		(void)SEAM_ARRAY_ADD(&stopped->exits,
				     (struct seam_stopped_exit) {
				     (uint32_t)record->task.pid, ns });
	} else if (record->type == PERF_RECORD_COMM &&
		   record->comm.pid == record->comm.tid &&
		   record->misc & PERF_RECORD_MISC_COMM_EXEC) {
		task = task_of(stopped, (uint32_t)record->comm.pid);
		if (ns < task->exec_ns)
			return;
		task->exec_ns = ns;
		snprintf(task->name, sizeof(task->name), "%s",
			 record->comm.comm);
	}
}

void seam_stopped_round(struct seam_stopped *stopped, bool is_last,
			struct seam_counts *losses)
{
	size_t n = is_last ? stopped->exits.n : stopped->n_old;

	for (size_t i = 0; i < n; i++) {
		const struct seam_stopped_exit *exit =
			&stopped->exits.items[i];
		const struct seam_stopped_task *task =
			&stopped->tasks[exit->pid % N_TASKS];

		/* nothing was mapped between its exec() and its exit */
		if (task->pid == exit->pid && task->exec_ns &&
		    task->exec_ns <= exit->ns &&
		    task->mapped_ns < task->exec_ns &&
		    losses->n[SEAM_COUNT_PROGRAMS_STOPPED]++ == 0)
			memcpy(losses->stopped, task->name, sizeof(task->name));
	}
	if (n)
		memmove(stopped->exits.items, stopped->exits.items + n,
			(stopped->exits.n - n) *
			sizeof(*stopped->exits.items));
	stopped->exits.n -= n;
	stopped->n_old = stopped->exits.n;
}

void seam_stopped_fini(struct seam_stopped *stopped)
{
	free(stopped->tasks);
	free(stopped->exits.items);
	*stopped = (struct seam_stopped) { 0 };
}
