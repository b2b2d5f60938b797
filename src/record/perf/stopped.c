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

static void read_exec(struct seam_stopped *stopped, uint32_t pid, uint64_t ns,
		      const char *name)
{
	struct seam_stopped_task *task = task_of(stopped, pid);

	if (ns < task->exec_ns)
		return;
	task->exec_ns = ns;
	snprintf(task->name, sizeof(task->name), "%s", name);
}

static void read_exit(struct seam_stopped *stopped, uint32_t pid, uint64_t ns)
{
	struct seam_stopped_exit *slot = SEAM_ARRAY_PUSH(&stopped->exits);

	if (slot)
		*slot = (struct seam_stopped_exit) { pid, ns };
}

static void read_mapping(struct seam_stopped *stopped, uint32_t pid,
			 uint64_t ns)
{
	struct seam_stopped_task *task = task_of(stopped, pid);

	if (ns > task->mapped_ns)
		task->mapped_ns = ns;
}

void seam_stopped_read(struct seam_stopped *stopped,
		       const struct seam_perf_sideband *record)
{
	uint64_t ns = record->sample_id.time;

	if (!stopped->tasks)
		stopped->tasks = calloc(N_TASKS, sizeof(*stopped->tasks));
	if (!stopped->tasks)
		return;
	switch (record->type) {
	case PERF_RECORD_MMAP2:
		if (record->mapping.pid == record->mapping.tid)
			read_mapping(stopped, (uint32_t)record->mapping.pid,
				     ns);
		break;
	case PERF_RECORD_EXIT:
		if (record->task.pid == record->task.tid)
			read_exit(stopped, (uint32_t)record->task.pid, ns);
		break;
	case PERF_RECORD_COMM:
		if (record->comm.pid == record->comm.tid &&
		    record->misc & PERF_RECORD_MISC_COMM_EXEC)
			read_exec(stopped, (uint32_t)record->comm.pid, ns,
				  record->comm.comm);
		break;
	}
}

/* Count the task if nothing was mapped between its exec() and @exit. */
static void check_exit(const struct seam_stopped *stopped,
		       const struct seam_stopped_exit *exit,
		       struct seam_losses *losses)
{
	const struct seam_stopped_task *task =
		&stopped->tasks[exit->pid % N_TASKS];

	if (task->pid != exit->pid || !task->exec_ns ||
	    task->exec_ns > exit->ns || task->mapped_ns >= task->exec_ns)
		return;
	if (losses->n_stopped++ == 0)
		memcpy(losses->stopped, task->name, sizeof(task->name));
}

void seam_stopped_round(struct seam_stopped *stopped, bool is_last,
			struct seam_losses *losses)
{
	size_t n = is_last ? stopped->exits.n : stopped->n_old;

	for (size_t i = 0; i < n; i++)
		check_exit(stopped, &stopped->exits.items[i], losses);
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
