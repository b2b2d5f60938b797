/* SPDX-License-Identifier: MIT */
/*
 * keep_file.h - the jobs of keep.h for the helper thread, one file each
 *
 * For keep.c alone.
 */
#ifndef SEAM_KEEP_FILE_H
#define SEAM_KEEP_FILE_H

#include "record/keep.h"

/*
 * Open the file of mapping @m, the @file-th of @keep, as its process sees it.
 * The result comes with seam_keep_round().  -ENOMEM or -EAGAIN.
 */
int seam_keep_file_open(struct seam_keep *keep,
			const struct seam_keep_mapping *m, uint32_t file);

/*
 * Look which files are where their paths say, in one job; the result, in
 * is_there, comes as above.
 */
int seam_keep_file_look(struct seam_keep *keep);

/*
 * Copy it into the bundle if its path does not lead to it, or it was hit;
 * counted in @counts.  As above.
 */
int seam_keep_file_copy(struct seam_keep *keep, uint32_t file,
			const struct seam_bundle *bundle, uint64_t budget,
			struct seam_keep_counts *counts);

/* A file elf/@id of @bytes of memory, and no other thread's.  0 or -errno. */
int seam_keep_file_put(const struct seam_bundle *bundle, const uint8_t *id,
		       size_t id_size, const void *image, size_t bytes);

/* What a copy that was given up has left: not a whole file. */
void seam_keep_file_drop(const struct seam_bundle *bundle);

#endif /* SEAM_KEEP_FILE_H */
