/* SPDX-License-Identifier: MIT */
/* kept_file_jobs.c - open, check and copy mapped files; see kept_files.h */
#include "record/bundle/kept_files.h"

#include "base/file.h"
#include "base/text.h"
#include "record/proc/mapped_file.h"
#include "symbol/elf/elf_file.h"
#include "symbol/elf/build_id.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <unistd.h>

/* A copy has this name until it is whole. */
static const char part[] = SEAM_BUNDLE_PART;

/* Writing to a disk may take longer than opening a file. */
#define COPY_LIMIT_NS (10 * SEAM_HELPER_LIMIT_NS)
enum { CHUNK = 4 << 20, COMPARED = 4096 };

/* A recorded file: what it is, and its path. */
struct identity {
	struct seam_file_identity is;
	char path[];
};

/* Bytes of an identity that holds @path. */
static size_t identity_size(const char *path)
{
	return sizeof(struct identity) + strlen(path) + 1;
}

static void identify(struct identity *id, const struct seam_kept_file *file)
{
	id->is = (struct seam_file_identity) {
		.build_id_size = file->build_id_size,
		.content_id = file->content_id, .ino = file->ino,
	};
	memcpy(id->is.build_id, file->build_id, file->build_id_size);
	memcpy(id->path, file->path, strlen(file->path) + 1);
}

/* The file at that path with that build id, open; or -1. */
static int open_at_path(const struct identity *id)
{
	int fd = seam_elf_open_fd(id->path, NULL);

	if (fd < 0 || seam_mapped_file_is(fd, &id->is))
		return fd;
	close(fd);
	return -1;
}

static bool is_at_path(const struct identity *id)
{
	int fd = open_at_path(id);

	seam_file_close_fd(fd);
	return fd >= 0;
}

/* ---- open ---- */

struct open_job {
	struct seam_helper_job job;
	struct seam_file_mapping mapping;	/* .path: of id */
	int fd;			/* the result: or -errno */
	bool is_protected;
	uint64_t copy_bytes;	/* 0: it is at its path */
	struct identity id;
};

static void open_run(struct seam_helper_job *job)
{
	struct open_job *o = (struct open_job *)job;
	struct stat st;

	o->fd = seam_mapped_file_open(&o->mapping, &o->id.is,
				      &o->is_protected);
	if (o->fd >= 0 && !o->id.is.build_id_size)
		o->id.is.content_id = seam_content_id_read(o->fd);
	if (o->fd >= 0 && fstat(o->fd, &st) == 0 && !is_at_path(&o->id))
		o->copy_bytes = (uint64_t)st.st_size;
}

static void open_done(struct seam_helper_job *job, void *context)
{
	struct open_job *o = (struct open_job *)job;
	struct seam_kept_files *kept = context;
	struct seam_kept_file *file = &kept->files.items[job->tag];

	file->fd = o->fd < 0 ? -1 : o->fd;
	file->code = o->fd < 0 ? o->fd : 0;
	file->copy_bytes = o->copy_bytes;
	file->is_protected = o->is_protected;
	file->content_id = o->id.is.content_id;
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

	seam_file_close_fd(o->fd);
	free(o);
}

int seam_kept_file_open(struct seam_kept_files *kept,
			const struct seam_perf_mapping *m, uint32_t i)
{
	struct open_job *o = calloc(1, sizeof(*o) + identity_size(m->filename));

	if (!o)
		return -ENOMEM;
	o->job = (struct seam_helper_job) {
		.run = open_run, .done = open_done,
		.given_up = open_given_up, .free = open_free,
		.context = kept, .tag = i,
		.user = kept->files.items[i].user,
	};
	o->fd = -1;
	identify(&o->id, &kept->files.items[i]);
	o->mapping = (struct seam_file_mapping) {
		.pid = m->pid, .begin = m->addr, .end = m->addr + m->len,
		.path = o->id.path,
	};
	return seam_helper_submit(kept->helper, &o->job);
}

/* ---- check paths ---- */

struct check_job {
	struct seam_helper_job job;
	size_t n;
	struct checked_file {
		struct identity *id;
		bool is_at_path, is_protected;
	} files[];
};

static void check_run(struct seam_helper_job *job)
{
	struct check_job *c = (struct check_job *)job;

	for (size_t i = 0; i < c->n; i++) {
		int fd = open_at_path(c->files[i].id);

		c->files[i].is_at_path = fd >= 0;
		c->files[i].is_protected = fd >= 0 &&
					   seam_mapped_file_is_protected(fd);
		seam_file_close_fd(fd);
		seam_helper_progress(job);
	}
}

static void check_done(struct seam_helper_job *job, void *context)
{
	struct check_job *c = (struct check_job *)job;
	struct seam_kept_files *kept = context;

	for (size_t i = 0; i < c->n; i++) {
		struct seam_kept_file *file = &kept->files.items[i];

		file->is_at_path = c->files[i].is_at_path;
		file->is_protected_there = c->files[i].is_protected;
	}
}

static void check_free(struct seam_helper_job *job)
{
	struct check_job *c = (struct check_job *)job;

	for (size_t i = 0; i < c->n; i++)
		free(c->files[i].id);
	free(c);
}

int seam_kept_file_check_paths(struct seam_kept_files *kept)
{
	struct check_job *c = calloc(1, sizeof(*c) +
				     kept->files.n * sizeof(*c->files));

	if (!c)
		return -ENOMEM;
	c->job = (struct seam_helper_job) {
		.run = check_run, .done = check_done, .free = check_free,
		.context = kept, .user = SEAM_HELPER_NO_USER,
	};
	for (; c->n < kept->files.n; c->n++) {
		struct seam_kept_file *file = &kept->files.items[c->n];
		struct identity *id = malloc(identity_size(file->path));

		if (!id) {
			check_free(&c->job);
			return -ENOMEM;
		}
		identify(id, file);
		c->files[c->n].id = id;
		file->is_at_path = file->is_protected_there = false;
	}
	return seam_helper_submit(kept->helper, &c->job);
}

/* ---- copy ---- */

struct file_copy_job {
	struct seam_helper_job job;
	struct seam_kept_files *kept;	/* for done() */
	struct seam_bundle bundle;	/* with a descriptor of its own */
	int fd;				/* -1: it could not be opened ... */
	int code;			/* ... for this -errno */
	bool is_protected;
	bool is_ambiguous;	/* a result */
	uint64_t budget;
	struct seam_kept_counts counts;	/* the result */
	struct identity id;
};

static bool copy_bytes(struct file_copy_job *c, int to, uint64_t bytes)
{
	off_t offset = 0;

	while ((uint64_t)offset < bytes) {
		uint64_t left = bytes - (uint64_t)offset;
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

/* False, and no file is left, if it could not be written. */
static bool publish(int dir, int fd, bool is_whole, const char *name)
{
	close(fd);
	if (is_whole && renameat(dir, part, dir, name) == 0)
		return true;
	unlinkat(dir, part, 0);
	return false;
}

/* Whether the file has the bytes of the copy at @name. */
static bool is_equal(struct file_copy_job *c, int dir, const char *name)
{
	uint8_t a[COMPARED], b[COMPARED];
	int fd = openat(dir, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
	ssize_t n = fd < 0 ? -1 : 1;

	for (off_t pos = 0; n > 0; pos += n) {
		n = pread(fd, a, sizeof(a), pos);
		if (pread(c->fd, b, sizeof(b), pos) != n ||
		    (n > 0 && memcmp(a, b, (size_t)n) != 0))
			n = -1;
		seam_helper_progress(&c->job);
	}
	seam_file_close_fd(fd);
	return n == 0;
}

/*
 * There is a copy with that build id.  Of two files that are not protected and
 * differ, either may be what a third process has mapped.
 */
static void compare_copy(struct file_copy_job *c, int dir, const char *name)
{
	if (c->is_protected || is_equal(c, dir, name))
		return;
	unlinkat(dir, name, 0);
	c->counts.n_left_out[SEAM_KEPT_REFUSED]++;
	c->is_ambiguous = true;
}

static void name_of(const struct seam_file_identity *is,
		    char name[2 * SEAM_KEPT_BUILD_ID + 1])
{
	if (is->build_id_size)
		seam_text_hex(name, is->build_id, is->build_id_size);
	else
		snprintf(name, 2 * SEAM_KEPT_BUILD_ID + 1, "%016" PRIx64,
			 is->content_id);
}

static void copy_into(struct file_copy_job *c, int dir, uint64_t bytes)
{
	char name[2 * SEAM_KEPT_BUILD_ID + 1];
	int to;

	name_of(&c->id.is, name);
	if (faccessat(dir, name, F_OK, AT_SYMLINK_NOFOLLOW) == 0) {
		compare_copy(c, dir, name);
		return;
	}
	to = create(dir);
	if (to >= 0 && publish(dir, to, copy_bytes(c, to, bytes), name)) {
		c->counts.n_copied++;
		c->counts.n_bytes += bytes;
	} else {
		c->counts.n_left_out[SEAM_KEPT_NOT_WRITTEN]++;
	}
}

/* Take the file at its path if that one is protected, and ours is not. */
static void use_path(struct file_copy_job *c)
{
	int fd = c->is_protected || c->fd < 0 ? -1 : open_at_path(&c->id);

	c->is_protected |= fd >= 0 && seam_mapped_file_is_protected(fd);
	if (!c->is_protected || fd < 0) {
		seam_file_close_fd(fd);
		return;
	}
	close(c->fd);
	c->fd = fd;
}

static void copy_run(struct seam_helper_job *job)
{
	struct file_copy_job *c = (struct file_copy_job *)job;
	struct stat st;
	uint64_t bytes;
	int dir;

	use_path(c);
	/* the file that is held may have been written to since */
	if (c->fd < 0 || fstat(c->fd, &st) < 0 ||
	    !seam_mapped_file_is(c->fd, &c->id.is)) {
		seam_kept_counts_leave_out(&c->counts, c->code, NULL);
		return;
	}
	bytes = (uint64_t)st.st_size;
	if (bytes > SEAM_KEPT_MAX_FILE_BYTES || bytes > c->budget) {
		c->counts.n_left_out[SEAM_KEPT_TOO_LARGE]++;
		return;
	}
	dir = seam_bundle_folder(&c->bundle, "elf", NULL);
	if (dir < 0) {
		c->counts.n_left_out[SEAM_KEPT_NOT_WRITTEN]++;
		return;
	}
	copy_into(c, dir, bytes);
	close(dir);
}

static void copy_done(struct seam_helper_job *job, void *context)
{
	struct file_copy_job *c = (struct file_copy_job *)job;

	c->kept->files.items[job->tag].fd = c->fd;
	c->kept->files.items[job->tag].code = c->code;
	c->kept->files.items[job->tag].is_protected = c->is_protected;
	c->kept->files.items[job->tag].is_ambiguous = c->is_ambiguous;
	c->fd = -1;
	seam_kept_counts_add(context, &c->counts);
}

static void copy_free(struct seam_helper_job *job)
{
	struct file_copy_job *c = (struct file_copy_job *)job;

	seam_file_close_fd(c->fd);
	seam_bundle_close(&c->bundle);
	free(c);
}

int seam_kept_file_copy(struct seam_kept_files *kept, uint32_t i,
			const struct seam_bundle *bundle, uint64_t budget,
			struct seam_kept_counts *counts)
{
	struct seam_kept_file *file = &kept->files.items[i];
	struct file_copy_job *c = calloc(1, sizeof(*c) +
					 identity_size(file->path));

	if (!c)
		return -ENOMEM;
	c->job = (struct seam_helper_job) {
		.run = copy_run, .done = copy_done,
		.given_up = seam_kept_counts_timed_out, .free = copy_free,
		.context = counts, .tag = i, .user = file->user,
		.limit_ns = COPY_LIMIT_NS,
	};
	c->kept = kept;
	c->bundle = *bundle;
	c->bundle.dir = fcntl(bundle->dir, F_DUPFD_CLOEXEC, 0);
	c->code = file->code;
	c->is_protected = file->is_protected;
	c->budget = budget;
	identify(&c->id, file);
	/* moved: a job that is given up keeps the descriptor */
	c->fd = file->fd;
	file->fd = -1;
	file->code = -ETIMEDOUT;
	return seam_helper_submit(kept->helper, &c->job);
}

int seam_kept_file_write(const struct seam_bundle *bundle, const uint8_t *id,
			 size_t id_size, const void *image, size_t bytes)
{
	char name[2 * SEAM_KEPT_BUILD_ID + 1];
	int dir = seam_bundle_folder(bundle, "elf", NULL);
	int fd = dir < 0 ? dir : create(dir), r;

	seam_text_hex(name, id, id_size);
	r = fd < 0 ? -1 : seam_file_write_at(fd, image, bytes, 0, name, NULL);
	if (fd >= 0 && !publish(dir, fd, r == 0, name))
		r = -EIO;
	seam_file_close_fd(dir);
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
	/* fails unless the folder is empty */
	unlinkat(bundle->dir, "elf", AT_REMOVEDIR);
}
