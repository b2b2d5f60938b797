/* SPDX-License-Identifier: MIT */
/* kept_jit.c - open runtimes, copy their dumps and maps; see kept_jit.h */
#include "record/bundle/kept_jit.h"

#include "base/file.h"
#include "wire/perf/perf_sideband.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

static const char part[] = SEAM_BUNDLE_PART;

/* A copy of half a gigabyte is one step without progress. */
#define COPY_LIMIT_NS (30 * SEAM_HELPER_LIMIT_NS)

bool seam_kept_jit_is_runtime(const char *path)
{
	int32_t inner_pid;

	return seam_perf_mapping_is_memory(path) || seam_jit_marker(path, &inner_pid);
}

/* ---- open ---- */

struct open_runtime_job {
	struct seam_helper_job job;
	int32_t pid;
	struct seam_target target;
};

static void open_run(struct seam_helper_job *job)
{
	struct open_runtime_job *o = (struct open_runtime_job *)job;

	/* of a process that has ended, files are looked for in our root */
	seam_target_open(&o->target, o->pid, NULL);
}

static void open_done(struct seam_helper_job *job, void *context)
{
	struct open_runtime_job *o = (struct open_runtime_job *)job;
	struct seam_kept_jit *jit = context;

	jit->runtimes.items[job->tag].target = o->target;
	seam_target_init(&o->target);
}

static void open_given_up(void *context, uint64_t tag)
{
	struct seam_kept_jit *jit = context;

	jit->runtimes.items[tag].code = -ETIMEDOUT;
}

static void open_free(struct seam_helper_job *job)
{
	struct open_runtime_job *o = (struct open_runtime_job *)job;

	seam_target_close(&o->target);
	free(o);
}

static void open_runtime(struct seam_kept_jit *jit, struct seam_helper *helper,
			 size_t i)
{
	struct open_runtime_job *o = calloc(1, sizeof(*o));

	if (!o) {
		jit->runtimes.items[i].code = -ENOMEM;
		return;
	}
	o->job = (struct seam_helper_job) {
		.run = open_run, .done = open_done,
		.given_up = open_given_up, .free = open_free,
		.context = jit, .tag = i,
		.user = jit->runtimes.items[i].user,
	};
	o->pid = jit->runtimes.items[i].pid;
	seam_target_init(&o->target);
	jit->runtimes.items[i].code = seam_helper_submit(helper, &o->job);
}

/* The runtime of @pid, added if it is new; NULL: too many. */
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
		jit->n_too_many += jit->left_out_pid != pid;
		jit->left_out_pid = pid;
		return NULL;
	}
	*runtime = (struct seam_kept_jit_runtime) {
		.pid = pid, .user = seam_helper_user_of(pid),
	};
	if (!jit->maps)
		jit->maps = seam_perf_map_watch_start(jit->bundle);
	if (jit->maps)
		seam_perf_map_watch_add(jit->maps, pid);
	seam_target_init(&runtime->target);
	runtime->target.owner.pid = pid;
	open_runtime(jit, helper, jit->runtimes.n - 1);
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
	struct seam_target target;	/* returned in done() */
	char *marker;
	int folder;
	uint64_t budget;
	struct seam_kept_counts counts;	/* the result */
};

static void name_of(const struct jit_copy_job *c, char name[48])
{
	int32_t pid = c->target.owner.pid;

	snprintf(name, 48, "jit-%" PRId32 ".dump", pid);
	/* the process has streamed a dump, which has that name */
	if (faccessat(c->folder, name, F_OK, AT_SYMLINK_NOFOLLOW) == 0)
		snprintf(name, 48, "jit-%" PRId32 "-%" PRId32 ".dump", pid,
			 pid);
}

/* Open and validate the dump.  -ENOENT: there is none. */
static int open_dump(const struct jit_copy_job *c, struct seam_err *err)
{
	uint64_t max = c->budget < SEAM_KEPT_JIT_MAX_FILE_BYTES ? c->budget :
		       SEAM_KEPT_JIT_MAX_FILE_BYTES;
	struct seam_err why = { 0 };
	int fd = seam_target_open_path(&c->target, c->marker, &why);

	if (fd >= 0)
		return seam_jit_check(&c->target.owner, SEAM_JIT_DUMP,
				      c->marker, fd, max, err);
	return seam_err_set(err, fd == -ENOTDIR ? -ENOENT : fd,
			    "cannot read '%s': %s", c->marker, why.cause[0]);
}

static void copy_run(struct seam_helper_job *job)
{
	struct jit_copy_job *c = (struct jit_copy_job *)job;
	struct seam_err err = { 0 };
	char name[48];
	struct stat st = { 0 };
	int fd = open_dump(c, &err);

	if (fd < 0) {
		if (fd != -ENOENT)
			seam_kept_counts_leave_out(&c->counts, fd, &err);
		return;
	}
	name_of(c, name);
	/* the runtime may still append: copy what there is now */
	if (fstat(fd, &st) == 0 &&
	    seam_jit_copy(fd, c->folder, part, (uint64_t)st.st_size,
			  &err) == 0 &&
	    renameat(c->folder, part, c->folder, name) == 0) {
		c->counts.n_copied++;
		c->counts.n_bytes += (uint64_t)st.st_size;
	} else {
		unlinkat(c->folder, part, 0);
		c->counts.n_left_out[SEAM_KEPT_NOT_WRITTEN]++;
		seam_kept_counts_explain(&c->counts, SEAM_KEPT_NOT_WRITTEN,
					 &err);
	}
	close(fd);
}

/* The result of the process; a snapshot gets copies of its files so far. */
static void finish_maps(struct seam_kept_jit *jit, bool is_snapshot,
			struct seam_kept_counts *counts)
{
	struct seam_err err = { 0 };

	if (jit->maps && !is_snapshot) {
		seam_perf_map_watch_stop(jit->maps, counts);
		return;
	}
	if (!jit->maps)
		seam_err_set(&err, -EAGAIN, "no process could be started");
	if (!jit->maps ||
	    seam_perf_map_watch_copy(jit->maps, jit->folder, &err) < 0)
		counts->n_left_out[SEAM_KEPT_NOT_WRITTEN]++;
	else
		counts->n_copied += seam_perf_map_watch_bytes(jit->maps) > 0;
	counts->n_bytes += seam_perf_map_watch_bytes(jit->maps);
	seam_kept_counts_explain(counts, SEAM_KEPT_NOT_WRITTEN, &err);
}

static void copy_done(struct seam_helper_job *job, void *context)
{
	struct jit_copy_job *c = (struct jit_copy_job *)job;

	c->jit->runtimes.items[job->tag].target = c->target;
	c->jit->runtimes.items[job->tag].code = 0;
	seam_target_init(&c->target);
	seam_kept_counts_add(context, &c->counts);
}

static void copy_free(struct seam_helper_job *job)
{
	struct jit_copy_job *c = (struct jit_copy_job *)job;

	seam_target_close(&c->target);
	seam_file_close_fd(c->folder);
	free(c->marker);
	free(c);
}

void seam_kept_jit_begin(struct seam_kept_jit *jit,
			 const struct seam_bundle *bundle,
			 struct seam_kept_counts *counts)
{
	*counts = (struct seam_kept_counts) {
		.n_left_out[SEAM_KEPT_TOO_MANY] = jit->n_too_many,
		.why_cause = SEAM_KEPT_NOT_WRITTEN,
	};
	jit->folder = jit->runtimes.n ?
		      seam_bundle_folder(bundle, "jit", &counts->why) : -1;
}

int seam_kept_jit_copy(struct seam_kept_jit *jit, struct seam_helper *helper,
		       size_t i, uint64_t budget,
		       struct seam_kept_counts *counts)
{
	struct seam_kept_jit_runtime *runtime = &jit->runtimes.items[i];
	uint64_t max = SEAM_KEPT_JIT_MAX_BYTES - counts->n_bytes;
	struct jit_copy_job *c;
	char *marker;
	int r;

	if (!runtime->marker)
		return -ENOENT;
	if (jit->folder < 0) {
		counts->n_left_out[SEAM_KEPT_NOT_WRITTEN]++;
		return -EIO;
	}
	c = runtime->code ? NULL : calloc(1, sizeof(*c));
	marker = c ? strdup(runtime->marker) : NULL;
	if (!marker) {
		free(c);
		r = runtime->code ? runtime->code : -ENOMEM;
		seam_kept_counts_leave_out(counts, r, NULL);
		return r;
	}
	c->job = (struct seam_helper_job) {
		.run = copy_run, .done = copy_done,
		.given_up = seam_kept_counts_timed_out, .free = copy_free,
		.context = counts, .tag = i, .user = runtime->user,
		.limit_ns = COPY_LIMIT_NS,
	};
	c->jit = jit;
	c->marker = marker;
	c->folder = fcntl(jit->folder, F_DUPFD_CLOEXEC, 0);
	c->budget = budget < max ? budget : max;
	/* moved: a job that is given up keeps its descriptors */
	c->target = runtime->target;
	runtime->code = -ETIMEDOUT;
	seam_target_init(&runtime->target);
	runtime->target.owner.pid = runtime->pid;
	if (!c->target.owner.inner_pid)
		c->target.owner.inner_pid = runtime->marker_pid;
	r = seam_helper_submit(helper, &c->job);
	if (r < 0)
		seam_kept_counts_leave_out(counts, r, NULL);
	return r;
}

void seam_kept_jit_end(struct seam_kept_jit *jit,
		       const struct seam_bundle *bundle, bool is_snapshot,
		       struct seam_kept_counts *counts)
{
	if (jit->folder < 0)
		return;
	finish_maps(jit, is_snapshot, counts);
	if (counts->n_left_out[SEAM_KEPT_TIMED_OUT] ||
	    counts->n_left_out[SEAM_KEPT_INTERRUPTED])
		unlinkat(jit->folder, part, 0);
	close(jit->folder);
	jit->folder = -1;
	/* most programs with code in anonymous memory have neither file */
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
