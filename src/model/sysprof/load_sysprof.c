/* SPDX-License-Identifier: MIT */
/*
 * load_sysprof.c - samples of a stream to samples of a profile
 *
 * A program is sampled in the same places again and again, at a few different
 * instructions of each place.  So the bytes of a sample but for its leaf are
 * looked up among earlier samples: then all frames but the leaf's are known.
 * The key has the leaf's role in the join of both stacks in place of its
 * address; where the leaf is not the first frame of the joined stack (a stack
 * without VM or call), the address must be equal too.
 */
#include "model/sysprof/load_sysprof.h"

#include <errno.h>
#include <inttypes.h>

#include "base/hash.h"

/* All that the stack of a sample depends on, except the leaf's address. */
struct sample_key {
	uint64_t leaf_function;
	size_t offset, size;		/* its bytes before the leaf */
	size_t callers_offset, callers_size;	/* those after it */
	enum seam_sysprof_role leaf_role;
	bool has_leaf;
};

/* A sample that was seen, and its stack in this epoch. */
struct known_sample {
	struct sample_key key;
	uint32_t epoch;
	uint32_t stack;		/* of the callers; SEAM_NONE: none yet */
	bool is_whole;		/* the stack is that of one address: */
	uint64_t leaf_addr;
};

/* A leaf with its callers, and their stack: the last look-up of a slot. */
struct recent_stack {
	uint32_t callers, leaf, stack;
};

enum { MIN_RECENT = 1 << 6, MAX_RECENT = 1 << 16, SMALL_SAMPLE = 64 };

struct sysprof_loader {
	struct seam_profile *profile;
	struct seam_bytes bytes;
	struct seam_sysprof_reader reader;
	struct seam_sysprof_names names;
	struct seam_joined_stack joined;
	SEAM_ARRAY(struct known_sample) known;
	struct seam_index index;
	struct recent_stack *recent;	/* by a hash */
	size_t n_recent;		/* a power of two */
	uint32_t source;		/* string, of losses */
	uint32_t event, thread;
	uint64_t n_samples[SEAM_N_VMSTATES];
};

/* -- stacks ------------------------------------------------------------- */

static uint64_t hash_of(const uint8_t *data, size_t size, uint64_t seed)
{
	size_t n = size / 8;
	uint64_t rest = 0;
	seam_u128 hash;

	memcpy(&rest, data + 8 * n, size - 8 * n);
	hash = seam_hash_words(data, n, rest ^ seed);
	return (uint64_t)hash ^ (uint64_t)(hash >> 64);
}

static bool is_same_key(const struct sysprof_loader *l,
			const struct sample_key *a, const struct sample_key *b)
{
	const uint8_t *p = l->bytes.data;

	return a->leaf_function == b->leaf_function &&
	       a->leaf_role == b->leaf_role && a->has_leaf == b->has_leaf &&
	       a->size == b->size && a->callers_size == b->callers_size &&
	       !memcmp(p + a->offset, p + b->offset, a->size) &&
	       !memcmp(p + a->callers_offset, p + b->callers_offset,
		       a->callers_size);
}

/* All functions of the VM count as one leaf, as no joint is in the VM. */
static struct sample_key key_of(const struct sysprof_loader *l,
				const struct seam_sysprof_item *sample,
				const struct seam_sysprof_place *leaf)
{
	size_t end = l->reader.cursor.pos;

	if (sample->vmstate == SEAM_VMSTATE_TRACE)
		return (struct sample_key) {
			.offset = sample->offset, .size = end - sample->offset,
		};
	return (struct sample_key) {
		.offset = sample->offset,
		.size = sample->host_offset - sample->offset,
		.callers_offset = sample->callers_offset,
		.callers_size = end - sample->callers_offset,
		.has_leaf = sample->n_host, .leaf_role = leaf->role,
		.leaf_function = leaf->role == SEAM_SYSPROF_ROLE_VM ? 0 :
				 leaf->function,
	};
}

/* The entry of @key, added if it is new; NULL: no memory. */
static struct known_sample *find_known(struct sysprof_loader *l,
				       const struct sample_key *key)
{
	uint64_t hash = hash_of(l->bytes.data + key->offset, key->size,
				key->leaf_function);
	uint32_t i;

	hash = hash_of(l->bytes.data + key->callers_offset, key->callers_size,
		       hash);
	i = SEAM_INDEX_INTERN(&l->index, hash, &l->known, k,
		is_same_key(l, &l->known.items[k].key, key),
		(struct known_sample) { .key = *key, .stack = SEAM_NONE });
	return i == SEAM_NONE ? NULL : &l->known.items[i];
}

/*
 * Join the sample's stacks, all of them or without the frame of its leaf.  0,
 * or an error of the stream in @err.
 */
static int make_stack(struct sysprof_loader *l,
		      struct seam_sysprof_item *sample, uint32_t leaf,
		      struct known_sample *known, struct seam_err *err)
{
	struct seam_joined_stack *joined = &l->joined;
	uint32_t stack = 0;
	int r = seam_sysprof_read_frames(&l->reader, sample, err);

	if (r < 0)
		return r;
	if (seam_joined_stack_make(joined, &l->names, sample,
				   l->reader.version))
		return -ENOMEM;
	known->is_whole = leaf == SEAM_NONE || !joined->frames.n ||
			  joined->frames.items[0] != leaf;
	for (size_t i = joined->frames.n; i-- > !known->is_whole &&
	     stack != SEAM_NONE;)
		stack = seam_profile_stack(l->profile, stack,
					   joined->frames.items[i]);
	known->stack = stack;
	known->epoch = l->names.epoch;
	return stack == SEAM_NONE ? -ENOMEM : 0;
}

static uint32_t find_leaf(struct sysprof_loader *l, uint32_t callers,
			  uint32_t leaf)
{
	uint64_t hash = ((uint64_t)callers << 32 | leaf) *
			UINT64_C(0x9e3779b97f4a7c15);
	struct recent_stack *r = &l->recent[hash >> 40 & (l->n_recent - 1)];

	/* stack 0 is empty, so a zeroed entry matches no leaf */
	if (r->callers != callers || r->leaf != leaf || !r->stack)
		*r = (struct recent_stack) { callers, leaf,
			seam_profile_stack(l->profile, callers, leaf) };
	return r->stack;
}

static int find_stack(struct sysprof_loader *l,
		      struct seam_sysprof_item *sample, uint32_t *stack,
		      struct seam_err *err)
{
	bool has_leaf = sample->vmstate != SEAM_VMSTATE_TRACE &&
			sample->n_host;
	uint64_t addr = has_leaf ? sample->host[0] : 0;
	struct seam_sysprof_place leaf = { .frame = SEAM_NONE };
	struct sample_key key;
	struct known_sample *known;
	int r = 0;

	if (has_leaf)
		leaf = seam_sysprof_names_host(&l->names, addr, true);
	if (has_leaf && leaf.frame == SEAM_NONE)
		return -ENOMEM;
	key = key_of(l, sample, &leaf);
	known = find_known(l, &key);
	if (!known)
		return -ENOMEM;
	if (known->stack == SEAM_NONE || known->epoch != l->names.epoch ||
	    (known->is_whole && known->leaf_addr != addr))
		r = make_stack(l, sample, leaf.frame, known, err);
	if (r)
		return r;
	known->leaf_addr = addr;
	*stack = known->is_whole ? known->stack :
		 find_leaf(l, known->stack, leaf.frame);
	return *stack == SEAM_NONE ? -ENOMEM : 0;
}

/* -- samples ------------------------------------------------------------ */

static int add_sample(struct sysprof_loader *l,
		      struct seam_sysprof_item *sample, struct seam_err *err)
{
	struct seam_samples *s = &l->profile->samples;
	uint32_t stack;
	int r = find_stack(l, sample, &stack, err);

	if (r)
		return r;
	if (!seam_samples_reserve(s, 1))
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

/* The event, the process and the thread of all samples. */
static int begin(struct sysprof_loader *l)
{
	struct seam_profile *p = l->profile;
	uint32_t event = seam_strings_put(&p->strings, "sysprof");
	uint32_t name = seam_strings_put(&p->strings, "luajit");

	l->source = event;
	l->event = (uint32_t)p->events.n;
	l->thread = (uint32_t)p->threads.n;
	p->has_other_clock = true;
	return event != SEAM_NONE && name != SEAM_NONE &&
	       SEAM_ARRAY_ADD(&p->events, (struct seam_profile_event) {
			.name = event, .unit = SEAM_UNIT_COUNT,
	       }) && SEAM_ARRAY_ADD(&p->processes, (struct seam_process) {
			.pid = -1, .name = name, .end_ns = UINT64_MAX,
			.parent = SEAM_NONE,
	       }) && SEAM_ARRAY_ADD(&p->threads, (struct seam_thread) {
			.process = (uint32_t)(p->processes.n - 1),
			.tid = -1, .name = name, .end_ns = UINT64_MAX,
	       }) ? 0 : -ENOMEM;
}

/* -- the stream --------------------------------------------------------- */

/*
 * Note the error of the stream at the item at @offset.  How many samples are
 * lost is not known: the bytes from there on are counted.
 */
static void note_damage(struct sysprof_loader *l, int r, size_t offset,
			const struct seam_err *why)
{
	seam_profile_note(l->profile, "%s; what is before byte %zu was read",
			  why->cause[0], offset);
	seam_profile_lost(l->profile, r == -ENODATA ? "stream cut off" :
			  "stream damaged", l->source, 0,
			  l->bytes.size - offset);
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

static int read_stream(struct sysprof_loader *l, struct seam_err *err)
{
	struct seam_sysprof_item item;
	struct seam_err why = { 0 };
	int r;

	while ((r = seam_sysprof_next(&l->reader, &item, &why)) > 0) {
		r = item.kind == SEAM_SYSPROF_SAMPLE ?
		    add_sample(l, &item, &why) :
		    seam_sysprof_names_add(&l->names, &item);
		if (r == -ENOMEM)
			return seam_err_no_memory(err);
		if (r)
			break;
	}
	if (r == -ENOMEM || (r < 0 && !l->reader.version)) {
		if (err)
			*err = why;
		return r;
	}
	if (r < 0)
		note_damage(l, r, item.offset, &why);
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

	/* as many as the stream may have samples */
	l.n_recent = MIN_RECENT;
	while (l.n_recent < MAX_RECENT &&
	       l.n_recent * SMALL_SAMPLE < l.bytes.size)
		l.n_recent *= 2;
	l.recent = calloc(l.n_recent, sizeof(*l.recent));
	if (!r && !l.recent)
		r = seam_err_no_memory(err);
	if (!r) {
		seam_sysprof_begin(&l.reader, l.bytes);
		l.reader.skims = true;
		r = read_stream(&l, err);
		seam_sysprof_fini(&l.reader);
	}
	seam_sysprof_names_fini(&l.names);
	seam_joined_stack_fini(&l.joined);
	free(l.known.items);
	free(l.recent);
	seam_index_fini(&l.index);
	return r;
}
