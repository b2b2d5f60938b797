/* SPDX-License-Identifier: MIT */
/*
 * manifest.c - write meta.json; the format is in manifest.h
 *
 * Programs that write their own bundles use it: no libjansson here.
 */
#include "wire/manifest_members.h"

#include <errno.h>
#include <inttypes.h>
#include <unistd.h>

#include "base/json.h"

const struct seam_meta_member seam_meta_members[] = {
#define MEMBER(section, name, type, member) \
	{ section, name, SEAM_META_##type, \
	  offsetof(struct seam_manifest, member), 0 }
#define SIZED(section, name, type, member, n_member) \
	{ section, name, SEAM_META_##type, \
	  offsetof(struct seam_manifest, member), \
	  offsetof(struct seam_manifest, n_member) }
	MEMBER(NULL, "version", TEXT, version),
	MEMBER(NULL, "complete", FLAG, complete),
	MEMBER(NULL, "overwrite", FLAG, overwrite),
	MEMBER(NULL, "snapshots", FLAG, snapshots),
	SIZED(NULL, "command", STRINGS, words, n_words),
	MEMBER("host", "name", TEXT, host),
	MEMBER("host", "release", TEXT, release),
	MEMBER("host", "arch", TEXT, arch),
	MEMBER("host", "boot_id", TEXT, boot_id),
	SIZED("kernel", "build_id", HEX, kernel_build_id,
	      kernel_build_id_size),
	MEMBER("kernel", "text", ADDR, kernel_text_addr),
	SIZED("vdso", "build_id", HEX, vdso_build_id, vdso_build_id_size),
	MEMBER(NULL, "clock", CLOCK, kernel_clock),
	MEMBER("start", "wall_ns", COUNT, start_wall_ns),
	MEMBER("start", "monotonic_ns", COUNT, start_ns),
	MEMBER(NULL, "duration_ns", COUNT, duration_ns),
	SIZED(NULL, "events", STRINGS, events, n_events),
	SIZED(NULL, "left_out", STRINGS, left_out, n_left_out),
	MEMBER(NULL, "samples", COUNT, n_samples),
	{ 0 }
#undef MEMBER
#undef SIZED
};

static uint64_t number_of(const void *record, size_t offset)
{
	return *(const uint64_t *)((const char *)record + offset);
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

static void put_member(struct seam_json *j, const struct seam_meta_member *row,
		       const struct seam_manifest *m)
{
	const void *at = (const char *)m + row->offset;
	const size_t *n = (const void *)((const char *)m + row->n_offset);

	switch (row->type) {
	case SEAM_META_TEXT:
		seam_json_string(j, row->name, *(const char *const *)at);
		break;
	case SEAM_META_FLAG:
		seam_json_bool(j, row->name, *(const bool *)at);
		break;
	case SEAM_META_COUNT:
		put_u64(j, row->name, *(const uint64_t *)at);
		break;
	case SEAM_META_ADDR:
		put_addr(j, row->name, *(const uint64_t *)at);
		break;
	case SEAM_META_CLOCK:
		seam_json_string(j, row->name, *(const bool *)at ? "perf" :
				 "CLOCK_MONOTONIC");
		break;
	case SEAM_META_HEX:
		seam_json_hex(j, row->name, (struct seam_bytes) { at, *n });
		break;
	case SEAM_META_STRINGS:
		put_strings(j, row->name, *(const char *const *const *)at, *n);
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

static void put_members(struct seam_json *j, const struct seam_manifest *m)
{
	const struct seam_meta_member *row = seam_meta_members;
	const char *section = NULL;

	for (; row->name; row++) {
		change_section(j, section, row->section);
		section = row->section;
		put_member(j, row, m);
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

const struct seam_meta_number seam_meta_stacks[] = {
#define STACKS(name, member) \
	{ name, offsetof(struct seam_stack_counts, member) }
	STACKS("empty", n_empty),
	STACKS("of_32_bit", n_32_bit),
	STACKS("kernel_cut", n_kernel_cut),
	STACKS("jvm", n_jvm),
	STACKS("dump_bytes", dump_bytes),
	{ 0 }
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
	for (const struct seam_meta_number *row = seam_meta_stacks;
	     row->name; row++)
		put_u64(j, row->name, number_of(stacks, row->offset));
	put_stack_files(j, stacks);
	seam_json_close(j);
}

const struct seam_meta_number seam_meta_triggers[] = {
#define TRIGGER(name, member) \
	{ name, offsetof(struct seam_manifest_trigger, member) }
	TRIGGER("pid", pid),
	TRIGGER("tid", tid),
	TRIGGER("tsc", tsc),
	TRIGGER("time_ns", time_ns),
	TRIGGER("duration_ns", duration_ns),
	TRIGGER("function", function),
	{ 0 }
#undef TRIGGER
};

static void put_trigger(struct seam_json *j,
			const struct seam_manifest_trigger *trigger)
{
	seam_json_open(j, NULL, '{');
	seam_json_string(j, "trigger", trigger->text);
	for (const struct seam_meta_number *row = seam_meta_triggers;
	     row->name; row++)
		if (number_of(trigger, row->offset))
			put_u64(j, row->name, number_of(trigger, row->offset));
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

static void put_files(struct seam_json *j, const struct seam_manifest *m)
{
	if (!m->n_files)
		return;
	seam_json_open(j, "files", '[');
	for (size_t i = 0; i < m->n_files; i++) {
		seam_json_open(j, NULL, '{');
		seam_json_string(j, "path", m->files[i].path);
		put_u64(j, "inode", m->files[i].ino);
		put_addr(j, "contents", m->files[i].content_id);
		seam_json_close(j);
	}
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
	seam_json_string(&j, "schema", SEAM_META_SCHEMA);
	put_members(&j, m);
	put_counts(&j, &m->counts);
	put_stacks(&j, &m->stacks);
	put_ties(&j, m);
	put_triggers(&j, m);
	put_files(&j, m);
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
