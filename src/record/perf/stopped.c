/* SPDX-License-Identifier: MIT */
/* stopped.c - a name, an end, and no mapping between; see stopped.h */
#include "record/perf/stopped.h"

#include "base/cursor.h"

#include <linux/perf_event.h>
#include <stdlib.h>

enum {
	/* Of processes at once in the middle of exec(); by their pids. */
	N_TASKS = 1 << 16,
	/* Behind each record: tid, time, cpu, identifier; see SAMPLE_TYPE. */
	TRAILER_TIME_POS = 8 + 8 + 8,
};

struct seam_stopped_task {
	uint32_t pid;
	char name[12];		/* that exec() gave, or its beginning */
	uint64_t exec_ns;	/* 0: none seen */
	uint64_t mapped_ns;	/* the last mapping */
};

static struct seam_stopped_task *task_of(struct seam_stopped *stopped,
					 uint32_t pid)
{
	struct seam_stopped_task *task = &stopped->tasks[pid % N_TASKS];

	if (task->pid != pid)
		*task = (struct seam_stopped_task) { .pid = pid };
	return task;
}

static uint64_t time_of(const struct seam_ring_header *record)
{
	uint64_t ns = 0;

	if (record->size >= sizeof(*record) + TRAILER_TIME_POS)
		memcpy(&ns, (const uint8_t *)record + record->size -
		       TRAILER_TIME_POS, sizeof(ns));
	return ns;
}

static void see_exec(struct seam_stopped *stopped, uint32_t pid, uint64_t ns,
		     const char *name)
{
	struct seam_stopped_task *task = task_of(stopped, pid);

	if (ns < task->exec_ns)
		return;
	task->exec_ns = ns;
	snprintf(task->name, sizeof(task->name), "%s", name);
}

static void see_end(struct seam_stopped *stopped, uint32_t pid, uint64_t ns)
{
	struct seam_stopped_end *end = SEAM_ARRAY_PUSH(&stopped->ends);

	if (end)
		*end = (struct seam_stopped_end) { pid, ns };
}

void seam_stopped_see(struct seam_stopped *stopped,
		      const struct seam_ring_header *record)
{
	struct seam_cursor c = seam_cursor_make(record, record->size,
						SEAM_LITTLE);
	uint64_t ns = time_of(record);
	uint32_t pid, tid;

	if (record->type != PERF_RECORD_COMM &&
	    record->type != PERF_RECORD_MMAP2 &&
	    record->type != PERF_RECORD_EXIT)
		return;
	if (!stopped->tasks)
		stopped->tasks = calloc(N_TASKS, sizeof(*stopped->tasks));
	if (!stopped->tasks)
		return;
	seam_cursor_skip(&c, sizeof(*record));
	pid = seam_cursor_u32(&c);
	tid = seam_cursor_u32(&c);
	if (record->type == PERF_RECORD_EXIT)
		tid = seam_cursor_u32(&c);	/* behind the parent's pid */
	if (c.error || pid != tid)
		return;
	if (record->type == PERF_RECORD_MMAP2) {
		struct seam_stopped_task *task = task_of(stopped, pid);

		if (ns > task->mapped_ns)
			task->mapped_ns = ns;
	} else if (record->type == PERF_RECORD_EXIT) {
		see_end(stopped, pid, ns);
	} else if (record->misc & PERF_RECORD_MISC_COMM_EXEC) {
		see_exec(stopped, pid, ns, seam_cursor_cstr(&c));
	}
}

/* Whether the task ended in the middle of its exec(). */
static void judge(struct seam_stopped *stopped,
		  const struct seam_stopped_end *end)
{
	const struct seam_stopped_task *task =
		&stopped->tasks[end->pid % N_TASKS];

	if (task->pid != end->pid || !task->exec_ns ||
	    task->exec_ns > end->ns || task->mapped_ns >= task->exec_ns)
		return;
	if (stopped->n_programs++ == 0)
		memcpy(stopped->first, task->name, sizeof(task->name));
}

void seam_stopped_round(struct seam_stopped *stopped, bool is_last)
{
	size_t n = is_last ? stopped->ends.n : stopped->n_old;

	for (size_t i = 0; i < n; i++)
		judge(stopped, &stopped->ends.items[i]);
	if (n)
		memmove(stopped->ends.items, stopped->ends.items + n,
			(stopped->ends.n - n) * sizeof(*stopped->ends.items));
	stopped->ends.n -= n;
	stopped->n_old = stopped->ends.n;
}

void seam_stopped_fini(struct seam_stopped *stopped)
{
	free(stopped->tasks);
	free(stopped->ends.items);
	*stopped = (struct seam_stopped) { 0 };
}
