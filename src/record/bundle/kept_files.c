/* SPDX-License-Identifier: MIT */
/* kept_files.c - a list of files, and jobs for each; see kept_files.h */
#include "record/bundle/kept_files.h"

#include "base/file.h"
#include "base/hash.h"
#include "base/text.h"
#include "record/proc/mapped_file.h"
#include "symbol/elf/build_id.h"
#include "symbol/elf/elf_file.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/perf_event.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <unistd.h>

/* A copy has this name until it is whole. */
static const char part[] = SEAM_BUNDLE_PART;

/* Writing to a disk may take longer than opening a file. */
#define COPY_LIMIT_NS (10 * SEAM_HELPER_LIMIT_NS)
enum {
	WAIT_MS = 50,		/* between two checks for overdue jobs */
	CHUNK = 4 << 20,
	COMPARED = 4096,
};

/* A vdso below this belongs to a 32-bit process and is not ours. */
#define FIRST_64_BIT_ADDR (UINT64_C(1) << 32)

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

/*
 * Open file @i of @kept, mapped as @m, as the process of @m sees it.  0, or
 * -ENOMEM or -EBUSY if the job was not queued, as all jobs here.
 */
static int open_file(struct seam_kept_files *kept,
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

/* Set is_at_path and is_protected_there of all files, in one job. */
static int check_paths(struct seam_kept_files *kept)
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

/*
 * Copy file @i into @bundle, from its path if that one is protected and the
 * open one is not.  The result is added to @counts; a larger file than
 * @budget is left out.
 */
static int copy_file(struct seam_kept_files *kept, uint32_t i,
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

/* In this thread: write @bytes of memory to elf/@id.  0 or -errno. */
static int write_copy(const struct seam_bundle *bundle, const uint8_t *id,
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

/* Remove the unfinished file of a copy that was given up. */
static void remove_part(const struct seam_bundle *bundle)
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

/* ---- the list ---- */

const struct seam_perf_mapping *
seam_kept_files_mapping_of(const struct seam_perf_sideband *record)
{
	return record->type == PERF_RECORD_MMAP2 &&
	       record->mapping.prot & PROT_EXEC ? &record->mapping : NULL;
}

/* Files without a build id by their inode. */
static uint64_t hash_of(const uint8_t *build_id, size_t size, uint64_t ino)
{
	return size ? seam_hash_bytes(build_id, size, 0) : seam_hash_u64(ino);
}

/* @n: files with that identity and another path, which are counted. */
static bool is_file(const struct seam_kept_file *file,
		    const struct seam_perf_mapping *m, size_t *n)
{
	bool is_same = file->build_id_size == m->build_id_size &&
		       (m->build_id_size ?
			memcmp(file->build_id, m->build_id,
			       m->build_id_size) == 0 : file->ino == m->ino);
	bool is_at_path = is_same && strcmp(file->path, m->filename) == 0;

	*n += is_same && !is_at_path;
	return is_at_path;
}

static struct seam_kept_file *find(struct seam_kept_files *kept,
				   const struct seam_perf_mapping *m, size_t *n)
{
	struct seam_kept_file *files = kept->files.items;
	uint32_t i;

	*n = 0;
	i = SEAM_INDEX_FIND(&kept->index,
			    hash_of(m->build_id, m->build_id_size, m->ino), k,
			    is_file(&files[k], m, n));
	return i == SEAM_NONE ? NULL : &files[i];
}

struct seam_kept_file *
seam_kept_files_find(struct seam_kept_files *kept,
		     const struct seam_perf_mapping *m)
{
	size_t n;

	return find(kept, m, &n);
}

static bool has_helper(struct seam_kept_files *kept)
{
	if (!kept->helper)
		kept->helper = seam_helper_new(NULL);
	return kept->helper;
}

/* False: out of memory. */
static bool add_file(struct seam_kept_files *kept,
		     const struct seam_perf_mapping *m, uid_t user)
{
	struct seam_kept_file file = {
		.fd = -1, .user = user, .build_id_size = (uint8_t)m->build_id_size,
		.ino = m->ino, .path = strdup(m->filename),
	};

	if (m->build_id_size)
		memcpy(file.build_id, m->build_id, m->build_id_size);
	if (file.path &&
	    SEAM_INDEX_APPEND(&kept->index,
			      hash_of(m->build_id, m->build_id_size, m->ino),
			      &kept->files, file) != SEAM_NONE)
		return true;
	free(file.path);
	return false;
}

/* Have the helper open the file that was added last, mapped as @m. */
static void open_last(struct seam_kept_files *kept,
		      const struct seam_perf_mapping *m)
{
	uint32_t i = (uint32_t)kept->files.n - 1;
	int r = kept->n_held >= SEAM_KEPT_MAX_HELD ? -ENFILE :
		!has_helper(kept) ? -ENOMEM : open_file(kept, m, i);

	kept->files.items[i].code = r;
	kept->n_held += r == 0;
}

void seam_kept_files_sideband(struct seam_kept_files *kept,
			      const struct seam_perf_sideband *record)
{
	const struct seam_perf_mapping *m = seam_kept_files_mapping_of(record);
	const char *path = m ? m->filename : NULL;
	size_t n_paths;
	uid_t user;

	seam_follow_sideband(&kept->follow, record);
	if (!m)
		return;
	if (strcmp(path, "[vdso]") == 0 && m->addr >= FIRST_64_BIT_ADDR)
		kept->has_vdso = true;
	/* "//anon" and "[heap]" are no files */
	if (path[0] != '/' || path[1] == '/' ||
	    (!m->build_id_size && !m->ino) || find(kept, m, &n_paths))
		return;
	user = n_paths < SEAM_KEPT_MAX_PATHS ? seam_helper_user_of(m->pid) :
					       SEAM_HELPER_NO_USER;
	if (n_paths < SEAM_KEPT_MAX_PATHS &&
	    kept->files.n < SEAM_KEPT_MAX_FILES &&
	    seam_user_share_take_file(kept->of_user, user) &&
	    add_file(kept, m, user))
		open_last(kept, m);
	else
		kept->n_too_many++;
}

void seam_kept_files_collect(struct seam_kept_files *kept)
{
	if (kept->helper)
		seam_helper_collect(kept->helper);
	seam_follow_step(&kept->follow);
}

uint64_t seam_kept_files_reserved_bytes(const struct seam_kept_files *kept,
					uint64_t max)
{
	uint64_t bytes = 0;

	for (size_t i = 0; bytes < max && i < kept->files.n; i++)
		bytes += kept->files.items[i].copy_bytes;
	return bytes < max ? bytes : max;
}

/* Copy our own vdso: the kernel gives all 64-bit processes the same. */
static void copy_vdso(struct seam_kept_files *kept,
		      const struct seam_bundle *bundle,
		      struct seam_kept_counts *counts)
{
	struct seam_bytes vdso = seam_own_vdso(kept->vdso_build_id,
					       &kept->vdso_build_id_size);

	if (!vdso.data)
		return;
	if (vdso.size &&
	    write_copy(bundle, kept->vdso_build_id, kept->vdso_build_id_size,
		       vdso.data, vdso.size) == 0)
		return;
	kept->vdso_build_id_size = 0;
	counts->n_left_out[SEAM_KEPT_NOT_WRITTEN]++;
}

/* Wait for all jobs to end.  False: time is up, and they are given up. */
static bool wait_for_jobs(struct seam_kept_files *kept,
			  const struct seam_kept_destination *to)
{
	int fd = seam_helper_fd(kept->helper);
	bool has_time = true;

	while (has_time && seam_helper_collect(kept->helper))
		has_time = to->wait(to->context, fd, WAIT_MS);
	if (!has_time)
		seam_helper_abandon(kept->helper);
	return has_time;
}

static uint64_t rest(uint64_t budget, uint64_t used)
{
	return used < budget ? budget - used : 0;
}

static bool is_same(const struct seam_kept_file *file,
		    const struct seam_kept_file *other)
{
	return file->build_id_size == other->build_id_size &&
	       memcmp(file->build_id, other->build_id,
		      file->build_id_size) == 0 &&
	       (file->build_id_size || file->content_id == other->content_id);
}

/*
 * The file to copy where file @i is needed: a protected one with its build id,
 * else itself; SEAM_NONE: others with it differ.
 */
static uint32_t source_of(const struct seam_kept_files *kept, uint32_t i)
{
	const struct seam_kept_file *files = kept->files.items;
	const struct seam_kept_file *file = &files[i];
	uint64_t hash = hash_of(file->build_id, file->build_id_size,
				file->ino);
	uint32_t found = SEAM_INDEX_FIND(&kept->index, hash, k,
		is_same(&files[k], file) && files[k].fd >= 0 &&
		(files[k].is_protected || files[k].is_protected_there));

	if (found != SEAM_NONE)
		return found;
	found = SEAM_INDEX_FIND(&kept->index, hash, k, files[k].is_ambiguous &&
				is_same(&files[k], file));
	return found == SEAM_NONE ? i : SEAM_NONE;
}

/* One file at a time, so that the budget is exact. */
static void copy_files(struct seam_kept_files *kept,
		       const struct seam_kept_destination *to, uint64_t budget,
		       bool has_time, struct seam_kept_counts *counts)
{
	if (budget > SEAM_KEPT_MAX_BYTES)
		budget = SEAM_KEPT_MAX_BYTES;
	if (!kept->helper) {
		counts->n_left_out[SEAM_KEPT_TOO_MANY] += kept->files.n;
		return;
	}
	if (has_time && kept->files.n && check_paths(kept) == 0)
		has_time = wait_for_jobs(kept, to);
	for (uint32_t i = 0; i < kept->files.n; i++) {
		const struct seam_kept_file *file = &kept->files.items[i];
		uint32_t source;
		int r;

		if (file->is_at_path && !file->is_hit)
			continue;
		if (!has_time) {
			counts->n_left_out[SEAM_KEPT_INTERRUPTED]++;
			continue;
		}
		source = source_of(kept, i);
		r = source == SEAM_NONE ? -EACCES :
		    copy_file(kept, source, to->bundle,
			      rest(budget, counts->n_bytes), counts);
		if (r < 0)
			seam_kept_counts_leave_out(counts, r, NULL);
		else
			has_time = wait_for_jobs(kept, to);
	}
	if (!has_time || counts->n_left_out[SEAM_KEPT_TIMED_OUT])
		remove_part(to->bundle);
}

void seam_kept_files_copy(struct seam_kept_files *kept,
			  const struct seam_kept_destination *to,
			  struct seam_kept_files_counts *counts)
{
	bool has_time = !kept->helper || wait_for_jobs(kept, to);

	*counts = (struct seam_kept_files_counts) {
		.files.n_left_out[SEAM_KEPT_TOO_MANY] = kept->n_too_many,
	};
	if (kept->has_vdso)
		copy_vdso(kept, to->bundle, &counts->files);
	seam_follow_copy(&kept->follow, to, &counts->jit);
	copy_files(kept, to, rest(to->budget_bytes, counts->jit.n_bytes),
		   has_time, &counts->files);
}

void seam_kept_files_fini(struct seam_kept_files *kept)
{
	for (size_t i = 0; i < kept->files.n; i++) {
		seam_helper_close(kept->helper, kept->files.items[i].user,
				  kept->files.items[i].fd);
		free(kept->files.items[i].path);
	}
	seam_helper_free(kept->helper);
	free(kept->files.items);
	seam_index_fini(&kept->index);
	seam_follow_fini(&kept->follow);
	*kept = (struct seam_kept_files) { 0 };
}
