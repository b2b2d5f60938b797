/* SPDX-License-Identifier: MIT */
/*
 * batch_folder.h - the batch files of a folder
 *
 * Files called NAME.batch, by their names, are read into memory: another
 * process may write the folder meanwhile, and files of other users may be in
 * it.  No link is followed; what is no regular file is refused.
 */
#pragma once

#include "base/file.h"
#include "wire/fleet/batch_file.h"

#define SEAM_BATCH_ENDING ".batch"

enum { SEAM_BATCH_FOLDER_FILES = 1 << 20 };

struct seam_batch_folder {
	int fd;
	SEAM_ARRAY(char *) names;	/* sorted */
};

/* 0 or -errno: -E2BIG of more than that many; to be closed in either case. */
int seam_batch_folder_open(struct seam_batch_folder *folder, const char *path,
			   struct seam_err *err);
void seam_batch_folder_close(struct seam_batch_folder *folder);

/* The head of a file of folder @fd.  0 or -errno; freed in either case. */
int seam_batch_folder_head(int fd, const char *name,
			   struct seam_batch_head *head, struct seam_err *err);

/* All of such a file as @batch.  0 or -errno; freed in either case. */
int seam_batch_folder_read(int fd, const char *name, struct seam_batch *batch,
			   struct seam_err *err);
