/* SPDX-License-Identifier: MIT */
/*
 * fentry.h - how an image reaches __fentry__
 *
 * Programs of -pg -mfentry call it at the beginning of each function: through a
 * pointer that the loader sets, by the procedure linkage table, or, where libc
 * is in the program, directly.
 */
#ifndef SEAM_FDR_FENTRY_H
#define SEAM_FDR_FENTRY_H

#include "target/fdr/images.h"

/*
 * Set image->code's members of __fentry__, from the symbols and relocations in
 * @file.  What is damaged has none.
 */
void seam_fdr_find_fentry(struct seam_fdr_image *image,
			  const struct seam_image_file *file);

#endif /* SEAM_FDR_FENTRY_H */
