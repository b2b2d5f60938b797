/* SPDX-License-Identifier: MIT */
/* live_names.c - follow maps and dumps by their size; see live_names.h */
#include "model/live/live_names.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "wire/jit/jitdump.h"

#define MAX_FILE_BYTES ((uint64_t)64 << 20)
#define MAX_BYTES ((uint64_t)256 << 20)

struct seam_followed_names {
	int32_t pid;
	enum seam_jit_kind kind;
	struct seam_jit_owner owner;
	char *path;			/* of a dump, as it was mapped */
	char *found;			/* NULL: not yet */
	uint64_t ino, size_bytes;	/* when it was read last */
	uint64_t taken_bytes;		/* lines, or records up to a load */
};

int seam_live_names_init(struct seam_live_names *names,
			 struct seam_profile *profile)
{
	static const struct seam_jit_places places;

	names->sources = seam_jit_sources_new(profile, &places);
	return names->sources ? 0 : -ENOMEM;
}

static void forget(struct seam_followed_names *f)
{
	free(f->path);
	free(f->found);
}

void seam_live_names_fini(struct seam_live_names *names)
{
	for (size_t i = 0; i < names->files.n; i++)
		forget(&names->files.items[i]);
	free(names->files.items);
	*names = (struct seam_live_names) { 0 };
}

static bool is_followed(const struct seam_live_names *names, int32_t pid,
			enum seam_jit_kind kind)
{
	for (size_t i = 0; i < names->files.n; i++)
		if (names->files.items[i].pid == pid &&
		    names->files.items[i].kind == kind)
			return true;
	return false;
}

int seam_live_names_mapped(struct seam_live_names *names, int32_t pid,
			   const char *path, bool is_code)
{
	struct seam_followed_names f = { .pid = pid, .kind = SEAM_JIT_MAP };
	int32_t inner_pid;

	if (seam_jit_marker(path, &inner_pid))
		f.kind = SEAM_JIT_DUMP;
	else if (!is_code)
		return 0;
	if (!names->owner || names->files.n >= SEAM_LIVE_MAX_NAMES ||
	    is_followed(names, pid, f.kind) || !names->owner(pid, &f.owner))
		return 0;
	f.path = f.kind == SEAM_JIT_DUMP ? strdup(path) : NULL;
	if ((f.kind == SEAM_JIT_DUMP && !f.path) ||
	    !SEAM_ARRAY_ADD(&names->files, f)) {
		free(f.path);
		return -ENOMEM;
	}
	return 0;
}

int seam_live_names_forked(struct seam_live_names *names, int32_t parent,
			   int32_t child, uint64_t time_ns)
{
	size_t n = names->files.n;
	bool has_code = false;
	int r = 0;

	for (size_t i = 0; r == 0 && i < n; i++) {
		const char *path = names->files.items[i].path;

		if (names->files.items[i].pid != parent)
			continue;
		has_code = true;
		r = seam_live_names_mapped(names, child, path ? path : "",
					   true);
	}
	return r == 0 && has_code ? seam_jit_code_fork(names->sources->code,
						parent, child, time_ns) : r;
}

int seam_live_names_ended(struct seam_live_names *names, int32_t pid,
			  uint64_t time_ns)
{
	bool has_code = is_followed(names, pid, SEAM_JIT_MAP) ||
			is_followed(names, pid, SEAM_JIT_DUMP);
	size_t kept = 0;

	for (size_t i = 0; i < names->files.n; i++) {
		if (names->files.items[i].pid == pid)
			forget(&names->files.items[i]);
		else
			names->files.items[kept++] = names->files.items[i];
	}
	names->files.n = kept;
	return has_code ? seam_jit_code_exec(names->sources->code, pid,
					     time_ns) : 0;
}

/* Whether the file that was read is there, and has not changed its size. */
static bool is_known(const struct seam_followed_names *f)
{
	struct stat st;

	return f->found && stat(f->found, &st) == 0 && st.st_ino == f->ino &&
	       (uint64_t)st.st_size == f->size_bytes;
}

/* The bytes of a map that are new, up to the last whole line. */
static struct seam_bytes new_lines(struct seam_followed_names *f,
				   struct seam_bytes all)
{
	const uint8_t *end = memrchr(all.data, '\n', all.size);
	size_t n = end ? (size_t)(end + 1 - all.data) : 0;
	struct seam_bytes lines = { all.data, n };

	if (f->taken_bytes <= n)
		lines = (struct seam_bytes) {
			all.data + f->taken_bytes, n - f->taken_bytes,
		};
	f->taken_bytes = n;
	return lines;
}

/*
 * A dump of its own, of the records that are new, up to the last load: those
 * before a load, such as its lines, belong to it.  Empty: there is none; false:
 * no memory.
 */
static bool new_records(struct seam_followed_names *f, struct seam_bytes all,
			struct seam_file *out)
{
	struct seam_jitdump_reader reader;
	struct seam_jitdump_record record;
	size_t head, end = 0, at;
	uint8_t *bytes;

	*out = (struct seam_file) { 0 };
	if (seam_jitdump_begin(&reader, all, NULL))
		return true;
	head = reader.cursor.pos;
	at = f->taken_bytes > head && f->taken_bytes <= all.size ?
	     f->taken_bytes : head;
	bytes = malloc(head + all.size - at + 1);
	if (!bytes)
		return false;
	memcpy(bytes, all.data, head);
	memcpy(bytes + head, all.data + at, all.size - at);
	if (!seam_jitdump_begin(&reader, (struct seam_bytes) {
			bytes, head + all.size - at }, NULL))
		while (seam_jitdump_next(&reader, &record))
			if (record.id == SEAM_JITDUMP_LOAD ||
			    record.id == SEAM_JITDUMP_MOVE)
				end = reader.cursor.pos;
	if (end)
		out->bytes = (struct seam_bytes) { bytes, end };
	else
		free(bytes);
	f->taken_bytes = end ? at + end - head : at;
	return true;
}

/* The code points into a dump, and the number of a source is its file's. */
static int add(struct seam_live_names *names, struct seam_followed_names *f,
	       const struct seam_file *file)
{
	struct seam_jit_code *code = names->sources->code;
	struct seam_jit_source_file source = {
		.pid = f->pid, .path = seam_strings_put(
			&names->sources->profile->strings, f->found),
	};
	int r;

	if (source.path == SEAM_NONE ||
	    !SEAM_ARRAY_RESERVE(&names->sources->files, 1) ||
	    (f->kind == SEAM_JIT_DUMP &&
	     !new_records(f, file->bytes, &source.file)))
		return -ENOMEM;
	if (f->kind == SEAM_JIT_MAP)
		r = seam_jit_code_add_map(code, f->pid,
					  new_lines(f, file->bytes),
					  (struct seam_bytes) { 0 }, NULL);
	else
		r = !source.file.bytes.size ? -ENODATA :
		    seam_jit_code_add_dump(code, source.file.bytes,
			&(struct seam_jit_code_options) { .pid = f->pid },
			NULL);
	if (r) {
		seam_file_close(&source.file);
		return r == -ENOMEM ? r : 0;
	}
	names->sources->files.items[names->sources->files.n++] = source;
	return 0;
}

/* *@has_more: there are names that were not known. */
static int read_again(struct seam_live_names *names,
		      struct seam_followed_names *f, bool *has_more)
{
	const struct seam_jit_places places = { .max_bytes = MAX_FILE_BYTES };
	size_t n = seam_jit_code_count(names->sources->code);
	struct seam_file file;
	char found[4096];
	struct stat st;
	int r = seam_jit_find(&places, &f->owner, f->kind, f->path, &file,
			      found, sizeof(found), NULL);

	if (r < 0)
		return r == -ENOMEM ? r : 0;
	free(f->found);
	f->found = strdup(found);
	if (!f->found || stat(found, &st) < 0)
		st = (struct stat) { 0 };
	/* another file: from its begin */
	if (st.st_ino != f->ino || file.bytes.size < f->size_bytes)
		f->taken_bytes = f->size_bytes = 0;
	names->n_bytes += file.bytes.size - f->size_bytes;
	f->ino = st.st_ino;
	f->size_bytes = file.bytes.size;
	r = f->found ? add(names, f, &file) : -ENOMEM;
	seam_file_close(&file);
	*has_more = seam_jit_code_count(names->sources->code) > n;
	return r;
}

int seam_live_names_update(struct seam_live_names *names,
			   void (*changed)(void *context, int32_t pid),
			   void *context)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < names->files.n; i++) {
		struct seam_followed_names *f = &names->files.items[i];
		bool has_more = false;

		if (is_known(f) || names->n_bytes > MAX_BYTES)
			continue;
		r = read_again(names, f, &has_more);
		if (has_more)
			changed(context, f->pid);
	}
	return r;
}
