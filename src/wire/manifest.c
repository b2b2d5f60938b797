/* SPDX-License-Identifier: MIT */
/* manifest.c - meta.json, written and read by one table; see manifest.h */
#include "wire/manifest.h"

#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/json.h"
#include "base/text.h"

#define FAMILY "seam.bundle/"
#define SCHEMA FAMILY "1"

/* -- members ------------------------------------------------------------ */

enum meta_type {
	TEXT,		/* const char * */
	FLAG,		/* bool */
	COUNT,		/* uint64_t */
	SOME,		/* the same; omitted where it is 0 */
	INDEX,		/* int; omitted where it is negative */
	ADDR,		/* uint64_t, as a string of hex digits */
	CLOCK,		/* bool: whether it is the kernel's own */
	HEX,		/* uint8_t [SEAM_MANIFEST_BUILD_ID], a size_t */
	STRINGS,	/* const char *const *, a size_t */
	LIST,		/* an array of structs, a size_t */
	SOME_LIST,	/* the same; omitted where it is empty */
};

/* A member; successive rows of one section are one object. */
struct meta_member {
	const char *section;	/* NULL: a member of the manifest itself */
	const char *name;
	enum meta_type type;
	size_t offset;
	size_t n_offset;	/* of the size or number */
	const struct meta_member *element;	/* of a list: its members */
	size_t element_bytes;
};

#define MEMBER(section, name, type, record, member) \
	{ section, name, type, offsetof(struct seam_##record, member), \
	  0, NULL, 0 }
#define SIZED(section, name, type, member, n_member) \
	{ section, name, type, offsetof(struct seam_manifest, member), \
	  offsetof(struct seam_manifest, n_member), NULL, 0 }
#define LISTED(name, type, members, member) \
	{ NULL, name, type, offsetof(struct seam_manifest, member), \
	  offsetof(struct seam_manifest, n_##member), members, \
	  sizeof(*((struct seam_manifest *)0)->member) }

/* Before the counts (counts.h). */
static const struct meta_member members[] = {
	MEMBER(NULL, "version", TEXT, manifest, version),
	MEMBER(NULL, "complete", FLAG, manifest, complete),
	MEMBER(NULL, "overwrite", FLAG, manifest, overwrite),
	MEMBER(NULL, "snapshots", FLAG, manifest, snapshots),
	SIZED(NULL, "command", STRINGS, words, n_words),
	MEMBER("host", "name", TEXT, manifest, host),
	MEMBER("host", "release", TEXT, manifest, release),
	MEMBER("host", "arch", TEXT, manifest, arch),
	MEMBER("host", "boot_id", TEXT, manifest, boot_id),
	SIZED("kernel", "build_id", HEX, kernel_build_id, kernel_build_id_size),
	MEMBER("kernel", "text", ADDR, manifest, kernel_text_addr),
	SIZED("vdso", "build_id", HEX, vdso_build_id, vdso_build_id_size),
	MEMBER(NULL, "clock", CLOCK, manifest, kernel_clock),
	MEMBER("start", "wall_ns", COUNT, manifest, start_wall_ns),
	MEMBER("start", "monotonic_ns", COUNT, manifest, start_ns),
	MEMBER(NULL, "duration_ns", COUNT, manifest, duration_ns),
	SIZED(NULL, "events", STRINGS, events, n_events),
	SIZED(NULL, "left_out", STRINGS, left_out, n_left_out),
	MEMBER(NULL, "samples", COUNT, manifest, n_samples),
	{ 0 }
};

/* Of "stacks", besides its tables. */
static const struct meta_member stack_numbers[] = {
	MEMBER(NULL, "empty", COUNT, stack_counts, n_empty),
	MEMBER(NULL, "of_32_bit", COUNT, stack_counts, n_32_bit),
	MEMBER(NULL, "kernel_cut", COUNT, stack_counts, n_kernel_cut),
	MEMBER(NULL, "jvm", COUNT, stack_counts, n_jvm),
	MEMBER(NULL, "dump_bytes", COUNT, stack_counts, dump_bytes),
	{ 0 }
};

static const struct meta_member trigger_members[] = {
	MEMBER(NULL, "trigger", TEXT, manifest_trigger, text),
	MEMBER(NULL, "pid", SOME, manifest_trigger, pid),
	MEMBER(NULL, "tid", SOME, manifest_trigger, tid),
	MEMBER(NULL, "tsc", SOME, manifest_trigger, tsc),
	MEMBER(NULL, "time_ns", SOME, manifest_trigger, time_ns),
	MEMBER(NULL, "duration_ns", SOME, manifest_trigger, duration_ns),
	MEMBER(NULL, "function", SOME, manifest_trigger, function),
	{ 0 }
};

static const struct meta_member file_members[] = {
	MEMBER(NULL, "path", TEXT, manifest_file, path),
	MEMBER(NULL, "inode", COUNT, manifest_file, ino),
	MEMBER(NULL, "contents", ADDR, manifest_file, content_id),
	{ 0 }
};

static const struct meta_member event_members[] = {
	MEMBER(NULL, "event", TEXT, manifest_event, name),
	MEMBER(NULL, "samples", COUNT, manifest_event, n_samples),
	MEMBER(NULL, "lost", COUNT, manifest_event, n_lost),
	{ 0 }
};

static const struct meta_member ring_members[] = {
	MEMBER(NULL, "cpu", INDEX, manifest_ring, cpu),
	MEMBER(NULL, "tid", INDEX, manifest_ring, tid),
	MEMBER(NULL, "kind", TEXT, manifest_ring, kind),
	MEMBER(NULL, "bytes", COUNT, manifest_ring, size_bytes),
	MEMBER(NULL, "area_bytes", SOME, manifest_ring, area_bytes),
	MEMBER(NULL, "records", COUNT, manifest_ring, n_records),
	MEMBER(NULL, "drained_bytes", COUNT, manifest_ring, n_bytes),
	MEMBER(NULL, "lost", COUNT, manifest_ring, n_lost),
	{ 0 }
};

/* After the counts. */
static const struct meta_member lists[] = {
	LISTED("triggers", SOME_LIST, trigger_members, triggers),
	LISTED("files", SOME_LIST, file_members, files),
	LISTED("lost_by_event", LIST, event_members, by_event),
	LISTED("rings", LIST, ring_members, rings),
	{ 0 }
};

/* -- write -------------------------------------------------------------- */

/* JSON readers have int64_t, and one number beyond fails the whole file. */
static void put_u64(struct seam_json *j, const char *key, uint64_t value)
{
	seam_json_u64(j, key, value < INT64_MAX ? value : INT64_MAX);
}

static void put_members(struct seam_json *j, const struct meta_member *row,
			const void *record);

static void put_list(struct seam_json *j, const struct meta_member *row,
		     const char *items, size_t n)
{
	if (!n && row->type == SOME_LIST)
		return;
	seam_json_open(j, row->name, '[');
	for (size_t i = 0; i < n; i++) {
		seam_json_open(j, NULL, '{');
		put_members(j, row->element, items + i * row->element_bytes);
		seam_json_close(j);
	}
	seam_json_close(j);
}

static void put_member(struct seam_json *j, const struct meta_member *row,
		       const void *record)
{
	const void *at = (const char *)record + row->offset;
	const size_t *n = (const void *)((const char *)record + row->n_offset);
	char text[32];

	switch (row->type) {
	case TEXT:
		seam_json_string(j, row->name, *(const char *const *)at);
		break;
	case FLAG:
		seam_json_bool(j, row->name, *(const bool *)at);
		break;
	case COUNT:
	case SOME:
		if (row->type == COUNT || *(const uint64_t *)at)
			put_u64(j, row->name, *(const uint64_t *)at);
		break;
	case INDEX:
		if (*(const int *)at >= 0)
			seam_json_i64(j, row->name, *(const int *)at);
		break;
	case ADDR:
		snprintf(text, sizeof(text), "0x%" PRIx64,
			 *(const uint64_t *)at);
		seam_json_string(j, row->name, text);
		break;
	case CLOCK:
		seam_json_string(j, row->name, *(const bool *)at ? "perf" :
				 "CLOCK_MONOTONIC");
		break;
	case HEX:
		seam_json_hex(j, row->name, (struct seam_bytes) { at, *n });
		break;
	case STRINGS:
		seam_json_open(j, row->name, '[');
		for (size_t i = 0; i < *n; i++)
			seam_json_string(j, NULL,
					 (*(const char *const *const *)at)[i]);
		seam_json_close(j);
		break;
	case LIST:
	case SOME_LIST:
		put_list(j, row, *(const char *const *)at, *n);
		break;
	}
}

/* Close the object @from and open @to; NULL: none. */
static void change_section(struct seam_json *j, const char *from,
			   const char *to)
{
	if (from && to && strcmp(from, to) == 0)
		return;
	if (from)
		seam_json_close(j);
	if (to)
		seam_json_open(j, to, '{');
}

static void put_members(struct seam_json *j, const struct meta_member *row,
			const void *record)
{
	const char *section = NULL;

	for (; row->name; row++) {
		change_section(j, section, row->section);
		section = row->section;
		put_member(j, row, record);
	}
	change_section(j, section, NULL);
}

/* Whether anything of @section was counted, or is always written. */
static bool has_counts(const struct seam_counts *counts, const char *section)
{
	if (!section)
		return true;
	for (size_t i = 0; i < SEAM_N_COUNTS; i++)
		if ((counts->n[i] || seam_count_rows[i].is_always_written) &&
		    seam_count_is_of(&seam_count_rows[i], section))
			return true;
	return false;
}

static void put_counts(struct seam_json *j, const struct seam_counts *counts)
{
	const char *section = NULL;

	for (size_t i = 0; i < SEAM_N_COUNTS; i++) {
		const struct seam_count_row *row = &seam_count_rows[i];

		if (!has_counts(counts, row->section))
			continue;
		change_section(j, section, row->section);
		section = row->section;
		put_u64(j, row->key, counts->n[i]);
	}
	change_section(j, section, NULL);
}

static void put_stacks(struct seam_json *j,
		       const struct seam_stack_counts *stacks)
{
	if (!seam_stack_counts_exist(stacks))
		return;
	seam_json_open(j, "stacks", '{');
	seam_json_open(j, "ended", '{');
	for (unsigned int i = 0; i < SEAM_STACK_N_ENDS; i++)
		put_u64(j, seam_stack_ends[i].key, stacks->n_ended[i]);
	seam_json_close(j);
	put_members(j, stack_numbers, stacks);
	seam_json_open(j, "files", '[');
	for (size_t i = 0; i < stacks->n_modules; i++) {
		const struct seam_stack_module *module = &stacks->modules[i];

		seam_json_open(j, NULL, '{');
		seam_json_string(j, "path", module->path);
		seam_json_string(j, "end", seam_stack_ends[module->end].key);
		put_u64(j, "stacks", module->n);
		seam_json_close(j);
	}
	seam_json_close(j);
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

static void put_manifest(FILE *out, const struct seam_manifest *m)
{
	struct seam_json j = seam_json_make(out, true);

	seam_json_open(&j, NULL, '{');
	seam_json_string(&j, "schema", SCHEMA);
	put_members(&j, members, m);
	put_counts(&j, &m->counts);
	put_stacks(&j, &m->stacks);
	put_ties(&j, m);
	put_members(&j, lists, m);
	seam_json_close(&j);
}

int seam_manifest_write(int fd, const struct seam_manifest *m,
			struct seam_err *err)
{
	int copy = dup(fd);
	FILE *out = copy < 0 ? NULL : fdopen(copy, "w");
	bool failed = !out;

	if (out) {
		rewind(out);
		put_manifest(out, m);
		failed = ferror(out);
		errno = failed ? EIO : 0;
		/* the descriptors share their position: the end of the file */
		failed |= fclose(out) != 0 ||
			  ftruncate(fd, lseek(fd, 0, SEEK_CUR)) < 0;
	} else if (copy >= 0) {
		close(copy);
	}
	return failed ? seam_err_errno(err, "cannot write 'meta.json'") : 0;
}

/* -- read --------------------------------------------------------------- */

static const char *text_of(const json_t *value)
{
	const char *text = json_string_value(value);

	return text ? text : "";
}

static uint64_t count_of(const json_t *value)
{
	json_int_t count = json_integer_value(value);

	return count < 0 ? 0 : (uint64_t)count;
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

static void read_members(void *record, const struct meta_member *row,
			 const json_t *root);

/* On the heap; without memory the list is empty. */
static void *read_list(const struct meta_member *row, const json_t *array,
		       size_t *n)
{
	char *items = calloc(json_array_size(array) + 1, row->element_bytes);

	*n = items ? json_array_size(array) : 0;
	for (size_t i = 0; i < *n; i++)
		read_members(items + i * row->element_bytes, row->element,
			     json_array_get(array, i));
	return items;
}

static void read_member(void *record, const struct meta_member *row,
			const json_t *value)
{
	void *at = (char *)record + row->offset;
	size_t *n = (void *)((char *)record + row->n_offset);

	switch (row->type) {
	case TEXT:
		*(const char **)at = text_of(value);
		break;
	case FLAG:
		*(bool *)at = json_is_true(value);
		break;
	case COUNT:
	case SOME:
		*(uint64_t *)at = count_of(value);
		break;
	case INDEX:
		*(int *)at = json_is_integer(value) ?
			     (int)json_integer_value(value) : -1;
		break;
	case ADDR:
		*(uint64_t *)at = strtoull(text_of(value), NULL, 16);
		break;
	case CLOCK:
		*(bool *)at = strcmp(text_of(value), "perf") == 0;
		break;
	case HEX:
		*n = seam_text_unhex(at, SEAM_MANIFEST_BUILD_ID, text_of(value),
				     strlen(text_of(value)));
		break;
	case STRINGS:
		*(const char *const **)at = read_strings(value, n);
		break;
	case LIST:
	case SOME_LIST:
		*(void **)at = read_list(row, value, n);
		break;
	}
}

/* Member @name of @section, which may be NULL. */
static const json_t *get(const json_t *root, const char *section,
			 const char *name)
{
	return json_object_get(section ? json_object_get(root, section) : root,
			       name);
}

static void read_members(void *record, const struct meta_member *row,
			 const json_t *root)
{
	for (; row->name; row++)
		read_member(record, row, get(root, row->section, row->name));
}

/*
 * Ends of a later version are ignored.  Recordings of earlier ones have
 * "joined" stacks beside "ended", where these count as complete.
 */
static void read_stacks(struct seam_stack_counts *stacks, const json_t *object)
{
	const json_t *files = json_object_get(object, "files");
	uint64_t n_joined = count_of(json_object_get(object, "joined"));
	uint64_t *complete = &stacks->n_ended[SEAM_STACK_COMPLETE];

	for (unsigned int i = 0; i < SEAM_STACK_N_ENDS; i++)
		stacks->n_ended[i] = count_of(get(object, "ended",
						  seam_stack_ends[i].key));
	n_joined = n_joined < *complete ? n_joined : *complete;
	*complete -= n_joined;
	stacks->n_ended[SEAM_STACK_JOINED] += n_joined;
	read_members(stacks, stack_numbers, object);
	for (size_t i = 0; i < json_array_size(files) &&
	     i < SEAM_STACK_MAX_MODULES; i++) {
		const json_t *file = json_array_get(files, i);
		enum seam_stack_end end = seam_stack_end_parse(
			text_of(json_object_get(file, "end")));

		if (end != SEAM_STACK_N_ENDS)
			seam_stack_counts_add_module(stacks, end,
				text_of(json_object_get(file, "path")),
				count_of(json_object_get(file, "stacks")));
	}
}

/* Those of which both clocks go on; without memory there are none. */
static void read_ties(struct seam_manifest *m, const json_t *array)
{
	struct seam_tsc_tie *items = calloc(json_array_size(array) + 1,
					    sizeof(*items));

	m->ties = items;
	for (size_t i = 0; items && i < json_array_size(array); i++) {
		const json_t *pair = json_array_get(array, i);
		struct seam_tsc_tie tie = {
			count_of(json_array_get(pair, 0)),
			count_of(json_array_get(pair, 1)),
		};

		if (!m->n_ties || (tie.tsc > items[m->n_ties - 1].tsc &&
				   tie.ns > items[m->n_ties - 1].ns))
			items[m->n_ties++] = tie;
	}
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
	if (strncmp(text_of(json_object_get(root, "schema")), FAMILY,
		    strlen(FAMILY)) != 0)
		r = seam_err_set(err, -EBADMSG, "its schema is not '"
				 FAMILY "...'");
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
	if (strcmp(text_of(json_object_get(root, "schema")), SCHEMA) != 0) {
		json_decref(root);
		return seam_err_set(err, -ENOTSUP, "its schema is not '" SCHEMA
				    "'");
	}
	m->owner = root;
	read_members(m, members, root);
	for (size_t i = 0; i < SEAM_N_COUNTS; i++)
		m->counts.n[i] = count_of(get(root, seam_count_rows[i].section,
					      seam_count_rows[i].key));
	read_stacks(&m->stacks, json_object_get(root, "stacks"));
	read_ties(m, get(root, "xray", "ties"));
	read_members(m, lists, root);
	return 0;
}

static void free_lists(struct seam_manifest *m, const struct meta_member *row)
{
	for (; row->name; row++)
		if (row->type >= STRINGS)
			free(*(void **)((char *)m + row->offset));
}

void seam_manifest_fini(struct seam_manifest *m)
{
	if (m->owner) {
		json_decref(m->owner);
		free_lists(m, members);
		free_lists(m, lists);
		free((void *)(uintptr_t)m->ties);
	}
	*m = (struct seam_manifest) { 0 };
}

/* -- for people --------------------------------------------------------- */

void seam_manifest_trigger_describe(char *buf, size_t cap,
				    const struct seam_manifest_trigger *trigger,
				    uint64_t start_ns)
{
	static const struct { double ns; const char *name; } units[] = {
		{ 1e9, "s" }, { 1e6, "ms" }, { 1e3, "us" }, { 1, "ns" },
	};
	char text[256], took[32] = "";
	uint64_t ns = trigger->duration_ns, i = 0;
	uint64_t after_ns = trigger->time_ns > start_ns ?
			    trigger->time_ns - start_ns : 0;

	while (i < 3 && (double)ns < units[i].ns)
		i++;
	if (ns)
		snprintf(took, sizeof(took), "%.*f %s in ", i == 0 ? 2 : i < 3,
			 (double)ns / units[i].ns, units[i].name);
	seam_text_copy(text, sizeof(text), trigger->text, SEAM_TEXT_TERMINAL);
	snprintf(buf, cap, "trigger '%s': %sthread %" PRIu64 ", %.3f s after "
		 "the start", text, took, trigger->tid, (double)after_ns / 1e9);
}

const char *seam_manifest_unended(const struct seam_manifest *manifest)
{
	return !manifest->owner || manifest->complete ? NULL :
	       "the recording was not ended: its recorder was killed, or "
	       "still runs";
}
