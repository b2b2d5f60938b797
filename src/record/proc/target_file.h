/* SPDX-License-Identifier: MIT */
/*
 * target_file.h - open the files of a traced process without trust in it
 *
 * A recorder with rights opens files that a process without them names: the
 * files that it maps, and the dumps and maps of its JIT.  Such a name must
 * neither show the recorder what that process may not read, nor make it wait.
 *
 *   - The process is held by its folder in /proc, which is of that process
 *     and of no later one with its number.
 *   - A mapped file is opened through map_files: the mapping itself, whatever
 *     its path leads to by now.  Else a path is resolved inside the root of
 *     the process.  The last name must neither be a link nor have a file
 *     system mounted on it (RESOLVE_NO_SYMLINKS, RESOLVE_NO_XDEV).
 *   - All of it happens with the rights of the process's own user (fsuid,
 *     fsgid, groups), so that the kernel itself refuses what that user may
 *     not read.  Without the right to change them (CAP_SETUID), links on the
 *     way are refused too, and a file must belong to that user or be readable
 *     for all.
 *   - Only regular files of file systems that hold data are opened: no FIFO,
 *     no device, nothing of /proc, /sys and their like.
 *   - A file under a write lease is refused with -EAGAIN, and not waited for.
 *
 * A server of a FUSE or network file system can hold up any call here for
 * ever.  So these functions are for a helper thread (record/proc/helper.h), never
 * for the one that drains.
 *
 * Threads: any; the rights of the calling thread alone are changed, and are
 * back on return.
 */
#ifndef SEAM_TARGET_FILE_H
#define SEAM_TARGET_FILE_H

#include "base/base.h"
#include "base/err.h"
#include "symbol/jit/jit_find.h"

enum { SEAM_TARGET_MAX_GROUPS = 64 };

/* A process, held by descriptors.  Zeroed is not valid; see _init(). */
struct seam_target {
	/* Its number, user, start and root folder; owner.root is held. */
	struct seam_jit_owner owner;
	int process;		/* its folder in /proc; -1: it has ended */
	gid_t gid;
	gid_t groups[SEAM_TARGET_MAX_GROUPS];
	size_t n_groups;
};

/*
 * Hold process @pid.  Returns 0, or -ESRCH when it has ended, -EACCES when it
 * is not ours to look into: then @target can be used all the same, but opens
 * only files in our own root that everybody may read.  seam_target_close() is
 * valid after each of them.
 */
int seam_target_open(struct seam_target *target, int32_t pid,
		     struct seam_err *err);
void seam_target_close(struct seam_target *target);

/* Valid for seam_target_close(), and holds nothing. */
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

#endif /* SEAM_TARGET_FILE_H */
