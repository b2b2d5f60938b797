/* SPDX-License-Identifier: MIT */
/* manifest.c - meta.json; the format is in manifest.h */
#include "wire/manifest.h"

#include "base/json.h"

#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdlib.h>
#include <unistd.h>

#define SCHEMA_FAMILY "seam.bundle/"
#define SCHEMA SCHEMA_FAMILY "1"

static void put_strings(struct seam_json *j, const char *key,
			const char *const *items, size_t n)
{
	seam_json_open(j, key, '[');
	for (size_t i = 0; i < n; i++)
		seam_json_string(j, NULL, items[i]);
	seam_json_close(j);
}

/* Readers have 63 bits, and one number beyond would cost them all. */
static void put_u64(struct seam_json *j, const char *key, uint64_t value)
{
	seam_json_u64(j, key, value < INT64_MAX ? value : INT64_MAX);
}

static void put_host(struct seam_json *j, const struct seam_manifest *m)
{
	char addr[32];

	seam_json_open(j, "host", '{');
	seam_json_string(j, "name", m->host);
	seam_json_string(j, "release", m->release);
	seam_json_string(j, "arch", m->arch);
	seam_json_string(j, "boot_id", m->boot_id);
	seam_json_close(j);
	snprintf(addr, sizeof(addr), "0x%" PRIx64, m->kernel_text_addr);
	seam_json_open(j, "kernel", '{');
	seam_json_hex(j, "build_id", (struct seam_bytes) {
		m->kernel_build_id, m->kernel_build_id_size });
	seam_json_string(j, "text", addr);
	seam_json_close(j);
	seam_json_open(j, "vdso", '{');
	seam_json_hex(j, "build_id", (struct seam_bytes) {
		m->vdso_build_id, m->vdso_build_id_size });
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

static void put_times(struct seam_json *j, const struct seam_manifest *m)
{
	seam_json_string(j, "clock", m->kernel_clock ? "perf" :
			 "CLOCK_MONOTONIC");
	seam_json_open(j, "start", '{');
	put_u64(j, "wall_ns", m->start_wall_ns);
	put_u64(j, "monotonic_ns", m->start_ns);
	seam_json_close(j);
	put_u64(j, "duration_ns", m->duration_ns);
}

static void put_jit(struct seam_json *j, const struct seam_manifest *m)
{
	if (!m->n_jit_streams && !m->n_jit_lost && !m->n_jit_unproven)
		return;
	seam_json_open(j, "jit", '{');
	put_u64(j, "streams", m->n_jit_streams);
	put_u64(j, "records", m->n_jit);
	put_u64(j, "lost", m->n_jit_lost);
	put_u64(j, "refused_groups", m->n_jit_bad);
	put_u64(j, "refused_rings", m->n_jit_unproven);
	seam_json_close(j);
}

static void put_not_recorded(struct seam_json *j,
			     const struct seam_manifest *m)
{
	if (!m->n_refused && !m->n_stopped && !m->n_cpus_back &&
	    !m->n_cpus_new)
		return;
	seam_json_open(j, "not_recorded", '{');
	seam_json_u64(j, "threads", m->n_refused);
	seam_json_u64(j, "programs", m->n_stopped);
	seam_json_u64(j, "cpus", m->n_cpus_back);
	seam_json_u64(j, "cpu_ns", m->cpu_ns);
	seam_json_u64(j, "new_cpus", m->n_cpus_new);
	seam_json_close(j);
}

/* The members of "kept": written and read by this. */
static const struct {
	const char *name;
	size_t at;
} kept_members[] = {
#define KEPT(name, member) { name, offsetof(struct seam_manifest_kept, member) }
	KEPT("files", n_files), KEPT("file_bytes", n_file_bytes),
	KEPT("dumps", n_dumps), KEPT("dump_bytes", n_dump_bytes),
	KEPT("missed", n_missed), KEPT("refused", n_refused),
	KEPT("leased", n_leased), KEPT("stuck", n_stuck),
	KEPT("too_large", n_too_large), KEPT("too_many", n_too_many),
	KEPT("not_written", n_unwritten), KEPT("interrupted", n_interrupted),
#undef KEPT
};

static void put_kept(struct seam_json *j, const struct seam_manifest_kept *kept)
{
	static const struct seam_manifest_kept none;

	if (memcmp(kept, &none, sizeof(none)) == 0)
		return;
	seam_json_open(j, "kept", '{');
	for (size_t i = 0; i < SEAM_ARRAY_SIZE(kept_members); i++)
		seam_json_u64(j, kept_members[i].name, *(const uint64_t *)
			      ((const char *)kept + kept_members[i].at));
	seam_json_close(j);
}

static void put_counts(struct seam_json *j, const struct seam_manifest *m)
{
	put_u64(j, "samples", m->n_samples);
	put_u64(j, "throttled", m->n_throttled);
	seam_json_open(j, "lost", '{');
	put_u64(j, "ring_full", m->n_lost);
	put_u64(j, "paused", m->n_paused);
	put_u64(j, "not_written", m->n_unwritten);
	put_u64(j, "damaged_bytes", m->n_bad_bytes);
	seam_json_close(j);
	seam_json_open(j, "lost_by_event", '[');
	for (size_t i = 0; i < m->n_by_event; i++) {
		seam_json_open(j, NULL, '{');
		seam_json_string(j, "event", m->by_event[i].name);
		put_u64(j, "samples", m->by_event[i].n_samples);
		put_u64(j, "lost", m->by_event[i].n_lost);
		seam_json_close(j);
	}
	seam_json_close(j);
	if (m->n_area_bytes || m->n_truncated || m->n_partial ||
	    m->n_collision) {
		seam_json_open(j, "areas", '{');
		put_u64(j, "bytes", m->n_area_bytes);
		put_u64(j, "truncated", m->n_truncated);
		put_u64(j, "partial", m->n_partial);
		put_u64(j, "collision", m->n_collision);
		seam_json_close(j);
	}
	put_jit(j, m);
	put_not_recorded(j, m);
	put_kept(j, &m->kept);
	if (!m->n_late && !m->n_unseen)
		return;
	seam_json_open(j, "late", '{');
	put_u64(j, "threads", m->n_late);
	put_u64(j, "ns", m->late_ns);
	put_u64(j, "longest_ns", m->longest_late_ns);
	put_u64(j, "unseen_threads", m->n_unseen);
	seam_json_close(j);
}

static void put_manifest(FILE *out, const struct seam_manifest *m)
{
	struct seam_json j = seam_json_make(out, true);

	seam_json_open(&j, NULL, '{');
	seam_json_string(&j, "schema", SCHEMA);
	seam_json_string(&j, "version", m->version);
	seam_json_bool(&j, "complete", m->complete);
	seam_json_bool(&j, "overwrite", m->overwrite);
	seam_json_bool(&j, "snapshots", m->snapshots);
	put_strings(&j, "command", m->words, m->n_words);
	put_host(&j, m);
	put_times(&j, m);
	put_strings(&j, "events", m->events, m->n_events);
	put_strings(&j, "left_out", m->left_out, m->n_left_out);
	put_counts(&j, m);
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

static const char *string_of(const json_t *object, const char *key)
{
	const char *text = json_string_value(json_object_get(object, key));

	return text ? text : "";
}

static uint64_t u64_of(const json_t *object, const char *key)
{
	json_int_t v = json_integer_value(json_object_get(object, key));

	return v < 0 ? 0 : (uint64_t)v;
}

static size_t read_build_id(const json_t *object, uint8_t *id)
{
	const char *text = string_of(object, "build_id");
	size_t n = strlen(text);

	if (n % 2 || n / 2 > SEAM_MANIFEST_BUILD_ID ||
	    strspn(text, "0123456789abcdef") != n)
		return 0;
	for (size_t i = 0; i < n / 2; i++) {
		char digits[3] = { text[2 * i], text[2 * i + 1] };

		id[i] = (uint8_t)strtoul(digits, NULL, 16);
	}
	return n / 2;
}

/* The strings of an array, in memory that the array itself lends: none. */
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

static void read_kept(struct seam_manifest_kept *kept, const json_t *from)
{
	for (size_t i = 0; i < SEAM_ARRAY_SIZE(kept_members); i++)
		*(uint64_t *)((char *)kept + kept_members[i].at) =
			u64_of(from, kept_members[i].name);
}

static void read_members(struct seam_manifest *m, const json_t *root)
{
	const json_t *host = json_object_get(root, "host");
	const json_t *kernel = json_object_get(root, "kernel");
	const json_t *start = json_object_get(root, "start");
	const json_t *lost = json_object_get(root, "lost");
	const json_t *late = json_object_get(root, "late");
	const json_t *jit = json_object_get(root, "jit");
	const json_t *areas = json_object_get(root, "areas");
	const json_t *missing = json_object_get(root, "not_recorded");

	m->version = string_of(root, "version");
	m->complete = json_is_true(json_object_get(root, "complete"));
	m->overwrite = json_is_true(json_object_get(root, "overwrite"));
	m->snapshots = json_is_true(json_object_get(root, "snapshots"));
	m->words = read_strings(json_object_get(root, "command"),
				&m->n_words);
	m->host = string_of(host, "name");
	m->release = string_of(host, "release");
	m->arch = string_of(host, "arch");
	m->boot_id = string_of(host, "boot_id");
	m->kernel_build_id_size = read_build_id(kernel, m->kernel_build_id);
	m->kernel_text_addr = strtoull(string_of(kernel, "text"), NULL, 16);
	m->vdso_build_id_size = read_build_id(json_object_get(root, "vdso"),
					      m->vdso_build_id);
	m->start_wall_ns = u64_of(start, "wall_ns");
	m->start_ns = u64_of(start, "monotonic_ns");
	m->duration_ns = u64_of(root, "duration_ns");
	m->events = read_strings(json_object_get(root, "events"),
				 &m->n_events);
	m->left_out = read_strings(json_object_get(root, "left_out"),
				   &m->n_left_out);
	m->n_samples = u64_of(root, "samples");
	m->n_throttled = u64_of(root, "throttled");
	m->n_lost = u64_of(lost, "ring_full");
	m->n_paused = u64_of(lost, "paused");
	m->n_unwritten = u64_of(lost, "not_written");
	m->n_bad_bytes = u64_of(lost, "damaged_bytes");
	m->kernel_clock = strcmp(string_of(root, "clock"), "perf") == 0;
	m->n_area_bytes = u64_of(areas, "bytes");
	m->n_truncated = u64_of(areas, "truncated");
	m->n_partial = u64_of(areas, "partial");
	m->n_collision = u64_of(areas, "collision");
	m->n_late = u64_of(late, "threads");
	m->late_ns = u64_of(late, "ns");
	m->longest_late_ns = u64_of(late, "longest_ns");
	m->n_unseen = u64_of(late, "unseen_threads");
	m->n_refused = u64_of(missing, "threads");
	m->n_stopped = u64_of(missing, "programs");
	m->n_cpus_back = u64_of(missing, "cpus");
	m->cpu_ns = u64_of(missing, "cpu_ns");
	m->n_cpus_new = u64_of(missing, "new_cpus");
	m->n_jit_streams = u64_of(jit, "streams");
	m->n_jit = u64_of(jit, "records");
	m->n_jit_lost = u64_of(jit, "lost");
	m->n_jit_bad = u64_of(jit, "refused_groups");
	m->n_jit_unproven = u64_of(jit, "refused_rings");
	read_kept(&m->kept, json_object_get(root, "kept"));
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
		seam_err_set(err, -ENOMEM, "out of memory") :
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
	if (strncmp(string_of(root, "schema"), SCHEMA_FAMILY,
		    strlen(SCHEMA_FAMILY)) != 0)
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
	if (strcmp(string_of(root, "schema"), SCHEMA) != 0) {
		json_decref(root);
		return seam_err_set(err, -ENOTSUP, "its schema is not '"
				    SCHEMA "'");
	}
	m->owner = root;
	read_members(m, root);
	return 0;
}

void seam_manifest_fini(struct seam_manifest *m)
{
	if (m->owner) {
		json_decref(m->owner);
		free((void *)(uintptr_t)m->words);
		free((void *)(uintptr_t)m->events);
		free((void *)(uintptr_t)m->left_out);
	}
	*m = (struct seam_manifest) { 0 };
}
