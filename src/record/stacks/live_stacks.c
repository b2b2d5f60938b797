/* SPDX-License-Identifier: MIT */
/* live_stacks.c - one sample: maps, walk, chain; see live_stacks.h */
#include "record/stacks/live_stacks.h"

#include "base/clock.h"
#include "record/stacks/sample_chain.h"
#include "record/stacks/sample_code.h"
#include "unwind/walk/kernel_chain.h"
#include "unwind/walk/precise.h"
#include "unwind/walk/result.h"
#include "wire/perf/perf_registers.h"

#include <errno.h>
#include <linux/perf_event.h>
#include <stdlib.h>

#define DUMPS (PERF_SAMPLE_REGS_USER | PERF_SAMPLE_STACK_USER)

/* The code for one walk, and the walk's results. */
struct view {
	struct seam_live_stacks *stacks;
	struct seam_sample_code code;
	uint16_t misc;		/* of the sample's header */
	enum seam_stack_end end;	/* .code.no_file after the walk */
	struct seam_unwind_rest rest;	/* of the kernel's chain */
};

static struct view view_of(struct seam_live_stacks *stacks,
			   struct seam_process_map *map, bool is_last_try)
{
	return (struct view) {
		.stacks = stacks,
		.code = { .files = &stacks->files, .jits = &stacks->jit,
			  .map = map, .is_last_try = is_last_try },
	};
}

/* ---- one stack ---- */

static struct seam_unwind_chain
chain_of(const struct seam_perf_sample *sample)
{
	return seam_unwind_chain_of((const void *)sample->callchain.data,
				    sample->callchain.n);
}

/* Append the addresses of the kernel's chain that go on. */
static void append_kernel(struct seam_unwind_stack *stack,
			  const struct seam_unwind_chain *chain,
			  const struct seam_unwind_rest *rest)
{
	for (size_t i = 0; i < rest->n && stack->n < stack->max; i++)
		stack->frames[stack->n++] = (struct seam_unwind_frame) {
			.pc = chain->user[rest->first + i],
			.quality = SEAM_UNWIND_BY_FRAME_POINTER,
		};
}

static const char *path_of(const struct view *v, uint64_t pc)
{
	const struct seam_process_mapping *m =
		v->code.map ? seam_process_map_at(v->code.map, pc) : NULL;

	return !m ? NULL : m->file == SEAM_NONE ? "[jit]" :
	       v->stacks->files.mappings.items[m->file].path;
}

/* Count the stack: its end. */
static enum seam_stack_end count(const struct view *v,
				 const struct seam_unwind_stack *stack)
{
	struct seam_stack_counts *counts = v->stacks->counts;
	enum seam_stack_end end = seam_unwind_stack_end(stack,
							v->rest.is_whole);

	if (end == SEAM_STACK_WITHOUT_CFI)
		end = v->end;
	seam_stack_counts_add(counts, end, end == SEAM_STACK_COMPLETE ? NULL :
			      path_of(v, stack->end_pc));
	counts->n_jvm += end != SEAM_STACK_COMPLETE && v->code.map &&
			 v->code.map->flags & SEAM_LIVE_IS_JVM;
	return end;
}

/* False: a file is not read yet, and this is not the last try. */
static bool walk(struct view *v, const struct seam_perf_sample *sample,
		 const struct seam_unwind_chain *chain,
		 const struct seam_unwind_registers *regs,
		 struct seam_unwind_stack *stack)
{
	const struct seam_unwind_space space =
		seam_sample_code_space(&v->code);
	const struct seam_unwind_memory memory = {
		.stack = sample->user_stack.data,
		.stack_addr = regs->value[SEAM_X86_64_RSP],
		.stack_bytes = sample->user_stack.size,
	};

	*stack = (struct seam_unwind_stack) {
		.frames = v->stacks->frames, .max = SEAM_LIVE_MAX_FRAMES,
	};
	seam_unwind_walk_sample(&space, &memory, regs, v->misc, stack);
	v->end = v->code.no_file;
	v->rest = seam_unwind_kernel_follow(&space, &memory, regs, chain,
					    stack);
	/* a precise event names its own instruction */
	if (chain->n_kernel == 0 && chain->n_user)
		stack->frames[0].pc = chain->user[0];
	return !v->code.is_pending || v->code.is_last_try;
}

/* ---- records ---- */

/* Append a record with @chain. */
static void append(struct seam_live_stacks *stacks, uint32_t event,
		   const struct seam_sample_chain *chain)
{
	size_t bytes = seam_sample_chain_bytes(chain);
	uint8_t *to;

	if (!SEAM_ARRAY_RESERVE(&stacks->out, bytes)) {
		stacks->n_dropped++;
		return;
	}
	to = stacks->out.items + stacks->out.n;
	stacks->out.n += bytes;
	seam_sample_chain_write(chain, to);
	if (stacks->on_sample)
		stacks->on_sample(stacks->context, event, to);
}

/* The registers of a sample whose stack can be unwound; else why not. */
static enum seam_stack_end read_registers(const struct seam_perf_sample *sample,
					  struct seam_unwind_registers *regs)
{
	*regs = (struct seam_unwind_registers) { .known = 0 };
	/* within exec() they are 0; a page fault may leave the copy empty */
	if (seam_perf_registers_x86_64(&sample->user_regs, regs->value,
				       &regs->known) &&
	    regs->value[SEAM_X86_64_RSP])
		return SEAM_STACK_COMPLETE;
	return sample->user_regs.abi == PERF_SAMPLE_REGS_ABI_32 ?
	       SEAM_STACK_OF_32_BIT : SEAM_STACK_ABSENT;
}

/* How @stack was unwound; nothing where the sample has other RAW data. */
static struct seam_bytes describe(struct seam_live_stacks *s, uint32_t event,
				  const struct seam_unwind_stack *stack,
				  enum seam_stack_end end)
{
	if (s->attrs[event].sample_type & PERF_SAMPLE_RAW)
		return (struct seam_bytes) { 0 };
	return (struct seam_bytes) {
		s->raw, seam_unwind_write(stack, end, s->cfas, s->raw),
	};
}

/*
 * Unwind the sample, and append it.  False, and nothing was done: a file is not
 * read yet, and this is not the last try.
 */
static bool unwind(struct view *v, uint32_t event, const void *record,
		   const struct seam_perf_sample *sample)
{
	struct seam_live_stacks *s = v->stacks;
	struct seam_unwind_chain chain = chain_of(sample);
	struct seam_sample_chain out = { .record = record, .sample = sample };
	struct seam_unwind_registers regs;
	enum seam_stack_end end = read_registers(sample, &regs);
	struct seam_unwind_stack stack = { .n = 0 };

	v->misc = seam_perf_record_at(record).misc;
	v->code.time_ns = sample->time;
	v->code.jit = s->jit.n ?
		      seam_live_jit_process(&s->jit, sample->pid) : NULL;
	if (end != SEAM_STACK_COMPLETE) {
		seam_stack_counts_add(s->counts, end, NULL);
	} else {
		if (!walk(v, sample, &chain, &regs, &stack))
			return false;
		end = count(v, &stack);
		out.stack = &stack;
		out.n_before = chain.n_kernel;
	}
	s->counts->n_kernel_cut += chain.n_kernel > s->max_chain;
	out.raw = describe(s, event, &stack, end);
	append_kernel(&stack, &chain, &v->rest);
	append(s, event, &out);
	return true;
}

void seam_live_stacks_copy(struct seam_live_stacks *stacks, const void *record)
{
	struct seam_perf_header header;

	memcpy(&header, record, sizeof(header));
	stacks->n_dropped += !SEAM_ARRAY_EXTEND(&stacks->out, record,
						header.size);
}

static bool read_sample(const struct seam_live_stacks *stacks, uint32_t event,
			const void *record, struct seam_perf_sample *sample)
{
	return seam_perf_sample_read(&stacks->attrs[event], SEAM_NATIVE,
				     seam_perf_record_at(record).payload,
				     sample) == 0;
}

/* Whether samples with @attr have copies of stacks. */
static bool has_dumps(const struct seam_perf_attr *attr)
{
	return (attr->sample_type & DUMPS) == DUMPS &&
	       attr->sample_type & PERF_SAMPLE_CALLCHAIN;
}

void seam_live_stacks_sample(struct seam_live_stacks *stacks, uint32_t event,
			     const void *record)
{
	struct view v;
	struct seam_perf_sample sample;
	struct seam_process_map *map;

	if (!has_dumps(&stacks->attrs[event])) {
		seam_live_stacks_copy(stacks, record);
		if (stacks->on_sample)
			stacks->on_sample(stacks->context, event, record);
		return;
	}
	if (!read_sample(stacks, event, record, &sample)) {
		stacks->n_dropped++;
		return;
	}
	map = seam_process_maps_find(&stacks->maps, sample.pid);
	v = view_of(stacks, map, false);
	if ((map || !stacks->is_starting) &&
	    unwind(&v, event, record, &sample))
		return;
	if (seam_waiting_samples_add(&stacks->waiting, map, event, record,
				     &sample, SEAM_LIVE_WAITING_BYTES))
		return;
	v.code.is_last_try = true;
	unwind(&v, event, record, &sample);
}

/* ---- rounds ---- */

static void free_waiting(struct seam_live_stacks *stacks,
			 struct seam_waiting_sample *one)
{
	seam_process_maps_put(&stacks->maps, one->map);
	free(one);
}

/* Try the waiting samples again. */
static void try_again(struct seam_live_stacks *stacks, bool all)
{
	struct seam_waiting_samples again = stacks->waiting;
	struct seam_waiting_sample *one;

	stacks->waiting = (struct seam_waiting_samples) { 0 };
	while ((one = seam_waiting_samples_take_first(&again))) {
		struct view v = view_of(stacks, one->map, all);
		struct seam_perf_sample sample;
		bool is_done = true;

		/* it was read before, but its copy is shorter */
		if (read_sample(stacks, one->event, one->record, &sample)) {
			if (!one->map)
				v.code.map = seam_process_maps_find(
						&stacks->maps, sample.pid);
			is_done = unwind(&v, one->event, one->record, &sample);
		} else {
			stacks->n_dropped++;
		}
		if (!is_done) {
			seam_waiting_samples_put(&stacks->waiting, one);
			continue;
		}
		free_waiting(stacks, one);
	}
}

/* Whether a file, or the processes that ran before, were read meanwhile. */
static bool can_try(const struct seam_live_stacks *stacks)
{
	return stacks->waiting.n && !stacks->is_starting &&
	       stacks->n_tried != stacks->files.n_changes + 1;
}

void seam_live_stacks_begin_round(struct seam_live_stacks *stacks, bool all)
{
	stacks->out.n = 0;
	seam_cfi_files_collect(&stacks->files);
	if (all || can_try(stacks))
		try_again(stacks, all);
	stacks->n_tried = stacks->files.n_changes + !stacks->is_starting;
}

uint64_t seam_live_stacks_oldest(const struct seam_live_stacks *stacks)
{
	return seam_waiting_samples_oldest(&stacks->waiting);
}

bool seam_live_stacks_is_busy(struct seam_live_stacks *stacks, int *fd)
{
	bool is_busy = seam_cfi_files_collect(&stacks->files);

	is_busy = stacks->waiting.n && (is_busy || can_try(stacks));
	if (stacks->files.helper)
		*fd = seam_helper_fd(stacks->files.helper);
	return is_busy;
}

uint32_t seam_live_stacks_drop(struct seam_live_stacks *stacks)
{
	struct seam_waiting_sample *one =
		seam_waiting_samples_take_first(&stacks->waiting);
	uint32_t event = one ? one->event : SEAM_NONE;

	if (one)
		free_waiting(stacks, one);
	return event;
}

static void use_file(void *context, uint32_t file, int n)
{
	seam_cfi_files_use(context, file, n);
}

int seam_live_stacks_init(struct seam_live_stacks *stacks,
			  const struct seam_perf_attr *attrs, size_t n_events,
			  size_t max_chain, struct seam_stack_counts *counts,
			  struct seam_err *err)
{
	stacks->attrs = calloc(n_events ? n_events : 1, sizeof(*attrs));
	stacks->frames = calloc(SEAM_LIVE_MAX_FRAMES, sizeof(*stacks->frames));
	stacks->cfas = calloc(SEAM_LIVE_MAX_FRAMES, sizeof(*stacks->cfas));
	stacks->raw = malloc(SEAM_UNWOUND_MAX_BYTES);
	if (!stacks->attrs || !stacks->frames || !stacks->cfas || !stacks->raw)
		return seam_err_no_memory(err);
	memcpy(stacks->attrs, attrs, n_events * sizeof(*attrs));
	stacks->maps.use = use_file;
	stacks->maps.context = &stacks->files;
	stacks->counts = counts;
	stacks->n_events = n_events;
	stacks->max_chain = max_chain;
	for (size_t i = 0; i < n_events; i++) {
		if (!has_dumps(&attrs[i]))
			continue;
		stacks->is_used = true;
		if (counts->dump_bytes < attrs[i].sample_stack_user)
			counts->dump_bytes = attrs[i].sample_stack_user;
	}
	return 0;
}

void seam_live_stacks_fini(struct seam_live_stacks *stacks)
{
	while (seam_live_stacks_drop(stacks) != SEAM_NONE)
		;
	seam_process_maps_fini(&stacks->maps);
	seam_cfi_files_fini(&stacks->files);
	seam_live_jit_fini(&stacks->jit);
	free(stacks->attrs);
	free(stacks->frames);
	free(stacks->cfas);
	free(stacks->raw);
	free(stacks->out.items);
	*stacks = (struct seam_live_stacks) { 0 };
}
