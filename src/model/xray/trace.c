/* SPDX-License-Identifier: MIT */
/* trace.c - open, order, tie to the clock; see trace.h */
#include "model/xray/trace.h"

#include <assert.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>

#include "model/input.h"
#include "wire/perf/perf_data.h"

/*
 * Logs that are shown together are of one machine, or of a few; each clock
 * is tied in a pass over all blocks.
 */
#define MAX_CLOCKS 64

/* Wall times further than this from the others' median are damage. */
#define MAX_TIE_NS INT64_C(1000000000)

/* -- clocks ------------------------------------------------------------- */

/* More is no correction of a clock, but another machine's ticks. */
#define MAX_OFF_PPM 1000

enum {
	MAX_OFF_NS = 10000,	/* how far a tie may be from its line */
	TIE_NS = 30,		/* how exactly it is read (base/tsc.h) */
};

__extension__ typedef __int128 i128;

/* How @clock goes at @tsc, and *@n_ticks from that origin on. */
static const struct seam_ticks *
clock_at(const struct seam_trace_clock *clock, uint64_t tsc, uint64_t *n_ticks)
{
	const struct seam_ticks *pieces = clock->pieces.items;
	size_t n = clock->pieces.n;
	size_t i = SEAM_ARRAY_SEARCH(k, n, pieces[k].origin_tsc <= tsc);

	i -= i > 0;
	*n_ticks = i + 1 < n ? pieces[i + 1].origin_tsc -
			       pieces[i].origin_tsc : INT64_MAX;
	return n ? &pieces[i] : &clock->ticks;
}

static uint64_t clock_time(const struct seam_trace_clock *clock, uint64_t tsc)
{
	uint64_t n_ticks;

	return seam_ticks_time(clock_at(clock, tsc, &n_ticks), tsc);
}

/* The line through @a and @b at @tsc; from 0 to SEAM_TICKS_MAX_NS. */
static int64_t line_at(const struct seam_tsc_tie *a,
		       const struct seam_tsc_tie *b, uint64_t tsc)
{
	i128 ns = (i128)a->ns + ((i128)tsc - a->tsc) *
		  (i128)(b->ns - a->ns) / (i128)(b->tsc - a->tsc);

	return ns < 0 ? 0 : ns > (i128)SEAM_TICKS_MAX_NS ?
	       (int64_t)SEAM_TICKS_MAX_NS : (int64_t)ns;
}

static bool is_straight(const struct seam_tsc_tie *ties, size_t from, size_t to)
{
	for (size_t i = from + 1; i < to; i++) {
		int64_t off = (int64_t)ties[i].ns -
			      line_at(&ties[from], &ties[to], ties[i].tsc);

		if (off > MAX_OFF_NS || off < -MAX_OFF_NS)
			return false;
	}
	return true;
}

static bool is_frequency(const struct seam_trace_clock *clock,
			 const struct seam_tsc_tie *ties, size_t n)
{
	uint64_t hz = clock->ticks.frequency_hz;
	uint64_t measured = n < 2 ? 0 : seam_tsc_hz(&ties[0], &ties[n - 1]);
	uint64_t off = measured > hz ? measured - hz : hz - measured;

	return measured && off <= hz / 1000000 * MAX_OFF_PPM;
}

/*
 * From where the last piece ends, so that times never step back, to the tie
 * @b; the frequency is a whole number.
 */
static bool add_piece(struct seam_trace_clock *clock, uint64_t tsc,
		      const struct seam_tsc_tie *a,
		      const struct seam_tsc_tie *b)
{
	struct seam_tsc_tie from = {
		tsc, clock->pieces.n ? clock_time(clock, tsc) :
		     (uint64_t)line_at(a, b, tsc) };
	struct seam_ticks piece;

	if (b->ns <= from.ns)
		return true;
	seam_ticks_init(&piece, seam_tsc_hz(&from, b));
	piece.origin_tsc = from.tsc;
	piece.origin_ns = from.ns;
	return SEAM_ARRAY_ADD(&clock->pieces, piece);
}

/*
 * Have @clock go by @n ascending ties, from @first_tsc on.  It stays as it is
 * if there are less than 2, or their frequency is another one.  0 or -ENOMEM.
 */
static int follow_ties(struct seam_trace_clock *clock,
		       const struct seam_tsc_tie *ties, size_t n,
		       uint64_t first_tsc)
{
	if (!is_frequency(clock, ties, n))
		return 0;
	for (size_t i = 0, to; i + 1 < n; i = to) {
		uint64_t tsc = i || ties[0].tsc < first_tsc ? ties[i].tsc :
			       first_tsc;

		for (to = i + 1; to + 1 < n && is_straight(ties, i, to + 1);
		     to++)
			;
		if (!add_piece(clock, tsc, &ties[i], &ties[to]))
			return -ENOMEM;
	}
	clock->is_tied = true;
	return 0;
}

/* All times of @clock become later by @ns, modulo 2^64. */
static void move_clock(struct seam_trace_clock *clock, uint64_t ns)
{
	clock->ticks.origin_ns += ns;
	for (size_t i = 0; i < clock->pieces.n; i++)
		clock->pieces.items[i].origin_ns += ns;
}

/* -- blocks in order ----------------------------------------------------- */

static const struct seam_xray_section *
section_of(const struct seam_trace *trace, const struct seam_trace_block *b)
{
	const struct seam_xray_index *index = &trace->logs.items[b->log].index;

	return &index->sections.items[b->block->section];
}

static int by_owner(const struct seam_trace_block *x,
		    const struct seam_trace_block *y)
{
	return SEAM_COMPARE(x->log, y->log) ?:
	       SEAM_COMPARE(x->block->section, y->block->section) ?:
	       SEAM_COMPARE(x->block->pid, y->block->pid) ?:
	       SEAM_COMPARE(x->block->tid, y->block->tid);
}

static int by_time(const struct seam_xray_block *x,
		   const struct seam_xray_block *y)
{
	return SEAM_COMPARE(x->wall_ns, y->wall_ns) ?:
	       SEAM_COMPARE(x->first_tsc, y->first_tsc);
}

static int in_streams(const void *a, const void *b)
{
	const struct seam_trace_block *x = a, *y = b;

	return by_owner(x, y) ?: by_time(x->block, y->block) ?:
	       SEAM_COMPARE(x->block->begin, y->block->begin);
}

static int collect_blocks(struct seam_trace *trace)
{
	for (size_t l = 0; l < trace->logs.n; l++) {
		const struct seam_xray_index *index =
			&trace->logs.items[l].index;

		for (size_t i = 0; i < index->blocks.n; i++)
			if (!index->blocks.items[i].is_empty &&
			    !SEAM_ARRAY_ADD(&trace->blocks,
					    (struct seam_trace_block) {
				.log = (uint32_t)l,
				.block = &index->blocks.items[i] }))
				return -ENOMEM;
	}
	SEAM_ARRAY_SORT(&trace->blocks, in_streams);
	return 0;
}

/* The clock of a frequency; all logs of one machine count the same ticks. */
static int find_clock(struct seam_trace *trace, uint64_t hz, uint32_t *id)
{
	struct seam_trace_clock clock = { .is_tied = false };

	for (*id = 0; *id < trace->clocks.n; ++*id)
		if (trace->clocks.items[*id].ticks.frequency_hz == hz)
			return 0;
	if (trace->clocks.n == MAX_CLOCKS)
		return -ENOTSUP;
	seam_ticks_init(&clock.ticks, hz);
	trace->in_ticks |= hz == 0;
	return SEAM_ARRAY_ADD(&trace->clocks, clock) ? 0 : -ENOMEM;
}

static int find_streams(struct seam_trace *trace)
{
	struct seam_trace_stream *stream = NULL;

	for (size_t i = 0; i < trace->blocks.n; i++) {
		struct seam_trace_block *b = &trace->blocks.items[i];
		int r;

		if (!stream || by_owner(b - 1, b)) {
			if (!SEAM_ARRAY_ADD(&trace->streams,
					    (struct seam_trace_stream) {
				.log = b->log, .section = b->block->section,
				.pid = b->block->pid, .tid = b->block->tid,
				.first_block = i }))
				return -ENOMEM;
			stream = &trace->streams.items[trace->streams.n - 1];
			r = find_clock(trace, section_of(trace, b)->
				       header.cycle_frequency, &stream->clock);
			if (r)
				return r;
		}
		b->stream = (uint32_t)(trace->streams.n - 1);
		stream->n_blocks++;
		stream->n_bytes += b->block->end - b->block->begin;
	}
	return 0;
}

static int by_value(const void *a, const void *b)
{
	const int64_t *x = a, *y = b;

	return SEAM_COMPARE(*x, *y);
}

/*
 * The origin of a clock by wall times.  A block's first TSC is read before its
 * wall time, so that a tie is late by the delay between them, and the earliest
 * is the best.
 *
 * Estimator: min over blocks of (wall - ticks as ns); late by the shortest
 * delay, early by up to 1 us, the resolution of wall times.
 *
 * Source: LLVM, compiler-rt/lib/xray/xray_fdr_controller.h: functionEnter()
 * gets the TSC, and may then read the wall time in setupNewBuffer().
 */
static uint64_t best_tie(int64_t *ties, size_t n)
{
	int64_t best, median;

	qsort(ties, n, sizeof(*ties), by_value);
	best = median = ties[n / 2];
	for (size_t i = n / 2; i-- > 0 && median - ties[i] <= MAX_TIE_NS;)
		best = ties[i];
	return best > 0 ? (uint64_t)best : 0;
}

/*
 * Whether the ties of the bundle are those of the clock's logs, which may have
 * come from another recording: by the wall times of their blocks.
 */
static bool has_own_ties(const struct seam_trace *trace,
			 const struct seam_ticks *ticks)
{
	const struct seam_tsc_tie *first = trace->ties.items;
	int64_t off;

	if (!trace->ties.n || trace->n_tied_logs != trace->logs.n)
		return false;
	off = (int64_t)(ticks->origin_ns - first->ns);
	off += ticks->origin_tsc > first->tsc ?
	       -(int64_t)seam_ticks_length(ticks, ticks->origin_tsc -
						  first->tsc) :
	       (int64_t)seam_ticks_length(ticks, first->tsc -
						 ticks->origin_tsc);
	return off <= MAX_TIE_NS && off >= -MAX_TIE_NS;
}

/*
 * Tie a clock to wall time; without any (basic mode), times are ticks since the
 * counter's zero.
 */
static int tie_clock(struct seam_trace *trace, uint32_t id)
{
	struct seam_trace_clock *clock = &trace->clocks.items[id];
	struct seam_ticks *ticks = &clock->ticks;
	int64_t *ties = malloc((trace->blocks.n + 1) * sizeof(*ties));
	uint64_t first = UINT64_MAX;
	size_t n = 0;

	if (!ties)
		return -ENOMEM;
	for (size_t i = 0; i < trace->blocks.n; i++) {
		const struct seam_trace_block *b = &trace->blocks.items[i];

		if (trace->streams.items[b->stream].clock == id &&
		    b->block->first_tsc < first)
			first = b->block->first_tsc;
	}
	ticks->origin_ns = seam_ticks_length(ticks, first);
	ticks->origin_tsc = first;
	for (size_t i = 0; i < trace->blocks.n; i++) {
		const struct seam_trace_block *b = &trace->blocks.items[i];

		if (trace->streams.items[b->stream].clock == id &&
		    b->block->wall_ns)
			ties[n++] = (int64_t)b->block->wall_ns -
				(int64_t)seam_ticks_length(ticks,
					b->block->first_tsc - first);
	}
	if (n)
		ticks->origin_ns = best_tie(ties, n);
	free(ties);
	/* without a frequency ticks are no time at all */
	clock->is_tied = n > 0 && ticks->frequency_hz;
	return clock->is_tied && has_own_ties(trace, ticks) ?
	       follow_ties(clock, trace->ties.items, trace->ties.n,
				    first) : 0;
}

static int by_identity(const void *a, const void *b)
{
	const struct seam_trace_block *x = *(struct seam_trace_block *const *)a;
	const struct seam_trace_block *y = *(struct seam_trace_block *const *)b;

	return SEAM_COMPARE(x->block->tid, y->block->tid) ?:
	       SEAM_COMPARE(x->block->pid, y->block->pid) ?:
	       by_time(x->block, y->block) ?:
	       SEAM_COMPARE(x->stream, y->stream);
}

static bool same_buffer(const struct seam_trace_block *x,
			const struct seam_trace_block *y)
{
	return x->stream != y->stream && x->block->wall_ns &&
	       x->block->tid == y->block->tid &&
	       x->block->pid == y->block->pid &&
	       by_time(x->block, y->block) == 0;
}

static bool same_event(const struct seam_xray_event *x,
		       const struct seam_xray_event *y)
{
	return x->tsc == y->tsc && x->function == y->function &&
	       x->cpu == y->cpu && x->kind == y->kind;
}

/* How many first events @y shares with @x; UINT64_MAX: all. */
static uint64_t count_shared(const struct seam_trace *trace,
			     const struct seam_trace_block *x,
			     const struct seam_trace_block *y,
			     struct seam_xray_batch *scratch)
{
	struct seam_xray_batch *ours = &scratch[0], *theirs = &scratch[1];
	struct seam_xray_block_reader a, b;
	uint64_t n = 0;

	seam_xray_block_open(&a, &trace->logs.items[x->log].index, x->block);
	seam_xray_block_open(&b, &trace->logs.items[y->log].index, y->block);
	for (;;) {
		size_t i = 0;

		seam_xray_block_next(&a, ours);
		seam_xray_block_next(&b, theirs);
		while (i < ours->n && i < theirs->n &&
		       same_event(&ours->events[i], &theirs->events[i]))
			i++;
		n += i;
		if (theirs->n == 0)
			return n ? UINT64_MAX : 0;
		if (i < ours->n || i < theirs->n)
			return n;
	}
}

/* A child shares only the events before its fork, so shadows come first. */
static void keep_first_shadows(struct seam_trace *trace)
{
	for (size_t s = 0; s < trace->streams.n; s++) {
		struct seam_trace_stream *stream = &trace->streams.items[s];
		struct seam_trace_block *b =
			&trace->blocks.items[stream->first_block];
		bool shared = true;

		for (size_t i = 0; i < stream->n_blocks; i++) {
			b[i].n_shadow = shared ? b[i].n_shadow : 0;
			shared = shared && b[i].n_shadow == UINT64_MAX;
		}
		stream->is_fork = b[0].n_shadow > 0;
	}
}

/* Mark what a forked child wrote again; needs more than one section. */
static int find_shadows(struct seam_trace *trace)
{
	struct seam_trace_block **sorted;
	struct seam_xray_batch *scratch;
	size_t n = trace->blocks.n;
	int r;

	if (trace->logs.n < 2 && (trace->logs.n == 0 ||
	     trace->logs.items[0].index.sections.n < 2))
		return 0;
	sorted = malloc((n + 1) * sizeof(*sorted));
	scratch = malloc(2 * sizeof(*scratch));
	r = sorted && scratch ? 0 : -ENOMEM;
	for (size_t i = 0; !r && i < n; i++)
		sorted[i] = &trace->blocks.items[i];
	if (!r)
		qsort(sorted, n, sizeof(*sorted), by_identity);
	for (size_t i = 1; !r && i < n; i++)
		if (same_buffer(sorted[i - 1], sorted[i]))
			sorted[i]->n_shadow = count_shared(trace,
					sorted[i - 1], sorted[i], scratch);
	keep_first_shadows(trace);
	free(sorted);
	free(scratch);
	return r;
}

int seam_trace_arrange(struct seam_trace *trace, struct seam_err *err)
{
	int r = collect_blocks(trace) ?: find_streams(trace);

	for (uint32_t i = 0; !r && i < trace->clocks.n; i++)
		r = tie_clock(trace, i);
	r = r ?: find_shadows(trace);
	if (r == -ENOTSUP)
		return seam_err_set(err, r, "logs of more than %d frequencies",
				    MAX_CLOCKS);
	return r ? seam_err_no_memory(err) : 0;
}

void seam_trace_init(struct seam_trace *trace)
{
	*trace = (struct seam_trace) { .range = SEAM_ALL_TIME };
}

static void close_log(struct seam_trace_log *log)
{
	seam_xray_index_fini(&log->index);
	seam_file_close(&log->file);
	seam_event_names_fini(&log->event_names);
	free(log->path);
}

int seam_trace_add_file(struct seam_trace *trace, const char *path,
			struct seam_file *file, struct seam_err *err)
{
	struct seam_trace_log log = { .path = strdup(path), .file = *file };
	int r = log.path ? seam_xray_index_build(&log.index, file->bytes, err) :
		seam_err_no_memory(err);

	*file = (struct seam_file) { 0 };
	if (!r && !SEAM_ARRAY_ADD(&trace->logs, log))
		r = seam_err_no_memory(err);
	if (r) {
		close_log(&log);
		return r;
	}
	seam_xray_problems_merge(&trace->problems, &log.index.problems);
	trace->n_extents += log.index.n_extents;
	return 0;
}

static int refuse_samples(const char *path, struct seam_err *err)
{
	return seam_err_set(err, -ENOTSUP, "it is a sampled recording, not an "
			    "XRay log: 'seam report %s' reads it alone", path);
}

typedef int open_file(struct seam_file *file, const char *path,
		      struct seam_err *err);

static int add_path(struct seam_trace *trace, const char *path,
		    open_file *open, struct seam_err *err)
{
	struct seam_file file;
	int r = open(&file, path, err);

	if (r)
		return r;
	if (!seam_perf_data_is(file.bytes))
		return seam_trace_add_file(trace, path, &file, err);
	seam_file_close(&file);
	return refuse_samples(path, err);
}

/* What the manifest says of the counter; what cannot be read says nothing. */
static int read_ties(struct seam_trace *trace, const char *bundle)
{
	struct seam_manifest manifest;
	int r;

	seam_input_manifest(&manifest, bundle, NULL);
	r = SEAM_ARRAY_EXTEND(&trace->ties, manifest.ties, manifest.n_ties) ?
	    0 : -ENOMEM;
	trace->n_tied_logs = trace->logs.n;
	seam_manifest_fini(&manifest);
	return r;
}

int seam_trace_add_bundle(struct seam_trace *trace, const char *bundle,
			  void (*unread)(void *context, const char *name,
					 const struct seam_err *err),
			  void *context, struct seam_err *err)
{
	char path[PATH_MAX + NAME_MAX + 8];
	struct dirent **entries = NULL;
	bool is_first = trace->logs.n == 0;
	int n = seam_input_logs(bundle, &entries), r = 0;

	for (int i = 0; i < n; i++) {
		struct seam_err why = { 0 };

		snprintf(path, sizeof(path), "%s/xray/%s", bundle,
			 entries[i]->d_name);
		if (!r)
			r = add_path(trace, path, seam_file_open_part,
				     &why);
		if (r && r != -ENOMEM && unread) {
			unread(context, entries[i]->d_name, &why);
			r = 0;
		} else if (why.code && err) {
			*err = why;
			seam_err_add(err, r, "cannot read '%s'", path);
		}
		free(entries[i]);
	}
	free(entries);
	return r == 0 && is_first && trace->logs.n ? read_ties(trace, bundle) :
						     r;
}

/* A bundle without logs has samples at least, or it is none. */
static int add_folder(struct seam_trace *trace, const char *path,
		      struct seam_err *err)
{
	size_t n_logs = trace->logs.n;
	struct seam_input recording;
	struct seam_err why = { 0 };
	int r = seam_trace_add_bundle(trace, path, NULL, NULL, err);

	if (r || trace->logs.n > n_logs)
		return r;
	r = seam_input_open(&recording, path, &why);
	if (r == 0 && recording.manifest.counts.n[SEAM_COUNT_CALLS_PROCESSES])
		r = seam_err_set(err, -ENOTSUP, "no call was recorded; its "
				 "samples: 'seam report %s'", path);
	else if (r == 0 && seam_perf_data_is(recording.data.bytes))
		r = refuse_samples(path, err);
	else if (r == -ENOTSUP)
		*err = why;
	else
		r = seam_err_set(err, -EISDIR, "%s", strerror(EISDIR));
	seam_input_close(&recording);
	return r;
}

int seam_trace_add(struct seam_trace *trace, const char *path,
		   struct seam_err *err)
{
	int r = add_path(trace, path, seam_file_open, err);

	if (r == -EISDIR)
		r = add_folder(trace, path, err);
	return r ? seam_err_add(err, r, "cannot read '%s'", path) : 0;
}

int seam_trace_open(struct seam_trace *trace, const char *const *paths,
		    size_t n_paths, struct seam_err *err)
{
	int r = 0;

	seam_trace_init(trace);
	for (size_t i = 0; !r && i < n_paths; i++)
		r = seam_trace_add(trace, paths[i], err);
	if (!r)
		r = seam_trace_arrange(trace, err);
	if (r)
		seam_trace_close(trace);
	return r;
}

void seam_trace_close(struct seam_trace *trace)
{
	for (size_t i = 0; i < trace->logs.n; i++)
		close_log(&trace->logs.items[i]);
	free(trace->logs.items);
	free(trace->blocks.items);
	free(trace->streams.items);
	for (size_t i = 0; i < trace->clocks.n; i++)
		free(trace->clocks.items[i].pieces.items);
	free(trace->clocks.items);
	free(trace->ties.items);
	free(trace->entries_only);
	*trace = (struct seam_trace) { 0 };
}

void seam_trace_move(struct seam_trace *trace, bool untied, uint64_t start_ns)
{
	struct seam_trace_clock *clocks = trace->clocks.items;
	uint64_t first = UINT64_MAX;

	if (start_ns > SEAM_TICKS_MAX_NS)
		start_ns = SEAM_TICKS_MAX_NS;
	for (size_t i = 0; i < trace->clocks.n; i++)
		if (!(untied && clocks[i].is_tied) &&
		    clocks[i].ticks.origin_ns < first)
			first = clocks[i].ticks.origin_ns;
	for (size_t i = 0; i < trace->clocks.n; i++)
		if (!(untied && clocks[i].is_tied))
			move_clock(&clocks[i], start_ns - first);
}

bool seam_trace_is_tied(const struct seam_trace *trace)
{
	for (size_t i = 0; i < trace->clocks.n; i++)
		if (!trace->clocks.items[i].is_tied)
			return false;
	return true;
}

static uint64_t clock_skew_ns(const struct seam_trace *trace,
			      const struct seam_trace_clock *clock)
{
	uint64_t most = 0;

	for (size_t i = 0; i < trace->ties.n; i++) {
		uint64_t ns = clock_time(clock, trace->ties.items[i].tsc);
		uint64_t tie = trace->ties.items[i].ns;
		uint64_t off = ns > tie ? ns - tie : tie - ns;

		most = off > most ? off : most;
	}
	return most + TIE_NS;
}

uint64_t seam_trace_skew_ns(const struct seam_trace *trace)
{
	uint64_t most = 0;

	for (size_t i = 0; i < trace->clocks.n; i++) {
		const struct seam_trace_clock *clock = &trace->clocks.items[i];
		uint64_t skew = clock_skew_ns(trace, clock);

		if (!clock->pieces.n)
			return 0;
		most = skew > most ? skew : most;
	}
	return most;
}

/* -- reading ------------------------------------------------------------ */

enum {
	LEAST_RUN = 16,		/* records; a batch is as good for fewer */
	/*
	 * Events read one by one between two runs: a rare record of another
	 * kind does not cost the run after it.
	 */
	SHORT_BATCH = 16,
};

uint64_t seam_trace_start_ns(const struct seam_trace *trace, size_t stream)
{
	const struct seam_trace_stream *s = &trace->streams.items[stream];
	const struct seam_xray_block *first =
		trace->blocks.items[s->first_block].block;

	return clock_time(&trace->clocks.items[s->clock],
				     first->first_tsc);
}

/* Have the reader's clock be the one at @tsc. */
static inline void choose_clock(struct seam_trace_reader *reader, uint64_t tsc)
{
	if (__builtin_expect(tsc - reader->clock->origin_tsc >=
			     reader->clock_ticks, 0))
		reader->clock = clock_at(reader->times, tsc,
						    &reader->clock_ticks);
}

uint64_t seam_trace_time(struct seam_trace_reader *reader, uint64_t tsc)
{
	choose_clock(reader, tsc);
	return seam_ticks_time(reader->clock, tsc);
}

/* When the last record of the stream's last block was written. */
static uint64_t end_of_stream(const struct seam_trace *trace, size_t stream,
			      struct seam_xray_batch *batch)
{
	struct seam_trace_reader reader;
	size_t n_shadow;

	seam_trace_read(&reader, trace, stream);
	reader.next_block = reader.stream->n_blocks - 1;
	while (seam_trace_next(&reader, batch, &n_shadow))
		;
	return reader.last_ns;
}

int seam_trace_span(const struct seam_trace *trace, uint64_t *start_ns,
		    uint64_t *end_ns)
{
	struct seam_xray_batch *batch = malloc(sizeof(*batch));

	*start_ns = trace->streams.n ? UINT64_MAX : 0;
	*end_ns = 0;
	if (!batch)
		return -ENOMEM;
	for (size_t i = 0; i < trace->streams.n; i++) {
		uint64_t start = seam_trace_start_ns(trace, i);
		uint64_t end = end_of_stream(trace, i, batch);

		*start_ns = start < *start_ns ? start : *start_ns;
		*end_ns = end > *end_ns ? end : *end_ns;
	}
	free(batch);
	return 0;
}

int seam_trace_select(struct seam_trace *trace, const char *text,
		      struct seam_err *err)
{
	uint64_t start, end;

	if (seam_trace_span(trace, &start, &end))
		return seam_err_no_memory(err);
	return seam_time_range_parse(&trace->range, text, start, end, err);
}

void seam_trace_read(struct seam_trace_reader *reader,
		     const struct seam_trace *trace, size_t stream)
{
	assert(stream < trace->streams.n);

	*reader = (struct seam_trace_reader) {
		.trace = trace, .stream = &trace->streams.items[stream],
	};
	reader->times = &trace->clocks.items[reader->stream->clock];
	reader->clock = &reader->times->ticks;
	reader->ids = &trace->logs.items[reader->stream->log].ids;
	reader->last_ns = seam_trace_start_ns(trace, stream);
}

static bool open_block(struct seam_trace_reader *reader)
{
	const struct seam_trace_stream *stream = reader->stream;
	const struct seam_trace_block *b;

	if (reader->next_block == stream->n_blocks)
		return false;
	b = &reader->trace->blocks.items[stream->first_block +
					 reader->next_block++];
	seam_xray_block_open(&reader->block,
			     &reader->trace->logs.items[b->log].index,
			     b->block);
	if (reader->takes_runs && reader->block.fdr.format->endian ==
				  SEAM_LITTLE)
		reader->block.fdr.max_batch = SHORT_BATCH;
	reader->n_shadow = b->n_shadow;
	reader->in_block = true;
	reader->shift_ns = 0;
	return true;
}

/*
 * Convert ticks to nanoseconds.  When the counter of a thread steps back, the
 * time stands still for that step and then rises with the counter.
 */
static void convert_times(struct seam_trace_reader *reader,
			  struct seam_xray_batch *batch)
{
	struct seam_ticks clock = *reader->clock;
	uint64_t last = reader->last_ns, shift = reader->shift_ns;

	for (size_t i = 0; i < batch->n; i++) {
		struct seam_xray_event *event = &batch->events[i];
		uint64_t ns;

		if (event->kind == SEAM_XRAY_ARGUMENT)
			continue;
		if (__builtin_expect(event->tsc - clock.origin_tsc >=
				     reader->clock_ticks, 0)) {
			choose_clock(reader, event->tsc);
			clock = *reader->clock;
		}
		ns = seam_ticks_time(&clock, event->tsc) + shift;
		if (__builtin_expect(ns < last, 0)) {
			shift += last - ns;
			ns = last;
			reader->n_steps++;
		}
		event->tsc = last = ns;
	}
	reader->last_ns = last;
	reader->shift_ns = shift;
}

/* Number the functions as those of all logs are, and mark their kind. */
static void convert_functions(const struct seam_trace_reader *reader,
			      struct seam_xray_batch *batch)
{
	const uint64_t *bits = reader->trace->entries_only;
	uint32_t n_bits = reader->trace->n_entries_only;

	if (reader->ids->others == 0 && !bits)
		return;
	for (size_t i = 0; i < batch->n; i++) {
		struct seam_xray_event *event = &batch->events[i];
		uint32_t f = seam_trace_function(reader->ids, event->function);

		if (event->kind > SEAM_XRAY_ENTRY_ARGS)
			continue;
		event->function = f;
		if ((event->kind == SEAM_XRAY_ENTRY ||
		     event->kind == SEAM_XRAY_ENTRY_ARGS) && f < n_bits &&
		    bits[f / 64] >> f % 64 & 1)
			event->kind = SEAM_TRACE_ENTRY_ONLY;
	}
}

/*
 * Remove what is not in the range; arguments go with their entry.  Returns how
 * many of the first @n_shadow events are left.
 */
static size_t cut(struct seam_trace_reader *reader,
		  struct seam_xray_batch *batch, size_t n_shadow)
{
	const struct seam_time_range *range = &reader->trace->range;
	size_t n = 0, shadows = 0;

	if (seam_time_range_is_all(range))
		return n_shadow;
	for (size_t i = 0; i < batch->n; i++) {
		const struct seam_xray_event event = batch->events[i];

		if (event.kind != SEAM_XRAY_ARGUMENT)
			reader->in_range = seam_time_range_has(range,
				seam_trace_time(reader, event.tsc));
		if (!reader->in_range)
			continue;
		batch->events[n++] = event;
		shadows += i < n_shadow;
	}
	batch->n = n;
	return shadows;
}

static bool next_batch(struct seam_trace_reader *reader,
		       struct seam_xray_batch *batch, size_t *n_shadow)
{
	for (;;) {
		int err;

		if (!reader->in_block && !open_block(reader))
			return false;
		err = seam_xray_block_next(&reader->block, batch);
		if (err)
			seam_xray_problems_add(&reader->problems,
					       &reader->block.fdr.problem);
		reader->in_block = !err && batch->n > 0;
		if (batch->n > 0)
			break;
	}
	*n_shadow = reader->n_shadow < batch->n ? reader->n_shadow : batch->n;
	reader->n_shadow -= *n_shadow;
	return true;
}

bool seam_trace_next(struct seam_trace_reader *reader,
		     struct seam_xray_batch *batch, size_t *n_shadow)
{
	do {
		if (!next_batch(reader, batch, n_shadow))
			return false;
		if (reader->raw) {
			*n_shadow = cut(reader, batch, *n_shadow);
		} else {
			convert_times(reader, batch);
			convert_functions(reader, batch);
		}
	} while (batch->n == 0);
	return true;
}

bool seam_trace_run(struct seam_trace_reader *reader,
		    struct seam_trace_run *run)
{
	const struct seam_ticks *clock;
	uint64_t ticks, delta, most;

	if (reader->trace->entries_only)
		return false;
	reader->takes_runs = true;
	if ((!reader->in_block && !open_block(reader)) || reader->n_shadow ||
	    !seam_xray_run(&reader->block.fdr, &run->wire))
		return false;
	if (run->wire.n > SEAM_TRACE_RUN)
		run->wire.n = SEAM_TRACE_RUN;
	choose_clock(reader, run->wire.tsc);
	clock = reader->clock;
	/* no record is to be beyond the clock's piece */
	most = (reader->clock_ticks - (run->wire.tsc - clock->origin_tsc)) >>
	       32;
	if (run->wire.n > most && most < LEAST_RUN)
		return false;
	if (run->wire.n > most)
		run->wire.n = most;
	delta = (uint64_t)run->wire.n << 32;	/* at most, of all records */
	if (run->wire.tsc < clock->origin_tsc ||
	    run->wire.tsc > UINT64_MAX - delta ||
	    run->wire.tsc + delta - clock->origin_tsc >= clock->exact_below ||
	    reader->shift_ns >= SEAM_TICKS_MAX_NS)
		return false;
	ticks = run->wire.tsc - clock->origin_tsc;
	run->clock = clock;
	run->ids = reader->ids;
	run->ticks = ticks;
	run->origin_ns = clock->origin_ns + reader->shift_ns;
	return seam_ticks_scale(clock, ticks, false) + run->origin_ns >=
	       reader->last_ns;
}

void seam_trace_run_take(struct seam_trace_reader *reader,
			 const struct seam_trace_run *run, size_t n)
{
	const struct seam_ticks *clock = run->clock;

	reader->last_ns = run->origin_ns +
			  seam_ticks_scale(clock, run->ticks, false);
	seam_xray_run_take(&reader->block.fdr, &run->wire, n,
			   clock->origin_tsc + run->ticks);
}
