/* SPDX-License-Identifier: MIT */
/*
 * batch_calls.c - calls into histograms; see batch_build.h
 *
 * The calls of all streams are read once, as seam_account_build() reads them,
 * and a call counts whole in the window in which it begins: the rows of a
 * function add up to its row of an account.
 */
#include "fleet/batch_rows.h"

#include <errno.h>
#include <stdlib.h>

#include "base/hash.h"
#include "base/pair_map.h"
#include "model/xray/account.h"
#include "model/xray/call_names.h"
#include "model/xray/stream_calls.h"

enum {
	/* windows of a log; those of a longer log are longer */
	MAX_WINDOWS = 360,
	MAX_ROWS = 1 << 22,
};

/* Calls of a function by a process in a window. */
struct window_calls {
	uint64_t ts_ns;
	int32_t pid;
	uint32_t function;		/* XRay id */
	uint64_t count, min_ns, max_ns;
	uint64_t sum_ns, total_ns, child_ns;
	uint32_t buckets;		/* its last, + 1; 0: none */
};

/* The buckets of a row are a list. */
struct window_bucket {
	uint32_t row;
	uint32_t before;		/* another of the row, + 1; 0: none */
	uint64_t count;
	uint16_t bucket;
};

struct calls_pass {
	const struct seam_trace *trace;
	int64_t utc_ns;
	uint64_t window_ns;
	int32_t pid;			/* of the stream */
	SEAM_ARRAY(struct window_calls) rows;
	SEAM_ARRAY(struct window_bucket) buckets;
	struct seam_index by_key, by_bucket;
};

static uint32_t find_row(struct calls_pass *p, uint64_t ts, uint32_t function)
{
	const struct window_calls *rows = p->rows.items;
	uint64_t hash = seam_hash_add(ts, (uint64_t)(uint32_t)p->pid << 32 |
				      function);

	if (p->rows.n >= MAX_ROWS)
		return SEAM_NONE;
	return SEAM_INDEX_INTERN(&p->by_key, hash, &p->rows, i,
		rows[i].ts_ns == ts && rows[i].function == function &&
		rows[i].pid == p->pid, (struct window_calls) {
			.ts_ns = ts, .pid = p->pid, .function = function,
			.min_ns = UINT64_MAX });
}

static uint32_t find_bucket(struct calls_pass *p, uint32_t row,
			    uint16_t bucket)
{
	const struct window_bucket *buckets = p->buckets.items;
	uint64_t hash = seam_hash_u64((uint64_t)row << 16 | bucket);
	size_t n = p->buckets.n;
	uint32_t id = SEAM_INDEX_INTERN(&p->by_bucket, hash, &p->buckets, i,
		buckets[i].row == row && buckets[i].bucket == bucket,
		(struct window_bucket) {
			.row = row, .bucket = bucket,
			.before = p->rows.items[row].buckets });

	if (id != SEAM_NONE && p->buckets.n > n)
		p->rows.items[row].buckets = id + 1;
	return id;
}

static void end_call(void *context, struct seam_calls *calls,
		     const struct seam_call *call, uint64_t end_ns)
{
	struct calls_pass *p = context;
	uint64_t ns = end_ns - call->begin_ns;
	uint64_t ts = seam_fleet_build_utc(call->begin_ns, p->utc_ns);
	uint32_t id = find_row(p, ts - ts % p->window_ns, call->function);
	uint32_t bucket = id == SEAM_NONE ? SEAM_NONE :
		find_bucket(p, id, (uint16_t)seam_histogram_bucket(ns));
	struct window_calls *row;

	if (bucket == SEAM_NONE) {
		calls->error = -ENOMEM;
		return;
	}
	row = &p->rows.items[id];
	row->count++;
	row->min_ns = ns < row->min_ns ? ns : row->min_ns;
	row->max_ns = ns > row->max_ns ? ns : row->max_ns;
	row->sum_ns += ns;
	/* calls within calls of the same function are in those */
	row->total_ns += calls->active.items[call->slot] ? 0 : ns;
	row->child_ns += call->child_ns;
	p->buckets.items[bucket].count++;
}

static const struct seam_calls_sink sink = { .end = end_call };

static int read_calls(struct calls_pass *p)
{
	struct seam_xray_batch *batch = malloc(sizeof(*batch));
	struct seam_calls calls = { 0 };
	int r = batch ? 0 : -ENOMEM;

	for (size_t i = 0; !r && i < p->trace->streams.n; i++) {
		struct seam_stream s;

		p->pid = p->trace->streams.items[i].pid;
		seam_stream_begin(&s, &calls, p->trace, i, batch);
		while (seam_stream_step(&s, &sink, p))
			;
		seam_stream_end(&s, &sink, p);
		r = calls.error;
	}
	seam_calls_fini(&calls);
	free(batch);
	return r;
}

/* -- rows --------------------------------------------------------------- */

struct calls_rows {
	struct seam_fleet_build *build;
	const struct seam_xray_map *names;
	const struct seam_profile *profile;
	struct seam_pair_map processes;	/* by pid */
	struct calls_pass pass;
};

/* The text of a string of names. */
static uint32_t text_of(struct calls_rows *c, uint32_t string)
{
	return seam_fleet_text(c->build, seam_strings_get(&c->names->strings,
							  string));
}

/* The frame of a function, as load_xray.c makes it; 0: no memory. */
static uint64_t frame_of(struct calls_rows *c, uint32_t function)
{
	static const struct seam_xray_mapped none;
	const struct seam_xray_mapped *f =
		seam_xray_map_find(c->names, function) ?: &none;
	char buf[SEAM_CALL_NAME];
	struct seam_batch_frame frame = {
		.layer = SEAM_LAYER_NATIVE, .is_named = f->name,
		.function = seam_fleet_text(c->build, seam_call_name(
						c->names, function, buf)),
		.file = text_of(c, f->file), .module = text_of(c, f->image),
		.build_id = text_of(c, f->build_id), .line = f->line,
		.offset = f->file_offset,
	};

	return frame.function == SEAM_NONE || frame.file == SEAM_NONE ||
	       frame.module == SEAM_NONE || frame.build_id == SEAM_NONE ? 0 :
	       seam_fleet_build_frame(c->build, &frame);
}

static int by_bucket(const void *a, const void *b)
{
	const struct seam_batch_bucket *x = a, *y = b;

	return SEAM_COMPARE(x->bucket, y->bucket);
}

/* Append the buckets of @row, in order.  How many; SIZE_MAX: no memory. */
static size_t add_buckets(struct calls_rows *c, const struct window_calls *row)
{
	struct seam_batch *batch = &c->build->batch;
	size_t first = batch->buckets.n;

	for (uint32_t i = row->buckets; i;) {
		const struct window_bucket *b =
			&c->pass.buckets.items[i - 1];

		if (!SEAM_ARRAY_ADD(&batch->buckets,
				    (struct seam_batch_bucket) {
			.bucket = b->bucket, .count = b->count }))
			return SIZE_MAX;
		i = b->before;
	}
	qsort(batch->buckets.items + first, batch->buckets.n - first,
	      sizeof(*batch->buckets.items), by_bucket);
	return batch->buckets.n - first;
}

static int add_row(struct calls_rows *c, const struct window_calls *row,
		   struct seam_err *err)
{
	struct seam_fleet_build *b = c->build;
	const uint32_t *process = seam_pair_map_find(&c->processes,
						     (uint32_t)row->pid, 0);
	bool has_times = !seam_xray_has_entries_only(
		seam_xray_map_find(c->names, row->function));
	struct seam_batch_calls calls = {
		.ts_ns = row->ts_ns, .count = row->count,
		.min_ns = row->min_ns, .max_ns = row->max_ns,
		.sum_ns = row->sum_ns, .total_ns = row->total_ns,
		.self_ns = row->sum_ns - row->child_ns, .pid = row->pid,
	};
	int r = seam_fleet_build_window(b, row->ts_ns, c->pass.window_ns, err);
	size_t n = 0;

	if (r)
		return r;
	calls.frame = frame_of(c, row->function);
	calls.process = seam_fleet_text(b, !process ? NULL :
		seam_profile_text(c->profile, c->profile->processes.items[
							*process].name));
	calls.first = (uint32_t)b->batch.buckets.n;
	/* without times a function has no histogram */
	if (has_times)
		n = add_buckets(c, row);
	calls.n = (uint32_t)n;
	return calls.frame && calls.process != SEAM_NONE && n != SIZE_MAX &&
	       SEAM_ARRAY_ADD(&b->batch.calls, calls) ? 0 :
	       seam_err_no_memory(err);
}

static int by_time(const void *a, const void *b)
{
	const struct window_calls *x = a, *y = b;

	return SEAM_COMPARE(x->ts_ns, y->ts_ns) ?:
	       SEAM_COMPARE(x->pid, y->pid) ?:
	       SEAM_COMPARE(x->function, y->function);
}

static int add_rows(struct calls_rows *c, struct seam_err *err)
{
	const struct seam_profile *p = c->profile;
	int r = 0;

	for (size_t i = 0; !r && i < p->processes.n; i++)
		r = seam_pair_map_put(&c->processes,
				      (uint32_t)p->processes.items[i].pid, 0,
				      (uint32_t)i);
	if (r)
		return seam_err_no_memory(err);
	SEAM_ARRAY_SORT(&c->pass.rows, by_time);
	for (size_t i = 0; !r && i < c->pass.rows.n; i++)
		r = add_row(c, &c->pass.rows.items[i], err);
	return r;
}

/* As many windows of 10 s as MAX_WINDOWS cover @trace. */
static uint64_t window_of(const struct seam_trace *trace)
{
	uint64_t start, end, n;

	if (seam_trace_span(trace, &start, &end) || end < start)
		return SEAM_FLEET_WINDOW_NS;
	n = (end - start) / (MAX_WINDOWS * SEAM_FLEET_WINDOW_NS) + 1;
	/* of a day at most, and a day is a whole number of them */
	while (n < 8640 && 8640 % n)
		n++;
	return (n < 8640 ? n : 8640) * SEAM_FLEET_WINDOW_NS;
}

int seam_fleet_build_calls(struct seam_fleet_build *build,
			   const struct seam_trace *trace,
			   const struct seam_xray_map *names,
			   const struct seam_profile *profile, int64_t utc_ns,
			   struct seam_err *err)
{
	struct calls_rows c = {
		.build = build, .names = names, .profile = profile,
		.pass = { .trace = trace, .utc_ns = utc_ns,
			  .window_ns = window_of(trace) },
	};
	int r = read_calls(&c.pass);

	if (r && c.pass.rows.n >= MAX_ROWS)
		r = seam_err_set(err, -E2BIG, "calls of more than %d functions "
				 "in windows of %ju s", MAX_ROWS,
				 (uintmax_t)(c.pass.window_ns / SEAM_NS_PER_S));
	else if (r)
		seam_err_no_memory(err);
	if (!r)
		r = add_rows(&c, err);
	seam_pair_map_fini(&c.processes);
	seam_index_fini(&c.pass.by_key);
	seam_index_fini(&c.pass.by_bucket);
	free(c.pass.rows.items);
	free(c.pass.buckets.items);
	return r;
}
