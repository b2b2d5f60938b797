/* SPDX-License-Identifier: MIT */
/* stack_dumps.c - batches of samples over all cores; see stack_dumps.h */
#include "model/perf/stack_dumps.h"

#include <elf.h>
#include <errno.h>
#include <linux/perf_event.h>
#include <stdlib.h>

#include "base/progress.h"
#include "base/workers.h"
#include "model/perf/dump_walk.h"
#include "wire/perf/perf_stream.h"

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
	struct seam_dump_walk *walks;
	size_t n_walks;
	SEAM_ARRAY(struct seam_dump_job) jobs;
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
	struct seam_dump_walk *w = &b->walks[walker];

	for (size_t i = first_job(b, walker); i < first_job(b, walker + 1);
	     i++) {
		struct seam_dump_job *job = &b->jobs.items[i];

		if (!job->is_done)
			seam_dump_walk_job(w, job);
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
		struct seam_dump_walk *w = &b->walks[i];

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
		     struct seam_dump_walk *w, const struct seam_dump_job *job)
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
		struct seam_dump_walk *w = &b->walks[walker];

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
	if (!SEAM_ARRAY_ADD(&b->jobs, (struct seam_dump_job) {
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
		seam_dump_walk_fini(&b->walks[i]);
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
