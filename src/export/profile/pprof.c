/* SPDX-License-Identifier: MIT */
/*
 * pprof.c - google/pprof's profile.proto; see exporter.h
 *
 * A Sample for each stack and thread, with a value for each event.  A Location
 * is a place of code with all calls that are inlined there; equal ones of all
 * processes are one, so it has an address in one mapping of its module.
 *
 * Fields of a message may come in any order: locations and functions are
 * written when a sample first has them, the strings at the end.
 *
 * Source: github.com/google/pprof, proto/profile.proto and profile/profile.go
 * (CheckValid), 2026-07.
 */
#include "export/exporter.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include "base/pair_map.h"
#include "base/text.h"
#include "export/profile/parts.h"
#include "export/profile/proto_file.h"

enum {
	LEVEL = 6,			/* of compression */
	NAME = 300,			/* room for a name that is made up */
};

/* Over this go's reader would need gigabytes. */
#define MAX_BYTES (UINT64_C(1) << 30)

/* Field numbers. */
enum {
	PROFILE_SAMPLE_TYPE = 1, PROFILE_SAMPLE, PROFILE_MAPPING,
	PROFILE_LOCATION, PROFILE_FUNCTION, PROFILE_STRING_TABLE,
	PROFILE_TIME_NANOS = 9, PROFILE_DURATION_NANOS, PROFILE_PERIOD_TYPE,
	PROFILE_PERIOD, PROFILE_COMMENT, PROFILE_DEFAULT_SAMPLE_TYPE,
	VALUE_TYPE = 1, VALUE_UNIT,
	SAMPLE_LOCATION_ID = 1, SAMPLE_VALUE, SAMPLE_LABEL,
	LABEL_KEY = 1, LABEL_STR, LABEL_NUM,
	MAPPING_ID = 1, MAPPING_START, MAPPING_LIMIT, MAPPING_OFFSET,
	MAPPING_FILENAME, MAPPING_BUILD_ID, MAPPING_HAS_FUNCTIONS,
	MAPPING_HAS_FILENAMES, MAPPING_HAS_LINES, MAPPING_HAS_INLINES,
	LOCATION_ID = 1, LOCATION_MAPPING_ID, LOCATION_ADDRESS, LOCATION_LINE,
	LINE_FUNCTION_ID = 1, LINE_LINE,
	FUNCTION_ID = 1, FUNCTION_NAME, FUNCTION_FILENAME = 4,
};

struct pprof_writer {
	struct seam_parts parts;
	const struct seam_profile *profile;
	const struct seam_stack *stacks;
	struct seam_proto_file file;
	struct seam_strings strings;	/* their ids are the file's */
	uint32_t *module_mapping;	/* by module: of the profile */
	struct seam_pair_map mappings;	/* (layer, module): id */
	struct seam_pair_map functions;	/* (function, file): id */
	struct seam_pair_map places;	/* (place around, frame): id */
	uint32_t *location;		/* by stack: id, 0: not known */
	SEAM_ARRAY(uint8_t) written;	/* by place: bool */
	SEAM_ARRAY(uint32_t) frames;	/* of a place, innermost first */
	struct seam_tallies tallies[SEAM_PARTS_EVENTS];
	size_t next[SEAM_PARTS_EVENTS];
};

static uint64_t string(struct pprof_writer *w, const char *text)
{
	uint32_t id = seam_strings_put(&w->strings, text);

	if (id == SEAM_NONE)
		w->file.proto.is_failed = true;
	return id;
}

static void put_string(struct pprof_writer *w, unsigned int field,
		       const char *text)
{
	seam_proto_u64(&w->file.proto, field, string(w, text));
}

/* The next id in @map, from 1 on, or the one that is there: *@is_new. */
static uint32_t intern(struct pprof_writer *w, struct seam_pair_map *map,
		       uint64_t a, uint64_t b, bool *is_new)
{
	const uint32_t *known = seam_pair_map_find(map, a, b);
	uint32_t id = known ? *known : (uint32_t)map->slots.n + 1;

	*is_new = !known;
	if (!known && seam_pair_map_put(map, a, b, id))
		w->file.proto.is_failed = true;
	return id;
}

/* -- modules -------------------------------------------------------------- */

/* Which mapping stands for each module: the first with samples, or any. */
static int find_mappings(struct pprof_writer *w)
{
	const struct seam_profile *p = w->profile;

	w->module_mapping = malloc((p->modules.n + 1) * sizeof(uint32_t));
	if (!w->module_mapping)
		return -ENOMEM;
	memset(w->module_mapping, 0xff, p->modules.n * sizeof(uint32_t));
	for (uint32_t i = 0; i < p->mappings.n; i++) {
		const struct seam_mapping *m = &p->mappings.items[i];
		uint32_t *of_module = &w->module_mapping[m->module];

		if (*of_module == SEAM_NONE ||
		    (m->is_used && !p->mappings.items[*of_module].is_used))
			*of_module = i;
	}
	return 0;
}

/* The place of a module in memory; NULL: its frames have addresses already. */
static const struct seam_mapping *mapping_of(const struct pprof_writer *w,
					     uint32_t module)
{
	uint32_t id = w->module_mapping[module];
	uint8_t kind = w->profile->modules.items[module].kind;

	return id != SEAM_NONE && (kind == SEAM_MODULE_FILE ||
				   kind == SEAM_MODULE_VDSO) ?
	       &w->profile->mappings.items[id] : NULL;
}

/* The name has the layer, for which there is no field. */
static void put_mapping_name(struct pprof_writer *w, enum seam_layer layer,
			     uint32_t module)
{
	const char *path = seam_profile_path(w->profile, module);
	char name[NAME];

	if (layer == SEAM_LAYER_JIT) {
		path = "[jit]";
	} else if (layer == SEAM_LAYER_GUEST) {
		path = "[guest]";
	} else if (layer == SEAM_LAYER_KERNEL &&
		   strncmp(path, "[kernel", 7) != 0) {
		snprintf(name, sizeof(name), "[kernel] %.280s", path);
		path = name;
	}
	put_string(w, MAPPING_FILENAME, *path ? path : "[unknown]");
}

static void put_mapping(struct pprof_writer *w, uint64_t id,
			enum seam_layer layer, uint32_t module)
{
	const struct seam_profile_module *m =
		&w->profile->modules.items[module];
	const struct seam_mapping *at = mapping_of(w, module);
	struct seam_proto *p = &w->file.proto;
	size_t opened = seam_proto_open(p, PROFILE_MAPPING);
	char hex[2 * sizeof(m->build_id) + 1];

	seam_proto_u64(p, MAPPING_ID, id);
	if (at) {
		seam_proto_u64(p, MAPPING_START, at->start_addr);
		seam_proto_u64(p, MAPPING_LIMIT, at->start_addr + at->size);
		seam_proto_u64(p, MAPPING_OFFSET, at->pgoff);
	}
	put_mapping_name(w, layer, module);
	if (m->build_id_size)
		put_string(w, MAPPING_BUILD_ID,
			   seam_text_hex(hex, m->build_id, m->build_id_size));
	/* without these, pprof looks for the files and resolves again */
	for (unsigned int has = MAPPING_HAS_FUNCTIONS;
	     has <= MAPPING_HAS_INLINES; has++)
		seam_proto_u64(p, has, true);
	seam_proto_close(p, opened);
}

static uint32_t mapping_id(struct pprof_writer *w, enum seam_layer layer,
			   uint32_t module)
{
	bool is_new;
	uint32_t id;

	/* all of these are one mapping */
	if (layer == SEAM_LAYER_JIT || layer == SEAM_LAYER_GUEST)
		module = 0;
	id = intern(w, &w->mappings, layer, module, &is_new);
	if (is_new)
		put_mapping(w, id, layer, module);
	return id;
}

/*
 * The program that was recorded: in the process of the first selected thread,
 * the file that has its name, else the one mapped first.  SEAM_NONE: none.
 */
static uint32_t main_module(const struct pprof_writer *w)
{
	const struct seam_profile *p = w->profile;
	uint32_t thread = 0, first = SEAM_NONE;
	const struct seam_process *process;
	const char *comm;

	while (thread < p->threads.n && !w->parts.threads[thread])
		thread++;
	if (thread == p->threads.n)
		return SEAM_NONE;
	process = &p->processes.items[p->threads.items[thread].process];
	comm = seam_profile_text(p, process->name);
	for (size_t i = 0; i < p->mappings.n; i++) {
		const struct seam_mapping *m = &p->mappings.items[i];
		size_t size;
		const char *name = seam_module_name(
			seam_profile_path(p, m->module), &size);

		if (m->pid != process->pid || !m->is_executable ||
		    p->modules.items[m->module].kind != SEAM_MODULE_FILE)
			continue;
		if (*comm && strncmp(name, comm, strlen(comm)) == 0)
			return m->module;
		if (first == SEAM_NONE)
			first = m->module;
	}
	return first;
}

/* -- locations ------------------------------------------------------------ */

static uint64_t function_id(struct pprof_writer *w,
			    const struct seam_frame *frame)
{
	const struct seam_function *f =
		&w->profile->functions.items[frame->function];
	struct seam_proto *p = &w->file.proto;
	bool is_new;
	uint32_t id = intern(w, &w->functions, frame->function, frame->file,
			     &is_new);
	size_t opened;

	if (!is_new)
		return id;
	opened = seam_proto_open(p, PROFILE_FUNCTION);
	seam_proto_u64(p, FUNCTION_ID, id);
	/* no system_name: pprof would shorten a name that is equal to it */
	put_string(w, FUNCTION_NAME, seam_profile_text(w->profile, f->name));
	put_string(w, FUNCTION_FILENAME,
		   !frame->file && f->layer == SEAM_LAYER_GUEST ?
		   seam_profile_path(w->profile, f->module) :
		   seam_profile_text(w->profile, frame->file));
	seam_proto_close(p, opened);
	return id;
}

/* Where @frame is in the mapping that its location has. */
static uint64_t address_of(const struct pprof_writer *w,
			   const struct seam_frame *frame)
{
	const struct seam_mapping *at = mapping_of(w, frame->module);

	return at ? at->start_addr - at->pgoff + frame->addr : frame->addr;
}

/* The location of w->frames. */
static void put_location(struct pprof_writer *w, uint32_t id)
{
	const struct seam_frame *frames = w->profile->frames.items;
	const struct seam_frame *outer =
		&frames[w->frames.items[w->frames.n - 1]];
	enum seam_layer layer = (enum seam_layer)
		w->profile->functions.items[outer->function].layer;
	uint32_t mapping = mapping_id(w, layer, outer->module);
	struct seam_proto *p = &w->file.proto;
	size_t opened, line;

	for (size_t i = 0; i < w->frames.n; i++)
		function_id(w, &frames[w->frames.items[i]]);
	opened = seam_proto_open(p, PROFILE_LOCATION);
	seam_proto_u64(p, LOCATION_ID, id);
	seam_proto_u64(p, LOCATION_MAPPING_ID, mapping);
	seam_proto_u64(p, LOCATION_ADDRESS, address_of(w, outer));
	for (size_t i = 0; i < w->frames.n; i++) {
		const struct seam_frame *frame = &frames[w->frames.items[i]];

		line = seam_proto_open(p, LOCATION_LINE);
		seam_proto_u64(p, LINE_FUNCTION_ID, function_id(w, frame));
		if (frame->line)
			seam_proto_u64(p, LINE_LINE, frame->line);
		seam_proto_close(p, line);
	}
	seam_proto_close(p, opened);
}

/* Whether @inner is inlined in the code of @outer. */
static bool is_inlined_in(const struct pprof_writer *w, uint32_t inner,
			  uint32_t outer)
{
	const struct seam_frame *a = &w->profile->frames.items[inner];
	const struct seam_frame *b = &w->profile->frames.items[outer];
	const struct seam_function *functions = w->profile->functions.items;

	return a->is_inlined && a->module == b->module && a->addr == b->addr &&
	       functions[a->function].layer == functions[b->function].layer;
}

/* The outermost stack of the frames at one place with @stack. */
static uint32_t place_begin(const struct pprof_writer *w, uint32_t stack)
{
	for (;;) {
		uint32_t parent = w->stacks[stack].parent;

		if (!parent || !is_inlined_in(w, w->stacks[stack].frame,
					      w->stacks[parent].frame))
			return stack;
		stack = parent;
	}
}

/* The location that ends with @stack, written if it is new. */
static uint32_t location_id(struct pprof_writer *w, uint32_t stack)
{
	uint32_t begin = place_begin(w, stack), place = 0;
	bool is_new;

	if (w->location[stack])
		return w->location[stack];
	w->frames.n = 0;
	for (uint32_t s = stack;; s = w->stacks[s].parent) {
		if (!SEAM_ARRAY_ADD(&w->frames, w->stacks[s].frame))
			w->file.proto.is_failed = true;
		if (s == begin || w->file.proto.is_failed)
			break;
	}
	for (size_t i = w->frames.n; i-- > 0;)
		place = intern(w, &w->places, place, w->frames.items[i],
			       &is_new);
	if (!SEAM_ARRAY_GROW(&w->written, (size_t)place + 1))
		w->file.proto.is_failed = true;
	if (w->file.proto.is_failed)
		return 0;
	if (!w->written.items[place])
		put_location(w, place);
	w->written.items[place] = true;
	w->location[stack] = place;
	return place;
}

/* pprof leaves samples without a location out, and out of their sum. */
static uint32_t no_stack_id(struct pprof_writer *w)
{
	struct seam_proto *p = &w->file.proto;
	bool is_new;
	uint32_t id = intern(w, &w->places, UINT64_MAX, 0, &is_new);
	uint32_t function = intern(w, &w->functions, UINT64_MAX, 0, &is_new);
	size_t opened, line;

	if (!is_new)
		return id;
	opened = seam_proto_open(p, PROFILE_FUNCTION);
	seam_proto_u64(p, FUNCTION_ID, function);
	put_string(w, FUNCTION_NAME, "[no stack]");
	seam_proto_close(p, opened);
	opened = seam_proto_open(p, PROFILE_LOCATION);
	seam_proto_u64(p, LOCATION_ID, id);
	line = seam_proto_open(p, LOCATION_LINE);
	seam_proto_u64(p, LINE_FUNCTION_ID, function);
	seam_proto_close(p, line);
	seam_proto_close(p, opened);
	return id;
}

/* -- samples -------------------------------------------------------------- */

static void put_label(struct pprof_writer *w, const char *key,
		      const char *text, int64_t number)
{
	struct seam_proto *p = &w->file.proto;
	size_t opened = seam_proto_open(p, SAMPLE_LABEL);

	put_string(w, LABEL_KEY, key);
	if (text)
		put_string(w, LABEL_STR, text);
	else
		seam_proto_u64(p, LABEL_NUM, (uint64_t)number);
	seam_proto_close(p, opened);
}

static void put_labels(struct pprof_writer *w, uint32_t id)
{
	const struct seam_thread *thread = &w->profile->threads.items[id];
	const struct seam_process *process =
		&w->profile->processes.items[thread->process];

	put_label(w, "thread", seam_profile_text(w->profile, thread->name), 0);
	put_label(w, "process", seam_profile_text(w->profile, process->name),
		  0);
	put_label(w, "tid", NULL, thread->tid);
	put_label(w, "pid", NULL, process->pid);
}

/* The events in the order of their values: that shown first comes last. */
static size_t event_at(const struct pprof_writer *w, size_t column)
{
	return w->parts.n_events - 1 - column;
}

static const struct seam_tally *next_tally(const struct pprof_writer *w,
					   size_t event)
{
	return w->next[event] < w->tallies[event].n ?
	       &w->tallies[event].items[w->next[event]] : NULL;
}

static bool is_same(const struct seam_tally *a, const struct seam_tally *b)
{
	return a && b && a->group == b->group && a->stack == b->stack;
}

static int put_sample(struct pprof_writer *w, const struct seam_tally *tally)
{
	const struct seam_tally of = *tally;
	uint32_t no_stack = of.stack ? 0 : no_stack_id(w);
	struct seam_proto *p = &w->file.proto;
	size_t opened, packed;

	for (uint32_t s = of.stack; s; s = w->stacks[place_begin(w, s)].parent)
		location_id(w, s);
	opened = seam_proto_open(p, PROFILE_SAMPLE);
	packed = seam_proto_open(p, SAMPLE_LOCATION_ID);
	for (uint32_t s = of.stack; s; s = w->stacks[place_begin(w, s)].parent)
		seam_proto_packed(p, w->location[s]);
	if (no_stack)
		seam_proto_packed(p, no_stack);
	seam_proto_close(p, packed);
	packed = seam_proto_open(p, SAMPLE_VALUE);
	for (size_t i = 0; i < w->parts.n_events; i++) {
		const struct seam_tally *t = next_tally(w, event_at(w, i));
		bool has = is_same(t, &of);

		seam_proto_packed(p, has ? t->samples : 0);
		seam_proto_packed(p, has ? t->weight : 0);
		w->next[event_at(w, i)] += has;
	}
	seam_proto_close(p, packed);
	put_labels(w, of.group);
	seam_proto_close(p, opened);
	return seam_proto_file_next(&w->file);
}

/* The tallies of all events are in one order: merge them. */
static int put_samples(struct pprof_writer *w)
{
	int r = 0;

	for (size_t i = 0; i < w->parts.n_events && !r; i++)
		r = seam_tallies_make(&w->tallies[i], w->parts.selected,
				      w->parts.events[i], SEAM_GROUP_THREAD);
	while (!r && !ferror(w->file.out)) {
		const struct seam_tally *first = NULL;

		for (size_t i = 0; i < w->parts.n_events; i++) {
			const struct seam_tally *t = next_tally(w, i);

			if (t && (!first || t->group < first->group ||
				  (t->group == first->group &&
				   t->stack < first->stack)))
				first = t;
		}
		if (!first)
			break;
		r = put_sample(w, first);
	}
	return r;
}

/* -- the file ------------------------------------------------------------- */

static void put_type(struct pprof_writer *w, unsigned int field,
		     const char *type, const char *unit)
{
	size_t opened = seam_proto_open(&w->file.proto, field);

	put_string(w, VALUE_TYPE, type);
	put_string(w, VALUE_UNIT, unit);
	seam_proto_close(&w->file.proto, opened);
}

static const char *unit_of(const struct seam_profile_event *event)
{
	return event->unit == SEAM_UNIT_NS ? "nanoseconds" : "count";
}

/* Each event has two values: how many samples, and what they weigh. */
static void put_types(struct pprof_writer *w)
{
	char count[NAME];

	for (size_t i = 0; i < w->parts.n_events; i++) {
		const struct seam_profile_event *event =
			seam_parts_event(&w->parts, event_at(w, i));
		const char *name = seam_profile_text(w->profile, event->name);
		const char *noun = event->is_measured ? "calls" : "samples";

		if (w->parts.n_events == 1)
			snprintf(count, sizeof(count), "%s", noun);
		else
			snprintf(count, sizeof(count), "%.250s:%s", name, noun);
		put_type(w, PROFILE_SAMPLE_TYPE, count, "count");
		put_type(w, PROFILE_SAMPLE_TYPE, name, unit_of(event));
		if (i + 1 == w->parts.n_events)
			put_string(w, PROFILE_DEFAULT_SAMPLE_TYPE, name);
	}
	if (w->parts.n_events == 0)
		put_type(w, PROFILE_SAMPLE_TYPE, "samples", "count");
}

static void put_times(struct pprof_writer *w)
{
	const struct seam_profile *p = w->profile;
	const struct seam_profile_event *event = w->parts.n_events ?
		seam_parts_event(&w->parts, 0) : NULL;
	uint64_t from = w->parts.selected->from_ns;

	if (from < p->start_ns)
		from = p->start_ns;
	if (p->utc_ns)
		seam_proto_u64(&w->file.proto, PROFILE_TIME_NANOS,
			       from + (uint64_t)p->utc_ns);
	seam_proto_u64(&w->file.proto, PROFILE_DURATION_NANOS,
		       seam_selected_duration_ns(w->parts.selected));
	if (!event || event->is_measured || event->is_wait ||
	    p->samples.weight)
		return;
	put_type(w, PROFILE_PERIOD_TYPE, seam_profile_text(p, event->name),
		 unit_of(event));
	seam_proto_u64(&w->file.proto, PROFILE_PERIOD,
		       p->samples.same_weight);
}

static void put_comments(struct pprof_writer *w)
{
	char line[SEAM_LOSS_TEXT + sizeof("lost: ")], text[SEAM_LOSS_TEXT];
	const struct seam_profile *p = w->profile;

	if (p->command)
		put_string(w, PROFILE_COMMENT, seam_profile_text(p,
								 p->command));
	for (size_t i = 0; i < p->losses.n; i++) {
		snprintf(line, sizeof(line), "lost: %s",
			 seam_profile_loss_text(p, &p->losses.items[i], text));
		put_string(w, PROFILE_COMMENT, line);
	}
}

static int put_strings(struct pprof_writer *w)
{
	int r = 0;

	for (uint32_t i = 0; i < w->strings.texts.n && !r; i++) {
		seam_proto_text(&w->file.proto, PROFILE_STRING_TABLE,
				seam_strings_get(&w->strings, i));
		r = seam_proto_file_next(&w->file);
	}
	return r;
}

static int write_all(struct pprof_writer *w)
{
	uint32_t module;
	int r = find_mappings(w);

	if (r)
		return r;
	string(w, "");			/* 0 */
	put_types(w);
	put_times(w);
	put_comments(w);
	/* pprof shows the first one as the file of the profile */
	module = main_module(w);
	if (module != SEAM_NONE)
		mapping_id(w, SEAM_LAYER_NATIVE, module);
	r = put_samples(w);
	return r ? r : put_strings(w);
}

static void say_left_out(const struct pprof_writer *w,
			 const struct seam_export *export)
{
	size_t n_threads = seam_parts_n_threads(&w->parts);
	const char *calls = w->profile->tracks.n ? "all calls" : "";
	char samples[48] = "";

	if (!export->say || !n_threads)
		return;
	if (w->parts.n_samples)
		snprintf(samples, sizeof(samples), "%" PRIu64 " sample%s%s",
			 w->parts.n_samples, w->parts.n_samples == 1 ? "" :
			 "s", *calls ? " and " : "");
	export->say("left out: times of %s%s, life times of %zu thread%s; "
		    "equal stacks of a thread are added up", samples, calls,
		    n_threads, n_threads == 1 ? "" : "s");
}

int seam_write_pprof(const struct seam_export *export, struct seam_err *err)
{
	const struct seam_selected *selected = export->selected;
	struct pprof_writer w = {
		.profile = selected->profile, .stacks = selected->stacks,
		.location = calloc(selected->n_stacks + 1, sizeof(uint32_t)),
	};
	int r = seam_parts_init(&w.parts, selected, err);
	int opened = seam_proto_file_open(&w.file, export->out, LEVEL,
					  MAX_BYTES);

	if (!r) {
		r = opened || !w.location ? -ENOMEM : write_all(&w);
		r = seam_proto_file_close(&w.file, r, err);
	} else {
		seam_proto_file_close(&w.file, r, NULL);
	}
	if (!r)
		say_left_out(&w, export);
	for (size_t i = 0; i < SEAM_PARTS_EVENTS; i++)
		free(w.tallies[i].items);
	seam_parts_fini(&w.parts);
	seam_strings_fini(&w.strings);
	seam_pair_map_fini(&w.mappings);
	seam_pair_map_fini(&w.functions);
	seam_pair_map_fini(&w.places);
	free(w.module_mapping);
	free(w.location);
	free(w.written.items);
	free(w.frames.items);
	return r;
}
