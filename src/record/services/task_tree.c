/* SPDX-License-Identifier: MIT */
/* task_tree.c - forks, execs, exits, in the order of time; see task_tree.h */
#include "record/services/task_tree.h"

#include <errno.h>
#include <linux/perf_event.h>
#include <signal.h>

#include "base/clock.h"
#include "record/proc/procfs.h"

enum { MAX_DISTANCE = 128 };	/* forks below the process that connected */

/* A thread; zeroed: none. */
struct tree_thread {
	struct seam_tree_process *process;	/* with a reference */
	bool has_ended;
};

struct seam_thread_page {
	uint32_t n;			/* threads in it */
	struct tree_thread threads[SEAM_TASK_TREE_PAGE];
};

/* ---- processes ---- */

static struct seam_tree_process *ref(struct seam_tree_process *process)
{
	process->n_references++;
	return process;
}

void seam_tree_process_unref(struct seam_tree_process *process)
{
	while (process && --process->n_references == 0) {
		struct seam_tree_process *parent = process->parent;

		/* process->before has no before: see apply_exec() */
		seam_tree_process_unref(process->before);
		free(process);
		process = parent;
	}
}

static void set_parent(struct seam_tree_process *process,
		       struct seam_tree_process *parent)
{
	if (!parent || parent->end_ns)
		return;
	process->parent = ref(parent);
	parent->n_children++;
}

static void end_process(struct seam_tree_process *process, uint64_t time_ns)
{
	if (process->end_ns)
		return;
	process->end_ns = time_ns;
	for (; process->parent && !seam_tree_process_has_memory(process);
	     process = process->parent)
		process->parent->n_children--;
}

/* ---- threads ---- */

static struct tree_thread *find(const struct seam_task_tree *t, uint32_t tid)
{
	struct seam_thread_page *page = NULL;
	struct tree_thread *thread;

	if (tid < SEAM_TASK_TREE_MAX_ID)
		page = t->pages[tid / SEAM_TASK_TREE_PAGE];
	if (!page)
		return NULL;
	thread = &page->threads[tid % SEAM_TASK_TREE_PAGE];
	return thread->process ? thread : NULL;
}

static void forget(struct seam_task_tree *t, uint32_t tid)
{
	struct seam_thread_page **page = &t->pages[tid / SEAM_TASK_TREE_PAGE];
	struct tree_thread *thread;

	thread = &(*page)->threads[tid % SEAM_TASK_TREE_PAGE];
	seam_tree_process_unref(thread->process);
	*thread = (struct tree_thread) { 0 };
	if (--(*page)->n)
		return;
	free(*page);
	*page = NULL;
}

/* A thread's claims may be looked for until the next round. */
static void forget_later(struct seam_task_tree *t, uint32_t tid)
{
	/* without memory, set_thread() forgets it when the tid is reused */
	(void)SEAM_ARRAY_ADD(&t->ended, tid);
}

static void end_thread(struct seam_task_tree *t, uint32_t tid, uint64_t time_ns)
{
	struct tree_thread *thread = find(t, tid);
	struct seam_tree_process *process = thread ? thread->process : NULL;

	if (!thread || thread->has_ended)
		return;
	thread->has_ended = true;
	if (tid != process->pid)
		forget_later(t, tid);
	if (process->end_ns || --process->n_threads)
		return;
	end_process(process, time_ns);
	forget_later(t, process->pid);
}

/* From @time_ns on @tid is a thread of @process. */
static void set_thread(struct seam_task_tree *t, uint32_t tid,
		     struct seam_tree_process *process, uint64_t time_ns)
{
	struct seam_thread_page **page = &t->pages[tid / SEAM_TASK_TREE_PAGE];

	if (find(t, tid)) {
		/* the tid is reused: an EXIT not applied so far was lost */
		end_thread(t, tid, time_ns);
		forget(t, tid);
	}
	if (!*page)
		*page = calloc(1, sizeof(**page));
	if (!*page)
		return;
	(*page)->n++;
	(*page)->threads[tid % SEAM_TASK_TREE_PAGE] = (struct tree_thread) {
		.process = ref(process),
	};
}

/* A new process; NULL: no memory. */
static struct seam_tree_process *add_process(struct seam_task_tree *t,
					     uint32_t pid, uint64_t begin_ns)
{
	struct seam_tree_process *process = NULL;

	if (pid && pid < SEAM_TASK_TREE_MAX_ID)
		process = calloc(1, sizeof(*process));
	if (!process)
		return NULL;
	*process = (struct seam_tree_process) {
		.pid = pid, .n_threads = 1, .n_references = 1,
		.begin_ns = begin_ns,
	};
	set_thread(t, pid, process, begin_ns);
	seam_tree_process_unref(process);
	return find(t, pid) ? process : NULL;
}

/* The process that has @pid and lives; NULL: none is known. */
static struct seam_tree_process *living(const struct seam_task_tree *t,
					uint32_t pid)
{
	const struct tree_thread *first = find(t, pid);

	return first && first->process->pid == pid && !first->process->end_ns ?
	       first->process : NULL;
}

/* The same; made where no record names it. */
static struct seam_tree_process *get_process(struct seam_task_tree *t,
					     uint32_t pid)
{
	struct seam_tree_process *process = living(t, pid);

	return process ? process : add_process(t, pid, 0);
}

static void add_thread(struct seam_task_tree *t, uint32_t tid,
		       struct seam_tree_process *process, uint64_t time_ns)
{
	if (!tid || tid >= SEAM_TASK_TREE_MAX_ID)
		return;
	process->n_threads++;
	set_thread(t, tid, process, time_ns);
}

/* ---- records ---- */

/* The process begins anew; its other threads have ended. */
static void apply_exec(struct seam_task_tree *t,
		       const struct seam_task_event *e)
{
	struct seam_tree_process *old = get_process(t, e->pid);
	struct seam_tree_process *process;

	if (!old)
		return;
	ref(old);
	end_process(old, e->time_ns);
	old->has_executed = true;
	seam_tree_process_unref(old->before);
	old->before = NULL;
	process = add_process(t, e->pid, e->time_ns);
	if (process)
		process->before = old;
	else
		seam_tree_process_unref(old);
}

static void apply(struct seam_task_tree *t, const struct seam_task_event *e)
{
	struct seam_tree_process *process;

	if (e->type == PERF_RECORD_EXIT) {
		end_thread(t, e->tid, e->time_ns);
	} else if (e->type == PERF_RECORD_COMM) {
		apply_exec(t, e);
	} else if (e->pid == e->tid) {
		process = add_process(t, e->pid, e->time_ns);
		if (process)
			set_parent(process, get_process(t, e->parent));
	} else {
		process = get_process(t, e->pid);
		if (process)
			add_thread(t, e->tid, process, e->time_ns);
	}
}

void seam_task_tree_see(struct seam_task_tree *t,
			const struct seam_perf_sideband *record,
			uint64_t time_ns)
{
	struct seam_task_event e = {
		.order = record->sample_id.time, .time_ns = time_ns,
		.type = record->type,
	};

	if (record->type == PERF_RECORD_COMM) {
		if (!(record->misc & PERF_RECORD_MISC_COMM_EXEC))
			return;
		e.pid = e.tid = (uint32_t)record->comm.pid;
	} else if (record->type == PERF_RECORD_FORK ||
		   record->type == PERF_RECORD_EXIT) {
		e.pid = (uint32_t)record->task.pid;
		e.tid = (uint32_t)record->task.tid;
		e.parent = (uint32_t)record->task.ppid;
	} else {
		return;
	}
	(void)SEAM_ARRAY_ADD(&t->events, e);
}

static int compare(const void *a, const void *b)
{
	const struct seam_task_event *x = a, *y = b;

	return SEAM_COMPARE(x->order, y->order);
}

/* Threads that had ended before the last round: their claims are known. */
static void forget_ended(struct seam_task_tree *t)
{
	for (size_t i = 0; i < t->n_ended_before; i++) {
		const struct tree_thread *thread = find(t, t->ended.items[i]);

		/* else it is another thread by now */
		if (thread && (thread->has_ended || thread->process->end_ns))
			forget(t, t->ended.items[i]);
	}
	t->ended.n -= t->n_ended_before;
	if (t->n_ended_before && t->ended.n)
		memmove(t->ended.items, t->ended.items + t->n_ended_before,
			t->ended.n * sizeof(*t->ended.items));
	t->n_ended_before = t->ended.n;
}

void seam_task_tree_apply(struct seam_task_tree *t, uint64_t until_ns)
{
	size_t n = 0;

	forget_ended(t);
	SEAM_ARRAY_SORT(&t->events, compare);
	while (n < t->events.n && t->events.items[n].order <= until_ns)
		apply(t, &t->events.items[n++]);
	t->events.n -= n;
	if (n && t->events.n)
		memmove(t->events.items, t->events.items + n,
			t->events.n * sizeof(*t->events.items));
}

/* ---- owners ---- */

struct seam_tree_process *seam_task_tree_get(struct seam_task_tree *t,
					     uint32_t pid, uint64_t time_ns)
{
	struct tree_thread *first = find(t, pid);
	struct seam_tree_process *process;

	process = first && first->process->pid == pid ? first->process :
		  add_process(t, pid, 0);
	while (process && process->begin_ns > time_ns)
		process = process->before;
	return process ? ref(process) : NULL;
}

/* Whether @process is @connected, or was forked from it after @since_ns. */
static bool inherits(const struct seam_tree_process *process,
		     const struct seam_tree_process *connected,
		     uint64_t since_ns)
{
	for (int i = 0; process && i < MAX_DISTANCE; i++) {
		if (process == connected)
			return true;
		if (process->begin_ns <= since_ns)
			return false;
		process = process->parent;
	}
	return false;
}

struct seam_tree_process *
seam_task_tree_owner(struct seam_task_tree *t, uint32_t tid,
		     struct seam_tree_process *connected,
		     uint64_t since_ns)
{
	struct tree_thread *thread = find(t, tid);
	struct seam_tree_process *process = thread ? thread->process : NULL;

	if (tid == connected->pid)
		return ref(connected);
	if (inherits(process, connected, since_ns))
		return ref(process);
	/* it may have executed another program since its claim */
	process = process ? process->before : NULL;
	return inherits(process, connected, since_ns) ? ref(process) : NULL;
}

bool seam_task_tree_has_ended(const struct seam_task_tree *t,
			      const struct seam_tree_process *process,
			      uint32_t tid)
{
	const struct tree_thread *thread = find(t, tid);

	if (process->end_ns || tid == process->pid)
		return process->end_ns;
	return !thread || thread->process != process || thread->has_ended;
}

void seam_task_tree_ask(struct seam_task_tree *t, uint32_t tid)
{
	uint32_t pid = find(t, tid) ? 0 :
		       (uint32_t)seam_targets_process((int)tid);
	struct seam_tree_process *process = living(t, pid);

	if (process && pid != tid)
		add_thread(t, tid, process, seam_clock_ns());
}

void seam_task_tree_check(struct seam_task_tree *t,
			  struct seam_tree_process *process)
{
	const struct tree_thread *first = find(t, process->pid);

	if (process->end_ns || kill((pid_t)process->pid, 0) == 0 ||
	    errno != ESRCH)
		return;
	end_process(process, seam_clock_ns());
	if (first && first->process == process)
		forget_later(t, process->pid);
}

void seam_task_tree_fini(struct seam_task_tree *t)
{
	for (uint32_t page = 0; page < SEAM_ARRAY_SIZE(t->pages); page++)
		/* the page goes with its last thread */
		for (uint32_t i = 0; t->pages[page] &&
		     i < SEAM_TASK_TREE_PAGE; i++)
			if (find(t, page * SEAM_TASK_TREE_PAGE + i))
				forget(t, page * SEAM_TASK_TREE_PAGE + i);
	free(t->events.items);
	free(t->ended.items);
	*t = (struct seam_task_tree) { 0 };
}

struct seam_tree_process *
seam_task_tree_believe(struct seam_task_tree *t, uint32_t pid,
		       struct seam_tree_process *parent)
{
	struct seam_tree_process *process = living(t, pid);

	if (process)
		return ref(process);
	process = add_process(t, pid, seam_clock_ns());
	if (!process)
		return NULL;
	set_parent(process, parent);
	return ref(process);
}
