/* SPDX-License-Identifier: MIT */
/* jit_sources.c - find, validate, add; the contract is in jit_sources.h */
#include "model/jit/jit_sources.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include "base/text.h"

static void free_sources(void *object)
{
	struct seam_jit_sources *sources = object;

	seam_jit_code_free(sources->code);
	for (size_t i = 0; i < sources->files.n; i++)
		seam_file_close(&sources->files.items[i].file);
	free(sources->files.items);
	seam_strings_fini(&sources->tried);
	seam_pair_map_fini(&sources->announced);
	free(sources);
}

struct seam_jit_sources *
seam_jit_sources_new(struct seam_profile *profile,
		     const struct seam_jit_places *places)
{
	struct seam_jit_sources *sources = calloc(1, sizeof(*sources));

	if (!sources || seam_profile_own(profile, sources, free_sources))
		return NULL;
	sources->profile = profile;
	sources->places = *places;
	sources->code = seam_jit_code_new();
	profile->jit = sources;
	return sources->code ? sources : NULL;
}

/* Whether this file of this process has not been tried yet. */
static bool is_new(struct seam_jit_sources *sources, int32_t pid,
		   const char *path)
{
	size_t n = sources->tried.texts.n;
	char key[4200];

	snprintf(key, sizeof(key), "%" PRId32 " %s", pid, path);
	seam_strings_put(&sources->tried, key);
	return sources->tried.texts.n > n;
}

/* A note of why a file was rejected; none where there is no file. */
static void note_rejected(struct seam_jit_sources *sources, int32_t pid,
			  int why, const struct seam_err *err)
{
	if (why == -ENOENT || why == -ENOMEM)
		return;
	for (int i = 0; i < err->n_causes; i++)
		seam_profile_note(sources->profile,
				  "code of process %" PRId32 " not used: %s",
				  pid, err->cause[i]);
}

/* A map, with the times of its lines unless another clock was recorded. */
static int add_map(struct seam_jit_sources *sources, int32_t pid,
		   const char *path, struct seam_bytes bytes,
		   struct seam_err *err)
{
	struct seam_file times = { 0 };
	int r;

	if (!sources->is_untimed)
		seam_jit_find_times(path, &times);
	r = seam_jit_code_add_map(sources->code, pid, bytes, times.bytes, err);
	seam_file_close(&times);
	return r;
}

static int add(struct seam_jit_sources *sources, int32_t pid,
	       enum seam_jit_kind kind, const char *path,
	       struct seam_file *file)
{
	struct seam_err err = { 0 };
	int r;

	if (kind == SEAM_JIT_MAP)
		r = add_map(sources, pid, path, file->bytes, &err);
	else
		r = seam_jit_code_add_dump(sources->code, file->bytes,
			&(struct seam_jit_code_options) {
				.pid = pid, .first_ns = sources->first_ns,
				.last_ns = sources->last_ns,
				.is_untimed = sources->is_untimed,
			}, &err);
	/* Maps are copied; dumps are borrowed until the code is freed. */
	if (r == 0 && SEAM_ARRAY_ADD(&sources->files,
		(struct seam_jit_source_file) {
			.file = *file, .pid = pid,
			.path = seam_strings_put(&sources->profile->strings,
						 path),
		}))
		return 0;
	seam_file_close(file);
	note_rejected(sources, pid, r, &err);
	return r == -ENOMEM || r == 0 ? -ENOMEM : 0;
}

bool seam_jit_sources_lack(struct seam_jit_sources *sources, int32_t pid)
{
	const uint32_t *is_absent = seam_pair_map_find(&sources->announced,
						       (uint32_t)pid, 0);

	return is_absent && *is_absent;
}

bool seam_jit_sources_announced(struct seam_jit_sources *sources, int32_t pid)
{
	return seam_pair_map_find(&sources->announced, (uint32_t)pid, 0);
}

static int find(struct seam_jit_sources *sources,
		const struct seam_jit_places *places,
		const struct seam_jit_owner *owner, enum seam_jit_kind kind,
		const char *path)
{
	struct seam_err err = { 0 };
	struct seam_file file;
	char found[4096] = "=";		/* no path begins with it */
	int r = seam_jit_find(places, owner, kind, path, &file, found + 1,
			      sizeof(found) - 1, &err);

	/* Two markers of a process may lead to the same file. */
	if (r == 0 && !is_new(sources, owner->pid, found)) {
		seam_file_close(&file);
		return 0;
	}
	if (r == 0)
		return add(sources, owner->pid, kind, found + 1, &file);
	/* A map may not exist; a dump was announced by its marker. */
	if (r == -ENOENT && path) {
		*seam_pair_map_find(&sources->announced, (uint32_t)owner->pid,
				    0) = true;
		seam_profile_note(sources->profile, "the jitdump of process %"
				  PRId32 " was not found: '%s'; --jit says "
				  "where it is", owner->pid, path);
		return 0;
	}
	note_rejected(sources, owner->pid, r, &err);
	return r == -ENOMEM ? r : 0;
}

/* The dump file of a process that also streamed one to the recorder. */
static int find_second(struct seam_jit_sources *sources,
		       const struct seam_jit_owner *owner)
{
	struct seam_jit_places places = sources->places;

	if (!places.bundle || !is_new(sources, owner->pid, "second"))
		return 0;
	places.is_second = true;
	return find(sources, &places, owner, SEAM_JIT_DUMP, NULL);
}

/* A recording has the pids of an owner, but not its user or start time. */
static struct seam_jit_owner owner_of(int32_t pid, int32_t inner_pid)
{
	return (struct seam_jit_owner) {
		.pid = pid, .inner_pid = inner_pid, .uid = (uid_t)-1,
		.root = -1,
	};
}

int seam_jit_sources_mapped(struct seam_jit_sources *sources, int32_t pid,
			    const char *path)
{
	struct seam_jit_owner owner = owner_of(pid, 0);
	int r;

	if (!seam_jit_marker(path, &owner.inner_pid) ||
	    !is_new(sources, pid, path))
		return 0;
	if (!seam_jit_sources_announced(sources, pid) &&
	    seam_pair_map_put(&sources->announced, (uint32_t)pid, 0, false))
		return -ENOMEM;
	r = find(sources, &sources->places, &owner, SEAM_JIT_DUMP, path);
	return r ? r : find_second(sources, &owner);
}

int seam_jit_sources_anonymous(struct seam_jit_sources *sources, int32_t pid)
{
	struct seam_jit_owner owner = owner_of(pid, 0);

	if (!is_new(sources, pid, "map"))
		return 0;
	return find(sources, &sources->places, &owner, SEAM_JIT_MAP, NULL);
}

static void note(void *context, int32_t pid, const char *text, uint64_t count)
{
	struct seam_profile *profile = context;
	void (*put)(struct seam_profile *, const char *, ...) =
		seam_jit_code_is_corrected(text) ? seam_profile_detail :
		seam_profile_note;
	char shown[200];

	put(profile, "JIT code of process %" PRId32 ": %s: %" PRIu64, pid,
	    seam_text_copy(shown, sizeof(shown), text, SEAM_TEXT_TERMINAL),
	    count);
}

int seam_jit_sources_seal(struct seam_jit_sources *sources)
{
	if (seam_jit_code_index(sources->code))
		return -ENOMEM;
	seam_jit_code_notes(sources->code, note, sources->profile);
	return 0;
}
