/* SPDX-License-Identifier: MIT */
/* jit_code.c - events, processes, forks, look-ups, lines; see jit_code.h */
#include "symbol/jit/jit_events.h"

#include <errno.h>
#include <stdlib.h>

#include "base/hash.h"
#include "base/pair_map.h"
#include "base/radix_sort.h"

static const char *const note_texts[SEAM_JIT_N_NOTES] = {
	[SEAM_JIT_OTHER_PID] = "records of another process than the dump's",
	[SEAM_JIT_UNTIMED] = "times of an unknown clock; order used instead",
	[SEAM_JIT_ARCH_GARBAGE] =
		"arch timestamp flag is invalid; times are ns",
	[SEAM_JIT_TOO_NEW] = "dump is newer than the whole recording",
	[SEAM_JIT_SHIFTED] =
		"functions whose source lines were 0x40 bytes off, corrected",
	[SEAM_JIT_BAD_LINES] = "lines of the perf map that cannot be read",
	[SEAM_JIT_BAD_TIMES] = "times of the perf map that cannot be read",
	[SEAM_JIT_MOVE_UNKNOWN] = "moves of unknown code, skipped",
	[SEAM_JIT_MOVE_SIZE] = "moves with another size than the code, skipped",
	[SEAM_JIT_MOVE_PLACE] = "moves from where the code was not",
	[SEAM_JIT_INDEX_TWICE] = "loads with a code index used before",
};

/* NULL when there is none. */
static struct seam_jit_process *find_process(const struct seam_jit_code *jit,
					     int32_t pid)
{
	uint32_t id;

	/* Most recordings have code of one process: no hash then. */
	if (jit->processes.n && jit->processes.items[0].pid == pid)
		return &jit->processes.items[0];
	id = SEAM_INDEX_FIND(&jit->pids, seam_hash_u64((uint32_t)pid), i,
			     jit->processes.items[i].pid == pid);
	return id == SEAM_NONE ? NULL : &jit->processes.items[id];
}

struct seam_jit_process *seam_jit_process_make(struct seam_jit_code *jit,
					       int32_t pid)
{
	struct seam_jit_process *process = find_process(jit, pid);

	if (!process) {
		uint32_t id = SEAM_INDEX_APPEND(&jit->pids,
			seam_hash_u64((uint32_t)pid), &jit->processes,
			(struct seam_jit_process) { .pid = pid });

		if (id == SEAM_NONE)
			return NULL;
		process = &jit->processes.items[id];
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
	free(process->forks.items);
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

int seam_jit_code_fork(struct seam_jit_code *jit, int32_t parent, int32_t child,
		       uint64_t time_ns)
{
	struct seam_jit_process *process = seam_jit_process_make(jit, child);

	return process && SEAM_ARRAY_ADD(&process->forks,
		(struct seam_jit_fork_exec) {
			.time_ns = time_ns, .parent = parent,
			.order = jit->n_forks++,
		}) ? 0 : -ENOMEM;
}

/* ---- events, by time, into a code map ---- */

static uint64_t end_addr(uint64_t start, uint64_t size)
{
	return size > UINT64_MAX - start ? UINT64_MAX : start + size;
}

/* The size that an event covers: for a move, what the record claims. */
static uint64_t event_size(const struct seam_jit_code *jit,
			   const struct seam_jit_event *event)
{
	return event->move == SEAM_NONE ?
	       jit->objects.items[event->object].size :
	       jit->moves.items[event->move].record.code_size;
}

/* Replaying one layer: the load of a code index, and where it is now. */
struct replay {
	struct seam_jit_code *jit;
	struct seam_jit_layer *layer;
	struct seam_pair_map by_index;	/* (source, index) -> object */
	struct seam_pair_map by_place;	/* (index, address) -> object */
	uint32_t *place;	/* by object: its last event; NULL: no moves */
};

/* An index is unique in its dump; else the address decides. */
static uint32_t moved_object(struct replay *p, const struct seam_jit_move *move)
{
	const struct seam_jitdump_move *record = &move->record;
	uint32_t *object = seam_pair_map_find(&p->by_place, record->code_index,
					      record->old_code_addr);

	if (!object)
		object = seam_pair_map_find(&p->by_index, move->source,
					    record->code_index);
	return object ? *object : SEAM_NONE;
}

static int remember(struct replay *p, uint32_t event, uint32_t object)
{
	const struct seam_jit_object *o = &p->jit->objects.items[object];

	p->place[object] = event;
	return seam_pair_map_put(&p->by_place, o->code_index,
				 p->layer->events.items[event].start_addr,
				 object);
}

/* The object of a move.  SEAM_NONE when it must be skipped. */
static uint32_t match_move(struct replay *p, const struct seam_jit_move *move)
{
	uint32_t object = moved_object(p, move);

	if (object == SEAM_NONE) {
		p->layer->notes[SEAM_JIT_MOVE_UNKNOWN]++;
		return SEAM_NONE;
	}
	if (p->jit->objects.items[object].size != move->record.code_size) {
		p->layer->notes[SEAM_JIT_MOVE_SIZE]++;
		return SEAM_NONE;
	}
	if (p->layer->events.items[p->place[object]].start_addr !=
	    move->record.old_code_addr)
		p->layer->notes[SEAM_JIT_MOVE_PLACE]++;
	return object;
}

static int play_move(struct replay *p, uint32_t i)
{
	struct seam_jit_event *event = &p->layer->events.items[i];
	uint32_t from;

	event->object = match_move(p, &p->jit->moves.items[event->move]);
	if (event->object == SEAM_NONE)
		return 0;
	from = p->place[event->object];
	if (seam_code_map_remove(&p->layer->map, from, event->time_ns) ||
	    remember(p, i, event->object))
		return -ENOMEM;
	return seam_code_map_place(&p->layer->map, i, event->time_ns);
}

/*
 * Two lines of a map for one address that may have been written at the same
 * time: a sample may be of either.  One function that is written twice does
 * not count.
 */
static void find_reuse(struct replay *p, uint32_t i)
{
	struct seam_jit_event *events = p->layer->events.items;
	struct seam_jit_object *objects = p->jit->objects.items;
	struct seam_jit_object *object = &objects[events[i].object];
	uint32_t at = SEAM_NONE, below;

	while (!object->is_reused &&
	       (below = seam_code_map_below(&p->layer->map, i, &at)) !=
	       SEAM_NONE) {
		const struct seam_jit_object *other =
			&objects[events[below].object];

		object->is_reused = events[below].time_ns ==
				    events[i].time_ns &&
				    (other->is_reused ||
				     strcmp(other->name, object->name) != 0);
	}
}

static int play_load(struct replay *p, uint32_t i)
{
	const struct seam_jit_event *event = &p->layer->events.items[i];
	const struct seam_jit_object *object =
		&p->jit->objects.items[event->object];

	if (p->place) {
		if (seam_pair_map_find(&p->by_index, object->dump,
				       object->code_index))
			p->layer->notes[SEAM_JIT_INDEX_TWICE]++;
		if (seam_pair_map_put(&p->by_index, object->dump,
				      object->code_index, event->object) ||
		    remember(p, i, event->object))
			return -ENOMEM;
	}
	if (object->known_ns)
		find_reuse(p, i);
	return seam_code_map_place(&p->layer->map, i, event->time_ns);
}

static int play(struct seam_jit_code *jit, struct seam_jit_layer *layer)
{
	struct replay p = { .jit = jit, .layer = layer };
	bool has_moves = false;
	int r = 0;

	for (size_t i = 0; i < layer->events.n; i++)
		has_moves |= layer->events.items[i].move != SEAM_NONE;
	if (has_moves) {
		p.place = calloc(jit->objects.n + 1, sizeof(*p.place));
		r = p.place ? 0 : -ENOMEM;
	}
	for (uint32_t i = 0; !r && i < layer->events.n; i++)
		r = layer->events.items[i].move == SEAM_NONE ?
		    play_load(&p, i) : play_move(&p, i);
	seam_pair_map_fini(&p.by_index);
	seam_pair_map_fini(&p.by_place);
	free(p.place);
	return r ? r : seam_code_map_seal(&layer->map);
}

/* Sort and replay one layer into its map.  0 or -ENOMEM. */
static int replay_layer(struct seam_jit_code *jit,
			struct seam_jit_layer *layer)
{
	size_t n = layer->events.n;
	struct seam_code_range *ranges;
	int r;

	seam_code_map_fini(&layer->map);
	memset(layer->notes, 0, sizeof(layer->notes));
	if (!n)
		return 0;
	r = SEAM_RADIX_SORT(&layer->events, time_ns);
	ranges = r ? NULL : malloc(n * sizeof(*ranges));
	if (!ranges)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++) {
		const struct seam_jit_event *event = &layer->events.items[i];

		ranges[i] = (struct seam_code_range) {
			event->start_addr,
			end_addr(event->start_addr, event_size(jit, event)),
		};
	}
	r = seam_code_map_init(&layer->map, ranges, n);
	free(ranges);
	return r ? r : play(jit, layer);
}

/* ---- processes ---- */

static int compare_forks(const void *a, const void *b)
{
	const struct seam_jit_fork_exec *x = a, *y = b;

	return SEAM_COMPARE(x->time_ns, y->time_ns) ?:
	       SEAM_COMPARE(x->order, y->order);
}

static int index_process(struct seam_jit_code *jit,
			 struct seam_jit_process *process)
{
	SEAM_ARRAY_SORT(&process->forks, compare_forks);
	for (int l = 0; l < SEAM_JIT_N_LAYERS; l++)
		if (replay_layer(jit, &process->layers[l]))
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
 * A process at a time, then its parent when it was forked, and so on.  It ends,
 * because (time, order) gets smaller with every step, by the choice of fork.
 */
struct jit_ancestor {
	const struct seam_jit_code *jit;
	const struct seam_jit_process *process;	/* NULL: it has no code */
	const struct seam_jit_fork_exec *fork;	/* NULL: none was seen */
	uint64_t time_ns;
};

/* The last fork of @process before (@time_ns, @order). */
static const struct seam_jit_fork_exec *
fork_before(const struct seam_jit_process *process, uint64_t time_ns,
	    uint32_t order)
{
	const struct seam_jit_fork_exec *forks =
		process ? process->forks.items : NULL;
	size_t n = SEAM_ARRAY_SEARCH(i, forks ? process->forks.n : 0,
		forks[i].time_ns < time_ns ||
		(forks[i].time_ns == time_ns && forks[i].order < order));

	return n ? &forks[n - 1] : NULL;
}

static struct jit_ancestor ancestor_at(const struct seam_jit_code *jit,
				       int32_t pid, uint64_t time_ns,
				       uint32_t order)
{
	const struct seam_jit_process *process =
		find_process(jit, pid);

	return (struct jit_ancestor) {
		.jit = jit, .process = process, .time_ns = time_ns,
		.fork = fork_before(process, time_ns, order),
	};
}

/* To the parent; false where there is none. */
static bool to_parent(struct jit_ancestor *at)
{
	if (!at->fork || at->fork->parent < 0)
		return false;
	*at = ancestor_at(at->jit, at->fork->parent, at->fork->time_ns,
			  at->fork->order);
	return true;
}

/*
 * The latest time that @event may have.  A line of a map that may have been
 * written before or after an exec is the new program's, which has just made
 * its map.
 */
static uint64_t latest_ns(const struct seam_jit_code *jit,
			  const struct seam_jit_event *event)
{
	uint64_t known_ns = jit->objects.items[event->object].known_ns;

	return known_ns > event->time_ns ? known_ns : event->time_ns;
}

/*
 * The last event that covers @addr since the last fork or exec, NULL: none. Its
 * code may be gone: *@is_there is false then.  A line of a map without a time
 * is valid before and after each exec.
 */
static const struct seam_jit_event *
top_here(const struct jit_ancestor *at, int l, uint64_t addr, bool *is_there)
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
	if (!event || (at->fork && event->time_ns &&
		       latest_ns(at->jit, event) < at->fork->time_ns)) {
		*is_there = false;
		return NULL;
	}
	return event;
}

/* The time of the next exec of the process, or of its pid's next fork. */
static uint64_t next_fork_ns(const struct jit_ancestor *at)
{
	const struct seam_jit_process *p = at->process;
	size_t next = at->fork ? (size_t)(at->fork - p->forks.items) + 1 : 0;

	return next < p->forks.n ? p->forks.items[next].time_ns :
	       UINT64_MAX;
}

/*
 * The first later line of a map for @addr, where there is none before: a
 * runtime may write it long after it made the code.  NULL: there is none.
 */
static const struct seam_jit_event *
later_line(const struct jit_ancestor *at, uint64_t addr)
{
	const struct seam_jit_layer *layer;
	const struct seam_jit_event *event;
	uint32_t i;

	if (!at->process)
		return NULL;
	layer = &at->process->layers[SEAM_JIT_MAPS];
	i = seam_code_map_next(&layer->map, addr, at->time_ns);
	event = i == SEAM_NONE ? NULL : &layer->events.items[i];
	/* It may be what is left of a line before the exec. */
	return event && event->time_ns > at->time_ns &&
	       event->time_ns < next_fork_ns(at) ? event : NULL;
}

/*
 * The event in force at @addr, in this process or in an ancestor, *@n_up forks
 * up.  Code that was replaced here is not looked up in ancestors.
 */
static const struct seam_jit_event *find_event(struct jit_ancestor at,
					       uint64_t addr, size_t *n_up)
{
	*n_up = 0;
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
		/* The parent's lines after the fork are not the child's. */
		if (!mapped && !*n_up && (mapped = later_line(&at, addr)))
			return mapped;
		++*n_up;
	} while (to_parent(&at));
	return NULL;
}

/* Whether one of the first @n processes from @at replaced @start_addr. */
static bool is_overwritten(struct jit_ancestor at, size_t n,
			   uint64_t start_addr)
{
	bool is_there;

	for (; n; n--, to_parent(&at))
		if (top_here(&at, SEAM_JIT_DUMPS, start_addr, &is_there))
			return true;
	return false;
}

bool seam_jit_code_find_object(const struct seam_jit_code *jit, int32_t pid,
			       uint64_t addr, uint64_t time_ns,
			       struct seam_jit_location *location)
{
	const struct seam_jit_event *event;
	struct jit_ancestor at;
	size_t n_up;

	at = ancestor_at(jit, pid, time_ns, UINT32_MAX);
	event = find_event(at, addr, &n_up);
	if (!event || is_overwritten(at, n_up, event->start_addr))
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
	return true;
}

/* A time of an event at which a result may change. */
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
	size_t n = SEAM_ARRAY_SEARCH(i, layer->events.n,
		change_ns(jit, &events[i], is_known) <= time_ns);
	uint64_t ns = n ? change_ns(jit, &events[n - 1], is_known) : 0;

	*from_ns = ns > *from_ns ? ns : *from_ns;
	ns = n < layer->events.n ? change_ns(jit, &events[n], is_known) :
	     UINT64_MAX;
	*to_ns = ns < *to_ns ? ns : *to_ns;
}

/* An ancestor's code is as of the fork: only this process's can change. */
void seam_jit_code_stable_span(struct seam_jit_code *jit, int32_t pid,
			       uint64_t time_ns, uint64_t *from_ns,
			       uint64_t *to_ns)
{
	const struct seam_jit_process *process;

	*from_ns = 0;
	*to_ns = UINT64_MAX;
	process = seam_jit_code_index(jit) ? NULL :
		  find_process(jit, pid);
	if (!process)
		return;
	narrow(jit, &process->layers[SEAM_JIT_DUMPS], false, time_ns, from_ns,
	       to_ns);
	narrow(jit, &process->layers[SEAM_JIT_MAPS], false, time_ns, from_ns,
	       to_ns);
	/* known_ns ascends with the lines of a map. */
	narrow(jit, &process->layers[SEAM_JIT_MAPS], true, time_ns, from_ns,
	       to_ns);
	for (size_t i = 0; i < process->forks.n; i++) {
		uint64_t fork_ns = process->forks.items[i].time_ns;

		if (fork_ns <= time_ns && fork_ns > *from_ns)
			*from_ns = fork_ns;
		if (fork_ns > time_ns && fork_ns < *to_ns)
			*to_ns = fork_ns;
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

/* ---- lines ---- */

/*
 * V8 overwrites the first 16 bytes of a stale file name.  The rest of the name,
 * and its length, usually are those of a name that is intact in a record
 * nearby.
 */
enum {
	OVERWRITTEN = 16,	/* bytes of a name that V8 may have lost */
	NEARBY = 256,		/* records searched on each side for it */
	ENTRY_FIXED = 16,	/* bytes of an entry before its name */
};

/* The first name of a record that can be walked, or NULL. */
static const char *whole_name(const struct seam_jitdump_debug_info *info,
			      enum seam_endian endian)
{
	struct seam_jitdump_lines lines = seam_jitdump_lines_make(info, endian);
	struct seam_jitdump_debug_entry entry;

	if (lines.is_stepped || !seam_jitdump_line(&lines, &entry))
		return NULL;
	return entry.name;
}

static bool is_same_name(const char *whole, const char *lost, size_t size)
{
	return whole && size > OVERWRITTEN && strlen(whole) == size &&
	       memcmp(whole + OVERWRITTEN, lost + OVERWRITTEN,
		      size - OVERWRITTEN) == 0;
}

/* The name of @size bytes that @lost once was, or "". */
static const char *find_name(const struct seam_jit_source *source, size_t at,
			     const char *lost, size_t size)
{
	const struct seam_jitdump_debug_info *infos = source->infos.items;

	for (size_t d = 1; d <= NEARBY; d++) {
		const char *name = d > at ? NULL :
			whole_name(&infos[at - d], source->endian);

		if (is_same_name(name, lost, size))
			return name;
		name = d >= source->infos.n - at ? NULL :
		       whole_name(&infos[at + d], source->endian);
		if (is_same_name(name, lost, size))
			return name;
	}
	return "";
}

/* The rows in the code of @o, sorted.  0 or -ENOMEM. */
static int read_lines(struct seam_jit_code *jit,
		      const struct seam_jit_object *o,
		      struct seam_jit_line_table *table)
{
	const struct seam_jit_source *source = &jit->sources.items[o->dump];
	const struct seam_jitdump_debug_info *info =
		&source->infos.items[o->debug];
	struct seam_jitdump_lines lines =
		seam_jitdump_lines_make(info, source->endian);
	size_t max = info->entries.size / (ENTRY_FIXED + 1);
	size_t step = lines.step;
	struct seam_jitdump_debug_entry entry;
	const char *found = NULL;

	if (max > info->nr_entry)
		max = (size_t)info->nr_entry;
	table->items = seam_arena_alloc(&jit->arena, (max + 1) *
				       sizeof(*table->items));
	if (!table->items)
		return -ENOMEM;
	while (seam_jitdump_line(&lines, &entry)) {
		uint64_t addr = entry.code_addr - source->shift;

		if (addr - o->start_addr >= o->size)
			continue;
		/* One function's names were lost alike. */
		if (step && !found)
			found = find_name(source, o->debug, entry.name,
					  step - ENTRY_FIXED - 1);
		table->items[table->n++] = (struct seam_jit_line) {
			.addr = addr,
			.line = entry.line,
			.column = entry.discrim,
			.file = step ? found : entry.name,
		};
	}
	table->has_lost_names = found && !*found;
	/* Rows of one address stay in order, so that the last one wins. */
	return SEAM_RADIX_SORT(table, addr);
}

size_t seam_jit_code_lines(struct seam_jit_code *jit, uint32_t object,
			   const struct seam_jit_line **lines)
{
	struct seam_jit_object *o = &jit->objects.items[object];
	struct seam_jit_line_table *table;

	*lines = NULL;
	if (o->debug == SEAM_NONE)
		return 0;
	if (o->lines == SEAM_NONE) {
		table = SEAM_ARRAY_PUSH(&jit->tables);
		if (!table)
			return 0;
		*table = (struct seam_jit_line_table) { 0 };
		if (read_lines(jit, o, table))
			table->n = 0;
		o->lines = (uint32_t)jit->tables.n - 1;
	}
	*lines = jit->tables.items[o->lines].items;
	return jit->tables.items[o->lines].n;
}

bool seam_jit_code_find(struct seam_jit_code *jit, int32_t pid, uint64_t addr,
			uint64_t time_ns, struct seam_jit_location *location)
{
	const struct seam_jit_line *rows;
	size_t n;

	if (seam_jit_code_index(jit) ||
	    !seam_jit_code_find_object(jit, pid, addr, time_ns, location))
		return false;
	addr = jit->objects.items[location->object].start_addr +
	       location->offset;
	n = seam_jit_code_lines(jit, location->object, &rows);
	n = SEAM_ARRAY_SEARCH(i, n, rows[i].addr <= addr);
	if (n && rows[n - 1].line) {
		location->file = rows[n - 1].file;
		location->line = rows[n - 1].line;
		location->column = rows[n - 1].column;
	}
	return true;
}

/* ---- all places ---- */

/*
 * A rectangle of the code map is a part of a range that is in force from a time
 * on.  It is a new placement if the range was put there then, or if the range
 * was removed; else it is the rest of a placement from before.
 */
static bool is_new_placement(const struct seam_jit_layer *layer,
			     const struct seam_code_rect *rect,
			     uint32_t *object)
{
	const struct seam_code_map *map = &layer->map;
	uint32_t range = rect->range & ~(uint32_t)SEAM_CODE_REMOVED;
	const struct seam_jit_event *event = &layer->events.items[range];
	bool is_begin = event->time_ns == rect->from;

	*object = SEAM_NONE;
	if (rect->range & SEAM_CODE_REMOVED)
		return true;
	if (seam_code_map_find(map, map->bounds[map->ends[range].left],
			       rect->from) != range)
		return true;
	*object = event->object;
	return is_begin;
}

/*
 * Until when each range's first byte was its own: a part of it that is seen
 * longer means nothing from then on.
 */
static uint64_t *find_ends(const struct seam_code_map *map)
{
	uint64_t *ends = calloc(map->n_ranges + 1, sizeof(*ends));

	for (size_t i = 0; ends && i < map->rects.n; i++) {
		const struct seam_code_rect *rect = &map->rects.items[i];

		if (rect->range < map->n_ranges &&
		    rect->left == map->ends[rect->range].left &&
		    rect->to > ends[rect->range])
			ends[rect->range] = rect->to;
	}
	return ends;
}

static int add_rect(struct seam_jit_placements *to, int32_t pid,
		    const struct seam_jit_layer *layer,
		    const struct seam_code_rect *rect, uint64_t fork_ns,
		    const uint64_t *ends)
{
	const struct seam_code_map *map = &layer->map;
	struct seam_jit_placement p = {
		.pid = pid, .time_ns = rect->from ? rect->from : fork_ns,
		.start_addr = map->bounds[rect->left],
		.size = map->bounds[rect->right] - map->bounds[rect->left],
	};
	bool has_room = true;

	if (is_new_placement(layer, rect, &p.object)) {
		if (p.object != SEAM_NONE)
			p.offset = p.start_addr -
				layer->events.items[rect->range].start_addr;
		has_room = SEAM_ARRAY_ADD(&to->list, p);
	}
	if (has_room && rect->range < map->n_ranges &&
	    ends[rect->range] > rect->from && ends[rect->range] < rect->to) {
		p.object = SEAM_NONE;
		p.time_ns = ends[rect->range];
		has_room = SEAM_ARRAY_ADD(&to->list, p);
	}
	return has_room ? 0 : -ENOMEM;
}

static int add_layer(struct seam_jit_placements *to, int32_t pid,
		     const struct seam_jit_layer *layer, uint64_t fork_ns)
{
	const struct seam_code_map *map = &layer->map;
	uint64_t *ends = find_ends(map);
	int r = ends ? 0 : -ENOMEM;

	for (size_t i = 0; i < map->rects.n && r == 0; i++)
		if (map->rects.items[i].range != SEAM_NONE)
			r = add_rect(to, pid, layer, &map->rects.items[i],
				     fork_ns, ends);
	free(ends);
	return r;
}

int seam_jit_placements_read(struct seam_jit_placements *placements,
			     struct seam_jit_code *jit)
{
	int r = seam_jit_code_index(jit);

	for (size_t i = 0; r == 0 && i < jit->processes.n; i++) {
		const struct seam_jit_process *p = &jit->processes.items[i];
		uint64_t fork_ns = p->forks.n ?
			p->forks.items[p->forks.n - 1].time_ns + 1 : 0;

		for (int l = SEAM_JIT_N_LAYERS; r == 0 && l-- > 0;)
			r = add_layer(placements, p->pid, &p->layers[l],
				      fork_ns);
	}
	return r;
}

/* ---- notes ---- */

static void report_all(const uint64_t counts[SEAM_JIT_N_NOTES], int32_t pid,
		       seam_jit_report *report, void *context)
{
	for (size_t i = 0; i < SEAM_JIT_N_NOTES; i++)
		if (counts[i])
			report(context, pid, note_texts[i], counts[i],
			       i == SEAM_JIT_SHIFTED);
}

void seam_jit_code_notes(const struct seam_jit_code *jit,
			 seam_jit_report *report, void *context)
{
	uint64_t n_lost = 0;

	for (size_t i = 0; i < jit->sources.n; i++) {
		const struct seam_jit_source *s = &jit->sources.items[i];

		for (int n = 0; n < SEAM_JITDUMP_N_NOTES; n++)
			if (s->reader_notes[n])
				report(context, s->pid,
				       seam_jitdump_note_text(
					       (enum seam_jitdump_note)n),
				       s->reader_notes[n], false);
		report_all(s->notes, s->pid, report, context);
	}
	for (size_t i = 0; i < jit->processes.n; i++)
		report_all(jit->processes.items[i].layers[SEAM_JIT_DUMPS].notes,
			   jit->processes.items[i].pid, report, context);
	for (size_t i = 0; i < jit->tables.n; i++)
		n_lost += jit->tables.items[i].has_lost_names;
	if (n_lost)
		report(context, 0,
		       "functions whose source file name is damaged", n_lost,
		       false);
}
