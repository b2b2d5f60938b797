/* SPDX-License-Identifier: MIT */
/*
 * cfi_jobs.h - open and read mapped files, in a helper
 *
 * The jobs of cfi_files.h, which queues them and takes their results.
 *
 * Threads: as helper.h says.
 */
#ifndef SEAM_CFI_JOBS_H
#define SEAM_CFI_JOBS_H

#include "record/proc/helper.h"
#include "record/proc/mapped_file.h"
#include "symbol/elf/cfi_file.h"
#include "unwind/compile/cfi_rows.h"

/* A file on a disk at a moment. */
struct seam_file_version {
	uint64_t dev, ino, size;
	uint64_t mtime_ns, ctime_ns;
	uint64_t uid;			/* of its owner */
	uint64_t n_links;		/* names in folders */
};

static inline bool seam_file_version_is(const struct seam_file_version *a,
					const struct seam_file_version *b)
{
	return memcmp(a, b, sizeof(*a)) == 0;	/* no padding */
}

/* A file as a process maps it, to be opened or read. */
struct seam_cfi_job {
	struct seam_helper_job job;
	struct seam_file_identity identity;
	struct seam_file_mapping mapping;	/* .path is the job's */
	struct seam_file_version version;
	bool is_protected;			/* see mapped_file.h */
	int fd;
	/* Of one that reads: */
	int result;			/* 0 or -errno; 0: of the following */
	struct seam_cfi_file cfi;
	struct seam_unwind_rows rows;
	char path[];
};

/*
 * A job, whose .done, .given_up, .context and .tag the caller sets, or NULL.
 * @mapping and its path are copied.  It opens the file: the result is .fd or
 * -errno, .version and .is_protected.
 */
struct seam_cfi_job *
seam_cfi_open_job_new(const struct seam_file_identity *identity,
		      const struct seam_file_mapping *mapping);

/*
 * The same, but it reads what is open as @fd, and is of @version.  @fd is
 * taken, unless there is no memory.
 */
struct seam_cfi_job *
seam_cfi_read_job_new(const struct seam_file_identity *identity,
		      const struct seam_file_mapping *mapping,
		      const struct seam_file_version *version,
		      bool is_protected, int fd);

#endif /* SEAM_CFI_JOBS_H */
