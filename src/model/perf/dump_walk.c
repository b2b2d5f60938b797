/* SPDX-License-Identifier: MIT */
/* dump_walk.c - from a sample to its callchain; see dump_walk.h */
#include "model/perf/dump_walk.h"

#include <errno.h>
#include <linux/perf_event.h>
#include <stdlib.h>

#include "unwind/walk/precise.h"
#include "unwind/walk/result.h"
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

/* -- how it ended ------------------------------------------------------- */

static enum seam_stack_end end_of(struct seam_dump_walk *w,
				  const struct seam_unwind_stack *stack,
				  const struct recorded *c)
{
	const struct seam_unwind_frame *last = &stack->frames[stack->n - 1];
	enum seam_stack_end end = seam_unwind_stack_end(stack,
							c->rest.is_whole);

	if (end != SEAM_STACK_COMPLETE && !seam_stack_end_is_cut(end) &&
	    seam_code_space_at(&w->space, last->pc - !last->is_interrupted)
		->kind == SEAM_CODE_MISSING)
		return SEAM_STACK_NO_FILE;
	return end;
}

/* Keep what is known of the walk over @stack; SEAM_STACK_ABSENT: of none. */
static void describe(struct seam_dump_walk *w, struct seam_dump_job *job,
		     const struct seam_unwind_stack *stack,
		     enum seam_stack_end end)
{
	size_t n = seam_unwind_write(stack, end, w->cfas, w->raw);
	const size_t head = sizeof(uint32_t);
	const char *copy = seam_arena_text(&w->kept,
					   (const char *)w->raw + head,
					   n - head);

	if (!copy)
		w->error = -ENOMEM;
	job->raw = (struct seam_bytes) { (const uint8_t *)copy, n - head };
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
	c->rest = seam_unwind_kernel_follow(&space, &memory, regs, &c->chain,
					    stack);
}

static void count_kernel_cut(struct seam_dump_walk *w,
			     const struct seam_dump_job *job)
{
	w->counts.n_kernel_cut += recorded_chain(w->dumps, job->sample)
				  .chain.n_kernel > max_chain_of(w, job);
}

static void take_stack(struct seam_dump_walk *w, struct seam_dump_job *job,
		       const struct seam_perf_sample *sample,
		       const struct seam_unwind_registers *regs)
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
	describe(w, job, &stack, end_of(w, &stack, &c));
	job->chain = add_chain(w, sample->pid, &stack, &c);
	if (job->chain == SEAM_NONE)
		w->error = -ENOMEM;
}

void seam_dump_walk_job(struct seam_dump_walk *w, struct seam_dump_job *job)
{
	const struct seam_perf_data *data = w->dumps->data;
	const struct seam_perf_attr *attr =
		&data->events.items[job->event].attr;
	struct seam_unwind_registers regs = { 0 };
	struct seam_perf_sample sample = { .time = 0 };

	job->chain = w->space.needed = SEAM_NONE;
	if (seam_perf_sample_read(attr, data->endian, job->payload, &sample) ==
	    0 && seam_perf_registers_x86_64(&sample.user_regs, regs.value,
					    &regs.known) &&
	    regs.value[SEAM_X86_64_RSP]) {
		if (attr->sample_stack_user > w->counts.dump_bytes)
			w->counts.dump_bytes = attr->sample_stack_user;
		take_stack(w, job, &sample, &regs);
		return;
	}
	describe(w, job, &(struct seam_unwind_stack) { .n = 0 },
		 sample.user_regs.abi == PERF_SAMPLE_REGS_ABI_32 ?
		 SEAM_STACK_OF_32_BIT : SEAM_STACK_ABSENT);
	count_kernel_cut(w, job);
	job->is_done = true;
}

void seam_dump_walk_fini(struct seam_dump_walk *w)
{
	seam_code_space_fini(&w->space);
	seam_callchains_fini(&w->chains);
	free(w->common.items);
	free(w->words.items);
	seam_arena_fini(&w->kept);
}
