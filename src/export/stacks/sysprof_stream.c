/* SPDX-License-Identifier: MIT */
/*
 * sysprof_stream.c - a stream of LuaJIT's sysprof
 *
 * A profile that was read from a stream gives the same stream again, in the
 * newest versions.  Another one has no addresses that would be unique in a
 * process: each function gets one of its own, so that names survive and places
 * inside of functions do not.  What else a stream cannot hold is counted.
 */
#include "export/exporter.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include "base/pair_map.h"
#include "model/sysprof/load_sysprof.h"
#include "wire/sysprof/sysprof.h"

enum { FLUSH_BYTES = 1 << 20 };

struct stream_writer {
	const struct seam_export *export;
	const struct seam_profile *profile;
	struct seam_sysprof_buffer out;
	bool *is_used;			/* by function: it is in a sample */
	SEAM_ARRAY(struct seam_sysprof_frame) lua;
	SEAM_ARRAY(uint64_t) host;
	struct seam_sysprof_trace trace; /* of the sample; its own line */
	struct seam_pair_map traces;	/* (traceno, prototype): announced */
	uint64_t n_samples;
	uint64_t n_without_vm;		/* samples */
	uint64_t n_guest_left_out;	/* frames in states without a stack */
	uint64_t n_host_left_out;	/* frames of samples in traces */
	uint64_t n_own_names;		/* functions that have one */
};

/* An error of the stream is the caller's to check. */
static void flush(struct stream_writer *w)
{
	if (w->out.n)
		fwrite(w->out.items, 1, w->out.n, w->export->out);
	w->out.n = 0;
}

static int put(struct stream_writer *w, const struct seam_sysprof_item *item)
{
	if (seam_sysprof_write(&w->out, item))
		return -ENOMEM;
	if (w->out.n >= FLUSH_BYTES)
		flush(w);
	return 0;
}

static int put_kind(struct stream_writer *w, enum seam_sysprof_kind kind)
{
	return put(w, &(struct seam_sysprof_item) { .kind = kind });
}

/* -- from a stream ------------------------------------------------------- */

/*
 * Sample i of the profile is that of the stream.  The reader's errors were
 * counted when the profile was loaded; here they only end the stream.  The file
 * is mapped: if it was written to since then, it may have more samples.
 */
static int copy_stream(struct stream_writer *w, struct seam_bytes bytes)
{
	struct seam_sysprof_reader reader;
	struct seam_sysprof_item item;
	size_t sample = 0;
	int r = 0, next = 0;

	seam_sysprof_begin(&reader, bytes);
	while (!r && !ferror(w->export->out) &&
	       (next = seam_sysprof_next(&reader, &item, NULL)) > 0) {
		bool is_sample = item.kind == SEAM_SYSPROF_SAMPLE;

		if (is_sample && sample == w->profile->samples.n)
			break;
		if (item.kind == SEAM_SYSPROF_END ||
		    (is_sample &&
		     !seam_selected_has(w->export->selected, sample++)))
			continue;
		r = put(w, &item);
	}
	seam_sysprof_fini(&reader);
	if (next == -ENOMEM)
		return -ENOMEM;
	return r ? r : put_kind(w, SEAM_SYSPROF_END);
}

/* -- from another profile: addresses of functions ------------------------- */

/* Not 0, and so far apart that a place after it is in no other function. */
static uint64_t addr_of(uint32_t function)
{
	return ((uint64_t)function + 1) << 17;
}

static bool is_lua(const struct seam_function *f)
{
	return f->layer == SEAM_LAYER_GUEST;
}

static bool is_trace(const struct stream_writer *w,
		     const struct seam_function *f)
{
	return f->layer == SEAM_LAYER_JIT &&
	       strncmp(seam_profile_text(w->profile, f->name), "TRACE [", 7)
	       == 0;
}

static struct seam_bytes text_of(const char *text, size_t size)
{
	return (struct seam_bytes) { (const uint8_t *)text, size };
}

/* The line of "name chunk.lua:12"; 0 where there is none. */
static uint64_t line_of(const char *name)
{
	const char *colon = strrchr(name, ':');
	char *end;
	uint64_t line = colon ? strtoull(colon + 1, &end, 10) : 0;

	return colon && end > colon + 1 && !*end ? line : 0;
}

/* A Lua function's chunk is its module; of one built in, its name. */
static int put_lua_symbol(struct stream_writer *w, uint32_t id,
			  const struct seam_function *f)
{
	const char *name = seam_profile_text(w->profile, f->name);
	const char *chunk = seam_profile_path(w->profile, f->module);
	bool is_builtin = strcmp(chunk, "[vm]") == 0;
	const char *shown = is_builtin ? name : chunk;
	size_t size = strlen(shown);
	struct seam_sysprof_item item = {
		.kind = SEAM_SYSPROF_SYMBOL_LFUNC,
		.lfunc = {
			.addr = addr_of(id),
			.line = is_builtin ? 0 : line_of(name),
		},
	};
	char *text = malloc(size + 1);
	int r;

	if (!text)
		return -ENOMEM;
	text[0] = is_builtin || shown[0] == '[' ? '=' : '@';
	memcpy(text + 1, shown, size);
	item.lfunc.chunk = text_of(text, size + 1);
	w->n_own_names += !is_builtin && strncmp(name, chunk, size) != 0;
	r = put(w, &item);
	free(text);
	return r;
}

static int put_symbol(struct stream_writer *w, uint32_t id)
{
	const struct seam_function *f = &w->profile->functions.items[id];
	const char *name = seam_profile_text(w->profile, f->name);

	if (is_trace(w, f))
		return 0;
	if (is_lua(f))
		return put_lua_symbol(w, id, f);
	return put(w, &(struct seam_sysprof_item) {
		.kind = SEAM_SYSPROF_SYMBOL_CFUNC,
		.cfunc = { addr_of(id), text_of(name, strlen(name)) },
	});
}

static int put_symbols(struct stream_writer *w)
{
	int r = put_kind(w, SEAM_SYSPROF_SYMTAB);

	for (uint32_t i = 0; i < w->profile->functions.n && !r; i++)
		if (w->is_used[i])
			r = put_symbol(w, i);
	if (!r)
		r = put_kind(w, SEAM_SYSPROF_SYMTAB_END);
	return r ? r : put_kind(w, SEAM_SYSPROF_PROFILE);
}

/* -- samples ------------------------------------------------------------- */

/* Whether sample @i is written: it is selected, and of a VM. */
static bool has_sample(const struct stream_writer *w, size_t i)
{
	return seam_selected_has(w->export->selected, i) &&
	       seam_samples_vmstate(&w->profile->samples, i) !=
	       SEAM_VMSTATE_NONE;
}

/* The trace that a stream names: that of the innermost trace's frame. */
static void take_trace(struct stream_writer *w, const struct seam_function *f)
{
	const char *name = seam_profile_text(w->profile, f->name);

	if (w->trace.traceno)
		return;
	w->trace.traceno = strtoull(name + strlen("TRACE ["), NULL, 10);
	w->trace.line = line_of(name);
}

/* Where a trace starts is a symbol, which comes before its first sample. */
static int announce_trace(struct stream_writer *w)
{
	const struct seam_sysprof_trace *trace = &w->trace;

	if (seam_pair_map_find(&w->traces, trace->traceno, trace->addr))
		return 0;
	if (seam_pair_map_put(&w->traces, trace->traceno, trace->addr, 0))
		return -ENOMEM;
	return put(w, &(struct seam_sysprof_item) {
		.kind = SEAM_SYSPROF_SYMBOL_TRACE, .is_event = true,
		.trace = *trace,
	});
}

static int take_frame(struct stream_writer *w, uint32_t frame, bool is_leaf)
{
	uint32_t id = w->profile->frames.items[frame].function;
	const struct seam_function *f = &w->profile->functions.items[id];

	if (is_trace(w, f)) {
		take_trace(w, f);
		return 0;
	}
	if (is_lua(f))
		return SEAM_ARRAY_ADD(&w->lua, (struct seam_sysprof_frame) {
			.kind = SEAM_SYSPROF_LFUNC, .value = addr_of(id),
			.line = line_of(seam_profile_text(w->profile, f->name)),
		}) ? 0 : -ENOMEM;
	/* a return address is after its call */
	return SEAM_ARRAY_ADD(&w->host, addr_of(id) + !is_leaf) ? 0 : -ENOMEM;
}

static int take_stack(struct stream_writer *w, size_t i)
{
	const struct seam_stack *stacks = w->export->selected->stacks;
	uint32_t leaf = seam_selected_stack(w->export->selected, i);
	int r = 0;

	w->lua.n = w->host.n = 0;
	w->trace = (struct seam_sysprof_trace) { 0 };
	for (uint32_t s = leaf; s && !r; s = stacks[s].parent)
		r = take_frame(w, stacks[s].frame, s == leaf);
	return r;
}

static int put_sample(struct stream_writer *w, size_t i)
{
	enum seam_vmstate state = (enum seam_vmstate)
		seam_samples_vmstate(&w->profile->samples, i);
	struct seam_sysprof_item item = {
		.kind = SEAM_SYSPROF_SAMPLE, .vmstate = state,
	};
	int r = take_stack(w, i);

	if (r)
		return r;
	if (state == SEAM_VMSTATE_TRACE) {
		w->n_host_left_out += w->host.n;
		w->n_guest_left_out += w->lua.n > 1 ? w->lua.n - 1 : 0;
		w->trace.addr = w->lua.n ? w->lua.items[0].value : 0;
		r = announce_trace(w);
		item.trace = w->trace;
		item.trace.line = w->lua.n ? w->lua.items[0].line : 0;
	} else if (!seam_vmstate_has_stack(state)) {
		w->n_guest_left_out += w->lua.n;
	}
	item.lua = w->lua.items;
	item.n_lua = w->lua.n;
	item.host = w->host.items;
	item.n_host = w->host.n;
	w->n_samples++;
	return r ? r : put(w, &item);
}

static void find_used(struct stream_writer *w)
{
	const struct seam_selected *selected = w->export->selected;

	for (size_t i = 0; i < w->profile->samples.n; i++) {
		uint32_t s = has_sample(w, i) ?
			     seam_selected_stack(selected, i) : 0;

		for (; s; s = selected->stacks[s].parent)
			w->is_used[w->profile->frames.items[
				selected->stacks[s].frame].function] = true;
	}
}

static void say_count(const struct stream_writer *w, uint64_t n,
		      const char *what)
{
	if (n && w->export->say)
		w->export->say("left out: %s (%" PRIu64 ")", what, n);
}

static void say_left_out(const struct stream_writer *w)
{
	if (w->export->n_skipped)
		*w->export->n_skipped = w->n_without_vm;
	say_count(w, w->n_without_vm, "samples without a VM state");
	say_count(w, w->n_guest_left_out, "guest frames of samples in states "
		  "for which a stream has no Lua stack");
	say_count(w, w->n_host_left_out, "host frames of samples in traces, "
		  "for which a stream has no stack");
	say_count(w, w->n_own_names, "names of Lua functions, which are "
		  "chunk and line in a stream");
	if (w->export->say)
		w->export->say("left out: times, threads, weights, current "
			"lines, addresses, and where host and Lua frames join");
}

static int write_profile(struct stream_writer *w, struct seam_err *err)
{
	size_t n = w->profile->samples.n;
	int r;

	w->is_used = calloc(w->profile->functions.n + 1, sizeof(*w->is_used));
	if (!w->is_used)
		return -ENOMEM;
	find_used(w);
	r = put_symbols(w);
	for (size_t i = 0; i < n && !r && !ferror(w->export->out); i++) {
		if (has_sample(w, i))
			r = put_sample(w, i);
		else
			w->n_without_vm += seam_selected_has(
						w->export->selected, i);
	}
	if (!r && !w->n_samples && w->n_without_vm)
		return seam_err_set(err, -ENOTSUP, "cannot convert: no sample "
				    "has a VM state, and a sysprof stream "
				    "holds nothing but samples of LuaJIT");
	if (!r)
		r = put_kind(w, SEAM_SYSPROF_END);
	if (!r)
		say_left_out(w);
	return r;
}

int seam_write_sysprof(const struct seam_export *export, struct seam_err *err)
{
	struct stream_writer w = {
		.export = export, .profile = export->selected->profile,
	};
	int r;

	if (!w.profile->sysprof)
		r = write_profile(&w, err);
	else if (export->selected->layers != SEAM_ALL_LAYERS)
		return seam_err_set(err, -EINVAL, "cannot convert: --layer "
				    "does not apply to a copy of a stream");
	else
		r = copy_stream(&w, w.profile->sysprof->file.bytes);
	if (!r)
		flush(&w);
	free(w.out.items);
	free(w.is_used);
	seam_pair_map_fini(&w.traces);
	free(w.lua.items);
	free(w.host.items);
	return r == -ENOMEM ? seam_err_no_memory(err) : r;
}
