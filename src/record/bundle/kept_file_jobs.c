/* SPDX-License-Identifier: MIT */
/* kept_file_jobs.c - open a mapped file, copy it at the end; see kept_file_jobs.h */
#include "record/bundle/kept_file_jobs.h"

#include "base/file.h"
#include "record/proc/target_file.h"
#include "symbol/elf/elf_file.h"
#include "symbol/elf/build_id.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <unistd.h>

/* A copy has this name until it is whole: half a file passes for no file. */
static const char part[] = SEAM_BUNDLE_PART;

/* A disk may make a copy wait for longer than it takes to open a file. */
#define COPY_LIMIT_NS (10 * SEAM_HELPER_LIMIT_NS)
enum { CHUNK = 4 << 20 };

/* What both jobs know of a file. */
struct what {
	uint8_t build_id[SEAM_KEPT_BUILD_ID];
	size_t build_id_size;
	char path[];
};

static bool carries_id(int fd, const struct what *what)
{
	uint8_t found[SEAM_KEPT_BUILD_ID];

	return seam_build_id_read(fd, found) == what->build_id_size &&
	       memcmp(found, what->build_id, what->build_id_size) == 0;
}

/* Takes @fd, which may be -errno; gives it back if it is the file. */
static int if_it_is(int fd, const struct what *what)
{
	if (fd < 0 || carries_id(fd, what))
		return fd;
	close(fd);
	return -ENOENT;
}

/* Whether a reader who goes by the path finds this very content. */
static bool is_at_its_path(const struct what *what)
{
	int fd = if_it_is(seam_elf_open_fd(what->path, NULL), what);

	if (fd >= 0)
		close(fd);
	return fd >= 0;
}

/* ---- open ---- */

struct open_job {
	struct seam_helper_job job;
	int32_t pid;
	uint64_t begin, end;
	int fd;			/* the result: or -errno */
	uint64_t lost_bytes;
	struct what what;
};

/* The reason worth telling: "not there" is what any of the ways may say. */
static int better(int code, int next)
{
	return code == -ENOENT || code == -ESRCH || code == -EPERM ? next :
	       code;
}

static void open_run(struct seam_helper_job *job)
{
	struct open_job *o = (struct open_job *)job;
	struct seam_target target;
	struct stat st;
	int code;

	seam_target_open(&target, o->pid, NULL);
	o->fd = if_it_is(seam_target_open_mapping(&target, o->begin, o->end,
						  NULL), &o->what);
	code = o->fd;
	if (o->fd < 0)
		o->fd = if_it_is(seam_target_open_path(&target, o->what.path,
						       NULL), &o->what);
	code = better(code, o->fd);
	if (o->fd < 0)
		o->fd = if_it_is(seam_target_open_exe(&target, NULL),
				 &o->what);
	if (o->fd < 0)
		o->fd = better(code, -ENOENT);
	seam_target_close(&target);
	if (o->fd >= 0 && fstat(o->fd, &st) == 0 && !is_at_its_path(&o->what))
		o->lost_bytes = (uint64_t)st.st_size;
}

static void open_done(struct seam_helper_job *job, void *context)
{
	struct open_job *o = (struct open_job *)job;
	struct seam_kept_files *kept = context;
	struct seam_kept_file *file = &kept->files.items[job->tag];

	file->fd = o->fd < 0 ? -1 : o->fd;
	file->code = o->fd < 0 ? o->fd : 0;
	file->lost_bytes = o->lost_bytes;
	kept->n_held -= o->fd < 0;
	o->fd = -1;
}

static void open_given_up(void *context, uint64_t tag)
{
	struct seam_kept_files *kept = context;

	kept->files.items[tag].code = -ETIMEDOUT;
	kept->n_held--;
}

static void open_free(struct seam_helper_job *job)
{
	struct open_job *o = (struct open_job *)job;

	if (o->fd >= 0)
		close(o->fd);
	free(o);
}

int seam_kept_file_open(struct seam_kept_files *kept,
			const struct seam_kept_files_mapping *m, uint32_t file)
{
	size_t length = strlen(m->path) + 1;
	struct open_job *o = calloc(1, sizeof(*o) + length);

	if (!o)
		return -ENOMEM;
	o->job = (struct seam_helper_job) {
		.run = open_run, .done = open_done,
		.given_up = open_given_up, .free = open_free,
		.context = kept, .tag = file,
	};
	o->pid = m->pid;
	o->begin = m->addr;
	o->end = m->addr + m->bytes;
	o->fd = -1;
	memcpy(o->what.build_id, m->build_id, m->build_id_size);
	o->what.build_id_size = m->build_id_size;
	memcpy(o->what.path, m->path, length);
	return seam_helper_submit(kept->helper, &o->job);
}

/* ---- look ---- */

struct look_job {
	struct seam_helper_job job;
	size_t n;
	struct looked_file {
		struct what *what;
		bool is_there;
	} files[];
};

static void look_run(struct seam_helper_job *job)
{
	struct look_job *l = (struct look_job *)job;

	for (size_t i = 0; i < l->n; i++) {
		l->files[i].is_there = is_at_its_path(l->files[i].what);
		seam_helper_progress(job);
	}
}

static void look_done(struct seam_helper_job *job, void *context)
{
	struct look_job *l = (struct look_job *)job;
	struct seam_kept_files *kept = context;

	for (size_t i = 0; i < l->n; i++)
		kept->files.items[i].is_there = l->files[i].is_there;
}

static void look_free(struct seam_helper_job *job)
{
	struct look_job *l = (struct look_job *)job;

	for (size_t i = 0; i < l->n; i++)
		free(l->files[i].what);
	free(l);
}

int seam_kept_file_check_paths(struct seam_kept_files *kept)
{
	struct look_job *l = calloc(1, sizeof(*l) +
				       kept->files.n * sizeof(*l->files));

	if (!l)
		return -ENOMEM;
	l->job = (struct seam_helper_job) {
		.run = look_run, .done = look_done, .free = look_free,
		.context = kept,
	};
	for (; l->n < kept->files.n; l->n++) {
		struct seam_kept_file *file = &kept->files.items[l->n];
		size_t length = strlen(file->path) + 1;
		struct what *what = calloc(1, sizeof(*what) + length);

		if (!what) {
			look_free(&l->job);
			return -ENOMEM;
		}
		memcpy(what->build_id, file->build_id, file->build_id_size);
		what->build_id_size = file->build_id_size;
		memcpy(what->path, file->path, length);
		l->files[l->n].what = what;
		file->is_there = false;
	}
	return seam_helper_submit(kept->helper, &l->job);
}

/* ---- copy ---- */

enum result {
	RESULT_NONE,		/* not wanted: it is where its path says */
	RESULT_COPIED,
	RESULT_THERE,		/* another path's has the same content */
	RESULT_MISSED,
	RESULT_TOO_LARGE,
	RESULT_FAILED,
};

struct file_copy_job {
	struct seam_helper_job job;
	struct seam_kept_files *kept;		/* for done() */
	struct seam_bundle bundle;	/* with a descriptor of our own */
	int fd;				/* -1: only look whether it is there */
	bool is_hit;
	uint64_t budget;
	enum result result;
	uint64_t bytes;
	struct what what;
};

static bool copy_bytes(struct file_copy_job *c, int to)
{
	off_t offset = 0;

	while ((uint64_t)offset < c->bytes) {
		uint64_t left = c->bytes - (uint64_t)offset;
		ssize_t n = sendfile(to, c->fd, &offset,
				     left < CHUNK ? (size_t)left : CHUNK);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return false;
		seam_helper_progress(&c->job);
	}
	return true;
}

static int create(int dir)
{
	unlinkat(dir, part, 0);
	return openat(dir, part, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW |
		      O_CLOEXEC, 0600);
}

/* False, and nothing is left, where it could not be written. */
static bool publish(int dir, int fd, bool is_whole, const char *name)
{
	close(fd);
	if (is_whole && renameat(dir, part, dir, name) == 0)
		return true;
	unlinkat(dir, part, 0);
	return false;
}

static void copy_into(struct file_copy_job *c, int dir)
{
	char name[2 * SEAM_KEPT_BUILD_ID + 1];
	int to;

	seam_build_id_text(name, c->what.build_id, c->what.build_id_size);
	if (faccessat(dir, name, F_OK, AT_SYMLINK_NOFOLLOW) == 0) {
		c->result = RESULT_THERE;
		return;
	}
	to = create(dir);
	c->result = to >= 0 && publish(dir, to, copy_bytes(c, to), name) ?
		    RESULT_COPIED : RESULT_FAILED;
}

static void copy_run(struct seam_helper_job *job)
{
	struct file_copy_job *c = (struct file_copy_job *)job;
	struct stat st;
	int dir;

	if (!c->is_hit && is_at_its_path(&c->what))
		return;
	c->result = RESULT_MISSED;
	/* whoever wrote over it in its place has changed what we hold */
	if (c->fd < 0 || fstat(c->fd, &st) < 0 || !carries_id(c->fd, &c->what))
		return;
	c->bytes = (uint64_t)st.st_size;
	c->result = RESULT_TOO_LARGE;
	if (c->bytes > SEAM_KEPT_MAX_FILE_BYTES || c->bytes > c->budget)
		return;
	c->result = RESULT_FAILED;
	dir = seam_bundle_folder(&c->bundle, "elf", NULL);
	if (dir < 0)
		return;
	copy_into(c, dir);
	close(dir);
}

static void count_missed(struct seam_kept_files_counts *counts, int code)
{
	if (code == -EAGAIN)
		counts->n_leased++;
	else if (code == -ETIMEDOUT)
		counts->n_stuck++;
	else if (code == 0 || code == -ENOENT || code == -ESRCH)
		counts->n_missed++;
	else
		counts->n_refused++;
}

static void copy_done(struct seam_helper_job *job, void *context)
{
	struct file_copy_job *c = (struct file_copy_job *)job;
	struct seam_kept_files_counts *counts = context;
	struct seam_kept_file *file = &c->kept->files.items[job->tag];

	file->fd = c->fd;
	c->fd = -1;
	counts->n_copied += c->result == RESULT_COPIED;
	counts->n_bytes += c->result == RESULT_COPIED ? c->bytes : 0;
	counts->n_too_large += c->result == RESULT_TOO_LARGE;
	counts->n_failed += c->result == RESULT_FAILED;
	if (c->result == RESULT_MISSED)
		count_missed(counts, file->code);
}

static void copy_given_up(void *context, uint64_t tag)
{
	struct seam_kept_files_counts *counts = context;

	(void)tag;
	counts->n_stuck++;
}

static void copy_free(struct seam_helper_job *job)
{
	struct file_copy_job *c = (struct file_copy_job *)job;

	if (c->fd >= 0)
		close(c->fd);
	seam_bundle_close(&c->bundle);
	free(c);
}

int seam_kept_file_copy(struct seam_kept_files *kept, uint32_t i,
			const struct seam_bundle *bundle, uint64_t budget,
			struct seam_kept_files_counts *counts)
{
	struct seam_kept_file *file = &kept->files.items[i];
	size_t length = strlen(file->path) + 1;
	struct file_copy_job *c = calloc(1, sizeof(*c) + length);

	if (!c)
		return -ENOMEM;
	c->job = (struct seam_helper_job) {
		.run = copy_run, .done = copy_done,
		.given_up = copy_given_up, .free = copy_free,
		.context = counts, .tag = i, .limit_ns = COPY_LIMIT_NS,
	};
	c->kept = kept;
	c->bundle = *bundle;
	c->bundle.dir = fcntl(bundle->dir, F_DUPFD_CLOEXEC, 0);
	c->is_hit = file->is_hit;
	c->budget = budget;
	memcpy(c->what.build_id, file->build_id, file->build_id_size);
	c->what.build_id_size = file->build_id_size;
	memcpy(c->what.path, file->path, length);
	/* a job that hangs keeps the descriptor */
	c->fd = file->fd;
	file->fd = -1;
	return seam_helper_submit(kept->helper, &c->job);
}

int seam_kept_file_write(const struct seam_bundle *bundle, const uint8_t *id,
		       size_t id_size, const void *image, size_t bytes)
{
	char name[2 * SEAM_KEPT_BUILD_ID + 1];
	int dir = seam_bundle_folder(bundle, "elf", NULL);
	int fd = dir < 0 ? dir : create(dir), r;

	seam_build_id_text(name, id, id_size);
	r = fd < 0 ? -1 : seam_file_write_at(fd, image, bytes, 0, name, NULL);
	if (fd >= 0 && !publish(dir, fd, r == 0, name))
		r = -EIO;
	if (dir >= 0)
		close(dir);
	return r;
}

void seam_kept_file_remove_part(const struct seam_bundle *bundle)
{
	int dir = openat(bundle->dir, "elf", O_RDONLY | O_DIRECTORY |
			 O_NOFOLLOW | O_CLOEXEC);

	if (dir < 0)
		return;
	unlinkat(dir, part, 0);
	close(dir);
	/* of no use where nothing else came into it */
	unlinkat(bundle->dir, "elf", AT_REMOVEDIR);
}
