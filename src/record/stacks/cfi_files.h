/* SPDX-License-Identifier: MIT */
/*
 * cfi_files.h - the call frame information of mapped files
 *
 * A file is opened when it is mapped, before it may be deleted, and read when
 * the first sample is in it; both in a helper, because both may block.  The
 * vdso, which has no file, is read from our memory.
 *
 * What was read of a file is shared by all that map it.  A build id does not
 * prove that two files are the same: any program can map a file with the build
 * id of another one.  So a mapping is of a file that was opened before
 *
 *   - by its build id (without one, by its path and inode) if that one is
 *     protected (target_file.h): only root or our user can have made it;
 *   - else if it is the same inode, unchanged: it is opened for each process
 *     that maps it.
 *
 * Threads: one, the recorder's.
 */
#pragma once

#include "base/array.h"
#include "base/index.h"
#include "record/proc/helper.h"
#include "record/proc/target_file.h"
#include "record/proc/user_share.h"
#include "symbol/elf/cfi_file.h"
#include "unwind/compile/cfi_rows.h"
#include "wire/perf/perf_record.h"

enum {
	SEAM_CFI_FILES_MAX = 8192,	/* that differ */
	/* Files as processes map them now; protected ones count once. */
	SEAM_CFI_FILES_MAX_MAPPED = 65536,
	SEAM_CFI_FILES_MAX_OPEN = 512,	/* descriptors */
};

/* Of sections in memory. */
#define SEAM_CFI_FILES_MAX_BYTES (UINT64_C(512) << 20)

/* A file on a disk at a moment. */
struct seam_file_version {
	uint64_t dev, ino, size;
	uint64_t mtime_ns, ctime_ns;
	uint64_t uid;			/* of its owner */
	uint64_t n_links;		/* names in folders */
};

enum seam_file_cfi_state {
	SEAM_FILE_CFI_UNREAD,
	SEAM_FILE_CFI_READING,		/* a job runs, or is queued */
	SEAM_FILE_CFI_READY,
	SEAM_FILE_CFI_FAILED,
};

/* One file. */
struct seam_mapped_file_cfi {
	uint8_t state;			/* enum seam_file_cfi_state */
	bool is_protected;
	uid_t user;			/* who is accountable for it */
	int fd;				/* UNREAD: owned */
	struct seam_file_version version;
	struct seam_cfi_file cfi;	/* READY, as .rows */
	struct seam_unwind_rows rows;
};

enum seam_cfi_mapping_state {
	SEAM_CFI_MAPPING_FREE,		/* an unused slot */
	SEAM_CFI_MAPPING_CLOSED,	/* never opened */
	SEAM_CFI_MAPPING_OPENING,	/* a job runs, or is queued */
	SEAM_CFI_MAPPING_OPEN,		/* .file is set */
	SEAM_CFI_MAPPING_FAILED,
};

/* A file as processes map it: protected as all, else as one does. */
struct seam_cfi_mapping {
	uint8_t state;			/* enum seam_cfi_mapping_state */
	bool is_for_all;		/* found by identity from now on */
	bool is_wanted;			/* a sample is in it */
	bool is_jvm;			/* libjvm.so */
	bool is_memory;			/* as of a memfd; it may hold a file */
	uid_t user;			/* who was the first to use it */
	uint32_t n_users;		/* see seam_cfi_files_use() */
	uint32_t file;			/* OPEN: of .files */
	char *path;			/* as it was recorded; owned */
	struct seam_file_identity identity;
	struct seam_file_mapping mapping;	/* .path unused */
};

/* Zeroed is valid and empty. */
struct seam_cfi_files {
	struct seam_helper *helper;	/* started with the first job */
	SEAM_ARRAY(struct seam_cfi_mapping) mappings;
	SEAM_ARRAY(uint32_t) free;	/* slots of these */
	struct seam_index for_all;	/* of mappings, by identity */
	SEAM_ARRAY(struct seam_mapped_file_cfi *) files;
	struct seam_index by_version;	/* of files */
	/* Slots that a user's processes were the first to use; by share. */
	uint16_t of_user[SEAM_SHARE_USERS + 1];
	size_t n_open;			/* descriptors, or jobs for one */
	uint64_t n_bytes;
	uint64_t n_changes;		/* jobs that ended */
	uint64_t n_left_out;		/* files beyond a limit */
	int shortage;	/* -errno: descriptors or memory did not suffice; 0 */
};

/*
 * The id of the file that @mapping is of; SEAM_NONE: it is no file, as JIT
 * code, or there are too many.  A file that is not known is opened if @is_new:
 * the mapping was made just now.  @near is the id of a file that is mapped
 * beside or under it in the same process, or SEAM_NONE: it may be the same.
 * Never blocks.
 *
 * An id is valid while it is in use; the caller's use is the first, and ends
 * with seam_cfi_files_use().
 */
uint32_t seam_cfi_files_add(struct seam_cfi_files *files,
			    const struct seam_perf_mapping *mapping,
			    bool is_new, uint32_t near);

/* @id is used once more (@n 1) or less (@n -1); SEAM_NONE is ok. */
void seam_cfi_files_use(struct seam_cfi_files *files, uint32_t id, int n);

/*
 * The call frame information of @id, which is requested if it was not read
 * yet.  NULL: there is none; *@is_pending: not yet.
 */
struct seam_mapped_file_cfi *seam_cfi_files_want(struct seam_cfi_files *files,
						 uint32_t id, bool *is_pending);

/* Take the results of the helper; true while jobs run.  Never blocks. */
bool seam_cfi_files_collect(struct seam_cfi_files *files);

void seam_cfi_files_fini(struct seam_cfi_files *files);
