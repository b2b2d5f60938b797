/* SPDX-License-Identifier: MIT */
/* task_times.c - records to states to sums; see task_times.h */
#include "record/counters/task_times.h"

#include "base/hash.h"
#include "record/perf/sources.h"

#include <linux/perf_event.h>

/* Ended threads stay in the table until they are most of it. */
enum { MIN_ENDED = 256 };

static void add(struct seam_task_sums *sums, const struct seam_task_sums *from)
{
	sums->on_ns += from->on_ns;
	sums->blocked_ns += from->blocked_ns;
	sums->preempted_ns += from->preempted_ns;
	sums->n_blocked += from->n_blocked;
	sums->n_preempted += from->n_preempted;
	sums->n_migrations += from->n_migrations;
	sums->read_on_ns += from->read_on_ns;
	sums->wake_ns += from->wake_ns;
}

/* ---- processes ---- */

static uint32_t find_process(const struct seam_task_times *t, int pid)
{
	return SEAM_INDEX_FIND(&t->by_pid, seam_hash_u64((uint32_t)pid), i,
			       t->processes.items[i].pid == pid &&
			       !t->processes.items[i].end_ns);
}

/*
 * The process that lives and has @pid; a new row, or where there are too many
 * the last row, for all others.  SEAM_NONE: no memory.
 */
static uint32_t get_process(struct seam_task_times *t, int pid, uint64_t ns)
{
	struct seam_timed_process process = {
		.pid = pid, .parent = SEAM_NONE, .begin_ns = ns,
	};
	uint32_t i = find_process(t, pid);

	if (i != SEAM_NONE)
		return i;
	if (t->processes.n == SEAM_TASK_MAX_PROCESSES)
		return SEAM_TASK_MAX_PROCESSES - 1;
	if (t->processes.n == SEAM_TASK_MAX_PROCESSES - 1)
		process = (struct seam_timed_process) {
			.name = "(others)", .parent = SEAM_NONE, .begin_ns = ns,
		};
	i = SEAM_INDEX_APPEND(&t->by_pid, seam_hash_u64((uint32_t)pid),
			      &t->processes, process);
	t->no_memory |= i == SEAM_NONE;
	return i;
}

static void set_name(struct seam_timed_process *process, const char *name)
{
	if (process->pid)
		snprintf(process->name, sizeof(process->name), "%s", name);
}

/* ---- threads ---- */

static struct seam_timed_thread *find_thread(const struct seam_task_times *t,
					    int tid)
{
	uint32_t i = SEAM_INDEX_FIND(&t->by_tid, seam_hash_u64((uint32_t)tid),
				     k, t->threads.items[k].tid == tid &&
				     t->threads.items[k].state !=
				     SEAM_TASK_ENDED);

	return i == SEAM_NONE ? NULL : &t->threads.items[i];
}

/* Remove the threads that have ended, once they are most of the table. */
static void compact(struct seam_task_times *t)
{
	size_t n = 0;

	if (t->n_ended < MIN_ENDED || t->n_ended < t->threads.n / 2)
		return;
	seam_index_fini(&t->by_tid);
	for (size_t i = 0; i < t->threads.n; i++) {
		const struct seam_timed_thread thread = t->threads.items[i];

		if (thread.state == SEAM_TASK_ENDED)
			continue;
		t->threads.items[n] = thread;
		t->no_memory |= seam_index_add(&t->by_tid,
			seam_hash_u64((uint32_t)thread.tid), (uint32_t)n) < 0;
		n++;
	}
	t->threads.n = n;
	t->n_ended = 0;
}

/* A new thread, which is in @state; NULL: no memory. */
static struct seam_timed_thread *add_thread(struct seam_task_times *t, int pid,
					   int tid, enum seam_timed_state state,
					   uint64_t ns)
{
	uint32_t process = get_process(t, pid, ns), i;
	struct seam_timed_thread thread = {
		.tid = tid, .process = process, .cpu = UINT32_MAX,
		.state = state, .since_ns = ns,
	};

	if (process == SEAM_NONE)
		return NULL;
	compact(t);
	i = SEAM_INDEX_APPEND(&t->by_tid, seam_hash_u64((uint32_t)tid),
			      &t->threads, thread);
	t->no_memory |= i == SEAM_NONE;
	if (i == SEAM_NONE)
		return NULL;
	t->processes.items[process].n_threads++;
	return &t->threads.items[i];
}

/* Add the time in its state until @ns, from when on it is in @state. */
static void enter(struct seam_timed_thread *thread, enum seam_timed_state state,
		  uint64_t ns)
{
	uint64_t spent = ns > thread->since_ns ? ns - thread->since_ns : 0;

	if (thread->state == SEAM_TASK_ON)
		thread->sums.on_ns += spent;
	else if (thread->state == SEAM_TASK_BLOCKED)
		thread->sums.blocked_ns += spent;
	else
		thread->sums.preempted_ns += spent;
	thread->state = state;
	thread->since_ns = ns > thread->since_ns ? ns : thread->since_ns;
	thread->is_guess = false;
}

static void end_thread(struct seam_task_times *t,
		       struct seam_timed_thread *thread, uint64_t ns)
{
	struct seam_timed_process *process =
		&t->processes.items[thread->process];

	enter(thread, SEAM_TASK_ENDED, ns);
	if (t->on_end)
		t->on_end(t->context, thread);
	add(&process->sums, &thread->sums);
	add(&t->ended, &thread->sums);
	t->n_ended++;
	if (--process->n_threads == 0 && process->pid)
		process->end_ns = ns;
}

/* ---- records ---- */

static void apply_switch(struct seam_task_times *t,
			 const struct seam_task_record *r)
{
	struct seam_timed_thread *thread = find_thread(t, r->tid);
	bool is_out = r->misc & PERF_RECORD_MISC_SWITCH_OUT;
	bool is_preempted = r->misc & PERF_RECORD_MISC_SWITCH_OUT_PREEMPT;

	/* where its fork was not recorded, its life begins here */
	if (!thread)
		thread = add_thread(t, r->pid, r->tid, is_out ? SEAM_TASK_ON :
				    SEAM_TASK_PREEMPTED, r->ns);
	if (!thread)
		return;
	t->n_switches++;
	/* R in /proc is either; the first switch tells which */
	if (thread->is_guess && thread->state != SEAM_TASK_BLOCKED)
		thread->state = is_out ? SEAM_TASK_ON : SEAM_TASK_PREEMPTED;
	if (!is_out) {
		thread->sums.n_migrations += thread->cpu != UINT32_MAX &&
					     thread->cpu != r->cpu;
		thread->cpu = r->cpu;
		enter(thread, SEAM_TASK_ON, r->ns);
		return;
	}
	thread->cpu = r->cpu;
	thread->sums.n_blocked += !is_preempted;
	thread->sums.n_preempted += is_preempted;
	enter(thread, is_preempted ? SEAM_TASK_PREEMPTED : SEAM_TASK_BLOCKED,
	      r->ns);
}

/*
 * An exec ends the other threads of its process.  The thread that executes has
 * the tid of the first from then on, and its own tid has no EXIT record.
 */
static void end_others(struct seam_task_times *t,
		       const struct seam_task_record *r)
{
	uint32_t process = find_process(t, r->pid);

	if (process == SEAM_NONE || t->processes.items[process].n_threads < 2)
		return;
	for (size_t i = 0; i < t->threads.n; i++) {
		struct seam_timed_thread *thread = &t->threads.items[i];

		if (thread->process == process && thread->tid != r->tid &&
		    thread->state != SEAM_TASK_ENDED)
			end_thread(t, thread, r->ns);
	}
}

/* The name of a thread; after an exec, of the process too. */
static void apply_comm(struct seam_task_times *t,
		       const struct seam_task_record *r)
{
	struct seam_timed_thread *thread = find_thread(t, r->tid);
	bool is_exec = r->misc & PERF_RECORD_MISC_COMM_EXEC;

	/* the first record of a command is that of its exec */
	if (!thread)
		thread = add_thread(t, r->pid, r->tid, SEAM_TASK_ON, r->ns);
	else if (is_exec)
		enter(thread, SEAM_TASK_ON, r->ns);
	if (is_exec)
		end_others(t, r);
	if (thread && r->tid == r->pid)
		set_name(&t->processes.items[thread->process], r->name);
}

/* A child process has the name of its parent until it executes another. */
static void apply_fork(struct seam_task_times *t,
		       const struct seam_task_record *r)
{
	struct seam_timed_thread *thread = find_thread(t, r->tid);
	struct seam_timed_process parent = { 0 };
	uint32_t i = find_process(t, r->ppid);

	if (i != SEAM_NONE)
		parent = t->processes.items[i];
	if (thread)
		end_thread(t, thread, r->ns);
	thread = add_thread(t, r->pid, r->tid, SEAM_TASK_PREEMPTED, r->ns);
	if (!thread || r->pid != r->tid)
		return;
	set_name(&t->processes.items[thread->process], parent.name);
	if (i < thread->process)
		t->processes.items[thread->process].parent = i;
}

static void apply(struct seam_task_times *t, const struct seam_task_record *r)
{
	struct seam_timed_thread *thread;

	switch (r->type) {
	case PERF_RECORD_SWITCH:
		apply_switch(t, r);
		break;
	case PERF_RECORD_COMM:
		apply_comm(t, r);
		break;
	case PERF_RECORD_FORK:
		apply_fork(t, r);
		break;
	case PERF_RECORD_EXIT:
		thread = find_thread(t, r->tid);
		if (thread)
			end_thread(t, thread, r->ns);
		break;
	}
}

void seam_task_times_take(struct seam_task_times *t,
			  const struct seam_perf_record *record)
{
	struct seam_task_record r = {
		.type = (uint16_t)record->type, .misc = record->misc,
	};
	struct seam_bytes payload = record->payload;
	struct seam_perf_sample_id id;
	struct seam_perf_sideband sideband;

	if (record->type == PERF_RECORD_SWITCH) {
		if (seam_perf_sample_id_read(&seam_sources_common, SEAM_NATIVE,
					     &payload, &id) < 0)
			return;
		r.pid = id.pid;
		r.tid = id.tid;
		r.cpu = id.cpu;
	} else if (record->type == PERF_RECORD_COMM ||
		   record->type == PERF_RECORD_FORK ||
		   record->type == PERF_RECORD_EXIT) {
		if (seam_perf_sideband_read(&seam_sources_common, SEAM_NATIVE,
					    record, &sideband) < 0)
			return;
		id = sideband.sample_id;
		r.pid = record->type == PERF_RECORD_COMM ? sideband.comm.pid :
			sideband.task.pid;
		r.tid = record->type == PERF_RECORD_COMM ? sideband.comm.tid :
			sideband.task.tid;
		if (record->type == PERF_RECORD_COMM)
			snprintf(r.name, sizeof(r.name), "%s",
				 sideband.comm.comm);
		else
			r.ppid = sideband.task.ppid;
	} else {
		return;
	}
	r.ns = id.time;
	/* synthesized by the recorder, for readers of files */
	if (r.ns == 0)
		return;
	t->no_memory |= !SEAM_ARRAY_ADD(&t->records, r);
}

static int by_time(const void *a, const void *b)
{
	const struct seam_task_record *x = a, *y = b;

	return x->ns < y->ns ? -1 : x->ns > y->ns;
}

void seam_task_times_apply(struct seam_task_times *t, uint64_t until_ns)
{
	size_t n = 0;

	SEAM_ARRAY_SORT(&t->records, by_time);
	for (; n < t->records.n && t->records.items[n].ns < until_ns; n++)
		apply(t, &t->records.items[n]);
	t->records.n -= n;
	if (n)
		memmove(t->records.items, t->records.items + n,
			t->records.n * sizeof(*t->records.items));
}

struct seam_timed_thread *
seam_task_times_begin(struct seam_task_times *t, int pid, int tid,
		      const char *name, char letter, uint64_t ns)
{
	struct seam_timed_thread *thread =
		add_thread(t, pid, tid, letter == 'R' ? SEAM_TASK_ON :
			   SEAM_TASK_BLOCKED, ns);

	if (!thread)
		return NULL;
	thread->is_guess = true;
	if (!t->processes.items[thread->process].name[0])
		set_name(&t->processes.items[thread->process], name);
	return thread;
}

void seam_task_times_end(struct seam_task_times *t, uint64_t ns)
{
	seam_task_times_apply(t, UINT64_MAX);
	for (size_t i = 0; i < t->threads.n; i++)
		if (t->threads.items[i].state != SEAM_TASK_ENDED)
			end_thread(t, &t->threads.items[i], ns);
}

void seam_task_times_fini(struct seam_task_times *t)
{
	free(t->records.items);
	free(t->threads.items);
	free(t->processes.items);
	seam_index_fini(&t->by_tid);
	seam_index_fini(&t->by_pid);
	*t = (struct seam_task_times) { 0 };
}
