/* SPDX-License-Identifier: MIT */
/* cfi_jobs.c - what the helper does; see cfi_jobs.h */
#include "record/stacks/cfi_jobs.h"

#include "base/clock.h"
#include "base/file.h"
#include "record/proc/debug_file.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

/* Reading .eh_frame from a slow disk takes longer than opening a file. */
#define READ_LIMIT_NS (4 * SEAM_HELPER_LIMIT_NS)

/* ---- open ---- */

static int read_version(int fd, struct seam_file_version *version)
{
	struct stat st;

	if (fstat(fd, &st) < 0)
		return -errno;
	*version = (struct seam_file_version) {
		.dev = st.st_dev, .ino = st.st_ino,
		.size = (uint64_t)st.st_size,
		.mtime_ns = seam_clock_of(st.st_mtim),
		.ctime_ns = seam_clock_of(st.st_ctim),
		.uid = st.st_uid,
		.n_links = st.st_nlink,
	};
	return 0;
}

static void run_open(struct seam_helper_job *job)
{
	struct seam_cfi_job *j = (struct seam_cfi_job *)job;
	int r;

	j->fd = seam_mapped_file_open(&j->mapping, &j->identity,
				      &j->is_protected);
	r = j->fd < 0 ? 0 : read_version(j->fd, &j->version);
	if (r < 0) {
		close(j->fd);
		j->fd = r;
	}
}

/* ---- read ---- */

static struct seam_file_identity identity_of(const struct seam_cfi_file *file)
{
	struct seam_file_identity identity = {
		.build_id_size = file->build_id_size,
	};

	memcpy(identity.build_id, file->build_id, identity.build_id_size);
	return identity;
}

/*
 * Take .debug_frame of the debug file at @path, as the process sees it.  All
 * that map the main file will use it, so its author is to be the same.
 */
static bool take_debug_at(struct seam_cfi_job *j, const char *path)
{
	const struct seam_file_mapping mapping = {
		.pid = j->mapping.pid, .path = path,
	};
	const struct seam_file_identity identity = identity_of(&j->cfi);
	struct seam_file_version version = { 0 };
	struct seam_cfi_file other;
	bool is_protected;
	int fd;

	fd = seam_mapped_file_open(&mapping, &identity, &is_protected);
	seam_helper_progress(&j->job);
	if (fd >= 0 && !is_protected &&
	    (j->is_protected || read_version(fd, &version) < 0 ||
	     version.uid != j->version.uid)) {
		close(fd);
		return false;
	}
	return fd >= 0 && seam_cfi_file_open(&other, fd, NULL) == 0 &&
	       seam_cfi_file_take_debug(&j->cfi, &other);
}

/*
 * Whether nearly all code has .eh_frame, by PLACES addresses of each segment.
 * Most files are so, and need no further file.
 */
static bool is_covered(const struct seam_cfi_file *file)
{
	enum { PLACES = 64 };
	struct seam_eh_fde fde = { 0 };
	unsigned int n = 0, n_without = 0;

	for (size_t i = 0; i < file->segments.n; i++) {
		const struct seam_segment *s = &file->segments.items[i];

		for (uint64_t k = 0; s->is_executable && k < PLACES; k++, n++)
			n_without += seam_eh_frame_find(&file->eh, s->addr +
				s->size / PLACES * k, &fde) != 1;
	}
	return n_without <= n / 4;
}

/*
 * A program without .eh_frame may have its rules in a separate debug file:
 * by its build id, or as .gnu_debuglink names it, in the places of gdb.
 */
static void find_debug(struct seam_cfi_job *j)
{
	const struct seam_cfi_file *file = &j->cfi;
	const struct seam_file_identity identity = identity_of(file);
	char path[PATH_MAX];

	if (file->debug.entries.size || file->build_id_size < 2 ||
	    is_covered(file))
		return;
	for (size_t i = 0; seam_debug_file_path(i, j->path, &identity,
						&file->debug_link, path); i++)
		if (take_debug_at(j, path))
			break;
}

/*
 * A program may remove its file, or an update put another in its place: then
 * the inode has changed, and not what is in the file.
 */
static bool is_as_opened(struct seam_file_version now,
			 const struct seam_file_version *opened)
{
	if (now.n_links < opened->n_links) {
		now.n_links = opened->n_links;
		now.ctime_ns = opened->ctime_ns;
	}
	return seam_file_version_is(&now, opened);
}

static void run_read(struct seam_helper_job *job)
{
	struct seam_cfi_job *j = (struct seam_cfi_job *)job;
	struct seam_file_version now = { 0 };
	int r = seam_cfi_file_open(&j->cfi, j->fd, NULL);

	j->fd = -1;
	seam_helper_progress(job);
	j->result = r;
	if (r < 0)
		return;
	/* what was written to meanwhile is not what the program runs */
	if (read_version(j->cfi.fd, &now) < 0 ||
	    !is_as_opened(now, &j->version) ||
	    (j->identity.build_id_size &&
	     !seam_mapped_file_is(j->cfi.fd, &j->identity)))
		r = -ESTALE;
	if (r == 0)
		find_debug(j);
	if (r == 0)
		r = seam_unwind_rows_init(&j->rows, &j->cfi.eh,
					  &j->cfi.debug);
	if (r < 0)
		seam_cfi_file_close(&j->cfi);
	j->result = r;
}

static void free_job(struct seam_helper_job *job)
{
	struct seam_cfi_job *j = (struct seam_cfi_job *)job;

	seam_file_close_fd(j->fd);
	if (j->result == 0) {
		seam_unwind_rows_fini(&j->rows);
		seam_cfi_file_close(&j->cfi);
	}
	free(j);
}

/* ---- new jobs ---- */

struct seam_cfi_job *
seam_cfi_open_job_new(const struct seam_file_identity *identity,
		      const struct seam_file_mapping *mapping)
{
	size_t path_bytes = strlen(mapping->path) + 1;
	struct seam_cfi_job *j = calloc(1, sizeof(*j) + path_bytes);

	if (!j)
		return NULL;
	memcpy(j->path, mapping->path, path_bytes);
	j->identity = *identity;
	j->mapping = *mapping;
	j->mapping.path = j->path;
	j->job.run = run_open;
	j->job.free = free_job;
	j->job.limit_ns = READ_LIMIT_NS;
	j->job.user = seam_helper_user_of(mapping->pid);
	j->fd = -1;
	j->result = -EBADF;		/* nothing was read yet */
	return j;
}

struct seam_cfi_job *
seam_cfi_read_job_new(const struct seam_file_identity *identity,
		      const struct seam_file_mapping *mapping,
		      const struct seam_file_version *version,
		      bool is_protected, int fd)
{
	struct seam_cfi_job *j = seam_cfi_open_job_new(identity, mapping);

	if (!j)
		return NULL;
	j->job.run = run_read;
	j->version = *version;
	j->is_protected = is_protected;
	j->fd = fd;
	return j;
}
