/* SPDX-License-Identifier: MIT */
/*
 * kept_files.h - files that a later reader could not find, kept in the bundle
 *
 * A mapped file may be deleted or replaced while its program runs, or lie
 * where only a container sees it.  Each file that appears in the side-band,
 * or was mapped before, is opened when it is first seen, the way the target
 * sees it, and held.  At the end of the recording those that are not where
 * their path says any more are copied to elf/BUILDID in the bundle, and with
 * --keep-files those that were hit.  So is the vdso, which has no file.
 *
 * What is held is known by build id: a file that does not carry the one in
 * the record is not taken for it.
 *
 * All files of other processes are opened as target_file.h says, by a helper
 * thread (helper.h).  What a hostile program can make us take is bounded by
 * the numbers below; what is beyond them is counted by cause.
 *
 * Nothing here fails a recording.
 */
#ifndef SEAM_KEPT_FILES_H
#define SEAM_KEPT_FILES_H

#include "base/array.h"
#include "base/index.h"
#include "record/bundle/bundle.h"
#include "record/bundle/kept_jit.h"
#include "record/proc/helper.h"
#include "ring/layout.h"

enum {
	SEAM_KEPT_BUILD_ID = 20,
	/* Mapped files that are remembered: paths, and descriptors of them. */
	SEAM_KEPT_MAX_FILES = 8192,
	SEAM_KEPT_MAX_OF_PROCESS = 1024,
	SEAM_KEPT_MAX_PATHS = 16,	/* of one build id */
	SEAM_KEPT_MAX_NAME_BYTES = 8 << 20,
	SEAM_KEPT_MAX_HELD = 1024,
	SEAM_KEPT_N_COUNTERS = 4096,
};

/* Of one file, and of all of elf/. */
#define SEAM_KEPT_MAX_FILE_BYTES (UINT64_C(256) << 20)
#define SEAM_KEPT_MAX_BYTES (UINT64_C(1) << 30)

struct seam_kept_file {
	int fd;			/* -1: not open */
	int code;		/* why: 0 not yet, or -errno */
	bool is_hit;		/* samples are in it */
	bool is_there;		/* its path led to it when that was looked at */
	uint8_t build_id[SEAM_KEPT_BUILD_ID];
	uint8_t build_id_size;
	uint64_t lost_bytes;	/* its size, if its path led elsewhere */
	char *path;		/* as in the record */
};

/* What became of the files of one bundle. */
struct seam_kept_files_counts {
	uint64_t n_copied;
	uint64_t n_bytes;	/* of elf/ */
	uint64_t n_missed;	/* gone before they could be opened */
	uint64_t n_refused;	/* their user may not read them, or no files */
	uint64_t n_leased;	/* under another process's write lease */
	uint64_t n_stuck;	/* could not be read in time */
	uint64_t n_too_large;	/* beyond what a bundle takes in */
	uint64_t n_failed;	/* could not be written */
	uint64_t n_interrupted;	/* by a signal, while the recording ended */
	uint64_t n_too_many;	/* beyond those that are remembered */
	struct seam_kept_jit_counts jit;
};

/* Zeroed is valid and empty. */
struct seam_kept_files {
	struct seam_helper *helper;	/* NULL: none could be had */
	SEAM_ARRAY(struct seam_kept_file) files;
	struct seam_index index;	/* of files, by build id */
	size_t n_name_bytes;
	size_t n_held;			/* open, or asked for */
	uint16_t of_process[SEAM_KEPT_N_COUNTERS];	/* by a hash of pids */
	struct seam_kept_jit jit;
	bool saw_vdso;
	uint8_t vdso_build_id[SEAM_KEPT_BUILD_ID];
	size_t vdso_build_id_size;	/* 0: not kept */
	uint64_t n_too_many;
};

/* How to end: where to, with how many bytes, and for how long. */
struct seam_kept_destination {
	const struct seam_bundle *bundle;
	bool is_snapshot;	/* the recording goes on */
	uint64_t budget_bytes;	/* of elf/ and jit/ together */
	/*
	 * Wait until @fd is readable, or @timeout_ms.  False: no more time.
	 */
	bool (*wait)(void *context, int fd, int timeout_ms);
	void *context;
};

/* An executable mapping of a file, out of PERF_RECORD_MMAP2. */
struct seam_kept_files_mapping {
	int32_t pid;
	uint64_t addr, bytes;
	const uint8_t *build_id;
	size_t build_id_size;
	const char *path;
};

/* False: @record is not one, or is damaged.  Borrows from @record. */
bool seam_kept_files_read_mapping(const struct seam_ring_header *record,
			    struct seam_kept_files_mapping *m);

/* A record of @size bytes, whole and in one piece.  Never blocks. */
void seam_kept_files_sideband(struct seam_kept_files *kept,
		   const struct seam_ring_header *record);

/* Take what the helper has opened.  Once a round; never blocks. */
void seam_kept_files_collect(struct seam_kept_files *kept);

/*
 * What would be copied now, in bytes, of files whose paths lead elsewhere; at
 * most @most.
 */
uint64_t seam_kept_files_reserved_bytes(const struct seam_kept_files *kept, uint64_t most);

/* The file of @path with that build id; NULL: not remembered. */
struct seam_kept_file *seam_kept_files_find(struct seam_kept_files *kept, const char *path,
				 const uint8_t *build_id, size_t size);

/*
 * Copy what its path does not lead to any more, and what was hit.  May be
 * called again, for another bundle.
 */
void seam_kept_files_copy(struct seam_kept_files *kept,
		      const struct seam_kept_destination *ending,
		      struct seam_kept_files_counts *counts);

void seam_kept_files_fini(struct seam_kept_files *kept);

#endif /* SEAM_KEPT_FILES_H */
