/* SPDX-License-Identifier: MIT */
/* keep_jit.c - see runtimes, hold their roots, copy at the end; keep_jit.h */
#include "record/keep_jit.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <unistd.h>

/* Each holds a descriptor; a build of thousands of JITs keeps the first. */
#define MAX_RUNTIMES 256

static bool is_anonymous(const char *path)
{
	return strcmp(path, "//anon") == 0 ||
	       strncmp(path, "[anon", 5) == 0 ||
	       strncmp(path, "/memfd:", 7) == 0 ||
	       strncmp(path, "/dev/zero", 9) == 0;
}

/* The runtime of @pid, begun if it is new; NULL when there is no room. */
static struct seam_keep_runtime *runtime_of(struct seam_keep_jit *jit,
					    int32_t pid)
{
	struct seam_keep_runtime *runtime;

	for (size_t i = jit->runtimes.n; i-- > 0;)
		if (jit->runtimes.items[i].owner.pid == pid)
			return &jit->runtimes.items[i];
	runtime = jit->runtimes.n < MAX_RUNTIMES ?
		  SEAM_ARRAY_PUSH(&jit->runtimes) : NULL;
	if (!runtime) {
		jit->n_too_many++;
		return NULL;
	}
	*runtime = (struct seam_keep_runtime) { 0 };
	if (!jit->maps && jit->bundle)
		jit->maps = seam_map_follow_start(jit->bundle);
	if (jit->maps)
		seam_map_follow_add(jit->maps, pid);
	/* A process that has ended is looked for in our own root. */
	seam_jit_owner_read(&runtime->owner, pid, NULL);
	return runtime;
}

void seam_keep_jit_see(struct seam_keep_jit *jit, int32_t pid,
		       const char *path)
{
	struct seam_keep_runtime *runtime;
	int32_t inner_pid;
	bool is_marker = seam_jit_marker(path, &inner_pid);

	if (!is_marker && !is_anonymous(path))
		return;
	runtime = runtime_of(jit, pid);
	if (!runtime || !is_marker)
		return;
	if (!runtime->owner.inner_pid)
		runtime->owner.inner_pid = inner_pid;
	free(runtime->marker);
	runtime->marker = strdup(path);
}

static void keep_first(struct seam_keep_jit *jit, const struct seam_err *err)
{
	if (!jit->why.n_causes)
		jit->why = *err;
}

static void copy(struct seam_keep_jit *jit,
		 const struct seam_keep_runtime *runtime,
		 enum seam_jit_kind kind, const char *path, int folder)
{
	struct seam_err err = { 0 };
	char name[48];
	int fd;

	snprintf(name, sizeof(name), kind == SEAM_JIT_DUMP ?
		 "jit-%" PRId32 ".dump" : "perf-%" PRId32 ".map",
		 runtime->owner.pid);
	/* What the process streamed has that name: this is its second. */
	if (kind == SEAM_JIT_DUMP &&
	    faccessat(folder, name, F_OK, AT_SYMLINK_NOFOLLOW) == 0)
		snprintf(name, sizeof(name),
			 "jit-%" PRId32 "-%" PRId32 ".dump",
			 runtime->owner.pid, runtime->owner.pid);
	fd = seam_jit_open(&runtime->owner, kind, path, SEAM_JIT_MAX_BYTES,
			   &err);
	if (fd == -ENOENT)
		return;
	if (fd < 0) {
		jit->n_refused++;
		keep_first(jit, &err);
		return;
	}
	if (seam_jit_copy(fd, folder, name, SEAM_JIT_MAX_BYTES, &err) == 0) {
		jit->n_copied++;
	} else {
		jit->n_failed++;
		keep_first(jit, &err);
	}
	close(fd);
}

/* A snapshot gets copies of what was followed so far. */
static void finish_maps(struct seam_keep_jit *jit, int folder)
{
	const struct seam_map_follow_result *result = &jit->map_result;
	struct seam_err err = { 0 };

	if (!jit->maps)
		return;
	if (!jit->is_snapshot) {
		seam_map_follow_finish(jit->maps, &jit->map_result);
		jit->n_copied += result->n_copied;
		jit->n_refused += result->n_refused;
		jit->n_failed += result->n_failed + result->n_cut +
				 result->is_stuck;
		err = result->why;
	} else if (seam_map_follow_copy(jit->maps, folder, &err)) {
		jit->n_failed++;
	} else {
		jit->n_copied += seam_map_follow_bytes(jit->maps) > 0;
	}
	if (err.n_causes)
		keep_first(jit, &err);
	else if (result->is_stuck || result->n_cut)
		seam_err_set(&jit->why, -EIO, result->is_stuck ?
			     "a perf map could not be read in time" :
			     "a perf map is larger than is kept");
}

void seam_keep_jit_finish(struct seam_keep_jit *jit,
			  const struct seam_bundle *bundle)
{
	int folder = jit->runtimes.n ?
		     seam_bundle_folder(bundle, "jit", &jit->why) : -1;
	char map[64];

	jit->n_failed += jit->runtimes.n && folder < 0;
	if (folder < 0)
		return;
	for (size_t i = 0; i < jit->runtimes.n; i++) {
		const struct seam_keep_runtime *r = &jit->runtimes.items[i];

		if (r->marker)
			copy(jit, r, SEAM_JIT_DUMP, r->marker, folder);
		if (jit->maps)
			continue;
		snprintf(map, sizeof(map), "/tmp/perf-%" PRId32 ".map",
			 r->owner.inner_pid ? r->owner.inner_pid :
			 r->owner.pid);
		copy(jit, r, SEAM_JIT_MAP, map, folder);
	}
	finish_maps(jit, folder);
	close(folder);
	/* Most programs with anonymous code have neither. */
	if (jit->n_copied == 0)
		unlinkat(bundle->dir, "jit", AT_REMOVEDIR);
}

void seam_keep_jit_fini(struct seam_keep_jit *jit)
{
	for (size_t i = 0; i < jit->runtimes.n; i++) {
		seam_jit_owner_fini(&jit->runtimes.items[i].owner);
		free(jit->runtimes.items[i].marker);
	}
	free(jit->runtimes.items);
	seam_map_follow_free(jit->maps);
	*jit = (struct seam_keep_jit) { 0 };
}
