/* SPDX-License-Identifier: MIT */
/*
 * kept_files.h - copies of files that a later reader could not find
 *
 * A mapped file may be deleted or replaced while its program runs, or only a
 * container may see it.  So copies go into the bundle:
 *
 *   1. The side-band names each file that is mapped executable.  When a file
 *	appears for the first time, it is opened the way its process sees it,
 *	and the descriptor is held if the file has the recorded build id.
 *	Without a build id, the contents of the file identify it from then on
 *	(symbol/elf/build_id.h), also to readers: the manifest has the list.
 *   2. When the recording ends, the files that are no longer found at their
 *	paths are copied to elf/ID; with --keep-files also those that
 *	samples are in (kept_hits.h).  The vdso, which has no file, is copied
 *	from our own memory.  A reader uses the copy for all files with its
 *	build id.  So of several a protected one (mapped_file.h) is copied; if
 *	there is none and they differ, none is.
 *   3. Dumps and maps of JITs are copied to jit/ as they grow (follow.h).
 *
 * Files of other processes are opened as target_file.h says, in a helper
 * (helper.h): a file system of another user may block.  Limits bound
 * what a hostile program can make a recorder hold and copy.  What is left out
 * is counted by cause (kept_counts.h).
 *
 * Nothing here fails a recording.
 *
 * Threads: one, the recorder's; the helper runs jobs that own what they use.
 */
#ifndef SEAM_KEPT_FILES_H
#define SEAM_KEPT_FILES_H

#include "base/array.h"
#include "base/index.h"
#include "record/bundle/bundle.h"
#include "record/bundle/follow.h"
#include "record/bundle/kept_counts.h"
#include "record/proc/helper.h"
#include "record/proc/user_share.h"
#include "wire/perf/perf_sideband.h"

enum {
	SEAM_KEPT_BUILD_ID = 20,
	SEAM_KEPT_MAX_FILES = 8192,
	SEAM_KEPT_MAX_PATHS = 16,	/* of one build id */
	SEAM_KEPT_MAX_HELD = 1024,	/* descriptors */
};

/* Of one file, and of all of elf/. */
#define SEAM_KEPT_MAX_FILE_BYTES (UINT64_C(256) << 20)
#define SEAM_KEPT_MAX_BYTES (UINT64_C(1) << 30)

struct seam_kept_file {
	int fd;			/* -1: not open */
	int code;		/* -errno of opening it; 0: none so far */
	uid_t user;		/* whose process mapped it first */
	bool is_hit;		/* samples are in it */
	bool is_at_path;	/* when the paths were checked last ... */
	bool is_protected_there;	/* ... and that file is protected */
	bool is_protected;	/* the open one is */
	bool is_ambiguous;	/* it differs from a copy with its build id */
	uint8_t build_id[SEAM_KEPT_BUILD_ID];
	uint8_t build_id_size;	/* 0: none; then these: */
	uint64_t ino, content_id;	/* 0: not known (yet) */
	uint64_t copy_bytes;	/* its size, if it was not at its path */
	char *path;		/* as in the record */
};

/* Counts of one bundle. */
struct seam_kept_files_counts {
	struct seam_kept_counts files;	/* elf/ */
	struct seam_kept_counts jit;	/* jit/ */
};

/* Zeroed is valid and empty. */
struct seam_kept_files {
	struct seam_helper *helper;	/* NULL: could not be started */
	SEAM_ARRAY(struct seam_kept_file) files;
	struct seam_index index;	/* of files, by build id or inode */
	size_t n_held;			/* open, or a job will open it */
	uint16_t of_user[SEAM_SHARE_USERS + 1];	/* files; by share */
	struct seam_follow follow;
	bool has_vdso;			/* a 64-bit process mapped it */
	uint8_t vdso_build_id[SEAM_KEPT_BUILD_ID];
	size_t vdso_build_id_size;	/* 0: not copied */
	uint64_t n_too_many;
};

/* Where files are copied to, and for how long. */
struct seam_kept_destination {
	const struct seam_bundle *bundle;
	bool is_snapshot;	/* the recording goes on */
	uint64_t budget_bytes;	/* of elf/ and jit/ together */
	/* Wait until @fd is readable, or @timeout_ms.  False: time is up. */
	bool (*wait)(void *context, int fd, int timeout_ms);
	void *context;
};

/* The executable mapping in @record; NULL: it has none. */
const struct seam_perf_mapping *
seam_kept_files_mapping_of(const struct seam_perf_sideband *record);

/* Process a record of the side-band.  Never blocks. */
void seam_kept_files_sideband(struct seam_kept_files *kept,
			      const struct seam_perf_sideband *record);

/* Collect the results of the helpers.  Once a round; never blocks. */
void seam_kept_files_collect(struct seam_kept_files *kept);

/*
 * How many bytes a copy would take now, by the sizes of files that are not at
 * their paths; at most @max.
 */
uint64_t seam_kept_files_reserved_bytes(const struct seam_kept_files *kept,
					uint64_t max);

/* The file that is mapped as @m; NULL: not in the list. */
struct seam_kept_file *
seam_kept_files_find(struct seam_kept_files *kept,
		     const struct seam_perf_mapping *m);

/*
 * Copy the files that are not at their paths, and those that were hit.  May be
 * called again, for another bundle.
 */
void seam_kept_files_copy(struct seam_kept_files *kept,
			  const struct seam_kept_destination *to,
			  struct seam_kept_files_counts *counts);

void seam_kept_files_fini(struct seam_kept_files *kept);

#endif /* SEAM_KEPT_FILES_H */
