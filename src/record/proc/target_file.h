/* SPDX-License-Identifier: MIT */
/*
 * target_file.h - open the files of a traced process without trusting it
 *
 * A privileged recorder opens files that an unprivileged process names.  Such a
 * name must neither give access to a file that the process may not read, nor
 * block the recorder.
 *
 *   - The process is identified by a descriptor of its folder in /proc, which
 *     no later process with the same pid shares.
 *   - A mapped file is opened through map_files.  Else a path is resolved
 *     inside the root of the process; the last name must neither be a link nor
 *     have a file system mounted on it.
 *   - Files are opened with the rights of the process's user (fsuid, fsgid,
 *     groups).  Without the right to change them (CAP_SETUID), symbolic links
 *     in the path are refused too, and a file must belong to that user or be
 *     readable for all.
 *   - Only regular files of file systems that hold data are opened, and none
 *     under a write lease (-EAGAIN).
 *
 * The server of a FUSE or network file system can block any call here for
 * ever: only a helper (record/proc/helper.h) may call these functions.
 *
 * Threads: any; only the rights of the calling thread are changed, and they are
 * restored on return.
 */
#pragma once

#include "base/base.h"
#include "base/err.h"

#include <sys/types.h>

enum { SEAM_TARGET_MAX_GROUPS = 64 };

/* A process, by descriptors.  Zeroed is not valid; see _init(). */
struct seam_target {
	int32_t pid;		/* as the recording numbers it */
	int32_t inner_pid;	/* as the process sees itself; 0: not known */
	uid_t uid;		/* (uid_t)-1: not known */
	uint64_t start_ns;	/* UTC; 0: not known */
	int process;		/* its folder in /proc; -1: it has ended */
	int root;		/* its root folder; -1: none */
	gid_t gid;
	gid_t groups[SEAM_TARGET_MAX_GROUPS];
	size_t n_groups;
};

/*
 * Open process @pid.  -ESRCH: it has ended; -EACCES: this user may not access
 * it.  @target is valid then too, and must be closed, but opens only files in
 * our own root that everybody may read.
 */
int seam_target_open(struct seam_target *target, int32_t pid,
		     struct seam_err *err);
void seam_target_close(struct seam_target *target);

/* Empty, and valid for seam_target_close(). */
void seam_target_init(struct seam_target *target);

/*
 * Open @path, which is absolute, as the process sees it.  Returns a
 * descriptor, O_NONBLOCK, at offset 0; or -errno: -ENOENT, -ELOOP (a link),
 * -EXDEV (a mount point), -EINVAL (no regular file), -EPERM (not one that
 * holds data, or not readable for its user), -EAGAIN (under a lease), ...
 */
int seam_target_open_path(const struct seam_target *target, const char *path,
			  struct seam_err *err);

/*
 * Open the file that the process has mapped at [@begin, @end), one of its
 * mappings.  As above; -ENOENT: no such mapping; -EPERM: needs
 * CAP_CHECKPOINT_RESTORE or CAP_SYS_ADMIN.
 */
int seam_target_open_mapping(const struct seam_target *target, uint64_t begin,
			     uint64_t end, struct seam_err *err);

/* Open the program that the process runs, deleted or not.  As above. */
int seam_target_open_exe(const struct seam_target *target,
			 struct seam_err *err);

/* ---- mapped files ---- */

enum { SEAM_MAPPED_BUILD_ID = 20 };

/* A file as a side-band record describes it. */
struct seam_file_identity {
	uint8_t build_id[SEAM_MAPPED_BUILD_ID];
	size_t build_id_size;	/* 0: not recorded */
	/* Compared where there is no build id; 0: not known. */
	uint64_t content_id;	/* of symbol/elf/build_id.h */
	uint64_t ino;		/* where there is no content_id either */
};

/* [begin, end) of process @pid, mapped from the file at @path. */
struct seam_file_mapping {
	int32_t pid;
	uint64_t begin, end;
	const char *path;	/* as in the record */
};

/*
 * Open it for reading: first the mapping itself, then the recorded path as the
 * process sees it, then the program that it runs.  A descriptor as of
 * seam_target_open_path(); or -errno, -ENOENT where only others were found.
 * *@is_protected (may be NULL) is set as below, but false for a file of another
 * mount namespace: the image of a container provides its owner.
 */
int seam_mapped_file_open(const struct seam_file_mapping *mapping,
			  const struct seam_file_identity *identity,
			  bool *is_protected);

/*
 * Whether nobody but root and our user could have made the file at @fd: one of
 * these owns it, no other may write to it, and its owner is not what the user
 * who mounted its file system says (FUSE, nosuid).
 *
 * A build id is a claim of the file's author; only where the author can be
 * trusted is what was read of one file used for all files with its build id.
 */
bool seam_mapped_file_is_protected(int fd);

/* Whether the file at @fd is the recorded one. */
bool seam_mapped_file_is(int fd, const struct seam_file_identity *identity);
