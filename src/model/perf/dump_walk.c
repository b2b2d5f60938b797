/* SPDX-License-Identifier: MIT */
/* dump_walk.c - from a sample to its callchain; see dump_walk.h */
#include "model/perf/dump_walk.h"

#include <errno.h>
#include <linux/perf_event.h>
#include <stdlib.h>

#include "unwind/walk/count.h"
#include "unwind/walk/precise.h"
#include "wire/perf/perf_registers.h"

#define USER ((uint64_t)PERF_CONTEXT_USER)

/* -- the recorded callchain --------------------------------------------- */

/* The sample's chain as it was recorded. */
struct recorded {
	struct seam_unwind_chain chain;
	struct seam_unwind_rest rest;	/* of its user part, what goes on */
};

static struct recorded recorded_chain(const struct seam_stack_dumps *dumps,
				      uint32_t sample)
{
	const struct seam_callchain *chain = &dumps->chains->items.items[
		dumps->profile->samples.stack[sample]];

	return (struct recorded) {
		.chain = seam_unwind_chain_of(dumps->chains->words.items +
					      chain->first, chain->n),
	};
}

/* -- counts ------------------------------------------------------------- */

/* A stack ended early in JIT code (@i 0) or in module @i - 1. */
static void count_early(struct seam_dump_walk *w, size_t i,
			enum seam_stack_end end)
{
	size_t at = i * SEAM_STACK_N_ENDS + end;

	if (SEAM_ARRAY_GROW(&w->early, at + 1))
		w->early.items[at]++;
	else
		w->error = -ENOMEM;
}

/* Where the outermost frame that is known is. */
static const struct seam_code_at *
end_of(struct seam_dump_walk *w, const struct seam_unwind_stack *stack)
{
	const struct seam_unwind_frame *frame = &stack->frames[stack->n - 1];

	return seam_code_space_at(&w->space,
				  frame->pc - !frame->is_interrupted);
}

static bool is_jvm(const struct seam_dump_walk *w)
{
	size_t i = SEAM_ARRAY_SEARCH(k, w->n_jvms,
				     w->jvms[k] < w->space.pid);

	return i < w->n_jvms && w->jvms[i] == w->space.pid;
}

static void count_stack(struct seam_dump_walk *w,
			const struct seam_unwind_stack *stack,
			const struct recorded *c, size_t n_joined)
{
	enum seam_stack_end end = seam_unwind_counted_end(
		(enum seam_unwind_end)stack->end);
	const struct seam_code_at *at;

	w->counts.n_frames[SEAM_STACK_BY_JOIN] += n_joined;
	w->counts.n_frames[SEAM_STACK_BY_KERNEL] += n_joined ? 0 : c->rest.n;
	w->counts.n_joined += n_joined > 0;
	w->counts.n_continued += c->rest.is_whole;
	if (n_joined || c->rest.is_whole)
		end = SEAM_STACK_COMPLETE;
	if (end != SEAM_STACK_COMPLETE && end != SEAM_STACK_TRUNCATED) {
		at = end_of(w, stack);
		if (at->kind == SEAM_CODE_MISSING)
			end = SEAM_STACK_NO_FILE;
		if (at->kind != SEAM_CODE_NONE)
			count_early(w, at->kind == SEAM_CODE_JIT ? 0 :
				    (size_t)at->id + 1, end);
	}
	w->counts.n_ended[end]++;
	if (end != SEAM_STACK_COMPLETE && is_jvm(w))
		w->counts.n_jvm++;
}

void seam_dump_walk_count(const struct seam_dump_walk *w,
			  struct seam_stack_counts *counts)
{
	const struct seam_profile *p = w->dumps->profile;

	seam_stack_counts_merge(counts, &w->counts);
	for (size_t i = 0; i < w->early.n; i++) {
		size_t module = i / SEAM_STACK_N_ENDS;

		if (w->early.items[i])
			seam_stack_counts_add_module(counts,
				(enum seam_stack_end)(i % SEAM_STACK_N_ENDS),
				module ? seam_profile_path(p,
						(uint32_t)module - 1) :
				"[jit]", w->early.items[i]);
	}
}

/* -- callchains --------------------------------------------------------- */

/* The chain of @stack; SEAM_NONE: no memory. */
static uint32_t add_chain(struct seam_dump_walk *w, int32_t pid,
			  const struct seam_unwind_stack *stack,
			  const struct recorded *c)
{
	size_t n = c->chain.n_kernel;
	uint64_t *words;

	w->words.n = 0;
	if (!SEAM_ARRAY_RESERVE(&w->words, n + 1 + stack->n + c->rest.n))
		return SEAM_NONE;
	words = w->words.items;
	if (n)
		memcpy(words, c->chain.words, 8 * n);
	words[n++] = USER;
	for (size_t i = 0; i < stack->n; i++)
		words[n++] = stack->frames[i].pc;
	/* a precise event names its own instruction */
	if (c->chain.n_kernel == 0 && c->chain.n_user)
		words[1] = c->chain.user[0];
	if (c->rest.n)
		memcpy(words + n, c->chain.user + c->rest.first,
		       8 * c->rest.n);
	return seam_callchains_add(&w->chains, pid, words, n + c->rest.n);
}

/* -- samples ------------------------------------------------------------ */

/* The walk is in the process and at the time of @sample. */
static void enter(struct seam_dump_walk *w, uint32_t sample, int32_t pid)
{
	const struct seam_samples *s = &w->dumps->profile->samples;

	if (!seam_task_at_holds(&w->at, s->thread[sample],
				s->time_ns[sample]))
		w->at = seam_tasks_find(w->dumps->tasks, s->thread[sample],
					s->time_ns[sample]);
	seam_code_space_enter(&w->space, w->at.space, pid, s->time_ns[sample]);
}

/* The limit of a chain that the kernel made, in addresses. */
static size_t max_chain_of(const struct seam_dump_walk *w,
			   const struct seam_dump_job *job)
{
	uint16_t max = w->dumps->data->events.items[job->event]
		       .attr.sample_max_stack;

	return max ? max : PERF_MAX_STACK_DEPTH;
}

/* Walk, and find where the recorded chain @c goes on. */
static void walk(struct seam_dump_walk *w, const struct seam_dump_job *job,
		 const struct seam_perf_sample *sample,
		 const struct seam_unwind_registers *regs,
		 struct seam_unwind_stack *stack, struct recorded *c)
{
	const struct seam_unwind_space space =
		seam_code_space_for_walk(&w->space);
	const struct seam_unwind_memory memory = {
		.stack = sample->user_stack.data,
		.stack_addr = regs->value[SEAM_X86_64_RSP],
		.stack_bytes = sample->user_stack.size,
	};

	*stack = (struct seam_unwind_stack) {
		.frames = w->frames, .max = SEAM_DUMP_MAX_FRAMES,
	};
	seam_unwind_walk_sample(&space, &memory, regs, job->misc, stack);
	c->rest = seam_unwind_kernel_follow(&space, stack, c->chain.user,
		c->chain.n_user,
		seam_unwind_chain_is_cut(&c->chain, max_chain_of(w, job)));
}

/* Count the stack, of which @n_joined frames are of others; its chain. */
static void finish(struct seam_dump_walk *w, struct seam_dump_job *job,
		   const struct seam_unwind_stack *stack, struct recorded *c,
		   size_t n_joined)
{
	count_stack(w, stack, c, n_joined);
	if (n_joined)
		c->rest.n = 0;
	job->chain = add_chain(w, job->pid, stack, c);
	if (job->chain == SEAM_NONE)
		w->error = -ENOMEM;
}

/* Keep the frames for seam_dump_walk_join().  False: there is no room. */
static bool keep(struct seam_dump_walk *w, struct seam_dump_job *job,
		 const struct seam_unwind_stack *stack)
{
	size_t first = w->kept.n;

	if (first + stack->n > SEAM_DUMP_MAX_KEPT ||
	    !SEAM_ARRAY_EXTEND(&w->kept, stack->frames, stack->n))
		return false;
	job->first_frame = (uint32_t)first;
	job->n_frames = (uint32_t)stack->n;
	job->end = stack->end;
	return true;
}

static void count_kernel_cut(struct seam_dump_walk *w,
			     const struct seam_dump_job *job)
{
	w->counts.n_kernel_cut += recorded_chain(w->dumps, job->sample)
				  .chain.n_kernel > max_chain_of(w, job);
}

static void take_stack(struct seam_dump_walk *w, struct seam_dump_job *job,
		       const struct seam_perf_sample *sample,
		       const struct seam_unwind_registers *regs,
		       size_t copy_bytes)
{
	struct recorded c = recorded_chain(w->dumps, job->sample);
	struct seam_unwind_stack stack;

	enter(w, job->sample, sample->pid);
	walk(w, job, sample, regs, &stack, &c);
	if (w->space.error) {
		w->error = w->space.error;
		return;
	}
	if (w->space.needed != SEAM_NONE)
		return;
	count_kernel_cut(w, job);
	job->is_done = true;
	job->pid = sample->pid;
	job->tid = sample->tid;
	job->rest = c.rest;
	seam_unwind_count_frames(&w->counts, &stack);
	job->is_cut = seam_stack_joins_want(&stack, copy_bytes) &&
		      keep(w, job, &stack) &&
		      stack.end == SEAM_UNWIND_TRUNCATED && !c.rest.is_whole;
	if (!job->is_cut)
		finish(w, job, &stack, &c, 0);
}

/* The stack of @job, in the walker's frames. */
static struct seam_unwind_stack kept_stack(struct seam_dump_walk *w,
					   const struct seam_dump_job *job)
{
	memcpy(w->frames, w->kept.items + job->first_frame,
	       job->n_frames * sizeof(*w->frames));
	return (struct seam_unwind_stack) {
		.frames = w->frames, .max = SEAM_DUMP_MAX_FRAMES,
		.n = job->n_frames, .end = job->end,
	};
}

static void complete(struct seam_dump_walk *w, struct seam_dump_job *job,
		     struct seam_stack_joins *joins, bool is_last_try,
		     struct seam_unwind_stack *stack)
{
	size_t n = seam_stack_joins_complete(joins, job->tid, is_last_try,
					     stack);
	struct recorded c;

	if (n == 0 && !is_last_try)
		return;
	w->counts.n_joined_later += is_last_try && n > 0;
	c = recorded_chain(w->dumps, job->sample);
	c.rest = job->rest;
	enter(w, job->sample, job->pid);
	finish(w, job, stack, &c, n);
	job->is_cut = false;
}

void seam_dump_walk_join(struct seam_dump_walk *w, struct seam_dump_job *job,
			 struct seam_stack_joins *joins)
{
	struct seam_unwind_stack stack;

	if (!job->n_frames)
		return;
	stack = kept_stack(w, job);
	seam_stack_joins_learn(joins, job->tid, &stack);
	if (job->is_cut)
		complete(w, job, joins, false, &stack);
}

void seam_dump_walk_join_again(struct seam_dump_walk *w,
			       struct seam_dump_job *job,
			       struct seam_stack_joins *joins)
{
	struct seam_unwind_stack stack;

	if (!job->is_cut)
		return;
	stack = kept_stack(w, job);
	complete(w, job, joins, true, &stack);
}

void seam_dump_walk_job(struct seam_dump_walk *w, struct seam_dump_job *job)
{
	const struct seam_perf_data *data = w->dumps->data;
	const struct seam_perf_attr *attr =
		&data->events.items[job->event].attr;
	struct seam_unwind_registers regs = { 0 };
	struct seam_perf_sample sample = { .time = 0 };

	job->chain = w->space.needed = SEAM_NONE;
	job->n_frames = 0;
	job->is_cut = false;
	if (seam_perf_sample_read(attr, data->endian, job->payload, &sample) ==
	    0 && sample.user_stack.size &&
	    seam_perf_registers_x86_64(&sample.user_regs, regs.value,
				       &regs.known)) {
		if (attr->sample_stack_user > w->counts.dump_bytes)
			w->counts.dump_bytes = attr->sample_stack_user;
		take_stack(w, job, &sample, &regs, attr->sample_stack_user);
		return;
	}
	if (sample.user_regs.abi == PERF_SAMPLE_REGS_ABI_32)
		w->counts.n_32_bit++;
	else
		w->counts.n_empty++;
	count_kernel_cut(w, job);
	job->is_done = true;
}

void seam_dump_walk_fini(struct seam_dump_walk *w)
{
	seam_code_space_fini(&w->space);
	seam_callchains_fini(&w->chains);
	free(w->common.items);
	free(w->early.items);
	free(w->words.items);
	free(w->kept.items);
}
