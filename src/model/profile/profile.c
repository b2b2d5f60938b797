/* SPDX-License-Identifier: MIT */
/* profile.c - tables with one entry for equal elements; see profile.h */
#include "model/profile/profile.h"

#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>

#include "base/hash.h"

const char *seam_layer_name(enum seam_layer layer)
{
	static const char *const names[SEAM_N_LAYERS] = {
		[SEAM_LAYER_KERNEL] = "kernel",
		[SEAM_LAYER_NATIVE] = "native",
		[SEAM_LAYER_JIT] = "jit",
		[SEAM_LAYER_GUEST] = "guest",
	};

	return layer < SEAM_N_LAYERS ? names[layer] : "unknown";
}

int seam_profile_init(struct seam_profile *profile)
{
	const struct seam_profile_module unknown = { .pid = -1 };
	struct seam_stack *root;

	*profile = (struct seam_profile) { 0 };
	root = SEAM_ARRAY_PUSH(&profile->stacks);
	if (!root || seam_strings_put(&profile->strings, "") == SEAM_NONE ||
	    seam_profile_module(profile, &unknown) == SEAM_NONE) {
		seam_profile_fini(profile);
		return -ENOMEM;
	}
	*root = (struct seam_stack) { .parent = SEAM_NONE, .frame = SEAM_NONE };
	return 0;
}

static bool grow(void *column, size_t *cap, size_t need, size_t size)
{
	void *moved = seam_array_reserve(*(void **)column, cap, need, size);

	if (moved)
		*(void **)column = moved;
	return moved != NULL;
}

bool seam_samples_reserve(struct seam_samples *s, size_t extra)
{
	size_t need = s->n + extra;
	size_t caps[9];

	if (need <= s->cap)
		return true;
	for (size_t i = 0; i < SEAM_ARRAY_SIZE(caps); i++)
		caps[i] = s->cap;
	if (!grow(&s->time_ns, &caps[0], need, sizeof(*s->time_ns)) ||
	    !grow(&s->thread, &caps[1], need, sizeof(*s->thread)) ||
	    !grow(&s->stack, &caps[2], need, sizeof(*s->stack)) ||
	    !grow(&s->cpu, &caps[3], need, sizeof(*s->cpu)) ||
	    !grow(&s->event, &caps[4], need, sizeof(*s->event)) ||
	    (s->weight && !grow(&s->weight, &caps[5], need,
				sizeof(*s->weight))) ||
	    (s->comm && !grow(&s->comm, &caps[6], need, sizeof(*s->comm))) ||
	    (s->count && !grow(&s->count, &caps[7], need, sizeof(*s->count))) ||
	    (s->record && !grow(&s->record, &caps[8], need,
				sizeof(*s->record))))
		return false;
	s->cap = caps[0];
	return true;
}

bool seam_samples_split_weight(struct seam_samples *s, size_t i,
			       uint64_t weight)
{
	s->weight = malloc(s->cap * sizeof(*s->weight));
	if (!s->weight)
		return false;
	for (size_t k = 0; k < i; k++)
		s->weight[k] = s->same_weight;
	s->weight[i] = weight;
	return true;
}

bool seam_samples_set_count(struct seam_samples *s, size_t i, uint64_t count)
{
	if (!s->count && count != 1) {
		s->count = malloc(s->cap * sizeof(*s->count));
		if (!s->count)
			return false;
		for (size_t k = 0; k < i; k++)
			s->count[k] = 1;
	}
	if (s->count)
		s->count[i] = count;
	return true;
}

bool seam_samples_set_record(struct seam_samples *s, size_t i, uint32_t record)
{
	if (!s->record)
		s->record = malloc(s->cap * sizeof(*s->record));
	if (s->record)
		s->record[i] = record;
	return s->record != NULL;
}

bool seam_samples_split_comm(struct seam_profile *profile, size_t i,
			     uint32_t comm)
{
	struct seam_samples *s = &profile->samples;
	uint32_t *comms = malloc(s->cap * sizeof(*comms));

	if (!comms)
		return false;
	for (size_t k = 0; k < i; k++)
		comms[k] = seam_samples_comm(profile, k);
	comms[i] = comm;
	s->comm = comms;
	return true;
}

void seam_samples_fini(struct seam_samples *samples)
{
	free(samples->time_ns);
	free(samples->weight);
	free(samples->count);
	free(samples->thread);
	free(samples->comm);
	free(samples->stack);
	free(samples->cpu);
	free(samples->event);
	free(samples->record);
	*samples = (struct seam_samples) { 0 };
}

int seam_profile_own(struct seam_profile *profile, void *object,
		     void (*free_object)(void *object))
{
	struct seam_owned *slot = SEAM_ARRAY_PUSH(&profile->owned);

	if (!slot) {
		free_object(object);
		return -ENOMEM;
	}
	*slot = (struct seam_owned) { object, free_object };
	return 0;
}

void seam_profile_fini(struct seam_profile *profile)
{
	seam_strings_fini(&profile->strings);
	free(profile->processes.items);
	free(profile->threads.items);
	free(profile->events.items);
	free(profile->modules.items);
	free(profile->mappings.items);
	free(profile->code_objects.items);
	free(profile->functions.items);
	free(profile->frames.items);
	free(profile->stacks.items);
	free(profile->losses.items);
	free(profile->notes.items);
	free(profile->details.items);
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
	uint32_t module = profile->modules.items[function->module].first;
	uint64_t hash = seam_hash_add(function->name,
				      (uint64_t)module << 8 | function->layer);
	struct seam_index *index = &profile->function_index;
	struct seam_index_probe probe = seam_index_probe(index, hash);
	struct seam_function *slot;
	uint32_t id;

	while ((id = seam_index_next(index, &probe)) != SEAM_NONE) {
		slot = &profile->functions.items[id];
		if (slot->name == function->name && slot->module == module &&
		    slot->layer == function->layer)
			return id;
	}
	id = (uint32_t)profile->functions.n;
	slot = id < SEAM_NONE ? SEAM_ARRAY_PUSH(&profile->functions) : NULL;
	if (!slot)
		return SEAM_NONE;
	*slot = *function;
	slot->module = module;
	if (seam_index_add(index, hash, id)) {
		profile->functions.n--;
		return SEAM_NONE;
	}
	return id;
}

static bool same_frame(const struct seam_frame *a, const struct seam_frame *b)
{
	return a->function == b->function && a->addr == b->addr &&
	       a->line == b->line && a->file == b->file &&
	       a->module == b->module && a->code == b->code &&
	       a->is_inlined == b->is_inlined;
}

uint32_t seam_profile_frame(struct seam_profile *profile,
			    const struct seam_frame *frame)
{
	uint64_t hash = seam_hash_add(seam_hash_add(frame->addr,
			(uint64_t)frame->function << 32 | frame->line),
			(uint64_t)frame->file << 1 | frame->is_inlined);
	struct seam_index *index = &profile->frame_index;
	struct seam_index_probe probe = seam_index_probe(index, hash);
	struct seam_frame *slot;
	uint32_t id;

	while ((id = seam_index_next(index, &probe)) != SEAM_NONE)
		if (same_frame(&profile->frames.items[id], frame))
			return id;
	id = (uint32_t)profile->frames.n;
	slot = id < SEAM_NONE ? SEAM_ARRAY_PUSH(&profile->frames) : NULL;
	if (!slot)
		return SEAM_NONE;
	*slot = *frame;
	if (seam_index_add(index, hash, id)) {
		profile->frames.n--;
		return SEAM_NONE;
	}
	return id;
}

uint32_t seam_profile_stack(struct seam_profile *profile, uint32_t parent,
			    uint32_t frame)
{
	uint64_t hash = seam_hash_u64((uint64_t)parent << 32 | frame);
	struct seam_index *index = &profile->stack_index;
	struct seam_index_probe probe = seam_index_probe(index, hash);
	struct seam_stack *slot;
	uint32_t id;

	while ((id = seam_index_next(index, &probe)) != SEAM_NONE)
		if (profile->stacks.items[id].parent == parent &&
		    profile->stacks.items[id].frame == frame)
			return id;
	id = (uint32_t)profile->stacks.n;
	slot = id < SEAM_NONE ? SEAM_ARRAY_PUSH(&profile->stacks) : NULL;
	if (!slot)
		return SEAM_NONE;
	*slot = (struct seam_stack) { .parent = parent, .frame = frame };
	if (seam_index_add(index, hash, id)) {
		profile->stacks.n--;
		return SEAM_NONE;
	}
	return id;
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
	loss = SEAM_ARRAY_PUSH(&profile->losses);
	if (loss)
		*loss = (struct seam_loss) {
			.cause = cause, .source = source,
			.records = records, .bytes = bytes,
		};
}

static uint32_t put_text(struct seam_profile *profile, const char *fmt,
			 va_list args)
{
	char text[SEAM_ERR_TEXT];

	vsnprintf(text, sizeof(text), fmt, args);
	return seam_strings_put(&profile->strings, text);
}

static void add_once(struct seam_lines *lines, uint32_t id)
{
	uint32_t *slot;

	for (size_t i = 0; i < lines->n; i++)
		if (lines->items[i] == id)
			return;
	slot = id == SEAM_NONE ? NULL : SEAM_ARRAY_PUSH(lines);
	if (slot)
		*slot = id;
}

void seam_profile_note(struct seam_profile *profile, const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	add_once(&profile->notes, put_text(profile, fmt, args));
	va_end(args);
}

void seam_profile_detail(struct seam_profile *profile, const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	add_once(&profile->details, put_text(profile, fmt, args));
	va_end(args);
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
