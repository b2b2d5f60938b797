/* SPDX-License-Identifier: MIT */
/*
 * kept_file_jobs.h - jobs of the helper thread for kept_files.c
 *
 * Results arrive in seam_kept_files_collect().  Each function returns 0, or
 * -ENOMEM or -EBUSY if the job was not queued.
 */
#ifndef SEAM_KEPT_FILE_JOBS_H
#define SEAM_KEPT_FILE_JOBS_H

#include "record/bundle/kept_files.h"

/* Open file @i of @kept, mapped as @m, as the process of @m sees it. */
int seam_kept_file_open(struct seam_kept_files *kept,
			const struct seam_perf_mapping *m, uint32_t i);

/* Set is_at_path of all files, in one job. */
int seam_kept_file_check_paths(struct seam_kept_files *kept);

/*
 * Copy file @i into @bundle unless it is at its path and was not hit.  The
 * result is added to @counts; a larger file than @budget is left out.
 */
int seam_kept_file_copy(struct seam_kept_files *kept, uint32_t i,
			const struct seam_bundle *bundle, uint64_t budget,
			struct seam_kept_counts *counts);

/* In this thread: write @bytes of memory to elf/@id.  0 or -errno. */
int seam_kept_file_write(const struct seam_bundle *bundle, const uint8_t *id,
			 size_t id_size, const void *image, size_t bytes);

/* Remove the unfinished file of a copy that was given up. */
void seam_kept_file_remove_part(const struct seam_bundle *bundle);

#endif /* SEAM_KEPT_FILE_JOBS_H */
