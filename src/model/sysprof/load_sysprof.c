/* SPDX-License-Identifier: MIT */
/*
 * load_sysprof.c - samples of a stream to those of a profile
 *
 * A program is sampled in the same place again and again, so the bytes of a
 * sample are looked for among those before; only new ones are joined and named.
 */
#include "model/sysprof/load_sysprof.h"

#include <errno.h>
#include <inttypes.h>

#include "base/hash.h"
#include "model/sysprof/joined_stack.h"

/* The bytes of a sample, and the stack that they are in this epoch. */
struct known_sample {
	size_t offset, size;
	uint32_t epoch;
	uint32_t stack;
};

struct sysprof_loader {
	struct seam_profile *profile;
	struct seam_bytes bytes;
	struct seam_sysprof_reader reader;
	struct seam_sysprof_names names;
	struct seam_joined_stack joined;
	SEAM_ARRAY(struct known_sample) known;
	struct seam_index index;
	uint32_t source;		/* string, of losses */
	uint32_t event, thread;
	uint64_t n_samples[SEAM_N_VMSTATES];
};

/* -- stacks -------------------------------------------------------------- */

static int make_stack(struct sysprof_loader *l,
		      const struct seam_sysprof_item *sample, uint32_t *stack)
{
	*stack = 0;
	if (seam_joined_stack_make(&l->joined, &l->names, sample,
				   l->reader.version))
		return -ENOMEM;
	for (size_t i = l->joined.frames.n; i-- > 0 && *stack != SEAM_NONE;)
		*stack = seam_profile_stack(l->profile, *stack,
					    l->joined.frames.items[i]);
	return *stack == SEAM_NONE ? -ENOMEM : 0;
}

static uint64_t hash_of(struct seam_bytes bytes)
{
	size_t n = bytes.size / 8;
	uint64_t rest = 0;

	memcpy(&rest, bytes.data + 8 * n, bytes.size - 8 * n);
	return seam_hash_u128(seam_hash_words(bytes.data, n, rest));
}

/* The entry of these bytes, added if they are new; NULL: no memory. */
static struct known_sample *find_known(struct sysprof_loader *l, size_t offset,
				       size_t size)
{
	const uint8_t *data = l->bytes.data;
	struct seam_bytes bytes = { data + offset, size };
	uint32_t i = SEAM_INDEX_INTERN(&l->index, hash_of(bytes), &l->known, k,
		l->known.items[k].size == size &&
		memcmp(data + l->known.items[k].offset, bytes.data, size) == 0,
		(struct known_sample) {
			.offset = offset, .size = size, .stack = SEAM_NONE,
		});

	return i == SEAM_NONE ? NULL : &l->known.items[i];
}

static int find_stack(struct sysprof_loader *l,
		      const struct seam_sysprof_item *sample, uint32_t *stack)
{
	struct known_sample *known = find_known(l, sample->offset,
			l->reader.cursor.pos - sample->offset);

	if (!known)
		return -ENOMEM;
	if ((known->stack == SEAM_NONE || known->epoch != l->names.epoch) &&
	    make_stack(l, sample, &known->stack)) {
		known->stack = SEAM_NONE;
		return -ENOMEM;
	}
	known->epoch = l->names.epoch;
	*stack = known->stack;
	return 0;
}

/* -- samples ------------------------------------------------------------- */

static int add_sample(struct sysprof_loader *l,
		      const struct seam_sysprof_item *sample)
{
	struct seam_samples *s = &l->profile->samples;
	uint32_t stack;

	if (find_stack(l, sample, &stack) || !seam_samples_reserve(s, 1))
		return -ENOMEM;
	s->time_ns[s->n] = 0;
	s->thread[s->n] = l->thread;
	s->stack[s->n] = stack;
	s->cpu[s->n] = UINT16_MAX;
	s->event[s->n] = (uint16_t)l->event;
	if (!seam_samples_set_weight(s, s->n, 1) ||
	    !seam_samples_set_vmstate(s, s->n, sample->vmstate))
		return -ENOMEM;
	s->n++;
	l->profile->events.items[l->event].n_samples++;
	return 0;
}

static int add_thread(struct sysprof_loader *l)
{
	uint32_t name = seam_strings_put(&l->profile->strings, "luajit");

	l->thread = (uint32_t)l->profile->threads.n;
	return name != SEAM_NONE && SEAM_ARRAY_ADD(&l->profile->processes,
			(struct seam_process) {
				.pid = -1, .name = name, .end_ns = UINT64_MAX,
				.parent = SEAM_NONE,
			}) && SEAM_ARRAY_ADD(&l->profile->threads,
			(struct seam_thread) {
				.process = (uint32_t)(l->profile->processes.n -
						      1),
				.tid = -1, .name = name, .end_ns = UINT64_MAX,
			}) ? 0 : -ENOMEM;
}

static int begin(struct sysprof_loader *l)
{
	uint32_t name = seam_strings_put(&l->profile->strings, "sysprof");

	l->source = name;
	l->event = (uint32_t)l->profile->events.n;
	l->profile->has_other_clock = true;
	return name != SEAM_NONE && SEAM_ARRAY_ADD(&l->profile->events,
			(struct seam_profile_event) {
				.name = name, .unit = SEAM_UNIT_COUNT,
			}) ? add_thread(l) : -ENOMEM;
}

/* -- the stream ---------------------------------------------------------- */

/* What is missing after an error of the stream is not known, but its bytes. */
static void note_damage(struct sysprof_loader *l, int r,
			const struct seam_err *why)
{
	size_t rest = l->bytes.size - l->reader.cursor.pos;

	seam_profile_note(l->profile, "%s", why->cause[0]);
	seam_profile_lost(l->profile, r == -ENODATA ? "stream cut off" :
			  "stream damaged", l->source, 0, rest);
}

static void note_rest(struct sysprof_loader *l)
{
	size_t end = l->reader.cursor.pos, rest = l->bytes.size - end;

	if (rest) {
		seam_profile_note(l->profile, "%zu bytes after the epilogue, "
				  "from byte %zu on, are not read", rest, end);
		seam_profile_lost(l->profile, "bytes after the end of the "
				  "stream", l->source, 0, rest);
	}
	if (l->names.n_far)
		seam_profile_note(l->profile, "%" PRIu64 " addresses are more "
			"than 64 KiB after the symbol before them, and have no "
			"name: the stream has no sizes of symbols",
			l->names.n_far);
	if (l->joined.n_left_out)
		seam_profile_note(l->profile, "%" PRIu64 " Lua frames of inner "
			"calls are left out, as by LuaJIT's own parser; seam "
			"report shows them", l->joined.n_left_out);
}

static int take_item(struct sysprof_loader *l,
		     const struct seam_sysprof_item *item)
{
	return item->kind == SEAM_SYSPROF_SAMPLE ? add_sample(l, item) :
	       seam_sysprof_names_add(&l->names, item);
}

static int read_stream(struct sysprof_loader *l, struct seam_err *err)
{
	struct seam_sysprof_item item;
	struct seam_err why = { 0 };
	int r;

	while ((r = seam_sysprof_next(&l->reader, &item, &why)) > 0)
		if (take_item(l, &item))
			return seam_err_no_memory(err);
	if (r == -ENOMEM || (r < 0 && !l->reader.version)) {
		if (err)
			*err = why;
		return r;
	}
	if (r < 0)
		note_damage(l, r, &why);
	else
		note_rest(l);
	return 0;
}

static void free_source(void *object)
{
	struct seam_sysprof_source *source = object;

	seam_file_close(&source->file);
	free(source);
}

/* @file is the profile's from now on. */
static int own(struct seam_profile *profile, struct seam_file *file)
{
	struct seam_sysprof_source *source = malloc(sizeof(*source));

	if (!source)
		return -ENOMEM;
	source->file = *file;
	*file = (struct seam_file) { 0 };
	if (seam_profile_own(profile, source, free_source))
		return -ENOMEM;
	profile->sysprof = source;
	return 0;
}

int seam_load_sysprof(struct seam_profile *profile, struct seam_file *file,
		      bool as_parser, struct seam_err *err)
{
	struct sysprof_loader l = {
		.profile = profile, .bytes = file->bytes,
		.names = { .profile = profile, .as_parser = as_parser },
	};
	int r = own(profile, file) || begin(&l) ? seam_err_no_memory(err) : 0;

	if (!r) {
		seam_sysprof_begin(&l.reader, l.bytes);
		r = read_stream(&l, err);
		seam_sysprof_fini(&l.reader);
	}
	seam_sysprof_names_fini(&l.names);
	seam_joined_stack_fini(&l.joined);
	free(l.known.items);
	seam_index_fini(&l.index);
	return r;
}
