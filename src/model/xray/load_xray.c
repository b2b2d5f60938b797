/* SPDX-License-Identifier: MIT */
/* load_xray.c - call paths to stacks and samples; see load_xray.h */
#include "model/xray/load_xray.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include "base/pair_map.h"
#include "model/xray/call_names.h"
#include "model/xray/marked.h"
#include "model/xray/stream_calls.h"

/* Threads of one tid to look at: a hostile recording may have a million. */
enum { NEARBY = 64 };

/* The source of the tracks, which the profile owns. */
struct track_source {
	const struct seam_profile *profile;
	const struct seam_trace *trace;
	struct seam_pair_map frames;	/* of the profile, by XRay id */
};

struct xray_loader {
	struct seam_profile *profile;
	struct seam_trace *trace;
	struct seam_xray_map names;
	struct seam_calls calls;	/* scratch; collects the repairs */
	uint64_t n_left_out;		/* calls of stacks over the limit */
	struct seam_xray_problems problems;
	uint32_t *known;		/* threads of other inputs, sorted by
					 * tid and start */
	size_t n_known;
	struct seam_pair_map processes;	/* by pid, and by is_fork */
	struct seam_pair_map threads;	/* added: by process and tid */
	struct track_source *tracks;
	uint32_t event;			/* of the profile */
	uint32_t module;		/* the file of --map; 0: none */
	struct seam_pair_map images;	/* modules by string of names */
	struct seam_symbols *symbols;	/* NULL: there are no maps */
};

/* -- threads ------------------------------------------------------------ */

/*
 * Map streams of a trace to threads of a profile
 *
 * A thread that the profile has already, from another input, is found by its
 * pid and tid, and by the time where a number was used twice.  Others are
 * added: streams of equal ids are one thread, but a forked child that writes
 * its parent's ids is another one.
 */

static int by_tid(const void *a, const void *b, void *context)
{
	const struct seam_profile *profile = context;
	const struct seam_thread *x =
		&profile->threads.items[*(const uint32_t *)a];
	const struct seam_thread *y =
		&profile->threads.items[*(const uint32_t *)b];

	return SEAM_COMPARE(x->tid, y->tid) ?:
	       SEAM_COMPARE(x->start_ns, y->start_ns);
}

/* Remember the threads and processes of other inputs. */
static int note_threads(struct xray_loader *l)
{
	struct seam_profile *profile = l->profile;

	l->n_known = profile->threads.n;
	l->known = malloc((l->n_known + 1) * sizeof(*l->known));
	if (!l->known)
		return -ENOMEM;
	for (size_t i = 0; i < l->n_known; i++)
		l->known[i] = (uint32_t)i;
	qsort_r(l->known, l->n_known, sizeof(*l->known), by_tid, profile);
	for (size_t i = 0; i < profile->processes.n; i++) {
		int32_t pid = profile->processes.items[i].pid;

		/* 0 is the idle process, and in a log no pid at all */
		if (pid && seam_pair_map_put(&l->processes, (uint32_t)pid,
					     false, (uint32_t)i))
			return -ENOMEM;
	}
	return 0;
}

/*
 * The known thread of these ids that started last by @ns, or first after it;
 * SEAM_NONE: there is none.  Pid 0: the log does not have it.
 */
static uint32_t find_known(const struct xray_loader *l, int32_t pid,
			   int32_t tid, uint64_t ns)
{
	const struct seam_profile *p = l->profile;
	const struct seam_thread *threads = p->threads.items;
	size_t place = SEAM_ARRAY_SEARCH(i, l->n_known,
		threads[l->known[i]].tid < tid ||
		(threads[l->known[i]].tid == tid &&
		 threads[l->known[i]].start_ns <= ns));
	size_t from = place > NEARBY ? place - NEARBY : 0;
	uint32_t found = SEAM_NONE;

	for (size_t i = from; i < l->n_known && i < place + NEARBY; i++) {
		const struct seam_thread *thread = &threads[l->known[i]];

		if (thread->tid == tid && (i < place || found == SEAM_NONE) &&
		    (!pid || p->processes.items[thread->process].pid == pid))
			found = l->known[i];
	}
	return found;
}

/* The last process of these ids, added if there is none. */
static uint32_t find_process(struct xray_loader *l, int32_t pid,
			     bool is_fork)
{
	struct seam_profile *profile = l->profile;
	uint32_t *known = seam_pair_map_find(&l->processes, (uint32_t)pid,
					     is_fork);
	uint32_t name, id = (uint32_t)profile->processes.n;

	if (known)
		return *known;
	name = seam_strings_put(&profile->strings, is_fork ? "forked" : "");
	if (name == SEAM_NONE ||
	    !SEAM_ARRAY_ADD(&profile->processes, (struct seam_process) {
		.pid = pid, .name = name, .end_ns = UINT64_MAX,
		.parent = SEAM_NONE }))
		return SEAM_NONE;
	return seam_pair_map_put(&l->processes, (uint32_t)pid, is_fork, id) ?
	       SEAM_NONE : id;
}

static uint32_t add_thread(struct xray_loader *l,
			   const struct seam_trace_stream *stream)
{
	struct seam_profile *profile = l->profile;
	uint32_t process = find_process(l, stream->pid, stream->is_fork);
	uint32_t *known = seam_pair_map_find(&l->threads, process,
					     (uint32_t)stream->tid);
	uint32_t name, id = (uint32_t)profile->threads.n;
	char text[32];

	if (process == SEAM_NONE || known)
		return known ? *known : SEAM_NONE;
	snprintf(text, sizeof(text), "%s %" PRId32, stream->is_fork ?
		 "forked from" : "thread", stream->tid);
	name = seam_strings_put(&profile->strings, text);
	if (name == SEAM_NONE ||
	    !SEAM_ARRAY_ADD(&profile->threads, (struct seam_thread) {
		.process = process, .tid = stream->tid, .name = name,
		.end_ns = UINT64_MAX }))
		return SEAM_NONE;
	return seam_pair_map_put(&l->threads, process, (uint32_t)stream->tid,
				 id) ? SEAM_NONE : id;
}

/* -- tracks ------------------------------------------------------------- */

struct track_cursor {
	struct seam_stream_items items;
	struct track_source *source;
};

static int open_cursor(const struct seam_track *track, void **cursor)
{
	struct track_source *source = track->source;
	struct track_cursor *c = malloc(sizeof(*c));

	*cursor = c;
	if (!c)
		return -ENOMEM;
	c->source = source;
	return seam_stream_items_open(&c->items, source->trace, track->stream);
}

static int next_item(void *cursor, struct seam_item *item)
{
	struct track_cursor *c = cursor;
	const struct seam_item *next = seam_stream_items_next(&c->items);
	const uint32_t *frame;

	if (!next)
		return c->items.calls.error;
	*item = *next;
	if (item->function == SEAM_NONE)
		return 1;
	frame = seam_pair_map_find(&c->source->frames, item->function, 0);
	item->function = frame ? c->source->profile->frames.items[*frame]
				 .function : SEAM_NONE;
	return 1;
}

static void close_cursor(void *cursor)
{
	struct track_cursor *c = cursor;

	seam_stream_items_close(&c->items);
	free(c);
}

static int read_marked(const struct seam_track *track,
		       struct seam_wait_cursor waits, seam_marked_fn *found,
		       void *context)
{
	const struct track_source *source = track->source;

	return seam_marked_read(source->trace, (uint32_t)track->stream, waits,
				found, context, NULL);
}

static const struct seam_track_reader track_reader = {
	.marked = read_marked, .open = open_cursor, .next = next_item,
	.close = close_cursor,
};

static void free_source(void *object)
{
	struct track_source *source = object;

	seam_pair_map_fini(&source->frames);
	free(source);
}

/* -- names -------------------------------------------------------------- */

static uint32_t add_module(struct xray_loader *l, const char *path)
{
	return seam_profile_module(l->profile, &(struct seam_profile_module) {
		.kind = SEAM_MODULE_FILE, .pid = -1,
		.path = seam_strings_put(&l->profile->strings, path),
	});
}

/*
 * Where the map is the program: names, files and lines by its debug
 * information.  Where that has no name, the map's own stays.  0 or -ENOMEM.
 */
static int resolve(struct xray_loader *l, const char *path)
{
	const struct seam_module module = { .path = path };
	uint32_t file = seam_symbols_module(l->symbols, &module);
	struct seam_xray_mapped *f = l->names.functions.items;
	struct seam_strings *strings = &l->names.strings;

	if (file == SEAM_NONE)
		return -ENOMEM;
	for (size_t i = 0; i < l->names.functions.n; i++)
		seam_symbols_expect(l->symbols, file, f[i].file_offset);
	for (size_t i = 0; i < l->names.functions.n; i++, f++) {
		struct seam_location at[8];
		size_t n = seam_symbols_resolve(l->symbols, file,
						f->file_offset, at,
						SEAM_ARRAY_SIZE(at));

		/* the last is the function itself, not what it inlined */
		if (n == 0 || n > SEAM_ARRAY_SIZE(at) || !at[n - 1].function)
			continue;
		f->name = seam_strings_put(strings, at[n - 1].function);
		f->file = seam_strings_put(strings, at[n - 1].file);
		f->line = at[n - 1].line;
		if (f->name == SEAM_NONE || f->file == SEAM_NONE)
			return -ENOMEM;
	}
	return 0;
}

static void add_note(void *context, const char *text)
{
	struct xray_loader *l = context;

	seam_profile_note(l->profile, "%s", text);
}

static int load_names(struct xray_loader *l, const char *map,
		      struct seam_err *err)
{
	const struct seam_log_notes notes = { add_note, l };
	char doubt[256];
	int rc = seam_log_names_open(&l->names, l->trace, map, l->symbols,
				     &notes, err);

	if (rc || !map)
		return rc;
	if (l->names.from_elf && resolve(l, map))
		return seam_err_no_memory(err);
	if (seam_call_names_doubt(&l->names, l->trace, doubt, sizeof(doubt)))
		seam_profile_note(l->profile, "'%s' does not fit this log: %s",
				  map, doubt);
	return 0;
}

/* The binary of a function, as its map names it; SEAM_NONE: no memory. */
static uint32_t module_of(struct xray_loader *l,
			  const struct seam_xray_mapped *f)
{
	const uint32_t *known;
	uint32_t module;

	if (!f || !f->image)
		return l->module;
	known = seam_pair_map_find(&l->images, f->image, 0);
	if (known)
		return *known;
	module = add_module(l, seam_strings_get(&l->names.strings, f->image));
	return module == SEAM_NONE ||
	       seam_pair_map_put(&l->images, f->image, 0, module) ?
	       SEAM_NONE : module;
}

static uint32_t add_frame(struct xray_loader *l, uint32_t id)
{
	const struct seam_xray_mapped *f = seam_xray_map_find(&l->names,
							      id);
	const uint32_t *known = seam_pair_map_find(&l->tracks->frames, id, 0);
	struct seam_strings *strings = &l->profile->strings;
	struct seam_function function = {
		.module = known ? 0 : module_of(l, f),
		.layer = SEAM_LAYER_NATIVE, .is_named = f && f->name,
	};
	struct seam_frame frame = {
		.line = f ? f->line : 0, .module = function.module,
		.code = SEAM_NONE,
	};
	char buf[SEAM_CALL_NAME];
	uint32_t added;

	if (known || function.module == SEAM_NONE)
		return known ? *known : SEAM_NONE;
	function.name = seam_strings_put(strings,
					 seam_call_name(&l->names, id, buf));
	frame.file = seam_strings_put(strings, f && f->file ?
				      seam_strings_get(&l->names.strings,
						       f->file) : "");
	frame.addr = f ? f->file_offset : 0;
	frame.function = seam_profile_function(l->profile, &function);
	if (function.name == SEAM_NONE || frame.file == SEAM_NONE ||
	    frame.function == SEAM_NONE)
		return SEAM_NONE;
	added = seam_profile_frame(l->profile, &frame);
	return added == SEAM_NONE ||
	       seam_pair_map_put(&l->tracks->frames, id, 0, added) ? SEAM_NONE :
	       added;
}

/* -- samples ------------------------------------------------------------ */

static int add_sample(struct xray_loader *l, const struct seam_call_path *path,
		      uint32_t thread, uint32_t stack)
{
	struct seam_samples *s = &l->profile->samples;

	if (!seam_samples_reserve(s, 1))
		return -ENOMEM;
	/* in the range, so that a selection of the same time has it */
	s->time_ns[s->n] = path->first_ns > l->trace->range.from_ns ?
			   path->first_ns : l->trace->range.from_ns;
	s->thread[s->n] = thread;
	s->stack[s->n] = stack;
	s->cpu[s->n] = UINT16_MAX;
	s->event[s->n] = (uint16_t)l->event;
	if (!seam_samples_set_weight(s, s->n, path->self_ns) ||
	    !seam_samples_set_count(s, s->n, path->count) ||
	    !seam_samples_set_comm(l->profile, s->n, 0))
		return -ENOMEM;
	s->n++;
	l->profile->events.items[l->event].n_samples += path->count;
	return 0;
}

/* A stream's paths become stacks; parents come first in both. */
static int add_paths(struct xray_loader *l, const struct seam_call_paths *paths,
		     uint32_t thread)
{
	uint32_t *stacks = malloc(paths->nodes.n * sizeof(*stacks));
	int r = stacks ? 0 : -ENOMEM;

	if (!r)
		stacks[0] = 0;
	for (size_t i = 1; !r && i < paths->nodes.n; i++) {
		const struct seam_call_path *path = &paths->nodes.items[i];
		uint32_t frame = add_frame(l, path->function);

		stacks[i] = frame == SEAM_NONE ? SEAM_NONE :
			seam_profile_stack(l->profile, stacks[path->parent],
					   frame);
		if (stacks[i] == SEAM_NONE)
			r = -ENOMEM;
		else if (path->self_ns || path->count)
			r = add_sample(l, path, thread, stacks[i]);
	}
	free(stacks);
	return r;
}

static int load_stream(struct xray_loader *l, size_t stream)
{
	size_t n = l->profile->stacks.n;
	struct seam_call_paths paths = {
		.max = n < SEAM_CALL_PATHS_MAX ? SEAM_CALL_PATHS_MAX - n : 1,
	};
	const struct seam_trace_stream *s = &l->trace->streams.items[stream];
	uint64_t start_ns = seam_trace_start_ns(l->trace, stream);
	uint32_t thread = s->is_fork ? SEAM_NONE :
			  find_known(l, s->pid, s->tid, start_ns);
	int r;

	if (thread == SEAM_NONE)
		thread = add_thread(l, s);
	r = thread == SEAM_NONE || !SEAM_ARRAY_ADD(&l->profile->tracks,
		(struct seam_track) {
			.thread = thread, .event = l->event,
			.start_ns = start_ns, .reader = &track_reader,
			.source = l->tracks, .stream = stream,
		}) ? -ENOMEM : 0;
	if (!r)
		r = seam_call_paths_add(&paths, l->trace, stream, &l->calls,
					&l->problems);
	l->n_left_out += paths.n_left_out;
	if (!r)
		r = add_paths(l, &paths, thread);
	seam_call_paths_fini(&paths);
	return r;
}

/* Notes and losses: repairs, problems, limits. */
static void add_notes(struct xray_loader *l)
{
	uint32_t source = seam_strings_put(&l->profile->strings, "xray");

	l->calls.repairs[SEAM_REPAIR_EXTENTS] = l->trace->n_extents;
	for (enum seam_repair i = 0; i < SEAM_N_REPAIRS; i++)
		if (l->calls.repairs[i])
			seam_profile_note(l->profile, "%s: %" PRIu64 " %s",
					  seam_repairs[i].what,
					  l->calls.repairs[i],
					  seam_repair_text(i,
							l->calls.repairs[i]));
	for (size_t i = 0; i < l->problems.n_kept; i++)
		seam_profile_note(l->profile, "at %#" PRIx64 ": %s",
				  l->problems.items[i].offset,
				  l->problems.items[i].text);
	if (l->problems.n)
		seam_profile_lost(l->profile, "block damaged", source, 0,
				  l->problems.lost_bytes);
	if (l->n_left_out)
		seam_profile_lost(l->profile, "calls of more than 2,097,152 "
				  "different stacks, counted to their callers",
				  source, l->n_left_out, 0);
	if (l->trace->blocks.n == 0 && l->problems.n == 0)
		seam_profile_note(l->profile, "the log is empty: nothing was "
				  "recorded");
	if (l->trace->in_ticks)
		seam_profile_lost(l->profile, "no frequency: times are ticks",
				  source, 0, 0);
}

bool seam_load_xray_is(struct seam_bytes bytes)
{
	struct seam_xray_header header;
	enum seam_endian endian;

	return seam_xray_header_read(bytes, 0, &header, &endian, NULL) == 0;
}

bool seam_load_xray_refuses(struct seam_bytes bytes, struct seam_err *err)
{
	struct seam_xray_header header;
	enum seam_endian endian;
	struct seam_err why = { 0 };

	if (seam_xray_header_read(bytes, 0, &header, &endian, &why) !=
	    -ENOTSUP || header.flags > 3)
		return false;
	if (err)
		*err = why;
	return true;
}

/* The event, the tracks' source and the time of the profile. */
static int prepare(struct xray_loader *l)
{
	struct seam_profile *profile = l->profile;
	uint32_t name = seam_strings_put(&profile->strings, "xray");
	uint64_t start_ns, end_ns;

	l->event = (uint32_t)profile->events.n;
	l->tracks = name == SEAM_NONE ? NULL : calloc(1, sizeof(*l->tracks));
	if (!l->tracks)
		return -ENOMEM;
	l->tracks->profile = profile;
	l->tracks->trace = l->trace;
	if (seam_profile_own(profile, l->tracks, free_source) ||
	    !SEAM_ARRAY_ADD(&profile->events, (struct seam_profile_event) {
			.name = name, .is_measured = true,
			.unit = l->trace->in_ticks ? SEAM_UNIT_COUNT :
				SEAM_UNIT_NS }) ||
	    seam_trace_span(l->trace, &start_ns, &end_ns))
		return -ENOMEM;
	if (profile->samples.n == 0 || start_ns < profile->start_ns)
		profile->start_ns = start_ns;
	if (end_ns > profile->end_ns)
		profile->end_ns = end_ns;
	return note_threads(l);
}

int seam_load_xray(struct seam_profile *profile, struct seam_trace *trace,
		   const char *map, struct seam_symbols *symbols,
		   struct seam_err *err)
{
	struct xray_loader l = {
		.profile = profile, .trace = trace, .symbols = symbols,
	};
	int r;

	/* a sample has 16 bits for its event */
	if (profile->events.n > UINT16_MAX)
		return seam_err_set(err, -EOVERFLOW, "too many events to add "
				    "the calls of an XRay log to");
	r = load_names(&l, map, err);
	if (!r) {
		l.module = map ? add_module(&l, map) : 0;
		r = l.module == SEAM_NONE ? -ENOMEM : prepare(&l);
		for (size_t i = 0; !r && i < trace->streams.n; i++)
			r = load_stream(&l, i);
		if (r)
			seam_err_no_memory(err);
	}
	if (!r) {
		seam_xray_problems_merge(&l.problems, &trace->problems);
		add_notes(&l);
	}
	seam_calls_fini(&l.calls);
	seam_xray_map_fini(&l.names);
	seam_pair_map_fini(&l.images);
	free(l.known);
	seam_pair_map_fini(&l.processes);
	seam_pair_map_fini(&l.threads);
	return r;
}
