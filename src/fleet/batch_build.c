/* SPDX-License-Identifier: MIT */
/* batch_build.c - samples into rows of batches; see batch_build.h */
#include "fleet/batch_build.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include "base/hash.h"
#include "base/radix_sort.h"
#include "base/text.h"
#include "fleet/batch_rows.h"
#include "wire/fleet/batch_ids.h"
#include "wire/fleet/batch_tables.h"

enum {
	/* of the stacks of a batch: 32 MiB */
	MAX_FRAME_IDS = 4 << 20,
};

uint32_t seam_fleet_text(struct seam_fleet_build *b, const char *text)
{
	size_t size = text ? strlen(text) : 0;

	return seam_strings_add(&b->batch.strings, text ? text : "",
				size < SEAM_BATCH_MAX_TEXT ? size :
				SEAM_BATCH_MAX_TEXT);
}


/* -- batches ------------------------------------------------------------ */

static int by_text(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* Names are shown on terminals and in pages, and are columns of each row. */
static int check_name(const char *what, const char *name, struct seam_err *err)
{
	char shown[SEAM_FLEET_MAX_NAME];

	if (!*name || strlen(name) >= SEAM_FLEET_MAX_NAME ||
	    strcmp(seam_text_copy(shown, sizeof(shown), name,
				  SEAM_TEXT_TERMINAL), name) != 0)
		return seam_err_set(err, -EINVAL, "the %s has no character, "
				    "more than %d, or one that cannot be shown",
				    what, SEAM_FLEET_MAX_NAME - 1);
	return 0;
}

static int check_source(const struct seam_fleet_source *source,
			struct seam_err *err)
{
	int r = check_name("service's name", source->service, err);

	if (!r)
		r = check_name("host's name", source->host, err);
	if (!r && source->n_labels > SEAM_BATCH_MAX_LABELS)
		r = seam_err_set(err, -EINVAL, "more than %d labels",
				 SEAM_BATCH_MAX_LABELS);
	for (size_t i = 0; !r && i < source->n_labels; i++) {
		r = check_name("label", source->labels[i], err);
		if (!r && strcspn(source->labels[i], "=") - 1 >=
			  strlen(source->labels[i]) - 1)
			r = seam_err_set(err, -EINVAL, "a label is KEY=VALUE, "
					 "not '%s'", source->labels[i]);
	}
	return r;
}

static int copy_source(struct seam_fleet_build *b,
		       const struct seam_fleet_source *source)
{
	struct seam_fleet_source *to = &b->source;

	to->n_labels = source->n_labels;
	b->labels = calloc(source->n_labels + 1, sizeof(*b->labels));
	to->labels = b->labels;
	if (!b->labels ||
	    !seam_arena_copy(&b->arena, &to->service, source->service) ||
	    !seam_arena_copy(&b->arena, &to->host, source->host) ||
	    !seam_arena_copy(&b->arena, &to->recording, source->recording))
		return -ENOMEM;
	for (size_t i = 0; i < to->n_labels; i++)
		if (!seam_arena_copy(&b->arena, &b->labels[i],
				     source->labels[i]))
			return -ENOMEM;
	qsort(b->labels, to->n_labels, sizeof(*b->labels), by_text);
	return 0;
}

int seam_fleet_build_begin(struct seam_fleet_build **build,
			   const struct seam_fleet_source *source,
			   struct seam_batch_id first, seam_fleet_sink *sink,
			   void *context, struct seam_err *err)
{
	struct seam_fleet_build *b;
	int r = check_source(source, err);

	*build = NULL;
	if (r)
		return r;
	*build = b = calloc(1, sizeof(*b));
	if (!b)
		return seam_err_no_memory(err);
	b->sink = sink;
	b->context = context;
	b->id = b->next = first;
	if (!copy_source(b, source))
		return 0;
	seam_fleet_build_free(b);
	*build = NULL;
	return seam_err_no_memory(err);
}

static void drop_batch(struct seam_fleet_build *b)
{
	seam_batch_fini(&b->batch);
	seam_index_fini(&b->frames);
	seam_index_fini(&b->stacks);
	seam_index_fini(&b->samples);
	b->is_open = false;
}

void seam_fleet_build_free(struct seam_fleet_build *b)
{
	if (!b)
		return;
	drop_batch(b);
	seam_arena_fini(&b->arena);
	free(b->labels);
	free(b);
}

/* The only origin of a new batch. */
static int open_batch(struct seam_fleet_build *b)
{
	const struct seam_fleet_source *from = &b->source;
	struct seam_batch_origin origin = {
		.service = seam_fleet_text(b, from->service),
		.host = seam_fleet_text(b, from->host),
		.recording = seam_fleet_text(b, from->recording),
		.n_labels = (uint32_t)from->n_labels,
	};

	b->batch.id = b->next;
	b->batch.from_ns = UINT64_MAX;
	for (size_t i = 0; i < from->n_labels; i++) {
		uint32_t label = seam_fleet_text(b, from->labels[i]);

		if (label == SEAM_NONE ||
		    !SEAM_ARRAY_ADD(&b->batch.labels, label))
			return -ENOMEM;
	}
	if (origin.service == SEAM_NONE || origin.host == SEAM_NONE ||
	    origin.recording == SEAM_NONE)
		return -ENOMEM;
	b->is_open = true;
	return seam_batch_origin(&b->batch, &origin) == SEAM_NONE ? -ENOMEM :
	       0;
}

static int by_event(const void *a, const void *b)
{
	const struct seam_batch_sample *x = a, *y = b;

	return SEAM_COMPARE(x->event, y->event) ?:
	       SEAM_COMPARE(x->ts_ns, y->ts_ns) ?:
	       SEAM_COMPARE(x->thread, y->thread) ?:
	       SEAM_COMPARE(x->stack, y->stack);
}

int seam_fleet_build_flush(struct seam_fleet_build *b, struct seam_err *err)
{
	int r;

	if (!b->is_open)
		return 0;
	/* as an engine orders them; equal neighbours also pack well */
	SEAM_ARRAY_SORT(&b->batch.samples, by_event);
	r = b->sink(b->context, &b->batch, err);
	drop_batch(b);
	b->next.seq++;
	return r;
}

uint64_t seam_fleet_build_n_batches(const struct seam_fleet_build *b)
{
	return b->next.seq - b->id.seq;
}

static bool is_full(const struct seam_batch *batch)
{
	return batch->samples.n >= SEAM_FLEET_MAX_ROWS ||
	       batch->stacks.n >= SEAM_FLEET_MAX_ROWS ||
	       batch->frames.n >= SEAM_FLEET_MAX_ROWS ||
	       batch->calls.n >= SEAM_FLEET_MAX_ROWS ||
	       batch->losses.n >= SEAM_FLEET_MAX_ROWS ||
	       batch->frame_ids.n >= MAX_FRAME_IDS ||
	       batch->buckets.n >= MAX_FRAME_IDS;
}

int seam_fleet_build_window(struct seam_fleet_build *b, uint64_t ts_ns,
			    uint64_t window_ns, struct seam_err *err)
{
	uint64_t end_ns = ts_ns + window_ns;
	int r = 0;

	if (b->is_open && (is_full(&b->batch) ||
			   seam_batch_day(ts_ns) !=
			   seam_batch_day(b->batch.from_ns)))
		r = seam_fleet_build_flush(b, err);
	if (!r && !b->is_open && open_batch(b))
		r = seam_err_no_memory(err);
	if (ts_ns < b->batch.from_ns)
		b->batch.from_ns = ts_ns;
	if (end_ns > b->batch.to_ns)
		b->batch.to_ns = end_ns;
	return r;
}

uint64_t seam_fleet_build_utc(uint64_t time_ns, int64_t utc_ns)
{
	uint64_t ns;

	if (__builtin_add_overflow(time_ns, utc_ns, &ns))
		ns = utc_ns < 0 ? 0 : INT64_MAX;
	/* room for the end of its window, in any reader's 63 bits */
	return ns < INT64_MAX / 2 ? ns : INT64_MAX / 2;
}

/* -- frames and stacks -------------------------------------------------- */

uint64_t seam_fleet_build_frame(struct seam_fleet_build *b,
				struct seam_batch_frame *frame)
{
	const struct seam_batch_frame *frames = b->batch.frames.items;

	frame->id = seam_batch_frame_id(&b->batch, frame);
	return SEAM_INDEX_INTERN(&b->frames, frame->id, &b->batch.frames, i,
				 frames[i].id == frame->id, *frame) ==
	       SEAM_NONE ? 0 : frame->id;
}

/*
 * Where the address of a frame is the same in each run: in a file; in the
 * kernel it is from its _text on.  False: it is not.
 */
static bool fixed_address(const struct seam_profile_module *module,
			  uint64_t addr, uint64_t *offset)
{
	*offset = addr;
	if (module->kind == SEAM_MODULE_KERNEL) {
		*offset = addr - module->text_addr;
		return module->text_addr && addr >= module->text_addr;
	}
	return module->kind == SEAM_MODULE_FILE ||
	       module->kind == SEAM_MODULE_VDSO;
}

/* A module's name without a pid: "[jit node 1234]" is "[jit node]". */
static const char *module_name(const struct seam_profile *profile,
			       const struct seam_profile_module *module,
			       char text[80])
{
	const char *path = seam_profile_text(profile, module->path);
	const char *space = strrchr(path, ' ');

	if (module->kind != SEAM_MODULE_ANON || !space ||
	    strncmp(path, "[jit ", 5) != 0 || space < path + 5)
		return path;
	snprintf(text, 80, "%.*s]", (int)(space - path < 70 ? space - path :
					  70), path);
	return text;
}

/* The name of a function, where that is an address one that is fixed. */
static uint32_t function_name(struct seam_fleet_build *b,
			      const struct seam_profile *profile,
			      const struct seam_function *function,
			      const struct seam_profile_module *module,
			      uint64_t offset, bool is_fixed)
{
	const char *name = seam_profile_text(profile, function->name);
	const char *plus = strrchr(name, '+');
	bool is_of_run = !function->is_named && plus &&
			 module->kind != SEAM_MODULE_FILE &&
			 module->kind != SEAM_MODULE_VDSO;
	char text[300];

	if (!is_of_run)
		return seam_fleet_text(b, name);
	if (is_fixed)
		snprintf(text, sizeof(text), "%.*s+0x%" PRIx64 "]",
			 (int)(plus - name < 270 ? plus - name : 270), name,
			 offset);
	else
		snprintf(text, sizeof(text), "%.*s]",
			 (int)(plus - name < 290 ? plus - name : 290), name);
	return seam_fleet_text(b, text);
}

static uint64_t add_frame(struct seam_fleet_build *b,
			  const struct seam_profile *profile, uint32_t id)
{
	const struct seam_frame *f = &profile->frames.items[id];
	const struct seam_function *function =
		&profile->functions.items[f->function];
	const struct seam_profile_module *module =
		&profile->modules.items[f->module];
	uint64_t offset;
	bool is_fixed = fixed_address(module, f->addr, &offset);
	struct seam_batch_frame frame = {
		.layer = function->layer, .is_named = function->is_named,
		.is_inlined = f->is_inlined, .line = f->line,
		.file = seam_fleet_text(b, seam_profile_text(profile, f->file)),
		.function = function_name(b, profile, function, module, offset,
					  is_fixed),
		.offset = is_fixed ? offset : 0,
	};
	char hex[2 * sizeof(module->build_id) + 1] = "", name[80];

	if (module->build_id_size)
		seam_text_hex(hex, module->build_id, module->build_id_size);
	frame.build_id = seam_fleet_text(b, hex);
	frame.module = seam_fleet_text(b, module_name(profile, module, name));
	if (frame.file == SEAM_NONE || frame.function == SEAM_NONE ||
	    frame.build_id == SEAM_NONE || frame.module == SEAM_NONE)
		return 0;
	return seam_fleet_build_frame(b, &frame);
}

/* A profile, and the ids in the batch of what of it is there already. */
struct build_step {
	struct seam_fleet_build *build;
	const struct seam_profile *profile;
	uint64_t seq;		/* of the batch that has them */
	uint64_t *frames;	/* by frame; 0: not in the batch */
	uint64_t *stacks;	/* by stack */
};

static void end_step(struct build_step *s)
{
	free(s->frames);
	free(s->stacks);
	s->frames = s->stacks = NULL;
}

/*
 * Begin with the current batch.  Its first strings are the events: rows, which
 * are sorted by their strings, then have events in their order.  False: no
 * memory.
 */
static bool begin_step(struct build_step *s)
{
	const struct seam_profile *p = s->profile;

	end_step(s);
	for (size_t i = 0; i < p->events.n; i++)
		seam_fleet_text(s->build, seam_profile_text(p,
						p->events.items[i].name));
	s->seq = s->build->next.seq;
	s->frames = calloc(p->frames.n + 1, sizeof(*s->frames));
	s->stacks = calloc(p->stacks.n + 1, sizeof(*s->stacks));
	return s->frames && s->stacks;
}

/* The ids of the frames of @stack, the outermost first; SIZE_MAX: no memory. */
static size_t collect(struct build_step *s, uint32_t stack,
		      uint64_t ids[SEAM_BATCH_MAX_DEPTH])
{
	const struct seam_stack *stacks = s->profile->stacks.items;
	size_t n = 0;

	for (; stack && n < SEAM_BATCH_MAX_DEPTH;
	     stack = stacks[stack].parent) {
		uint64_t *id = &s->frames[stacks[stack].frame];

		if (!*id)
			*id = add_frame(s->build, s->profile,
					stacks[stack].frame);
		if (!*id)
			return SIZE_MAX;
		ids[n++] = *id;
	}
	for (size_t i = 0; i < n / 2; i++) {
		uint64_t id = ids[i];

		ids[i] = ids[n - 1 - i];
		ids[n - 1 - i] = id;
	}
	return n;
}

/* The id of @stack, which the batch then has; false: no memory. */
static bool add_stack(struct build_step *s, uint32_t stack, uint64_t *id)
{
	struct seam_fleet_build *b = s->build;
	const struct seam_batch_stack *stacks;
	uint64_t ids[SEAM_BATCH_MAX_DEPTH];
	uint32_t found;
	size_t n;

	*id = s->stacks[stack];
	if (!stack || *id)
		return true;
	n = collect(s, stack, ids);
	if (n == SIZE_MAX)
		return false;
	*id = s->stacks[stack] = seam_batch_stack_id(ids, n);
	stacks = b->batch.stacks.items;
	found = SEAM_INDEX_FIND(&b->stacks, *id, i, stacks[i].id == *id);
	return found != SEAM_NONE ||
	       (SEAM_ARRAY_EXTEND(&b->batch.frame_ids, ids, n) &&
		SEAM_INDEX_APPEND(&b->stacks, *id, &b->batch.stacks,
				  (struct seam_batch_stack) {
			.id = *id, .n = (uint32_t)n,
			.first = (uint32_t)(b->batch.frame_ids.n - n) }) !=
		SEAM_NONE);
}

/* -- samples ------------------------------------------------------------ */

static uint8_t kind_of(const struct seam_profile_event *event)
{
	return event->is_measured ? SEAM_BATCH_CALLS :
	       !event->is_wait ? SEAM_BATCH_SAMPLES :
	       event->is_preempted ? SEAM_BATCH_PREEMPTED :
	       SEAM_BATCH_BLOCKED;
}

static uint64_t hash_sample(const struct seam_batch_sample *s)
{
	uint64_t hash = seam_hash_add(s->ts_ns, s->stack);

	hash = seam_hash_add(hash, (uint64_t)s->event << 32 |
			     (uint32_t)s->tid);
	return seam_hash_add(hash, (uint64_t)s->process << 32 | s->thread);
}

static bool is_same(const struct seam_batch_sample *a,
		    const struct seam_batch_sample *b)
{
	return a->ts_ns == b->ts_ns && a->stack == b->stack &&
	       a->event == b->event && a->tid == b->tid && a->pid == b->pid &&
	       a->process == b->process && a->thread == b->thread &&
	       a->kind == b->kind && a->unit == b->unit;
}

static int add_row(struct seam_fleet_build *b,
		   const struct seam_batch_sample *row)
{
	struct seam_batch_sample *rows = b->batch.samples.items;
	uint64_t hash = hash_sample(row);
	uint32_t id = SEAM_INDEX_FIND(&b->samples, hash, i,
				      is_same(&rows[i], row));

	if (id != SEAM_NONE) {
		rows[id].count += row->count;
		rows[id].value += row->value;
		return 0;
	}
	return SEAM_INDEX_APPEND(&b->samples, hash, &b->batch.samples, *row) ==
	       SEAM_NONE ? -ENOMEM : 0;
}

/* Sample @i at @ns, UTC. */
static int add_sample(struct build_step *s, size_t i, uint64_t ns,
		      struct seam_err *err)
{
	const struct seam_profile *p = s->profile;
	struct seam_fleet_build *b = s->build;
	const struct seam_thread *thread =
		&p->threads.items[p->samples.thread[i]];
	const struct seam_process *process =
		&p->processes.items[thread->process];
	const struct seam_profile_event *event =
		&p->events.items[p->samples.event[i]];
	struct seam_batch_sample row = {
		.ts_ns = ns - ns % SEAM_FLEET_WINDOW_NS,
		.count = seam_samples_count(&p->samples, i),
		.value = seam_samples_weight(&p->samples, i),
		.unit = event->unit, .kind = kind_of(event),
		.pid = process->pid, .tid = thread->tid,
	};
	int r;

	/* a live profile has such samples for rows of waits */
	if (!row.count && !row.value)
		return 0;
	r = seam_fleet_build_window(b, row.ts_ns, SEAM_FLEET_WINDOW_NS, err);
	if (r)
		return r;
	row.event = seam_fleet_text(b, seam_profile_text(p, event->name));
	row.process = seam_fleet_text(b, seam_profile_text(p, process->name));
	row.thread = seam_fleet_text(b, seam_profile_text(p,
						seam_samples_comm(p, i)));
	if ((s->seq != b->next.seq && !begin_step(s)) ||
	    row.event == SEAM_NONE || row.process == SEAM_NONE ||
	    row.thread == SEAM_NONE ||
	    !add_stack(s, p->samples.stack[i], &row.stack) || add_row(b, &row))
		return seam_err_no_memory(err);
	return 0;
}

/* The order of UTC, so that a day is one run.  NULL: that of the file is it. */
static struct seam_radix_item *order_of(const struct seam_profile *p,
					int64_t utc_ns, int *r)
{
	const struct seam_samples *s = &p->samples;
	uint64_t first = UINT64_MAX, last = 0;
	struct seam_radix_item *items;

	*r = 0;
	for (size_t i = 0; i < s->n; i++) {
		first = s->time_ns[i] < first ? s->time_ns[i] : first;
		last = s->time_ns[i] > last ? s->time_ns[i] : last;
	}
	if (!s->n || seam_batch_day(seam_fleet_build_utc(first, utc_ns)) ==
	    seam_batch_day(seam_fleet_build_utc(last, utc_ns)))
		return NULL;
	items = s->n <= UINT32_MAX ? malloc(s->n * sizeof(*items)) : NULL;
	for (size_t i = 0; items && i < s->n; i++)
		items[i] = (struct seam_radix_item) { s->time_ns[i],
						      (uint32_t)i };
	*r = items ? seam_radix_sort(items, s->n) : -ENOMEM;
	return items;
}

int seam_fleet_build_add(struct seam_fleet_build *b,
			 const struct seam_profile *profile, int64_t utc_ns,
			 struct seam_err *err)
{
	struct build_step s = { .build = b, .profile = profile };
	struct seam_radix_item *order;
	int r;

	order = order_of(profile, utc_ns, &r);
	if (r || !begin_step(&s))
		r = seam_err_no_memory(err);
	for (size_t i = 0; !r && i < profile->samples.n; i++) {
		size_t k = order ? order[i].id : i;

		r = add_sample(&s, k, seam_fleet_build_utc(
				profile->samples.time_ns[k], utc_ns), err);
	}
	end_step(&s);
	free(order);
	return r;
}

int seam_fleet_build_lost(struct seam_fleet_build *b, uint64_t ts_ns,
			  const char *cause, const char *source,
			  uint64_t records, uint64_t bytes,
			  struct seam_err *err)
{
	uint64_t ts = ts_ns - ts_ns % SEAM_FLEET_WINDOW_NS;
	int r = seam_fleet_build_window(b, ts, SEAM_FLEET_WINDOW_NS, err);
	struct seam_batch_loss loss = {
		.ts_ns = ts, .records = records, .bytes = bytes,
	};

	if (r)
		return r;
	loss.cause = seam_fleet_text(b, cause);
	loss.source = seam_fleet_text(b, source);
	return loss.cause != SEAM_NONE && loss.source != SEAM_NONE &&
	       SEAM_ARRAY_ADD(&b->batch.losses, loss) ? 0 :
	       seam_err_no_memory(err);
}
