/* SPDX-License-Identifier: MIT */
/* manifest_read.c - read meta.json; the format is in manifest.h */
#include "wire/manifest_members.h"

#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdlib.h>

#include "base/text.h"

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

static void read_numbers(void *record, const struct seam_meta_number *row,
			 const json_t *object)
{
	for (; row->name; row++)
		*(uint64_t *)((char *)record + row->offset) =
			read_count(object, row->name);
}

/*
 * Ends of a later version are ignored.  Recordings of earlier ones have
 * "joined" stacks beside "ended", where these count as complete.
 */
static void read_stacks(struct seam_stack_counts *stacks, const json_t *object)
{
	const json_t *ended = json_object_get(object, "ended");
	const json_t *files = json_object_get(object, "files");
	uint64_t n_joined = read_count(object, "joined");
	uint64_t *complete = &stacks->n_ended[SEAM_STACK_COMPLETE];

	for (unsigned int i = 0; i < SEAM_STACK_N_ENDS; i++)
		stacks->n_ended[i] = read_count(ended, seam_stack_end_key(i));
	n_joined = n_joined < *complete ? n_joined : *complete;
	*complete -= n_joined;
	stacks->n_ended[SEAM_STACK_JOINED] += n_joined;
	read_numbers(stacks, seam_meta_stacks, object);
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
		read_numbers(&items[i], seam_meta_triggers, object);
	}
}

/* Those of which both clocks go on; without memory there are none. */
static void read_ties(struct seam_manifest *m, const json_t *array)
{
	size_t n = json_array_size(array);
	struct seam_tsc_tie *items;

	if (n > SEAM_MANIFEST_MAX_TIES)
		n = SEAM_MANIFEST_MAX_TIES;
	items = n ? calloc(n, sizeof(*items)) : NULL;
	m->ties = items;
	for (size_t i = 0; items && i < n; i++) {
		const json_t *pair = json_array_get(array, i);
		struct seam_tsc_tie tie = {
			(uint64_t)json_integer_value(json_array_get(pair, 0)),
			(uint64_t)json_integer_value(json_array_get(pair, 1)),
		};

		if (tie.tsc > INT64_MAX || tie.ns > INT64_MAX ||
		    (m->n_ties && (tie.tsc <= items[m->n_ties - 1].tsc ||
				   tie.ns <= items[m->n_ties - 1].ns)))
			continue;
		items[m->n_ties++] = tie;
	}
}

/* Without memory there are none. */
static void read_files(struct seam_manifest *m, const json_t *array)
{
	size_t n = json_array_size(array);
	struct seam_manifest_file *items;

	if (n > SEAM_MANIFEST_MAX_FILES)
		n = SEAM_MANIFEST_MAX_FILES;
	items = n ? calloc(n, sizeof(*items)) : NULL;
	m->files = items;
	m->n_files = items ? n : 0;
	for (size_t i = 0; i < m->n_files; i++) {
		const json_t *file = json_array_get(array, i);

		items[i].path = text_of(json_object_get(file, "path"));
		items[i].ino = read_count(file, "inode");
		items[i].content_id = strtoull(text_of(json_object_get(file,
			"contents")), NULL, 16);
	}
}

static void read_member(struct seam_manifest *m,
			const struct seam_meta_member *row, const json_t *value)
{
	void *at = (char *)m + row->offset;
	size_t *n = (void *)((char *)m + row->n_offset);
	json_int_t count = json_integer_value(value);

	switch (row->type) {
	case SEAM_META_TEXT:
		*(const char **)at = text_of(value);
		break;
	case SEAM_META_FLAG:
		*(bool *)at = json_is_true(value);
		break;
	case SEAM_META_COUNT:
		*(uint64_t *)at = count < 0 ? 0 : (uint64_t)count;
		break;
	case SEAM_META_ADDR:
		*(uint64_t *)at = strtoull(text_of(value), NULL, 16);
		break;
	case SEAM_META_CLOCK:
		*(bool *)at = strcmp(text_of(value), "perf") == 0;
		break;
	case SEAM_META_HEX:
		*n = seam_text_unhex(at, SEAM_MANIFEST_BUILD_ID, text_of(value),
				     strlen(text_of(value)));
		break;
	case SEAM_META_STRINGS:
		*(const char *const **)at = read_strings(value, n);
		break;
	}
}

static void read_members(struct seam_manifest *m, const json_t *root)
{
	const struct seam_meta_member *row = seam_meta_members;

	for (; row->name; row++) {
		const json_t *object = row->section ?
			json_object_get(root, row->section) : root;

		read_member(m, row, json_object_get(object, row->name));
	}
}

static void read_counts(struct seam_counts *counts, const json_t *root)
{
	for (size_t i = 0; i < SEAM_N_COUNTS; i++) {
		const struct seam_count_row *row = &seam_count_rows[i];

		counts->n[i] = read_count(row->section ?
			json_object_get(root, row->section) : root, row->key);
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
	if (strncmp(schema_of(root), SEAM_META_FAMILY, strlen(SEAM_META_FAMILY)) != 0)
		r = seam_err_set(err, -EBADMSG, "its schema is not '"
				 SEAM_META_FAMILY "...'");
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
	if (strcmp(schema_of(root), SEAM_META_SCHEMA) != 0) {
		json_decref(root);
		return seam_err_set(err, -ENOTSUP, "its schema is not '"
				    SEAM_META_SCHEMA "'");
	}
	m->owner = root;
	read_members(m, root);
	read_counts(&m->counts, root);
	read_stacks(&m->stacks, json_object_get(root, "stacks"));
	read_triggers(m, json_object_get(root, "triggers"));
	read_files(m, json_object_get(root, "files"));
	read_ties(m, json_object_get(json_object_get(root, "xray"), "ties"));
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

const char *seam_manifest_unended(const struct seam_manifest *manifest)
{
	return !manifest->owner || manifest->complete ? NULL :
	       "the recording was not ended: its recorder was killed, or "
	       "still runs";
}

void seam_manifest_fini(struct seam_manifest *m)
{
	if (m->owner) {
		json_decref(m->owner);
		free((void *)(uintptr_t)m->words);
		free((void *)(uintptr_t)m->events);
		free((void *)(uintptr_t)m->left_out);
		free((void *)(uintptr_t)m->triggers);
		free((void *)(uintptr_t)m->ties);
		free((void *)(uintptr_t)m->files);
	}
	*m = (struct seam_manifest) { 0 };
}
