/* SPDX-License-Identifier: MIT */
/*
 * kept_file_jobs.h - the jobs of kept_files.h for the helper thread, one file each
 *
 * For kept_files.c alone.
 */
#ifndef SEAM_KEPT_FILE_JOBS_H
#define SEAM_KEPT_FILE_JOBS_H

#include "record/bundle/kept_files.h"

/*
 * Open the file of mapping @m, the @file-th of @kept, as its process sees it.
 * The result comes with seam_kept_files_collect().  -ENOMEM or -EAGAIN.
 */
int seam_kept_file_open(struct seam_kept_files *kept,
			const struct seam_kept_files_mapping *m, uint32_t file);

/*
 * Look which files are where their paths say, in one job; the result, in
 * is_there, comes as above.
 */
int seam_kept_file_check_paths(struct seam_kept_files *kept);

/*
 * Copy it into the bundle if its path does not lead to it, or it was hit;
 * counted in @counts.  As above.
 */
int seam_kept_file_copy(struct seam_kept_files *kept, uint32_t file,
			const struct seam_bundle *bundle, uint64_t budget,
			struct seam_kept_files_counts *counts);

/* A file elf/@id of @bytes of memory, and no other thread's.  0 or -errno. */
int seam_kept_file_write(const struct seam_bundle *bundle, const uint8_t *id,
		       size_t id_size, const void *image, size_t bytes);

/* What a copy that was given up has left: not a whole file. */
void seam_kept_file_remove_part(const struct seam_bundle *bundle);

#endif /* SEAM_KEPT_FILE_JOBS_H */
