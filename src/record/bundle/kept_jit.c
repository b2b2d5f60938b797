/* SPDX-License-Identifier: MIT */
/* kept_jit.c - see runtimes, hold their roots, copy at the end; kept_jit.h */
#include "record/bundle/kept_jit.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

static const char part[] = SEAM_BUNDLE_PART;

/* A copy of half a gigabyte takes its time, and does not say how far it is. */
#define COPY_LIMIT_NS (30 * SEAM_HELPER_LIMIT_NS)

static bool is_anonymous(const char *path)
{
	return strcmp(path, "//anon") == 0 ||
	       strncmp(path, "[anon", 5) == 0 ||
	       strncmp(path, "/memfd:", 7) == 0 ||
	       strncmp(path, "/dev/zero", 9) == 0;
}

bool seam_kept_jit_is_runtime(const char *path)
{
	int32_t inner_pid;

	return is_anonymous(path) || seam_jit_marker(path, &inner_pid);
}

/* ---- hold ---- */

struct hold_job {
	struct seam_helper_job job;
	int32_t pid;
	struct seam_target target;
};

static void hold_run(struct seam_helper_job *job)
{
	struct hold_job *h = (struct hold_job *)job;

	/* what a process that has ended left is looked for in our own root */
	seam_target_open(&h->target, h->pid, NULL);
}

static void hold_done(struct seam_helper_job *job, void *context)
{
	struct hold_job *h = (struct hold_job *)job;
	struct seam_kept_jit *jit = context;

	jit->runtimes.items[job->tag].target = h->target;
	seam_target_init(&h->target);
}

static void hold_given_up(void *context, uint64_t tag)
{
	struct seam_kept_jit *jit = context;

	jit->runtimes.items[tag].is_stuck = true;
}

static void hold_free(struct seam_helper_job *job)
{
	struct hold_job *h = (struct hold_job *)job;

	seam_target_close(&h->target);
	free(h);
}

static void hold(struct seam_kept_jit *jit, struct seam_helper *helper,
		 size_t i)
{
	struct hold_job *h = calloc(1, sizeof(*h));

	if (!h) {
		jit->runtimes.items[i].is_stuck = true;
		return;
	}
	h->job = (struct seam_helper_job) {
		.run = hold_run, .done = hold_done,
		.given_up = hold_given_up, .free = hold_free,
		.context = jit, .tag = i,
	};
	h->pid = jit->runtimes.items[i].pid;
	seam_target_init(&h->target);
	if (seam_helper_submit(helper, &h->job) < 0)
		jit->runtimes.items[i].is_stuck = true;
}

/* The runtime of @pid, begun if it is new; NULL when there is no room. */
static struct seam_kept_jit_runtime *runtime_of(struct seam_kept_jit *jit,
					    struct seam_helper *helper,
					    int32_t pid)
{
	struct seam_kept_jit_runtime *runtime;

	for (size_t i = jit->runtimes.n; i-- > 0;)
		if (jit->runtimes.items[i].pid == pid)
			return &jit->runtimes.items[i];
	runtime = jit->runtimes.n < SEAM_KEPT_JIT_MAX_RUNTIMES ?
		  SEAM_ARRAY_PUSH(&jit->runtimes) : NULL;
	if (!runtime) {
		jit->n_too_many++;
		return NULL;
	}
	*runtime = (struct seam_kept_jit_runtime) { .pid = pid };
	if (!jit->maps && jit->bundle)
		jit->maps = seam_perf_map_watch_start(jit->bundle);
	if (jit->maps)
		seam_perf_map_watch_add(jit->maps, pid);
	seam_target_init(&runtime->target);
	runtime->target.owner.pid = pid;
	hold(jit, helper, jit->runtimes.n - 1);
	return runtime;
}

void seam_kept_jit_add(struct seam_kept_jit *jit, struct seam_helper *helper,
		       int32_t pid, const char *path)
{
	struct seam_kept_jit_runtime *runtime = runtime_of(jit, helper, pid);
	int32_t inner_pid;

	if (!runtime || !seam_jit_marker(path, &inner_pid))
		return;
	runtime->marker_pid = inner_pid;
	free(runtime->marker);
	runtime->marker = strdup(path);
}

/* ---- copy ---- */

struct jit_copy_job {
	struct seam_helper_job job;
	struct seam_kept_jit *jit;	/* for done() */
	struct seam_target target;	/* back in done() */
	char *marker;
	bool copies_map;		/* it was not followed */
	int folder;
	uint64_t budget;
	struct seam_kept_jit_counts counts;
};

static void keep_first(struct seam_kept_jit_counts *counts,
		       const struct seam_err *err)
{
	if (!counts->why.n_causes)
		counts->why = *err;
}

static void name_of(const struct jit_copy_job *c, enum seam_jit_kind kind,
		    char name[48])
{
	int32_t pid = c->target.owner.pid;

	snprintf(name, 48, kind == SEAM_JIT_DUMP ? "jit-%" PRId32 ".dump" :
		 "perf-%" PRId32 ".map", pid);
	/* What the process streamed has that name: this is its second. */
	if (kind == SEAM_JIT_DUMP &&
	    faccessat(c->folder, name, F_OK, AT_SYMLINK_NOFOLLOW) == 0)
		snprintf(name, 48, "jit-%" PRId32 "-%" PRId32 ".dump", pid,
			 pid);
}

static void refuse(struct jit_copy_job *c, int code, const struct seam_err *err)
{
	if (code == -ENOENT)
		return;
	if (code == -EAGAIN)
		c->counts.n_leased++;
	else if (code == -EFBIG)
		c->counts.n_too_large++;
	else
		c->counts.n_refused++;
	keep_first(&c->counts, err);
}

/* Open, not checked yet; -ENOENT where there is none. */
static int open_it(const struct jit_copy_job *c, const char *path,
		   struct seam_err *err)
{
	struct seam_err why = { 0 };
	int fd = seam_target_open_path(&c->target, path, &why);

	if (fd == -ENOTDIR)
		fd = -ENOENT;
	if (fd < 0)
		seam_err_set(err, fd, "cannot read '%s': %s", path,
			     why.cause[0]);
	return fd;
}

static void copy_file(struct jit_copy_job *c, enum seam_jit_kind kind,
		      const char *path)
{
	struct seam_err err = { 0 };
	char name[48];
	uint64_t most = c->budget < SEAM_KEPT_JIT_MAX_FILE_BYTES ? c->budget :
			SEAM_KEPT_JIT_MAX_FILE_BYTES;
	struct stat st = { 0 };
	int fd = open_it(c, path, &err);

	if (fd >= 0)
		fd = seam_jit_check(&c->target.owner, kind, path, fd, most,
				    &err);
	if (fd < 0) {
		refuse(c, fd, &err);
		return;
	}
	name_of(c, kind, name);
	/* no more than it has now: it is still written to */
	if (fstat(fd, &st) == 0 &&
	    seam_jit_copy(fd, c->folder, part, (uint64_t)st.st_size,
			  &err) == 0 &&
	    renameat(c->folder, part, c->folder, name) == 0) {
		c->counts.n_copied++;
		c->counts.n_bytes += (uint64_t)st.st_size;
		c->budget -= (uint64_t)st.st_size;
	} else {
		unlinkat(c->folder, part, 0);
		c->counts.n_failed++;
		keep_first(&c->counts, &err);
	}
	close(fd);
}

uint64_t seam_kept_jit_map_bytes(const struct seam_kept_jit *jit)
{
	return jit->maps ? seam_perf_map_watch_bytes(jit->maps) : 0;
}

/* A snapshot gets copies of what was followed so far. */
static void finish_maps(struct seam_kept_jit *jit, bool is_snapshot,
			struct seam_kept_jit_counts *counts)
{
	const struct seam_perf_map_watch_result *result = &jit->map_result;
	struct seam_err err = { 0 };

	if (!jit->maps)
		return;
	if (!is_snapshot) {
		seam_perf_map_watch_stop(jit->maps, &jit->map_result);
		counts->n_copied += result->n_copied;
		counts->n_refused += result->n_refused;
		counts->n_failed += result->n_failed;
		counts->n_too_large += result->n_cut;
		counts->n_stuck += result->is_stuck;
		err = result->why;
	} else if (seam_perf_map_watch_copy(jit->maps, jit->folder, &err)) {
		counts->n_failed++;
	} else {
		counts->n_copied += seam_perf_map_watch_bytes(jit->maps) > 0;
	}
	if (err.n_causes)
		keep_first(counts, &err);
	else if (result->n_cut && !counts->why.n_causes)
		seam_err_set(&counts->why, -EFBIG, "a perf map is larger than "
			     "is kept");
}

static void copy_run(struct seam_helper_job *job)
{
	struct jit_copy_job *c = (struct jit_copy_job *)job;
	const struct seam_jit_owner *owner = &c->target.owner;
	char map[64];

	if (c->marker)
		copy_file(c, SEAM_JIT_DUMP, c->marker);
	if (!c->copies_map)
		return;
	seam_helper_progress(job);
	snprintf(map, sizeof(map), "/tmp/perf-%" PRId32 ".map",
		 owner->inner_pid ? owner->inner_pid : owner->pid);
	copy_file(c, SEAM_JIT_MAP, map);
}

static void copy_done(struct seam_helper_job *job, void *context)
{
	struct jit_copy_job *c = (struct jit_copy_job *)job;
	struct seam_kept_jit_counts *counts = context;
	struct seam_kept_jit_runtime *runtime = &c->jit->runtimes.items[job->tag];

	runtime->target = c->target;
	seam_target_init(&c->target);
	counts->n_copied += c->counts.n_copied;
	counts->n_bytes += c->counts.n_bytes;
	counts->n_refused += c->counts.n_refused;
	counts->n_leased += c->counts.n_leased;
	counts->n_too_large += c->counts.n_too_large;
	counts->n_failed += c->counts.n_failed;
	if (c->counts.why.n_causes)
		keep_first(counts, &c->counts.why);
}

static void copy_given_up(void *context, uint64_t tag)
{
	struct seam_kept_jit_counts *counts = context;

	(void)tag;
	counts->n_stuck++;
}

static void copy_free(struct seam_helper_job *job)
{
	struct jit_copy_job *c = (struct jit_copy_job *)job;

	seam_target_close(&c->target);
	if (c->folder >= 0)
		close(c->folder);
	free(c->marker);
	free(c);
}

void seam_kept_jit_begin(struct seam_kept_jit *jit,
			 const struct seam_bundle *bundle,
			 struct seam_kept_jit_counts *counts)
{
	*counts = (struct seam_kept_jit_counts) {
		.n_too_many = jit->n_too_many,
	};
	jit->folder = jit->runtimes.n ?
		      seam_bundle_folder(bundle, "jit", &counts->why) : -1;
}

int seam_kept_jit_copy(struct seam_kept_jit *jit, struct seam_helper *helper,
		       size_t i, uint64_t budget,
		       struct seam_kept_jit_counts *counts)
{
	struct seam_kept_jit_runtime *runtime = &jit->runtimes.items[i];
	struct jit_copy_job *c = jit->folder < 0 || runtime->is_stuck ? NULL :
			     calloc(1, sizeof(*c));

	if (!c) {
		counts->n_stuck += runtime->is_stuck;
		counts->n_failed += !runtime->is_stuck;
		return -ENOENT;
	}
	c->job = (struct seam_helper_job) {
		.run = copy_run, .done = copy_done,
		.given_up = copy_given_up, .free = copy_free,
		.context = counts, .tag = i, .limit_ns = COPY_LIMIT_NS,
	};
	c->jit = jit;
	c->marker = runtime->marker ? strdup(runtime->marker) : NULL;
	c->copies_map = !jit->maps;
	c->folder = fcntl(jit->folder, F_DUPFD_CLOEXEC, 0);
	c->budget = budget < SEAM_KEPT_JIT_MAX_BYTES - counts->n_bytes ?
		    budget : SEAM_KEPT_JIT_MAX_BYTES - counts->n_bytes;
	/* a job that hangs keeps what it uses */
	c->target = runtime->target;
	seam_target_init(&runtime->target);
	runtime->target.owner.pid = runtime->pid;
	if (!c->target.owner.inner_pid)
		c->target.owner.inner_pid = runtime->marker_pid;
	if (seam_helper_submit(helper, &c->job) == 0)
		return 0;
	counts->n_stuck++;
	return -EAGAIN;
}

void seam_kept_jit_end(struct seam_kept_jit *jit,
		       const struct seam_bundle *bundle, bool is_snapshot,
		       struct seam_kept_jit_counts *counts)
{
	if (jit->folder < 0)
		return;
	finish_maps(jit, is_snapshot, counts);
	counts->n_bytes += seam_kept_jit_map_bytes(jit);
	if (counts->n_stuck || counts->n_interrupted)
		unlinkat(jit->folder, part, 0);
	close(jit->folder);
	jit->folder = -1;
	/* Most programs with anonymous code have neither. */
	if (counts->n_copied == 0)
		unlinkat(bundle->dir, "jit", AT_REMOVEDIR);
}

void seam_kept_jit_fini(struct seam_kept_jit *jit)
{
	for (size_t i = 0; i < jit->runtimes.n; i++) {
		seam_target_close(&jit->runtimes.items[i].target);
		free(jit->runtimes.items[i].marker);
	}
	free(jit->runtimes.items);
	seam_perf_map_watch_free(jit->maps);
	*jit = (struct seam_kept_jit) { 0 };
}
