/* SPDX-License-Identifier: MIT */
/* live_stacks.c - one sample: maps, walk, chain; see live_stacks.h */
#include "record/stacks/live_stacks.h"

#include "base/clock.h"
#include "unwind/walk/count.h"
#include "unwind/walk/kernel_chain.h"
#include "unwind/walk/precise.h"
#include "wire/perf/perf_registers.h"

#include <errno.h>
#include <linux/perf_event.h>
#include <stdlib.h>
#include <sys/mman.h>

enum { IS_JVM = 1 };		/* flag of a mapping */

#define DUMPS (PERF_SAMPLE_REGS_USER | PERF_SAMPLE_STACK_USER)

/* ---- the code of a process ---- */

/* What a walk sees, and what it met. */
struct view {
	struct seam_live_stacks *stacks;
	const struct seam_process_map *map;
	const struct seam_process_mapping *mapping;	/* the last one */
	const struct seam_live_jit_process *jit;	/* NULL: no such code */
	uint64_t time_ns;	/* of the sample */
	uint16_t misc;		/* of the sample's header */
	bool is_last_try;	/* do without files that are not read yet */
	bool is_pending;	/* a file is not read yet */
	enum seam_stack_end no_file;	/* why the last file had no CFI */
	enum seam_stack_end end;	/* the same at the end of the walk */
	struct seam_unwind_rest rest;	/* of the kernel's chain */
};

static const struct seam_process_mapping *mapping_at(struct view *v,
						     uint64_t addr)
{
	const struct seam_process_mapping *m = v->mapping;

	if (!m || addr < m->begin || addr >= m->end)
		m = v->map ? seam_process_map_at(v->map, addr) : NULL;
	if (m)
		v->mapping = m;
	return m;
}

/* The file of @m, and the address of @addr in it; NULL: it has no CFI. */
static struct seam_mapped_file_cfi *
file_at(struct view *v, const struct seam_process_mapping *m, uint64_t addr,
	uint64_t *file_addr)
{
	struct seam_mapped_file_cfi *file;
	bool is_pending;

	v->no_file = SEAM_STACK_WITHOUT_CFI;
	if (m->file == SEAM_NONE)
		return NULL;
	file = seam_cfi_files_want(&v->stacks->files, m->file, &is_pending);
	if (file)
		return seam_cfi_file_addr(&file->cfi,
					  addr - m->begin + m->offset,
					  file_addr) ? file : NULL;
	v->is_pending |= is_pending;
	v->no_file = is_pending ? SEAM_STACK_NOT_READY : SEAM_STACK_NO_FILE;
	return NULL;
}

static bool is_jit(struct view *v, uint64_t addr, struct seam_unwind_code *code)
{
	if (!v->jit || !seam_live_jit_find(&v->stacks->jit, v->jit, addr,
					   v->time_ns, code))
		return false;
	v->no_file = SEAM_STACK_WITHOUT_CFI;
	return true;
}

static bool find_code(void *context, uint64_t addr,
		      struct seam_unwind_code *code)
{
	struct view *v = context;
	const struct seam_process_mapping *m;
	struct seam_mapped_file_cfi *file;
	uint64_t file_addr;

	if (is_jit(v, addr, code))
		return true;
	*code = (struct seam_unwind_code) { .rules = NULL };
	m = mapping_at(v, addr);
	if (!m)
		return false;
	file = file_at(v, m, addr, &file_addr);
	if (!file)
		return !v->is_pending || v->is_last_try;
	code->id = seam_unwind_rows_find(&file->rows, file_addr);
	code->rules = &file->rows.rules;
	code->is_entry = code->id == SEAM_UNWIND_NO_CFI &&
			 seam_cfi_file_is_entry(&file->cfi, file_addr);
	return true;
}

static size_t code_before(void *context, uint64_t addr, uint8_t *bytes)
{
	struct view *v = context;
	const struct seam_process_mapping *m = mapping_at(v, addr - 1);
	struct seam_unwind_code code;
	uint64_t file_addr;
	struct seam_mapped_file_cfi *file =
		m && !is_jit(v, addr - 1, &code) ?
		file_at(v, m, addr - 1, &file_addr) : NULL;

	return file ? seam_cfi_file_code_before(&file->cfi, file_addr + 1,
						bytes,
						SEAM_UNWIND_CALL_BYTES) : 0;
}

/* ---- one stack ---- */

/* The user part of a chain of the kernel's. */
struct user_chain {
	const uint64_t *addrs;
	size_t n;
	size_t n_before;	/* words before PERF_CONTEXT_USER */
	bool is_cut;		/* by the limit of the kernel */
	bool is_kernel_cut;	/* the part before it is */
};

static struct user_chain user_chain_of(const struct seam_live_stacks *stacks,
				       const struct seam_perf_sample *sample)
{
	const uint64_t *words = (const void *)sample->callchain.data;
	size_t n = sample->callchain.n, i = 0, end, n_addrs;

	while (i < n && words[i] != (uint64_t)PERF_CONTEXT_USER)
		i++;
	/* a frame pointer may lead to a word that no address can be */
	for (end = i + 1; end < n && words[end] < (uint64_t)PERF_CONTEXT_MAX;)
		end++;
	/* the limit does not count the marks of contexts */
	n_addrs = n - (i < n) - (i > 0);
	return (struct user_chain) {
		.addrs = words + i + 1, .n = i < n ? end - i - 1 : 0,
		.n_before = i,
		.is_cut = n_addrs >= stacks->max_chain || end < n,
		.is_kernel_cut = i > stacks->max_chain,
	};
}

/* Append the addresses of the kernel's chain that go on. */
static void append_kernel(struct view *v, struct seam_unwind_stack *stack,
			  const struct user_chain *chain,
			  const struct seam_unwind_rest *rest)
{
	size_t i = 0;

	for (; i < rest->n && stack->n < stack->max; i++)
		stack->frames[stack->n++] = (struct seam_unwind_frame) {
			.pc = chain->addrs[rest->first + i],
			.quality = SEAM_UNWIND_BY_FRAME_POINTER,
		};
	v->stacks->counts->n_frames[SEAM_STACK_BY_KERNEL] += i;
}

static const char *path_of(const struct view *v, uint64_t pc)
{
	const struct seam_process_mapping *m =
		v->map ? seam_process_map_at(v->map, pc) : NULL;

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
	if (end != SEAM_STACK_COMPLETE && v->map && v->map->flags & IS_JVM)
		counts->n_jvm++;
}

/*
 * Add the outer frames that the walk did not reach, and count: by the kernel's
 * chain, if it leads to the root, or by other samples; else as far as the
 * chain goes.
 */
static void complete(struct view *v, const struct seam_perf_sample *sample,
		     const struct user_chain *chain, size_t dump_bytes,
		     struct seam_unwind_stack *stack)
{
	struct seam_live_stacks *s = v->stacks;
	enum seam_stack_end end = seam_unwind_counted_end(stack->end);
	bool is_cut = end == SEAM_STACK_TRUNCATED;
	size_t n = 0;

	seam_unwind_count_frames(s->counts, stack);
	if (seam_stack_joins_want(stack, dump_bytes))
		seam_stack_joins_learn(&s->joins, sample->tid, stack);
	if (is_cut && !v->rest.is_whole)
		n = seam_stack_joins_complete(&s->joins, sample->tid, stack);
	if (n == 0)
		append_kernel(v, stack, chain, &v->rest);
	s->counts->n_frames[SEAM_STACK_BY_JOIN] += n;
	s->counts->n_joined += n > 0;
	s->counts->n_continued += v->rest.is_whole;
	count_end(v, stack, n || v->rest.is_whole ? SEAM_STACK_COMPLETE : end);
}

/* False: a file is not read yet, and this is not the last try. */
static bool walk(struct view *v, const struct seam_perf_sample *sample,
		 const struct user_chain *chain,
		 const struct seam_unwind_registers *regs,
		 struct seam_unwind_stack *stack)
{
	const struct seam_unwind_space space = {
		.find = find_code, .code_before = code_before, .context = v,
	};
	const struct seam_unwind_memory memory = {
		.stack = sample->user_stack.data,
		.stack_addr = regs->value[SEAM_X86_64_RSP],
		.stack_bytes = sample->user_stack.size,
	};

	*stack = (struct seam_unwind_stack) {
		.frames = v->stacks->frames, .max = SEAM_LIVE_MAX_FRAMES,
	};
	seam_unwind_walk_sample(&space, &memory, regs, v->misc, stack);
	/* a precise event names its own instruction */
	if (chain->n_before == 0 && chain->n)
		stack->frames[0].pc = chain->addrs[0];
	v->end = v->no_file;
	v->rest = seam_unwind_kernel_follow(&space, stack, chain->addrs,
					    chain->n, chain->is_cut);
	return !v->is_pending || v->is_last_try;
}

/* ---- records ---- */

static void *append(struct seam_live_stacks *stacks, size_t bytes)
{
	if (!SEAM_ARRAY_RESERVE(&stacks->out, bytes)) {
		stacks->n_dropped++;
		return NULL;
	}
	stacks->out.n += bytes;
	return stacks->out.items + stacks->out.n - bytes;
}

static uint8_t *put(uint8_t *to, const void *from, size_t bytes)
{
	memcpy(to, from, bytes);
	return to + bytes;
}

/* A record being rewritten, and its new user part; NULL: it keeps its own. */
struct rewrite {
	const uint8_t *record;
	const struct seam_perf_sample *sample;
	const struct seam_unwind_stack *stack;
	size_t n_before;	/* words of the chain before the user part */
};

/* Append the sample with another callchain, without registers and stack. */
static const void *write_sample(struct seam_live_stacks *stacks,
				const struct rewrite *r)
{
	const struct seam_perf_sample *sample = r->sample;
	const uint8_t *payload = r->record + SEAM_PERF_HEADER_BYTES;
	size_t after = sample->at.callchain + 8 + 8 * sample->callchain.n;
	size_t between = sample->at.user_regs - after;
	uint64_t n = r->stack ? r->n_before + 1 + r->stack->n :
		     sample->callchain.n;
	struct seam_perf_header header;
	size_t rest, bytes;
	uint8_t *to;

	memcpy(&header, r->record, sizeof(header));
	rest = header.size - sizeof(header) - sample->at.rest;
	bytes = sizeof(header) + sample->at.callchain + 8 + 8 * n + between +
		rest;
	if (bytes > UINT16_MAX) {
		n -= (bytes - UINT16_MAX + 7) / 8;
		bytes -= (bytes - UINT16_MAX + 7) / 8 * 8;
	}
	to = append(stacks, bytes);
	if (!to)
		return NULL;
	header.size = (uint16_t)bytes;
	to = put(to, &header, sizeof(header));
	to = put(to, payload, sample->at.callchain);
	to = put(to, &n, sizeof(n));
	if (r->stack) {
		const uint64_t mark = (uint64_t)PERF_CONTEXT_USER;

		to = put(to, sample->callchain.data, 8 * r->n_before);
		to = put(to, &mark, sizeof(mark));
		for (size_t i = 0; i < n - r->n_before - 1; i++)
			to = put(to, &r->stack->frames[i].pc, 8);
	} else {
		to = put(to, sample->callchain.data, 8 * n);
	}
	to = put(to, payload + after, between);
	put(to, payload + sample->at.rest, rest);
	return stacks->out.items + stacks->out.n - bytes;
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

/*
 * Unwind and append the sample.  False, and nothing was done: a file is not
 * read yet, and this is not the last try.
 */
static bool unwind(struct view *v, uint32_t event, const void *record,
		   const struct seam_perf_sample *sample)
{
	struct user_chain chain = user_chain_of(v->stacks, sample);
	struct rewrite r = { .record = record, .sample = sample };
	struct seam_unwind_registers regs;
	struct seam_unwind_stack stack;

	v->misc = seam_perf_record_at(record).misc;
	v->time_ns = sample->time;
	v->jit = v->stacks->jit.n ?
		 seam_live_jit_process(&v->stacks->jit, sample->pid) : NULL;
	if (has_stack(v->stacks, sample, &regs)) {
		if (!walk(v, sample, &chain, &regs, &stack))
			return false;
		complete(v, sample, &chain,
			 v->stacks->attrs[event].sample_stack_user, &stack);
		r.stack = &stack;
		r.n_before = chain.n_before;
	}
	v->stacks->counts->n_kernel_cut += chain.is_kernel_cut;
	hand_on(v->stacks, event, write_sample(v->stacks, &r));
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
	struct view v = { .stacks = stacks };
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
	v.map = map;
	if ((map || !stacks->is_starting) &&
	    unwind(&v, event, record, &sample))
		return;
	if (seam_waiting_samples_add(&stacks->waiting, event, record, &sample,
				     map))
		return;
	v.is_last_try = true;
	unwind(&v, event, record, &sample);
}

/* ---- rounds ---- */

/* Try the waiting samples again. */
static void try_again(struct seam_live_stacks *stacks, bool all)
{
	struct seam_waiting_samples again = stacks->waiting;
	struct seam_waiting_sample *one;

	stacks->waiting = (struct seam_waiting_samples) { 0 };
	while ((one = seam_waiting_samples_take_first(&again))) {
		struct view v = { .stacks = stacks, .is_last_try = all };
		struct seam_perf_sample sample;
		bool is_done = true;

		/* it was read before, but its copy is shorter */
		if (read_sample(stacks, one->event, one->record, &sample)) {
			v.map = one->map ? one->map :
				seam_process_maps_find(&stacks->maps,
						       sample.pid);
			is_done = unwind(&v, one->event, one->record, &sample);
		} else {
			stacks->n_dropped++;
		}
		if (!is_done) {
			seam_waiting_samples_put(&stacks->waiting, one);
			continue;
		}
		seam_process_maps_put(&stacks->maps, one->map);
		free(one);
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
	seam_live_dumps_step(&stacks->dumps, seam_clock_ns());
	if (all || can_try(stacks))
		try_again(stacks, all);
	stacks->n_tried = stacks->files.n_changes + !stacks->is_starting;
}

bool seam_live_stacks_is_busy(struct seam_live_stacks *stacks, int *fd)
{
	bool is_busy = seam_cfi_files_collect(&stacks->files);

	is_busy = stacks->waiting.n && (is_busy || can_try(stacks));
	if (stacks->files.helper)
		*fd = seam_helper_fd(stacks->files.helper, is_busy);
	return is_busy;
}

uint32_t seam_live_stacks_drop(struct seam_live_stacks *stacks)
{
	struct seam_waiting_sample *one =
		seam_waiting_samples_take_first(&stacks->waiting);
	uint32_t event = one ? one->event : SEAM_NONE;

	if (one)
		seam_process_maps_put(&stacks->maps, one->map);
	free(one);
	return event;
}

/* A file that @pid has mapped beside, or under, the mapping at @addr. */
static uint32_t file_near(const struct seam_live_stacks *stacks, int32_t pid,
			  uint64_t addr)
{
	const struct seam_process_map *map =
		seam_process_maps_find(&stacks->maps, pid);
	uint32_t i;

	if (!map || !map->n)
		return SEAM_NONE;
	i = (uint32_t)SEAM_ARRAY_SEARCH(k, map->n, map->items[k].begin <= addr);
	return map->items[i ? i - 1 : 0].file;
}

static void add_mapping(struct seam_live_stacks *stacks,
			const struct seam_perf_mapping *m, bool is_new)
{
	struct seam_process_mapping mapping = {
		.begin = m->addr, .end = m->addr + m->len, .offset = m->pgoff,
	};

	if (!(m->prot & PROT_EXEC))
		return;
	seam_live_dumps_add(&stacks->dumps, m->pid, m->filename);
	mapping.file = seam_cfi_files_add(&stacks->files, m, is_new,
					  file_near(stacks, m->pid, m->addr));
	if (mapping.file != SEAM_NONE &&
	    stacks->files.mappings.items[mapping.file].is_jvm)
		mapping.flags = IS_JVM;
	seam_process_maps_add(&stacks->maps, m->pid, &mapping);
	seam_cfi_files_use(&stacks->files, mapping.file, -1);
}

static void use_file(void *context, uint32_t file, int n)
{
	seam_cfi_files_use(context, file, n);
}

static void exec(struct seam_live_stacks *stacks, int32_t pid, uint64_t time_ns)
{
	seam_process_maps_exec(&stacks->maps, pid);
	seam_live_jit_exec(&stacks->jit, pid, time_ns);
	seam_live_dumps_exec(&stacks->dumps, pid);
}

void seam_live_stacks_sideband(struct seam_live_stacks *stacks,
			       const struct seam_perf_sideband *record,
			       bool is_new)
{
	switch (record->type) {
	case PERF_RECORD_MMAP:
	case PERF_RECORD_MMAP2:
		add_mapping(stacks, &record->mapping, is_new);
		return;
	case PERF_RECORD_COMM:
		if (record->misc & PERF_RECORD_MISC_COMM_EXEC)
			exec(stacks, record->comm.pid, record->sample_id.time);
		return;
	case PERF_RECORD_FORK:
		seam_process_maps_fork(&stacks->maps, record->task.pid,
				       record->task.ppid);
		if (record->task.pid != record->task.ppid)
			seam_live_jit_fork(&stacks->jit, record->task.pid,
					   record->task.ppid,
					   record->sample_id.time);
		return;
	case PERF_RECORD_EXIT:
		seam_process_maps_exit(&stacks->maps, record->task.pid);
		return;
	}
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
	seam_live_jit_fini(&stacks->jit);
	free(stacks->attrs);
	free(stacks->frames);
	free(stacks->out.items);
	*stacks = (struct seam_live_stacks) { 0 };
}
