/* SPDX-License-Identifier: MIT */
/* live_stacks.c - mappings, code, samples that wait; see live_stacks.h */
#include "record/stacks/live_stacks.h"

#include <linux/perf_event.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/uio.h>

#define DUMPS (PERF_SAMPLE_REGS_USER | PERF_SAMPLE_STACK_USER)

enum {
	FIRST_CAP = 16,		/* mappings of a small program */
	PAGE_BYTES = 4096,
};

/* ---- the mappings of a process ---- */

/* Use @map, which then does not change; NULL is ok.  Returns @map. */
static struct seam_process_map *map_get(struct seam_process_map *map)
{
	if (map)
		map->n_users++;
	return map;
}

static void use(struct seam_process_maps *maps,
		const struct seam_process_mapping *items, size_t count, int n)
{
	for (size_t i = 0; maps->files && i < count; i++)
		seam_cfi_files_use(maps->files, items[i].file, n);
}

static void maps_put(struct seam_process_maps *maps,
		     struct seam_process_map *map)
{
	if (!map || --map->n_users > 0)
		return;
	maps->n_mappings -= map->n;
	use(maps, map->items, map->n, -1);
	free(map);
}

/* The index of the first mapping that ends after @addr. */
static uint32_t first_after(const struct seam_process_map *map, uint64_t addr)
{
	return (uint32_t)SEAM_ARRAY_SEARCH(i, map->n,
					   map->items[i].end <= addr);
}

/* The mapping at @addr, or NULL.  Cost: one binary search. */
static const struct seam_process_mapping *
map_at(const struct seam_process_map *map, uint64_t addr)
{
	uint32_t i = first_after(map, addr);

	return i < map->n && map->items[i].begin <= addr ? &map->items[i] :
	       NULL;
}

/*
 * A list that @process alone uses, with room for two more mappings; NULL: out
 * of memory, or too many.
 */
static struct seam_process_map *own_map(struct seam_process_maps *maps,
					struct seam_mapped_process *process)
{
	struct seam_process_map *old = process->map, *map;
	uint32_t n = old ? old->n : 0, cap = old ? old->cap : FIRST_CAP;
	bool is_shared = old && old->n_users > 1;

	if (n + 2 > SEAM_PROCESS_MAX_MAPPINGS || maps->n_mappings + 2 +
	    (is_shared ? n : 0) > SEAM_PROCESS_MAPS_MAX_MAPPINGS)
		return NULL;
	if (old && !is_shared && n + 2 <= cap)
		return old;
	if (n + 2 > cap)
		cap *= 2;
	map = malloc(sizeof(*map) + cap * sizeof(*map->items));
	if (!map)
		return NULL;
	*map = (struct seam_process_map) {
		.n_users = 1, .n = n, .cap = cap,
		.flags = old ? old->flags : 0,
	};
	if (n)
		memcpy(map->items, old->items, n * sizeof(*map->items));
	maps->n_mappings += n;
	use(maps, map->items, n, 1);
	maps_put(maps, old);
	return process->map = map;
}

/* Map @m over what is there: at most two parts of older mappings remain. */
static void cover(struct seam_process_maps *maps, struct seam_process_map *map,
		  const struct seam_process_mapping *m)
{
	struct seam_process_mapping with[3];
	uint32_t from = first_after(map, m->begin), to = from, n = 0;

	if (from < map->n && map->items[from].begin < m->begin) {
		with[n] = map->items[from];
		with[n++].end = m->begin;
	}
	with[n++] = *m;
	while (to < map->n && map->items[to].begin < m->end)
		to++;
	if (to > from && map->items[to - 1].end > m->end) {
		with[n] = map->items[to - 1];
		with[n].offset += m->end - with[n].begin;
		with[n++].begin = m->end;
	}
	use(maps, with, n, 1);
	use(maps, map->items + from, to - from, -1);
	memmove(map->items + from + n, map->items + to,
		(map->n - to) * sizeof(*map->items));
	memcpy(map->items + from, with, n * sizeof(*with));
	maps->n_mappings = maps->n_mappings - (to - from) + n;
	map->n = map->n - (to - from) + n;
	map->flags |= m->flags;
}

/* ---- processes ---- */

/* The place of the number of @pid's process, + 1; 0 there: it is not known. */
static uint32_t *place_of(struct seam_process_maps *maps, int32_t pid)
{
	uint32_t *at = &maps->by_pid[(uint32_t)pid % SEAM_PROCESS_MAPS_LISTS];

	while (*at && maps->processes.items[*at - 1].pid != pid)
		at = &maps->processes.items[*at - 1].next;
	return at;
}

static void free_slot(struct seam_process_maps *maps, uint32_t i)
{
	struct seam_mapped_process *process = &maps->processes.items[i];

	*place_of(maps, process->pid) = process->next;
	maps_put(maps, process->map);
	*process = (struct seam_mapped_process) { 0 };
	(void)SEAM_ARRAY_ADD(&maps->free, i);
}

/* The process of @pid, a new one if it is not known; NULL: no room. */
static struct seam_mapped_process *get_process(struct seam_process_maps *maps,
					       int32_t pid)
{
	uint32_t *list = &maps->by_pid[(uint32_t)pid % SEAM_PROCESS_MAPS_LISTS];
	uint32_t i = pid > 0 ? *place_of(maps, pid) : 0;

	if (i)
		return &maps->processes.items[i - 1];
	if (pid <= 0 || (!maps->free.n &&
			 (maps->processes.n >= SEAM_PROCESS_MAPS_MAX ||
			  !SEAM_ARRAY_RESERVE(&maps->processes, 1))))
		return NULL;
	i = maps->free.n ? maps->free.items[--maps->free.n] :
			   (uint32_t)maps->processes.n++;
	maps->processes.items[i] = (struct seam_mapped_process) {
		.pid = pid, .next = *list,
	};
	*list = i + 1;
	return &maps->processes.items[i];
}

/* Process @pid maps @mapping. */
static void maps_add(struct seam_process_maps *maps, int32_t pid,
		     const struct seam_process_mapping *mapping)
{
	struct seam_mapped_process *process = get_process(maps, pid);
	struct seam_process_map *map = process ? own_map(maps, process) : NULL;

	if (map && mapping->begin < mapping->end)
		cover(maps, map, mapping);
}

/*
 * The mappings of @pid, borrowed until the next change; map_get() keeps them.
 * NULL: none are known.
 */
static struct seam_process_map *maps_find(const struct seam_process_maps *maps,
					  int32_t pid)
{
	uint32_t i = maps->by_pid[(uint32_t)pid % SEAM_PROCESS_MAPS_LISTS];

	while (i && maps->processes.items[i - 1].pid != pid)
		i = maps->processes.items[i - 1].next;
	return i && pid > 0 ? maps->processes.items[i - 1].map : NULL;
}

/* Task @pid was created by process @parent; if equal, a thread of it was. */
static void maps_fork(struct seam_process_maps *maps, int32_t pid,
		      int32_t parent)
{
	struct seam_mapped_process *process = get_process(maps, pid);
	struct seam_process_map *old;

	if (!process)
		return;
	if (pid == parent) {
		process->n_threads++;
		return;
	}
	old = process->map;
	process->map = map_get(maps_find(maps, parent));
	maps_put(maps, old);
	process->has_birth = true;
	process->has_ended = false;
	process->n_threads = 1;
}

/* Process @pid runs another program: nothing of the old one is mapped. */
static void maps_exec(struct seam_process_maps *maps, int32_t pid)
{
	struct seam_mapped_process *process = get_process(maps, pid);

	if (!process)
		return;
	maps_put(maps, process->map);
	process->map = NULL;
	/* the kernel has ended all other threads before */
	process->has_birth = true;
	process->n_threads = 1;
}

/* A thread of process @pid has ended. */
static void maps_exit(struct seam_process_maps *maps, int32_t pid)
{
	uint32_t i = *place_of(maps, pid), *place;
	struct seam_mapped_process *process;

	if (!i)
		return;
	process = &maps->processes.items[i - 1];
	/* one that ran before may have more threads: until its pid is reused */
	if (!process->has_birth || process->n_threads == 0 ||
	    --process->n_threads > 0)
		return;
	process->has_ended = true;
	place = &maps->ended[maps->n_ended++ % SEAM_PROCESS_MAPS_ENDED];
	if (*place && maps->processes.items[*place - 1].has_ended)
		free_slot(maps, *place - 1);
	*place = i;
}

static void maps_fini(struct seam_process_maps *maps)
{
	for (size_t i = 0; i < maps->processes.n; i++)
		maps_put(maps, maps->processes.items[i].map);
	free(maps->processes.items);
	free(maps->free.items);
	*maps = (struct seam_process_maps) { 0 };
}

/* ---- side-band ---- */

static void add_mapping(struct seam_live_stacks *stacks,
			const struct seam_perf_mapping *m, uint64_t time_ns,
			bool is_new)
{
	const struct seam_process_map *map =
		maps_find(&stacks->maps, m->pid);
	struct seam_process_mapping mapping = {
		.begin = m->addr, .end = m->addr + m->len, .offset = m->pgoff,
		.since_ns = is_new ? time_ns : 0,
	};
	uint32_t near = SEAM_NONE;
	size_t i;

	if (!(m->prot & PROT_EXEC))
		return;
	/* the file that is mapped beside, or under, this mapping */
	if (map && map->n) {
		i = SEAM_ARRAY_SEARCH(k, map->n,
				      map->items[k].begin <= m->addr);
		near = map->items[i ? i - 1 : 0].file;
	}
	mapping.file = seam_cfi_files_add(&stacks->files, m, is_new, near);
	if (mapping.file != SEAM_NONE &&
	    stacks->files.mappings.items[mapping.file].is_jvm)
		mapping.flags = SEAM_LIVE_IS_JVM;
	maps_add(&stacks->maps, m->pid, &mapping);
	seam_cfi_files_use(&stacks->files, mapping.file, -1);
}

void seam_live_stacks_sideband(struct seam_live_stacks *stacks,
			       const struct seam_perf_sideband *record,
			       bool is_new)
{
	const struct seam_perf_task *task = &record->task;
	uint64_t time_ns = record->sample_id.time;

	switch (record->type) {
	case PERF_RECORD_MMAP:
	case PERF_RECORD_MMAP2:
		add_mapping(stacks, &record->mapping, time_ns, is_new);
		return;
	case PERF_RECORD_COMM:
		if (!(record->misc & PERF_RECORD_MISC_COMM_EXEC))
			return;
		maps_exec(&stacks->maps, record->comm.pid);
		seam_live_jit_exec(&stacks->jit, record->comm.pid, time_ns);
		return;
	case PERF_RECORD_FORK:
		maps_fork(&stacks->maps, task->pid, task->ppid);
		if (task->pid != task->ppid)
			seam_live_jit_fork(&stacks->jit, task->pid, task->ppid,
					   time_ns);
		return;
	case PERF_RECORD_EXIT:
		maps_exit(&stacks->maps, task->pid);
		return;
	}
}

/* ---- the code of a process at the moment of a sample ---- */

struct sample_code {
	struct seam_live_stacks *stacks;
	struct seam_process_map *map;		/* NULL: not known */
	const struct seam_live_jit_process *jit;	/* NULL: no such code */
	uint64_t time_ns;
	bool is_last_try;	/* do without files that are not read yet */
	bool is_pending;	/* out: a file is not read yet */
	const struct seam_process_mapping *mapping;	/* the last one */
};

static const struct seam_process_mapping *mapping_at(struct sample_code *c,
						     uint64_t addr)
{
	const struct seam_process_mapping *m = c->mapping;

	if (!m || addr < m->begin || addr >= m->end)
		m = c->map ? map_at(c->map, addr) : NULL;
	if (m && m->since_ns > c->time_ns)
		m = NULL;
	if (m)
		c->mapping = m;
	return m;
}

/*
 * The file of @m, and the address of @addr in it; NULL: it has no CFI, and
 * *@why is the reason.
 */
static struct seam_mapped_file_cfi *
file_at(struct sample_code *c, const struct seam_process_mapping *m,
	uint64_t addr, uint64_t *file_addr, uint8_t *why)
{
	struct seam_cfi_files *files = &c->stacks->files;
	struct seam_mapped_file_cfi *file;
	bool is_pending;

	if (m->file == SEAM_NONE)
		return NULL;
	file = seam_cfi_files_want(files, m->file, &is_pending);
	if (file)
		return seam_segments_addr(&file->cfi.segments,
					  addr - m->begin + m->offset,
					  file_addr) ? file : NULL;
	c->is_pending |= is_pending;
	if (is_pending)
		*why = SEAM_STACK_NOT_READY;
	else if (!files->mappings.items[m->file].is_memory)
		*why = SEAM_STACK_NO_FILE;
	return NULL;
}

static bool find_jit(const struct sample_code *c, uint64_t addr,
		     struct seam_unwind_code *code)
{
	return c->jit && seam_live_jit_find(&c->stacks->jit, c->jit, addr,
					    c->time_ns, code);
}

/* A walk ends early where a file is not read yet. */
static bool find_code(void *context, uint64_t addr,
		      struct seam_unwind_code *code)
{
	struct sample_code *c = context;
	const struct seam_process_mapping *m;
	struct seam_mapped_file_cfi *file;
	uint64_t file_addr;

	if (find_jit(c, addr, code))
		return true;
	*code = (struct seam_unwind_code) { .rules = NULL };
	m = mapping_at(c, addr);
	if (!m)
		return false;
	file = file_at(c, m, addr, &file_addr, &code->why);
	if (!file)
		return !c->is_pending || c->is_last_try;
	code->id = seam_unwind_rows_find(&file->rows, file_addr);
	code->rules = &file->rows.rules;
	code->is_entry = code->id == SEAM_UNWIND_NO_CFI &&
			 seam_cfi_file_is_entry(&file->cfi, file_addr);
	return true;
}

static size_t code_before(void *context, uint64_t addr, uint8_t *bytes)
{
	struct sample_code *c = context;
	const struct seam_process_mapping *m = mapping_at(c, addr - 1);
	struct seam_unwind_code code = { .why = 0 };
	uint64_t file_addr;
	struct seam_mapped_file_cfi *file =
		m && !find_jit(c, addr - 1, &code) ?
		file_at(c, m, addr - 1, &file_addr, &code.why) : NULL;

	return file ? seam_cfi_file_code_before(&file->cfi, file_addr + 1,
						bytes,
						SEAM_UNWIND_CALL_BYTES) : 0;
}

static size_t function_at(void *context, uint64_t addr, uint8_t *bytes,
			  size_t max, size_t *before)
{
	struct sample_code *c = context;
	const struct seam_process_mapping *m = mapping_at(c, addr - 1);
	uint64_t file_addr, start, end;
	struct seam_mapped_file_cfi *file;
	uint8_t why;

	file = m ? file_at(c, m, addr - 1, &file_addr, &why) : NULL;
	if (!file || !seam_unwind_rows_function(&file->rows, file_addr, &start,
						&end) || end - start > max)
		return 0;
	*before = file_addr + 1 - start;
	return seam_cfi_file_code_before(&file->cfi, end, bytes, end - start) ==
	       end - start ? end - start : 0;
}

/* ---- records ---- */

/* A record in parts, the first of which begins with its header. */
struct record_parts {
	struct seam_bytes items[6];
	size_t n, n_bytes;
};

static void add_part(struct record_parts *p, const void *data, size_t size)
{
	p->items[p->n++] = (struct seam_bytes) { data, size };
	p->n_bytes += size;
}

static void write_record(const struct record_parts *p, uint8_t *to)
{
	struct seam_perf_header header;
	uint8_t *at = to;

	for (size_t i = 0; i < p->n; i++) {
		if (p->items[i].size)
			memcpy(at, p->items[i].data, p->items[i].size);
		at += p->items[i].size;
	}
	memcpy(&header, to, sizeof(header));
	header.size = (uint16_t)p->n_bytes;
	memcpy(to, &header, sizeof(header));
}

/*
 * Append the sample without registers and copy of the stack, with the callchain
 * of its walk, outer frames beyond 64 KiB left out, and RAW data about the
 * walk, if its event has no RAW data.
 */
static void append(struct seam_live_stacks *s, uint32_t event,
		   const uint8_t *record, const struct seam_perf_sample *sample)
{
	struct seam_sample_stack *stack = s->stack;
	const uint8_t *payload = record + SEAM_PERF_HEADER_BYTES;
	size_t after = sample->at.callchain + 8 + 8 * sample->callchain.n;
	bool has_raw = s->attrs[event].sample_type & PERF_SAMPLE_RAW;
	struct seam_bytes raw = has_raw ? (struct seam_bytes) { 0 } :
					  seam_sample_stack_raw(stack);
	uint64_t n = stack->walk.n ? stack->words.n : sample->callchain.n;
	size_t between = sample->at.user_regs - after;
	size_t rest = seam_perf_record_at(record).payload.size -
		      sample->at.rest;
	size_t others = SEAM_PERF_HEADER_BYTES + sample->at.callchain +
			sizeof(n) + raw.size + between + rest;
	struct record_parts p = { .n = 0 };
	uint8_t *to;

	if (others + 8 * n > UINT16_MAX)
		n = (UINT16_MAX - others) / 8;
	add_part(&p, record, SEAM_PERF_HEADER_BYTES + sample->at.callchain);
	add_part(&p, &n, sizeof(n));
	add_part(&p, stack->walk.n ? (const void *)stack->words.items :
		 sample->callchain.data, 8 * n);
	add_part(&p, raw.data, raw.size);
	add_part(&p, payload + after, between);
	add_part(&p, payload + sample->at.rest, rest);
	if (!SEAM_ARRAY_RESERVE(&s->out, p.n_bytes)) {
		s->n_dropped++;
		return;
	}
	to = s->out.items + s->out.n;
	s->out.n += p.n_bytes;
	write_record(&p, to);
	if (s->on_sample)
		s->on_sample(s->context, event, to);
}

void seam_live_stacks_copy(struct seam_live_stacks *stacks, const void *record)
{
	size_t size = SEAM_PERF_HEADER_BYTES +
		      seam_perf_record_at(record).payload.size;

	stacks->n_dropped += !SEAM_ARRAY_EXTEND(&stacks->out,
						(const uint8_t *)record, size);
}

/* ---- one sample ---- */

static void count(const struct seam_live_stacks *s,
		  const struct seam_process_map *map)
{
	const struct seam_sample_stack *stack = s->stack;
	bool is_early = stack->walk.n && stack->end != SEAM_STACK_COMPLETE;
	const struct seam_process_mapping *m = is_early && map ?
		map_at(map, stack->walk.end_pc) : NULL;

	seam_stack_counts_add(s->counts, stack->end, !m ? NULL :
			      m->file == SEAM_NONE ? "[jit]" :
			      s->files.mappings.items[m->file].path);
	s->counts->n_jvm += is_early && map && map->flags & SEAM_LIVE_IS_JVM;
	s->counts->n_kernel_cut += stack->recorded.n_kernel > s->max_chain;
}

/* ---- holes ---- */

/* To read a word of each of some pages of a thread's memory, in the helper. */
struct hole_job {
	struct seam_helper_job job;
	pid_t tid;
	uint64_t from;
	size_t n_pages;
};

static void run_hole(struct seam_helper_job *job)
{
	const struct hole_job *j = (const struct hole_job *)job;
	struct iovec words[SEAM_STACK_MAX_COPY / PAGE_BYTES + 1], to;
	uint64_t read[SEAM_STACK_MAX_COPY / PAGE_BYTES + 1];

	for (size_t i = 0; i < j->n_pages; i++)
		words[i] = (struct iovec) {
			(void *)(uintptr_t)(j->from + i * PAGE_BYTES),
			sizeof(*read),
		};
	to = (struct iovec) { read, j->n_pages * sizeof(*read) };
	/* it may have ended, or be another user's */
	(void)!process_vm_readv(j->tid, &to, 1, words, j->n_pages, 0);
}

static void done_hole(struct seam_helper_job *job, void *context)
{
	(void)job;
	(void)context;
}

static void free_hole(struct seam_helper_job *job)
{
	free(job);
}

/*
 * The kernel's copy ends at a page of the stack that was never written to, as
 * in a large frame.  What is above may have changed since, and cannot be used.
 * Reading the pages from outside has the kernel map its page of zeros there, so
 * that copies of the following samples go on: until then these stacks are cut.
 * The memory may be a program's trap, where reading never ends.
 */
static void map_hole(struct seam_live_stacks *s, uint32_t event,
		     const struct seam_perf_sample *sample)
{
	const struct seam_sample_stack *stack = s->stack;
	uint64_t wanted = s->attrs[event].sample_stack_user, end;
	struct hole_job *job;

	if (stack->end != SEAM_STACK_TRUNCATED || !stack->walk.n ||
	    sample->user_stack.size >= wanted || !s->files.helper)
		return;
	end = stack->frames[0].sp + sample->user_stack.size;
	if (stack->walk.end_cfa <= end || end % PAGE_BYTES ||
	    end == s->hole_end)
		return;
	s->hole_end = end;
	job = calloc(1, sizeof(*job));
	if (!job)
		return;
	*job = (struct hole_job) {
		.job = { .run = run_hole, .done = done_hole, .free = free_hole,
			 .user = seam_helper_user_of(sample->pid) },
		.tid = sample->tid, .from = end,
		.n_pages = (wanted - sample->user_stack.size - 1) /
			   PAGE_BYTES + 1,
	};
	(void)!seam_helper_submit(s->files.helper, &job->job);
}

/* ---- one sample, unwound ---- */

/*
 * Unwind the sample, and append it.  False, and nothing was done: a file is not
 * read yet, and this is not the last try.
 */
static bool unwind(struct seam_live_stacks *s, struct seam_process_map *map,
		   uint32_t event, const void *record,
		   const struct seam_perf_sample *sample, bool is_last_try)
{
	struct sample_code code = {
		.stacks = s, .map = map, .time_ns = sample->time,
		.jit = seam_live_jit_process(&s->jit, sample->pid),
		.is_last_try = is_last_try,
	};
	const struct seam_unwind_space space = {
		.find = find_code, .code_before = code_before,
		.function = function_at, .context = &code,
	};

	seam_sample_stack_walk(s->stack, sample,
			       seam_perf_record_at(record).misc,
			       (const void *)sample->callchain.data,
			       sample->callchain.n, &space);
	if (code.is_pending && !is_last_try)
		return false;
	count(s, map);
	map_hole(s, event, sample);
	if (s->stack->walk.n && !seam_sample_stack_chain(s->stack))
		s->n_dropped++;
	else
		append(s, event, record, sample);
	return true;
}

static bool read_sample(const struct seam_live_stacks *stacks, uint32_t event,
			const void *record, struct seam_perf_sample *sample)
{
	return seam_perf_sample_read(&stacks->attrs[event], SEAM_NATIVE,
				     seam_perf_record_at(record).payload,
				     sample) == 0;
}

/* ---- samples that wait ---- */

/* With the mappings of its moment, and the used part of its dump. */
struct seam_waiting_sample {
	struct seam_waiting_sample *next;
	/* NULL: the mappings of its process were not known yet. */
	struct seam_process_map *map;
	uint32_t event;
	uint64_t time;
	size_t n_bytes;			/* of .record */
	uint64_t record[];		/* a SAMPLE with its header */
};

static void put_waiting(struct seam_live_stacks *s,
			struct seam_waiting_sample *one)
{
	one->next = NULL;
	*(s->waiting.first ? s->waiting.last : &s->waiting.first) = one;
	s->waiting.last = &one->next;
	s->waiting.n++;
	s->waiting.n_bytes += one->n_bytes;
}

/* False, and nothing was done: no room, or no memory. */
static bool add_waiting(struct seam_live_stacks *s,
			struct seam_process_map *map, uint32_t event,
			const uint8_t *record,
			const struct seam_perf_sample *sample)
{
	const uint8_t *payload = record + SEAM_PERF_HEADER_BYTES;
	uint64_t used = sample->user_stack.size, size = (used + 7) & ~7ULL;
	struct record_parts p = { .n = 0 };
	struct seam_waiting_sample *one;

	add_part(&p, record, SEAM_PERF_HEADER_BYTES + sample->at.user_stack);
	add_part(&p, &size, sizeof(size));
	if (size) {
		add_part(&p, sample->user_stack.data, size);
		add_part(&p, &used, sizeof(used));
	}
	add_part(&p, payload + sample->at.rest,
		 seam_perf_record_at(record).payload.size - sample->at.rest);
	if (s->waiting.n_bytes + p.n_bytes > SEAM_LIVE_WAITING_BYTES)
		return false;
	one = malloc(sizeof(*one) + p.n_bytes);
	if (!one)
		return false;
	*one = (struct seam_waiting_sample) {
		.map = map_get(map), .event = event,
		.time = sample->time, .n_bytes = p.n_bytes,
	};
	write_record(&p, (uint8_t *)one->record);
	put_waiting(s, one);
	return true;
}

static void free_waiting(struct seam_live_stacks *stacks,
			 struct seam_waiting_sample *one)
{
	maps_put(&stacks->maps, one->map);
	free(one);
}

/* Try the waiting samples again. */
static void try_again(struct seam_live_stacks *stacks, bool all)
{
	struct seam_waiting_sample *one = stacks->waiting.first, *next;

	stacks->waiting = (struct seam_waiting_samples) { .n = 0 };
	for (; one; one = next) {
		struct seam_process_map *map = one->map;
		struct seam_perf_sample sample;

		next = one->next;
		/* add_waiting() read the sample, with a longer copy */
		if (!read_sample(stacks, one->event, one->record, &sample)) {
			stacks->n_dropped++;
			free_waiting(stacks, one);
			continue;
		}
		if (!map)
			map = maps_find(&stacks->maps, sample.pid);
		if (unwind(stacks, map, one->event, one->record, &sample, all))
			free_waiting(stacks, one);
		else
			put_waiting(stacks, one);
	}
}

uint64_t seam_live_stacks_oldest(const struct seam_live_stacks *stacks)
{
	const struct seam_waiting_sample *one = stacks->waiting.first;
	uint64_t oldest = UINT64_MAX;

	for (; one; one = one->next)
		if (one->time < oldest)
			oldest = one->time;
	return oldest;
}

uint32_t seam_live_stacks_drop(struct seam_live_stacks *stacks)
{
	struct seam_waiting_sample *one = stacks->waiting.first;
	uint32_t event = one ? one->event : SEAM_NONE;

	if (one) {
		stacks->waiting.first = one->next;
		stacks->waiting.n--;
		stacks->waiting.n_bytes -= one->n_bytes;
		free_waiting(stacks, one);
	}
	return event;
}

/* ---- rounds ---- */

/* Whether samples with @attr have copies of stacks. */
static bool has_dumps(const struct seam_perf_attr *attr)
{
	return (attr->sample_type & DUMPS) == DUMPS &&
	       attr->sample_type & PERF_SAMPLE_CALLCHAIN;
}

void seam_live_stacks_sample(struct seam_live_stacks *stacks, uint32_t event,
			     const void *record)
{
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
	map = maps_find(&stacks->maps, sample.pid);
	if ((map || !stacks->is_starting) &&
	    unwind(stacks, map, event, record, &sample, false))
		return;
	if (!add_waiting(stacks, map, event, record, &sample))
		unwind(stacks, map, event, record, &sample, true);
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

bool seam_live_stacks_is_busy(struct seam_live_stacks *stacks, int *fd)
{
	bool is_busy = seam_cfi_files_collect(&stacks->files);

	is_busy = stacks->waiting.n && (is_busy || can_try(stacks));
	if (stacks->files.helper)
		*fd = seam_helper_fd(stacks->files.helper);
	return is_busy;
}

/* ---- life ---- */

int seam_live_stacks_init(struct seam_live_stacks *stacks,
			  const struct seam_perf_attr *attrs, size_t n_events,
			  size_t max_chain, struct seam_stack_counts *counts,
			  struct seam_err *err)
{
	stacks->attrs = calloc(n_events ? n_events : 1, sizeof(*attrs));
	stacks->stack = calloc(1, sizeof(*stacks->stack));
	if (!stacks->attrs || !stacks->stack)
		return seam_err_no_memory(err);
	memcpy(stacks->attrs, attrs, n_events * sizeof(*attrs));
	stacks->maps.files = &stacks->files;
	stacks->counts = counts;
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
	maps_fini(&stacks->maps);
	seam_cfi_files_fini(&stacks->files);
	seam_live_jit_fini(&stacks->jit);
	free(stacks->attrs);
	if (stacks->stack)
		free(stacks->stack->words.items);
	free(stacks->stack);
	free(stacks->out.items);
	*stacks = (struct seam_live_stacks) { 0 };
}
