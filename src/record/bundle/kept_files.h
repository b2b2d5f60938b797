/* SPDX-License-Identifier: MIT */
/*
 * kept_files.h - copies of files that a later reader could not find
 *
 *   1. The side-band names each file that is mapped executable.  When a file
 *	appears for the first time, it is opened the way its process sees it,
 *	and the descriptor is held if the file has the recorded build id.
 *	Without a build id, the contents of the file identify it from then on
 *	(symbol/elf/build_id.h), also to readers: the manifest has the list.
 *   2. When the recording ends, the files that are no longer found at their
 *	paths are copied to elf/ID; with --keep-files also those that
 *	samples and traced functions are in.  The vdso is copied from our own
 *	memory.  A reader uses the copy for all files with its build id: of
 *	several a protected one (target_file.h) is copied; if there is none
 *	and they differ, none is.
 *   3. Dumps and maps of JITs are copied to jit/ as they grow (follow.h).
 *
 * Files are opened in a helper (helper.h).  Limits bound what a hostile program
 * can make a recorder hold and copy; what is left out is counted by cause.
 * Nothing here fails a recording.
 *
 * Threads: one, the recorder's; the helper runs jobs that own what they use.
 */
#pragma once

#include "base/array.h"
#include "base/index.h"
#include "record/bundle/bundle.h"
#include "record/bundle/follow.h"
#include "record/proc/helper.h"
#include "record/proc/target_file.h"
#include "record/proc/user_share.h"
#include "wire/perf/perf_record.h"

enum {
	SEAM_KEPT_MAX_FILES = 8192,
	SEAM_KEPT_MAX_HELD = 1024,	/* descriptors */
	/* pages, and mappings, of --keep-files; more are left out */
	SEAM_KEPT_MAX_HITS = 1 << 20,
};

/* Of one file, and of all of elf/. */
#define SEAM_KEPT_MAX_FILE_BYTES (UINT64_C(256) << 20)
#define SEAM_KEPT_MAX_BYTES (UINT64_C(1) << 30)

/* A message names each cause, in this order (wire/counts.h). */
enum seam_kept_cause {
	SEAM_KEPT_GONE,		/* before it could be opened */
	SEAM_KEPT_REFUSED,	/* its user may not read it, or not trusted */
	SEAM_KEPT_LEASED,	/* under another process's write lease */
	SEAM_KEPT_TIMED_OUT,	/* not read in time */
	SEAM_KEPT_TOO_LARGE,	/* beyond a limit of bytes */
	SEAM_KEPT_TOO_MANY,	/* beyond a limit of files, processes, memory */
	SEAM_KEPT_NOT_WRITTEN,
	SEAM_KEPT_INTERRUPTED,	/* by a signal, while the recording ended */
	SEAM_KEPT_N_CAUSES,
};

struct seam_kept_counts {
	uint64_t n_copied;
	uint64_t n_bytes;
	uint64_t n_left_out[SEAM_KEPT_N_CAUSES];
	struct seam_err why;	/* the first message ... */
	enum seam_kept_cause why_cause;	/* ... and its cause */
};

/*
 * Count a file that was left out: @code is 0 (it was never opened) or the
 * -errno of opening or checking it, -EIO of writing.  @why: NULL or empty is ok.
 */
void seam_kept_counts_leave_out(struct seam_kept_counts *counts, int code,
				const struct seam_err *why);

struct seam_kept_file {
	int fd;			/* -1: not open */
	int code;		/* -errno of opening it; 0: none so far */
	uid_t user;		/* whose process mapped it first */
	bool is_hit;		/* samples are in it */
	bool is_at_path;	/* when the paths were checked last */
	bool is_protected;	/* the open one is */
	bool is_ambiguous;	/* it differs from a copy with its build id */
	struct seam_file_identity is;
	uint64_t copy_bytes;	/* its size, if it was not at its path */
	char *path;		/* as in the record */
};

struct seam_kept_mapping {
	uint32_t file;
	uint64_t begin, end;
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
	struct seam_index index;	/* of files, by identity and path */
	size_t n_held;			/* open, or a job will open it */
	uint16_t of_user[SEAM_SHARE_USERS + 1];	/* files; by share */
	struct seam_follow follow;
	bool has_vdso;			/* a 64-bit process mapped it */
	uint8_t vdso_build_id[SEAM_MAPPED_BUILD_ID];
	size_t vdso_build_id_size;	/* 0: not copied */
	uint64_t n_too_many;

	/* With --keep-files, which the caller sets: what samples are in. */
	bool keeps_hits;
	SEAM_ARRAY(struct seam_kept_mapping) maps;
	SEAM_ARRAY(uint64_t) pages;
	struct seam_index page_index;
	uint64_t n_hits_left_out;	/* pages and mappings */
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

/*
 * With keeps_hits: a sample of an event with @attr, @payload follows its
 * header; an address of a function whose calls are recorded.  Their pages are
 * joined with the mappings of all processes and times: a file may be copied
 * that no sample is in, but none is missed.
 */
void seam_kept_files_sample(struct seam_kept_files *kept,
			    const struct seam_perf_attr *attr,
			    struct seam_bytes payload);
void seam_kept_files_address(struct seam_kept_files *kept, uint64_t addr);

/*
 * Copy the files that are not at their paths, and those that were hit.  May be
 * called again, for another bundle.
 */
void seam_kept_files_copy(struct seam_kept_files *kept,
			  const struct seam_kept_destination *to,
			  struct seam_kept_files_counts *counts);

void seam_kept_files_fini(struct seam_kept_files *kept);
