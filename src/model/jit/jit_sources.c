/* SPDX-License-Identifier: MIT */
/* jit_sources.c - found, judged, added; the contract is in jit_sources.h */
#include "model/jit/jit_sources.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include "base/text.h"

int seam_jit_sources_init(struct seam_jit_sources *sources,
			  struct seam_profile *profile,
			  const struct seam_jit_places *places)
{
	*sources = (struct seam_jit_sources) {
		.profile = profile, .code = seam_jit_code_new(),
		.places = *places,
	};
	return sources->code ? 0 : -ENOMEM;
}

void seam_jit_sources_fini(struct seam_jit_sources *sources)
{
	seam_jit_code_free(sources->code);
	for (size_t i = 0; i < sources->files.n; i++)
		seam_file_close(&sources->files.items[i]);
	free(sources->files.items);
	seam_strings_fini(&sources->tried);
	free(sources->announced.items);
	free(sources->absent.items);
	*sources = (struct seam_jit_sources) { 0 };
}

/* Whether this is the first time that this file of this process comes up. */
static bool is_new(struct seam_jit_sources *sources, int32_t pid,
		   const char *path)
{
	size_t n = sources->tried.texts.n;
	char key[4200];

	snprintf(key, sizeof(key), "%" PRId32 " %s", pid, path);
	seam_strings_put(&sources->tried, key);
	return sources->tried.texts.n > n;
}

/* A refusal is worth a note; that there is no such file is not. */
static void tell(struct seam_jit_sources *sources, int32_t pid, int why,
		 const struct seam_err *err)
{
	if (why == -ENOENT || why == -ENOMEM)
		return;
	for (int i = 0; i < err->n_causes; i++)
		seam_profile_note(sources->profile,
				  "code of process %" PRId32 " not used: %s",
				  pid, err->cause[i]);
}

/* A map with the times of its lines, where they are of this recording. */
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
	struct seam_file *slot;
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
	slot = r == 0 ? SEAM_ARRAY_PUSH(&sources->files) : NULL;
	if (slot) {
		*slot = *file;
		return 0;
	}
	seam_file_close(file);
	tell(sources, pid, r, &err);
	return r == -ENOMEM || r == 0 ? -ENOMEM : 0;
}

static int lack(struct seam_jit_sources *sources, int32_t pid,
		const char *path)
{
	int32_t *slot = SEAM_ARRAY_PUSH(&sources->absent);

	if (!slot)
		return -ENOMEM;
	*slot = pid;
	seam_profile_note(sources->profile, "the JIT's dump of process %"
			  PRId32 " is not here: '%s'; --jit says where it is",
			  pid, path);
	return 0;
}

bool seam_jit_sources_lack(const struct seam_jit_sources *sources,
			   int32_t pid)
{
	for (size_t i = 0; i < sources->absent.n; i++)
		if (sources->absent.items[i] == pid)
			return true;
	return false;
}

bool seam_jit_sources_announced(const struct seam_jit_sources *sources,
				int32_t pid)
{
	for (size_t i = 0; i < sources->announced.n; i++)
		if (sources->announced.items[i] == pid)
			return true;
	return false;
}

static int find(struct seam_jit_sources *sources,
		const struct seam_jit_owner *owner, enum seam_jit_kind kind,
		const char *path)
{
	struct seam_err err = { 0 };
	struct seam_file file;
	char found[4096] = "=";		/* no path begins with it */
	int r = seam_jit_find(&sources->places, owner, kind, path, &file,
			      found + 1, sizeof(found) - 1, &err);

	/* Two of one process may lead to the same file. */
	if (r == 0 && !is_new(sources, owner->pid, found)) {
		seam_file_close(&file);
		return 0;
	}
	if (r == 0)
		return add(sources, owner->pid, kind, found + 1, &file);
	/* A map is only likely; a dump was announced by its marker. */
	if (r == -ENOENT && kind == SEAM_JIT_DUMP)
		return lack(sources, owner->pid, path);
	tell(sources, owner->pid, r, &err);
	return r == -ENOMEM ? r : 0;
}

/* The file of a process that streamed a dump too. */
static int find_second(struct seam_jit_sources *sources,
		       const struct seam_jit_owner *owner)
{
	struct seam_jit_places places = sources->places;
	struct seam_err err = { 0 };
	struct seam_file file;
	char found[4096];
	int r;

	if (!places.bundle || !is_new(sources, owner->pid, "second"))
		return 0;
	places.is_second = true;
	r = seam_jit_find(&places, owner, SEAM_JIT_DUMP, NULL, &file, found,
			  sizeof(found), &err);
	if (r == 0)
		return add(sources, owner->pid, SEAM_JIT_DUMP, found, &file);
	tell(sources, owner->pid, r, &err);
	return r == -ENOMEM ? r : 0;
}

/* What a recording knows of an owner: its numbers, not its user or age. */
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

	int32_t *slot;

	if (!seam_jit_marker(path, &owner.inner_pid) ||
	    !is_new(sources, pid, path))
		return 0;
	slot = SEAM_ARRAY_PUSH(&sources->announced);
	if (!slot)
		return -ENOMEM;
	*slot = pid;
	r = find(sources, &owner, SEAM_JIT_DUMP, path);
	return r ? r : find_second(sources, &owner);
}

int seam_jit_sources_anonymous(struct seam_jit_sources *sources, int32_t pid)
{
	struct seam_jit_owner owner = owner_of(pid, 0);

	if (!is_new(sources, pid, "map"))
		return 0;
	return find(sources, &owner, SEAM_JIT_MAP, NULL);
}

static void note(void *context, int32_t pid, const char *text, uint64_t count)
{
	struct seam_profile *profile = context;
	void (*put)(struct seam_profile *, const char *, ...) =
		seam_jit_code_is_corrected(text) ? seam_profile_detail :
		seam_profile_note;
	char shown[200];

	put(profile, "JIT code of process %" PRId32 ": %s: %"
			  PRIu64, pid, seam_text_copy(shown, sizeof(shown),
			  text, SEAM_TEXT_TERMINAL), count);
}

int seam_jit_sources_seal(struct seam_jit_sources *sources)
{
	if (seam_jit_code_index(sources->code))
		return -ENOMEM;
	seam_jit_code_notes(sources->code, note, sources->profile);
	return 0;
}
