/* SPDX-License-Identifier: MIT */
/*
 * cfi_files.h - the call frame information of mapped files
 *
 * One file for each build id, shared by all processes that map it; without a
 * build id, for each path and inode.  A file is opened when it is mapped,
 * before it may be deleted, and read when the first sample is in it; both in a
 * helper thread, because both may block.  Until then a sample waits
 * (waiting_samples.h).  The vdso, which has no file, is read from our memory.
 *
 * A file that could not be opened is tried again when another process maps
 * it.  The number of files, of open descriptors and the bytes of call frame
 * information are bounded.
 *
 * Threads: one, the recorder's.
 */
#ifndef SEAM_CFI_FILES_H
#define SEAM_CFI_FILES_H

#include "base/array.h"
#include "base/index.h"
#include "record/proc/helper.h"
#include "record/proc/mapped_file.h"
#include "symbol/elf/cfi_file.h"
#include "unwind/compile/cfi_rows.h"
#include "wire/perf/perf_sideband.h"

enum {
	SEAM_CFI_FILES_MAX = 8192,
	SEAM_CFI_FILES_MAX_OF_PROCESS = 1024,
	SEAM_CFI_FILES_COUNTERS = 4096,
	SEAM_CFI_FILES_MAX_OPEN = 512,	/* descriptors */
	SEAM_CFI_FILES_MAX_TRIES = 4,	/* to open a file */
};

/* Of sections in memory. */
#define SEAM_CFI_FILES_MAX_BYTES (UINT64_C(512) << 20)

enum seam_mapped_cfi_state {
	SEAM_MAPPED_CFI_CLOSED,		/* never opened */
	SEAM_MAPPED_CFI_OPENING,	/* a job runs, or is queued */
	SEAM_MAPPED_CFI_OPEN,		/* not read yet */
	SEAM_MAPPED_CFI_READY,
	SEAM_MAPPED_CFI_FAILED,
};

struct seam_mapped_cfi {
	uint8_t state;			/* enum seam_mapped_cfi_state */
	uint8_t n_tries;
	bool is_wanted;			/* a sample is in it */
	bool is_jvm;			/* libjvm.so */
	int fd;				/* SEAM_MAPPED_CFI_OPEN: owned */
	char *path;			/* as it was recorded first; owned */
	struct seam_file_identity identity;
	struct seam_file_mapping mapping;	/* the last one; .path unused */
	struct seam_cfi_file cfi;	/* READY, as .rows */
	struct seam_unwind_rows rows;
};

/* Zeroed is valid and empty. */
struct seam_cfi_files {
	struct seam_helper *helper;	/* started with the first job */
	SEAM_ARRAY(struct seam_mapped_cfi *) files;
	struct seam_index index;
	/* Files that a process was the first to map; by pid. */
	uint16_t of_process[SEAM_CFI_FILES_COUNTERS];
	size_t n_open;			/* descriptors, or jobs for one */
	uint64_t n_bytes;
	uint64_t n_changes;		/* files that are no longer OPENING */
	uint64_t n_left_out;		/* files beyond a limit */
	int shortage;	/* -errno: descriptors or memory did not suffice; 0 */
};

/*
 * The id of the file that @mapping is of; SEAM_NONE: it is no file, as JIT
 * code, or there are too many.  A new file is opened if @is_new: the mapping
 * was made just now.  Never blocks.
 */
uint32_t seam_cfi_files_add(struct seam_cfi_files *files,
			    const struct seam_perf_mapping *mapping,
			    bool is_new);

/*
 * The file, which is requested if it was not read yet: wait as long as
 * seam_cfi_files_is_pending().
 */
struct seam_mapped_cfi *seam_cfi_files_want(struct seam_cfi_files *files,
					    uint32_t id);

static inline bool
seam_cfi_files_is_pending(const struct seam_mapped_cfi *file)
{
	return file->state == SEAM_MAPPED_CFI_OPENING;
}

/* Take the results of the helper; true while jobs run.  Never blocks. */
bool seam_cfi_files_collect(struct seam_cfi_files *files);

void seam_cfi_files_fini(struct seam_cfi_files *files);

#endif /* SEAM_CFI_FILES_H */
