/* SPDX-License-Identifier: MIT */
/* tasks.c - collect changes, sort, replay; the contract is in tasks.h */
#include "model/perf/tasks.h"

#include <errno.h>
#include <stdlib.h>

#include "base/hash.h"
#include "base/radix_sort.h"

uint32_t seam_tasks_key(struct seam_tasks *tasks, int32_t pid, int32_t tid)
{
	uint64_t hash = seam_hash_u64((uint64_t)(uint32_t)pid << 32 |
				      (uint32_t)tid);
	const struct seam_task *keys = tasks->keys.items;

	return SEAM_INDEX_INTERN(&tasks->key_index, hash, &tasks->keys, i,
		keys[i].pid == pid && keys[i].tid == tid,
		(struct seam_task) { .pid = pid, .tid = tid });
}

/* -- the replay --------------------------------------------------------- */

static struct seam_task_span *last_span(struct seam_tasks *tasks, uint32_t key)
{
	struct seam_task *task = &tasks->keys.items[key];

	return task->spans.n ? &task->spans.items[task->spans.n - 1] : NULL;
}

/* Whether the thread of @span has not ended so far in the replay. */
static bool is_alive(const struct seam_profile *profile,
		     const struct seam_task_span *span)
{
	const struct seam_thread *thread;

	if (!span)
		return false;
	thread = &profile->threads.items[span->thread];
	return thread->end_ns == UINT64_MAX &&
	       profile->processes.items[thread->process].end_ns == UINT64_MAX;
}

static int add_name(struct seam_tasks *tasks, struct seam_profile *profile,
		    uint32_t thread, uint64_t time_ns, uint32_t name)
{
	struct seam_thread *t = &profile->threads.items[thread];
	struct seam_process *p = &profile->processes.items[t->process];

	if (!SEAM_ARRAY_ADD(&tasks->names.items[thread].since,
			    (struct seam_thread_name) { time_ns, name }))
		return -ENOMEM;
	t->name = name;
	if (t->tid == p->pid || p->name == 0)
		p->name = name;
	return 0;
}

/* Memory is reserved first: both tables must stay of one length. */
static uint32_t add_process(struct seam_tasks *tasks,
			    struct seam_profile *profile, int32_t pid,
			    uint64_t time_ns)
{
	uint32_t space;

	if (!SEAM_ARRAY_RESERVE(&profile->processes, 1) ||
	    !SEAM_ARRAY_RESERVE(&tasks->processes, 1))
		return SEAM_NONE;
	space = seam_spaces_add(&tasks->spaces);
	if (space == SEAM_NONE)
		return SEAM_NONE;
	*SEAM_ARRAY_PUSH(&tasks->processes) =
		(struct seam_task_process) { .space = space };
	*SEAM_ARRAY_PUSH(&profile->processes) = (struct seam_process) {
		.pid = pid, .start_ns = time_ns, .end_ns = UINT64_MAX,
		.parent = SEAM_NONE,
	};
	return (uint32_t)(profile->processes.n - 1);
}

/* A thread of @process begins; its key gets a new span. */
static struct seam_task_span *add_thread(struct seam_tasks *tasks,
					 struct seam_profile *profile,
					 uint32_t process, uint32_t key,
					 uint64_t time_ns)
{
	struct seam_task *task = &tasks->keys.items[key];
	struct seam_task_span *span;

	if (!SEAM_ARRAY_RESERVE(&profile->threads, 1) ||
	    !SEAM_ARRAY_RESERVE(&tasks->names, 1) ||
	    !SEAM_ARRAY_RESERVE(&task->spans, 1))
		return NULL;
	*SEAM_ARRAY_PUSH(&tasks->names) = (struct seam_thread_names) { 0 };
	*SEAM_ARRAY_PUSH(&profile->threads) = (struct seam_thread) {
		.process = process, .tid = task->tid, .start_ns = time_ns,
		.end_ns = UINT64_MAX,
	};
	span = SEAM_ARRAY_PUSH(&task->spans);
	*span = (struct seam_task_span) {
		.from_ns = time_ns,
		.thread = (uint32_t)(profile->threads.n - 1),
		.space = tasks->processes.items[process].space,
	};
	tasks->processes.items[process].n_threads++;
	return span;
}

/* The process that @pid means now, begun at @time_ns if it is not known. */
static uint32_t current_process(struct seam_tasks *tasks,
				struct seam_profile *profile, int32_t pid,
				uint64_t time_ns)
{
	uint32_t key = seam_tasks_key(tasks, pid, pid);
	struct seam_task_span *span = key == SEAM_NONE ? NULL :
				      last_span(tasks, key);
	uint32_t process;

	if (key == SEAM_NONE)
		return SEAM_NONE;
	if (span)
		return profile->threads.items[span->thread].process;
	process = add_process(tasks, profile, pid, time_ns);
	if (process == SEAM_NONE ||
	    !add_thread(tasks, profile, process, key, time_ns))
		return SEAM_NONE;
	return process;
}

/* The thread that (@pid, @tid) means now, begun at @time_ns if not known. */
static struct seam_task_span *current_thread(struct seam_tasks *tasks,
					     struct seam_profile *profile,
					     int32_t pid, int32_t tid,
					     uint64_t time_ns)
{
	uint32_t process = current_process(tasks, profile, pid, time_ns);
	uint32_t key = process == SEAM_NONE ? SEAM_NONE :
		       seam_tasks_key(tasks, pid, tid);
	struct seam_task_span *span;

	if (key == SEAM_NONE)
		return NULL;
	span = last_span(tasks, key);
	return span ? span :
	       add_thread(tasks, profile, process, key, time_ns);
}

static int replay_fork(struct seam_tasks *tasks, struct seam_profile *profile,
		       const struct seam_change *c)
{
	uint32_t key = seam_tasks_key(tasks, c->pid, c->tid);
	struct seam_task_span *parent =
		current_thread(tasks, profile, c->ppid, c->ptid, c->time_ns);
	struct seam_task_span *child = key == SEAM_NONE ? NULL :
				       last_span(tasks, key);
	uint32_t process, parent_process, parent_space, parent_name;
	bool is_known;

	if (key == SEAM_NONE || !parent)
		return -ENOMEM;
	parent_process = profile->threads.items[parent->thread].process;
	parent_space = parent->space;
	parent_name = profile->threads.items[parent->thread].name;
	is_known = is_alive(profile, child);
	process = is_known ? profile->threads.items[child->thread].process :
		  SEAM_NONE;
	/* Synthesized at the start of the recording, for a known thread. */
	if (is_known && c->time_ns == 0) {
		if (c->pid != c->ppid)
			profile->processes.items[process].parent =
				parent_process;
		return 0;
	}
	if (c->pid == c->ppid) {
		process = parent_process;
	} else {
		if (is_known)
			profile->processes.items[process].end_ns = c->time_ns;
		process = add_process(tasks, profile, c->pid, c->time_ns);
		if (process == SEAM_NONE ||
		    seam_spaces_copy(&tasks->spaces,
				     tasks->processes.items[process].space,
				     parent_space, c->time_ns))
			return -ENOMEM;
		profile->processes.items[process].parent = parent_process;
	}
	child = add_thread(tasks, profile, process, key, c->time_ns);
	return child ? add_name(tasks, profile, child->thread, c->time_ns,
				parent_name) : -ENOMEM;
}

static int replay_one(struct seam_tasks *tasks, struct seam_profile *profile,
		      const struct seam_change *c)
{
	struct seam_task_span *span;
	struct seam_thread *thread;
	uint32_t *n;

	if (c->kind == SEAM_CHANGE_FORK)
		return replay_fork(tasks, profile, c);
	if (c->kind == SEAM_CHANGE_KERNEL)
		return seam_spaces_map(&tasks->kernel, 0, c->time_ns, c->addr,
				       c->addr + c->len, c->mapping);
	span = current_thread(tasks, profile, c->pid, c->tid, c->time_ns);
	if (!span)
		return -ENOMEM;
	switch (c->kind) {
	case SEAM_CHANGE_EXIT:
		thread = &profile->threads.items[span->thread];
		n = &tasks->processes.items[thread->process].n_threads;
		/* a process ends with its last thread */
		if (thread->end_ns == UINT64_MAX && *n && --*n == 0)
			profile->processes.items[thread->process].end_ns =
				c->time_ns;
		thread->end_ns = c->time_ns;
		return 0;
	case SEAM_CHANGE_EXEC:
		/* other threads have ended; this has the process's tid */
		thread = &profile->threads.items[span->thread];
		thread->end_ns = UINT64_MAX;
		tasks->processes.items[thread->process].n_threads = 1;
		if (seam_spaces_clear(&tasks->spaces, span->space, c->time_ns))
			return -ENOMEM;
		/* fall through */
	case SEAM_CHANGE_NAME:
		return add_name(tasks, profile, span->thread, c->time_ns,
				c->name);
	case SEAM_CHANGE_MAP:
		return seam_spaces_map(&tasks->spaces, span->space,
				       c->time_ns, c->addr, c->addr + c->len,
				       c->mapping);
	case SEAM_CHANGE_FORK:
	case SEAM_CHANGE_KERNEL:
		break;
	}
	return 0;
}

int seam_tasks_seal(struct seam_tasks *tasks, struct seam_profile *profile)
{
	size_t n_seen = tasks->keys.n;
	int r = SEAM_RADIX_SORT(&tasks->changes, time_ns);

	for (size_t i = 0; r == 0 && i < tasks->changes.n; i++)
		r = replay_one(tasks, profile, &tasks->changes.items[i]);
	/* Samples of threads without a record. */
	for (size_t i = 0; r == 0 && i < n_seen; i++)
		if (!current_thread(tasks, profile, tasks->keys.items[i].pid,
				    tasks->keys.items[i].tid, 0))
			r = -ENOMEM;
	/* no thread outlives its process */
	for (size_t i = 0; i < profile->threads.n; i++) {
		struct seam_thread *t = &profile->threads.items[i];
		uint64_t end = profile->processes.items[t->process].end_ns;

		if (end < t->end_ns)
			t->end_ns = end < t->start_ns ? t->start_ns : end;
	}
	free(tasks->changes.items);
	tasks->changes.items = NULL;
	tasks->changes.n = tasks->changes.cap = 0;
	if (r == 0)
		r = seam_spaces_seal(&tasks->spaces);
	return r ? r : seam_spaces_seal(&tasks->kernel);
}

/* -- look-up ------------------------------------------------------------ */

static uint64_t from_ns(const void *items, size_t size, size_t i)
{
	uint64_t ns;

	memcpy(&ns, (const char *)items + i * size, sizeof(ns));
	return ns;
}

/*
 * Of @n elements of @size bytes that begin with their from_ns, the last one
 * from @time_ns or earlier; the first when @time_ns is before all.  @n is not
 * 0.  The time in which @at holds is narrowed accordingly.
 */
static size_t last_since(const void *items, size_t n, size_t size,
			 uint64_t time_ns, struct seam_task_at *at)
{
	size_t last = SEAM_ARRAY_SEARCH(i, n - 1,
			from_ns(items, size, i + 1) <= time_ns);

	if (last > 0 && from_ns(items, size, last) > at->from_ns)
		at->from_ns = from_ns(items, size, last);
	if (last + 1 < n && from_ns(items, size, last + 1) < at->to_ns)
		at->to_ns = from_ns(items, size, last + 1);
	return last;
}

/* The name from then on, which narrows the time in which @at holds. */
static uint32_t name_at(const struct seam_tasks *tasks, uint32_t thread,
			uint64_t time_ns, struct seam_task_at *at)
{
	const struct seam_thread_names *t = &tasks->names.items[thread];

	return t->since.n ? t->since.items[last_since(t->since.items,
			t->since.n, sizeof(*t->since.items), time_ns,
			at)].name : 0;
}

uint32_t seam_tasks_name(const struct seam_tasks *tasks, uint32_t thread,
			 uint64_t time_ns)
{
	struct seam_task_at at = { .to_ns = UINT64_MAX };

	return name_at(tasks, thread, time_ns, &at);
}

struct seam_task_at seam_tasks_find(const struct seam_tasks *tasks,
				    uint32_t key, uint64_t time_ns)
{
	const struct seam_task *task = &tasks->keys.items[key];
	struct seam_task_at at = { .key = key, .to_ns = UINT64_MAX };
	const struct seam_task_span *span = &task->spans.items[last_since(
		task->spans.items, task->spans.n, sizeof(*span), time_ns,
		&at)];

	at.thread = span->thread;
	at.space = span->space;
	at.name = name_at(tasks, span->thread, time_ns, &at);
	return at;
}

void seam_tasks_fini(struct seam_tasks *tasks)
{
	for (size_t i = 0; i < tasks->keys.n; i++)
		free(tasks->keys.items[i].spans.items);
	for (size_t i = 0; i < tasks->names.n; i++)
		free(tasks->names.items[i].since.items);
	free(tasks->changes.items);
	free(tasks->keys.items);
	free(tasks->names.items);
	free(tasks->processes.items);
	seam_index_fini(&tasks->key_index);
	seam_spaces_fini(&tasks->spaces);
	seam_spaces_fini(&tasks->kernel);
	*tasks = (struct seam_tasks) { 0 };
}
