/* SPDX-License-Identifier: MIT */
/* manifest.c - meta.json; the format is in manifest.h */
#include "wire/manifest.h"

#include "base/json.h"
#include "base/text.h"

#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdlib.h>
#include <unistd.h>

#define SCHEMA_FAMILY "seam.bundle/"
#define SCHEMA SCHEMA_FAMILY "1"

enum member_type {
	TEXT,			/* const char * */
	FLAG,			/* bool */
	COUNT,			/* uint64_t */
	ADDR,			/* uint64_t, as a string of hex digits */
	CLOCK,			/* bool: whether it is the kernel's own */
	BUILD_ID,		/* uint8_t [], with a size_t */
	STRINGS,		/* const char *const *, with a size_t */
};

/*
 * All that is written and read back, in the order of the file.  Successive
 * rows of one section are one object.  It is omitted when all of its members
 * are 0, unless one of them is @always written.
 */
static const struct member {
	const char *section;	/* NULL: a member of the manifest itself */
	const char *name;
	enum member_type type;
	bool always;
	size_t offset;
	size_t n_offset;	/* of the size or number */
} members[] = {
#define MEMBER(section, name, type, member) \
	{ section, name, type, true, offsetof(struct seam_manifest, member), 0 }
#define SIZED(section, name, type, member, n_member) \
	{ section, name, type, true, offsetof(struct seam_manifest, member), \
	  offsetof(struct seam_manifest, n_member) }
#define OPTIONAL(section, name, member) \
	{ section, name, COUNT, false, \
	  offsetof(struct seam_manifest, member), 0 }
	MEMBER(NULL, "version", TEXT, version),
	MEMBER(NULL, "complete", FLAG, complete),
	MEMBER(NULL, "overwrite", FLAG, overwrite),
	MEMBER(NULL, "snapshots", FLAG, snapshots),
	SIZED(NULL, "command", STRINGS, words, n_words),
	MEMBER("host", "name", TEXT, host),
	MEMBER("host", "release", TEXT, release),
	MEMBER("host", "arch", TEXT, arch),
	MEMBER("host", "boot_id", TEXT, boot_id),
	SIZED("kernel", "build_id", BUILD_ID, kernel_build_id,
	      kernel_build_id_size),
	MEMBER("kernel", "text", ADDR, kernel_text_addr),
	SIZED("vdso", "build_id", BUILD_ID, vdso_build_id, vdso_build_id_size),
	MEMBER(NULL, "clock", CLOCK, kernel_clock),
	MEMBER("start", "wall_ns", COUNT, start_wall_ns),
	MEMBER("start", "monotonic_ns", COUNT, start_ns),
	MEMBER(NULL, "duration_ns", COUNT, duration_ns),
	SIZED(NULL, "events", STRINGS, events, n_events),
	SIZED(NULL, "left_out", STRINGS, left_out, n_left_out),
	MEMBER(NULL, "samples", COUNT, n_samples),
	MEMBER(NULL, "throttled", COUNT, losses.n_throttled),
	MEMBER("lost", "ring_full", COUNT, losses.n_ring_full),
	MEMBER("lost", "paused", COUNT, losses.n_paused),
	MEMBER("lost", "not_written", COUNT, losses.n_unwritten),
	MEMBER("lost", "damaged_bytes", COUNT, losses.n_bad_bytes),
	OPTIONAL("areas", "bytes", n_area_bytes),
	OPTIONAL("areas", "truncated", losses.n_truncated),
	OPTIONAL("areas", "partial", losses.n_partial),
	OPTIONAL("areas", "collision", losses.n_collision),
	OPTIONAL("jit", "streams", n_jit_streams),
	OPTIONAL("jit", "records", losses.n_jit),
	OPTIONAL("jit", "lost", losses.n_jit_lost),
	OPTIONAL("jit", "refused_groups", losses.n_jit_bad),
	OPTIONAL("jit", "refused_rings", losses.n_jit_unowned),
	OPTIONAL("calls", "records", calls.n_records),
	OPTIONAL("calls", "processes", calls.n_processes),
	OPTIONAL("calls", "threads", calls.n_threads),
	OPTIONAL("calls", "functions", calls.n_functions),
	OPTIONAL("calls", "unnamed", calls.n_unnamed),
	OPTIONAL("calls", "frozen", calls.n_frozen),
	OPTIONAL("calls", "area_full", losses.n_calls_full),
	OPTIONAL("calls", "without_area", losses.n_calls_without_ring),
	OPTIONAL("calls", "not_written", losses.n_calls_unwritten),
	OPTIONAL("calls", "damaged_bytes", losses.n_calls_bad_bytes),
	OPTIONAL("calls", "refused", losses.n_calls_bad),
	OPTIONAL("calls", "refused_areas", losses.n_calls_unowned),
	OPTIONAL("calls", "refused_programs", losses.n_calls_refused),
	OPTIONAL("guest", "processes", guest.n_processes),
	OPTIONAL("guest", "samples", guest.n_samples),
	OPTIONAL("guest", "with_guest", guest.n_guest),
	OPTIONAL("guest", "incomplete", guest.n_incomplete),
	OPTIONAL("guest", "symbols", guest.n_symbols),
	OPTIONAL("guest", "refused", guest.n_bad),
	OPTIONAL("guest", "lost", guest.n_lost),
	OPTIONAL("guest", "without_ring", guest.n_without_ring),
	OPTIONAL("guest", "ticks", guest.n_ticks),
	OPTIONAL("guest", "ticks_due", guest.n_due),
	OPTIONAL("guest", "merged", guest.n_merged),
	OPTIONAL("guest", "throttled", guest.n_throttled),
	OPTIONAL("guest", "no_stack", guest.n_no_stack),
	OPTIONAL("guest", "ended", guest.n_ended),
	OPTIONAL("guest", "superseded", guest.n_superseded),
	OPTIONAL("not_recorded", "threads", losses.n_refused),
	OPTIONAL("not_recorded", "programs", losses.n_stopped),
	OPTIONAL("not_recorded", "cpus", losses.n_cpus_back),
	OPTIONAL("not_recorded", "cpu_ns", losses.cpu_ns),
	OPTIONAL("not_recorded", "new_cpus", losses.n_cpus_new),
	OPTIONAL("kept", "files", kept.n_files),
	OPTIONAL("kept", "file_bytes", kept.n_file_bytes),
	OPTIONAL("kept", "dumps", kept.n_dumps),
	OPTIONAL("kept", "dump_bytes", kept.n_dump_bytes),
	OPTIONAL("kept", "missed", kept.n_missed),
	OPTIONAL("kept", "refused", kept.n_refused),
	OPTIONAL("kept", "leased", kept.n_leased),
	OPTIONAL("kept", "stuck", kept.n_stuck),
	OPTIONAL("kept", "too_large", kept.n_too_large),
	OPTIONAL("kept", "too_many", kept.n_too_many),
	OPTIONAL("kept", "not_written", kept.n_unwritten),
	OPTIONAL("kept", "interrupted", kept.n_interrupted),
	OPTIONAL("late", "threads", losses.n_late),
	OPTIONAL("late", "ns", losses.late_ns),
	OPTIONAL("late", "longest_ns", losses.longest_late_ns),
	OPTIONAL("late", "unseen_threads", losses.n_unseen),
#undef MEMBER
#undef SIZED
#undef OPTIONAL
};

/* The first row after @row that is not a member of the same object. */
static const struct member *end_of_section(const struct member *row)
{
	const struct member *end = row + 1;

	while (row->section && end < members + SEAM_ARRAY_SIZE(members) &&
	       end->section && strcmp(end->section, row->section) == 0)
		end++;
	return end;
}

/* JSON readers have int64_t, and one number beyond fails the whole file. */
static void put_u64(struct seam_json *j, const char *key, uint64_t value)
{
	seam_json_u64(j, key, value < INT64_MAX ? value : INT64_MAX);
}

static void put_strings(struct seam_json *j, const char *key,
			const char *const *items, size_t n)
{
	seam_json_open(j, key, '[');
	for (size_t i = 0; i < n; i++)
		seam_json_string(j, NULL, items[i]);
	seam_json_close(j);
}

static void put_addr(struct seam_json *j, const char *key, uint64_t addr)
{
	char text[32];

	snprintf(text, sizeof(text), "0x%" PRIx64, addr);
	seam_json_string(j, key, text);
}

static void put_member(struct seam_json *j, const struct member *row,
		       const struct seam_manifest *m)
{
	const void *at = (const char *)m + row->offset;
	const size_t *n = (const void *)((const char *)m + row->n_offset);

	switch (row->type) {
	case TEXT:
		seam_json_string(j, row->name, *(const char *const *)at);
		break;
	case FLAG:
		seam_json_bool(j, row->name, *(const bool *)at);
		break;
	case COUNT:
		put_u64(j, row->name, *(const uint64_t *)at);
		break;
	case ADDR:
		put_addr(j, row->name, *(const uint64_t *)at);
		break;
	case CLOCK:
		seam_json_string(j, row->name, *(const bool *)at ? "perf" :
				 "CLOCK_MONOTONIC");
		break;
	case BUILD_ID:
		seam_json_hex(j, row->name, (struct seam_bytes) { at, *n });
		break;
	case STRINGS:
		put_strings(j, row->name, *(const char *const *const *)at, *n);
		break;
	}
}

static bool is_written(const struct member *row, const struct member *end,
		       const struct seam_manifest *m)
{
	for (; row < end; row++)
		if (row->always ||
		    *(const uint64_t *)((const char *)m + row->offset))
			return true;
	return false;
}

static void put_members(struct seam_json *j, const struct seam_manifest *m)
{
	const struct member *row = members, *end;

	for (; row < members + SEAM_ARRAY_SIZE(members); row = end) {
		const char *section = row->section;

		end = end_of_section(row);
		if (!is_written(row, end, m))
			continue;
		if (section)
			seam_json_open(j, section, '{');
		for (; row < end; row++)
			put_member(j, row, m);
		if (section)
			seam_json_close(j);
	}
}

/* Numbers of "stacks" besides its tables. */
static const struct {
	const char *name;
	size_t offset;		/* in the counts */
} stack_members[] = {
#define STACKS(name, member) \
	{ name, offsetof(struct seam_stack_counts, member) }
	STACKS("joined", n_joined),
	STACKS("joined_later", n_joined_later),
	STACKS("continued", n_continued),
	STACKS("empty", n_empty),
	STACKS("of_32_bit", n_32_bit),
	STACKS("kernel_cut", n_kernel_cut),
	STACKS("jvm", n_jvm),
	STACKS("dump_bytes", dump_bytes),
#undef STACKS
};

static void put_stack_files(struct seam_json *j,
			    const struct seam_stack_counts *stacks)
{
	seam_json_open(j, "files", '[');
	for (size_t i = 0; i < stacks->n_modules; i++) {
		const struct seam_stack_module *module = &stacks->modules[i];

		seam_json_open(j, NULL, '{');
		seam_json_string(j, "path", module->path);
		seam_json_string(j, "end", seam_stack_end_key(module->end));
		put_u64(j, "stacks", module->n);
		seam_json_close(j);
	}
	seam_json_close(j);
}

static void put_stacks(struct seam_json *j,
		       const struct seam_stack_counts *stacks)
{
	if (!seam_stack_counts_exist(stacks))
		return;
	seam_json_open(j, "stacks", '{');
	seam_json_open(j, "ended", '{');
	for (unsigned int i = 0; i < SEAM_STACK_N_ENDS; i++)
		put_u64(j, seam_stack_end_key(i), stacks->n_ended[i]);
	seam_json_close(j);
	seam_json_open(j, "frames", '{');
	for (unsigned int i = 0; i < SEAM_STACK_N_QUALITIES; i++)
		put_u64(j, seam_stack_quality_key(i), stacks->n_frames[i]);
	seam_json_close(j);
	for (size_t i = 0; i < SEAM_ARRAY_SIZE(stack_members); i++)
		put_u64(j, stack_members[i].name, *(const uint64_t *)
			((const char *)stacks + stack_members[i].offset));
	put_stack_files(j, stacks);
	seam_json_close(j);
}

/* Numbers of a trigger, omitted where they are 0. */
static const struct {
	const char *name;
	size_t offset;
} trigger_members[] = {
#define TRIGGER(name, member) \
	{ name, offsetof(struct seam_manifest_trigger, member) }
	TRIGGER("pid", pid),
	TRIGGER("tid", tid),
	TRIGGER("tsc", tsc),
	TRIGGER("time_ns", time_ns),
	TRIGGER("duration_ns", duration_ns),
	TRIGGER("function", function),
	TRIGGER("signal", signal),
#undef TRIGGER
};

static void put_trigger(struct seam_json *j,
			const struct seam_manifest_trigger *trigger)
{
	seam_json_open(j, NULL, '{');
	seam_json_string(j, "trigger", trigger->text);
	for (size_t i = 0; i < SEAM_ARRAY_SIZE(trigger_members); i++) {
		uint64_t n = *(const uint64_t *)((const char *)trigger +
						 trigger_members[i].offset);

		if (n)
			put_u64(j, trigger_members[i].name, n);
	}
	seam_json_close(j);
}

static void put_triggers(struct seam_json *j, const struct seam_manifest *m)
{
	if (!m->n_triggers)
		return;
	seam_json_open(j, "triggers", '[');
	for (size_t i = 0; i < m->n_triggers; i++)
		put_trigger(j, &m->triggers[i]);
	seam_json_close(j);
}

static void put_ties(struct seam_json *j, const struct seam_manifest *m)
{
	if (!m->n_ties)
		return;
	seam_json_open(j, "xray", '{');
	seam_json_open(j, "ties", '[');
	for (size_t i = 0; i < m->n_ties; i++) {
		seam_json_open(j, NULL, '[');
		put_u64(j, NULL, m->ties[i].tsc);
		put_u64(j, NULL, m->ties[i].ns);
		seam_json_close(j);
	}
	seam_json_close(j);
	seam_json_close(j);
}

static void put_by_event(struct seam_json *j, const struct seam_manifest *m)
{
	seam_json_open(j, "lost_by_event", '[');
	for (size_t i = 0; i < m->n_by_event; i++) {
		seam_json_open(j, NULL, '{');
		seam_json_string(j, "event", m->by_event[i].name);
		put_u64(j, "samples", m->by_event[i].n_samples);
		put_u64(j, "lost", m->by_event[i].n_lost);
		seam_json_close(j);
	}
	seam_json_close(j);
}

static void put_rings(struct seam_json *j, const struct seam_manifest *m)
{
	seam_json_open(j, "rings", '[');
	for (size_t i = 0; i < m->n_rings; i++) {
		const struct seam_manifest_ring *ring = &m->rings[i];

		seam_json_open(j, NULL, '{');
		if (ring->cpu >= 0)
			seam_json_i64(j, "cpu", ring->cpu);
		if (ring->tid >= 0)
			seam_json_i64(j, "tid", ring->tid);
		seam_json_string(j, "kind", ring->kind);
		put_u64(j, "bytes", ring->size_bytes);
		if (ring->area_bytes)
			put_u64(j, "area_bytes", ring->area_bytes);
		put_u64(j, "records", ring->n_records);
		put_u64(j, "drained_bytes", ring->n_bytes);
		put_u64(j, "lost", ring->n_lost);
		seam_json_close(j);
	}
	seam_json_close(j);
}

static void put_manifest(FILE *out, const struct seam_manifest *m)
{
	struct seam_json j = seam_json_make(out, true);

	seam_json_open(&j, NULL, '{');
	seam_json_string(&j, "schema", SCHEMA);
	put_members(&j, m);
	put_stacks(&j, &m->stacks);
	put_ties(&j, m);
	put_triggers(&j, m);
	put_by_event(&j, m);
	put_rings(&j, m);
	seam_json_close(&j);
}

int seam_manifest_write(int fd, const struct seam_manifest *m,
			struct seam_err *err)
{
	int copy = dup(fd);
	FILE *out = copy < 0 ? NULL : fdopen(copy, "w");
	bool failed;

	if (!out) {
		int code = errno;

		if (copy >= 0)
			close(copy);
		return seam_err_set(err, -code, "cannot write 'meta.json': "
				    "%s", strerror(code));
	}
	rewind(out);
	put_manifest(out, m);
	failed = ferror(out);
	errno = failed ? EIO : 0;
	/* the descriptors share their position: the end of what was written */
	if (fclose(out) != 0 || failed ||
	    ftruncate(fd, lseek(fd, 0, SEEK_CUR)) < 0)
		return seam_err_set(err, errno ? -errno : -EIO,
				    "cannot write 'meta.json': %s",
				    strerror(errno ? errno : EIO));
	return 0;
}

static const char *text_of(const json_t *value)
{
	const char *text = json_string_value(value);

	return text ? text : "";
}

/* An array on the heap, of strings that belong to @array. */
static const char *const *read_strings(const json_t *array, size_t *n)
{
	const char **items = calloc(json_array_size(array) + 1,
				    sizeof(*items));

	*n = 0;
	for (size_t i = 0; items && i < json_array_size(array); i++) {
		const char *text =
			json_string_value(json_array_get(array, i));

		if (text)
			items[(*n)++] = text;
	}
	return items;
}

static uint64_t read_count(const json_t *object, const char *name)
{
	json_int_t count = json_integer_value(json_object_get(object, name));

	return count < 0 ? 0 : (uint64_t)count;
}

/* Ends of a later version are ignored. */
static void read_stacks(struct seam_stack_counts *stacks, const json_t *object)
{
	const json_t *ended = json_object_get(object, "ended");
	const json_t *frames = json_object_get(object, "frames");
	const json_t *files = json_object_get(object, "files");

	for (unsigned int i = 0; i < SEAM_STACK_N_ENDS; i++)
		stacks->n_ended[i] = read_count(ended, seam_stack_end_key(i));
	for (unsigned int i = 0; i < SEAM_STACK_N_QUALITIES; i++)
		stacks->n_frames[i] =
			read_count(frames, seam_stack_quality_key(i));
	for (size_t i = 0; i < SEAM_ARRAY_SIZE(stack_members); i++)
		*(uint64_t *)((char *)stacks + stack_members[i].offset) =
			read_count(object, stack_members[i].name);
	for (size_t i = 0; i < json_array_size(files) &&
	     i < SEAM_STACK_MAX_MODULES; i++) {
		const json_t *file = json_array_get(files, i);
		enum seam_stack_end end = seam_stack_end_parse(
			text_of(json_object_get(file, "end")));

		if (end != SEAM_STACK_N_ENDS)
			seam_stack_counts_add_module(stacks, end,
				text_of(json_object_get(file, "path")),
				read_count(file, "stacks"));
	}
}

/* Without memory there are none. */
static void read_triggers(struct seam_manifest *m, const json_t *array)
{
	size_t n = json_array_size(array);
	struct seam_manifest_trigger *items;

	if (n > SEAM_MANIFEST_MAX_TRIGGERS)
		n = SEAM_MANIFEST_MAX_TRIGGERS;
	items = n ? calloc(n, sizeof(*items)) : NULL;
	m->triggers = items;
	m->n_triggers = items ? n : 0;
	for (size_t i = 0; i < m->n_triggers; i++) {
		const json_t *object = json_array_get(array, i);

		items[i].text = text_of(json_object_get(object, "trigger"));
		for (size_t k = 0; k < SEAM_ARRAY_SIZE(trigger_members); k++)
			*(uint64_t *)((char *)&items[i] +
				      trigger_members[k].offset) =
				read_count(object, trigger_members[k].name);
	}
}

static void read_member(struct seam_manifest *m, const struct member *row,
			const json_t *value)
{
	void *at = (char *)m + row->offset;
	size_t *n = (void *)((char *)m + row->n_offset);
	json_int_t count = json_integer_value(value);

	switch (row->type) {
	case TEXT: *(const char **)at = text_of(value); break;
	case FLAG: *(bool *)at = json_is_true(value); break;
	case COUNT: *(uint64_t *)at = count < 0 ? 0 : (uint64_t)count; break;
	case ADDR:
		*(uint64_t *)at = strtoull(text_of(value), NULL, 16);
		break;
	case CLOCK:
		*(bool *)at = strcmp(text_of(value), "perf") == 0;
		break;
	case BUILD_ID:
		*n = seam_text_unhex(at, SEAM_MANIFEST_BUILD_ID, text_of(value),
				     strlen(text_of(value)));
		break;
	case STRINGS:
		*(const char *const **)at = read_strings(value, n);
		break;
	}
}

static void read_members(struct seam_manifest *m, const json_t *root)
{
	for (size_t i = 0; i < SEAM_ARRAY_SIZE(members); i++) {
		const struct member *row = &members[i];
		const json_t *object = row->section ?
			json_object_get(root, row->section) : root;

		read_member(m, row, json_object_get(object, row->name));
	}
}

static const char *schema_of(const json_t *root)
{
	return text_of(json_object_get(root, "schema"));
}

/* NULL with -EBADMSG or -ENOMEM in *@code. */
static json_t *parse(struct seam_bytes json, int *code, struct seam_err *err)
{
	json_error_t problem;
	json_t *root = json_loadb((const char *)json.data, json.size, 0,
				  &problem);

	if (root)
		return root;
	*code = json_error_code(&problem) == json_error_out_of_memory ?
		seam_err_no_memory(err) :
		seam_err_set(err, -EBADMSG, "not JSON: line %d: %s",
			     problem.line, problem.text);
	return NULL;
}

int seam_manifest_check(struct seam_bytes json, struct seam_err *err)
{
	int r = 0;
	json_t *root = parse(json, &r, err);

	if (!root)
		return r;
	if (strncmp(schema_of(root), SCHEMA_FAMILY, strlen(SCHEMA_FAMILY)) != 0)
		r = seam_err_set(err, -EBADMSG, "its schema is not '"
				 SCHEMA_FAMILY "...'");
	json_decref(root);
	return r;
}

int seam_manifest_read(struct seam_manifest *m, struct seam_bytes json,
		       struct seam_err *err)
{
	int r = 0;
	json_t *root = parse(json, &r, err);

	*m = (struct seam_manifest) { 0 };
	if (!root)
		return r;
	if (strcmp(schema_of(root), SCHEMA) != 0) {
		json_decref(root);
		return seam_err_set(err, -ENOTSUP, "its schema is not '"
				    SCHEMA "'");
	}
	m->owner = root;
	read_members(m, root);
	read_stacks(&m->stacks, json_object_get(root, "stacks"));
	read_triggers(m, json_object_get(root, "triggers"));
	return 0;
}

/* "12.3 ms" */
static void describe_time(char *buf, size_t cap, uint64_t ns)
{
	if (ns < 1000)
		snprintf(buf, cap, "%" PRIu64 " ns", ns);
	else if (ns < 1000000)
		snprintf(buf, cap, "%.1f us", (double)ns / 1e3);
	else if (ns < 1000000000)
		snprintf(buf, cap, "%.1f ms", (double)ns / 1e6);
	else
		snprintf(buf, cap, "%.2f s", (double)ns / 1e9);
}

void seam_manifest_trigger_describe(char *buf, size_t cap,
				    const struct seam_manifest_trigger *trigger,
				    uint64_t start_ns)
{
	char text[256], took[32];
	bool has_length = trigger->duration_ns > 0;
	uint64_t after_ns = trigger->time_ns > start_ns ?
			    trigger->time_ns - start_ns : 0;

	seam_text_copy(text, sizeof(text), trigger->text, SEAM_TEXT_TERMINAL);
	describe_time(took, sizeof(took), trigger->duration_ns);
	snprintf(buf, cap, "trigger '%s': %s%sthread %" PRIu64 ", %.3f s after "
		 "the start", text, has_length ? took : "",
		 has_length ? " in " : "", trigger->tid,
		 (double)after_ns / 1e9);
}

void seam_manifest_fini(struct seam_manifest *m)
{
	if (m->owner) {
		json_decref(m->owner);
		free((void *)(uintptr_t)m->words);
		free((void *)(uintptr_t)m->events);
		free((void *)(uintptr_t)m->left_out);
		free((void *)(uintptr_t)m->triggers);
	}
	*m = (struct seam_manifest) { 0 };
}
