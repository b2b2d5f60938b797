/* SPDX-License-Identifier: MIT */
/* stack_dumps.c - code, then batches over all cores; see stack_dumps.h */
#include "model/perf/stack_dumps.h"

#include <elf.h>
#include <errno.h>
#include <linux/perf_event.h>
#include <stdlib.h>

#include "base/progress.h"
#include "base/workers.h"
#include "model/origin.h"
#include "unwind/compile/cfi_rows.h"
#include "unwind/walk/sample_stack.h"
#include "wire/perf/perf_stream.h"

/* -- files -------------------------------------------------------------- */

/*
 * The files are those that names come from: symbol/elf/find_elf.h searches
 * them and checks that they are what was mapped.  Call frame information is
 * read here, not in the sandboxed process, by a small reader whose sizes are
 * bounded (symbol/elf/cfi_file.h); the sandbox is for the large libraries that
 * parse symbols and DWARF.
 *
 * Threads: one opens; while none does, any number reads.
 */

/* Find and read the file of @id, or its debug file. */
static bool open_file(struct seam_code_files *files, uint32_t id,
		      bool is_debug, struct seam_cfi_file *file)
{
	struct seam_module_file from;
	struct seam_err err = { 0 };
	int r;

	if (seam_symbols_open(files->symbols, id, is_debug, &from, &err))
		return false;
	if (!from.image)
		return seam_cfi_file_open(file, from.fd, &err) == 0;
	r = seam_cfi_file_open_image(file, (struct seam_bytes) {
			from.image, from.size }, &err);
	free(from.image);
	return r == 0;
}

int seam_code_files_open(struct seam_code_files *files, uint32_t module,
			 bool is_debug)
{
	uint32_t id = seam_origin_symbols(files->profile, module,
					  files->symbols);
	struct seam_code_file *file;
	struct seam_cfi_file debug;

	if (id == SEAM_NONE ||
	    !SEAM_ARRAY_GROW(&files->items, (size_t)module + 1))
		return -ENOMEM;
	file = files->items.items[module];
	if (!file) {
		file = files->items.items[module] = calloc(1, sizeof(*file));
		if (!file)
			return -ENOMEM;
		file->cfi.fd = -1;
		file->is_found = open_file(files, id, false, &file->cfi);
		file->cfi.may_wait = true;
		if (file->cfi.fd >= 0 &&
		    ++files->n_open > SEAM_CODE_FILES_MAX_OPEN)
			seam_cfi_file_release_fd(&file->cfi);
	}
	if (!is_debug || file->is_debug_tried)
		return 0;
	/* .debug_frame is often in the debug file alone */
	file->is_debug_tried = true;
	if (file->cfi.debug.entries.size == 0 &&
	    open_file(files, id, true, &debug))
		seam_cfi_file_take_debug(&file->cfi, &debug);
	return 0;
}

void seam_code_files_fini(struct seam_code_files *files)
{
	for (size_t i = 0; i < files->items.n; i++) {
		struct seam_code_file *file = files->items.items[i];

		if (!file)
			continue;
		seam_cfi_file_close(&file->cfi);
		free(file);
	}
	free(files->items.items);
	*files = (struct seam_code_files) { 0 };
}

/* Places that are remembered: more than most recordings have. */
enum { CACHE_BITS = 13, N_CACHED = 1 << CACHE_BITS };

/* Where code is. */
enum code_kind {
	CODE_NONE,			/* nothing executable is mapped */
	CODE_ANON,			/* without a file, or it is not here */
	CODE_JIT,			/* of a JIT object */
	CODE_FILE,
};

/* The code at an address from one time to another. */
struct code_at {
	uint64_t addr, from_ns, to_ns;
	uint32_t space;
	int32_t pid;
	uint64_t pos;			/* in the file's or JIT's numbers */
	uint32_t id;			/* module; of JIT code its object */
	uint8_t kind;			/* enum code_kind */
	struct seam_unwind_code code;
};

/*
 * The code of a recording: what was mapped (spaces.h) and the code of JITs
 * (jit_code.h), which has precedence, at the time of a sample, with the call
 * frame information of files and of JITDUMP's UNWINDING_INFO records.
 *
 * A walk that comes to a file that was not opened yet, or needs its debug file,
 * ends there: .needed is its module.  An address that was looked up before
 * takes one probe of a table.
 */
struct code_space {
	/* Borrowed; jit is indexed already, or NULL: */
	const struct seam_profile *profile;
	const struct seam_spaces *spaces;
	const struct seam_code_files *files;
	struct seam_jit_code *jit;

	/* The stack that is walked, see enter_space(): */
	uint32_t space;
	int32_t pid;
	uint64_t time_ns;
	uint64_t jit_from_ns, jit_to_ns;	/* JIT code does not change */

	uint32_t needed;		/* a module to be opened; SEAM_NONE */
	bool is_debug_needed;		/* its debug file */
	SEAM_ARRAY(struct file_rows *) rows;	/* by module */
	struct seam_unwind_code_rows jit_rows;
	SEAM_ARRAY(uint32_t) pieces;	/* of these, by JIT object, + 1; or 0 */
	struct code_at *cache;	/* NULL before the first */
	int error;			/* 0 or -ENOMEM */
};

/* -- rules -------------------------------------------------------------- */

struct file_rows {
	struct seam_unwind_rows rows;
	bool has_debug;			/* made with .debug_frame */
};

static void *no_memory(struct code_space *s)
{
	s->error = -ENOMEM;
	return NULL;
}

/* The rows of @file's rules; NULL: no memory. */
static struct seam_unwind_rows *rows_of(struct code_space *s,
					uint32_t module,
					const struct seam_code_file *file)
{
	bool has_debug = file->cfi.debug.entries.size > 0;
	struct file_rows *rows;

	if (!SEAM_ARRAY_GROW(&s->rows, (size_t)module + 1))
		return no_memory(s);
	rows = s->rows.items[module];
	if (rows && rows->has_debug == has_debug)
		return &rows->rows;
	if (rows) {
		/* places that are remembered have the old rules */
		memset(s->cache, 0, N_CACHED * sizeof(*s->cache));
		seam_unwind_rows_fini(&rows->rows);
	} else {
		rows = s->rows.items[module] = calloc(1, sizeof(*rows));
	}
	if (!rows)
		return no_memory(s);
	rows->has_debug = has_debug;
	/* On failure they are empty: the file has no rules. */
	if (seam_unwind_rows_init(&rows->rows, &file->cfi.eh,
				  &file->cfi.debug) == -ENOMEM)
		return no_memory(s);
	return &rows->rows;
}

static void need(struct code_space *s, uint32_t module, bool is_debug)
{
	s->needed = module;
	s->is_debug_needed = is_debug;
}

static void find_file_rule(struct code_space *s, struct code_at *at,
			   const struct seam_code_file *file)
{
	struct seam_unwind_rows *rows = rows_of(s, at->id, file);

	if (!rows)
		return;
	/* its CFI may say so only from the second instruction on */
	if (at->pos && at->pos == file->cfi.entry) {
		at->code.is_entry = true;
		return;
	}
	at->code.rules = &rows->rules;
	at->code.id = seam_unwind_rows_find(rows, at->pos);
	if (at->code.id != SEAM_UNWIND_NO_CFI)
		return;
	at->code.is_entry = seam_cfi_file_is_entry(&file->cfi, at->pos);
	if (!at->code.is_entry && !file->is_debug_tried)
		need(s, at->id, true);
}

/* The rows of JIT object @id, compiled when first seen; SEAM_NONE: none. */
static uint32_t piece_of(struct code_space *s, uint32_t id,
			 const struct seam_jit_object *o)
{
	const struct seam_eh_frame frame = {
		.entries = o->eh_frame,
		.entries_addr = o->start_addr + o->eh_frame_offset,
		.endian = (enum seam_endian)o->endian, .address_bytes = 8,
	};
	int64_t piece;

	if (!SEAM_ARRAY_GROW(&s->pieces, (size_t)id + 1)) {
		s->error = -ENOMEM;
		return SEAM_NONE;
	}
	if (s->pieces.items[id] == 0) {
		piece = seam_unwind_code_rows_add(&s->jit_rows, &frame,
						  o->start_addr, o->size);
		if (piece < 0)
			s->error = (int)piece;
		s->pieces.items[id] = piece < 0 || piece == SEAM_NONE ?
				      SEAM_NONE : (uint32_t)piece + 1;
	}
	return s->pieces.items[id] - 1;
}

/* -- places ------------------------------------------------------------- */

static void find_in_file(struct code_space *s, struct code_at *at,
			 uint64_t offset)
{
	const struct seam_code_file *file = seam_code_files_get(s->files,
								at->id);

	at->kind = CODE_NONE;
	if (!file) {
		need(s, at->id, false);
	} else if (!file->is_found) {
		/* a guess by the frame pointer could not be checked */
		at->kind = CODE_ANON;
		at->code.why = SEAM_STACK_NO_FILE;
		at->code.rules = &s->jit_rows.rules;
		at->code.id = SEAM_UNWIND_BAD_CFI;
	} else if (seam_segments_addr(&file->cfi.segments, offset,
				      &at->pos)) {
		at->kind = CODE_FILE;
		find_file_rule(s, at, file);
	}
}

static void find_mapped(struct code_space *s, struct code_at *at,
			const struct seam_vma *vma)
{
	const struct seam_mapping *m =
		vma ? &s->profile->mappings.items[vma->mapping] : NULL;
	enum seam_module_kind kind;

	if (!m || !m->is_executable)
		return;
	at->id = m->module;
	kind = (enum seam_module_kind)s->profile->modules.items[m->module].kind;
	at->kind = CODE_ANON;
	if (kind == SEAM_MODULE_FILE || kind == SEAM_MODULE_VDSO)
		find_in_file(s, at, at->addr - vma->begin + m->pgoff);
}

static void find(struct code_space *s, struct code_at *at)
{
	struct seam_jit_location jit;
	const struct seam_jit_object *o;
	uint32_t piece;
	bool is_jit;
	const struct seam_vma *vma = seam_spaces_find(s->spaces, s->space,
						      at->addr, s->time_ns,
						      &at->from_ns,
						      &at->to_ns);

	if (s->jit_from_ns > at->from_ns)
		at->from_ns = s->jit_from_ns;
	if (s->jit_to_ns < at->to_ns)
		at->to_ns = s->jit_to_ns;
	is_jit = s->jit && seam_jit_code_find_object(s->jit, s->pid, at->addr,
						     s->time_ns, &jit);
	/* A perf map has less than the symbols of a file. */
	if (!is_jit ||
	    seam_jit_code_object(s->jit, jit.object)->code.size == 0) {
		find_mapped(s, at, vma);
		if (at->kind == CODE_NONE && is_jit && !vma)
			at->kind = CODE_ANON;
		return;
	}
	at->kind = CODE_JIT;
	at->id = jit.object;
	at->pos = jit.offset;
	o = seam_jit_code_object(s->jit, at->id);
	piece = o->eh_frame.size ? piece_of(s, at->id, o) : SEAM_NONE;
	if (piece >= s->jit_rows.pieces.n)
		return;
	at->code.rules = &s->jit_rows.rules;
	at->code.id = seam_unwind_code_rows_find(&s->jit_rows, piece, at->pos);
}

/* Look up in address space @space of process @pid at @time_ns from now on. */
static void enter_space(struct code_space *s, uint32_t space, int32_t pid,
			uint64_t time_ns)
{
	bool is_stable = pid == s->pid && s->jit_from_ns <= time_ns &&
			 time_ns < s->jit_to_ns;

	s->space = space;
	s->pid = pid;
	s->time_ns = time_ns;
	s->needed = SEAM_NONE;
	if (is_stable)
		return;
	s->jit_from_ns = 0;
	s->jit_to_ns = UINT64_MAX;
	if (s->jit)
		seam_jit_code_stable_span(s->jit, pid, time_ns,
					  &s->jit_from_ns, &s->jit_to_ns);
}

/*
 * The code at @addr in the process and at the time of the stack; valid until
 * the next call.
 */
static const struct code_at *code_at(struct code_space *s,
					  uint64_t addr)
{
	static const struct code_at none;
	struct code_at found = {
		.addr = addr, .space = s->space, .pid = s->pid,
	};
	struct code_at *at;

	if (!s->cache)
		s->cache = calloc(N_CACHED, sizeof(*s->cache));
	if (!s->cache) {
		s->error = -ENOMEM;
		return &none;
	}
	/* Fibonacci hashing: a collision costs a look-up and nothing else */
	at = &s->cache[(addr ^ (uint64_t)s->space << 40) *
		       UINT64_C(0x9e3779b97f4a7c15) >> (64 - CACHE_BITS)];
	if (at->addr == addr && at->space == s->space && at->pid == s->pid &&
	    at->from_ns <= s->time_ns && s->time_ns < at->to_ns)
		return at;
	find(s, &found);
	if (s->needed != SEAM_NONE)
		found.to_ns = 0;
	*at = found;
	return at;
}

/* -- for walks ---------------------------------------------------------- */

static bool find_code(void *context, uint64_t addr,
		      struct seam_unwind_code *code)
{
	const struct code_at *at = code_at(context, addr);

	*code = at->code;
	return at->kind != CODE_NONE;
}

static size_t code_before(void *context, uint64_t addr, uint8_t *bytes)
{
	struct code_space *s = context;
	const struct code_at *at = code_at(s, addr - 1);
	uint64_t end = at->pos + 1;
	size_t n = end < SEAM_UNWIND_CALL_BYTES ? (size_t)end :
		   SEAM_UNWIND_CALL_BYTES;

	if (at->kind == CODE_JIT) {
		struct seam_bytes code =
			seam_jit_code_object(s->jit, at->id)->code;

		if (end > code.size)
			return 0;
		memcpy(bytes + SEAM_UNWIND_CALL_BYTES - n, code.data + end - n,
		       n);
		return n;
	}
	if (at->kind != CODE_FILE)
		return 0;
	return seam_cfi_file_code_before(
		&seam_code_files_get(s->files, at->id)->cfi, end,
		bytes, SEAM_UNWIND_CALL_BYTES);
}

static void fini_space(struct code_space *s)
{
	for (size_t i = 0; i < s->rows.n; i++) {
		if (s->rows.items[i])
			seam_unwind_rows_fini(&s->rows.items[i]->rows);
		free(s->rows.items[i]);
	}
	free(s->rows.items);
	seam_unwind_code_rows_fini(&s->jit_rows);
	free(s->pieces.items);
	free(s->cache);
	*s = (struct code_space) { 0 };
}

/* -- one walk ----------------------------------------------------------- */

/* A sample of a batch. */
struct stack_job {
	struct seam_bytes payload;
	uint32_t sample;		/* of the profile */
	uint16_t event, misc;
	bool is_done;
	uint32_t chain;		/* of the walker's; SEAM_NONE: as it was */
	struct seam_bytes raw;	/* wire/perf/unwound.h; the walker's */
};

/* Of one thread; what they share is only read. */
struct dump_walk {
	const struct seam_stack_dumps *dumps;
	struct code_space space;
	struct seam_task_at at;
	struct seam_callchains chains;		/* of the stacks walked here */
	SEAM_ARRAY(uint32_t) common;		/* their common ids, + 1; 0 */
	struct seam_stack_counts counts;	/* what samples do not have */
	struct seam_arena kept;			/* RAW data of a batch */
	int error;				/* 0 or -ENOMEM */
	struct seam_sample_stack stack;		/* of one sample */
};

static void count(struct seam_stack_counts *counts,
		  const struct seam_sample_stack *stack,
		  const struct seam_perf_attr *attr)
{
	size_t max = attr->sample_max_stack ? attr->sample_max_stack :
					      PERF_MAX_STACK_DEPTH;

	counts->n_kernel_cut += stack->recorded.n_kernel > max;
	if (stack->walk.n && attr->sample_stack_user > counts->dump_bytes)
		counts->dump_bytes = attr->sample_stack_user;
}

/* The results of a walk. */
static int take_stack(struct dump_walk *w, struct stack_job *job, int32_t pid)
{
	struct seam_sample_stack *stack = &w->stack;
	const size_t head = sizeof(uint32_t);
	struct seam_bytes raw = seam_sample_stack_raw(stack);
	const char *copy = seam_arena_text(&w->kept,
					   (const char *)raw.data + head,
					   raw.size - head);

	job->raw = (struct seam_bytes) { (const uint8_t *)copy,
					 raw.size - head };
	if (!copy)
		return -ENOMEM;
	if (stack->walk.n == 0)
		return 0;
	if (!seam_sample_stack_chain(stack))
		return -ENOMEM;
	job->chain = seam_callchains_add(&w->chains, pid, stack->words.items,
					 stack->words.n);
	return job->chain == SEAM_NONE ? -ENOMEM : 0;
}

/*
 * Unwind @job.  It is not done where a file is needed first, which is then
 * .space.needed.
 */
static void walk_job(struct dump_walk *w, struct stack_job *job)
{
	const struct seam_stack_dumps *dumps = w->dumps;
	const struct seam_samples *s = &dumps->profile->samples;
	uint64_t time_ns = s->time_ns[job->sample];
	const struct seam_perf_attr *attr =
		&dumps->data->events.items[job->event].attr;
	const struct seam_callchain *chain = &dumps->chains->items.items[
		s->stack[job->sample]];
	const struct seam_unwind_space space = {
		.find = find_code, .code_before = code_before,
		.context = &w->space,
	};
	struct seam_perf_sample sample = { .time = 0 };

	job->chain = SEAM_NONE;
	if (seam_perf_sample_read(attr, dumps->data->endian, job->payload,
				  &sample))
		sample.user_regs.abi = PERF_SAMPLE_REGS_ABI_NONE;
	if (!seam_task_at_holds(&w->at, s->thread[job->sample], time_ns))
		w->at = seam_tasks_find(dumps->tasks, s->thread[job->sample],
					time_ns);
	enter_space(&w->space, w->at.space, sample.pid, time_ns);
	seam_sample_stack_walk(&w->stack, &sample, job->misc,
			       dumps->chains->words.items + chain->first,
			       chain->n, &space);
	w->error = w->space.error;
	if (w->error || w->space.needed != SEAM_NONE)
		return;
	count(&w->counts, &w->stack, attr);
	w->error = take_stack(w, job, sample.pid);
	job->is_done = true;
}

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

static int run_batch(struct dump_batches *b)
{
	bool is_done;
	int r = 0;

	/* once more, while walks need files that were not opened yet */
	do {
		seam_workers_run(b->n_walks, walk_task, b);
		is_done = true;
		for (size_t i = 0; r == 0 && i < b->n_walks; i++) {
			const struct code_space *space = &b->walks[i].space;

			r = b->walks[i].error;
			if (r || space->needed == SEAM_NONE)
				continue;
			is_done = false;
			r = seam_code_files_open(&b->files, space->needed,
						 space->is_debug_needed);
		}
	} while (r == 0 && !is_done);
	for (size_t i = 0; i < b->n_walks; i++) {
		for (size_t k = first_job(b, i); r == 0 &&
		     k < first_job(b, i + 1); k++)
			r = set_chain(b->dumps, &b->walks[i],
				      &b->jobs.items[k]);
		seam_arena_fini(&b->walks[i].kept);
	}
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
		b->walks[i].space = (struct code_space) {
			.profile = d->profile, .spaces = &d->tasks->spaces,
			.files = &b->files, .jit = d->jit,
		};
	}
	return d->jit ? seam_jit_code_index(d->jit) : 0;
}

static void fini(struct dump_batches *b)
{
	for (size_t i = 0; b->walks && i < b->n_walks; i++) {
		struct dump_walk *w = &b->walks[i];

		fini_space(&w->space);
		seam_callchains_fini(&w->chains);
		free(w->common.items);
		free(w->stack.words.items);
		seam_arena_fini(&w->kept);
	}
	free(b->walks);
	seam_code_files_fini(&b->files);
	seam_arena_fini(&b->unpacked);
	free(b->jobs.items);
}

static bool is_supported(const struct seam_stack_dumps *dumps)
{
	uint32_t machine = dumps->profile->elf_machine;

#ifdef __x86_64__
	/* without a name, because the writer was killed: of this machine */
	if (machine == EM_NONE)
		machine = EM_X86_64;
#endif
	return dumps->data->endian == SEAM_LITTLE && machine == EM_X86_64;
}

int seam_stack_dumps_unwind(const struct seam_stack_dumps *dumps)
{
	struct dump_batches b = { .dumps = dumps };
	size_t n = 0;
	int r;

	for (size_t i = 0; i < dumps->n_scans; i++)
		n += dumps->scans[i].dumps.n;
	if (n && !is_supported(dumps))
		seam_profile_note(dumps->profile, "stack dumps of this "
			"architecture are not unwound: their samples show the "
			"innermost user function");
	if (!n || !is_supported(dumps))
		return 0;
	r = init(&b);
	seam_progress_begin(&b.progress, "unwinding", n);
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
