/* SPDX-License-Identifier: MIT */
/*
 * export_oracle.h - exports of a profile, read by readers that share nothing
 * with their writers
 *
 * Each file parses, its indices are of its tables, and the weights of each
 * event add up to the profile's.  must() of fuzz.h ends a run that does not.
 * Events are called "e0", "e1", ..., as profile_of_bytes.h names them.
 */
#ifndef SEAM_TESTS_EXPORT_ORACLE_H
#define SEAM_TESTS_EXPORT_ORACLE_H

#include <jansson.h>
#include <math.h>
#include <zlib.h>

#include "../fuzz/fuzz.h"
#include "export/exporter.h"
#include "profile_of_bytes.h"

enum { ORACLE_EVENTS = 8, ORACLE_IDS = 1 << 12 };

/* By event: what the profile has, and what a file has. */
struct oracle_sums {
	uint64_t samples[ORACLE_EVENTS], weight[ORACLE_EVENTS];
	/* 2^53 and more, and times past 2^64: not exact in all formats */
	bool is_huge[ORACLE_EVENTS];
};

static inline struct oracle_sums oracle_sums_of(const struct seam_profile *p)
{
	struct oracle_sums sums = { 0 };

	for (size_t i = 0; i < p->samples.n; i++) {
		uint64_t weight = seam_samples_weight(&p->samples, i);
		uint16_t event = p->samples.event[i];

		sums.samples[event] += seam_samples_count(&p->samples, i);
		sums.weight[event] += weight;
		sums.is_huge[event] |= weight >= UINT64_C(1) << 50 ||
			p->samples.time_ns[i] >= UINT64_C(1) << 62;
	}
	return sums;
}

/* The number of the event called @name. */
static inline size_t oracle_event(const char *name)
{
	must(name[0] == 'e' && name[1] >= '0' &&
	     name[1] < '0' + ORACLE_EVENTS && (!name[2] || name[2] == ':'));
	return (size_t)(name[1] - '0');
}

/* -- protocol buffers ----------------------------------------------------- */

struct oracle_message {
	const uint8_t *at, *end;
};

struct oracle_field {
	uint64_t number, value;
	struct oracle_message inner;
};

static inline uint64_t oracle_varint(struct oracle_message *m)
{
	uint64_t value = 0;

	for (unsigned int shift = 0; ; shift += 7) {
		must(m->at < m->end && shift < 64);
		value |= (uint64_t)(*m->at & 0x7f) << shift;
		if (*m->at++ < 0x80)
			return value;
	}
}

/* False at the end; numbers and lengths are all that is written. */
static inline bool oracle_next(struct oracle_message *m,
			       struct oracle_field *field)
{
	uint64_t key;

	if (m->at == m->end)
		return false;
	key = oracle_varint(m);
	*field = (struct oracle_field) { .number = key >> 3 };
	must((key & 7) == 0 || (key & 7) == 2);
	field->value = oracle_varint(m);
	if ((key & 7) == 0)
		return true;
	must(field->value <= (uint64_t)(m->end - m->at));
	field->inner = (struct oracle_message) { m->at, m->at + field->value };
	m->at += field->value;
	return true;
}

/* The last field @number of @m; a zeroed one where there is none. */
static inline struct oracle_field oracle_get(struct oracle_message m,
					     uint64_t number)
{
	struct oracle_field field, found = { 0 };

	while (oracle_next(&m, &field))
		if (field.number == number)
			found = field;
	return found;
}

/* As JSON's rules have it: valid UTF-8. */
static inline void oracle_check_text(struct oracle_message text)
{
	json_t *string = json_stringn((const char *)text.at,
				      (size_t)(text.end - text.at));

	must(string);
	json_decref(string);
}

static inline struct oracle_message oracle_unzip(const char *data, size_t size,
						 uint8_t **owned)
{
	z_stream z = { .next_in = (Bytef *)(uintptr_t)data,
		       .avail_in = (uInt)size };
	size_t cap = 1 << 16, n = 0;
	uint8_t *out = malloc(cap);
	int r;

	must(inflateInit2(&z, 16 + MAX_WBITS) == Z_OK);
	do {
		if (n == cap)
			out = realloc(out, cap *= 2);
		z.next_out = out + n;
		z.avail_out = (uInt)(cap - n);
		r = inflate(&z, Z_NO_FLUSH);
		n = cap - z.avail_out;
	} while (r == Z_OK);
	must(r == Z_STREAM_END && z.avail_in == 0);
	inflateEnd(&z);
	*owned = out;
	return (struct oracle_message) { out, out + n };
}

/* -- pprof; field numbers as in pprof.proto ------------------------------- */

struct oracle_pprof {
	SEAM_ARRAY(struct oracle_message) strings;
	SEAM_ARRAY(size_t) types;	/* event by column */
	bool is_id[3][ORACLE_IDS];	/* mappings, locations, functions */
};

/* Strings, types and ids, before what refers to them. */
static inline void oracle_pprof_tables(struct oracle_pprof *o,
				       struct oracle_message all)
{
	struct oracle_message again = all;
	struct oracle_field f;

	while (oracle_next(&all, &f)) {
		if (f.number == 6) {
			oracle_check_text(f.inner);
			must(SEAM_ARRAY_ADD(&o->strings, f.inner));
		}
		if (f.number >= 3 && f.number <= 5) {
			uint64_t id = oracle_get(f.inner, 1).value;

			must(id > 0 && id < ORACLE_IDS &&
			     !o->is_id[f.number - 3][id]);
			o->is_id[f.number - 3][id] = true;
		}
	}
	must(o->strings.n && o->strings.items[0].at == o->strings.items[0].end);
	while (oracle_next(&again, &f)) {
		uint64_t name;

		if (f.number != 1)
			continue;
		name = oracle_get(f.inner, 1).value;
		must(name < o->strings.n);
		/* of one event the first column is "samples" or "calls" */
		must(SEAM_ARRAY_ADD(&o->types, *o->strings.items[name].at == 'e'
				    ? oracle_event((const char[]) {
					'e', (char)o->strings.items[name].at[1],
					'\0' }) : SIZE_MAX));
	}
	for (size_t i = 0; i + 1 < o->types.n; i += 2)
		o->types.items[i] = o->types.items[i + 1];
}

static inline void oracle_pprof_sample(const struct oracle_pprof *o,
				       struct oracle_message sample,
				       struct oracle_sums *sums)
{
	struct oracle_message ids = oracle_get(sample, 1).inner;
	struct oracle_message values = oracle_get(sample, 2).inner;
	size_t n = 0;

	must(ids.at < ids.end);
	while (ids.at < ids.end) {
		uint64_t id = oracle_varint(&ids);

		must(id < ORACLE_IDS && o->is_id[1][id]);
	}
	for (; values.at < values.end; n++) {
		uint64_t value = oracle_varint(&values);

		must(n < o->types.n && o->types.items[n] < ORACLE_EVENTS);
		*(n % 2 ? &sums->weight[o->types.items[n]] :
		  &sums->samples[o->types.items[n]]) += value;
	}
	must(n == o->types.n);
}

static inline void oracle_pprof_location(const struct oracle_pprof *o,
					 struct oracle_message location)
{
	uint64_t mapping = oracle_get(location, 2).value;
	struct oracle_field f;
	size_t n_lines = 0;

	must(mapping == 0 || (mapping < ORACLE_IDS && o->is_id[0][mapping]));
	while (oracle_next(&location, &f)) {
		uint64_t function;

		if (f.number != 4)
			continue;
		function = oracle_get(f.inner, 1).value;
		must(function < ORACLE_IDS && o->is_id[2][function]);
		n_lines++;
	}
	must(n_lines);
}

static inline void oracle_pprof(struct oracle_message all,
				const struct oracle_sums *wanted)
{
	struct oracle_pprof *o = calloc(1, sizeof(*o));
	struct oracle_sums sums = { 0 };
	struct oracle_field f;

	oracle_pprof_tables(o, all);
	while (oracle_next(&all, &f)) {
		if (f.number == 2)
			oracle_pprof_sample(o, f.inner, &sums);
		else if (f.number == 4)
			oracle_pprof_location(o, f.inner);
		else if (f.number == 5)
			must(oracle_get(f.inner, 2).value < o->strings.n &&
			     oracle_get(f.inner, 4).value < o->strings.n);
	}
	must(memcmp(sums.weight, wanted->weight, sizeof(sums.weight)) == 0);
	must(memcmp(sums.samples, wanted->samples, sizeof(sums.samples)) == 0);
	free(o->strings.items);
	free(o->types.items);
	free(o);
}

/* -- Perfetto; field numbers as in perfetto.proto ------------------------- */

struct oracle_perfetto {
	uint64_t sequence;
	bool is_known[20][ORACLE_IDS];	/* by field of InternedData */
	size_t event;			/* of the sequence's samples */
	uint64_t cpu_counts[1 << 16];
	uint64_t depth;			/* calls that are open */
	size_t wait;			/* that has begun, or SIZE_MAX */
	uint64_t begin_ns;
	struct oracle_sums sums;
};

static inline void oracle_known(const struct oracle_perfetto *o,
				unsigned int table, uint64_t id)
{
	must(id > 0 && id < ORACLE_IDS && o->is_known[table][id]);
}

static inline void oracle_intern(struct oracle_perfetto *o,
				 struct oracle_message data)
{
	struct oracle_message again = data, inner;
	struct oracle_field f, part;

	while (oracle_next(&data, &f)) {
		uint64_t id = oracle_get(f.inner, 1).value;

		must(f.number < 20 && id > 0 && id < ORACLE_IDS &&
		     !o->is_known[f.number][id]);
		o->is_known[f.number][id] = true;
		if (f.number == 2 || f.number == 5 || f.number == 17 ||
		    f.number == 18)
			oracle_check_text(oracle_get(f.inner, 2).inner);
	}
	while (oracle_next(&again, &f)) {
		if (f.number == 6) {
			oracle_known(o, 5, oracle_get(f.inner, 2).value);
			oracle_known(o, 19, oracle_get(f.inner, 3).value);
		}
		for (inner = f.inner; f.number == 7 &&
		     oracle_next(&inner, &part);)
			if (part.number == 2)
				oracle_known(o, 6, part.value);
	}
}

static inline void oracle_perf_sample(struct oracle_perfetto *o,
				      struct oracle_message sample)
{
	uint64_t stack = oracle_get(sample, 4).value;
	uint64_t count = oracle_get(sample, 6).value;
	uint64_t cpu = UINT16_MAX;
	struct oracle_message again = sample;
	struct oracle_field f;

	while (oracle_next(&again, &f))
		if (f.number == 1)
			cpu = f.value;
		else if (f.number == 17)
			return;			/* of losses */
	if (stack)
		oracle_known(o, 7, stack);
	o->sums.samples[o->event]++;
	o->sums.weight[o->event] += count - o->cpu_counts[cpu];
	o->cpu_counts[cpu] = count;
}

/* Waits are on a track of their own, their end after their begin. */
static inline void oracle_wait(struct oracle_perfetto *o, uint64_t type,
			       uint64_t time_ns, struct oracle_message event)
{
	uint64_t stack = oracle_get(event, 56).value;
	struct oracle_message name = oracle_get(event, 23).inner;
	struct oracle_field f;

	if (stack)
		oracle_known(o, 7, stack);
	if (type == 2) {
		must(o->wait < ORACLE_EVENTS && time_ns >= o->begin_ns);
		o->sums.samples[o->wait]++;
		o->sums.weight[o->wait] += time_ns - o->begin_ns;
		o->wait = SIZE_MAX;
		return;
	}
	must(o->wait == SIZE_MAX && name.end - name.at == 2);
	o->wait = oracle_event((const char[]) { 'e', (char)name.at[1], '\0' });
	o->begin_ns = time_ns;
	while (type == 3 && oracle_next(&event, &f)) {
		struct oracle_message text;

		if (f.number != 4)
			continue;
		text = oracle_get(f.inner, 10).inner;
		if (text.end - text.at == 2)	/* "ns" */
			o->sums.weight[o->wait] += oracle_get(f.inner, 3).value;
		if (text.end - text.at == 5 &&
		    memcmp(text.at, "waits", 5) == 0)
			o->sums.samples[o->wait] +=
				oracle_get(f.inner, 3).value;
	}
	if (type == 3)
		o->wait = SIZE_MAX;
}

static inline void oracle_track_event(struct oracle_perfetto *o,
				      uint64_t time_ns,
				      struct oracle_message event)
{
	uint64_t type = oracle_get(event, 9).value;
	struct oracle_message name = oracle_get(event, 23).inner;

	if (oracle_get(event, 11).value) {	/* not the thread's own */
		if (type != 3 || name.end - name.at == 2)	/* or "lost" */
			oracle_wait(o, type, time_ns, event);
	} else if (type == 1) {
		oracle_known(o, 2, oracle_get(event, 10).value);
		o->depth++;
	} else if (type == 2) {
		must(o->depth > 0);
		o->depth--;
	}
}

static inline void oracle_packet(struct oracle_perfetto *o,
				 struct oracle_message packet)
{
	uint64_t sequence = oracle_get(packet, 10).value, cleared;
	uint64_t time_ns = oracle_get(packet, 8).value;
	struct oracle_message defaults = oracle_get(packet, 59).inner, name;

	cleared = oracle_get(packet, 13).value & 1;
	must(sequence == o->sequence + cleared);
	if (cleared) {
		must(o->depth == 0 && o->wait == SIZE_MAX);
		memset(o->is_known, 0, sizeof(o->is_known));
		memset(o->cpu_counts, 0, sizeof(o->cpu_counts));
		o->sequence = sequence;
		name = oracle_get(oracle_get(oracle_get(defaults, 12).inner, 1)
				  .inner, 10).inner;
		if (name.at)
			o->event = oracle_event((const char[]) {
				'e', (char)name.at[1], '\0' });
	}
	oracle_intern(o, oracle_get(packet, 12).inner);
	if (oracle_get(packet, 66).inner.at)
		oracle_perf_sample(o, oracle_get(packet, 66).inner);
	if (oracle_get(packet, 11).inner.at)
		oracle_track_event(o, time_ns, oracle_get(packet, 11).inner);
}

static inline void oracle_perfetto(const struct seam_profile *p,
				   struct oracle_message all,
				   const struct oracle_sums *wanted)
{
	struct oracle_perfetto *o = calloc(1, sizeof(*o));
	struct oracle_field f;

	o->wait = SIZE_MAX;
	while (oracle_next(&all, &f)) {
		must(f.number == 1);
		oracle_packet(o, f.inner);
	}
	must(o->depth == 0 && o->wait == SIZE_MAX);
	for (size_t i = 0; i < p->events.n; i++) {
		if (p->events.items[i].is_measured || wanted->is_huge[i])
			continue;
		must(o->sums.samples[i] == wanted->samples[i]);
		must(o->sums.weight[i] == wanted->weight[i]);
	}
	free(o);
}

/* -- JSON ----------------------------------------------------------------- */

static inline json_t *oracle_json(const char *text, size_t size)
{
	json_t *root = json_loadb(text, size, JSON_REJECT_DUPLICATES |
				  JSON_DECODE_INT_AS_REAL, NULL);

	must(root);
	return root;
}

/* Columns are as long as the table says; @column's numbers are below @limit. */
static inline void oracle_column(json_t *table, const char *column,
				 double limit)
{
	json_t *items = json_object_get(table, column), *item;
	size_t i;

	must(json_array_size(items) == (size_t)json_number_value(
			json_object_get(table, "length")));
	json_array_foreach(items, i, item)
		must(json_is_null(item) || json_number_value(item) < 0 ||
		     json_number_value(item) < limit);
}

static inline double oracle_length(json_t *of, const char *table)
{
	return json_number_value(json_object_get(
			json_object_get(of, table), "length"));
}

/* The wait that a stack stands for by its leaf's category, or SIZE_MAX. */
static inline size_t oracle_wait_of(json_t *root, size_t stack)
{
	json_t *shared = json_object_get(root, "shared"), *frames, *category;
	size_t frame, sub;

	frames = json_object_get(shared, "frameTable");
	frame = (size_t)json_number_value(json_array_get(json_object_get(
		json_object_get(shared, "stackTable"), "frame"), stack));
	category = json_array_get(json_object_get(json_object_get(
		root, "meta"), "categories"), (size_t)json_number_value(
		json_array_get(json_object_get(frames, "category"), frame)));
	if (strcmp(json_string_value(json_object_get(category, "name")),
		   "Idle") != 0)
		return SIZE_MAX;
	sub = (size_t)json_number_value(json_array_get(json_object_get(
		frames, "subcategory"), frame));
	return oracle_event(json_string_value(json_array_get(
		json_object_get(category, "subcategories"), sub)));
}

static inline void oracle_firefox_thread(json_t *root, json_t *thread,
					 struct oracle_sums *sums)
{
	json_t *samples = json_object_get(thread, "samples"), *weight;
	json_t *stacks = json_object_get(samples, "stack");
	json_t *tid = json_object_get(thread, "tid"), *main;
	json_t *weights = json_object_get(samples, "weight");
	const char *name, *unit = json_string_value(json_object_get(
					samples, "weightType"));
	double n_strings = (double)json_array_size(json_object_get(
			json_object_get(root, "shared"), "stringArray"));
	size_t i;

	main = json_array_get(json_object_get(json_array_get(json_object_get(
		json_object_get(root, "meta"), "extra"), 0), "entries"), 0);
	name = json_string_value(json_object_get(main, "value"));
	if (json_is_string(tid))
		name = strstr(json_string_value(tid), ": ") + 2;
	oracle_column(samples, "stack", oracle_length(json_object_get(
			root, "shared"), "stackTable"));
	oracle_column(samples, "time", INFINITY);
	oracle_column(samples, "weight", INFINITY);
	oracle_column(json_object_get(thread, "markers"), "name", n_strings);
	json_array_foreach(weights, i, weight) {
		size_t stack = (size_t)json_number_value(
				json_array_get(stacks, i));
		size_t event = oracle_wait_of(root, stack);

		if (event == SIZE_MAX)
			event = oracle_event(name);
		sums->weight[event] += (uint64_t)llround(
			fmin(json_number_value(weight) *
			     (strcmp(unit, "samples") ? 1e6 : 1), 9e18));
	}
}

static inline void oracle_firefox(const struct seam_profile *p,
				  const char *text, size_t size,
				  const struct oracle_sums *wanted)
{
	json_t *root = oracle_json(text, size), *thread;
	json_t *shared = json_object_get(root, "shared");
	json_t *stacks = json_object_get(shared, "stackTable"), *prefix;
	double n_strings = (double)json_array_size(json_object_get(
						shared, "stringArray"));
	struct oracle_sums sums = { 0 };
	size_t i;

	oracle_column(json_object_get(shared, "funcTable"), "name", n_strings);
	oracle_column(json_object_get(shared, "funcTable"), "source",
		      oracle_length(shared, "sources"));
	oracle_column(json_object_get(shared, "funcTable"), "resource",
		      oracle_length(shared, "resourceTable"));
	oracle_column(json_object_get(shared, "frameTable"), "func",
		      oracle_length(shared, "funcTable"));
	oracle_column(stacks, "frame", oracle_length(shared, "frameTable"));
	json_array_foreach(json_object_get(stacks, "prefix"), i, prefix)
		must(json_is_null(prefix) ||
		     json_number_value(prefix) < (double)i);
	json_array_foreach(json_object_get(root, "threads"), i, thread)
		if (oracle_length(thread, "samples") > 0)
			oracle_firefox_thread(root, thread, &sums);
	for (i = 0; i < p->events.n; i++)
		must(wanted->is_huge[i] || sums.weight[i] == wanted->weight[i]);
	json_decref(root);
}

/* Begins and ends of frames, balanced and in order. */
static inline void oracle_evented(json_t *profile)
{
	double last = json_number_value(json_object_get(profile, "startValue"));
	double open[512];
	size_t n = 0, i;
	json_t *event;

	json_array_foreach(json_object_get(profile, "events"), i, event) {
		double at = json_number_value(json_object_get(event, "at"));
		double frame = json_number_value(json_object_get(event,
								 "frame"));

		must(at >= last && n < SEAM_ARRAY_SIZE(open));
		last = at;
		if (*json_string_value(json_object_get(event, "type")) == 'O')
			open[n++] = frame;
		else
			must(n && open[--n] == frame);
	}
	must(n == 0 && last <= json_number_value(json_object_get(profile,
							"endValue")));
}

static inline void oracle_speedscope(const struct seam_profile *p,
				     const char *text, size_t size,
				     const struct oracle_sums *wanted)
{
	json_t *root = oracle_json(text, size), *profile, *stack, *frame;
	json_t *weights;
	size_t n_frames = json_array_size(json_object_get(json_object_get(
				root, "shared"), "frames")), i, k, m;
	struct oracle_sums sums = { 0 };

	json_array_foreach(json_object_get(root, "profiles"), i, profile) {
		const char *name = json_string_value(json_object_get(profile,
								     "name"));

		if (strcmp(json_string_value(json_object_get(
				profile, "type")), "evented") == 0) {
			oracle_evented(profile);
			continue;
		}
		weights = json_object_get(profile, "weights");
		must(json_array_size(weights) == json_array_size(
				json_object_get(profile, "samples")));
		json_array_foreach(json_object_get(profile, "samples"), k,
				   stack) {
			json_array_foreach(stack, m, frame)
				must(json_number_value(frame) <
				     (double)n_frames);
			sums.weight[oracle_event(strrchr(name, ':') + 2)] +=
				(uint64_t)fmin(json_number_value(
					json_array_get(weights, k)), 9e18);
		}
	}
	for (i = 0; i < p->events.n; i++)
		must(p->events.items[i].is_measured || wanted->is_huge[i] ||
		     sums.weight[i] == wanted->weight[i]);
	json_decref(root);
}

/* -- all of them ---------------------------------------------------------- */

static inline void oracle_check(const struct seam_profile *p, const char *form)
{
	struct oracle_sums wanted = oracle_sums_of(p);
	struct seam_selection selection;
	struct seam_selected selected;
	struct oracle_message all;
	uint8_t *unzipped = NULL;
	char *text = NULL;
	size_t size = 0;
	FILE *out = open_memstream(&text, &size);

	seam_selection_init(&selection);
	must(seam_selected_init(&selected, p, &selection, NULL) == 0);
	must(seam_exporter_find(form)->write(&(struct seam_export) {
		.out = out, .selected = &selected }, NULL) == 0);
	fclose(out);
	if (form[0] == 'p')
		all = oracle_unzip(text, size, &unzipped);
	if (strcmp(form, "pprof") == 0)
		oracle_pprof(all, &wanted);
	else if (strcmp(form, "perfetto") == 0)
		oracle_perfetto(p, all, &wanted);
	else if (strcmp(form, "firefox") == 0)
		oracle_firefox(p, text, size, &wanted);
	else
		oracle_speedscope(p, text, size, &wanted);
	seam_selected_fini(&selected);
	free(unzipped);
	free(text);
}

/* Make a profile of the bytes, and check all its exports. */
static inline void oracle_run(const uint8_t *data, size_t size)
{
	static const char *const forms[] = {
		"pprof", "firefox", "speedscope", "perfetto",
	};
	struct profile_bytes in = { data, size };
	struct seam_profile p = built();
	struct seam_item items[64];
	struct made_track track;
	uint32_t n_calls = take(&in, 2) ? take(&in, 64) : 0;

	p.start_ns = UINT64_MAX;
	p.has_other_clock = take(&in, 2);
	p.utc_ns = take(&in, 2) ? INT64_C(1700000000000000000) : 0;
	take_code(&p, &in);
	take_threads(&p, &in);
	take_events(&p, &in, n_calls);
	take_samples(&p, &in);
	if (n_calls)
		take_calls(&p, &in, &track, items, n_calls);
	take_losses(&p, &in);
	for (size_t i = 0; i < SEAM_ARRAY_SIZE(forms); i++)
		oracle_check(&p, forms[i]);
	seam_profile_fini(&p);
}

#endif /* SEAM_TESTS_EXPORT_ORACLE_H */
