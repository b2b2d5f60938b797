/* SPDX-License-Identifier: MIT */
/* mapped_file.c - three ways to a mapped file; see mapped_file.h */
#include "record/proc/mapped_file.h"

#include "record/proc/target_file.h"
#include "symbol/elf/build_id.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/statvfs.h>
#include <unistd.h>

bool seam_mapped_file_is(int fd, const struct seam_file_identity *identity)
{
	uint8_t found[SEAM_MAPPED_BUILD_ID];
	struct stat st;

	if (identity->build_id_size)
		return seam_build_id_read(fd, found) ==
		       identity->build_id_size &&
		       memcmp(found, identity->build_id,
			      identity->build_id_size) == 0;
	if (identity->content_id)
		return seam_content_id_read(fd) == identity->content_id;
	/* not the device: that of a layered file system is another one */
	return identity->ino && fstat(fd, &st) == 0 &&
	       st.st_ino == identity->ino;
}

/* Return @fd if it is the recorded file; else close it.  It may be -errno. */
static int if_identical(int fd, const struct seam_file_identity *identity)
{
	if (fd < 0 || seam_mapped_file_is(fd, identity))
		return fd;
	close(fd);
	return -ENOENT;
}

/* Of two errors, the one that is not merely "not found". */
static int specific_error(int code, int next)
{
	return code == -ENOENT || code == -ESRCH || code == -EPERM ? next :
	       code;
}

static int open_of(const struct seam_target *target,
		   const struct seam_file_mapping *m,
		   const struct seam_file_identity *identity)
{
	int fd, code;

	fd = if_identical(seam_target_open_mapping(target, m->begin, m->end,
						   NULL), identity);
	if (fd >= 0)
		return fd;
	code = fd;
	fd = if_identical(seam_target_open_path(target, m->path, NULL),
			  identity);
	if (fd >= 0)
		return fd;
	code = specific_error(code, fd);
	fd = if_identical(seam_target_open_exe(target, NULL), identity);
	return fd >= 0 ? fd : specific_error(code, -ENOENT);
}

/* Whether the process sees the file systems that we see. */
static bool has_our_mounts(const struct seam_target *target)
{
	struct stat ours, theirs;

	if (target->process < 0)
		return true;		/* it was opened in our root */
	return stat("/proc/self/ns/mnt", &ours) == 0 &&
	       fstatat(target->process, "ns/mnt", &theirs, 0) == 0 &&
	       ours.st_dev == theirs.st_dev && ours.st_ino == theirs.st_ino;
}

bool seam_mapped_file_is_protected(int fd)
{
	struct statfs fs;
	struct stat st;

	return fstat(fd, &st) == 0 && fstatfs(fd, &fs) == 0 &&
	       (st.st_uid == 0 || st.st_uid == geteuid()) &&
	       !(st.st_mode & (S_IWGRP | S_IWOTH)) &&
	       (uint32_t)fs.f_type != FUSE_SUPER_MAGIC &&
	       !(fs.f_flags & ST_NOSUID);
}

int seam_mapped_file_open(const struct seam_file_mapping *mapping,
			  const struct seam_file_identity *identity,
			  bool *is_protected)
{
	struct seam_target target;
	int fd;

	seam_target_open(&target, mapping->pid, NULL);
	fd = open_of(&target, mapping, identity);
	if (is_protected)
		*is_protected = fd >= 0 && has_our_mounts(&target) &&
				seam_mapped_file_is_protected(fd);
	seam_target_close(&target);
	return fd;
}
