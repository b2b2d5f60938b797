/* SPDX-License-Identifier: MIT */
/* load_xray.c - call paths to stacks and samples; see load_xray.h */
#include "model/xray/load_xray.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include "model/xray/call_names.h"
#include "model/xray/call_paths.h"
#include "symbol/elf/latest.h"

struct xray_loader {
	struct seam_profile *profile;
	const struct seam_trace *trace;
	struct seam_call_names names;
	struct seam_calls calls;	/* scratch, and the repairs */
	uint64_t n_left_out;		/* calls of stacks over the limit */
	struct seam_xray_problems problems;
	struct seam_latest processes;	/* by pid and whether it is a fork */
	struct seam_latest threads;	/* by process and tid */
	uint32_t module;		/* the map's file; 0: none */
};

struct resolving {
	struct seam_symbols *symbols;
	uint32_t module;
};

static size_t resolve(void *context, uint64_t offset,
		      struct seam_location *out, size_t cap)
{
	struct resolving *r = context;

	return seam_symbols_resolve(r->symbols, r->module, offset, out, cap);
}

static int load_names(struct xray_loader *l, const char *map,
		      struct seam_symbols *symbols, struct seam_err *err)
{
	struct seam_module module = { .path = map };
	struct resolving r = { .symbols = symbols };
	char doubt[256];
	int rc = seam_call_names_open(&l->names, map, err);

	if (rc || !map)
		return rc;
	if (symbols && l->names.map.from_elf) {
		r.module = seam_symbols_module(symbols, &module);
		for (size_t i = 0; r.module != SEAM_NONE &&
		     i < l->names.map.functions.n; i++)
			seam_symbols_expect(symbols, r.module,
				l->names.map.functions.items[i].file_offset);
		if (r.module == SEAM_NONE ||
		    seam_xray_map_resolve(&l->names.map, resolve, &r))
			return seam_err_set(err, -ENOMEM, "out of memory");
	}
	if (seam_call_names_doubt(&l->names, l->trace, doubt, sizeof(doubt)))
		seam_profile_note(l->profile, "'%s' does not fit this log: %s",
				  map, doubt);
	return 0;
}

static uint32_t find_process(struct xray_loader *l, int32_t pid, bool is_fork)
{
	struct seam_profile *profile = l->profile;
	uint32_t *known = seam_latest_find(&l->processes, (uint32_t)pid,
					   is_fork);
	uint32_t name, id = (uint32_t)profile->processes.n;
	struct seam_process *process;

	if (known)
		return *known;
	name = seam_strings_put(&profile->strings, is_fork ? "forked" : "");
	process = SEAM_ARRAY_PUSH(&profile->processes);
	if (name == SEAM_NONE || !process)
		return SEAM_NONE;
	*process = (struct seam_process) {
		.pid = pid, .name = name, .end_ns = UINT64_MAX,
		.parent = SEAM_NONE,
	};
	return seam_latest_put(&l->processes, (uint32_t)pid, is_fork, id) ?
	       SEAM_NONE : id;
}

/* Sessions of one thread are one thread; a forked child's is another. */
static uint32_t find_thread(struct xray_loader *l,
			    const struct seam_trace_stream *stream)
{
	struct seam_profile *profile = l->profile;
	uint32_t process = find_process(l, stream->pid, stream->is_fork);
	uint32_t *known = seam_latest_find(&l->threads, process,
					   (uint32_t)stream->tid);
	uint32_t name, id = (uint32_t)profile->threads.n;
	struct seam_thread *thread;
	char text[32];

	if (process == SEAM_NONE || known)
		return known ? *known : SEAM_NONE;
	snprintf(text, sizeof(text), "%s %" PRId32, stream->is_fork ?
		 "forked from" : "thread", stream->tid);
	name = seam_strings_put(&profile->strings, text);
	thread = SEAM_ARRAY_PUSH(&profile->threads);
	if (name == SEAM_NONE || !thread)
		return SEAM_NONE;
	*thread = (struct seam_thread) {
		.process = process, .tid = stream->tid, .name = name,
		.end_ns = UINT64_MAX,
	};
	return seam_latest_put(&l->threads, process, (uint32_t)stream->tid,
			       id) ? SEAM_NONE : id;
}

static uint32_t add_frame(struct xray_loader *l, uint32_t id)
{
	const struct seam_xray_mapped *f = seam_xray_map_find(&l->names.map,
							      id);
	struct seam_strings *strings = &l->profile->strings;
	struct seam_function function = {
		.module = l->module, .layer = SEAM_LAYER_NATIVE,
		.is_named = f && f->name,
	};
	struct seam_frame frame = {
		.line = f ? f->line : 0, .module = l->module,
		.code = SEAM_NONE,
	};
	char buf[SEAM_CALL_NAME];

	function.name = seam_strings_put(strings,
					 seam_call_name(&l->names, id, buf));
	frame.file = seam_strings_put(strings, f && f->file ?
				      seam_strings_get(&l->names.map.strings,
						       f->file) : "");
	frame.addr = f ? f->file_offset : 0;
	frame.function = seam_profile_function(l->profile, &function);
	if (function.name == SEAM_NONE || frame.file == SEAM_NONE ||
	    frame.function == SEAM_NONE)
		return SEAM_NONE;
	return seam_profile_frame(l->profile, &frame);
}

static int add_sample(struct xray_loader *l, const struct seam_call_path *path,
		      uint64_t time_ns, uint32_t thread, uint32_t stack)
{
	struct seam_samples *s = &l->profile->samples;

	if (!seam_samples_reserve(s, 1) ||
	    !seam_samples_set_weight(s, s->n, path->self_ns) ||
	    !seam_samples_set_count(s, s->n, path->count))
		return -ENOMEM;
	s->time_ns[s->n] = time_ns;
	s->thread[s->n] = thread;
	s->stack[s->n] = stack;
	s->cpu[s->n] = UINT16_MAX;
	s->event[s->n++] = 0;
	l->profile->events.items[0].n_samples += path->count;
	return 0;
}

/* A stream's paths become stacks; parents come first in both. */
static int add_paths(struct xray_loader *l, const struct seam_call_paths *paths,
		     size_t stream)
{
	uint32_t thread = find_thread(l, &l->trace->streams.items[stream]);
	uint32_t *stacks = malloc(paths->nodes.n * sizeof(*stacks));
	uint64_t time_ns = seam_trace_start_ns(l->trace, stream);
	int r = stacks && thread != SEAM_NONE ? 0 : -ENOMEM;

	/* a selection of the same time takes all that was cut to it */
	if (time_ns < l->trace->range.from_ns)
		time_ns = l->trace->range.from_ns;
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
			r = add_sample(l, path, time_ns, thread, stacks[i]);
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
	int r = seam_call_paths_add(&paths, l->trace, stream, &l->calls,
				    &l->problems);

	l->n_left_out += paths.n_left_out;

	if (!r)
		r = add_paths(l, &paths, stream);
	seam_call_paths_fini(&paths);
	return r;
}

static int add_event(struct xray_loader *l)
{
	struct seam_profile_event *event = SEAM_ARRAY_PUSH(&l->profile->events);

	if (!event)
		return -ENOMEM;
	*event = (struct seam_profile_event) {
		.name = seam_strings_put(&l->profile->strings, "xray"),
		.unit = l->trace->in_ticks ? SEAM_UNIT_COUNT : SEAM_UNIT_NS,
		.is_measured = true,
	};
	return event->name == SEAM_NONE ? -ENOMEM : 0;
}

/* What the log lacked, where a person will read it. */
static void tell(struct xray_loader *l)
{
	uint32_t source = seam_strings_put(&l->profile->strings, "xray");

	l->calls.repairs[SEAM_REPAIR_EXTENTS] = seam_trace_n_extents(l->trace);
	for (int i = 0; i < SEAM_N_REPAIRS; i++)
		if (l->calls.repairs[i])
			seam_profile_note(l->profile, "repaired: %" PRIu64
					  " %s", l->calls.repairs[i],
					  seam_repair_text((enum seam_repair)i));
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

int seam_load_xray(struct seam_profile *profile,
		   const struct seam_trace *trace, const char *map,
		   struct seam_symbols *symbols, struct seam_err *err)
{
	struct xray_loader l = { .profile = profile, .trace = trace };
	int r = load_names(&l, map, symbols, err);

	if (!r) {
		l.module = !map ? 0 : seam_profile_module(profile,
			&(struct seam_profile_module) {
				.kind = SEAM_MODULE_FILE, .pid = -1,
				.path = seam_strings_put(&profile->strings,
							 map),
			});
		r = l.module == SEAM_NONE || add_event(&l) ||
		    seam_trace_span(trace, &profile->start_ns,
				    &profile->end_ns) ? -ENOMEM : 0;
		for (size_t i = 0; !r && i < trace->streams.n; i++)
			r = load_stream(&l, i);
		if (r)
			seam_calls_failed(r, err);
	}
	if (!r) {
		seam_trace_problems(trace, &l.problems);
		tell(&l);
	}
	seam_calls_fini(&l.calls);
	seam_call_names_fini(&l.names);
	seam_latest_fini(&l.processes);
	seam_latest_fini(&l.threads);
	return r;
}
