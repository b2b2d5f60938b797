/* SPDX-License-Identifier: MIT */
/* profile.c - tables with one entry for equal elements; see profile.h */
#include "model/profile/profile.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>

#include "base/hash.h"
#include "wire/perf/perf_record.h"

const char *const seam_layer_names[SEAM_N_LAYERS + 1] = {
	[SEAM_LAYER_KERNEL] = "kernel",
	[SEAM_LAYER_NATIVE] = "native",
	[SEAM_LAYER_JIT] = "jit",
	[SEAM_LAYER_GUEST] = "guest",
	[SEAM_N_LAYERS] = "unknown",	/* of no function */
};

int seam_profile_init(struct seam_profile *profile)
{
	const struct seam_profile_module unknown = { .pid = -1 };

	*profile = (struct seam_profile) { 0 };
	if (SEAM_ARRAY_ADD(&profile->stacks,
			   (struct seam_stack) { SEAM_NONE, SEAM_NONE }) &&
	    seam_strings_put(&profile->strings, "") != SEAM_NONE &&
	    seam_profile_module(profile, &unknown) != SEAM_NONE)
		return 0;
	seam_profile_fini(profile);
	return -ENOMEM;
}

#define FILLED(name, byte) { offsetof(struct seam_samples, name), \
			     sizeof(*((struct seam_samples *)0)->name), byte }
#define COLUMN(name) FILLED(name, -1)

static const struct {
	size_t offset, size;
	int fill;	/* each byte of a sample without a value; -1: all have */
} columns[] = {
	COLUMN(time_ns), COLUMN(thread), COLUMN(stack), COLUMN(cpu),
	COLUMN(event),
	/* these exist only where needed */
	COLUMN(weight), COLUMN(count), COLUMN(comm), COLUMN(record),
	FILLED(vmstate, SEAM_VMSTATE_NONE), FILLED(end, SEAM_STACK_UNREPORTED),
	FILLED(wait, 0), FILLED(waker, 0), FILLED(cgroup, 0),
	FILLED(running, 0),
};

enum { N_CONSTANT_COLUMNS = 5 };

static void **column_of(struct seam_samples *samples, size_t i)
{
	return (void **)((char *)samples + columns[i].offset);
}

bool seam_samples_reserve(struct seam_samples *s, size_t extra)
{
	size_t need = s->n + extra, cap = s->cap;

	for (size_t i = 0; need > s->cap && i < SEAM_ARRAY_SIZE(columns);
	     i++) {
		void **column = column_of(s, i), *moved;

		if (i >= N_CONSTANT_COLUMNS && !*column)
			continue;
		cap = s->cap;
		moved = seam_array_reserve(*column, &cap, need,
					   columns[i].size);
		if (!moved)
			return false;
		*column = moved;
		if (columns[i].fill >= 0)
			memset((char *)*column + s->cap * columns[i].size,
			       columns[i].fill,
			       (cap - s->cap) * columns[i].size);
	}
	s->cap = cap;
	return true;
}

/*
 * Make *@column, of @size bytes a sample, if there is none: each byte @fill.
 * False when memory ran out.
 */
static bool has_column(struct seam_samples *s, void *column, size_t size,
		       int fill)
{
	void **items = column;

	if (!*items) {
		*items = malloc(s->cap * size);
		if (*items)
			memset(*items, fill, s->cap * size);
	}
	return *items;
}

bool seam_samples_split_weight(struct seam_samples *s, size_t i,
			       uint64_t weight)
{
	if (!has_column(s, &s->weight, sizeof(*s->weight), 0))
		return false;
	for (size_t k = 0; k < i; k++)
		s->weight[k] = s->same_weight;
	s->weight[i] = weight;
	return true;
}

bool seam_samples_set_count(struct seam_samples *s, size_t i, uint64_t count)
{
	if (!s->count && count == 1)
		return true;
	if (!s->count && has_column(s, &s->count, sizeof(*s->count), 0))
		for (size_t k = 0; k < i; k++)
			s->count[k] = 1;
	if (s->count)
		s->count[i] = count;
	return s->count;
}

bool seam_samples_set_vmstate(struct seam_samples *s, size_t i,
			      enum seam_vmstate state)
{
	if (!has_column(s, &s->vmstate, 1, SEAM_VMSTATE_NONE))
		return false;
	s->vmstate[i] = (uint8_t)state;
	return true;
}

bool seam_samples_set_end(struct seam_samples *s, size_t i,
			  enum seam_stack_end end)
{
	if (!has_column(s, &s->end, 1, SEAM_STACK_UNREPORTED))
		return false;
	s->end[i] = (uint8_t)end;
	return true;
}

/* Of the column *@at, made when the first sample has a string. */
static bool set_string(struct seam_samples *s, uint32_t **at, size_t i,
		       uint32_t string)
{
	if (!*at && !string)
		return true;
	if (!has_column(s, at, sizeof(**at), 0))
		return false;
	(*at)[i] = string;
	return true;
}

bool seam_samples_set_wait(struct seam_samples *s, size_t i, uint32_t reason)
{
	return set_string(s, &s->wait, i, reason);
}

bool seam_samples_set_waker(struct seam_samples *s, size_t i, uint32_t waker)
{
	return set_string(s, &s->waker, i, waker);
}

bool seam_samples_set_cgroup(struct seam_samples *s, size_t i, uint32_t cgroup)
{
	return set_string(s, &s->cgroup, i, cgroup);
}

bool seam_samples_set_running(struct seam_samples *s, size_t i,
			      uint16_t n_running)
{
	if (!has_column(s, &s->running, sizeof(*s->running), 0))
		return false;
	s->running[i] = n_running;
	return true;
}

void seam_samples_move(struct seam_samples *s, size_t to, size_t from)
{
	for (size_t i = 0; i < SEAM_ARRAY_SIZE(columns); i++) {
		char *column = *column_of(s, i);
		size_t size = columns[i].size;

		if (column)
			memcpy(column + to * size, column + from * size, size);
	}
}

bool seam_samples_set_record(struct seam_samples *s, size_t i, uint32_t record)
{
	if (!has_column(s, &s->record, sizeof(*s->record), 0))
		return false;
	s->record[i] = record;
	return true;
}

bool seam_samples_split_comm(struct seam_profile *profile, size_t i,
			     uint32_t comm)
{
	struct seam_samples *s = &profile->samples;
	uint32_t *comms = malloc(s->cap * sizeof(*comms));

	for (size_t k = 0; comms && k < i; k++)
		comms[k] = seam_samples_comm(profile, k);
	if (comms)
		comms[i] = comm;
	s->comm = comms;
	return comms;
}

void seam_samples_fini(struct seam_samples *samples)
{
	for (size_t i = 0; i < SEAM_ARRAY_SIZE(columns); i++)
		free(*column_of(samples, i));
	*samples = (struct seam_samples) { 0 };
}

int seam_profile_own(struct seam_profile *profile, void *object,
		     void (*free_object)(void *object))
{
	if (SEAM_ARRAY_ADD(&profile->owned,
			   (struct seam_owned) { object, free_object }))
		return 0;
	free_object(object);
	return -ENOMEM;
}

void seam_profile_fini(struct seam_profile *profile)
{
	seam_strings_fini(&profile->strings);
	free(profile->processes.items);
	free(profile->threads.items);
	free(profile->thread_times.items);
	free(profile->events.items);
	free(profile->modules.items);
	free(profile->mappings.items);
	free(profile->code_objects.items);
	free(profile->functions.items);
	free(profile->frames.items);
	free(profile->stacks.items);
	free(profile->losses.items);
	free(profile->notes.items);
	seam_index_fini(&profile->notes.index);
	free(profile->details.items);
	seam_index_fini(&profile->details.index);
	seam_samples_fini(&profile->samples);
	for (size_t i = 0; i < profile->owned.n; i++)
		profile->owned.items[i].free(profile->owned.items[i].object);
	free(profile->owned.items);
	free(profile->tracks.items);
	free(profile->marks.items);
	seam_index_fini(&profile->module_index);
	seam_index_fini(&profile->function_index);
	seam_index_fini(&profile->frame_index);
	seam_index_fini(&profile->stack_index);
	*profile = (struct seam_profile) { 0 };
}

uint32_t seam_profile_function(struct seam_profile *profile,
			       const struct seam_function *function)
{
	const struct seam_function *functions = profile->functions.items;
	struct seam_function new = *function;

	new.module = profile->modules.items[function->module].first;
	return SEAM_INDEX_INTERN(&profile->function_index,
		seam_hash_add(new.name, (uint64_t)new.module << 8 | new.layer),
		&profile->functions, i, functions[i].name == new.name &&
		functions[i].module == new.module &&
		functions[i].layer == new.layer, new);
}

uint32_t seam_profile_frame(struct seam_profile *profile,
			    const struct seam_frame *frame)
{
	uint64_t hash = seam_hash_add(seam_hash_add(frame->addr,
			(uint64_t)frame->function << 32 | frame->line),
			(uint64_t)frame->file << 1 | frame->is_inlined);
	const struct seam_frame *f = profile->frames.items;

	return SEAM_INDEX_INTERN(&profile->frame_index, hash, &profile->frames,
		i, f[i].function == frame->function && f[i].addr == frame->addr &&
		f[i].line == frame->line && f[i].file == frame->file &&
		f[i].module == frame->module && f[i].code == frame->code &&
		f[i].is_inlined == frame->is_inlined, *frame);
}

uint32_t seam_profile_stack(struct seam_profile *profile, uint32_t parent,
			    uint32_t frame)
{
	const struct seam_stack *stacks = profile->stacks.items;

	return SEAM_INDEX_INTERN(&profile->stack_index,
		seam_hash_u64((uint64_t)parent << 32 | frame),
		&profile->stacks, i, stacks[i].parent == parent &&
		stacks[i].frame == frame,
		(struct seam_stack) { parent, frame });
}

uint32_t seam_profile_marker(struct seam_profile *profile, const char *text)
{
	uint32_t id = seam_profile_function(profile, &(struct seam_function) {
		.name = seam_strings_put(&profile->strings, text),
		.layer = SEAM_LAYER_NATIVE, .is_named = true,
	});

	return id == SEAM_NONE ? id : seam_profile_frame(profile,
		&(struct seam_frame) { .function = id, .code = SEAM_NONE });
}

void seam_profile_lost(struct seam_profile *profile, const char *cause,
		       uint32_t source, uint64_t records, uint64_t bytes)
{
	struct seam_loss *loss;

	for (size_t i = 0; i < profile->losses.n; i++) {
		loss = &profile->losses.items[i];
		if (loss->source == source && strcmp(loss->cause, cause) == 0) {
			loss->records += records;
			loss->bytes += bytes;
			return;
		}
	}
	SEAM_ARRAY_ADD(&profile->losses,
		       (struct seam_loss) { cause, source, records, bytes });
}

const char *seam_profile_loss_text(const struct seam_profile *profile,
				   const struct seam_loss *loss,
				   char text[SEAM_LOSS_TEXT])
{
	const char *source = seam_profile_text(profile, loss->source);
	char records[40] = "", bytes[40] = "";

	if (loss->records)
		snprintf(records, sizeof(records), "%" PRIu64 " record%s, ",
			 loss->records, loss->records == 1 ? "" : "s");
	if (loss->bytes)
		snprintf(bytes, sizeof(bytes), "%" PRIu64 " byte%s, ",
			 loss->bytes, loss->bytes == 1 ? "" : "s");
	snprintf(text, SEAM_LOSS_TEXT, "%s%s%s%s%s%s", records, bytes,
		 loss->cause, *source ? " (" : "", source, *source ? ")" : "");
	return text;
}

__attribute__((format(printf, 3, 0)))
static void add_line(struct seam_profile *profile, struct seam_lines *lines,
		     const char *fmt, va_list args)
{
	char text[SEAM_ERR_TEXT];
	uint64_t hash;
	uint32_t id;

	vsnprintf(text, sizeof(text), fmt, args);
	id = seam_strings_put(&profile->strings, text);
	hash = seam_hash_u64(id);
	if (id != SEAM_NONE && SEAM_INDEX_FIND(&lines->index, hash, i,
			lines->items[i] == id) == SEAM_NONE)
		SEAM_INDEX_APPEND(&lines->index, hash, lines, id);
}

void seam_profile_note(struct seam_profile *profile, const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	add_line(profile, &profile->notes, fmt, args);
	va_end(args);
}

void seam_profile_detail(struct seam_profile *profile, const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	add_line(profile, &profile->details, fmt, args);
	va_end(args);
}

const char *seam_event_noun(const struct seam_profile_event *event)
{
	return event->is_measured ? "call" : event->is_wait ? "wait" : "sample";
}

uint64_t seam_profile_n_samples(const struct seam_profile *profile)
{
	const struct seam_samples *samples = &profile->samples;
	uint64_t n = 0;

	for (size_t i = 0; i < samples->n; i++)
		n += seam_samples_count(samples, i);
	return n;
}

const char *seam_profile_noun(const struct seam_profile *profile)
{
	for (size_t i = 0; i < profile->events.n; i++)
		if (!profile->events.items[i].is_measured)
			return "sample";
	return profile->events.n ? "call" : "sample";
}

uint64_t seam_profile_n_lost(const struct seam_profile *profile)
{
	uint64_t n = 0;

	for (size_t i = 0; i < profile->losses.n; i++)
		n += profile->losses.items[i].records;
	return n;
}

/* -- modules ------------------------------------------------------------ */

static bool is_same(const struct seam_profile_module *a,
		    const struct seam_profile_module *b)
{
	return a->path == b->path && a->kind == b->kind &&
	       a->build_id_size == b->build_id_size &&
	       memcmp(a->build_id, b->build_id, a->build_id_size) == 0 &&
	       (a->build_id_size > 0 ||
		(a->ino == b->ino && a->ino_generation == b->ino_generation));
}

/* One index holds all modules by their id and the first ones by path. */
uint32_t seam_profile_module(struct seam_profile *profile,
			     const struct seam_profile_module *module)
{
	uint64_t hash = module->build_id_size == 0 ?
			seam_hash_add(module->ino, module->path) :
			seam_hash_bytes(module->build_id, module->build_id_size,
					module->path);
	struct seam_index *index = &profile->module_index;
	struct seam_profile_module *modules = profile->modules.items;
	uint32_t id = SEAM_INDEX_FIND(index, hash, i,
				      is_same(&modules[i], module)), first;

	if (id != SEAM_NONE) {
		if (module->mapped_ns < modules[id].mapped_ns)
			modules[id].mapped_ns = module->mapped_ns;
		return id;
	}
	if (module->path == SEAM_NONE)
		return SEAM_NONE;
	first = SEAM_INDEX_FIND(index, seam_hash_u64(module->path), i,
				modules[i].path == module->path &&
				modules[i].first == i);
	id = SEAM_INDEX_APPEND(index, hash, &profile->modules, *module);
	if (id == SEAM_NONE)
		return SEAM_NONE;
	profile->modules.items[id].first = first == SEAM_NONE ? id : first;
	return first == SEAM_NONE &&
	       seam_index_add(index, seam_hash_u64(module->path), id) ?
	       SEAM_NONE : id;
}

enum seam_module_kind seam_module_kind_of(const char *filename)
{
	if (strncmp(filename, "[vdso]", strlen("[vdso]")) == 0)
		return SEAM_MODULE_VDSO;
	return filename[0] == '\0' || seam_perf_mapping_is_memory(filename) ?
	       SEAM_MODULE_ANON : SEAM_MODULE_FILE;
}

const char *seam_module_name(const char *path, size_t *size)
{
	const char *slash = strrchr(path, '/');

	if (path[0] == '[')
		path++;
	else if (slash && slash[1])
		path = slash + 1;
	*size = strlen(path);
	if (*size && path[*size - 1] == ']')
		--*size;
	if (*size > SEAM_MODULE_NAME_MAX)
		*size = SEAM_MODULE_NAME_MAX;
	return path;
}
