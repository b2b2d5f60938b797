/* SPDX-License-Identifier: MIT */
/* kept_files.c - a list of files, and jobs for each; see kept_files.h */
#include "record/bundle/kept_files.h"

#include "base/file.h"
#include "base/hash.h"
#include "base/text.h"
#include "symbol/elf/build_id.h"
#include "symbol/elf/elf_file.h"
#include "wire/perf/perf_sample.h"

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
	NAME_BYTES = 2 * SEAM_MAPPED_BUILD_ID + 1,
};

/* A vdso below this belongs to a 32-bit process and is not ours. */
#define FIRST_64_BIT_ADDR (UINT64_C(1) << 32)

/* Pages of addresses, for --keep-files. */
enum { PAGE_BITS = 12 };

/* ---- counts ---- */

static enum seam_kept_cause cause_of(int code)
{
	switch (-code) {
	case 0:
	case ENOENT:
	case ESRCH: return SEAM_KEPT_GONE;
	case EAGAIN: return SEAM_KEPT_LEASED;
	case EIO: return SEAM_KEPT_NOT_WRITTEN;
	case EBUSY:
	case ETIMEDOUT: return SEAM_KEPT_TIMED_OUT;
	case EFBIG: return SEAM_KEPT_TOO_LARGE;
	case EMFILE:
	case ENFILE:
	case ENOMEM: return SEAM_KEPT_TOO_MANY;
	default: return SEAM_KEPT_REFUSED;
	}
}

void seam_kept_counts_leave_out(struct seam_kept_counts *counts, int code,
				const struct seam_err *why)
{
	counts->n_left_out[cause_of(code)]++;
	if (!why || !why->n_causes || counts->why.n_causes)
		return;
	counts->why = *why;
	counts->why_cause = cause_of(code);
}

/* ---- a job for one file ---- */

/* Opens a file, or copies one that is open. */
struct file_job {
	struct seam_helper_job job;	/* .tag: of the file at @fd */
	struct seam_kept_files *kept;	/* for done() */
	struct seam_file_identity is;
	int fd;				/* -1: it could not be opened ... */
	int code;			/* ... for this -errno */
	bool is_protected;

	/* To open. */
	struct seam_file_mapping mapping;	/* .path: below */
	uint64_t copy_bytes;	/* a result; 0: it is at its path */

	/* To copy. */
	int bundle;			/* its folder */
	uint64_t budget;
	int result;	/* 1: copied; 0: an equal copy was; -errno */
	uint64_t n_bytes;		/* of the copy */
	char path[];			/* as in the record */
};

static void free_file_job(struct seam_helper_job *job)
{
	struct file_job *j = (struct file_job *)job;

	seam_file_close_fd(j->fd);
	seam_file_close_fd(j->bundle);
	free(j);
}

static struct file_job *make_job(struct seam_kept_files *kept, uint32_t i)
{
	const struct seam_kept_file *file = &kept->files.items[i];
	size_t n = strlen(file->path) + 1;
	struct file_job *j = calloc(1, sizeof(*j) + n);

	if (!j)
		return NULL;
	j->job = (struct seam_helper_job) {
		.free = free_file_job, .context = kept, .tag = i,
		.user = file->user,
	};
	j->kept = kept;
	j->is = file->is;
	j->fd = j->bundle = -1;
	memcpy(j->path, file->path, n);
	return j;
}

/* The file at @path, open, if it is the recorded one; or -1. */
static int open_at_path(const char *path, const struct seam_file_identity *is)
{
	int fd = seam_elf_open_fd(path, NULL);

	if (fd < 0 || seam_mapped_file_is(fd, is))
		return fd;
	close(fd);
	return -1;
}

/* ---- open ---- */

/*
 * Take the file at its path instead, if that one alone is protected.  The path
 * is the program's, and opened with our rights: only what all may read.
 */
static void use_path(struct file_job *j)
{
	int fd = open_at_path(j->path, &j->is);
	struct stat st = { 0 };

	fstat(fd < 0 ? j->fd : fd, &st);
	if (fd < 0) {
		j->copy_bytes = (uint64_t)st.st_size;
	} else if (j->is_protected || !(st.st_mode & S_IROTH) ||
		   !seam_mapped_file_is_protected(fd)) {
		close(fd);
	} else {
		j->is_protected = true;
		close(j->fd);
		j->fd = fd;
	}
}

static void open_run(struct seam_helper_job *job)
{
	struct file_job *j = (struct file_job *)job;
	int fd = seam_mapped_file_open(&j->mapping, &j->is, &j->is_protected);

	j->code = fd < 0 ? fd : 0;
	j->fd = fd < 0 ? -1 : fd;
	if (fd < 0)
		return;
	if (!j->is.build_id_size)
		j->is.content_id = seam_content_id_read(fd);
	use_path(j);
}

static void open_done(struct seam_helper_job *job, void *context)
{
	struct file_job *j = (struct file_job *)job;
	struct seam_kept_files *kept = context;
	struct seam_kept_file *file = &kept->files.items[job->tag];

	file->fd = j->fd;
	file->code = j->code;
	file->copy_bytes = j->copy_bytes;
	file->is_protected = j->is_protected;
	file->is.content_id = j->is.content_id;
	kept->n_held -= j->fd < 0;
	j->fd = -1;
}

static void open_given_up(void *context, uint64_t tag)
{
	struct seam_kept_files *kept = context;

	kept->files.items[tag].code = -ETIMEDOUT;
	kept->n_held--;
}

/*
 * Open file @i of @kept, mapped as @m, as the process of @m sees it.  0, or
 * -ENOMEM or -EBUSY if the job was not queued, as all jobs here.
 */
static int open_file(struct seam_kept_files *kept,
		     const struct seam_perf_mapping *m, uint32_t i)
{
	struct file_job *j = make_job(kept, i);

	if (!kept->helper)
		kept->helper = seam_helper_new(NULL);
	if (!j || !kept->helper) {
		free(j);
		return -ENOMEM;
	}
	j->job.run = open_run;
	j->job.done = open_done;
	j->job.given_up = open_given_up;
	j->mapping = (struct seam_file_mapping) {
		.pid = m->pid, .begin = m->addr, .end = m->addr + m->len,
		.path = j->path,
	};
	return seam_helper_submit(kept->helper, &j->job);
}

/* ---- check paths ---- */

struct check_job {
	struct seam_helper_job job;
	size_t n;
	struct checked_file {
		struct seam_file_identity is;
		char *path;
		bool is_at_path;
	} files[];
};

static void check_run(struct seam_helper_job *job)
{
	struct check_job *c = (struct check_job *)job;

	for (size_t i = 0; i < c->n; i++) {
		int fd = open_at_path(c->files[i].path, &c->files[i].is);

		c->files[i].is_at_path = fd >= 0;
		seam_file_close_fd(fd);
		seam_helper_progress(job);
	}
}

static void check_done(struct seam_helper_job *job, void *context)
{
	struct check_job *c = (struct check_job *)job;
	struct seam_kept_files *kept = context;

	for (size_t i = 0; i < c->n; i++)
		kept->files.items[i].is_at_path = c->files[i].is_at_path;
}

static void check_free(struct seam_helper_job *job)
{
	struct check_job *c = (struct check_job *)job;

	for (size_t i = 0; i < c->n; i++)
		free(c->files[i].path);
	free(c);
}

/* Set is_at_path of all files, in one job. */
static int check_paths(struct seam_kept_files *kept)
{
	size_t n = kept->files.n;
	struct check_job *c = calloc(1, sizeof(*c) + n * sizeof(*c->files));

	if (!c)
		return -ENOMEM;
	c->job = (struct seam_helper_job) {
		.run = check_run, .done = check_done, .free = check_free,
		.context = kept, .user = SEAM_HELPER_NO_USER,
	};
	for (; c->n < n; c->n++) {
		struct seam_kept_file *file = &kept->files.items[c->n];

		file->is_at_path = false;
		c->files[c->n] = (struct checked_file) {
			.is = file->is, .path = strdup(file->path),
		};
		if (!c->files[c->n].path) {
			check_free(&c->job);
			return -ENOMEM;
		}
	}
	return seam_helper_submit(kept->helper, &c->job);
}

/* ---- copy ---- */

static bool copy_bytes(struct file_job *c, int to)
{
	off_t offset = 0;

	while ((uint64_t)offset < c->n_bytes) {
		uint64_t left = c->n_bytes - (uint64_t)offset;
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
static bool is_equal(struct file_job *c, int dir, const char *name)
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
 * Of two files with one build id that are not protected and differ, either may
 * be what a third process has mapped: -EEXIST, and there is no copy.
 */
static int copy_into(struct file_job *c, int dir)
{
	char name[NAME_BYTES];
	int to;

	if (c->is.build_id_size)
		seam_text_hex(name, c->is.build_id, c->is.build_id_size);
	else
		snprintf(name, sizeof(name), "%016" PRIx64, c->is.content_id);
	if (faccessat(dir, name, F_OK, AT_SYMLINK_NOFOLLOW) == 0) {
		if (c->is_protected || is_equal(c, dir, name))
			return 0;
		unlinkat(dir, name, 0);
		return -EEXIST;
	}
	to = create(dir);
	return to >= 0 && publish(dir, to, copy_bytes(c, to), name) ? 1 : -EIO;
}

static int copy(struct file_job *c)
{
	const struct seam_bundle bundle = { .dir = c->bundle };
	struct stat st;
	int dir, r;

	/* the file that is held may have been written to since */
	if (c->fd < 0 || fstat(c->fd, &st) < 0 ||
	    !seam_mapped_file_is(c->fd, &c->is))
		return c->code ? c->code : -ENOENT;
	c->n_bytes = (uint64_t)st.st_size;
	if (c->n_bytes > SEAM_KEPT_MAX_FILE_BYTES || c->n_bytes > c->budget)
		return -EFBIG;
	dir = seam_bundle_folder(&bundle, "elf", NULL);
	r = dir < 0 ? -EIO : copy_into(c, dir);
	seam_file_close_fd(dir);
	return r;
}

static void copy_run(struct seam_helper_job *job)
{
	struct file_job *c = (struct file_job *)job;

	c->result = copy(c);
}

static void copy_done(struct seam_helper_job *job, void *context)
{
	struct file_job *c = (struct file_job *)job;
	struct seam_kept_counts *counts = context;
	struct seam_kept_file *file = &c->kept->files.items[job->tag];

	file->fd = c->fd;
	file->code = c->code;
	file->is_ambiguous = c->result == -EEXIST;
	c->fd = -1;
	if (c->result < 0)
		seam_kept_counts_leave_out(counts, c->result, NULL);
	if (c->result <= 0)
		return;
	counts->n_copied++;
	counts->n_bytes += c->n_bytes;
}

static void copy_given_up(void *context, uint64_t tag)
{
	(void)tag;
	seam_kept_counts_leave_out(context, -ETIMEDOUT, NULL);
}

/*
 * Copy file @i into @bundle.  The result is added to @counts; a larger file
 * than @budget is left out.
 */
static int copy_file(struct seam_kept_files *kept, uint32_t i,
		     const struct seam_bundle *bundle, uint64_t budget,
		     struct seam_kept_counts *counts)
{
	struct seam_kept_file *file = &kept->files.items[i];
	struct file_job *c = make_job(kept, i);

	if (!c)
		return -ENOMEM;
	c->job.run = copy_run;
	c->job.done = copy_done;
	c->job.given_up = copy_given_up;
	c->job.context = counts;
	c->job.limit_ns = COPY_LIMIT_NS;
	c->bundle = fcntl(bundle->dir, F_DUPFD_CLOEXEC, 0);
	c->code = file->code;
	c->is_protected = file->is_protected;
	c->budget = budget;
	/* moved: a job that is given up keeps the descriptor */
	c->fd = file->fd;
	file->fd = -1;
	file->code = -ETIMEDOUT;
	return seam_helper_submit(kept->helper, &c->job);
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

/* ---- hits ---- */

void seam_kept_files_address(struct seam_kept_files *kept, uint64_t addr)
{
	uint64_t page = addr >> PAGE_BITS;
	uint64_t hash = seam_hash_u64(page);

	if (SEAM_INDEX_FIND(&kept->page_index, hash, i,
			    kept->pages.items[i] == page) != SEAM_NONE)
		return;
	if (kept->pages.n >= SEAM_KEPT_MAX_HITS ||
	    SEAM_INDEX_APPEND(&kept->page_index, hash, &kept->pages, page) ==
	    SEAM_NONE)
		kept->n_hits_left_out++;
}

/* False: of the kernel, or a context marker in a call chain. */
static bool is_user(uint64_t addr)
{
	return addr < UINT64_C(1) << 56;
}

void seam_kept_files_sample(struct seam_kept_files *kept,
			    const struct seam_perf_attr *attr,
			    struct seam_bytes payload)
{
	struct seam_perf_sample sample;

	if (seam_perf_sample_read(attr, SEAM_NATIVE, payload, &sample) < 0)
		return;
	if (is_user(sample.ip))
		seam_kept_files_address(kept, sample.ip);
	for (size_t i = 0; i < sample.callchain.n; i++) {
		uint64_t addr = seam_perf_u64(&sample.callchain, i);

		if (is_user(addr))
			seam_kept_files_address(kept, addr);
	}
}

static int by_number(const void *a, const void *b)
{
	return SEAM_COMPARE(*(const uint64_t *)a, *(const uint64_t *)b);
}

/* Set is_hit of the files that samples and functions are in. */
static void mark_hits(struct seam_kept_files *kept)
{
	SEAM_ARRAY(uint64_t) pages = { 0 };
	bool has_all = SEAM_ARRAY_EXTEND(&pages, kept->pages.items,
					 kept->pages.n);

	SEAM_ARRAY_SORT(&pages, by_number);
	for (size_t i = 0; i < kept->maps.n; i++) {
		const struct seam_kept_mapping *m = &kept->maps.items[i];
		size_t first = SEAM_ARRAY_SEARCH(k, pages.n, pages.items[k] <
						 m->begin >> PAGE_BITS);

		/* without memory all were hit: none is missed */
		kept->files.items[m->file].is_hit |= !has_all ||
			(first < pages.n &&
			 pages.items[first] << PAGE_BITS < m->end);
	}
	free(pages.items);
}

/* ---- the list ---- */

const struct seam_perf_mapping *
seam_kept_files_mapping_of(const struct seam_perf_sideband *record)
{
	return record->type == PERF_RECORD_MMAP2 &&
	       record->mapping.prot & PROT_EXEC ? &record->mapping : NULL;
}

static uint64_t hash_of(const struct seam_perf_mapping *m)
{
	uint64_t id = m->build_id_size ?
		      seam_hash_bytes(m->build_id, m->build_id_size, 0) :
		      m->ino;

	return seam_hash_bytes(m->filename, strlen(m->filename), id);
}

static bool is_of(const struct seam_kept_file *file,
		  const struct seam_perf_mapping *m)
{
	return file->is.build_id_size == m->build_id_size &&
	       (m->build_id_size ? memcmp(file->is.build_id, m->build_id,
					  m->build_id_size) == 0 :
				   file->is.ino == m->ino) &&
	       strcmp(file->path, m->filename) == 0;
}

static uint32_t find(const struct seam_kept_files *kept,
		     const struct seam_perf_mapping *m)
{
	return SEAM_INDEX_FIND(&kept->index, hash_of(m), k,
			       is_of(&kept->files.items[k], m));
}

/* False: out of memory. */
static bool add_file(struct seam_kept_files *kept,
		     const struct seam_perf_mapping *m, uid_t user)
{
	struct seam_kept_file file = {
		.fd = -1, .user = user, .path = strdup(m->filename),
		.is = { .build_id_size = m->build_id_size, .ino = m->ino },
	};

	if (m->build_id_size)
		memcpy(file.is.build_id, m->build_id, m->build_id_size);
	if (file.path && SEAM_INDEX_APPEND(&kept->index, hash_of(m),
					   &kept->files, file) != SEAM_NONE)
		return true;
	free(file.path);
	return false;
}

/* The index of the file that is mapped as @m; SEAM_NONE: not in the list. */
static uint32_t find_or_add(struct seam_kept_files *kept,
			    const struct seam_perf_mapping *m)
{
	uint32_t i = find(kept, m);
	uid_t user;
	int r;

	if (i != SEAM_NONE)
		return i;
	user = seam_helper_user_of(m->pid);
	if (kept->files.n >= SEAM_KEPT_MAX_FILES ||
	    !seam_user_share_take_file(kept->of_user, user) ||
	    !add_file(kept, m, user)) {
		kept->n_too_many++;
		return SEAM_NONE;
	}
	i = (uint32_t)kept->files.n - 1;
	r = kept->n_held >= SEAM_KEPT_MAX_HELD ? -ENFILE :
	    open_file(kept, m, i);
	kept->files.items[i].code = r;
	kept->n_held += r == 0;
	return i;
}

void seam_kept_files_sideband(struct seam_kept_files *kept,
			      const struct seam_perf_sideband *record)
{
	const struct seam_perf_mapping *m = seam_kept_files_mapping_of(record);
	uint32_t i;

	seam_follow_sideband(&kept->follow, record);
	if (!m)
		return;
	if (strcmp(m->filename, "[vdso]") == 0 && m->addr >= FIRST_64_BIT_ADDR)
		kept->has_vdso = true;
	/* "//anon" and "[heap]" are no files */
	if (m->filename[0] != '/' || m->filename[1] == '/' ||
	    (!m->build_id_size && !m->ino))
		return;
	i = find_or_add(kept, m);
	if (!kept->keeps_hits || i == SEAM_NONE)
		return;
	if (kept->maps.n >= SEAM_KEPT_MAX_HITS ||
	    !SEAM_ARRAY_ADD(&kept->maps, (struct seam_kept_mapping) {
			    .file = i, .begin = m->addr,
			    .end = m->addr + m->len }))
		kept->n_hits_left_out++;
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

/* In this thread, our own vdso: the kernel gives all 64-bit processes it. */
static void copy_vdso(struct seam_kept_files *kept,
		      const struct seam_bundle *bundle,
		      struct seam_kept_counts *counts)
{
	struct seam_bytes vdso = seam_own_vdso(kept->vdso_build_id,
					       &kept->vdso_build_id_size);
	int dir = vdso.size ? seam_bundle_folder(bundle, "elf", NULL) : -1;
	int fd = dir < 0 ? -1 : create(dir);
	char name[NAME_BYTES];

	seam_text_hex(name, kept->vdso_build_id, kept->vdso_build_id_size);
	if (fd < 0 || !publish(dir, fd, seam_file_write_at(
			fd, vdso.data, vdso.size, 0, name, NULL) == 0, name)) {
		kept->vdso_build_id_size = 0;
		if (vdso.data)
			seam_kept_counts_leave_out(counts, -EIO, NULL);
	}
	seam_file_close_fd(dir);
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

static bool is_same(const struct seam_file_identity *a,
		    const struct seam_file_identity *b)
{
	return a->build_id_size == b->build_id_size &&
	       memcmp(a->build_id, b->build_id, a->build_id_size) == 0 &&
	       (a->build_id_size || a->content_id == b->content_id);
}

/*
 * The file to copy where file @i is needed: a protected one with its build id,
 * else itself; SEAM_NONE: others with it differ.
 */
static uint32_t source_of(const struct seam_kept_files *kept, uint32_t i)
{
	const struct seam_kept_file *files = kept->files.items;
	uint32_t source = i;

	for (uint32_t k = 0; k < kept->files.n; k++) {
		if (!is_same(&files[k].is, &files[i].is))
			continue;
		if (files[k].fd >= 0 && files[k].is_protected)
			return k;
		if (files[k].is_ambiguous)
			source = SEAM_NONE;
	}
	return source;
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
	if (kept->keeps_hits)
		mark_hits(kept);
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
	free(kept->maps.items);
	free(kept->pages.items);
	seam_index_fini(&kept->page_index);
	seam_follow_fini(&kept->follow);
	*kept = (struct seam_kept_files) { 0 };
}
