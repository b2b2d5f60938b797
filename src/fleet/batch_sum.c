/* SPDX-License-Identifier: MIT */
/* batch_sum.c - select rows and add them up; see batch_sum.h */
#include "fleet/batch_sum.h"

#include <errno.h>
#include <fnmatch.h>
#include <stdlib.h>

#include "base/hash.h"

/* One batch into the sum. */
struct sum_step {
	struct seam_fleet_sum *sum;
	const struct seam_batch *from;
	uint32_t *origins;	/* by origin, + 1; 0: not selected */
	uint32_t *strings;	/* by string of @from, + 1; 0: not yet */
	struct seam_index frames, stacks;	/* of @from, by id */
};

/* -- selection ---------------------------------------------------------- */

static bool matches(const char *glob, const char *text)
{
	return !glob || fnmatch(glob, text, 0) == 0;
}

static bool has_labels(const struct seam_fleet_query *q,
		       const char *const *labels, size_t n_labels)
{
	for (size_t i = 0; i < q->n_labels; i++) {
		size_t k = 0;

		while (k < n_labels && strcmp(labels[k], q->labels[i]) != 0)
			k++;
		if (k == n_labels)
			return false;
	}
	return true;
}

bool seam_fleet_sum_wants(const struct seam_fleet_query *q,
			  const struct seam_batch_head *head)
{
	/* windows of calls may be longer than those of samples */
	if (head->to_ns <= q->from_ns || head->from_ns >= q->to_ns)
		return false;
	return !head->service ||
	       (matches(q->service, head->service) &&
		matches(q->host, head->host) &&
		has_labels(q, head->labels, head->n_labels));
}

/* Whether "a,b" has the name @event. */
static bool has_event(const char *events, const char *event)
{
	size_t n = strlen(event);

	for (const char *at = events; at; at = strchr(at, ',')) {
		at += *at == ',';
		if (strncmp(at, event, n) == 0 && (!at[n] || at[n] == ','))
			return true;
	}
	return !events;
}

static bool in_time(const struct seam_fleet_query *q, uint64_t ts_ns)
{
	return ts_ns >= q->from_ns && ts_ns < q->to_ns;
}

/* -- strings and origins ------------------------------------------------ */

static const char *text_of(const struct sum_step *s, uint32_t string)
{
	return seam_strings_get(&s->from->strings, string);
}

/* A string of the batch in the sum; SEAM_NONE: no memory. */
static uint32_t put(struct sum_step *s, uint32_t string)
{
	uint32_t *known = string < s->from->strings.texts.n ?
			  &s->strings[string] : NULL;
	uint32_t id;

	if (!known || !string)
		return 0;
	if (*known)
		return *known - 1;
	id = seam_strings_put(&s->sum->batch->strings, text_of(s, string));
	*known = id + 1;
	return id;
}

static bool wants_origin(const struct sum_step *s,
			 const struct seam_batch_origin *o)
{
	const struct seam_fleet_query *q = s->sum->query;
	const char *labels[SEAM_BATCH_MAX_LABELS];

	for (uint32_t i = 0; i < o->n_labels; i++)
		labels[i] = text_of(s, s->from->labels.items[o->labels + i]);
	return matches(q->service, text_of(s, o->service)) &&
	       matches(q->host, text_of(s, o->host)) &&
	       has_labels(q, labels, o->n_labels);
}

/* What of each selected origin is kept apart, as origins of the sum. */
static int map_origins(struct sum_step *s)
{
	unsigned int keep = s->sum->query->keep;

	s->origins = calloc(s->from->origins.n + 1, sizeof(*s->origins));
	if (!s->origins)
		return -ENOMEM;
	for (size_t i = 0; i < s->from->origins.n; i++) {
		const struct seam_batch_origin *o = &s->from->origins.items[i];
		struct seam_batch_origin to = { 0 };

		if (!wants_origin(s, o))
			continue;
		if (keep & SEAM_FLEET_KEEP_SERVICE)
			to.service = put(s, o->service);
		if (keep & SEAM_FLEET_KEEP_HOST)
			to.host = put(s, o->host);
		if (to.service == SEAM_NONE || to.host == SEAM_NONE)
			return -ENOMEM;
		s->origins[i] = 1 + seam_batch_origin(s->sum->batch, &to);
		if (!s->origins[i])
			return -ENOMEM;
	}
	return 0;
}

/* -- frames and stacks -------------------------------------------------- */

static int index_ids(struct sum_step *s)
{
	int r = 0;

	for (uint32_t i = 0; !r && i < s->from->frames.n; i++)
		r = seam_index_add(&s->frames, seam_hash_u64(
				   s->from->frames.items[i].id), i);
	for (uint32_t i = 0; !r && i < s->from->stacks.n; i++)
		r = seam_index_add(&s->stacks, seam_hash_u64(
				   s->from->stacks.items[i].id), i);
	return r;
}

/* Have frame @id in the sum, if the batch has it. */
static int add_frame(struct sum_step *s, uint64_t id)
{
	const struct seam_batch_frame *frames = s->from->frames.items;
	struct seam_batch *to = s->sum->batch;
	uint64_t hash = seam_hash_u64(id);
	uint32_t at;
	struct seam_batch_frame frame;

	if (SEAM_INDEX_FIND(&s->sum->frames, hash, i,
			    to->frames.items[i].id == id) != SEAM_NONE)
		return 0;
	at = SEAM_INDEX_FIND(&s->frames, hash, i, frames[i].id == id);
	if (at == SEAM_NONE)
		return 0;
	frame = frames[at];
	frame.function = put(s, frame.function);
	frame.file = put(s, frame.file);
	frame.module = put(s, frame.module);
	frame.build_id = put(s, frame.build_id);
	return frame.function == SEAM_NONE || frame.file == SEAM_NONE ||
	       frame.module == SEAM_NONE || frame.build_id == SEAM_NONE ||
	       SEAM_INDEX_APPEND(&s->sum->frames, hash, &to->frames, frame) ==
	       SEAM_NONE ? -ENOMEM : 0;
}

/* Have stack @id and its frames in the sum, if the batch has them. */
static int add_stack(struct sum_step *s, uint64_t id)
{
	const struct seam_batch_stack *stacks = s->from->stacks.items;
	struct seam_batch *to = s->sum->batch;
	uint64_t hash = seam_hash_u64(id);
	const uint64_t *ids;
	uint32_t at;
	int r = 0;

	if (SEAM_INDEX_FIND(&s->sum->stacks, hash, i,
			    to->stacks.items[i].id == id) != SEAM_NONE)
		return 0;
	at = SEAM_INDEX_FIND(&s->stacks, hash, i, stacks[i].id == id);
	if (at == SEAM_NONE)
		return 0;
	ids = s->from->frame_ids.items + stacks[at].first;
	for (uint32_t i = 0; !r && i < stacks[at].n; i++)
		r = add_frame(s, ids[i]);
	return r || !SEAM_ARRAY_EXTEND(&to->frame_ids, ids, stacks[at].n) ||
	       SEAM_INDEX_APPEND(&s->sum->stacks, hash, &to->stacks,
				 (struct seam_batch_stack) {
			.id = id, .n = stacks[at].n,
			.first = (uint32_t)to->frame_ids.n - stacks[at].n }) ==
	       SEAM_NONE ? -ENOMEM : 0;
}

/* -- rows --------------------------------------------------------------- */

/* The begin of the window that the sum keeps apart. */
static uint64_t window_of(const struct seam_fleet_query *q, uint64_t ts_ns)
{
	if (!(q->keep & SEAM_FLEET_KEEP_WINDOW))
		return q->from_ns;
	return q->step_ns ? ts_ns - ts_ns % q->step_ns : ts_ns;
}

/* What of a row the sum keeps apart, with strings of the sum. */
static bool cut_sample(struct sum_step *s, struct seam_batch_sample *row)
{
	const struct seam_fleet_query *q = s->sum->query;
	bool by_host = q->keep & SEAM_FLEET_KEEP_HOST;
	bool by_process = q->keep & SEAM_FLEET_KEEP_PROCESS;
	bool by_thread = q->keep & SEAM_FLEET_KEEP_THREAD;

	row->ts_ns = window_of(q, row->ts_ns);
	row->origin = s->origins[row->origin] - 1;
	row->event = put(s, row->event);
	row->process = by_process ? put(s, row->process) : 0;
	row->thread = by_thread ? put(s, row->thread) : 0;
	row->pid = by_process && by_host ? row->pid : -1;
	row->tid = by_thread && by_host ? row->tid : -1;
	return row->event != SEAM_NONE && row->process != SEAM_NONE &&
	       row->thread != SEAM_NONE;
}

static bool is_same(const struct seam_batch_sample *a,
		    const struct seam_batch_sample *b)
{
	return a->ts_ns == b->ts_ns && a->stack == b->stack &&
	       a->origin == b->origin && a->event == b->event &&
	       a->unit == b->unit && a->kind == b->kind &&
	       a->pid == b->pid && a->tid == b->tid &&
	       a->process == b->process && a->thread == b->thread;
}

static uint64_t hash_sample(const struct seam_batch_sample *s)
{
	uint64_t hash = seam_hash_add(s->ts_ns, s->stack);

	hash = seam_hash_add(hash, (uint64_t)s->event << 32 |
			     (uint32_t)s->tid);
	return seam_hash_add(hash ^ s->origin,
			     (uint64_t)s->process << 32 | s->thread);
}

static int add_sample(struct sum_step *s, struct seam_batch_sample row)
{
	struct seam_batch *to = s->sum->batch;
	uint64_t hash;
	uint32_t id;

	if (!cut_sample(s, &row))
		return -ENOMEM;
	s->sum->n_rows++;
	hash = hash_sample(&row);
	id = SEAM_INDEX_FIND(&s->sum->samples, hash, i,
			     is_same(&to->samples.items[i], &row));
	if (id != SEAM_NONE) {
		to->samples.items[id].count += row.count;
		to->samples.items[id].value += row.value;
		return 0;
	}
	return add_stack(s, row.stack) ||
	       SEAM_INDEX_APPEND(&s->sum->samples, hash, &to->samples, row) ==
	       SEAM_NONE ? -ENOMEM : 0;
}

static int add_calls(struct sum_step *s, struct seam_batch_calls row)
{
	const struct seam_fleet_query *q = s->sum->query;
	struct seam_batch *to = s->sum->batch;
	const struct seam_batch_bucket *buckets =
		s->from->buckets.items + row.first;
	bool by_process = q->keep & SEAM_FLEET_KEEP_PROCESS;

	row.ts_ns = window_of(q, row.ts_ns);
	row.origin = s->origins[row.origin] - 1;
	row.process = by_process ? put(s, row.process) : 0;
	row.pid = by_process && q->keep & SEAM_FLEET_KEEP_HOST ? row.pid : -1;
	row.first = (uint32_t)to->buckets.n;
	s->sum->n_rows++;
	return row.process == SEAM_NONE || add_frame(s, row.frame) ||
	       !SEAM_ARRAY_EXTEND(&to->buckets, buckets, row.n) ||
	       !SEAM_ARRAY_ADD(&to->calls, row) ? -ENOMEM : 0;
}

static int add_loss(struct seam_fleet_sum *sum,
		    const struct seam_batch_loss *row)
{
	struct seam_batch_loss *all = sum->batch->losses.items;
	uint64_t hash = seam_hash_add((uint64_t)row->cause << 32 | row->source,
				      row->origin);
	uint32_t id = SEAM_INDEX_FIND(&sum->losses, hash, i,
		all[i].cause == row->cause && all[i].source == row->source &&
		all[i].origin == row->origin);

	if (id == SEAM_NONE)
		return SEAM_INDEX_APPEND(&sum->losses, hash,
					 &sum->batch->losses, *row) ==
		       SEAM_NONE ? -ENOMEM : 0;
	all[id].records += row->records;
	all[id].bytes += row->bytes;
	return 0;
}

static int add_losses(struct sum_step *s)
{
	const struct seam_fleet_query *q = s->sum->query;
	int r = 0;

	for (size_t i = 0; !r && i < s->from->losses.n; i++) {
		struct seam_batch_loss row = s->from->losses.items[i];

		if (!in_time(q, row.ts_ns) || !s->origins[row.origin])
			continue;
		row.ts_ns = q->from_ns;
		row.origin = s->origins[row.origin] - 1;
		row.cause = put(s, row.cause);
		row.source = put(s, row.source);
		r = row.cause == SEAM_NONE || row.source == SEAM_NONE ?
		    -ENOMEM : add_loss(s->sum, &row);
	}
	return r;
}

static int add_rows(struct sum_step *s)
{
	const struct seam_fleet_query *q = s->sum->query;
	const struct seam_batch *from = s->from;
	int r = 0;

	for (size_t i = 0; !r && !q->with_calls && i < from->samples.n; i++) {
		const struct seam_batch_sample *row = &from->samples.items[i];

		if (in_time(q, row->ts_ns) && s->origins[row->origin] &&
		    has_event(q->event, text_of(s, row->event)))
			r = add_sample(s, *row);
	}
	for (size_t i = 0; !r && q->with_calls && i < from->calls.n; i++) {
		const struct seam_batch_calls *row = &from->calls.items[i];

		if (in_time(q, row->ts_ns) && s->origins[row->origin])
			r = add_calls(s, *row);
	}
	return r ? r : add_losses(s);
}

int seam_fleet_sum_add(struct seam_fleet_sum *sum,
		       const struct seam_batch *from, struct seam_err *err)
{
	struct sum_step s = { .sum = sum, .from = from };
	int r;

	s.strings = calloc(from->strings.texts.n + 1, sizeof(*s.strings));
	r = s.strings ? index_ids(&s) : -ENOMEM;
	if (!r)
		r = map_origins(&s);
	if (!r)
		r = add_rows(&s);
	free(s.origins);
	free(s.strings);
	seam_index_fini(&s.frames);
	seam_index_fini(&s.stacks);
	return r ? seam_err_no_memory(err) : 0;
}

int seam_fleet_sum_lost(struct seam_fleet_sum *sum, const char *cause,
			const char *source, uint64_t bytes,
			struct seam_err *err)
{
	struct seam_strings *strings = &sum->batch->strings;
	static const struct seam_batch_origin none;
	struct seam_batch_loss row = {
		.ts_ns = sum->query->from_ns, .bytes = bytes,
		.origin = seam_batch_origin(sum->batch, &none),
		.cause = seam_strings_put(strings, cause),
		.source = seam_strings_put(strings, source),
	};

	return row.origin == SEAM_NONE || row.cause == SEAM_NONE ||
	       row.source == SEAM_NONE || add_loss(sum, &row) ?
	       seam_err_no_memory(err) : 0;
}

void seam_fleet_sum_fini(struct seam_fleet_sum *sum)
{
	seam_index_fini(&sum->frames);
	seam_index_fini(&sum->stacks);
	seam_index_fini(&sum->samples);
	seam_index_fini(&sum->losses);
}
