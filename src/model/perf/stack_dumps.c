/* SPDX-License-Identifier: MIT */
/* stack_dumps.c - batches of samples over all cores; see stack_dumps.h */
#include "model/perf/stack_dumps.h"

#include <elf.h>
#include <errno.h>
#include <linux/perf_event.h>
#include <stdlib.h>

#include "base/progress.h"
#include "base/workers.h"
#include "model/perf/code_space.h"
#include "unwind/walk/kernel_chain.h"
#include "unwind/walk/precise.h"
#include "unwind/walk/result.h"
#include "wire/perf/perf_registers.h"
#include "wire/perf/perf_stream.h"
#include "wire/perf/unwound.h"

/* -- one walk ----------------------------------------------------------- */

/*
 * One thread's part of stack_dumps.h: walk, make a callchain
 *
 * Threads: one for each struct dump_walk; what they share is only read.
 */

enum {
	MAX_FRAMES = 4096,	/* of 16 bytes: a dump of 64 KiB */
};

/* A sample of a batch. */
struct stack_job {
	struct seam_bytes payload;
	uint32_t sample;		/* of the profile */
	uint16_t event, misc;
	bool is_done;
	uint32_t chain;		/* of the walker's; SEAM_NONE: as it was */
	struct seam_bytes raw;	/* wire/perf/unwound.h; the walker's */
};

struct dump_walk {
	const struct seam_stack_dumps *dumps;
	struct seam_code_space space;
	struct seam_task_at at;
	struct seam_callchains chains;		/* of the stacks walked here */
	SEAM_ARRAY(uint32_t) common;		/* their common ids, + 1; 0 */
	struct seam_stack_counts counts;	/* what samples do not have */
	SEAM_ARRAY(uint64_t) words;		/* of one callchain */
	struct seam_arena kept;			/* RAW data of a batch */
	int error;				/* 0 or -ENOMEM */
	struct seam_unwind_frame frames[MAX_FRAMES];
	uint64_t cfas[MAX_FRAMES];
	uint8_t raw[SEAM_UNWOUND_MAX_BYTES];	/* of one stack */
};

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

static enum seam_stack_end end_of(struct dump_walk *w,
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
static void describe(struct dump_walk *w, struct stack_job *job,
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
static uint32_t add_chain(struct dump_walk *w, int32_t pid,
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
static void enter(struct dump_walk *w, uint32_t sample, int32_t pid)
{
	const struct seam_samples *s = &w->dumps->profile->samples;

	if (!seam_task_at_holds(&w->at, s->thread[sample],
				s->time_ns[sample]))
		w->at = seam_tasks_find(w->dumps->tasks, s->thread[sample],
					s->time_ns[sample]);
	seam_code_space_enter(&w->space, w->at.space, pid, s->time_ns[sample]);
}

/* The limit of a chain that the kernel made, in addresses. */
static size_t max_chain_of(const struct dump_walk *w,
			   const struct stack_job *job)
{
	uint16_t max = w->dumps->data->events.items[job->event]
		       .attr.sample_max_stack;

	return max ? max : PERF_MAX_STACK_DEPTH;
}

/* Walk, and find where the recorded chain @c goes on. */
static void walk(struct dump_walk *w, const struct stack_job *job,
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
		.frames = w->frames, .max = MAX_FRAMES,
	};
	seam_unwind_walk_sample(&space, &memory, regs, job->misc, stack);
	c->rest = seam_unwind_kernel_follow(&space, &memory, regs, &c->chain,
					    stack);
}

static void count_kernel_cut(struct dump_walk *w,
			     const struct stack_job *job)
{
	w->counts.n_kernel_cut += recorded_chain(w->dumps, job->sample)
				  .chain.n_kernel > max_chain_of(w, job);
}

static void take_stack(struct dump_walk *w, struct stack_job *job,
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

/*
 * Unwind @job.  It is not done where a file is needed first, which is then
 * .space.needed.
 */
static void walk_job(struct dump_walk *w, struct stack_job *job)
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

static void fini_walk(struct dump_walk *w)
{
	seam_code_space_fini(&w->space);
	seam_callchains_fini(&w->chains);
	free(w->common.items);
	free(w->words.items);
	seam_arena_fini(&w->kept);
}

#ifdef __x86_64__
#define IS_X86_64 1
#else
#define IS_X86_64 0
#endif

/* Samples of a batch. */
enum { MAX_BATCH = 4096 };

/* Of a batch, unpacked. */
#define MAX_UNPACKED ((size_t)16 << 20)

struct dump_batches {
	const struct seam_stack_dumps *dumps;
	struct seam_code_files files;
	struct dump_walk *walks;
	size_t n_walks;
	SEAM_ARRAY(struct stack_job) jobs;
	struct seam_arena unpacked;	/* payloads of jobs */
	size_t n_unpacked;		/* bytes */
	struct seam_progress progress;
};

/* -- one batch ---------------------------------------------------------- */

/* Each walker has a range of the batch. */
static size_t first_job(const struct dump_batches *b, size_t walker)
{
	return b->jobs.n * walker / b->n_walks;
}

static void walk_task(void *context, size_t walker)
{
	struct dump_batches *b = context;
	struct dump_walk *w = &b->walks[walker];

	for (size_t i = first_job(b, walker); i < first_job(b, walker + 1);
	     i++) {
		struct stack_job *job = &b->jobs.items[i];

		if (!job->is_done)
			walk_job(w, job);
		/* the next one is likely to need the same file */
		if (w->error || !job->is_done)
			return;
	}
	w->space.needed = SEAM_NONE;
}

/* Open what the walks need.  1 if there was something; 0; or -ENOMEM. */
static int open_needed(struct dump_batches *b)
{
	int n = 0;

	for (size_t i = 0; i < b->n_walks; i++) {
		struct dump_walk *w = &b->walks[i];

		if (w->error)
			return w->error;
		if (w->space.needed == SEAM_NONE)
			continue;
		n = 1;
		if (seam_code_files_open(&b->files, w->space.needed,
					 w->space.is_debug_needed))
			return -ENOMEM;
	}
	return n;
}

/*
 * The chain of walker @w becomes a common one, that of the sample; what is
 * known of the walk is kept as long as the scans are.
 */
static int set_chain(const struct seam_stack_dumps *dumps,
		     struct dump_walk *w, const struct stack_job *job)
{
	const struct seam_callchain *c;
	const char *raw = seam_arena_text(&dumps->scans[0].arena,
					  (const char *)job->raw.data,
					  job->raw.size);
	uint32_t *id;

	if (!raw || !SEAM_ARRAY_ADD(dumps->walks, (struct seam_stack_walk) {
			.raw = (const uint8_t *)raw,
			.raw_bytes = (uint32_t)job->raw.size,
			.sample = job->sample,
		}))
		return -ENOMEM;
	if (job->chain == SEAM_NONE)
		return 0;
	if (!SEAM_ARRAY_GROW(&w->common, w->chains.items.n))
		return -ENOMEM;
	c = &w->chains.items.items[job->chain];
	id = &w->common.items[job->chain];
	if (*id == 0)
		*id = 1 + seam_callchains_add(dumps->chains, c->pid,
				w->chains.words.items + c->first, c->n);
	dumps->profile->samples.stack[job->sample] = *id - 1;
	return *id ? 0 : -ENOMEM;
}

static int take_results(struct dump_batches *b)
{
	int r = 0;

	for (size_t walker = 0; walker < b->n_walks; walker++) {
		struct dump_walk *w = &b->walks[walker];

		for (size_t i = first_job(b, walker);
		     r == 0 && i < first_job(b, walker + 1); i++)
			r = set_chain(b->dumps, w, &b->jobs.items[i]);
		seam_arena_fini(&w->kept);
	}
	return r;
}

static int run_batch(struct dump_batches *b)
{
	int r;

	do {
		seam_workers_run(b->n_walks, walk_task, b);
		r = open_needed(b);
	} while (r > 0);
	if (r == 0)
		r = take_results(b);
	seam_progress_step(&b->progress, b->jobs.n);
	b->jobs.n = 0;
	b->n_unpacked = 0;
	seam_arena_fini(&b->unpacked);
	return r;
}

/* -- all samples -------------------------------------------------------- */

static int add_job(struct dump_batches *b, const struct seam_perf_scan *scan,
		   const struct seam_stack_dump *dump, const uint8_t *payload)
{
	if (!SEAM_ARRAY_ADD(&b->jobs, (struct stack_job) {
			.payload = { payload, dump->size },
			.event = dump->event, .misc = dump->misc,
			.sample = (uint32_t)scan->first_sample + dump->sample,
		}))
		return -ENOMEM;
	return b->jobs.n >= MAX_BATCH || b->n_unpacked >= MAX_UNPACKED ?
	       run_batch(b) : 0;
}

/* The dumps from *@next on that are of @record, which was packed. */
static int add_unpacked(struct dump_batches *b,
			const struct seam_perf_scan *scan, size_t *next,
			uint32_t number, const struct seam_perf_record *record)
{
	int r = 0;

	for (; r == 0 && *next < scan->dumps.n; ++*next) {
		const struct seam_stack_dump *dump = &scan->dumps.items[*next];
		const char *copy;

		if (dump->record != number)
			break;
		if (dump->payload || dump->size != record->payload.size)
			continue;
		copy = seam_arena_text(&b->unpacked,
				       (const char *)record->payload.data,
				       dump->size);
		b->n_unpacked += dump->size;
		r = copy ? add_job(b, scan, dump, (const uint8_t *)copy) :
		    -ENOMEM;
	}
	return r;
}

static int take_packed(struct dump_batches *b,
		       const struct seam_perf_scan *scan, size_t next)
{
	struct seam_perf_stream stream;
	struct seam_perf_record record;
	struct seam_err err = { 0 };
	uint32_t number = 0;
	int r = 0;

	seam_perf_stream_init(&stream, scan->bytes, scan->data->endian,
			      scan->begin, scan->end, false);
	stream.limit = scan->limit;
	while (r == 0 && next < scan->dumps.n &&
	       seam_perf_stream_next(&stream, &record, &err) > 0)
		if (record.type == PERF_RECORD_SAMPLE)
			r = add_unpacked(b, scan, &next, number++, &record);
	seam_perf_stream_fini(&stream);
	return r;
}

static int take_scan(struct dump_batches *b, const struct seam_perf_scan *scan)
{
	size_t i = 0;
	int r = 0;

	for (; r == 0 && i < scan->dumps.n && scan->dumps.items[i].payload; i++)
		r = add_job(b, scan, &scan->dumps.items[i],
			    scan->dumps.items[i].payload);
	return r || i == scan->dumps.n ? r : take_packed(b, scan, i);
}

/* -- the result --------------------------------------------------------- */

static int init(struct dump_batches *b)
{
	const struct seam_stack_dumps *d = b->dumps;

	b->n_walks = seam_workers_count();
	b->files.profile = d->profile;
	b->files.symbols = d->symbols;
	b->walks = calloc(b->n_walks, sizeof(*b->walks));
	if (!b->walks)
		return -ENOMEM;
	for (size_t i = 0; i < b->n_walks; i++) {
		b->walks[i].dumps = d;
		b->walks[i].at.key = SEAM_NONE;
		b->walks[i].space = (struct seam_code_space) {
			.profile = d->profile, .spaces = &d->tasks->spaces,
			.files = &b->files, .jit = d->jit,
		};
	}
	return d->jit ? seam_jit_code_index(d->jit) : 0;
}

static void fini(struct dump_batches *b)
{
	for (size_t i = 0; b->walks && i < b->n_walks; i++)
		fini_walk(&b->walks[i]);
	free(b->walks);
	seam_code_files_fini(&b->files);
	seam_arena_fini(&b->unpacked);
	free(b->jobs.items);
}

static size_t count(const struct seam_stack_dumps *dumps)
{
	size_t n = 0;

	for (size_t i = 0; i < dumps->n_scans; i++)
		n += dumps->scans[i].dumps.n;
	return n;
}

bool seam_stack_dumps_exist(const struct seam_stack_dumps *dumps)
{
	return count(dumps) > 0;
}

bool seam_stack_dumps_supported(const struct seam_stack_dumps *dumps)
{
	uint32_t machine = dumps->profile->elf_machine;

	/* without a name, because the writer was killed: of this machine */
	return dumps->data->endian == SEAM_LITTLE &&
	       (machine == EM_X86_64 || (machine == EM_NONE && IS_X86_64));
}

int seam_stack_dumps_unwind(const struct seam_stack_dumps *dumps)
{
	struct dump_batches b = { .dumps = dumps };
	int r = init(&b);

	seam_progress_begin(&b.progress, "unwinding", count(dumps));
	for (size_t i = 0; r == 0 && i < dumps->n_scans; i++)
		r = take_scan(&b, &dumps->scans[i]);
	if (r == 0 && b.jobs.n)
		r = run_batch(&b);
	seam_progress_end(&b.progress);
	for (size_t i = 0; r == 0 && i < b.n_walks; i++)
		seam_stack_counts_merge(&dumps->profile->stack_counts,
					&b.walks[i].counts);
	fini(&b);
	return r;
}
