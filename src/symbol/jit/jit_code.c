/* SPDX-License-Identifier: MIT */
/* jit_code.c - processes, their births, and what was there; see jit_code.h */
#include "symbol/jit/jit_events.h"

#include <errno.h>
#include <stdlib.h>

#include "base/hash.h"

static const char *const note_texts[SEAM_JIT_N_NOTES] = {
	[SEAM_JIT_OTHER_PID] = "records of another process than the dump's",
	[SEAM_JIT_UNTIMED] = "times of an unknown clock; order used instead",
	[SEAM_JIT_ARCH_GARBAGE] =
		"arch timestamp flag is garbage; times are ns",
	[SEAM_JIT_TOO_NEW] = "dump is newer than the whole recording",
	[SEAM_JIT_SHIFTED] =
		"functions whose source lines were 0x40 bytes off, put right",
	[SEAM_JIT_BAD_LINES] = "lines of the perf map that cannot be read",
	[SEAM_JIT_BAD_TIMES] = "times of the perf map that cannot be read",
};

static const char *const move_note_texts[SEAM_JIT_N_MOVE_NOTES] = {
	[SEAM_JIT_MOVE_UNKNOWN] = "moves of unknown code, skipped",
	[SEAM_JIT_MOVE_EARLY] = "moves before the load of their code, skipped",
	[SEAM_JIT_MOVE_SIZE] = "moves with another size than the code, skipped",
	[SEAM_JIT_MOVE_PLACE] = "moves from where the code was not",
	[SEAM_JIT_INDEX_TWICE] = "loads with a code index used before",
};

struct seam_jit_process *seam_jit_process_find(const struct seam_jit_code *jit,
					       int32_t pid)
{
	struct seam_index_probe probe = seam_index_probe(
		&jit->pids, seam_hash_u64((uint32_t)pid));
	uint32_t id;

	while ((id = seam_index_next(&jit->pids, &probe)) != SEAM_NONE)
		if (jit->processes.items[id].pid == pid)
			return &jit->processes.items[id];
	return NULL;
}

struct seam_jit_process *seam_jit_process_make(struct seam_jit_code *jit,
					       int32_t pid)
{
	struct seam_jit_process *process = seam_jit_process_find(jit, pid);

	if (!process) {
		uint32_t id = (uint32_t)jit->processes.n;

		if (!SEAM_ARRAY_RESERVE(&jit->processes, 1) ||
		    seam_index_add(&jit->pids, seam_hash_u64((uint32_t)pid),
				   id))
			return NULL;
		process = &jit->processes.items[jit->processes.n++];
		*process = (struct seam_jit_process) { .pid = pid };
	}
	process->is_indexed = false;
	jit->is_indexed = false;
	return process;
}

struct seam_jit_code *seam_jit_code_new(void)
{
	return calloc(1, sizeof(struct seam_jit_code));
}

static void free_process(struct seam_jit_process *process)
{
	for (int l = 0; l < SEAM_JIT_N_LAYERS; l++) {
		free(process->layers[l].events.items);
		seam_code_map_fini(&process->layers[l].map);
	}
	free(process->births.items);
}

void seam_jit_code_free(struct seam_jit_code *jit)
{
	if (!jit)
		return;
	for (size_t i = 0; i < jit->sources.n; i++)
		free(jit->sources.items[i].infos.items);
	for (size_t i = 0; i < jit->processes.n; i++)
		free_process(&jit->processes.items[i]);
	free(jit->sources.items);
	free(jit->objects.items);
	free(jit->moves.items);
	free(jit->processes.items);
	free(jit->tables.items);
	seam_index_fini(&jit->pids);
	seam_arena_fini(&jit->arena);
	free(jit);
}

static int add_birth(struct seam_jit_code *jit, int32_t pid, int32_t parent,
		     uint64_t time_ns)
{
	struct seam_jit_process *process = seam_jit_process_make(jit, pid);
	struct seam_jit_birth *birth =
		process ? SEAM_ARRAY_PUSH(&process->births) : NULL;

	if (!birth)
		return -ENOMEM;
	*birth = (struct seam_jit_birth) {
		.time_ns = time_ns, .parent = parent,
		.order = jit->n_births++,
	};
	return 0;
}

int seam_jit_code_fork(struct seam_jit_code *jit, int32_t parent, int32_t child,
		       uint64_t time_ns)
{
	return add_birth(jit, child, parent, time_ns);
}

int seam_jit_code_exec(struct seam_jit_code *jit, int32_t pid, uint64_t time_ns)
{
	return add_birth(jit, pid, -1, time_ns);
}

static int compare_births(const void *a, const void *b)
{
	const struct seam_jit_birth *x = a, *y = b;

	if (x->time_ns != y->time_ns)
		return x->time_ns < y->time_ns ? -1 : 1;
	return x->order < y->order ? -1 : x->order > y->order;
}

static int index_process(struct seam_jit_code *jit,
			 struct seam_jit_process *process)
{
	if (process->births.n)
		qsort(process->births.items, process->births.n,
		      sizeof(*process->births.items), compare_births);
	for (int l = 0; l < SEAM_JIT_N_LAYERS; l++)
		if (seam_jit_play(jit, &process->layers[l]))
			return -ENOMEM;
	process->is_indexed = true;
	return 0;
}

int seam_jit_code_index(struct seam_jit_code *jit)
{
	if (jit->is_indexed)
		return 0;
	for (size_t i = 0; i < jit->processes.n; i++)
		if (!jit->processes.items[i].is_indexed &&
		    index_process(jit, &jit->processes.items[i]))
			return -ENOMEM;
	jit->is_indexed = true;
	return 0;
}

/*
 * A process at a time, then its parent when it was forked, and so on.  Ends:
 * (time, order) gets smaller with every step, by the choice of birth.
 */
struct line_of_descent {
	const struct seam_jit_code *jit;
	const struct seam_jit_process *process;	/* NULL: nothing known */
	const struct seam_jit_birth *birth;	/* NULL: none was seen */
	uint64_t time_ns;
};

/* The last birth of @process before (@time_ns, @order). */
static const struct seam_jit_birth *
birth_before(const struct seam_jit_process *process, uint64_t time_ns,
	     uint32_t order)
{
	size_t low = 0, high = process ? process->births.n : 0;

	while (low < high) {
		size_t middle = low + (high - low) / 2;
		const struct seam_jit_birth *b =
			&process->births.items[middle];

		if (b->time_ns < time_ns ||
		    (b->time_ns == time_ns && b->order < order))
			low = middle + 1;
		else
			high = middle;
	}
	return low ? &process->births.items[low - 1] : NULL;
}

static struct line_of_descent descend(const struct seam_jit_code *jit,
				      int32_t pid, uint64_t time_ns,
				      uint32_t order)
{
	const struct seam_jit_process *process =
		seam_jit_process_find(jit, pid);

	return (struct line_of_descent) {
		.jit = jit, .process = process, .time_ns = time_ns,
		.birth = birth_before(process, time_ns, order),
	};
}

/* To the parent; false where there is none. */
static bool ascend(struct line_of_descent *at)
{
	if (!at->birth || at->birth->parent < 0)
		return false;
	*at = descend(at->jit, at->birth->parent, at->birth->time_ns,
		      at->birth->order);
	return true;
}

/*
 * When @event was at the latest.  A line of a map that may have been written
 * on either side of an exec is the new program's: that has just made its map.
 */
static uint64_t latest_ns(const struct seam_jit_code *jit,
			  const struct seam_jit_event *event)
{
	uint64_t known_ns = jit->objects.items[event->object].known_ns;

	return known_ns > event->time_ns ? known_ns : event->time_ns;
}

/*
 * The last event that covers @addr in this life of the process, NULL: none.  It
 * may be gone (then not *@is_there).  A line of a map without a time is of
 * every life.
 */
static const struct seam_jit_event *
top_here(const struct line_of_descent *at, int l, uint64_t addr, bool *is_there)
{
	const struct seam_jit_layer *layer;
	const struct seam_jit_event *event;
	uint32_t i;

	*is_there = false;
	if (!at->process)
		return NULL;
	layer = &at->process->layers[l];
	i = seam_code_map_top(&layer->map, addr, at->time_ns, is_there);
	event = i == SEAM_NONE ? NULL : &layer->events.items[i];
	if (!event || (at->birth && event->time_ns &&
		       latest_ns(at->jit, event) < at->birth->time_ns)) {
		*is_there = false;
		return NULL;
	}
	return event;
}

/* When the life of the process that @at is in ends. */
static uint64_t life_end_ns(const struct line_of_descent *at)
{
	const struct seam_jit_process *p = at->process;
	size_t next = at->birth ? (size_t)(at->birth - p->births.items) + 1 : 0;

	return next < p->births.n ? p->births.items[next].time_ns :
	       UINT64_MAX;
}

/*
 * The first line that a map will have for @addr, where none came before: a
 * runtime may write it long after it made the code.  NULL: there is none.
 */
static const struct seam_jit_event *
line_to_come(const struct line_of_descent *at, uint64_t addr)
{
	const struct seam_jit_layer *layer;
	const struct seam_jit_event *event;
	uint32_t i;

	if (!at->process)
		return NULL;
	layer = &at->process->layers[SEAM_JIT_MAPS];
	i = seam_code_map_next(&layer->map, addr, at->time_ns);
	event = i == SEAM_NONE ? NULL : &layer->events.items[i];
	/* What is left of a line of a life before is seen again, too. */
	return event && event->time_ns > at->time_ns &&
	       event->time_ns < life_end_ns(at) ? event : NULL;
}

/*
 * The event in force at @addr, here or in an ancestor, who is *@n_heirs up.
 * What was here and is gone is not looked for above: it was written over.
 */
static const struct seam_jit_event *find_event(struct line_of_descent at,
					       uint64_t addr, size_t *n_heirs)
{
	*n_heirs = 0;
	do {
		const struct seam_jit_event *dumped, *mapped;
		bool is_there;

		dumped = top_here(&at, SEAM_JIT_DUMPS, addr, &is_there);
		if (is_there)
			return dumped;
		mapped = top_here(&at, SEAM_JIT_MAPS, addr, &is_there);
		if (is_there)
			return mapped;
		if (dumped)
			return NULL;
		/* What comes after a fork is not the child's. */
		if (!mapped && !*n_heirs)
			mapped = line_to_come(&at, addr);
		else
			mapped = NULL;
		if (mapped)
			return mapped;
		++*n_heirs;
	} while (ascend(&at));
	return NULL;
}

/* Whether one of the @n youngest put something of its own over @start_addr. */
static bool is_overwritten(struct line_of_descent at, size_t n,
			   uint64_t start_addr)
{
	bool is_there;

	for (; n; n--, ascend(&at))
		if (top_here(&at, SEAM_JIT_DUMPS, start_addr, &is_there))
			return true;
	return false;
}

static void fill_line(struct seam_jit_code *jit,
		      struct seam_jit_location *location)
{
	const struct seam_jit_line *rows;
	size_t low = 0, high = seam_jit_code_lines(jit, location->object,
						   &rows);
	uint64_t addr = jit->objects.items[location->object].start_addr +
			location->offset;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (rows[middle].addr <= addr)
			low = middle + 1;
		else
			high = middle;
	}
	if (!low || !rows[low - 1].line)
		return;
	location->file = rows[low - 1].file;
	location->line = rows[low - 1].line;
	location->column = rows[low - 1].column;
}

bool seam_jit_code_find(struct seam_jit_code *jit, int32_t pid, uint64_t addr,
			uint64_t time_ns, struct seam_jit_location *location)
{
	const struct seam_jit_event *event;
	struct line_of_descent at;
	size_t n_heirs;

	if (seam_jit_code_index(jit))
		return false;
	at = descend(jit, pid, time_ns, UINT32_MAX);
	event = find_event(at, addr, &n_heirs);
	if (!event || is_overwritten(at, n_heirs, event->start_addr))
		return false;
	*location = (struct seam_jit_location) {
		.object = event->object,
		.name = jit->objects.items[event->object].name,
		.start_addr = event->start_addr,
		.offset = addr - event->start_addr,
		.is_ambiguous =
			jit->objects.items[event->object].is_reused &&
			time_ns < jit->objects.items[event->object].known_ns,
		.file = "",
	};
	fill_line(jit, location);
	return true;
}

/* A time of an event of one layer at which an answer may change. */
static uint64_t change_ns(const struct seam_jit_code *jit,
			  const struct seam_jit_event *event, bool is_known)
{
	return is_known ? jit->objects.items[event->object].known_ns :
	       event->time_ns;
}

/* Narrow the span around @time_ns to that between two changes of @layer. */
static void narrow(const struct seam_jit_code *jit,
		   const struct seam_jit_layer *layer, bool is_known,
		   uint64_t time_ns, uint64_t *from_ns, uint64_t *to_ns)
{
	const struct seam_jit_event *events = layer->events.items;
	size_t low = 0, high = layer->events.n;
	uint64_t ns;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (change_ns(jit, &events[middle], is_known) <= time_ns)
			low = middle + 1;
		else
			high = middle;
	}
	ns = low ? change_ns(jit, &events[low - 1], is_known) : 0;
	*from_ns = ns > *from_ns ? ns : *from_ns;
	ns = low < layer->events.n ? change_ns(jit, &events[low], is_known) :
	     UINT64_MAX;
	*to_ns = ns < *to_ns ? ns : *to_ns;
}

/* What an ancestor has is as of the fork: only this life of it can change. */
void seam_jit_code_quiet(struct seam_jit_code *jit, int32_t pid,
			 uint64_t time_ns, uint64_t *from_ns, uint64_t *to_ns)
{
	const struct seam_jit_process *process;

	*from_ns = 0;
	*to_ns = UINT64_MAX;
	process = seam_jit_code_index(jit) ? NULL :
		  seam_jit_process_find(jit, pid);
	if (!process)
		return;
	narrow(jit, &process->layers[SEAM_JIT_DUMPS], false, time_ns, from_ns,
	       to_ns);
	narrow(jit, &process->layers[SEAM_JIT_MAPS], false, time_ns, from_ns,
	       to_ns);
	/* Those of a map rise with its lines. */
	narrow(jit, &process->layers[SEAM_JIT_MAPS], true, time_ns, from_ns,
	       to_ns);
	for (size_t i = 0; i < process->births.n; i++) {
		uint64_t born_ns = process->births.items[i].time_ns;

		if (born_ns <= time_ns && born_ns > *from_ns)
			*from_ns = born_ns;
		if (born_ns > time_ns && born_ns < *to_ns)
			*to_ns = born_ns;
	}
}

size_t seam_jit_code_count(const struct seam_jit_code *jit)
{
	return jit->objects.n;
}

const struct seam_jit_object *
seam_jit_code_object(const struct seam_jit_code *jit, uint32_t object)
{
	return &jit->objects.items[object];
}

size_t seam_jit_code_lines(struct seam_jit_code *jit, uint32_t object,
			   const struct seam_jit_line **lines)
{
	struct seam_jit_object *o = &jit->objects.items[object];
	const struct seam_jit_source *source = &jit->sources.items[o->dump];
	struct seam_jit_line_table *table;

	*lines = NULL;
	if (o->debug == SEAM_NONE)
		return 0;
	if (o->lines == SEAM_NONE) {
		table = SEAM_ARRAY_PUSH(&jit->tables);
		if (!table)
			return 0;
		if (seam_jit_lines_read(source->infos.items, source->infos.n,
					o->debug, source->endian,
					source->shift, o->start_addr, o->size,
					&jit->arena, table))
			table->n = 0;
		o->lines = (uint32_t)jit->tables.n - 1;
	}
	*lines = jit->tables.items[o->lines].rows;
	return jit->tables.items[o->lines].n;
}

/* ---- notes ---- */

static void say_all(const uint64_t *counts, size_t n, const char *const *texts,
		    int32_t pid,
		    void (*say)(void *, int32_t, const char *, uint64_t),
		    void *context)
{
	for (size_t i = 0; i < n; i++)
		if (counts[i])
			say(context, pid, texts[i], counts[i]);
}

bool seam_jit_code_is_settled(const char *text)
{
	return text == note_texts[SEAM_JIT_SHIFTED];
}

void seam_jit_code_notes(const struct seam_jit_code *jit,
			 void (*say)(void *context, int32_t pid,
				     const char *text, uint64_t count),
			 void *context)
{
	uint64_t n_lost = 0;

	for (size_t i = 0; i < jit->sources.n; i++) {
		const struct seam_jit_source *s = &jit->sources.items[i];

		for (int n = 0; n < SEAM_JITDUMP_N_NOTES; n++)
			if (s->reader_notes[n])
				say(context, s->pid, seam_jitdump_note_text(
					(enum seam_jitdump_note)n),
				    s->reader_notes[n]);
		say_all(s->notes, SEAM_JIT_N_NOTES, note_texts, s->pid, say,
			context);
	}
	for (size_t i = 0; i < jit->processes.n; i++) {
		const struct seam_jit_process *p = &jit->processes.items[i];

		say_all(p->layers[SEAM_JIT_DUMPS].notes, SEAM_JIT_N_MOVE_NOTES,
			move_note_texts, p->pid, say, context);
	}
	for (size_t i = 0; i < jit->tables.n; i++)
		n_lost += jit->tables.items[i].has_lost_names;
	if (n_lost)
		say(context, 0, "functions whose source file name is damaged",
		    n_lost);
}
