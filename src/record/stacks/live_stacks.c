/* SPDX-License-Identifier: MIT */
/* live_stacks.c - one sample: maps, walk, chain; see live_stacks.h */
#include "record/stacks/live_stacks.h"

#include "base/clock.h"
#include "record/stacks/sample_chain.h"
#include "record/stacks/sample_code.h"
#include "unwind/walk/count.h"
#include "unwind/walk/precise.h"
#include "wire/perf/perf_registers.h"

#include <errno.h>
#include <linux/perf_event.h>
#include <stdlib.h>

enum { LARGE_PART = 4 };	/* of a copy: a frame that hides its caller */

#define DUMPS (PERF_SAMPLE_REGS_USER | PERF_SAMPLE_STACK_USER)

/* The code for one walk, and the walk's results. */
struct view {
	struct seam_live_stacks *stacks;
	struct seam_sample_code code;
	uint16_t misc;		/* of the sample's header */
	enum seam_stack_end end;	/* .code.no_file after the walk */
	struct seam_unwind_rest rest;	/* of the kernel's chain */
	uint64_t beyond;	/* the last address read beyond the copy; 0 */
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

/* Append the addresses of the kernel's chain that go on.  How many. */
static size_t append_kernel(struct seam_unwind_stack *stack,
			    const struct seam_unwind_chain *chain,
			    const struct seam_unwind_rest *rest)
{
	size_t i = 0;

	for (; i < rest->n && stack->n < stack->max; i++)
		stack->frames[stack->n++] = (struct seam_unwind_frame) {
			.pc = chain->user[rest->first + i],
			.quality = SEAM_UNWIND_BY_FRAME_POINTER,
		};
	return i;
}

static const char *path_of(const struct view *v, uint64_t pc)
{
	const struct seam_process_mapping *m =
		v->code.map ? seam_process_map_at(v->code.map, pc) : NULL;

	return !m ? NULL : m->file == SEAM_NONE ? "[jit]" :
	       v->stacks->files.mappings.items[m->file].path;
}

static void count_end(struct view *v, const struct seam_unwind_stack *stack,
		      enum seam_stack_end end)
{
	struct seam_stack_counts *counts = v->stacks->counts;

	if (end == SEAM_STACK_WITHOUT_CFI)
		end = v->end;
	seam_stack_counts_add(counts, end, end == SEAM_STACK_COMPLETE ? NULL :
			      path_of(v, stack->end_pc));
	if (end != SEAM_STACK_COMPLETE && v->code.map &&
	    v->code.map->flags & SEAM_LIVE_IS_JVM)
		counts->n_jvm++;
}

/* Whether only other samples may have the outer frames. */
static bool is_cut(const struct view *v, const struct seam_unwind_stack *stack)
{
	return stack->end == SEAM_UNWIND_TRUNCATED && !v->rest.is_whole;
}

/*
 * Add the outer frames that the walk did not reach, and count: @n_joined are
 * there, by other samples; else as far as the kernel's chain goes.
 */
static void complete(struct view *v, const struct seam_unwind_chain *chain,
		     size_t n_joined, struct seam_unwind_stack *stack)
{
	struct seam_stack_counts *counts = v->stacks->counts;
	enum seam_stack_end end = seam_unwind_counted_end(stack->end);

	stack->n -= n_joined;
	seam_unwind_count_frames(counts, stack);
	stack->n += n_joined;
	if (n_joined == 0)
		counts->n_frames[SEAM_STACK_BY_KERNEL] +=
			append_kernel(stack, chain, &v->rest);
	counts->n_frames[SEAM_STACK_BY_JOIN] += n_joined;
	counts->n_joined += n_joined > 0;
	counts->n_continued += v->rest.is_whole;
	count_end(v, stack, n_joined || v->rest.is_whole ?
		  SEAM_STACK_COMPLETE : end);
}

static bool note_beyond(void *context, uint64_t addr, uint64_t *word)
{
	struct view *v = context;

	(void)word;
	v->beyond = addr;
	return false;
}

/*
 * The place of the frame after the last one of a cut stack: what the copy has
 * not is the return address, in the word before it.  0: not known.
 */
static uint64_t next_place(const struct view *v,
			   const struct seam_unwind_stack *stack)
{
	uint64_t place = v->beyond + sizeof(uint64_t);

	return stack->end == SEAM_UNWIND_TRUNCATED && v->beyond &&
	       place > stack->frames[stack->n - 1].sp ? place : 0;
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
		.read = note_beyond, .context = v,
	};

	*stack = (struct seam_unwind_stack) {
		.frames = v->stacks->frames, .max = SEAM_LIVE_MAX_FRAMES,
	};
	seam_unwind_walk_sample(&space, &memory, regs, v->misc, stack);
	/* a precise event names its own instruction */
	if (chain->n_kernel == 0 && chain->n_user)
		stack->frames[0].pc = chain->user[0];
	v->end = v->code.no_file;
	v->rest = seam_unwind_kernel_follow(&space, stack, chain->user,
		chain->n_user,
		seam_unwind_chain_is_cut(chain, v->stacks->max_chain));
	return !v->code.is_pending || v->code.is_last_try;
}

/* ---- records ---- */

/* Append a record with @chain; NULL: out of memory. */
static const void *append(struct seam_live_stacks *stacks,
			  const struct seam_sample_chain *chain)
{
	size_t bytes = seam_sample_chain_bytes(chain);
	uint8_t *to;

	if (!SEAM_ARRAY_RESERVE(&stacks->out, bytes)) {
		stacks->n_dropped++;
		return NULL;
	}
	to = stacks->out.items + stacks->out.n;
	stacks->out.n += bytes;
	seam_sample_chain_write(chain, to);
	return to;
}

static void hand_on(struct seam_live_stacks *stacks, uint32_t event,
		    const void *record)
{
	if (record && stacks->on_sample)
		stacks->on_sample(stacks->context, event, record);
}

/* Whether the sample has a stack that can be unwound; else it is counted. */
static bool has_stack(struct seam_live_stacks *stacks,
		      const struct seam_perf_sample *sample,
		      struct seam_unwind_registers *regs)
{
	*regs = (struct seam_unwind_registers) { .known = 0 };
	/* within exec() the registers are of a stack that is gone, or 0 */
	if (sample->user_stack.size &&
	    seam_perf_registers_x86_64(&sample->user_regs, regs->value,
				       &regs->known))
		return true;
	if (sample->user_regs.abi == PERF_SAMPLE_REGS_ABI_32)
		stacks->counts->n_32_bit++;
	else
		stacks->counts->n_empty++;
	return false;
}

/* Whether the frame that ends at @place is large, measured by the copy. */
static bool is_large(const struct seam_live_stacks *stacks, uint32_t event,
		     const struct seam_unwind_stack *stack, uint64_t place)
{
	return place && place - stack->frames[stack->n - 1].sp >=
			stacks->attrs[event].sample_stack_user / LARGE_PART;
}

/*
 * Hold the sample, whose stack is cut, until its callers may have been
 * learned.  False, and nothing was done: there is no room.
 */
static bool hold(struct view *v, uint32_t event,
		 const struct seam_sample_chain *sample,
		 const struct seam_unwind_chain *chain,
		 struct seam_unwind_stack *stack)
{
	struct seam_live_stacks *s = v->stacks;
	size_t out = s->out.n;
	uint64_t n_dropped = s->n_dropped;
	const struct seam_waiting_sample like = {
		.map = v->code.map, .event = event, .stack = *stack,
		.rest = v->rest, .place = next_place(v, stack),
		.since_ns = s->round_ns,
	};

	if (!s->hold_ns ||
	    !seam_waiting_samples_add(&s->cut, &like, sample->record,
				      sample->sample, SEAM_LIVE_CUT_BYTES))
		return false;
	if (is_large(s, event, stack, like.place))
		seam_hidden_callers_want(&s->hidden, sample->sample->tid);
	/* now, because files that it is in may be gone later */
	if (s->on_sample) {
		append_kernel(stack, chain, &v->rest);
		hand_on(s, event, append(s, sample));
		s->out.n = out;
		s->n_dropped = n_dropped;
	}
	return true;
}

/* Stacks that others may be joined with. */
static void learn(struct view *v, int32_t tid, size_t dump_bytes,
		  const struct seam_unwind_stack *stack)
{
	struct seam_live_stacks *s = v->stacks;

	if (!seam_stack_joins_want(stack, dump_bytes) &&
	    !seam_hidden_callers_is_wanted(&s->hidden, tid))
		return;
	seam_stack_joins_learn(&s->joins, tid, stack);
	seam_hidden_callers_learn(&s->hidden, tid, stack);
}

/* Complete the stack of @sample, if that can be done now; else hold it. */
static bool join_or_hold(struct view *v, uint32_t event,
			 const struct seam_sample_chain *sample,
			 const struct seam_unwind_chain *chain,
			 struct seam_unwind_stack *stack)
{
	size_t n_joined = 0;

	if (is_cut(v, stack)) {
		n_joined = seam_stack_joins_complete(&v->stacks->joins,
						     sample->sample->tid,
						     false, stack);
		if (n_joined == 0 && hold(v, event, sample, chain, stack))
			return false;
	}
	complete(v, chain, n_joined, stack);
	return true;
}

/*
 * Unwind the sample, and append or hold it.  False, and nothing was done: a
 * file is not read yet, and this is not the last try.
 */
static bool unwind(struct view *v, uint32_t event, const void *record,
		   const struct seam_perf_sample *sample)
{
	struct seam_live_stacks *s = v->stacks;
	struct seam_unwind_chain chain = chain_of(sample);
	struct seam_sample_chain out = { .record = record, .sample = sample };
	struct seam_unwind_registers regs;
	struct seam_unwind_stack stack;
	bool has_walk;

	v->misc = seam_perf_record_at(record).misc;
	v->code.time_ns = sample->time;
	v->code.jit = s->jit.n ?
		      seam_live_jit_process(&s->jit, sample->pid) : NULL;
	has_walk = has_stack(s, sample, &regs);
	if (has_walk && !walk(v, sample, &chain, &regs, &stack))
		return false;
	s->counts->n_kernel_cut += chain.n_kernel > s->max_chain;
	if (has_walk) {
		out.stack = &stack;
		out.n_before = chain.n_kernel;
		learn(v, sample->tid, s->attrs[event].sample_stack_user,
		      &stack);
		if (!join_or_hold(v, event, &out, &chain, &stack))
			return true;
	}
	hand_on(s, event, append(s, &out));
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
		hand_on(stacks, event, record);
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
	if (seam_waiting_samples_add(&stacks->waiting,
				     &(struct seam_waiting_sample) {
					     .map = map, .event = event },
				     record, &sample, SEAM_LIVE_WAITING_BYTES))
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

/*
 * Append the sample, whose stack was cut, if its callers have been learned,
 * or if it is its @last try.
 */
static bool finish_cut(struct seam_live_stacks *stacks,
		       const struct seam_waiting_sample *one, bool last)
{
	struct view v = view_of(stacks, one->map, true);
	struct seam_unwind_stack stack = one->stack;
	struct seam_perf_sample sample;
	struct seam_unwind_chain chain;
	size_t n_joined;

	/* it was read before */
	if (!read_sample(stacks, one->event, one->record, &sample)) {
		stacks->n_dropped++;
		return true;
	}
	v.rest = one->rest;
	memcpy(stacks->frames, stack.frames, stack.n * sizeof(*stack.frames));
	stack.frames = stacks->frames;
	n_joined = seam_stack_joins_complete(&stacks->joins, sample.tid, last,
					     &stack);
	if (n_joined == 0 && !last)
		return false;
	if (n_joined == 0 && one->place)
		n_joined = seam_hidden_callers_complete(&stacks->hidden,
			&stacks->joins, sample.tid, &v.code, one->place,
			&stack);
	stacks->counts->n_joined_later += n_joined > 0;
	chain = chain_of(&sample);
	complete(&v, &chain, n_joined, &stack);
	append(stacks, &(struct seam_sample_chain) {
		.record = one->record, .sample = &sample, .stack = &stack,
		.n_before = chain.n_kernel });
	return true;
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
	stacks->round_ns = seam_clock_ns();
	seam_cfi_files_collect(&stacks->files);
	seam_hidden_callers_begin_round(&stacks->hidden);
	seam_live_dumps_step(&stacks->dumps, stacks->round_ns);
	if (all || can_try(stacks))
		try_again(stacks, all);
	stacks->n_tried = stacks->files.n_changes + !stacks->is_starting;
}

void seam_live_stacks_end_round(struct seam_live_stacks *stacks, bool all)
{
	struct seam_waiting_samples cut = stacks->cut;
	struct seam_waiting_sample *one;

	stacks->cut = (struct seam_waiting_samples) { 0 };
	while ((one = seam_waiting_samples_take_first(&cut))) {
		uint64_t age_ns = stacks->round_ns - one->since_ns;
		bool last = all || age_ns >= stacks->hold_ns;

		if ((last || one->next_ns <= stacks->round_ns) &&
		    finish_cut(stacks, one, last)) {
			free_waiting(stacks, one);
			continue;
		}
		/* at twice its age: as often, however many rounds there are */
		if (one->next_ns <= stacks->round_ns)
			one->next_ns = stacks->round_ns + age_ns;
		seam_waiting_samples_put(&stacks->cut, one);
	}
}

uint64_t seam_live_stacks_oldest(const struct seam_live_stacks *stacks)
{
	uint64_t waiting = seam_waiting_samples_oldest(&stacks->waiting);
	uint64_t cut = seam_waiting_samples_oldest(&stacks->cut);

	return waiting < cut ? waiting : cut;
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
		seam_waiting_samples_take_first(stacks->waiting.n ?
						&stacks->waiting :
						&stacks->cut);
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
	if (!stacks->attrs || !stacks->frames)
		return seam_err_no_memory(err);
	memcpy(stacks->attrs, attrs, n_events * sizeof(*attrs));
	stacks->maps.use = use_file;
	stacks->maps.context = &stacks->files;
	stacks->counts = counts;
	stacks->n_events = n_events;
	stacks->max_chain = max_chain;
	stacks->hold_ns = SEAM_LIVE_HOLD_NS;
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
	seam_stack_joins_fini(&stacks->joins);
	seam_live_dumps_fini(&stacks->dumps);
	seam_hidden_callers_fini(&stacks->hidden);
	seam_live_jit_fini(&stacks->jit);
	free(stacks->attrs);
	free(stacks->frames);
	free(stacks->out.items);
	*stacks = (struct seam_live_stacks) { 0 };
}
