/* SPDX-License-Identifier: MIT */
/*
 * mapped_file.h - open the file that a process has mapped, and no other
 *
 * As target_file.h says, and only in a helper: first the mapping
 * itself, then the recorded path as the process sees it, then the program that
 * it runs.  A file that is not the recorded one, by its build id or, without
 * one, by its contents or inode, is not opened.
 */
#ifndef SEAM_MAPPED_FILE_H
#define SEAM_MAPPED_FILE_H

#include "base/base.h"

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
 * Open it for reading.  A descriptor as of seam_target_open_path(); or -errno,
 * -ENOENT where only other files were found.
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

#endif /* SEAM_MAPPED_FILE_H */
