/* SPDX-License-Identifier: MIT */
/* otlp.c - the tables of a ProfilesData, and what refers to them; see otlp.h */
#include "fleet/otlp.h"

#include <endian.h>
#include <errno.h>
#include <stdlib.h>

#include "base/hash.h"
#include "base/text.h"
#include "fleet/batch_build.h"

/* Numbers of fields.  Source: profiles.proto, common.proto, resource.proto */
enum {
	DATA_RESOURCE_PROFILES = 1, DATA_DICTIONARY = 2,

	DICTIONARY_MAPPING = 1, DICTIONARY_LOCATION = 2,
	DICTIONARY_FUNCTION = 3, DICTIONARY_LINK = 4, DICTIONARY_STRING = 5,
	DICTIONARY_ATTRIBUTE = 6, DICTIONARY_STACK = 7,

	RESOURCE_PROFILES_RESOURCE = 1, RESOURCE_PROFILES_SCOPE_PROFILES = 2,
	RESOURCE_ATTRIBUTES = 1,
	KEY_VALUE_KEY = 1, KEY_VALUE_VALUE = 2,
	ANY_STRING = 1, ANY_INT = 3,
	SCOPE_PROFILES_SCOPE = 1, SCOPE_PROFILES_PROFILES = 2,
	SCOPE_NAME = 1, SCOPE_VERSION = 2,

	PROFILE_SAMPLE_TYPE = 1, PROFILE_SAMPLES = 2, PROFILE_TIME = 3,
	PROFILE_DURATION = 4, PROFILE_PERIOD_TYPE = 5, PROFILE_PERIOD = 6,
	PROFILE_ID = 7,
	VALUE_TYPE_TYPE = 1, VALUE_TYPE_UNIT = 2,
	SAMPLE_STACK = 1, SAMPLE_ATTRIBUTES = 2, SAMPLE_VALUES = 4,

	MAPPING_LIMIT = 2, MAPPING_FILENAME = 4, MAPPING_ATTRIBUTES = 5,
	STACK_LOCATIONS = 1,
	LOCATION_MAPPING = 1, LOCATION_ADDRESS = 2, LOCATION_LINES = 3,
	LOCATION_ATTRIBUTES = 4,
	LINE_FUNCTION = 1, LINE_LINE = 2,
	FUNCTION_NAME = 1, FUNCTION_FILENAME = 3,
	ATTRIBUTE_KEY = 1, ATTRIBUTE_VALUE = 2,
	LINK_TRACE_ID = 1, LINK_SPAN_ID = 2,
};

struct otlp_key {
	uint64_t a, b;
};

/*
 * A table of the dictionary: its items as they are in the message, the zero
 * value first, and the keys by which an equal item is found.
 */
struct otlp_table {
	struct seam_proto items;
	SEAM_ARRAY(struct otlp_key) keys;
	struct seam_index index;
};

/* A sample, in the order of profiles. */
struct otlp_row {
	uint64_t ts_ns;
	uint32_t origin, event, sample;
	uint8_t unit, kind;
};

struct otlp {
	const struct seam_batch *batch;
	struct seam_proto *out;
	struct seam_strings strings;	/* ids are indices of string_table */
	SEAM_ARRAY(uint32_t) texts;	/* of batch->strings; 0: not yet */
	SEAM_ARRAY(char) text;		/* one that is made printable */
	struct otlp_table attributes, mappings, functions, locations, stacks;
	/*
	 * Frames at one place of code, each with those that it is inlined in:
	 * (id of the outer ones, frame).  An id is its index and 1.
	 */
	SEAM_ARRAY(struct otlp_key) places;
	struct seam_index place_index;
	SEAM_ARRAY(uint32_t) stack;	/* locations of one, outermost first */
	struct seam_index frame_ids, stack_ids;	/* of batch */
	SEAM_ARRAY(struct otlp_row) rows;
	uint32_t n_profiles;
	bool is_failed;
};

/* -- tables --------------------------------------------------------------- */

/*
 * The index of the item with key (@a, @b); *@is_new: the caller is to append it
 * to table->items.
 */
static uint32_t intern(struct otlp *w, struct otlp_table *table, uint64_t a,
		       uint64_t b, bool *is_new)
{
	size_t n = table->keys.n;
	uint32_t i = SEAM_INDEX_INTERN(&table->index, seam_hash_add(a, b),
				       &table->keys, k,
				       table->keys.items[k].a == a &&
				       table->keys.items[k].b == b,
				       (struct otlp_key) { a, b });

	w->is_failed |= i == SEAM_NONE;
	*is_new = table->keys.n > n;
	return i == SEAM_NONE ? 0 : i + 1;
}

static uint32_t string_of(struct otlp *w, const char *text)
{
	size_t most = 4 * strlen(text) + 12;	/* \x1b; \u202e of 3 bytes */
	uint32_t id = SEAM_NONE;

	w->text.n = 0;
	if (SEAM_ARRAY_RESERVE(&w->text, most))
		id = seam_strings_put(&w->strings,
				      seam_text_copy(w->text.items, most, text,
						     SEAM_TEXT_TERMINAL));
	w->is_failed |= id == SEAM_NONE;
	return id == SEAM_NONE ? 0 : id;
}

/* The same for a string of the batch. */
static uint32_t string_at(struct otlp *w, uint32_t string)
{
	uint32_t *known = string < w->texts.n ? &w->texts.items[string] : NULL;

	if (!known)
		return 0;
	if (!*known)
		*known = string_of(w, seam_strings_get(&w->batch->strings,
						       string));
	return *known;
}

/* An attribute whose value is the string @value, or without one a number. */
static uint32_t attribute(struct otlp *w, const char *key, uint32_t value,
			  int32_t number)
{
	struct seam_proto *p = &w->attributes.items;
	uint32_t of = string_of(w, key);
	size_t opened, any;
	bool is_new;
	uint32_t i = intern(w, &w->attributes, of,
			    value ? value : ~(uint64_t)(uint32_t)number,
			    &is_new);

	if (!is_new)
		return i;
	opened = seam_proto_open(p, DICTIONARY_ATTRIBUTE);
	seam_proto_u64(p, ATTRIBUTE_KEY, of);
	any = seam_proto_open(p, ATTRIBUTE_VALUE);
	if (value)
		seam_proto_text(p, ANY_STRING,
				seam_strings_get(&w->strings, value));
	else
		seam_proto_u64(p, ANY_INT, (uint64_t)number);
	seam_proto_close(p, any);
	seam_proto_close(p, opened);
	return i;
}

static void put_attribute(struct seam_proto *p, unsigned int field, uint32_t i)
{
	size_t opened = seam_proto_open(p, field);

	seam_proto_packed(p, i);
	seam_proto_close(p, opened);
}

/* -- frames --------------------------------------------------------------- */

static uint32_t mapping_of(struct otlp *w, const struct seam_batch_frame *frame)
{
	uint32_t path = string_at(w, frame->module), build_id, id = 0;
	struct seam_proto *p = &w->mappings.items;
	size_t opened;
	bool is_new;
	uint32_t i;

	if (!path)
		return 0;
	build_id = string_at(w, frame->build_id);
	i = intern(w, &w->mappings, path, build_id, &is_new);
	if (!is_new)
		return i;
	if (build_id)
		id = attribute(w, "process.executable.build_id.gnu", build_id,
			       0);
	opened = seam_proto_open(p, DICTIONARY_MAPPING);
	seam_proto_u64(p, MAPPING_LIMIT, UINT64_MAX);
	seam_proto_u64(p, MAPPING_FILENAME, path);
	if (id)
		put_attribute(p, MAPPING_ATTRIBUTES, id);
	seam_proto_close(p, opened);
	return i;
}

static uint32_t function_of(struct otlp *w,
			    const struct seam_batch_frame *frame)
{
	uint32_t name = string_at(w, frame->function);
	uint32_t file = string_at(w, frame->file);
	struct seam_proto *p = &w->functions.items;
	size_t opened;
	bool is_new;
	uint32_t i;

	/* the chunk of a guest's function */
	if (!file && frame->layer == SEAM_LAYER_GUEST)
		file = string_at(w, frame->module);
	i = intern(w, &w->functions, name, file, &is_new);
	if (!is_new)
		return i;
	opened = seam_proto_open(p, DICTIONARY_FUNCTION);
	seam_proto_u64(p, FUNCTION_NAME, name);
	if (file)
		seam_proto_u64(p, FUNCTION_FILENAME, file);
	seam_proto_close(p, opened);
	return i;
}

/* Readers find the name of a place without a symbol by its address. */
static bool has_line(const struct seam_batch_frame *frame)
{
	return frame->is_named || !frame->offset;
}

static void put_line(struct otlp *w, const struct seam_batch_frame *frame)
{
	struct seam_proto *p = &w->locations.items;
	uint32_t function = function_of(w, frame);
	size_t opened = seam_proto_open(p, LOCATION_LINES);

	seam_proto_u64(p, LINE_FUNCTION, function);
	if (frame->line)
		seam_proto_u64(p, LINE_LINE, frame->line);
	seam_proto_close(p, opened);
}

/* The location of @place, which ends with the innermost frame there. */
static uint32_t location_of(struct otlp *w, uint32_t place)
{
	static const char *const types[] = {
		[SEAM_LAYER_KERNEL] = "kernel", [SEAM_LAYER_NATIVE] = "native",
		[SEAM_LAYER_JIT] = "jit", [SEAM_LAYER_GUEST] = "luajit",
	};
	const struct seam_batch_frame *frames = w->batch->frames.items, *frame;
	struct seam_proto *p = &w->locations.items;
	uint32_t mapping, type = 0;
	size_t opened;
	bool is_new;
	uint32_t i = intern(w, &w->locations, place, 0, &is_new);

	if (!is_new)
		return i;
	frame = &frames[w->places.items[place - 1].b];
	mapping = frame->layer == SEAM_LAYER_GUEST ? 0 : mapping_of(w, frame);
	if (frame->layer < SEAM_ARRAY_SIZE(types))
		type = attribute(w, "profile.frame.type",
				 string_of(w, types[frame->layer]), 0);
	opened = seam_proto_open(p, DICTIONARY_LOCATION);
	if (mapping)
		seam_proto_u64(p, LOCATION_MAPPING, mapping);
	if (frame->offset)
		seam_proto_u64(p, LOCATION_ADDRESS, frame->offset);
	for (; place; place = (uint32_t)w->places.items[place - 1].a) {
		frame = &frames[w->places.items[place - 1].b];
		if (has_line(frame))
			put_line(w, frame);
	}
	if (type)
		put_attribute(p, LOCATION_ATTRIBUTES, type);
	seam_proto_close(p, opened);
	return i;
}

/* @frame, inlined in that of the place @outer; 0: not inlined. */
static uint32_t place_of(struct otlp *w, uint32_t outer, uint32_t frame)
{
	uint32_t i = SEAM_INDEX_INTERN(&w->place_index,
				       seam_hash_add(outer, frame), &w->places,
				       k, w->places.items[k].a == outer &&
				       w->places.items[k].b == frame,
				       (struct otlp_key) { outer, frame });

	w->is_failed |= i == SEAM_NONE;
	return i == SEAM_NONE ? 0 : i + 1;
}

/* Ids are from outside: seam_hash_add() has a key. */
static uint32_t frame_at(const struct otlp *w, uint64_t id)
{
	return SEAM_INDEX_FIND(&w->frame_ids, seam_hash_add(id, 0), i,
			       w->batch->frames.items[i].id == id);
}

static bool is_inlined_in(const struct otlp *w, uint32_t inner, uint32_t place)
{
	const struct seam_batch_frame *frames = w->batch->frames.items;
	const struct seam_batch_frame *outer =
		&frames[w->places.items[place - 1].b];

	return inner != SEAM_NONE && frames[inner].is_inlined &&
	       frames[inner].layer == outer->layer &&
	       frames[inner].module == outer->module &&
	       frames[inner].offset == outer->offset;
}

/* The locations of a stack, the outermost first, into w->stack. */
static void list_locations(struct otlp *w, const struct seam_batch_stack *stack)
{
	const uint64_t *ids = w->batch->frame_ids.items + stack->first;
	uint32_t place = 0;

	w->stack.n = 0;
	for (size_t i = 0; i <= stack->n && !w->is_failed; i++) {
		uint32_t frame = i < stack->n ? frame_at(w, ids[i]) : SEAM_NONE;

		if (place && !is_inlined_in(w, frame, place)) {
			w->is_failed |= !SEAM_ARRAY_ADD(&w->stack,
							location_of(w, place));
			place = 0;
		}
		if (frame != SEAM_NONE)
			place = place_of(w, place, frame);
	}
}

static uint32_t stack_of(struct otlp *w, uint64_t id)
{
	uint32_t at = SEAM_INDEX_FIND(&w->stack_ids, seam_hash_add(id, 0), i,
				      w->batch->stacks.items[i].id == id);
	struct seam_proto *p = &w->stacks.items;
	size_t opened, packed;
	bool is_new;
	uint32_t i;

	if (!id || at == SEAM_NONE)
		return 0;
	i = intern(w, &w->stacks, at, 0, &is_new);
	if (!is_new)
		return i;
	list_locations(w, &w->batch->stacks.items[at]);
	opened = seam_proto_open(p, DICTIONARY_STACK);
	packed = seam_proto_open(p, STACK_LOCATIONS);
	for (size_t k = w->stack.n; k-- > 0;)
		seam_proto_packed(p, w->stack.items[k]);
	seam_proto_close(p, packed);
	seam_proto_close(p, opened);
	return i;
}

/* -- profiles ------------------------------------------------------------- */

static void put_sample(struct otlp *w, const struct seam_batch_sample *sample)
{
	uint32_t process = string_at(w, sample->process);
	uint32_t thread = string_at(w, sample->thread), of[4];
	uint32_t stack = stack_of(w, sample->stack);
	size_t opened, packed, n = 0;

	if (sample->pid >= 0)
		of[n++] = attribute(w, "process.pid", 0, sample->pid);
	if (process)
		of[n++] = attribute(w, "process.executable.name", process, 0);
	if (sample->tid >= 0)
		of[n++] = attribute(w, "thread.id", 0, sample->tid);
	if (thread)
		of[n++] = attribute(w, "thread.name", thread, 0);
	opened = seam_proto_open(w->out, PROFILE_SAMPLES);
	if (stack)
		seam_proto_u64(w->out, SAMPLE_STACK, stack);
	packed = seam_proto_open(w->out, SAMPLE_ATTRIBUTES);
	for (size_t i = 0; i < n; i++)
		seam_proto_packed(w->out, of[i]);
	seam_proto_close(w->out, packed);
	packed = seam_proto_open(w->out, SAMPLE_VALUES);
	seam_proto_packed(w->out, sample->value < INT64_MAX ? sample->value :
				  INT64_MAX);
	seam_proto_close(w->out, packed);
	seam_proto_close(w->out, opened);
}

static void put_type(struct otlp *w, unsigned int field,
		     const struct otlp_row *row)
{
	const char *name = seam_strings_get(&w->batch->strings, row->event);
	uint32_t type = string_of(w, !strcmp(name, "cpu-clock") ? "cpu" :
				     !strcmp(name, "off-cpu") ? "off_cpu" :
				     name);
	uint32_t unit = string_of(w, row->unit == SEAM_UNIT_NS ?
				     "nanoseconds" : "count");
	size_t opened = seam_proto_open(w->out, field);

	seam_proto_u64(w->out, VALUE_TYPE_TYPE, type);
	seam_proto_u64(w->out, VALUE_TYPE_UNIT, unit);
	seam_proto_close(w->out, opened);
}

/* The smallest weight: others are of samples that stand for several periods. */
static void put_period(struct otlp *w, const struct otlp_row *rows, size_t n)
{
	uint64_t period = UINT64_MAX;

	for (size_t i = 0; i < n; i++) {
		const struct seam_batch_sample *sample =
			&w->batch->samples.items[rows[i].sample];

		if (sample->count && sample->value / sample->count < period)
			period = sample->value / sample->count;
	}
	if (rows->kind != SEAM_BATCH_SAMPLES || period > INT64_MAX)
		return;
	put_type(w, PROFILE_PERIOD_TYPE, rows);
	seam_proto_u64(w->out, PROFILE_PERIOD, period);
}

/* @n rows of one event in one window. */
static void put_profile(struct otlp *w, const struct otlp_row *rows, size_t n)
{
	const struct seam_batch *batch = w->batch;
	uint64_t left_ns = batch->to_ns > rows->ts_ns ?
			   batch->to_ns - rows->ts_ns : 0;
	uint64_t id[2] = {
		htobe64(batch->id.agent),
		htobe64(batch->id.seq << 32 | w->n_profiles++),
	};
	size_t opened = seam_proto_open(w->out, SCOPE_PROFILES_PROFILES);

	put_type(w, PROFILE_SAMPLE_TYPE, rows);
	for (size_t i = 0; i < n && !w->is_failed; i++)
		put_sample(w, &batch->samples.items[rows[i].sample]);
	seam_proto_fixed64(w->out, PROFILE_TIME, rows->ts_ns);
	seam_proto_u64(w->out, PROFILE_DURATION,
		       left_ns < SEAM_FLEET_WINDOW_NS ? left_ns :
		       SEAM_FLEET_WINDOW_NS);
	put_period(w, rows, n);
	seam_proto_bytes(w->out, PROFILE_ID,
			 (struct seam_bytes) { (uint8_t *)id, sizeof(id) });
	seam_proto_close(w->out, opened);
}

static void put_resource_text(struct otlp *w, const char *key,
			      const char *value)
{
	size_t opened = seam_proto_open(w->out, RESOURCE_ATTRIBUTES), any;

	seam_proto_text(w->out, KEY_VALUE_KEY, key);
	any = seam_proto_open(w->out, KEY_VALUE_VALUE);
	seam_proto_text(w->out, ANY_STRING, value);
	seam_proto_close(w->out, any);
	seam_proto_close(w->out, opened);
}

/* Labels "key=value", each key once; they are sorted. */
static void put_labels(struct otlp *w, const struct seam_batch_origin *origin)
{
	char key[SEAM_BATCH_MAX_TEXT + 1], before[SEAM_BATCH_MAX_TEXT + 1] = "";

	for (uint32_t i = 0; i < origin->n_labels; i++) {
		const char *label = seam_strings_get(
			&w->batch->strings,
			w->batch->labels.items[origin->labels + i]);
		size_t n = strcspn(label, "=");

		if (n >= sizeof(key))
			continue;
		memcpy(key, label, n);
		key[n] = '\0';
		if (!strcmp(key, before) || !strcmp(key, "service.name") ||
		    !strcmp(key, "host.name") || !strcmp(key, "seam.recording"))
			continue;
		memcpy(before, key, n + 1);
		put_resource_text(w, key, label[n] ? label + n + 1 : "");
	}
}

static void put_resource(struct otlp *w, const struct seam_batch_origin *origin)
{
	const struct seam_strings *strings = &w->batch->strings;
	size_t opened = seam_proto_open(w->out, RESOURCE_PROFILES_RESOURCE);

	put_resource_text(w, "service.name",
			  seam_strings_get(strings, origin->service));
	put_resource_text(w, "host.name",
			  seam_strings_get(strings, origin->host));
	if (origin->recording)
		put_resource_text(w, "seam.recording",
				  seam_strings_get(strings,
						   origin->recording));
	put_labels(w, origin);
	seam_proto_close(w->out, opened);
}

/* How many of @n rows are of one profile with the first. */
static size_t same_profile(const struct otlp_row *rows, size_t n)
{
	size_t i = 1;

	while (i < n && rows[i].origin == rows->origin &&
	       rows[i].event == rows->event && rows[i].unit == rows->unit &&
	       rows[i].kind == rows->kind && rows[i].ts_ns == rows->ts_ns)
		i++;
	return i;
}

/* All profiles of the first row's origin; the rows that follow. */
static size_t put_resource_profiles(struct otlp *w,
				    const struct otlp_row *rows, size_t n)
{
	size_t opened = seam_proto_open(w->out, DATA_RESOURCE_PROFILES);
	size_t scopes, scope, i = 0;

	put_resource(w, &w->batch->origins.items[rows->origin]);
	scopes = seam_proto_open(w->out, RESOURCE_PROFILES_SCOPE_PROFILES);
	scope = seam_proto_open(w->out, SCOPE_PROFILES_SCOPE);
	seam_proto_text(w->out, SCOPE_NAME, "seam");
	seam_proto_text(w->out, SCOPE_VERSION, SEAM_VERSION);
	seam_proto_close(w->out, scope);
	while (i < n && rows[i].origin == rows->origin && !w->is_failed) {
		size_t n_same = same_profile(rows + i, n - i);

		put_profile(w, rows + i, n_same);
		i += n_same;
	}
	seam_proto_close(w->out, scopes);
	seam_proto_close(w->out, opened);
	return i;
}

/* -- all of it ------------------------------------------------------------ */

static void put_table(struct otlp *w, unsigned int field,
		      const struct otlp_table *table)
{
	seam_proto_bytes(w->out, field, (struct seam_bytes) { 0 });
	w->is_failed |= table->items.is_failed;
	if (!table->items.n || w->is_failed)
		return;
	if (SEAM_ARRAY_EXTEND(w->out, table->items.items, table->items.n))
		return;
	w->is_failed = true;
}

static void put_strings(struct otlp *w)
{
	for (uint32_t i = 0; i < w->strings.texts.n; i++) {
		const char *text = seam_strings_get(&w->strings, i);

		seam_proto_bytes(w->out, DICTIONARY_STRING, (struct seam_bytes)
				 { (const uint8_t *)text, strlen(text) });
	}
}

/* The only link, which is none. */
static void put_link(struct otlp *w)
{
	static const uint8_t zero[16];
	size_t opened = seam_proto_open(w->out, DICTIONARY_LINK);

	seam_proto_bytes(w->out, LINK_TRACE_ID, (struct seam_bytes) {
			 zero, 16 });
	seam_proto_bytes(w->out, LINK_SPAN_ID, (struct seam_bytes) { zero, 8 });
	seam_proto_close(w->out, opened);
}

static void put_dictionary(struct otlp *w)
{
	size_t opened = seam_proto_open(w->out, DATA_DICTIONARY);

	put_table(w, DICTIONARY_MAPPING, &w->mappings);
	put_table(w, DICTIONARY_LOCATION, &w->locations);
	put_table(w, DICTIONARY_FUNCTION, &w->functions);
	put_link(w);
	put_strings(w);
	put_table(w, DICTIONARY_ATTRIBUTE, &w->attributes);
	put_table(w, DICTIONARY_STACK, &w->stacks);
	seam_proto_close(w->out, opened);
}

#define COMPARE(a, b) do {						\
	if ((a) != (b))							\
		return (a) < (b) ? -1 : 1;				\
} while (0)

static int compare_rows(const void *left, const void *right)
{
	const struct otlp_row *a = left, *b = right;

	COMPARE(a->origin, b->origin);
	COMPARE(a->event, b->event);
	COMPARE(a->unit, b->unit);
	COMPARE(a->kind, b->kind);
	COMPARE(a->ts_ns, b->ts_ns);
	COMPARE(a->sample, b->sample);
	return 0;
}

/* The rows in order, and where frames and stacks are. */
static int prepare(struct otlp *w)
{
	const struct seam_batch *b = w->batch;

	string_of(w, "");	/* has index 0 */
	if (w->is_failed || !SEAM_ARRAY_GROW(&w->texts, b->strings.texts.n))
		return -ENOMEM;
	for (uint32_t i = 0; i < b->frames.n; i++)
		if (seam_index_add(&w->frame_ids,
				   seam_hash_add(b->frames.items[i].id, 0), i))
			return -ENOMEM;
	for (uint32_t i = 0; i < b->stacks.n; i++)
		if (seam_index_add(&w->stack_ids,
				   seam_hash_add(b->stacks.items[i].id, 0), i))
			return -ENOMEM;
	for (uint32_t i = 0; i < b->samples.n; i++) {
		const struct seam_batch_sample *s = &b->samples.items[i];

		if (s->origin < b->origins.n &&
		    !SEAM_ARRAY_ADD(&w->rows, (struct otlp_row) {
				    .ts_ns = s->ts_ns, .origin = s->origin,
				    .event = s->event, .sample = i,
				    .unit = s->unit, .kind = s->kind }))
			return -ENOMEM;
	}
	SEAM_ARRAY_SORT(&w->rows, compare_rows);
	return 0;
}

static void table_fini(struct otlp_table *table)
{
	free(table->items.items);
	free(table->keys.items);
	seam_index_fini(&table->index);
}

static void fini(struct otlp *w)
{
	seam_strings_fini(&w->strings);
	free(w->texts.items);
	free(w->text.items);
	table_fini(&w->attributes);
	table_fini(&w->mappings);
	table_fini(&w->functions);
	table_fini(&w->locations);
	table_fini(&w->stacks);
	free(w->places.items);
	seam_index_fini(&w->place_index);
	free(w->stack.items);
	seam_index_fini(&w->frame_ids);
	seam_index_fini(&w->stack_ids);
	free(w->rows.items);
}

int seam_otlp_encode(struct seam_proto *to, const struct seam_batch *batch,
		     struct seam_err *err)
{
	struct otlp w = { .batch = batch, .out = to };
	int r = prepare(&w);

	w.is_failed = r < 0;
	for (size_t i = 0; i < w.rows.n && !w.is_failed;)
		i += put_resource_profiles(&w, w.rows.items + i, w.rows.n - i);
	if (!w.is_failed)
		put_dictionary(&w);
	w.is_failed |= to->is_failed;
	fini(&w);
	if (w.is_failed)
		return seam_err_set(err, -ENOMEM, "cannot make OTLP profiles: "
				    "out of memory");
	return 0;
}
